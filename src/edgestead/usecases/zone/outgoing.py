"""Outgoing transfers of a zone: the peers that are told of its changes and may transfer it.

Owns  their state, its rules, and telling DNS of it.
Not   an account's peers (`usecases.account.peers`) and ranges (`usecases.account.transfer_acls`); who is let
      in by them (`dns.outgoing`).

Made it is off, as clients of the original API expect: they turn it on in a second step.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from edgestead.model import names, transfers
from edgestead.model.call import Call
from edgestead.model.refusals.outgoing import OutgoingNotFound, OutgoingRefused
from edgestead.model.times import six_digits
from edgestead.model.transfers import KIND_OUTGOING, ServedOutgoing, ServedPeer
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.zone.secondary import Peer, peers_of

OUTGOING: Final = "secondary.outgoing"
ENABLED, DISABLED = "Enabled", "Disabled"


class Outgoing(msgspec.Struct, frozen=True):
    """`told` counts how often NOTIFY was asked for."""

    id: str
    name: str
    peers: tuple[str, ...]
    enabled: bool
    told: int
    created_us: int


class OutgoingBody(msgspec.Struct, frozen=True):
    name: str | None = None
    peers: list[str] | None = None


class OutgoingView(msgspec.Struct, frozen=True):
    """As the original API has it. Nobody here notes when a secondary asked: both times are null."""

    id: str
    name: str
    peers: tuple[str, ...]
    soa_serial: int
    checked_time: str | None
    created_time: str
    last_transferred_time: str | None


_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Outgoing).decode


def show(reader: Reader, zone_id: str) -> OutgoingView:
    """Raises ZoneNotFound, OutgoingNotFound."""
    zone = zone_of(reader, zone_id)
    found = _stored(reader, zone_id)
    return OutgoingView(
        found.id, found.name, found.peers, zone.serial, None, six_digits(found.created_us), None
    )


def status(reader: Reader, zone_id: str) -> str:
    """Raises ZoneNotFound, OutgoingNotFound."""
    zone_of(reader, zone_id)
    return _word(_stored(reader, zone_id))


def put(
    call: Call, tx: Transaction, new_id: Callable[[], str], zone_id: str, body: OutgoingBody
) -> OutgoingView:
    """Say who transfers a zone. Raises ZoneNotFound, OutgoingRefused."""
    zone = zone_of(tx, zone_id)
    known = peers_of(tx, zone.account_id)
    wanted = tuple(dict.fromkeys(body.peers or ()))
    if len(wanted) > limits.PEERS_PER_ZONE_MAX:
        reason = f"peers are at most {limits.PEERS_PER_ZONE_MAX} ids of peers."
        raise OutgoingRefused(reason=reason, pointer="/peers")
    for at, peer_id in enumerate(wanted):
        if peer_id not in known:
            raise OutgoingRefused(reason="the account has no such peer.", pointer=f"/peers/{at}")
    stored = settings.one(tx, zone_id, OUTGOING)
    before = _read(stored.value) if stored else Outgoing(new_id(), "", (), False, 0, call.now_us)
    name = (body.name or zone.name)[: limits.PEER_NAME_CHARACTERS_MAX]
    _store(call, tx, zone, msgspec.structs.replace(before, name=name, peers=wanted))
    return show(tx, zone_id)


def delete(tx: Transaction, zone_id: str) -> str:
    """No account says anything about the zone's transfers any more; what else opens it does again.

    Raises ZoneNotFound, OutgoingNotFound.
    """
    zone_of(tx, zone_id)
    found = _stored(tx, zone_id)
    settings.delete(tx, zone_id, OUTGOING)
    tx.emit(zone_id, KIND_OUTGOING, "", None)
    return found.id


def switch(call: Call, tx: Transaction, zone_id: str, *, enabled: bool) -> str:
    """Raises ZoneNotFound, OutgoingNotFound."""
    zone = zone_of(tx, zone_id)
    changed = msgspec.structs.replace(_stored(tx, zone_id), enabled=enabled)
    _store(call, tx, zone, changed)
    return _word(changed)


def force_notify(call: Call, tx: Transaction, zone_id: str) -> str:
    """Have the zone's peers told now. Raises ZoneNotFound, OutgoingNotFound; OutgoingRefused: it is off."""
    zone = zone_of(tx, zone_id)
    found = _stored(tx, zone_id)
    if not found.enabled:
        raise OutgoingRefused(reason="its outgoing transfers are disabled.", pointer="")
    _store(call, tx, zone, msgspec.structs.replace(found, told=found.told + 1))
    return "OK"


def zones_with_peer(reader: Reader, peer_id: str) -> list[str]:
    return [zone_id for zone_id, value in settings.scopes(reader, OUTGOING) if peer_id in _read(value).peers]


def peer_changed(tx: Transaction, peer_id: str) -> None:
    """Tell DNS of every zone that has this peer."""
    for zone_id in zones_with_peer(tx, peer_id):
        zone = zones.zone(tx, zone_id)
        if zone is not None:
            _tell(tx, zone, _stored(tx, zone_id))


def _store(call: Call, tx: Transaction, zone: ZoneRow, outgoing: Outgoing) -> None:
    settings.put(tx, zone.id, OUTGOING, _encode(outgoing).decode(), call.now_us)
    _tell(tx, zone, outgoing)


def _tell(tx: Transaction, zone: ZoneRow, outgoing: Outgoing) -> None:
    known = peers_of(tx, zone.account_id)
    served = ServedOutgoing(
        names.wire_from_text(zone.name),
        zone.account_id,
        outgoing.enabled,
        tuple(_served(known[id_]) for id_ in outgoing.peers if id_ in known),
        outgoing.told,
    )
    tx.emit(zone.id, KIND_OUTGOING, "", transfers.encode(served))


def _served(peer: Peer) -> ServedPeer:
    return ServedPeer(peer.ip, peer.port, peer.tsig_id or "", peer.tls)


def _stored(reader: Reader, zone_id: str) -> Outgoing:
    stored = settings.one(reader, zone_id, OUTGOING)
    if stored is None:
        raise OutgoingNotFound
    return _read(stored.value)


def _word(outgoing: Outgoing) -> str:
    return ENABLED if outgoing.enabled else DISABLED
