"""Where a service is found: SRV, URI, NAPTR.

Owns  the three types.
Not   the dated members `service`, `proto` and `name` of SRV data: `usecases` refuses or ignores them.
"""

from typing import Annotated

from edgestead.model.names import check_service_name
from edgestead.model.records.kinds import U16, HostName, ShortText, Tail, TargetName
from edgestead.model.records.substitution import check_substitution
from edgestead.model.records.table import Rdata, record_type


@record_type(33, "RFC 2782", form="data", priority="both", name_rule=check_service_name)
class SRV(Rdata, frozen=True):
    """The host and port of a service at `_service._proto.base`. The target `.` says that there is none.

    Content may begin with the priority.
    """

    priority: U16
    weight: U16
    port: U16
    target: HostName


@record_type(256, "RFC 7553 §4", form="data", priority="top")
class URI(Rdata, frozen=True):
    """A URI for the name. Content may begin with the priority."""

    priority: U16
    weight: U16
    target: Annotated[bytes, Tail(may_be_empty=False)]


@record_type(35, "RFC 3403 §4", form="data")
class NAPTR(Rdata, frozen=True):
    """A rewriting rule. The regex is `!pattern!replacement!flags`, and the replacement refers only to groups
    that the pattern has. In `data` a regex holds its backslashes as they are; in `content` each is doubled.
    """

    order: U16
    preference: U16
    flags: ShortText
    service: ShortText
    regex: ShortText
    replacement: TargetName

    def check(self) -> None:
        check_substitution(self.regex)
