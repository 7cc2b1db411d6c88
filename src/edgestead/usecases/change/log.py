"""What one change of a zone did, gathered while it happens and written down in its transaction.

Owns  which writes make one change, its items, who made it.
Not   deciding what may change; forgetting.

Every edit of a zone holds a ZoneLog: one edit is one change, be it of records or settings, one or a thousand.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from edgestead.model.call import Call
from edgestead.store.control import Transaction
from edgestead.tables import history
from edgestead.tables.history import ChangeRow, ItemRow
from edgestead.tables.records import RecordRow
from edgestead.tables.zones import ZoneRow

RECORD = "record"
SETTING = "setting"
PAUSED, PLAN = "zone.paused", "zone.plan"

_encode = msgspec.json.Encoder().encode


def own_value(zone: ZoneRow, setting_id: str) -> bytes | None:
    """A setting that stands in the zone's own row, as JSON text; None for all others."""
    if setting_id == PAUSED:
        return _encode(bool(zone.paused))
    return _encode(zone.plan) if setting_id == PLAN else None


class Origin(NamedTuple):
    """Where a change comes from: `edit`, `import`, `undo` or `restore`.

    `reverts` is the change that an undo takes back, or after which a restore brings back what was there.
    `sequence` adds to a change that is there already: an import is one change, however it is committed.
    """

    name: str = "edit"
    reverts: int | None = None
    sequence: int | None = None


EDIT = Origin()


class _Item(NamedTuple):
    kind: str
    item_id: str
    name: str
    was: bytes | None
    became: bytes | None


class ZoneLog:
    """One change in the making. Call `write` once, at its end."""

    __slots__ = ("_records", "_settings")

    def __init__(self) -> None:
        self._records: dict[str, tuple[RecordRow | None, RecordRow | None]] = {}
        self._settings: list[_Item] = []

    def record(self, was: RecordRow | None, became: RecordRow | None) -> None:
        """One step of a record; several steps of one change come out as one."""
        record_id = (was or became).id  # type: ignore[union-attr]
        earlier = self._records.get(record_id)
        self._records[record_id] = (earlier[0] if earlier else was, became)

    def setting(self, setting_id: str, was: bytes | None, became: bytes | None) -> None:
        """One setting of the zone, as JSON text; None is its default."""
        if was != became:
            self._settings.append(_Item(SETTING, setting_id, "", was, became))

    def write(self, call: Call, tx: Transaction, zone_id: str, next_: int, origin: Origin) -> int | None:
        """Write the change down, as number `next_` unless it adds to one that is there.

        Returns its number, None when nothing changed.
        """
        items = [*self._settings, *self._record_items()]
        if not items:
            return None
        sequence, before = origin.sequence, None
        if sequence is not None:
            before = history.grow(tx, zone_id, sequence, len(items))
        if sequence is None or before is None:
            sequence, before = next_, 0
            history.insert(
                tx,
                zone_id,
                ChangeRow(
                    sequence,
                    call.now_us,
                    origin.name,
                    origin.reverts,
                    call.actor.text,
                    call.request_id,
                    len(items),
                ),
            )
        rows = (ItemRow(sequence, position, *item) for position, item in enumerate(items, before))
        history.insert_items(tx, zone_id, rows)
        return sequence

    def _record_items(self) -> Iterator[_Item]:
        for record_id, (was, became) in self._records.items():
            old, new = was and was.body, became and became.body
            if was is not None and became is not None and was.name != became.name:
                yield _Item(RECORD, record_id, was.name, old, None)
                yield _Item(RECORD, record_id, became.name, None, new)
            elif old != new:
                name = (became or was).name  # type: ignore[union-attr]
                yield _Item(RECORD, record_id, name, old, new)
