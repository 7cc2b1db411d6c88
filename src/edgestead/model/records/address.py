"""A and AAAA: the addresses of a name.

Owns  the two types.
Not   which addresses a proxied record may have: that depends on the edge, so `usecases` decides it.
"""

from edgestead.model.names import check_address_name
from edgestead.model.records.kinds import IPv4, IPv6
from edgestead.model.records.table import Rdata, record_type
from edgestead.model.refusals.record import NotIPv4, NotIPv6


@record_type(1, "RFC 1035 §3.4.1", proxiable=True, name_rule=check_address_name, refusal=NotIPv4)
class A(Rdata, frozen=True):
    """An IPv4 address: four decimal parts, no short forms, no leading zeros."""

    address: IPv4


@record_type(28, "RFC 3596", proxiable=True, name_rule=check_address_name, refusal=NotIPv6)
class AAAA(Rdata, frozen=True):
    """An IPv6 address in any form of RFC 4291 §2.2; answered in the form of RFC 5952."""

    address: IPv6
