"""The types that most zones are made of: addresses, names of hosts and services, the zone's own record, CAA.

Owns  A, AAAA, CNAME, DNAME, MX, NS, PTR; SRV, URI, NAPTR; SOA; CAA and its tags.
Not   which records may be at one name, which addresses a proxied one may have, and whether a caller may write
      SOA (`usecases.change`); what the value of a tag means.
"""

from typing import Annotated

from edgestead.model.names import ROOT, InvalidValue, check_address_name, check_service_name
from edgestead.model.records.kinds import (
    U8,
    U16,
    U32,
    Choice,
    HostName,
    IPv4,
    IPv6,
    ShortText,
    Tail,
    TargetName,
)
from edgestead.model.records.substitution import check_substitution
from edgestead.model.records.table import Rdata, record_type
from edgestead.model.refusals.record import NotIPv4, NotIPv6


@record_type(5, "RFC 1035 §3.3.1", proxiable=True, name_rule=check_address_name)
class CNAME(Rdata, frozen=True):
    """Another name that answers in place of this one."""

    target: HostName


@record_type(39, "RFC 6672", is_extension=True)
class DNAME(Rdata, frozen=True):
    """Another name below which everything below this one is looked up."""

    target: HostName

    def check(self) -> None:
        if self.target == ROOT:
            raise InvalidValue("the target . would lead every name to a top-level domain")


@record_type(15, "RFC 1035 §3.3.9, RFC 7505", priority="top")
class MX(Rdata, frozen=True):
    """A mail server. `.` with priority 0 says that the name takes no mail."""

    priority: U16
    target: HostName

    def check(self) -> None:
        if self.target == ROOT and self.priority:
            raise InvalidValue("the target . is only allowed with priority 0")


@record_type(2, "RFC 1035 §3.3.11")
class NS(Rdata, frozen=True):
    """A name server of the name it stands at, which it thereby delegates."""

    target: HostName


@record_type(12, "RFC 1035 §3.3.12")
class PTR(Rdata, frozen=True):
    """The name of an address in a reverse zone."""

    target: HostName


@record_type(1, "RFC 1035 §3.4.1", proxiable=True, name_rule=check_address_name, refusal=NotIPv4)
class A(Rdata, frozen=True):
    """An IPv4 address: four decimal parts, no short forms, no leading zeros."""

    address: IPv4


@record_type(28, "RFC 3596", proxiable=True, name_rule=check_address_name, refusal=NotIPv6)
class AAAA(Rdata, frozen=True):
    """An IPv6 address in any form of RFC 4291 §2.2; answered in the form of RFC 5952."""

    address: IPv6


@record_type(6, "RFC 1035 §3.3.13")
class SOA(Rdata, frozen=True):
    """A zone's own record, made by the platform; refresh, retry, expire and minimum are seconds."""

    mname: HostName
    rname: HostName
    serial: U32
    refresh: U32
    retry: U32
    expire: U32
    minimum: U32


TAGS = ("issue", "issuewild", "iodef", "issuemail", "issuevmc")  # RFC 8659 §4, RFC 9495, BIMI


@record_type(257, "RFC 8659 §4.1", form="data")
class CAA(Rdata, frozen=True):
    """Who may issue certificates for the name."""

    flags: U8
    tag: Annotated[str, Choice(*TAGS)]
    value: Annotated[bytes, Tail(may_be_empty=True)]


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
