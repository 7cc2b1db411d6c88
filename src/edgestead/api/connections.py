"""How many connections the REST face holds, in all and from one address.

Owns  the counts, and the two refusals.
Asks  nobody.
Tells `api.framing`, for each connection that begins.
Not   requests; time.
"""

from collections import Counter
from ipaddress import IPv6Address, ip_address

from edgestead.api.limits import CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX
from edgestead.model.errors import EdgeError
from edgestead.model.request_errors import ServerFull, TooManyConnections

_HOST_BITS_V6 = 64  # one customer's network; RFC 6177


class Connections:
    """Used by one event loop. `refused` counts the connections that still wait for their refusal."""

    __slots__ = ("_by_network", "_count", "_per_address_max", "_total_max", "refused")

    def __init__(
        self, total_max: int = CONNECTIONS_MAX, per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX
    ) -> None:
        self._total_max = total_max
        self._per_address_max = per_address_max
        self._count = 0
        self._by_network: Counter[object] = Counter()
        self.refused = 0

    def enter(self, network: object) -> EdgeError | None:
        """Take one more connection, or say why not."""
        if self._count >= self._total_max:
            return ServerFull(limit=self._total_max)
        if self._by_network[network] >= self._per_address_max:
            return TooManyConnections(limit=self._per_address_max)
        self._count += 1
        self._by_network[network] += 1
        return None

    def leave(self, network: object) -> None:
        """A connection that was taken has ended."""
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
