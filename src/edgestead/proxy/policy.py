"""Which addresses an origin may have.

Owns  the rule, asked of the resolved address when connecting.
Asks  the kernel whether an address is this machine's.
Tells `proxy.pool`.
Not   what a record may say when it is written (`services.record_draft`).

Never: the platform's own listeners, link-local, multicast, unspecified and reserved addresses. Loopback,
private and shared ones as the operator allows (`--origin-allow`). An IPv6 address that leads to an IPv4
address (mapped, NAT64, 6to4) is held to the rules for that one.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052 §2.1


class Policy:
    """`own` are (host, port) of the platform's listeners; a wildcard host means every address of this
    machine. `allowed` are prefixes of loopback and private addresses that may be origins.
    """

    def __init__(self, own: Sequence[tuple[str, int]], allowed: Sequence[Network]) -> None:
        self._own = {(str(ip_address(host)), port) for host, port in own if not _is_wildcard(host)}
        self._wild = {port for host, port in own if _is_wildcard(host)}
        self._allowed = tuple(allowed)

    def fault(self, address: str, port: int) -> str | None:
        """Why nothing may connect there; None when it may."""
        ip = _meant(ip_address(address))
        if (str(ip), port) in self._own or (port in self._wild and _is_local(ip)):
            return "it is one of this server's own addresses"
        if ip.is_link_local or ip.is_multicast or ip.is_unspecified or _is_broadcast(ip):
            return "such addresses are never origins"
        if not ip.is_global and not self._allows(ip):
            return "private and loopback addresses are origins only as --origin-allow says"
        return None

    def _allows(self, ip: IPv4Address | IPv6Address) -> bool:
        return any(ip.version == network.version and ip in network for network in self._allowed)


def _meant(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if ip.version == 4:
        return ip
    if ip in _NAT64:
        return IPv4Address(ip.packed[-4:])
    return ip.ipv4_mapped or ip.sixtofour or ip


def _is_wildcard(host: str) -> bool:
    return ip_address(host).is_unspecified


def _is_broadcast(ip: IPv4Address | IPv6Address) -> bool:
    return ip == IPv4Address("255.255.255.255")


def _is_local(ip: IPv4Address | IPv6Address) -> bool:
    """Whether a socket of this machine could have that address."""
    if ip.is_loopback:
        return True
    with socket.socket(socket.AF_INET if ip.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(ip), 0))
        except OSError:
            return False
    return True
