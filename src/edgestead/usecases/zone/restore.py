"""The way back in a zone's history: undoing one change, restoring a name or the whole zone.

Owns  what a record or setting shall be, and making it so in one transaction.
Not   showing history (`usecases.zone.history`).

Undoing takes one change back, and is refused where something came later. An import that ended half-way is
taken back but for what others have changed since. Restoring does not look at what came in between: it makes a
name, or the whole zone, what it was after a change. Each is a change itself, so that it can be undone.
Records come back with their ids.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from edgestead.changes import NEWEST
from edgestead.model.call import Call
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.zone import CannotBringBack, ChangedSince, ChangeNotFound, TooMuchToRestore
from edgestead.model.times import from_six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import history as table
from edgestead.tables import records, settings
from edgestead.tables.history import ItemRow
from edgestead.tables.records import RecordRow
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.access.authorise import CONTENTS, Identity, Target, permits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.log import RECORD, SETTING, Origin, own_value
from edgestead.usecases.limits import HISTORY_ITEMS_SHOWN_MAX, RESTORED_ITEMS_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import draft as record_draft
from edgestead.usecases.record.draft import RecordBody
from edgestead.usecases.serving.facts import DNSSEC, OVERRIDES
from edgestead.usecases.serving.rendering import Settings
from edgestead.usecases.zone import dns_settings, dnssec, history, secondary
from edgestead.usecases.zone.history import ItemView


class Done(msgspec.Struct, frozen=True):
    """What an undo or restore did. `sequence` is its own change, null when there was nothing to do."""

    sequence: int | None
    changes_count: int


class Preview(msgspec.Struct, frozen=True):
    """What a restore would change: the first of `changes_count`, each as it is now and as it would be."""

    changes_count: int
    changes: list[ItemView]


class RestoreBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One name, or everything when none is sent: a misspelt `name` must not mean everything."""

    name: str | None = None


class _Target(NamedTuple):
    """A record as it shall be: None is gone. `now` is the record as it is."""

    record_id: str
    now: RecordRow | None
    wanted: bytes | None


_Ends = dict[str, tuple[bytes | None, bytes | None]]
_body = msgspec.json.Decoder(RecordBody).decode


class _Stored(msgspec.Struct, frozen=True):
    """What `RecordBody` does not have of a stored record."""

    created_on: str
    name: str = ""
    type: str = ""


_stored = msgspec.json.Decoder(_Stored).decode


def undo(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, zone_id: str, sequence: int
) -> Done:
    """Take one change back. Nothing of it may have changed since.

    Raises ZoneNotFound, ChangeNotFound, ChangedSince, CannotBringBack, TooMuchToRestore, and CONTENTS.denied
    for settings that the caller may not write.
    """
    zone = zone_of(tx, zone_id)
    row = history.change_of(tx, zone_id, sequence)
    items = _bounded(table.items(tx, zone_id, sequence, RESTORED_ITEMS_MAX + 1))
    targets = []
    for target, became in _back(tx, zone_id, items):
        if not _same(target.now and target.now.body, became):
            raise ChangedSince(sequence=sequence, what=_named(became or target.wanted or b"{}"))
        targets.append(target)
    values = _ends(items, SETTING)
    _check_allowed(identity, zone, values)
    for setting_id, (_, became) in values.items():
        if _value(tx, zone, setting_id) != became:
            raise ChangedSince(sequence=sequence, what=f"the setting {setting_id}")
    return _bring_about(call, tx, platform, zone, targets, values, Origin("undo", row.sequence))


def undo_unchanged(call: Call, tx: Transaction, platform: Platform, zone_id: str, sequence: int) -> list[str]:
    """Take back what one change did to records, but for those that changed again since; returns those that
    are there still, by type and name.

    Raises ZoneNotFound, ChangeNotFound, CannotBringBack, TooMuchToRestore, and what a deletion raises.
    """
    zone = zone_of(tx, zone_id)
    row = history.change_of(tx, zone_id, sequence)
    items = _bounded(table.items(tx, zone_id, sequence, RESTORED_ITEMS_MAX + 1))
    unchanged, left = [], []
    for target, became in _back(tx, zone_id, items):
        if _same(target.now and target.now.body, became):
            unchanged.append(target)
        elif target.now is not None:
            left.append(_named(target.now.body))
    _bring_about(call, tx, platform, zone, unchanged, {}, Origin("undo", row.sequence))
    return left


