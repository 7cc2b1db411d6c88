"""One change of a zone: any number of records and settings, in one transaction, to one new serial.

Owns  the order of a change: rows, documents of the feed, names elsewhere that hang on it, history.
Not   what a record or a setting may hold; who may change it.

Every use case that changes records or settings goes through here: rules, serial, feed and history are alike
for one record, for many, for a setting and for an undo. What cannot be rendered raises before the commit.
docs/design/0030-a-records-write.md counts the statements of a plain record's write.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from edgestead.model import served
from edgestead.model.call import Call
from edgestead.model.served import ServedRRset
from edgestead.store.control import Transaction
from edgestead.tables import zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.change.log import EDIT, Origin, ZoneLog
from edgestead.usecases.change.records import RecordsEdit
from edgestead.usecases.change.settings import SettingsEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import edge_feed, flattening, rendering, serials
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving.publish import Document, Name, Publication


class ZoneEdit:
    """A change in the making, of its `records` and `settings`. Call `finish` once, after the last of them."""

    def __init__(
        self, call: Call, tx: Transaction, platform: Platform, zone_id: str, origin: Origin = EDIT
    ) -> None:
        """Raises ZoneNotFound."""
        found = zone_facts.editable(tx, zone_id)
        self._call = call
        self._tx = tx
        self._platform = platform
        self._renderer = platform.renderer
        self._zone_id = zone_id
        self._apex = zone_facts.apex_of(found.zone)
        self._origin = origin
        self._log = ZoneLog()
        self._last_sequence = found.last_sequence
        self._facts = zone_facts.facts_in(tx, found)
        self._again: list[str] = []
        self._serial: int | None = None
        self._wrote = False
        self.settings = SettingsEdit(call, tx, found.zone, self._log)
        self.records = RecordsEdit(call, tx, platform, self.settings, self._log, self._apex)

    @property
    def zone(self) -> ZoneRow:
        """The zone's row, with what this change has written of it."""
        return self.settings.zone

    def take_facts(self) -> None:
        """Read again what settings say; the apex, or the names, that hang on what changed are rendered."""
        found = zone_facts.editable(self._tx, self._zone_id)
        # Another edit of the same transaction may have given the zone a serial since this one began.
        self.settings.zone, self._last_sequence = found.zone, found.last_sequence
        before, facts = self._facts, zone_facts.facts_in(self._tx, found)
        if facts == before:
            return
        if _of_names(facts) != _of_names(before):
            self._again += flattening.next_names(self._tx, self._zone_id, "")
        if (facts.dns_only, facts.ipv6) != (before.dns_only, before.ipv6):
            flattening.refresh_others_below(self._tx, self.zone.name, self._zone_id)
        if facts._replace(**_of_names(before)) != before:
            self.records.changed[self.zone.name] = self.records.at(self.zone.name, self._apex)
        self._facts = facts
        self._wrote = True
        self._follow_soa()

    def refresh(self, found: Iterable[str]) -> None:
        """Render names again whose records stay: what they answer with may have changed."""
        self._again += found
        self._wrote = True
        if self.zone.name in self._again:
            self._follow_soa()

    def begin_again(self, serial: int) -> None:
        """Serve the zone as it is under a serial that no change leads to: secondaries fetch it whole."""
        self._serial = serial
        self._wrote = True

    def finish(self) -> int | None:
        """Tell the feed each changed name, and the zone's new serial last; write the history.

        A change that DNS does not see, of a comment say, makes no serial and tells the feed nothing.
        Returns the change's number in the zone's history, None when nothing changed.
        """
        if self.settings.wrote:
            self.take_facts()
        if not (self._wrote or self.records.wrote or self.settings.wrote or self.settings.wrote_own):
            return None
        elsewhere = self._find_hanging()
        serial = self._publish()
        if serial != self.zone.serial or not self._again:
            zones.set_after_change(self._tx, self._zone_id, serial, self.records.count)
        if self.settings.wrote or self.settings.wrote_own:
            edge_feed.tell_zone(self._tx, self.zone)
        for other, found in elsewhere.items():
            self._refresh_elsewhere(other, found)
        return self._log.write(self._call, self._tx, self._zone_id, self._last_sequence + 1, self._origin)

    def _publish(self) -> int:
        """Emit what the names serve now, and if that is anything new, the next serial; returns the serial."""
        changed = self.records.changed
        again = [self.records.at(text) for text in dict.fromkeys(self._again) if text not in changed]
        if not changed and not again and self._serial is None:
            return self.zone.serial
        publication = Publication(self._renderer, self._apex, self._facts)
        names = [*changed.values(), *again]
        zone_before, *befores = self._newest(names)
        is_new = bool(changed) or self._serial is not None
        for name, before in zip(names, befores, strict=True):
            documents = publication.name(
                name, self._flat(name), before, changed=changed.get(name.text) is name
            )
            self._emit(documents)
            is_new = is_new or bool(documents)
        if not is_new:
            return self.zone.serial
        follows = self._serial is None
        serial = serials.next_serial(self.zone.serial) if self._serial is None else self._serial
        self._emit(publication.zone(serial, zone_before if follows else None))
        return serial

    def _newest(self, names: Sequence[Name]) -> list[bytes | None]:
        """The feed's documents of the zone and of names; a name without records had none, the apex apart."""
        keys = [(served.KIND_ZONE, "")]
        keys += [(served.KIND_NAME, name.feed_key) for name in names if self._was_served(name)]
        found = iter(self._tx.newest_of(self._zone_id, keys))
        return [next(found), *(next(found) if self._was_served(name) else None for name in names)]

    def _was_served(self, name: Name) -> bool:
        return not name.was_empty or name.owner == self._apex

    def _emit(self, documents: Iterable[Document]) -> None:
        for one in documents:
            if one.if_new and self._tx.newest(self._zone_id, one.kind, one.key) == one.document:
                continue
            self._tx.emit(self._zone_id, one.kind, one.key, one.document, first=one.first)

    def _follow_soa(self) -> None:
        self.records.follow_soa(self._renderer.zone(self._apex, 0, self._facts))

    def _find_hanging(self) -> dict[str, list[str]]:
        """Flattened names that hang on a changed one: ours are rendered again, those of other zones returned.

        More than HANGING_MAX would hold the writer up; their zones are noted for the upkeep.
        """
        changed = flattening.with_ancestors(self.records.changed, self.zone.name)
        found = flattening.dependents(self._tx, changed, limits.HANGING_MAX)
        if found is None:
            flattening.refresh_later(self._tx, changed)
            return {}
        by_zone: dict[str, list[str]] = {}
        for zone_id, name in found:
            by_zone.setdefault(zone_id, []).append(name)
        self._again += by_zone.pop(self._zone_id, ())
        return by_zone

    def _refresh_elsewhere(self, zone_id: str, found: Iterable[str]) -> None:
        if zones.zone(self._tx, zone_id) is not None:
            edit = ZoneEdit(self._call, self._tx, self._platform, zone_id)
            edit.refresh(found)
            edit.finish()

    def _flat(self, name: Name) -> Sequence[ServedRRset] | None:
        """Store and return the records that replace a name's alias; None where none is flattened."""
        alias = flattening.alias_of(name.records, self._facts, at_apex=name.owner == self._apex)
        flat = None if alias is None else flattening.chase(self._tx, self._renderer, alias)
        if name.was_alias or flat is not None:
            flattening.settle(self._tx, self._zone_id, name.text, flat, self._call.now_us)
        return None if flat is None else flat.served


def _of_names(facts: rendering.ZoneFacts) -> dict[str, Any]:
    """The facts that change what proxied names and aliases serve; all others change the apex."""
    return {name: getattr(facts, name) for name in ("flatten_all", "alpn", "dns_only", "ipv6")}
