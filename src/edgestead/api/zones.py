"""REST face of zones.

Owns  /zones and /zones/{zone_id}.
Asks  `services.zones`.
Tells clients.
Not   what is inside a zone.
"""

from edgestead.api import declared
from edgestead.api.context import AppContext
from edgestead.api.declared import DIRECTION, choice, pages, text
from edgestead.api.query import Query
from edgestead.api.routing import route
from edgestead.model.call import Call
from edgestead.model.envelope import Page, page_of
from edgestead.services import zones
from edgestead.services.access import PLATFORM, Identity, seen_zones
from edgestead.services.zones import ZoneBody, ZoneView


@route("POST", "/zones", permission="Zone Write", family=PLATFORM)
async def create_zone(api: AppContext, call: Call, identity: Identity, body: ZoneBody) -> ZoneView:
    """Create a zone. It is active at once: this server is its authority."""
    return await api.barrier.write(lambda tx: zones.create(call, tx, api.platform, identity, body))


@route(
    "GET",
    "/zones",
    permission="Zone Read",
    family=PLATFORM,
    query=(
        *pages(),
        *(text(name, "Only zones with this value.") for name in zones.FILTERS),
        choice("order", zones.ORDERS, "name", "What the zones are ordered by."),
        DIRECTION,
    ),
    answers=declared.page_of(ZoneView),
)
def list_zones(api: AppContext, identity: Identity, query: Query) -> Page:
    """The zones that the caller sees. Filters `name`, `status`, `account.id`; `order`, `direction`."""
    paging = query.paging()
    wanted = {key: text for key in zones.FILTERS if (text := query.text(key))}
    order = query.choice("order", zones.ORDERS, "name")
    descending = query.descending()
    found = api.barrier.read(
        lambda reader: zones.listed(
            reader,
            api.platform,
            identity,
            wanted,
            seen_zones(identity, "Zone Read"),
            order=order,
            descending=descending,
            limit=paging.per_page,
            offset=paging.offset,
        )
    )
    return page_of(found.zones, paging.page, paging.per_page, found.total_count)


@route("GET", "/zones/{zone_id}", permission="Zone Read", family=PLATFORM)
def show_zone(zone_id: str, api: AppContext, identity: Identity) -> ZoneView:
    """One zone."""
    return api.barrier.read(lambda reader: zones.show(reader, api.platform, identity, zone_id))


@route("DELETE", "/zones/{zone_id}", permission="Zone Write", family=PLATFORM)
async def delete_zone(zone_id: str, api: AppContext, call: Call) -> dict[str, str]:
    """Delete a zone with its records. DNS no longer answers for it."""
    await api.barrier.write(lambda tx: zones.delete(call, tx, zone_id))
    while await api.barrier.write(zones.sweep):
        pass
    return {"id": zone_id}
