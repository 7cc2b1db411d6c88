"""The name servers of others: those that an account's secondary zones come from, and those its zones go to.

Owns  their JSON shape and rules.
Not   which zone uses which (`usecases.zone.secondary`, `usecases.zone.outgoing`); asking them
      (`server.control.incoming`).
"""

from collections.abc import Callable, Sequence

import msgspec

from edgestead.model.addresses import plain
from edgestead.model.call import Call
from edgestead.model.refusals.secondary import PeerInUse, PeerNotFound, PeerRefused
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, tsig_keys
from edgestead.usecases import limits
from edgestead.usecases.lookup import account_of
from edgestead.usecases.serving import followed
from edgestead.usecases.zone import outgoing, secondary
from edgestead.usecases.zone.secondary import PEERS, Peer

PORT_MAX = 65_535  # 16 bits


class PeerBody(msgspec.Struct, frozen=True):
    """What is not sent has its default. `tsig_id` is the id of a TSIG key of the account."""

    name: str | None = None
    ip: str | None = None
    port: int | None = None
    ixfr_enable: bool | None = None
    tsig_id: str | None = None
    tls: bool | None = None


def listed(reader: Reader, account_id: str) -> list[Peer]:
    """By name. Raises AccountNotSeen."""
    account_of(reader, account_id)
    return sorted(secondary.peers_of(reader, account_id).values(), key=lambda peer: (peer.name, peer.id))


def show(reader: Reader, account_id: str, peer_id: str) -> Peer:
    """Raises AccountNotSeen, PeerNotFound."""
    account_of(reader, account_id)
    found = secondary.peers_of(reader, account_id).get(peer_id)
    if found is None:
        raise PeerNotFound
    return found


def create(call: Call, tx: Transaction, new_id: Callable[[], str], account_id: str, body: PeerBody) -> Peer:
    """Raises AccountNotSeen, PeerRefused."""
    if len(listed(tx, account_id)) >= limits.PEERS_MAX:
        raise PeerRefused(reason=f"an account has at most {limits.PEERS_MAX} peers.", pointer="")
    return _store(call, tx, account_id, new_id(), body)


def put(call: Call, tx: Transaction, account_id: str, peer_id: str, body: PeerBody) -> Peer:
    """Raises AccountNotSeen, PeerNotFound, PeerRefused; PeerInUse: a zone needs its address."""
    before, users = show(tx, account_id, peer_id), secondary.zones_with_peer(tx, peer_id)
    peer = _store(call, tx, account_id, peer_id, body)
    if users and not peer.ip:
        raise PeerInUse(zone=users[0], pointer="/ip")
    if users and peer != msgspec.structs.replace(before, name=peer.name):
        _ask_again(call, tx, users)
    return peer


def _ask_again(call: Call, tx: Transaction, users: Sequence[str]) -> None:
    """What asked in vain is asked for at once; the rest of very many zones when their pause is over."""
    zones, catalogs = secondary.states(tx), followed.states(tx)
    in_vain = [id_ for id_ in users if id_ in zones and zones[id_].tries]
    secondary.refresh_each(call, tx, in_vain[: limits.ASKED_AGAIN_MAX])
    for catalog_id in users:
        if catalog_id in catalogs and catalogs[catalog_id].tries:
            followed.ask_soon(tx, catalog_id, call.now_us, again=False)


def delete(tx: Transaction, account_id: str, peer_id: str) -> Peer:
    """Raises AccountNotSeen, PeerNotFound; PeerInUse: a zone is transferred from or to it."""
    found = show(tx, account_id, peer_id)
    users = secondary.zones_with_peer(tx, peer_id) or outgoing.zones_with_peer(tx, peer_id)
    if users:
        raise PeerInUse(zone=users[0])
    settings.delete(tx, account_id, f"{PEERS}.{peer_id}")
    return found


def _store(call: Call, tx: Transaction, account_id: str, peer_id: str, body: PeerBody) -> Peer:
    peer = Peer(
        peer_id,
        _name(body.name),
        "" if body.ip is None else _ip(body.ip),
        53 if body.port is None else body.port,
        body.ixfr_enable is not False,
        body.tsig_id or None,
        bool(body.tls),
    )
    if not 1 <= peer.port <= PORT_MAX:
        raise PeerRefused(reason=f"port is 1 to {PORT_MAX}.", pointer="/port")
    if peer.tsig_id and tsig_keys.one(tx, account_id, peer.tsig_id) is None:
        raise PeerRefused(reason="the account has no TSIG key of this id.", pointer="/tsig_id")
    settings.put(tx, account_id, f"{PEERS}.{peer_id}", msgspec.json.encode(peer).decode(), call.now_us)
    outgoing.peer_changed(tx, peer_id)
    return peer


def _name(text: str | None) -> str:
    if not text or len(text) > limits.PEER_NAME_CHARACTERS_MAX:
        reason = f"name is a text of 1 to {limits.PEER_NAME_CHARACTERS_MAX} characters."
        raise PeerRefused(reason=reason, pointer="/name")
    return text


def _ip(text: str) -> str:
    try:
        address = plain(text.strip())
    except ValueError:
        raise PeerRefused(reason="ip is an IPv4 or IPv6 address.", pointer="/ip") from None
    if address.is_multicast or address.is_unspecified:
        raise PeerRefused(reason="no name server has this address.", pointer="/ip")
    return str(address)
