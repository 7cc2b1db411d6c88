"""REST face of outgoing transfers: ranges of addresses of an account, and who transfers a zone.

Owns  their routes, as the original API has them.
Not   peers (`rest.routes.secondary_zones`); who is let in (`dns.outgoing`).
"""

from edgestead.model.call import Call
from edgestead.rest.context import AppContext, Write
from edgestead.rest.routing import route
from edgestead.usecases.account import transfer_acls
from edgestead.usecases.account.transfer_acls import Acl, AclBody
from edgestead.usecases.zone import outgoing
from edgestead.usecases.zone.outgoing import OutgoingBody, OutgoingView

_ACLS = "/accounts/{account_id}/secondary_dns/acls"
_ACL = f"{_ACLS}/{{acl_id}}"
_OUTGOING = "/zones/{zone_id}/secondary_dns/outgoing"
_READ, _WRITE = "Account DNS Settings Read", "Account DNS Settings Write"


@route("GET", _ACLS, permission=_READ)
def list_acls(account_id: str, api: AppContext) -> list[Acl]:
    """The ranges of addresses from which an account's zones may be transferred. No paging."""
    return api.barrier.read(lambda reader: transfer_acls.listed(reader, account_id))


@route("POST", _ACLS, permission=_WRITE)
async def create_acl(account_id: str, api: AppContext, call: Call, body: AclBody, write: Write) -> Acl:
    """Let a range of addresses ask for zones whose outgoing transfers are enabled."""
    return await write(lambda tx: transfer_acls.create(call, tx, api.platform.new_id, account_id, body))


@route("GET", _ACL, permission=_READ)
def show_acl(account_id: str, acl_id: str, api: AppContext) -> Acl:
    """One range of addresses."""
    return api.barrier.read(lambda reader: transfer_acls.show(reader, account_id, acl_id))


@route("PUT", _ACL, permission=_WRITE)
async def put_acl(
    account_id: str, acl_id: str, api: AppContext, call: Call, body: AclBody, write: Write
) -> Acl:
    """Change a range of addresses."""
    return await write(lambda tx: transfer_acls.put(call, tx, account_id, acl_id, body))


@route("DELETE", _ACL, permission=_WRITE)
async def delete_acl(account_id: str, acl_id: str, api: AppContext, write: Write) -> dict[str, str]:
    """Remove a range of addresses."""
    await write(lambda tx: transfer_acls.delete(tx, account_id, acl_id))
    return {"id": acl_id}


@route("GET", _OUTGOING, permission="DNS Read")
def show_outgoing(zone_id: str, api: AppContext) -> OutgoingView:
    """Who is told of a zone's changes, and may transfer it."""
    return api.barrier.read(lambda reader: outgoing.show(reader, zone_id))


@route("POST", _OUTGOING, permission="DNS Write")
async def create_outgoing(
    zone_id: str, api: AppContext, call: Call, body: OutgoingBody, write: Write
) -> OutgoingView:
    """Say which peers transfer a zone. It has no effect before it is enabled."""
    return await write(lambda tx: outgoing.put(call, tx, api.platform.new_id, zone_id, body))


@route("PUT", _OUTGOING, permission="DNS Write")
async def put_outgoing(
    zone_id: str, api: AppContext, call: Call, body: OutgoingBody, write: Write
) -> OutgoingView:
    """Change which peers transfer a zone."""
    return await write(lambda tx: outgoing.put(call, tx, api.platform.new_id, zone_id, body))


@route("DELETE", _OUTGOING, permission="DNS Write")
async def delete_outgoing(zone_id: str, api: AppContext, write: Write) -> dict[str, str]:
    """Say nothing about a zone's transfers any more."""
    return {"id": await write(lambda tx: outgoing.delete(tx, zone_id))}


@route("POST", f"{_OUTGOING}/enable", permission="DNS Write")
async def enable_outgoing(zone_id: str, api: AppContext, call: Call, write: Write) -> str:
    """Tell a zone's peers of changes, and let them transfer it."""
    return await write(lambda tx: outgoing.switch(call, tx, zone_id, enabled=True))


@route("POST", f"{_OUTGOING}/disable", permission="DNS Write")
async def disable_outgoing(zone_id: str, api: AppContext, call: Call, write: Write) -> str:
    """Let nobody of the account transfer a zone: no peer, no range, and no TSIG key."""
    return await write(lambda tx: outgoing.switch(call, tx, zone_id, enabled=False))


@route("GET", f"{_OUTGOING}/status", permission="DNS Read")
def show_outgoing_status(zone_id: str, api: AppContext) -> str:
    """Whether a zone's outgoing transfers are `Enabled` or `Disabled`."""
    return api.barrier.read(lambda reader: outgoing.status(reader, zone_id))


@route("POST", f"{_OUTGOING}/force_notify", permission="DNS Write")
async def force_notify(zone_id: str, api: AppContext, call: Call, write: Write) -> str:
    """Tell a zone's peers now that they should look at its serial."""
    return await write(lambda tx: outgoing.force_notify(call, tx, zone_id))
