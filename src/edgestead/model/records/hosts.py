"""The types whose content is a host name: CNAME, MX, NS, PTR.

Owns  the four types.
Not   where they may stand, and beside what.
"""

from edgestead.model.names import ROOT, InvalidValue, check_address_name
from edgestead.model.records.kinds import U16, HostName
from edgestead.model.records.table import Rdata, record_type


@record_type(5, "RFC 1035 §3.3.1", proxiable=True, name_rule=check_address_name)
class CNAME(Rdata, frozen=True):
    """Another name that answers in place of this one."""

    target: HostName


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
