"""The use cases of a zone's history: who changed what, and the way back.

Owns  the JSON shapes of changes and differences; undoing and restoring; what is forgotten when.
Asks  `tables.history` for what happened, `services.zone_edit` for the way back: a record that returns meets
      every rule that a new one meets.
Tells `api.history`, and the server, which calls `forget`.
Not   writing history down (`services.zone_log`).

Undoing takes one change back and is refused where something came later. Restoring does not look at what came
in between: it makes a name, or the whole zone, what it was after a change. Both are changes themselves, so
that both can be undone. Records come back with their ids.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from edgestead.changes import NEWEST
from edgestead.model import names
from edgestead.model.call import Actor, Call
from edgestead.model.errors import EdgeError
from edgestead.model.history_errors import CannotBringBack, ChangedSince, ChangeNotFound, TooMuchToRestore
from edgestead.model.names import InvalidName
from edgestead.model.record_errors import NameRefused
from edgestead.model.times import from_six_digits, six_digits
from edgestead.model.zone_errors import ZoneNotFound
from edgestead.services import dns_settings, record_draft, record_shapes
from edgestead.services.limits import HISTORY_ITEMS_SHOWN_MAX, RESTORED_ITEMS_MAX
from edgestead.services.platform import Platform
from edgestead.services.record_draft import RecordBody
from edgestead.services.zone_edit import ZoneEdit
from edgestead.services.zone_log import RECORD, SETTING, Origin
from edgestead.store.control import Reader, Transaction
from edgestead.tables import history, records, settings, zones
from edgestead.tables.history import ChangeRow, ItemRow
from edgestead.tables.records import RecordRow
from edgestead.tables.zones import ZoneRow

FORGOTTEN_ROWS_MAX = 500  # deleted in one transaction: about 5 ms of the writer's time
_DAY_US = 86_400_000_000


class ItemView(msgspec.Struct, frozen=True):
    """What a change did to one record. `before` and `after` are the record as it was answered, or null."""

    id: str
    kind: str
    name: str | None
    before: msgspec.Raw | None
    after: msgspec.Raw | None


class ChangeView(msgspec.Struct, frozen=True):
    """One change. `changes` holds the first of `changes_count`; `/diff` pages through all of them."""

    sequence: int
    made_on: str
    made_by: Actor
    request_id: str
    origin: str
    reverts: int | None
    changes_count: int
    changes: list[ItemView]


class MemberChange(msgspec.Struct, frozen=True):
    before: Any
    after: Any


class DiffView(msgspec.Struct, frozen=True):
    """One record of a change: `created`, `deleted` or `changed`, and the members that differ."""

    id: str
    kind: str
    name: str | None
    type: str | None
    action: str
    members: dict[str, MemberChange]


class Done(msgspec.Struct, frozen=True):
    """What an undo or restore did. `sequence` is its own change, null when there was nothing to do."""

    sequence: int | None
    changes_count: int


class RestoreBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One name, or everything when none is sent: a misspelt `name` must not mean everything."""

    name: str | None = None


class Wanted(NamedTuple):
    name: str | None
    descending: bool
    limit: int
    offset: int


class Listed(NamedTuple):
    items: Sequence[Any]
    total_count: int


class _Target(NamedTuple):
    """A record as it shall be: None is gone. `now` is the record as it is."""

    record_id: str
    now: RecordRow | None
    wanted: bytes | None


_actor = msgspec.json.Decoder(Actor).decode
_body = msgspec.json.Decoder(RecordBody).decode
_members = msgspec.json.Decoder(dict[str, Any]).decode


class _Stored(msgspec.Struct, frozen=True):
    """What `RecordBody` does not have of a stored record."""

    created_on: str
    name: str = ""
    type: str = ""


_stored = msgspec.json.Decoder(_Stored).decode


def listed(call: Call, reader: Reader, zone_id: str, wanted: Wanted) -> Listed:
    """A page of the changes that are kept. Raises ZoneNotFound, NameRefused."""
    zone = _zone(reader, zone_id)
    name = None if wanted.name is None else _owner(zone, wanted.name)
    floor = history.state(reader, zone_id).floor_sequence
    total = history.count(reader, zone_id, floor, name)
    rows = history.listed(reader, zone_id, floor, name, wanted.descending, wanted.limit, wanted.offset)
    return Listed([_change_view(call, reader, zone_id, row, name) for row in rows], total)


def show(call: Call, reader: Reader, zone_id: str, sequence: int) -> ChangeView:
    """Raises ZoneNotFound, ChangeNotFound."""
    _zone(reader, zone_id)
    return _change_view(call, reader, zone_id, _change(reader, zone_id, sequence), None)


def diff(call: Call, reader: Reader, zone_id: str, sequence: int, limit: int, offset: int) -> Listed:
    """A page of what a change did, member by member. Raises ZoneNotFound, ChangeNotFound."""
    _zone(reader, zone_id)
    row = _change(reader, zone_id, sequence)
    items = history.items(reader, zone_id, sequence, limit, offset)
    return Listed([_diff_view(call, item) for item in items], row.item_count)


