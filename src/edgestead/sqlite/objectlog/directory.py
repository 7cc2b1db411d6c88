"""The objects in memory: those with records in a live segment, a lease or an alarm.

Owns  numbers, epochs, heads, bases, tails; which objects still need which generation.
Not   bytes; when something becomes durable; alarms by time (`alarms`).
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator

from edgestead.sqlite.objectlog.catalogue import Catalogue, ObjectRow, Tracked
from edgestead.sqlite.objectlog.recovery import Recovered
from edgestead.store.due import DueAlarms
from edgestead.store.objectlog import Alarm, CatalogueEntry, ObjectRef, Unchanged


class Known(Tracked):
    """One object. `leased`: there is a lease. `stale`: it must be read from the log again."""

    named: bool = True  # its name is in the catalogue or in a live segment
    epoch: int = 0
    leased: bool = False
    stale: bool = False
    pinned: int = -1  # the last position handed out in this generation

    def entry(self) -> CatalogueEntry:
        return CatalogueEntry(self.ref, self.head, self.base, self.alarm_us, self.pending)


class Directory:
    """Objects by class and id, and by number."""

    def __init__(self, catalogue: Catalogue, recovered: Iterable[Recovered], oldest: dict[int, int]) -> None:
        """`oldest` says the first generation with commits of an object that its base lacks."""
        self._catalogue = catalogue
        self.known: dict[tuple[str, str], Known] = {}
        # The generation since which each base lags, in order of insertion: the first is the oldest.
        self.unbased: dict[int, tuple[int, Known]] = {}
        self.touched: dict[int, Known] = {}  # changed since the catalogue was last written
        self.alarms = DueAlarms(self._number_of, self.numbered)
        self._last_number = catalogue.last_number()
        for time_us, number in catalogue.alarms():
            self.alarms.set(number, time_us)
        for found in sorted(recovered, key=lambda one: oldest[one.number]):
            self._adopt(found, oldest[found.number])

    def _adopt(self, found: Recovered, generation: int) -> None:
        known = Known.of_row(found.row())
        known.tail = found.tail
        self._last_number = max(self._last_number, found.number)
        self._keep(known)
        self.touched[found.number] = known
        self.alarms.set(found.number, found.alarm_us)
        if found.base < found.head:
            self.unbased[found.number] = (generation, known)

    def find(self, ref: ObjectRef) -> Known:
        """The object, from memory or catalogue, or a new one that is not stored yet."""
        known = self.known.get((ref.class_name, ref.id))
        if known is None:
            row = self._catalogue.object(ref.class_name, ref.id)
            known = self._new(ref) if row is None else Known.of_row(row)
            self._keep(known)
        return known

    def existing(self, ref: ObjectRef) -> Known | None:
        """The object, if it was ever written."""
        known = self.known.get((ref.class_name, ref.id))
        if known is not None:
            return known if known.named else None
        row = self._catalogue.object(ref.class_name, ref.id)
        return None if row is None else Known.of_row(row)

    def numbered(self, number: int) -> Known | None:
        known = self.touched.get(number)
        if known is not None:
            return known
        row = self._catalogue.numbered(number)
        if row is None:
            return None
        return self.known.get((row.ref.class_name, row.ref.id)) or Known.of_row(row)

    def _number_of(self, ref: ObjectRef) -> int | None:
        known = self.existing(ref)
        return None if known is None else known.number

    def forget(self, known: Known) -> None:
        """Drop an object from memory if the catalogue has all of it."""
        if known.leased or known.tail or known.number in self.unbased or known.number in self.touched:
            return
        self.known.pop((known.ref.class_name, known.ref.id), None)

    def note(self, known: Known, generation: int, alarm: Alarm) -> None:
        """An object got commits, which will be in this generation or a later one."""
        self.touched[known.number] = known
        self.unbased.setdefault(known.number, (generation, known))
        if not isinstance(alarm, Unchanged):
            self.alarms.set(known.number, alarm)

    def restore(self, known: Known, found: Recovered) -> None:
        """Reset an object to its state in the log."""
        known.head, known.base, known.tail = found.head, found.base, found.tail
        known.has_file, known.session, known.pending = found.has_file, found.session, found.pending
        known.pinned = -1
        known.alarm_us, known.named, known.stale = found.alarm_us, found.head > 0, False
        self.alarms.set(known.number, known.alarm_us)
        if known.base == known.head:
            self.unbased.pop(known.number, None)
        if not known.named:
            self.touched.pop(known.number, None)

    def entries(self, after: tuple[str, str]) -> Iterator[CatalogueEntry]:
        """Every object behind that class and id, in this order, as it is now."""
        fresh = [known.entry() for known in self.touched.values()]
        fresh = sorted((entry for entry in fresh if _by_name(entry) > after), key=_by_name)
        merged = heapq.merge(fresh, self._catalogue.entries(after), key=_by_name)
        for _, entries in itertools.groupby(merged, key=_by_name):
            yield next(entries)  # of equal names the one from memory is first

    def rows(self) -> list[ObjectRow]:
        """Objects whose rows in the catalogue are outdated. Those with refused commits wait for `restore`."""
        return [known.row() for known in self.touched.values() if not known.stale]

    def stale(self) -> list[Known]:
        """Objects with refused commits: their rows have to be computed from the log."""
        return [known for known in self.touched.values() if known.stale]

    def settled(self, rows: list[ObjectRow]) -> None:
        """The catalogue has these rows now."""
        for row in rows:
            known = self.touched.get(row.number)
            if known is not None and not known.stale and known.row() == row:
                del self.touched[row.number]
                self.forget(known)

    def unbased_upto(self, generation: int, limit: int) -> list[ObjectRef]:
        """Objects whose base lacks commits of these generations, the oldest first."""
        refs = []
        for since, known in itertools.islice(self.unbased.values(), limit):
            if since > generation:
                break
            refs.append(known.ref)
        return refs

    def _new(self, ref: ObjectRef) -> Known:
        self._last_number += 1
        return Known(self._last_number, ref, 0, 0, False, None, named=False)

    def _keep(self, known: Known) -> None:
        self.known[known.ref.class_name, known.ref.id] = known

    def needed_from(self, generation: int) -> int:
        """The oldest generation that any base still needs; `generation` when none does."""
        for since, _ in self.unbased.values():
            return since
        return generation


def _by_name(entry: CatalogueEntry) -> tuple[str, str]:
    return (entry.ref.class_name, entry.ref.id)
