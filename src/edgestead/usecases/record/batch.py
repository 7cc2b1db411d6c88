"""Many changes of a zone's records at once: all of them, or none.

Owns  the order of a batch, its limit, and where in it a refusal lies.
Not   what a change may be: the rules are those of single changes.

Contract "PATCH, PUT, batch": deletes, patches, puts, posts, each in the order given; the first refusal is
answered alone. Each change sees what those before it did.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from edgestead.model.call import Call
from edgestead.model.plans import PLANS
from edgestead.model.refusals.record import BatchTooLarge, RecordNotFound, RecordRefused
from edgestead.store.control import Transaction
from edgestead.tables.records import RecordRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.view import RecordView
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import draft as record_draft
from edgestead.usecases.record import records, shapes
from edgestead.usecases.record.draft import RecordBody

C = TypeVar("C")


class RecordId(msgspec.Struct, frozen=True):
    id: str


class NamedRecord(RecordBody, frozen=True, kw_only=True):
    """A body with the id of the record that it changes."""

    id: str


class Batch(msgspec.Struct, frozen=True):
    """Lists that were not sent are empty."""

    deletes: list[RecordId] | None = None
    patches: list[NamedRecord] | None = None
    puts: list[NamedRecord] | None = None
    posts: list[RecordBody] | None = None


class Done(msgspec.Struct, frozen=True):
    """Whole records, as JSON text: deleted ones as they were, the others as they are now."""

    deletes: msgspec.Raw
    patches: msgspec.Raw
    puts: msgspec.Raw
    posts: msgspec.Raw


class DoneView(msgspec.Struct, frozen=True):
    """What Done is once it is text."""

    deletes: list[RecordView]
    patches: list[RecordView]
    puts: list[RecordView]
    posts: list[RecordView]


def run(call: Call, tx: Transaction, platform: Platform, zone_id: str, batch: Batch) -> Done:
    """Raises ZoneNotFound, BatchTooLarge; of one change, with a pointer to it, RecordNotFound,
    RecordRefused's children, RecordInvalid.
    """
    edit = ZoneEdit(call, tx, platform, zone_id)
    zone = edit.zone
    lists = (batch.deletes or (), batch.patches or (), batch.puts or (), batch.posts or ())
    changes, changes_max = sum(map(len, lists)), PLANS[zone.plan].batch_changes_max
    if changes > changes_max:
        raise BatchTooLarge(changes=changes, changes_max=changes_max)

    def delete(change: RecordId) -> RecordRow:
        old = edit.records.find(change.id)
        edit.records.delete(old)
        return old

    def patch(change: NamedRecord) -> RecordRow:
        old = edit.records.find(change.id)
        return edit.records.replace(old, record_draft.patched(call, zone, platform, change, old))

    def put(change: NamedRecord) -> RecordRow:
        old = edit.records.find(change.id)
        return edit.records.replace(old, record_draft.put(call, zone, platform, change, old))

    def post(change: RecordBody) -> RecordRow:
        return edit.records.create(record_draft.draft(call, zone, platform, change))

    done = (
        _each(call, "deletes", lists[0], delete),
        _each(call, "patches", lists[1], patch),
        _each(call, "puts", lists[2], put),
        _each(call, "posts", lists[3], post),
    )
    edit.finish()
    return Done(*[_array(shapes.shown(call, zone_id, zone.name, bodies)) for bodies in done])


def _each(call: Call, name: str, changes: Sequence[C], make: Callable[[C], RecordRow]) -> list[bytes]:
    """The bodies of the rows that one list makes."""
    bodies = []
    for position, change in enumerate(changes):
        try:
            bodies.append(make(change).body)
        except (RecordRefused, RecordNotFound) as refusal:
            refusal.pointer = f"/{name}/{position}{refusal.pointer or ''}"
            raise (records.refusal_of_its_day(call, refusal) if name == "posts" else refusal) from None
    return bodies


def _array(text: bytes) -> msgspec.Raw:
    return msgspec.Raw(b"[" + text + b"]")
