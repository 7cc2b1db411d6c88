"""The use cases of DNS records.

Owns  what each of them does, in one transaction; how many records there are, and may be.
Not   HTTP; permissions; the shapes of answers (`usecases.record.shapes`).
"""

from typing import NamedTuple

import msgspec

from edgestead.changes import changed
from edgestead.model.call import Call
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.record import RecordInvalid, RecordNotFound, RecordRefused
from edgestead.model.refusals.zone import ZoneNotFound
from edgestead.store.control import Reader, Transaction
from edgestead.tables import record_lists, records, zones
from edgestead.tables.record_lists import Condition, Filter
from edgestead.tables.records import RecordRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.neighbours import Draft
from edgestead.usecases.lookup import account_of, zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import draft as record_draft
from edgestead.usecases.record import filters, shapes
from edgestead.usecases.record.draft import RecordBody

ORDERS = tuple(record_lists.ORDERS)
ZoneState = zones.ZoneState
CONFLICTS_FROM = 10_000  # codes below are about one record, codes above about it and others

__all__ = [
    "ORDERS",
    "Condition",
    "Filter",
    "Listed",
    "Wanted",
    "ZoneState",
    "create",
    "delete",
    "is_short",
    "listed",
    "patch",
    "put",
    "refusal_of_its_day",
    "show",
    "state",
]


class Listed(msgspec.Struct, frozen=True):
    """One page of records as JSON text with commas between, and how many there are in all."""

    text: bytes
    count: int
    total_count: int


class Wanted(NamedTuple):
    """What a list asks for. The filter's values are as they were sent."""

    filter: Filter
    order: str
    descending: bool
    limit: int
    offset: int


def create(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: RecordBody) -> bytes:
    """Add one record. Raises ZoneNotFound, RecordRefused's children, RecordInvalid."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    try:
        row = edit.records.create(record_draft.draft(call, edit.zone, platform, body))
    except RecordRefused as refusal:
        raise refusal_of_its_day(call, refusal) from None
    edit.finish()
    return shapes.shown(call, zone_id, edit.zone.name, (row.body,))


def patch(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, record_id: str, body: RecordBody
) -> bytes:
    """Change what was sent, keep the rest. Raises ZoneNotFound, RecordNotFound, RecordRefused's children."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    old = edit.records.find(record_id)
    return _replaced(call, edit, old, record_draft.patched(call, edit.zone, platform, body, old))


def put(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, record_id: str, body: RecordBody
) -> bytes:
    """Replace everything but identity, type and birth; what is not sent returns to its default.

    Raises ZoneNotFound, RecordNotFound, RecordRefused's children.
    """
    edit = ZoneEdit(call, tx, platform, zone_id)
    old = edit.records.find(record_id)
    return _replaced(call, edit, old, record_draft.put(call, edit.zone, platform, body, old))


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str, record_id: str) -> None:
    """Raises ZoneNotFound, RecordNotFound."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    edit.records.delete(edit.records.find(record_id))
    edit.finish()


def show(call: Call, reader: Reader, zone_id: str, record_id: str) -> bytes:
    """Raises ZoneNotFound, RecordNotFound."""
    found = records.body(reader, zone_id, record_id)
    if found is None:
        zone_of(reader, zone_id)
        raise RecordNotFound
    body, zone_name = found
    return shapes.shown(call, zone_id, zone_name, (body,))


def state(reader: Reader, zone_id: str) -> ZoneState:
    """What `listed` starts from; its version is another one after every change. Raises ZoneNotFound."""
    found = zones.state(reader, zone_id)
    if found is None:
        raise ZoneNotFound
    return found


def listed(call: Call, reader: Reader, zone_id: str, wanted: Wanted, state: ZoneState) -> Listed:
    """One page of the records that meet every condition; `state` comes from the same snapshot."""
    chosen = filters.folded(wanted.filter, state.name)
    bodies: list[bytes] = []
    if not chosen.is_everything or wanted.offset < state.record_count:
        bodies = record_lists.bodies(
            reader, zone_id, chosen, wanted.order, wanted.descending, wanted.limit, wanted.offset
        )
    if chosen.is_everything:
        total_count = state.record_count
    elif 0 < len(bodies) < wanted.limit or not (bodies or wanted.offset):
        total_count = wanted.offset + len(bodies)  # known from the last page, without counting
    else:
        total_count = record_lists.count(reader, zone_id, chosen)
    text = shapes.shown(call, zone_id, state.name, bodies)
    return Listed(text, len(bodies), total_count)


def is_short(wanted: Wanted, rows_max: int) -> bool:
    """Whether an index leads to the page, and past so few rows that an event loop may wait for it."""
    chosen = wanted.filter
    by_index = chosen.is_of_one_name or (chosen.is_everything and wanted.order in ("type", "name"))
    return by_index and wanted.offset + wanted.limit <= rows_max


def _replaced(call: Call, edit: ZoneEdit, old: RecordRow, draft: Draft) -> bytes:
    row = edit.records.replace(old, draft)
    edit.finish()
    return shapes.shown(call, edit.zone.id, edit.zone.name, (row.body,))


def refusal_of_its_day(call: Call, refusal: EdgeError) -> EdgeError:
    """What creating a record answers: until 2024-10-01 what is wrong with the record itself stood inside of a
    1004. Conflicts with other records (81xxx, 83xxx) never did: clients have always looked for them.
    """
    if changed("dns-error-chain", call.as_of) or refusal.code >= CONFLICTS_FROM:
        return refusal
    return RecordInvalid(chain=(refusal,))


class Usage(msgspec.Struct, frozen=True):
    """`record_quota` null: no limit."""

    record_quota: int | None
    record_usage: int


def usage_of_zone(reader: Reader, platform: Platform, zone_id: str) -> Usage:
    """Raises ZoneNotFound."""
    return Usage(platform.quotas.zone_records, zone_of(reader, zone_id).record_count)


def usage_of_account(reader: Reader, account_id: str) -> Usage:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return Usage(None, zones.records_of_account(reader, account_id))
