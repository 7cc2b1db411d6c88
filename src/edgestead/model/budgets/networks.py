"""Which clients count as one address.

Owns  `network_of`, for addresses as text and as octets.
Not   counting.

One customer of an access network has a whole /64 (RFC 6177), and may send from each address of it.
"""

from functools import lru_cache
from ipaddress import IPv6Address

HOST_OCTETS_V6 = 8
NETWORKS_KEPT_MAX = 4_096  # addresses whose network is remembered


def network_of(address: str) -> str:
    """What is counted together: an IPv4 address, or an IPv6 network of 64 bits. Other text is itself."""
    return address if ":" not in address else _network_v6(address)


@lru_cache(NETWORKS_KEPT_MAX)
def _network_v6(address: str) -> str:
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(found.packed[:HOST_OCTETS_V6] + bytes(HOST_OCTETS_V6))}/64"


def network_of_octets(octets: bytes) -> bytes:
    """The same of an address of 4 or 16 octets that is no mapped one."""
    return octets[:HOST_OCTETS_V6]
