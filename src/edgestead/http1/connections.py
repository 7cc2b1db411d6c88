"""How many connections a server holds, in all and from one address.

Owns  the counts, and the two refusals.
Not   requests; time.
"""

from collections import Counter
from ipaddress import IPv6Address, ip_address

from edgestead.http1.head import Refused

CONNECTIONS_MAX = 2_048  # further ones are answered 503
CONNECTIONS_PER_ADDRESS_MAX = 1_024  # a setting; further ones of an address or an IPv6 /64 are answered 429
_HOST_BITS_V6 = 64  # one customer's network; RFC 6177


class Connections:
    """Used by one event loop."""

    __slots__ = ("_by_network", "_count", "per_address_max", "total_max")

    def __init__(
        self, total_max: int = CONNECTIONS_MAX, per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX
    ) -> None:
        self.total_max = total_max
        self.per_address_max = per_address_max
        self._count = 0
        self._by_network: Counter[object] = Counter()

    def enter(self, address: str) -> Refused | None:
        """Take one more connection, or say why not."""
        network = network_of(address)
        if self._count >= self.total_max:
            return Refused(503, f"there are {self.total_max} connections already")
        if self._by_network[network] >= self.per_address_max:
            return Refused(429, f"there are {self.per_address_max} connections from this address already")
        self._count += 1
        self._by_network[network] += 1
        return None

    def leave(self, address: str) -> None:
        """A connection that was taken has ended."""
        network = network_of(address)
        self._count -= 1
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]


def network_of(address: str) -> object:
    """What is counted together: an IPv4 address, or an IPv6 network of 64 bits."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return found
    return found.ipv4_mapped or int(found) >> _HOST_BITS_V6
