"""REST face of secondary zones: peers of an account, and where a zone is transferred from.

Owns  their routes, as the original API has them.
Not   making such a zone (`rest.routes.zones`).
"""

from edgestead.model.call import Call
from edgestead.rest.context import AppContext, Write
from edgestead.rest.routing import route
from edgestead.usecases.account import peers
from edgestead.usecases.account.peers import PeerBody
from edgestead.usecases.zone import secondary
from edgestead.usecases.zone.secondary import IncomingBody, IncomingView, Peer

_PEERS = "/accounts/{account_id}/secondary_dns/peers"
_PEER = f"{_PEERS}/{{peer_id}}"
_INCOMING = "/zones/{zone_id}/secondary_dns/incoming"
_READ, _WRITE = "Account DNS Settings Read", "Account DNS Settings Write"


@route("GET", _PEERS, permission=_READ)
def list_peers(account_id: str, api: AppContext) -> list[Peer]:
    """The name servers that secondary zones can be transferred from. No paging."""
    return api.barrier.read(lambda reader: peers.listed(reader, account_id))


@route("POST", _PEERS, permission=_WRITE)
async def create_peer(account_id: str, api: AppContext, call: Call, body: PeerBody, write: Write) -> Peer:
    """Add a name server, by address and port."""
    return await write(lambda tx: peers.create(call, tx, api.platform.new_id, account_id, body))


@route("GET", _PEER, permission=_READ)
def show_peer(account_id: str, peer_id: str, api: AppContext) -> Peer:
    """One name server."""
    return api.barrier.read(lambda reader: peers.show(reader, account_id, peer_id))


@route("PUT", _PEER, permission=_WRITE)
async def put_peer(
    account_id: str, peer_id: str, api: AppContext, call: Call, body: PeerBody, write: Write
) -> Peer:
    """Change a name server. What is not sent returns to its default."""
    return await write(lambda tx: peers.put(call, tx, account_id, peer_id, body))


@route("DELETE", _PEER, permission=_WRITE)
async def delete_peer(account_id: str, peer_id: str, api: AppContext, write: Write) -> dict[str, str]:
    """Remove a name server that no zone uses."""
    await write(lambda tx: peers.delete(tx, account_id, peer_id))
    return {"id": peer_id}


@route("GET", _INCOMING, permission="DNS Read")
def show_incoming(zone_id: str, api: AppContext) -> IncomingView:
    """Where a secondary zone is transferred from, and how that goes."""
    return api.barrier.read(lambda reader: secondary.show(reader, zone_id))


@route("POST", _INCOMING, permission="DNS Write")
async def create_incoming(
    zone_id: str, api: AppContext, call: Call, body: IncomingBody, write: Write
) -> IncomingView:
    """Say which peers a secondary zone is transferred from. They are asked at once."""
    return await write(lambda tx: secondary.put(call, tx, api.platform, zone_id, body))


@route("PUT", _INCOMING, permission="DNS Write")
async def put_incoming(
    zone_id: str, api: AppContext, call: Call, body: IncomingBody, write: Write
) -> IncomingView:
    """Change which peers a secondary zone is transferred from."""
    return await write(lambda tx: secondary.put(call, tx, api.platform, zone_id, body))


@route("DELETE", _INCOMING, permission="DNS Write")
async def delete_incoming(zone_id: str, api: AppContext, write: Write) -> dict[str, str]:
    """Transfer a secondary zone no longer. It is served until it expires."""
    found = await write(lambda tx: secondary.delete(tx, zone_id))
    return {"id": found.id}


@route("POST", "/zones/{zone_id}/secondary_dns/force_axfr", permission="DNS Write")
async def force_transfer(zone_id: str, api: AppContext, call: Call, write: Write) -> str:
    """Have a whole secondary zone transferred again, now."""
    return await write(lambda tx: secondary.force(call, tx, zone_id))