def restore(
    call: Call,
    tx: Transaction,
    platform: Platform,
    identity: Identity,
    zone_id: str,
    sequence: int,
    body: RestoreBody,
) -> Done:
    """Make a name, or the whole zone, what it was after a change; 0 is before the first one.

    Raises ZoneNotFound, ChangeNotFound, NameRefused, CannotBringBack, TooMuchToRestore, and CONTENTS.denied
    for settings that the caller may not write.
    """
    zone = zone_of(tx, zone_id)
    targets, values = _differences(tx, zone, sequence, body.name)
    _check_allowed(identity, zone, values)
    return _bring_about(call, tx, platform, zone, targets, values, Origin("restore", sequence))


def preview(
    call: Call, reader: Reader, identity: Identity, zone_id: str, sequence: int, body: RestoreBody
) -> Preview:
    """What `restore` would change, without doing it. Raises ZoneNotFound, ChangeNotFound, NameRefused,
    TooMuchToRestore.
    """
    zone = zone_of(reader, zone_id)
    targets, values = _differences(reader, zone, sequence, body.name)
    rows = [
        ItemRow(sequence, 0, RECORD, one.record_id, _owner(one), one.now and one.now.body, one.wanted)
        for one in targets
        if not _same(one.now and one.now.body, one.wanted)
    ]
    for id_, (wanted, _) in values.items():
        now = _value(reader, zone, id_)
        if now != wanted:
            rows.append(ItemRow(sequence, 0, SETTING, id_, "", now, wanted))
    shown = history.item_views(call, identity, zone, rows[:HISTORY_ITEMS_SHOWN_MAX])
    return Preview(len(rows), shown)


def _back(reader: Reader, zone_id: str, items: Iterable[ItemRow]) -> Iterator[tuple[_Target, bytes | None]]:
    """Each record of a change as it was before, and what it became by that."""
    for record_id, (was, became) in _ends(items, RECORD).items():
        yield _Target(record_id, records.record(reader, zone_id, record_id), was), became


def _owner(target: _Target) -> str:
    body = target.wanted or (target.now and target.now.body) or b"{}"
    return _stored(body).name


def _differences(
    reader: Reader, zone: ZoneRow, sequence: int, text: str | None
) -> tuple[list[_Target], _Ends]:
    """Records and settings that a change after this one touched. Raises as `restore`."""
    if not table.floor(reader, zone.id) <= sequence <= table.last_sequence(reader, zone.id):
        raise ChangeNotFound(sequence=sequence)
    name = None if text is None else history.owner_of(zone, text)
    items = _bounded(table.items_since(reader, zone.id, sequence, RESTORED_ITEMS_MAX + 1, name))
    targets = []
    for record_id, (was, _) in _ends(items, RECORD).items():
        now = records.record(reader, zone.id, record_id)
        moved_away = now is not None and name is not None and now.name != name
        if not (moved_away and was is None):
            targets.append(_Target(record_id, now, was))
    return targets, _ends(items, SETTING)


def _bounded(items: Sequence[ItemRow]) -> Sequence[ItemRow]:
    if len(items) > RESTORED_ITEMS_MAX:
        raise TooMuchToRestore(limit=RESTORED_ITEMS_MAX)
    return items


def _ends(items: Iterable[ItemRow], kind: str) -> _Ends:
    """Each of a kind with what it was before all of these, and what it became by the last of them.

    A record that moved has two rows in one change: gone from one name, there at the other.
    """
    ends: _Ends = {}
    for item in items:
        if item.kind == kind:
            first = ends.get(item.item_id)
            ends[item.item_id] = (first[0] if first else item.was, item.became)
    return ends


