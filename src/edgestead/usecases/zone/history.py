"""A zone's history as clients see it: who changed what, when, before and after.

Owns  the JSON shapes of changes and differences; who may see which; what is forgotten when.
Not   writing history down (`usecases.change.log`); the way back (`usecases.zone.restore`).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from edgestead.model import names
from edgestead.model.call import Actor, Call
from edgestead.model.envelope import Listed
from edgestead.model.names import InvalidName
from edgestead.model.refusals.record import NameRefused
from edgestead.model.refusals.zone import ChangeNotFound
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import history
from edgestead.tables.history import ChangeRow, ItemRow
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.access.authorise import Identity, Target, permits
from edgestead.usecases.change.log import RECORD
from edgestead.usecases.limits import HISTORY_ITEMS_SHOWN_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.record import shapes
from edgestead.usecases.serving.facts import DNSSEC, FAMILY, apex_of

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


class Wanted(NamedTuple):
    name: str | None
    descending: bool
    limit: int
    offset: int


_actor = msgspec.json.Decoder(Actor).decode
_members = msgspec.json.Decoder(dict[str, Any]).decode


def area_of(setting_id: str) -> str:
    """Whose permission a setting takes, as on its own route: `DNS`, `Zone` or `Zone Settings`."""
    if setting_id == DNSSEC or setting_id.startswith(f"{FAMILY}."):
        return "DNS"
    return "Zone" if setting_id.startswith("zone.") else "Zone Settings"


class Reading(NamedTuple):
    """Who looks at a zone's history; settings that they may not read are named without values."""

    call: Call
    identity: Identity
    target: Target

    def sees(self, item: ItemRow) -> bool:
        return item.kind == RECORD or permits(self.identity, f"{area_of(item.item_id)} Read", self.target)


def listed(call: Call, reader: Reader, identity: Identity, zone_id: str, wanted: Wanted) -> Listed:
    """A page of the changes that are kept. Raises ZoneNotFound, NameRefused."""
    zone = zone_of(reader, zone_id)
    reading = Reading(call, identity, Target(account_id=zone.account_id, zone_id=zone_id))
    name = None if wanted.name is None else owner_of(zone, wanted.name)
    floor = history.floor(reader, zone_id)
    total = history.count(reader, zone_id, floor, name)
    rows = history.listed(reader, zone_id, floor, name, wanted.descending, wanted.limit, wanted.offset)
    return Listed([_change_view(reading, reader, zone_id, row, name) for row in rows], total)


def show(call: Call, reader: Reader, identity: Identity, zone_id: str, sequence: int) -> ChangeView:
    """Raises ZoneNotFound, ChangeNotFound."""
    zone = zone_of(reader, zone_id)
    reading = Reading(call, identity, Target(account_id=zone.account_id, zone_id=zone_id))
    return _change_view(reading, reader, zone_id, change_of(reader, zone_id, sequence), None)


def item_views(call: Call, identity: Identity, zone: ZoneRow, items: Iterable[ItemRow]) -> list[ItemView]:
    """Differences as changes show them."""
    reading = Reading(call, identity, Target(account_id=zone.account_id, zone_id=zone.id))
    return [_item_view(reading, item) for item in items]


def diff(
    call: Call, reader: Reader, identity: Identity, zone_id: str, sequence: int, limit: int, offset: int
) -> Listed:
    """A page of what a change did, member by member. Raises ZoneNotFound, ChangeNotFound."""
    zone = zone_of(reader, zone_id)
    reading = Reading(call, identity, Target(account_id=zone.account_id, zone_id=zone_id))
    row = change_of(reader, zone_id, sequence)
    items = history.items(reader, zone_id, sequence, limit, offset)
    return Listed([_diff_view(reading, item) for item in items], row.item_count)


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
    last = history.last_sequence(tx, zone_id)
    if history.delete_some(tx, zone_id, last, rows_max) >= rows_max:
        return False
    history.delete_floor(tx, zone_id)
    return True


def days_ago(now_us: int, days: int) -> int:
    return now_us - days * _DAY_US


def change_of(reader: Reader, zone_id: str, sequence: int) -> ChangeRow:
    """Raises ChangeNotFound: there is none, or it is forgotten."""
    row = history.change(reader, zone_id, sequence)
    if row is None or sequence <= history.floor(reader, zone_id):
        raise ChangeNotFound(sequence=sequence)
    return row


def owner_of(zone: ZoneRow, text: str) -> str:
    """A name of the zone as rows have it. Raises NameRefused."""
    try:
        return names.text_from_wire(names.owner_from_text(text.strip(), apex_of(zone)))
    except InvalidName as error:
        raise NameRefused(type="", field="name", reason=error.reason) from None


def _change_view(
    reading: Reading, reader: Reader, zone_id: str, row: ChangeRow, name: str | None
) -> ChangeView:
    items = history.items(reader, zone_id, row.sequence, HISTORY_ITEMS_SHOWN_MAX, name=name)
    return ChangeView(
        row.sequence,
        six_digits(row.made_us),
        _actor(row.actor),
        row.request_id,
        row.origin,
        row.reverts,
        row.item_count,
        [_item_view(reading, item) for item in items],
    )


def _item_view(reading: Reading, item: ItemRow) -> ItemView:
    was, became = (_shown(reading.call, item.kind, body) for body in _ends(reading, item))
    return ItemView(item.item_id, item.kind, item.name or None, was, became)


def _ends(reading: Reading, item: ItemRow) -> tuple[bytes | None, bytes | None]:
    return (item.was, item.became) if reading.sees(item) else (None, None)


def _shown(call: Call, kind: str, body: bytes | None) -> msgspec.Raw | None:
    if body is None:
        return None
    return msgspec.Raw(shapes.spelled(call, body) if kind == RECORD else body)


def _diff_view(reading: Reading, item: ItemRow) -> DiffView:
    was, became = (_member_values(item, body) for body in _ends(reading, item))
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
