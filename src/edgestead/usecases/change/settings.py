"""The settings of a zone under change: rows that come and go, and those that stand in the zone's own row.

Owns  writing them, and noting in the change's log what they were.
Not   whether a value is allowed; what follows from it.
"""

from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.store.control import Transaction
from edgestead.tables import settings, zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.log import PAUSED, ZoneLog, own_value

_encode = msgspec.json.Encoder().encode


class SettingsEdit:
    """`zone` is the zone's row with what was written of it; `wrote` and `wrote_own` say if anything was."""

    def __init__(self, call: Call, tx: Transaction, zone: ZoneRow, log: ZoneLog) -> None:
        self.zone = zone
        self.wrote = self.wrote_own = False
        self._call = call
        self._tx = tx
        self._log = log

    def put(self, id_: str, value: Any, *, again: bool = False) -> None:
        """Store a checked value. One that is there already keeps its date, unless it counts `again`."""
        text = _encode(value).decode()
        stored = settings.one(self._tx, self.zone.id, id_)
        if stored is not None and stored.value == text and not again:
            return
        settings.put(self._tx, self.zone.id, id_, text, self._call.now_us)
        self._log.setting(id_, stored and stored.value.encode(), text.encode())
        self.wrote = True

    def clear(self, id_: str) -> None:
        """Return a setting to its default."""
        stored = settings.one(self._tx, self.zone.id, id_)
        if stored is not None:
            settings.delete(self._tx, self.zone.id, id_)
            self._log.setting(id_, stored.value.encode(), None)
            self.wrote = True

    def put_own(self, id_: str, value: bool | str) -> None:
        """Store PAUSED or PLAN, which stand in the zone's own row."""
        before, after = own_value(self.zone, id_), _encode(value)
        if after == before:
            return
        if id_ == PAUSED:
            self.zone = self.zone._replace(paused=int(value))
        else:
            self.zone = self.zone._replace(plan=str(value))
        zones.set_own(
            self._tx,
            self.zone.id,
            paused=bool(self.zone.paused),
            plan=self.zone.plan,
            modified_us=self._call.now_us,
        )
        self._log.setting(id_, before, after)
        self.wrote_own = True
