"""REST face of DNS records.

Owns  the routes under `/zones/{zone_id}/dns_records`, the reading of list parameters.
Asks  `services.records`.
Tells nobody.
Not   validation of records.
"""

from edgestead.api.context import AppContext
from edgestead.api.limits import RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX, ROWS_READ_INLINE_MAX
from edgestead.api.query import Query
from edgestead.api.routing import route
from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.services import records
from edgestead.services.record_draft import RecordBody
from edgestead.services.records import ListWish
from edgestead.tables.records import ORDERS

_LIST = "/zones/{zone_id}/dns_records"
_ONE = "/zones/{zone_id}/dns_records/{dns_record_id}"
_READ = "DNS Read"
_WRITE = "DNS Write"


@route("POST", _LIST, permission=_WRITE)
async def create_record(zone_id: str, api: AppContext, call: Call, body: RecordBody) -> bytes:
    """Create one DNS record."""
    return await api.barrier.write(lambda tx: api.records.create(call, tx, zone_id, body))


@route("GET", _LIST, permission=_READ)
async def list_records(zone_id: str, api: AppContext, call: Call, query: Query) -> Page:
    """List a zone's DNS records, filtered, ordered and in pages."""
    wish = _wish(query)
    if wish.per_page <= ROWS_READ_INLINE_MAX:
        return api.barrier.read(lambda reader: records.listed(call, reader, zone_id, wish))
    return await api.barrier.read_long(lambda reader: records.listed(call, reader, zone_id, wish))


@route("GET", _ONE, permission=_READ)
def get_record(zone_id: str, dns_record_id: str, api: AppContext, call: Call) -> bytes:
    """Read one DNS record."""
    return api.barrier.read(lambda reader: records.get(call, reader, zone_id, dns_record_id))


@route("PATCH", _ONE, permission=_WRITE)
async def patch_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody
) -> bytes:
    """Change what is sent of one DNS record; the rest stays."""
    return await api.barrier.write(lambda tx: api.records.patch(call, tx, zone_id, dns_record_id, body))


@route("PUT", _ONE, permission=_WRITE)
async def put_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody
) -> bytes:
    """Replace one DNS record; what is not sent takes its default."""
    return await api.barrier.write(lambda tx: api.records.put(call, tx, zone_id, dns_record_id, body))


@route("DELETE", _ONE, permission=_WRITE)
async def delete_record(zone_id: str, dns_record_id: str, api: AppContext, call: Call) -> dict[str, str]:
    """Delete one DNS record."""
    await api.barrier.write(lambda tx: api.records.delete(call, tx, zone_id, dns_record_id))
    return {"id": dns_record_id}


def _wish(query: Query) -> ListWish:
    paging = query.paging(RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX)
    return ListWish(
        query.text("name.exact", "name"),
        query.text("type"),
        query.text("content.exact", "content"),
        query.flag("proxied"),
        query.choice("order", ORDERS, "type"),
        query.descending(),
        paging.page,
        paging.per_page,
    )