def _check_allowed(identity: Identity, zone: ZoneRow, values: Iterable[str]) -> None:
    """The way back takes the permissions of the way there: that of records is asked by the route."""
    target = Target(account_id=zone.account_id, zone_id=zone.id)
    if not all(permits(identity, f"{history.area_of(id_)} Write", target) for id_ in values):
        raise CONTENTS.denied


def _value(reader: Reader, zone: ZoneRow, setting_id: str) -> bytes | None:
    own = own_value(zone, setting_id)
    found = None if own else settings.one(reader, zone.id, setting_id)
    return found.value.encode() if found else own


_CHECKS = {
    dns_settings.STORED_SET: dns_settings.check_stored_set,
    OVERRIDES: dnssec.check_presigned,
    DNSSEC: dnssec.check_presigned,
}
"""Of settings that need others: name servers, which may be gone; two that exclude one another."""


def _bring_settings(tx: Transaction, edit: ZoneEdit, zone: ZoneRow, values: _Ends) -> int:
    """How many settings were others. Raises CannotBringBack.

    What they need is looked for at the end: a zone's own name servers may return together with the choice of
    them.
    """
    due = {id_: wanted for id_, (wanted, _) in values.items() if _value(tx, zone, id_) != wanted}
    for id_, wanted in due.items():
        if wanted is None:
            edit.settings.clear(id_)
        elif own_value(zone, id_) is not None:
            edit.settings.put_own(id_, msgspec.json.decode(wanted))
        else:
            edit.settings.put(id_, msgspec.json.decode(wanted))
    for id_, check in _CHECKS.items():
        try:
            if id_ in due:
                check(tx, zone)
        except EdgeError as cause:
            cause.pointer = None
            raise CannotBringBack(what=f"the setting {id_}", reason=cause.message, chain=(cause,)) from None
    return len(due)


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
    was_presigned = dnssec.is_presigned(tx, zone)
    due = [target for target in targets if not _same(target.now and target.now.body, target.wanted)]
    edit = ZoneEdit(call, tx, platform, zone.id, origin)
    for target in due:
        if target.now is not None:
            edit.records.delete(target.now)
    # Settings first: what returns may need them, a DNSKEY say.
    changed = _bring_settings(tx, edit, zone, values)
    zone = zone_of(tx, zone.id)  # with the plan that it has now
    # The stored form is the newest one, whatever date the caller asks for.
    newest = msgspec.structs.replace(call, as_of=NEWEST)
    for record_id, wanted in _in_order(due):
        try:
            draft = record_draft.draft(newest, zone, platform, _body(wanted))
            edit.records.bring_back(draft, record_id, from_six_digits(_stored(wanted).created_on))
        except EdgeError as cause:
            cause.pointer = None  # there is no JSON body to point into
            raise CannotBringBack(what=_named(wanted), reason=cause.message, chain=(cause,)) from None
    # And last: a SOA record that returned has named what the setting leaves to the server.
    _bring_settings(tx, edit, zone, values)
    done = Done(edit.finish(), len(due) + changed)
    if dnssec.is_presigned(tx, zone) != was_presigned:
        secondary.transfer_again(call, tx, zone.id)
    return done


def _in_order(due: Iterable[_Target]) -> Iterator[tuple[str, bytes]]:
    """What returns; a DS needs the NS records of its name first."""
    wanted = [(target.record_id, target.wanted) for target in due if target.wanted is not None]
    return iter(sorted(wanted, key=lambda one: _stored(one[1]).type == "DS"))


def _same(one: bytes | None, other: bytes | None) -> bool:
    """Whether two stored records say the same; when they were written does not count."""
    if one is None or other is None:
        return one is other
    return one == other or _said(one) == _said(other)


def _said(stored: bytes) -> RecordBody:
    """What a record says. A setting that is off says no more than one that was never set: an earlier version
    kept both alike."""
    body = _body(stored)
    settings = body.settings or Settings()
    on = Settings(settings.flatten_cname or None, settings.ipv4_only or None, settings.ipv6_only or None)
    return msgspec.structs.replace(body, settings=on)


def _named(body: bytes) -> str:
    found = _stored(body)
    return f"{found.type} {found.name}"
