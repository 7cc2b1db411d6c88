"""One form of each address: an IPv4 address that is written as an IPv6 one is that IPv4 address.

Owns  addresses and networks of `::ffff:0:0/96` (RFC 4291 §2.5.5.2) as what they stand for.
Not   who may do what from an address.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_BEFORE: Final = 96  # bits


def plain(text: str) -> IPv4Address | IPv6Address:
    """Raises ValueError.

    >>> plain("::ffff:192.0.2.1")
    IPv4Address('192.0.2.1')
    """
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def plain_network(text: str) -> IPv4Network | IPv6Network:
    """Bits behind the prefix do not matter. Raises ValueError.

    >>> plain_network("::ffff:192.0.2.1/120")
    IPv4Network('192.0.2.0/24')
    """
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.prefixlen >= _BEFORE and network.subnet_of(_MAPPED):
        return ip_network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - _BEFORE))
    return network
