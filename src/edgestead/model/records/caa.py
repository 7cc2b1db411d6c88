"""CAA: which authorities may issue certificates.

Owns  the type and its tags.
Not   what the value of a tag means.
"""

from typing import Annotated

from edgestead.model.records.kinds import U8, Choice, Tail
from edgestead.model.records.table import Rdata, record_type

TAGS = ("issue", "issuewild", "iodef", "issuemail", "issuevmc")  # RFC 8659 §4, RFC 9495, BIMI


@record_type(257, "RFC 8659 §4.1", form="data")
class CAA(Rdata, frozen=True):
    """Who may issue certificates for the name."""

    flags: U8
    tag: Annotated[str, Choice(*TAGS)]
    value: Annotated[bytes, Tail(may_be_empty=True)]
