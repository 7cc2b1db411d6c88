"""REST face of zones.

Owns  /zones and /zones/{zone_id}.
Not   what is inside a zone, or beside it (`rest.routes.zone_extras`).
"""

from contextlib import suppress

from edgestead.model.call import Call
from edgestead.model.envelope import Listed, Page
from edgestead.model.refusals import Unavailable
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write, WriteAs
from edgestead.rest.declared import DIRECTION, Parameter, choice, pages
from edgestead.rest.limits import ZONES_READ_INLINE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.store.control import Reader
from edgestead.usecases.access.authorise import PLATFORM, Identity, found_zones
from edgestead.usecases.zone import filters, zones
from edgestead.usecases.zone.zones import ZoneBody, ZonePatch, ZoneView


@route("POST", "/zones", permission="Zone Write", family=PLATFORM)
async def create_zone(api: AppContext, call: Call, body: ZoneBody, write_as: WriteAs) -> ZoneView:
    """Create a zone. It is active at once: this server is its authority."""
    return await write_as(lambda tx, identity: zones.create(call, tx, api.platform, identity, body))


@route(
    "GET",
    "/zones",
    permission="Zone Read",
    family=PLATFORM,
    query=(
        *pages(),
        *(
            Parameter(name, "Only zones with this value, or one of these.", repeated=True)
            for name in filters.FILTERS
        ),
        choice("match", ("all", "any"), "all", "Whether a zone has to meet all conditions or any."),
        choice("order", zones.ORDERS, "name", "What the zones are ordered by."),
        DIRECTION,
    ),
    answers=declared.page_of(ZoneView),
)
async def list_zones(api: AppContext, call: Call, identity: Identity, query: Query) -> Page:
    """The zones that the caller may read, or edit records of: found, ordered and paged as the query says."""
    paging = query.paging()
    parameters = {key: query.every(key) for key in filters.FILTERS}
    any_ = query.choice("match", ("all", "any"), "all") == "any"
    order = query.choice("order", zones.ORDERS, "name")
    descending = query.descending()
    seen = found_zones(identity)
    wanted = api.barrier.read(lambda reader: filters.read(reader, parameters, any_=any_))

    def read(reader: Reader) -> Listed:
        return zones.listed(
            call,
            reader,
            api.platform,
            identity,
            wanted,
            seen,
            order=order,
            descending=descending,
            limit=paging.per_page,
            offset=paging.offset,
        )

    last = paging.offset + paging.per_page
    is_short = zones.is_short(wanted, seen, order, last, ZONES_READ_INLINE_MAX)
    found = api.barrier.read(read) if is_short else await api.barrier.read_long(read)
    return paging.of(found)


@route("GET", "/zones/{zone_id}", permission="Zone Read", family=PLATFORM)
def show_zone(zone_id: str, api: AppContext, call: Call, identity: Identity) -> ZoneView:
    """One zone."""
    return api.barrier.read(lambda reader: zones.show(call, reader, api.platform, identity, zone_id))


@route("PATCH", "/zones/{zone_id}", permission="Zone Write", family=PLATFORM)
async def patch_zone(
    zone_id: str, api: AppContext, call: Call, body: ZonePatch, write_as: WriteAs
) -> ZoneView:
    """Pause a zone, choose its plan or its own name servers."""
    return await write_as(lambda tx, identity: zones.patch(call, tx, api.platform, identity, zone_id, body))


@route("DELETE", "/zones/{zone_id}", permission="Zone Write", family=PLATFORM)
async def delete_zone(zone_id: str, api: AppContext, call: Call, write: Write) -> dict[str, str]:
    """Delete a zone with its records. DNS no longer answers for it."""
    await write(lambda tx: zones.delete(call, tx, api.platform, zone_id))
    with suppress(Unavailable):  # it is deleted; upkeep sweeps what is left, which no caller can reach
        while await api.barrier.write(zones.sweep):
            pass
    return {"id": zone_id}