def undo(call: Call, tx: Transaction, platform: Platform, zone_id: str, sequence: int) -> Done:
    """Take one change back. Nothing of it may have changed since.

    Raises ZoneNotFound, ChangeNotFound, ChangedSince, CannotBringBack, TooMuchToRestore.
    """
    zone = _zone(tx, zone_id)
    row = _change(tx, zone_id, sequence)
    items = _bounded(history.items(tx, zone_id, sequence, RESTORED_ITEMS_MAX + 1))
    targets = []
    for record_id, (was, became) in _ends(items, RECORD).items():
        now = records.record(tx, zone_id, record_id)
        if not _same(now and now.body, became):
            raise ChangedSince(sequence=sequence, what=_named(became or was or b"{}"))
        targets.append(_Target(record_id, now, was))
    values = _ends(items, SETTING)
    for id_, (_, became) in values.items():
        stored = settings.one(tx, zone_id, id_)
        if (stored and stored.value.encode()) != became:
            raise ChangedSince(sequence=sequence, what=f"the setting {id_}")
    return _bring_about(call, tx, platform, zone, targets, values, Origin("undo", row.sequence))


def restore(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, sequence: int, body: RestoreBody
) -> Done:
    """Make a name, or the whole zone, what it was after a change; 0 is before the first one.

    Raises ZoneNotFound, ChangeNotFound, NameRefused, CannotBringBack, TooMuchToRestore.
    """
    zone = _zone(tx, zone_id)
    state = history.state(tx, zone_id)
    if not state.floor_sequence <= sequence <= state.last_sequence:
        raise ChangeNotFound(sequence=sequence)
    name = None if body.name is None else _owner(zone, body.name)
    items = _bounded(history.items_since(tx, zone_id, sequence, RESTORED_ITEMS_MAX + 1, name))
    targets = []
    for record_id, (was, _) in _ends(items, RECORD).items():
        now = records.record(tx, zone_id, record_id)
        moved_away = now is not None and name is not None and now.name != name
        if not (moved_away and was is None):
            targets.append(_Target(record_id, now, was))
    values = _ends(items, SETTING)
    return _bring_about(call, tx, platform, zone, targets, values, Origin("restore", sequence))


def due(reader: Reader, rows_max: int, older_than_us: int) -> list[tuple[str, int]]:
    """Each zone with changes to forget, and the newest of these. It reads all of history: not for the writer.

    A zone's newest change stays when it alone is too much, but not when it is too old.
    """
    floors = dict(history.forgotten(reader))
    for zone_id, sequence in history.older_than(reader, older_than_us):
        floors[zone_id] = max(sequence, floors.get(zone_id, 0))
    for zone_id, last in history.overfull(reader, rows_max):
        sequence = history.sequence_of_row(reader, zone_id, rows_max) or 0
        floors[zone_id] = max(min(sequence, last - 1), floors.get(zone_id, 0))
    return sorted(floors.items())


def forget(tx: Transaction, zone_id: str, sequence: int) -> bool:
    """Forget the changes up to this one: out of sight at once, out of the database some rows at a time.

    One call is one short transaction; repeat it until it says False.
    """
    history.raise_floor(tx, zone_id, sequence)
    return history.delete_some(tx, zone_id, sequence, FORGOTTEN_ROWS_MAX) == FORGOTTEN_ROWS_MAX


def forget_zone(tx: Transaction, zone_id: str, rows_max: int) -> bool:
    """Delete some of a deleted zone's history; True when none is left."""
    last = history.state(tx, zone_id).last_sequence
    if history.delete_some(tx, zone_id, last, rows_max) >= rows_max:
        return False
    history.delete_state(tx, zone_id)
    return True


def days_ago(now_us: int, days: int) -> int:
    return now_us - days * _DAY_US


def _zone(reader: Reader, zone_id: str) -> ZoneRow:
    zone = zones.zone(reader, zone_id)
    if zone is None:
        raise ZoneNotFound
    return zone


def _change(reader: Reader, zone_id: str, sequence: int) -> ChangeRow:
    row = history.change(reader, zone_id, sequence)
    if row is None or sequence <= history.state(reader, zone_id).floor_sequence:
        raise ChangeNotFound(sequence=sequence)
    return row


def _owner(zone: ZoneRow, text: str) -> str:
    """A name of the zone as rows have it. Raises NameRefused."""
    try:
        return names.text_from_wire(names.owner_from_text(text.strip(), record_draft.apex_of(zone)))
    except InvalidName as error:
        raise NameRefused(type="", field="name", reason=error.reason) from None


def _bounded(items: Sequence[ItemRow]) -> Sequence[ItemRow]:
    if len(items) > RESTORED_ITEMS_MAX:
        raise TooMuchToRestore(limit=RESTORED_ITEMS_MAX)
    return items


