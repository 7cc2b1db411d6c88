"""REST face of catalog zones, an extension: the hosted service has none.

Owns  the catalog of an account, and what it says of a zone.
Not   transfers.
"""

from edgestead.model.call import Call
from edgestead.rest.context import AppContext, Write
from edgestead.rest.routing import route
from edgestead.usecases.account import catalogs
from edgestead.usecases.account.catalogs import CatalogBody, CatalogView, MemberBody, MemberView

_ACCOUNT = "/accounts/{account_id}/secondary_dns/catalog"
_ZONE = "/zones/{zone_id}/secondary_dns/catalog"
_READ, _WRITE = "Account DNS Settings Read", "Account DNS Settings Write"


@route("GET", _ACCOUNT, permission=_READ)
def show_catalog(account_id: str, api: AppContext) -> CatalogView:
    """The account's catalog zone (RFC 9432): a zone that lists its zones, for secondaries that follow it."""
    return api.barrier.read(lambda reader: catalogs.show(reader, account_id))


@route("PUT", _ACCOUNT, permission=_WRITE)
async def put_catalog(
    account_id: str, api: AppContext, call: Call, body: CatalogBody, write: Write
) -> CatalogView:
    """List the account's zones in a catalog zone of that name. It is given to secondaries only."""
    return await write(lambda tx: catalogs.put(call, tx, account_id, body))


@route("DELETE", _ACCOUNT, permission=_WRITE)
async def delete_catalog(account_id: str, api: AppContext, call: Call, write: Write) -> CatalogBody:
    """Serve the account's catalog zone no longer."""
    return await write(lambda tx: catalogs.delete(call, tx, account_id))


@route("GET", _ZONE, permission="DNS Read")
def show_catalog_member(zone_id: str, api: AppContext) -> MemberView:
    """The catalog that lists the zone, and the groups that it gives the zone."""
    return api.barrier.read(lambda reader: catalogs.show_member(reader, zone_id))


@route("PUT", _ZONE, permission="DNS Write")
async def put_catalog_member(
    zone_id: str, api: AppContext, call: Call, body: MemberBody, write: Write
) -> MemberView:
    """Set the zone's groups: names by which secondaries choose how to configure it."""
    return await write(lambda tx: catalogs.put_member(call, tx, zone_id, body))
