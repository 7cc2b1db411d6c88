"""What accounts say about transfers of their zones: the peers of each, and ranges of addresses.

Owns  the answer to "may this one transfer this zone?" as far as the account says it; whom a zone is told to.
Not   what the operator's options and the rights of keys open (`transfer`, `keyring`).

    the account says                                       asked                           answer
    nothing about the zone                                 by anybody                      UNSAID
    a peer that wants TLS has this address, or this key    over TCP alone                  REFUSED
    transfers of the zone are off                          by anybody                      CLOSED
    a peer has this address or an ACL does; and its key    with what the peer asks for     OPEN
    an ACL has this address, and the zone has no peers     by anybody                      OPEN
    anything else                                                                          UNSAID
"""

from enum import Enum, auto
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, NamedTuple

from edgestead.model.addresses import plain, plain_network
from edgestead.model.transfers import ServedPeer, decode_acl, decode_outgoing

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


class Word(Enum):
    """UNSAID: what else opens the zone counts; CLOSED: of that what is the operator's; REFUSED: nothing."""

    UNSAID = auto()
    OPEN = auto()
    CLOSED = auto()
    REFUSED = auto()


class Peer(NamedTuple):
    """`address` None is nobody's, `key_id` "" means without a key."""

    address: Address | None
    port: int
    key_id: str
    tls: bool


class _Zone(NamedTuple):
    account_id: str
    enabled: bool
    peers: tuple[Peer, ...]


Target = tuple[str, int]


class Outgoing:
    """Changed and asked on one thread."""

    def __init__(self) -> None:
        self._zones: dict[bytes, _Zone] = {}
        self._ranges: dict[str, tuple[Network, ...]] = {}

    def take_zone(self, before: bytes | None, document: bytes | None) -> None:
        if before is not None:
            self._zones.pop(decode_outgoing(before).apex, None)
        if document is not None:
            served = decode_outgoing(document)
            self._zones[served.apex] = _Zone(
                served.account_id, served.enabled, tuple(_peer(one) for one in served.peers)
            )

    def take_ranges(self, account_id: str, document: bytes | None) -> None:
        if document is None:
            self._ranges.pop(account_id, None)
        else:
            ranges = decode_acl(document).ranges
            self._ranges[account_id] = tuple(map(plain_network, ranges))

    def says(self, apex: bytes, address: Address, key_id: str, *, private: bool) -> Word:
        """Whether a client at an address, who signed with a key ("" for none), may transfer a zone."""
        zone = self._zones.get(apex)
        if zone is None:
            return Word.UNSAID
        if not private and any(peer.tls and _is(peer, address, key_id) for peer in zone.peers):
            return Word.REFUSED
        if not zone.enabled:
            return Word.CLOSED
        in_range = any(address in network for network in self._ranges.get(zone.account_id, ()))
        if in_range and not zone.peers:
            return Word.OPEN
        for peer in zone.peers:
            at_home = in_range or peer.address == address
            if at_home and peer.key_id in ("", key_id) and (private or not peer.tls):
                return Word.OPEN
        return Word.UNSAID

    def targets(self, apex: bytes) -> dict[Target, str]:
        """Whom a change of a zone is told, with the ids of the keys that sign it, "" for none."""
        zone = self._zones.get(apex)
        if zone is None or not zone.enabled:
            return _NOBODY
        return {
            (str(peer.address), peer.port): peer.key_id for peer in zone.peers if peer.address is not None
        }


_NOBODY: Final[dict[Target, str]] = {}


def _peer(served: ServedPeer) -> Peer:
    address = plain(served.ip) if served.ip else None
    return Peer(address, served.port, served.key_id, served.tls)


def _is(peer: Peer, address: Address, key_id: str) -> bool:
    return peer.address == address or bool(peer.key_id and peer.key_id == key_id)
