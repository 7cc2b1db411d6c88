"""The alarms of a process's slots.

Owns  which alarms are in memory: those that are due soon; when others are loaded.
Not   their order (`store.due`); when an alarm becomes durable.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog.opening import ref_of
from edgestead.store.due import DueAlarms
from edgestead.store.objectlog import LogError, ObjectRef

AHEAD_US: Final = 3_600_000_000  # alarms that are due later stay in the database
LOAD_US: Final = 600_000_000  # between two loads
DUE = (
    "SELECT number, class, id, name, alarm_us FROM objects "
    "WHERE slot = ANY (%b::integer[]) AND alarm_us <= %b"
)


class Numbered(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def ref(self) -> ObjectRef: ...


class Loaded(NamedTuple):
    number: int
    ref: ObjectRef


class Load(NamedTuple):
    """One that is under way, and what has changed since it was asked: what it says of that is not so any
    more, even if a slot has come back.
    """

    numbers: set[int]
    slots: set[int]


class PostgresAlarms:
    """`due` is the `Alarms`. `ask(job, done)` reads; `existing` gives an object whose alarm memory knows."""

    def __init__(
        self,
        ask: Callable[[Callable[[Link], Any], Callable[[Any, LogError | None], None]], None],
        now_us: Callable[[], int],
        existing: Callable[[ObjectRef], Numbered | None],
        slot_of: Callable[[ObjectRef], int],
    ) -> None:
        self._ask, self._now_us, self._existing, self._slot_of = ask, now_us, existing, slot_of
        self._of: dict[int, Numbered] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._loads: list[Load] = []
        self._next_us = 0
        self.due = DueAlarms(lambda ref: self._numbers.get((ref.class_name, ref.id)), self._of.get)

    def set(self, of: Numbered, alarm_us: int | None) -> None:
        """As an object's commit says, or the database."""
        for load in self._loads:
            load.numbers.add(of.number)
        self._set(of, alarm_us)

    def _set(self, of: Numbered, alarm_us: int | None) -> None:
        is_kept = alarm_us is not None and alarm_us <= self._now_us() + AHEAD_US + LOAD_US
        key = (of.ref.class_name, of.ref.id)
        if is_kept:
            self._of[of.number], self._numbers[key] = of, of.number
        self.due.set(of.number, alarm_us if is_kept else None)
        if not is_kept:
            self._of.pop(of.number, None)
            self._numbers.pop(key, None)
            if alarm_us is not None:
                self.due.on_set(alarm_us)

    def tend(self, slots: list[int]) -> None:
        """Load what has become due soon, now and then."""
        now_us = self._now_us()
        is_between = self._next_us - LOAD_US <= now_us < self._next_us  # two loads; else, the clock was set
        if slots and not is_between:
            self._next_us = now_us + LOAD_US
            self.load(slots, lambda error: None)

    def load(self, slots: list[int], done: Callable[[LogError | None], None]) -> None:
        """Load what is due soon of some slots."""
        if not slots:
            done(None)
            return
        upto_us = self._now_us() + AHEAD_US + LOAD_US
        load = Load(set(), set())
        self._loads.append(load)

        def loaded(rows: list[Any] | None, error: LogError | None) -> None:
            self._loads = [one for one in self._loads if one is not load]
            if rows is None:
                self._next_us = 0  # the next look tries again
                done(error)
                return
            for number, class_name, object_id, name, alarm_us in rows:
                ref = ref_of(class_name, object_id, name)
                is_old = number in load.numbers or self._slot_of(ref) in load.slots
                if not is_old and number not in self._of:
                    self._set(Loaded(number, ref), alarm_us)
            done(None)

        self._ask(lambda link: link.rows(DUE, (slots, upto_us)), loaded)

    def give_back(self, slots: Iterable[int]) -> None:
        """What was taken of some slots may be taken again."""
        back = set(slots)
        for of in self._of.values():
            if self._slot_of(of.ref) in back:
                self.due.give_back(of.ref)

    def forget(self, slots: Iterable[int]) -> None:
        """Slots were given away."""
        gone = set(slots)
        for load in self._loads:
            load.slots.update(gone)
        for of in [one for one in self._of.values() if self._slot_of(one.ref) in gone]:
            self._set(of, None)
