"""Which addresses an origin may have.

Owns  the rule, asked of the resolved address when connecting.
Not   what a record may say when it is written (`usecases.record.draft`).

Never: the platform's own listeners, link-local, multicast, unspecified and reserved addresses. Loopback,
private and shared ones as the operator allows (`--origin-allow`). An IPv6 address that leads to an IPv4
address (mapped, NAT64, 6to4) is held to the rules for that one.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052 §2.1


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(line.split()[0]) for line in text.strip().splitlines())


# Tables of our own rather than `ipaddress.is_global`, which changes with Python's patch level: what IANA's
# registries of special-purpose addresses have, with the source of each row.
NEVER = _networks("""
    0.0.0.0/32          RFC 1122 §3.2.1.3   unspecified
    169.254.0.0/16      RFC 3927            link-local
    224.0.0.0/4         RFC 1112            multicast
    255.255.255.255/32  RFC 919             broadcast
    ::/128              RFC 4291 §2.5.2     unspecified
    fe80::/10           RFC 4291 §2.5.6     link-local
    ff00::/8            RFC 4291 §2.7       multicast
""")
SPECIAL = _networks("""
    0.0.0.0/8           RFC 791 §3.2        this network
    10.0.0.0/8          RFC 1918            private
    100.64.0.0/10       RFC 6598            shared
    127.0.0.0/8         RFC 1122 §3.2.1.3   loopback
    172.16.0.0/12       RFC 1918            private
    192.0.0.0/24        RFC 6890 §2.1       protocol assignments
    192.0.2.0/24        RFC 5737            documentation
    192.88.99.0/24      RFC 7526            relays of 6to4, which are no more
    192.168.0.0/16      RFC 1918            private
    198.18.0.0/15       RFC 2544            benchmarks
    198.51.100.0/24     RFC 5737            documentation
    203.0.113.0/24      RFC 5737            documentation
    240.0.0.0/4         RFC 1112 §4         reserved
    2001::/23           RFC 2928            protocol assignments, Teredo among them
    2001:db8::/32       RFC 3849            documentation
    3fff::/20           RFC 9637            documentation
""")
ASSIGNED = _networks("""
    192.0.0.9/32        RFC 7723            anycast of port control
    192.0.0.10/32       RFC 8155            anycast of TURN
    2001:1::1/128       RFC 7723            anycast of port control
    2001:1::2/128       RFC 8155            anycast of TURN
    2001:1::3/128       RFC 9665            anycast of service registration
    2001:3::/32         RFC 7450            multicast tunnels
    2001:4:112::/48     RFC 7535            AS112
    2001:20::/28        RFC 7343            ORCHIDv2
    2001:30::/28        RFC 9374            drone identities
""")  # of special networks, what everybody can reach
UNICAST = _networks("""
    0.0.0.0/0           RFC 791
    2000::/3            RFC 4291 §2.4       what is assigned of IPv6
""")  # what is outside may be `fec0::/10`, `fc00::/7`, `64:ff9b:1::/48`, `::/96`, `100::/64` …


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
        if _is_in(ip, NEVER):
            return "such addresses are never origins"
        if not is_global(ip) and not _is_in(ip, self._allowed):
            return "private and loopback addresses are origins only as --origin-allow says"
        return None


def is_global(ip: IPv4Address | IPv6Address) -> bool:
    """Whether an address is anybody's to reach, and not of somebody's own net."""
    return _is_in(ip, UNICAST) and (not _is_in(ip, SPECIAL) or _is_in(ip, ASSIGNED))


def _is_in(ip: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    return any(ip.version == network.version and ip in network for network in networks)


def _meant(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if ip.version == 4:
        return ip
    if ip in _NAT64:
        return IPv4Address(ip.packed[-4:])
    return ip.ipv4_mapped or ip.sixtofour or ip


def _is_wildcard(host: str) -> bool:
    return ip_address(host).is_unspecified


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