_Ends = dict[str, tuple[bytes | None, bytes | None]]


def _ends(items: Iterable[ItemRow], kind: str) -> _Ends:
    """Each record or setting with what it was before all of these, and what it became by the last of them.

    A record that moved has two rows in one change: gone from one name, there at the other.
    """
    ends: _Ends = {}
    for item in items:
        if item.kind == kind:
            first = ends.get(item.item_id)
            ends[item.item_id] = (first[0] if first else item.was, item.became)
    return ends


def _bring_about(
    call: Call,
    tx: Transaction,
    platform: Platform,
    zone: ZoneRow,
    targets: Iterable[_Target],
    values: _Ends,
    origin: Origin,
) -> Done:
    """Everything that differs leaves first: what returns meets the others as they will be."""
    due = [target for target in targets if not _same(target.now and target.now.body, target.wanted)]
    edit = ZoneEdit(call, tx, platform, zone, origin)
    for target in due:
        if target.now is not None:
            edit.delete(target.now)
    # The stored form is the newest one, whatever date the caller asks for.
    newest = msgspec.structs.replace(call, as_of=NEWEST)
    for record_id, wanted in _in_order(due):
        try:
            draft = record_draft.draft(newest, zone, platform, _body(wanted))
            edit.bring_back(draft, record_id, from_six_digits(_stored(wanted).created_on))
        except EdgeError as cause:
            cause.pointer = None  # there is no JSON body to point into
            raise CannotBringBack(what=_named(wanted), reason=cause.message, chain=(cause,)) from None
    changed = sum(_bring_setting(tx, edit, zone, id_, wanted) for id_, (wanted, _) in values.items())
    return Done(edit.finish(), len(due) + changed)


def _bring_setting(tx: Transaction, edit: ZoneEdit, zone: ZoneRow, id_: str, wanted: bytes | None) -> bool:
    """Whether the setting was another one. Raises CannotBringBack: name servers that are gone."""
    stored = settings.one(tx, zone.id, id_)
    if (stored and stored.value.encode()) == wanted:
        return False
    if wanted is None:
        edit.clear_setting(id_)
        return True
    edit.put_setting(id_, msgspec.json.decode(wanted))
    try:
        dns_settings.check_stored_set(tx, zone)
    except EdgeError as cause:
        cause.pointer = None
        raise CannotBringBack(what=f"the setting {id_}", reason=cause.message, chain=(cause,)) from None
    return True


def _in_order(due: Iterable[_Target]) -> Iterator[tuple[str, bytes]]:
    """What returns; a DS needs the NS records of its name first."""
    wanted = [(target.record_id, target.wanted) for target in due if target.wanted is not None]
    return iter(sorted(wanted, key=lambda one: _stored(one[1]).type == "DS"))


def _same(one: bytes | None, other: bytes | None) -> bool:
    """Whether two stored records say the same; when they were written does not count."""
    if one is None or other is None:
        return one is other
    return one == other or _body(one) == _body(other)


def _named(body: bytes) -> str:
    found = _stored(body)
    return f"{found.type} {found.name}"


def _change_view(call: Call, reader: Reader, zone_id: str, row: ChangeRow, name: str | None) -> ChangeView:
    items = history.items(reader, zone_id, row.sequence, HISTORY_ITEMS_SHOWN_MAX, name=name)
    return ChangeView(
        row.sequence,
        six_digits(row.made_us),
        _actor(row.actor),
        row.request_id,
        row.origin,
        row.reverts,
        row.item_count,
        [_item_view(call, item) for item in items],
    )


def _item_view(call: Call, item: ItemRow) -> ItemView:
    return ItemView(
        item.item_id,
        item.kind,
        item.name or None,
        _shown(call, item.kind, item.was),
        _shown(call, item.kind, item.became),
    )


def _shown(call: Call, kind: str, body: bytes | None) -> msgspec.Raw | None:
    if body is None:
        return None
    return msgspec.Raw(record_shapes.spelled(call, body) if kind == RECORD else body)


def _diff_view(call: Call, item: ItemRow) -> DiffView:
    was, became = _member_values(item, item.was), _member_values(item, item.became)
    members = {
        member: MemberChange(was.get(member), became.get(member))
        for member in {**was, **became}
        if was.get(member) != became.get(member)
    }
    action = "created" if item.was is None else "deleted" if item.became is None else "changed"
    type_ = became.get("type", was.get("type")) if item.kind == RECORD else None
    return DiffView(item.item_id, item.kind, item.name or None, type_, action, members)


_NOT_OF_INTEREST = frozenset(("id", "meta", "created_on", "modified_on"))


def _member_values(item: ItemRow, body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {}
    if item.kind != RECORD:
        return {"value": msgspec.json.decode(body)}
    return {key: value for key, value in _members(body).items() if key not in _NOT_OF_INTEREST}
