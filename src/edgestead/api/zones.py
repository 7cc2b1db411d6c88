"""REST face of zones.

Owns  the routes `/zones` and `/zones/{zone_id}`, the reading of list parameters.
Asks  `services.zones`.
Tells nobody.
Not   records and settings of a zone.
"""

from edgestead.api.context import AppContext
from edgestead.api.query import Query
from edgestead.api.routing import route
from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.services.access import PLATFORM, Identity
from edgestead.services.zone_view import ZoneView
from edgestead.services.zones import STATUSES, ListWish, ZoneBody
from edgestead.tables.zones import ORDERS

_READ = "Zone Read"
_WRITE = "Zone Write"


@route("POST", "/zones", permission=_WRITE, family=PLATFORM)
async def create_zone(api: AppContext, call: Call, identity: Identity, body: ZoneBody) -> ZoneView:
    """Create a zone. It is active and answered at once."""
    return await api.barrier.write(lambda tx: api.zones.create(call, tx, identity, body))


@route("GET", "/zones", permission=_READ, family=PLATFORM)
def list_zones(api: AppContext, identity: Identity, query: Query) -> Page:
    """List the zones that the caller sees, filtered, ordered and in pages."""
    paging = query.paging()
    wish = ListWish(
        query.text("name"),
        query.choice("status", STATUSES, "") or None,
        query.text("account.id"),
        query.choice("order", ORDERS, "name"),
        query.descending(),
        paging.page,
        paging.per_page,
    )
    return api.barrier.read(lambda reader: api.zones.listed(reader, identity, wish))


@route("GET", "/zones/{zone_id}", permission=_READ, family=PLATFORM)
def get_zone(zone_id: str, api: AppContext, identity: Identity) -> ZoneView:
    """Read one zone."""
    return api.barrier.read(lambda reader: api.zones.get(reader, identity, zone_id))


@route("DELETE", "/zones/{zone_id}", permission=_WRITE, family=PLATFORM)
async def delete_zone(zone_id: str, api: AppContext) -> dict[str, str]:
    """Delete a zone with everything in it."""
    await api.barrier.write(lambda tx: api.zones.delete(tx, zone_id))
    return {"id": zone_id}
