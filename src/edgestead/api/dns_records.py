"""REST face of DNS records.

Owns  /zones/{zone_id}/dns_records.
Asks  `services.records`.
Tells clients.
Not   what makes a record valid.
"""

from collections.abc import Awaitable
from typing import Any

from edgestead.api import declared
from edgestead.api.context import AppContext
from edgestead.api.declared import DIRECTION, Answers, choice, flag, pages, text
from edgestead.api.limits import RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX, ROWS_READ_INLINE_MAX
from edgestead.api.query import Query
from edgestead.api.routing import Answer, route
from edgestead.model.call import Call
from edgestead.model.envelope import Page, success_page
from edgestead.model.records import folded_query
from edgestead.services import records
from edgestead.services.record_draft import RecordBody
from edgestead.services.record_view import RecordView
from edgestead.services.records import ZoneState
from edgestead.store.control import Reader

_PATH = "/zones/{zone_id}/dns_records"
_RECORD = Answers(RecordView)
_QUERY = (
    *pages(RECORDS_PAGE_SIZE_DEFAULT, RECORDS_PAGE_SIZE_MAX),
    *(text(name, "Only records of this name.") for name in ("name", "name.exact")),
    text("type", "Only records of this type."),
    *(text(name, "Only records with this content.") for name in ("content", "content.exact")),
    flag("proxied", "Only records that are, or are not, proxied."),
    choice("order", records.ORDERS, "type", "What the records are ordered by."),
    DIRECTION,
)


@route("POST", _PATH, permission="DNS Write", answers=_RECORD)
async def create_record(zone_id: str, api: AppContext, call: Call, body: RecordBody) -> bytes:
    """Create a record. When this answers, DNS does."""
    return await api.barrier.write(lambda tx: records.create(call, tx, api.platform, zone_id, body))


@route("GET", _PATH, permission="DNS Read", query=_QUERY, answers=declared.page_of(RecordView))
def list_records(zone_id: str, api: AppContext, call: Call, query: Query) -> Answer | Awaitable[Answer]:
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
        return Answer(api.barrier.read(lambda reader: _kept_page(api, call, reader, zone_id, wanted)))
    return _long_list(api, call, zone_id, wanted)


async def _long_list(api: AppContext, call: Call, zone_id: str, wanted: records.Wanted) -> Answer:
    def read(reader: Reader) -> bytes:
        return _page(call, reader, zone_id, wanted, records.state(reader, zone_id))

    return Answer(await api.barrier.read_long(read))


def _kept_page(api: AppContext, call: Call, reader: Reader, zone_id: str, wanted: records.Wanted) -> bytes:
    """A page as it was answered before, when the zone has not changed since."""
    state = records.state(reader, zone_id)
    key = (zone_id, state.version, call.profile, call.as_of, wanted)
    return api.pages.get(key) or api.pages.put(key, _page(call, reader, zone_id, wanted, state))


def _page(call: Call, reader: Reader, zone_id: str, wanted: records.Wanted, state: ZoneState) -> bytes:
    found = records.listed(call, reader, zone_id, wanted, state)
    number = wanted.offset // wanted.limit + 1
    return success_page(Page(found.text, found.count, number, wanted.limit, found.total_count))


@route("GET", _PATH + "/{dns_record_id}", permission="DNS Read", answers=_RECORD)
def show_record(zone_id: str, dns_record_id: str, api: AppContext, call: Call) -> bytes:
    """One record."""
    return api.barrier.read(lambda reader: records.show(call, reader, zone_id, dns_record_id))


@route("PATCH", _PATH + "/{dns_record_id}", permission="DNS Write", answers=_RECORD)
async def patch_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody
) -> bytes:
    """Change the members that are sent."""
    return await api.barrier.write(
        lambda tx: records.patch(call, tx, api.platform, zone_id, dns_record_id, body)
    )


@route("PUT", _PATH + "/{dns_record_id}", permission="DNS Write", answers=_RECORD)
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
