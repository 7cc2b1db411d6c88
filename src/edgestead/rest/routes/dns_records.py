"""REST face of DNS records.

Owns  /zones/{zone_id}/dns_records.
Not   what makes a record valid.
"""

from collections.abc import Awaitable, Hashable
from typing import NamedTuple

from edgestead.model.call import Call
from edgestead.model.envelope import Page, success, success_page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import Answers
from edgestead.rest.limits import BATCH_BODY_BYTES_MAX, QUERY_BYTES_KEPT_MAX, ROWS_READ_INLINE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routes import record_query
from edgestead.rest.routing import Answer, route
from edgestead.store.control import Reader
from edgestead.usecases.change.view import RecordView
from edgestead.usecases.record import batch, records
from edgestead.usecases.record.batch import Batch, Done, DoneView
from edgestead.usecases.record.draft import RecordBody
from edgestead.usecases.record.records import ZoneState

_PATH = "/zones/{zone_id}/dns_records"
_RECORD = Answers(RecordView)


@route("POST", _PATH, permission="DNS Write", answers=_RECORD)
async def create_record(zone_id: str, api: AppContext, call: Call, body: RecordBody, write: Write) -> bytes:
    """Create a record. When this answers, DNS does."""
    return await write(lambda tx: records.create(call, tx, api.platform, zone_id, body))


@route(
    "GET", _PATH, permission="DNS Read", query=record_query.PARAMETERS, answers=declared.page_of(RecordView)
)
def list_records(zone_id: str, api: AppContext, call: Call, query: Query) -> Answer | Awaitable[Answer]:
    """Records of a zone, found, ordered and paged as the query says."""
    groups = api.barrier.groups
    raw = query.raw
    key = (zone_id, raw, call.profile, call.as_of) if len(raw) <= QUERY_BYTES_KEPT_MAX else None
    kept = api.pages.get(key, groups)
    if kept is not None:
        return Answer(kept)
    asked = _Asked(api, call, zone_id, record_query.wanted(query), key, groups)
    if records.is_short(asked.wanted, ROWS_READ_INLINE_MAX):
        return Answer(api.barrier.read(lambda reader: _kept_page(reader, asked)))
    return _long_list(asked)


class _Asked(NamedTuple):
    """A list that is asked for; under `key` and `groups` its page is kept."""

    api: AppContext
    call: Call
    zone_id: str
    wanted: records.Wanted
    key: Hashable
    groups: int


async def _long_list(asked: _Asked) -> Answer:
    def read(reader: Reader) -> tuple[ZoneState, bytes]:
        state = records.state(reader, asked.zone_id)
        return state, _page(reader, asked, state)

    state, page = await asked.api.barrier.read_long(read)
    return Answer(asked.api.pages.put(asked.key, asked.groups, state.version, page))


def _kept_page(reader: Reader, asked: _Asked) -> bytes:
    """A page as it was answered before, when the zone has not changed since."""
    pages, state = asked.api.pages, records.state(reader, asked.zone_id)
    page = pages.renewed(asked.key, asked.groups, state.version)
    if page is None:
        page = pages.put(asked.key, asked.groups, state.version, _page(reader, asked, state))
    return page


def _page(reader: Reader, asked: _Asked, state: ZoneState) -> bytes:
    wanted = asked.wanted
    found = records.listed(asked.call, reader, asked.zone_id, wanted, state)
    number = wanted.offset // wanted.limit + 1
    return success_page(Page(found.text, found.count, number, wanted.limit, found.total_count))


@route(
    "POST",
    _PATH + "/batch",
    permission="DNS Write",
    body_bytes_max=BATCH_BODY_BYTES_MAX,
    answers=Answers(DoneView),
)
async def change_records(zone_id: str, api: AppContext, call: Call, body: Batch, write: Write) -> Done:
    """Delete, patch, put and create records, in this order: all of it, or nothing."""
    return await write(lambda tx: batch.run(call, tx, api.platform, zone_id, body))


@route("GET", _PATH + "/{dns_record_id}", permission="DNS Read", answers=_RECORD)
def show_record(zone_id: str, dns_record_id: str, api: AppContext, call: Call) -> Answer:
    """One record."""
    groups = api.barrier.groups
    key = (zone_id, dns_record_id, call.profile, call.as_of)
    kept = api.pages.get(key, groups)
    if kept is None:
        found = api.barrier.read_one(lambda reader: records.show(call, reader, zone_id, dns_record_id))
        kept = api.pages.put(key, groups, groups, success(found))
    return Answer(kept)


@route("PATCH", _PATH + "/{dns_record_id}", permission="DNS Write", answers=_RECORD)
async def patch_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody, write: Write
) -> bytes:
    """Change the members that are sent."""
    return await write(lambda tx: records.patch(call, tx, api.platform, zone_id, dns_record_id, body))


@route("PUT", _PATH + "/{dns_record_id}", permission="DNS Write", answers=_RECORD)
async def put_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, body: RecordBody, write: Write
) -> bytes:
    """Replace a record; members that are not sent return to their defaults."""
    return await write(lambda tx: records.put(call, tx, api.platform, zone_id, dns_record_id, body))


@route("DELETE", _PATH + "/{dns_record_id}", permission="DNS Write")
async def delete_record(
    zone_id: str, dns_record_id: str, api: AppContext, call: Call, write: Write
) -> dict[str, str]:
    """Delete a record."""
    return await write(
        lambda tx: records.delete(call, tx, api.platform, zone_id, dns_record_id),
        lambda _: {"id": dns_record_id},
    )
