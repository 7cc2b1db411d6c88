"""REST face of DNS records.

Owns  /zones/{zone_id}/dns_records.
Asks  `services.records`.
Tells clients.
Not   what makes a record valid.
"""

from typing import Any

from edgestead.api.context import AppContext
from edgestead.api.limits import RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX, ROWS_READ_INLINE_MAX
from edgestead.api.query import Query
from edgestead.api.routing import route
from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.model.records import folded_query
from edgestead.services import records
from edgestead.services.record_draft import RecordBody

_PATH = "/zones/{zone_id}/dns_records"


@route("POST", _PATH, permission="DNS Write")
async def create_record(zone_id: str, api: AppContext, call: Call, body: RecordBody) -> bytes:
    """Create a record. When this answers, DNS does."""
    return await api.barrier.write(lambda tx: records.create(call, tx, api.platform, zone_id, body))


@route("GET", _PATH, permission="DNS Read")
async def list_records(zone_id: str, api: AppContext, call: Call, query: Query) -> Page:
    """Records of a zone. Filters `name`, `type`, `content`, `proxied`; `order`, `direction`."""
    paging = query.paging(RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX)
    wanted = records.Wanted(
        _conditions(query),
        query.choice("order", records.ORDERS, "type"),
        query.descending(),
        paging.per_page,
        paging.offset,
    )
    if records.is_short(wanted, ROWS_READ_INLINE_MAX):
        found = api.barrier.read(lambda reader: records.listed(call, reader, zone_id, wanted, api.pages))
    else:
        found = await api.barrier.read_long(lambda reader: records.listed(call, reader, zone_id, wanted))
    return Page(found.text, found.count, paging.page, paging.per_page, found.total_count)


@route("GET", _PATH + "/{dns_record_id}", permission="DNS Read")
def show_record(zone_id: str, dns_record_id: str, api: AppContext, call: Call) -> bytes:
    """One record."""
    return api.barrier.read(lambda reader: records.show(call, reader, zone_id, dns_record_id))


@route("PATCH", _PATH + "/{dns_record_id}", permission="DNS Write")
async def patch_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody
) -> bytes:
    """Change the members that are sent."""
    return await api.barrier.write(
        lambda tx: records.patch(call, tx, api.platform, zone_id, dns_record_id, body)
    )


@route("PUT", _PATH + "/{dns_record_id}", permission="DNS Write")
async def put_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody
) -> bytes:
    """Replace a record; members that are not sent return to their defaults."""
    return await api.barrier.write(
        lambda tx: records.put(call, tx, api.platform, zone_id, dns_record_id, body)
    )


@route("DELETE", _PATH + "/{dns_record_id}", permission="DNS Write")
async def delete_record(zone_id: str, dns_record_id: str, api: AppContext, call: Call) -> dict[str, str]:
    """Delete a record."""
    await api.barrier.write(lambda tx: records.delete(call, tx, api.platform, zone_id, dns_record_id))
    return {"id": dns_record_id}


def _conditions(query: Query) -> tuple[tuple[str, Any], ...]:
    """The filters that were sent, in the form that rows keep. An empty one counts as not sent."""
    wanted: list[tuple[str, Any]] = []
    if name := query.text("name.exact", "name"):
        wanted.append(("name", name))
    if type_ := query.text("type"):
        wanted.append(("type", type_.upper()))
    if content := query.text("content.exact", "content"):
        wanted.append(("content", folded_query(content)))
    proxied = query.flag("proxied")
    if proxied is not None:
        wanted.append(("proxied", int(proxied)))
    return tuple(wanted)
