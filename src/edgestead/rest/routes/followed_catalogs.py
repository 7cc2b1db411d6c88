"""REST face of catalogs that an account follows, an extension: the hosted service has none.

Owns  their routes, and that which takes a zone out of its catalog's hands.
Not   the account's own catalog (`rest.routes.catalogs`).
"""

from edgestead.model.call import Call
from edgestead.rest.context import AppContext, Write, WriteAs
from edgestead.rest.routing import route
from edgestead.usecases.account import following, membership
from edgestead.usecases.account.following import FollowedBody, FollowedView
from edgestead.usecases.account.membership import KeptView, MemberView

_ALL = "/accounts/{account_id}/secondary_dns/catalogs"
_ONE = f"{_ALL}/{{catalog_id}}"
_READ, _WRITE = "Account DNS Settings Read", "Account DNS Settings Write"


@route("GET", _ALL, permission=_READ)
def list_followed(account_id: str, api: AppContext) -> list[FollowedView]:
    """The catalogs of other name servers (RFC 9432) whose zones this account serves. No paging."""
    return api.barrier.read(lambda reader: following.listed(reader, account_id))


@route("POST", _ALL, permission=_WRITE)
async def create_followed(
    account_id: str, api: AppContext, call: Call, body: FollowedBody, write_as: WriteAs
) -> FollowedView:
    """Follow a catalog: each zone that it lists becomes a secondary zone of the account."""
    return await write_as(
        lambda tx, identity: following.create(call, tx, api.platform.new_id, identity, account_id, body)
    )


@route("GET", _ONE, permission=_READ)
def show_followed(account_id: str, catalog_id: str, api: AppContext) -> FollowedView:
    """One catalog, and how following it goes."""
    return api.barrier.read(lambda reader: following.show(reader, account_id, catalog_id))


@route("PUT", _ONE, permission=_WRITE)
async def put_followed(
    account_id: str, catalog_id: str, api: AppContext, call: Call, body: FollowedBody, write_as: WriteAs
) -> FollowedView:
    """Change from where a catalog and its zones come, and what its groups mean."""
    return await write_as(
        lambda tx, identity: following.put(call, tx, identity, account_id, catalog_id, body)
    )


@route("DELETE", _ONE, permission=_WRITE)
async def delete_followed(account_id: str, catalog_id: str, api: AppContext, write: Write) -> dict[str, str]:
    """Follow a catalog no longer. Its zones stay as secondary zones."""
    await write(lambda tx: following.delete(tx, account_id, catalog_id))
    return {"id": catalog_id}


@route("GET", f"{_ONE}/zones", permission=_READ)
def list_followed_zones(account_id: str, catalog_id: str, api: AppContext) -> list[MemberView]:
    """The zones of a catalog: those that it made, those that left it, those that are refused. No paging."""
    return api.barrier.read(lambda reader: following.members(reader, account_id, catalog_id))


@route("POST", f"{_ONE}/refresh", permission=_WRITE)
async def refresh_followed(
    account_id: str, catalog_id: str, api: AppContext, call: Call, write: Write
) -> FollowedView:
    """Ask for a catalog now, and look at all of its zones again."""
    return await write(lambda tx: following.refresh(call, tx, account_id, catalog_id))


@route("POST", "/zones/{zone_id}/secondary_dns/keep", permission="Zone Write")
async def keep_zone(zone_id: str, api: AppContext, write: Write) -> KeptView:
    """Take a zone out of its catalog's hands: it stays, also when the catalog has dropped it."""
    return await write(lambda tx: membership.keep(tx, zone_id))
