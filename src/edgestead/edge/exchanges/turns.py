"""Whose work goes on next: inspections that do not end at once, in turns.

Owns  `Turns`: one queue of a worker, one turn in each round of the loop; how many may wait.
Not   what is worked on.

The first slice of an inspection is worked at once, which is all that nearly every request needs; but not
where others of its address wait already: who opens many connections pays with its own turns. Behind that
there is one turn in a round, whoever waits, and what came in meanwhile is served between any two of them. A
turn is a quarter of a slice, as a small request needs two or three rounds to be answered. It serves the
address that was served least, and of its inspections the one that has used least; where that ends sooner,
the next one:

    class of an inspection   used so far          next, where the turn does not end it
    new                      < 2 ms               short at 2 ms
    short                    < 8 ms               middle at 8 ms
    middle                   < 64 ms              long at 64 ms
    long                     all others           long

An address begins with what the least served one of those who wait has had, and its first slice: to have been
quiet earns nothing, and neither does it cost anything. An IPv6 address counts by its /64, which one household
or server has.

Who waits is held in memory with all that was made of it, drawn on the memory of its address (`ends`): where
that is spent, and over `PER_ADDRESS_MAX`, there is no room for a newcomer of that address; over
`WAITING_MAX` there is none for the last of those who used most, of the address of which most wait.
"""

from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush
from time import perf_counter
from typing import Any, NamedTuple

from edgestead.edge.exchanges.later import Later
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.networks import network_of

SLICE_SECONDS = 0.002  # what a request gets at once
TURN_SECONDS = 0.0005  # of a round; a step that was begun is ended, which may take 2 ms more
CLASSES_SECONDS = (0.002, 0.008, 0.064)  # where a class ends; behind the last one begins that of long ones
WAITING_MAX = table.EDGE_INSPECTIONS.limit  # of a worker; `INSPECTION_SECONDS_MAX` is what they get
PER_ADDRESS_MAX = table.EDGE_INSPECTIONS_ADDRESS.limit  # each holds its body, and what was made of it


class Owner(NamedTuple):
    """Whom to tell: `settle` the outcome, or `crowd_out` that there is no room. `held_bytes` wait with it."""

    settle: Callable[[Any], None]
    crowd_out: Callable[[], None]
    held_bytes: int = 0


class _Share:
    """What one address waits for. `served_seconds` is what it has had."""

    __slots__ = ("classes", "name", "served_seconds", "waiting")

    def __init__(self, name: str, served_seconds: float) -> None:
        self.name = name
        self.served_seconds = served_seconds
        self.waiting = 0
        self.classes: tuple[OrderedDict[Later, Owner], ...] = tuple(
            OrderedDict() for _ in range(len(CLASSES_SECONDS) + 1)
        )

    def __lt__(self, other: "_Share") -> bool:
        return self.served_seconds < other.served_seconds

    def add(self, later: Later, owner: Owner) -> None:
        self.classes[_class_of(later)][later] = owner
        self.waiting += 1

    def first(self) -> tuple[Later, Owner]:
        """Who has used least; taken out."""
        self.waiting -= 1
        class_ = next(class_ for class_ in self.classes if class_)
        found: tuple[Later, Owner] = class_.popitem(last=False)
        return found

    def last(self) -> tuple[Later, Owner]:
        """Who has used most; taken out."""
        self.waiting -= 1
        class_ = next(class_ for class_ in reversed(self.classes) if class_)
        found: tuple[Later, Owner] = class_.popitem()
        return found

    def remove(self, later: Later) -> Owner | None:
        found: Owner | None = self.classes[_class_of(later)].pop(later, None)
        self.waiting -= found is not None
        return found


class Turns:
    """`call_soon` is the loop's. Shares are forgotten when nobody of an address waits any more.

    What waits is drawn on the address's `memory`; without that there is no limit but their number.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float] = perf_counter,
        ledger: Ledger | None = None,
        memory: Levels | None = None,
    ) -> None:
        self._ledger, self._memory = ledger or Ledger(), memory
        self._call_soon = call_soon
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._least: list[_Share] = []  # a heap; a share that was forgotten leaves it when it is met
        self._is_called = False
        self.waiting = 0

    @property
    def addresses(self) -> int:
        """How many wait."""
        return len(self._shares)

    def begin(self, address: str, later: Later) -> Any:
        """A slice at once, where that is due to its address. The outcome, or the `Later` that has to wait."""
        if self._shares and network_of(address) in self._shares:
            return later
        return later.go_on(SLICE_SECONDS)

    def wait(self, address: str, later: Later, owner: Owner) -> None:
        """Work on it when its turns come. The owner is told once, never from within this call but that
        there is no room.
        """
        name = network_of(address)
        share = self._shares.get(name)
        if share is not None and share.waiting >= PER_ADDRESS_MAX:
            self._ledger.refuse(table.EDGE_INSPECTIONS_ADDRESS, name)
            owner.crowd_out()
            return
        held = owner.held_bytes
        if self._memory is not None and self._memory.draw(name, held, held, table.SPARE_BYTES) is not None:
            owner.crowd_out()
            return
        if share is None:
            share = self._shares[name] = _Share(name, self._floor() + later.used_seconds)
            heappush(self._least, share)
        share.add(later, owner)
        self.waiting += 1
        self._call()
        if self.waiting > WAITING_MAX:
            self._make_room()

    def leave(self, address: str, later: Later) -> None:
        """Nobody waits for it any more: what it holds is let go. Harmless when its owner was told."""
        share = self._shares.get(network_of(address))
        owner = None if share is None else share.remove(later)
        if share is not None and owner is not None:
            self.waiting -= 1
            self._release(share, owner)
            self._forget_empty(share)

    def _release(self, share: _Share, owner: Owner) -> None:
        if self._memory is not None and owner.held_bytes:
            self._memory.release(share.name, owner.held_bytes)

    def _floor(self) -> float:
        while self._least and not self._is_known(self._least[0]):
            heappop(self._least)
        return self._least[0].served_seconds if self._least else 0.0

    def _is_known(self, share: _Share) -> bool:
        return self._shares.get(share.name) is share

    def _make_room(self) -> None:
        share = max(self._shares.values(), key=lambda share: share.waiting)
        self._ledger.refuse(table.EDGE_INSPECTIONS, share.name)
        _, owner = share.last()
        self.waiting -= 1
        self._release(share, owner)
        self._forget_empty(share)
        owner.crowd_out()

    def _forget_empty(self, share: _Share) -> None:
        if not share.waiting and self._is_known(share):
            del self._shares[share.name]
            if not self._shares:
                self._least.clear()

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._is_called = False
        now = self._clock()
        end = now + TURN_SECONDS
        try:
            while self._least:
                now = self._serve(heappop(self._least), now, end)
                if now >= end:
                    return
        finally:  # an error of one is no reason for others to wait for ever
            if self._shares:
                self._call()

    def _serve(self, share: _Share, now: float, end: float) -> float:
        """Work for the address until a time, or until the end of the work; the time after that."""
        if not self._is_known(share):
            return now
        later, owner = share.first()
        self.waiting -= 1
        outcome = None
        try:
            outcome = later.go_on(end - now)
            if outcome is later:
                share.add(later, owner)
                self.waiting += 1
            else:
                owner.settle(outcome)
        finally:
            if outcome is not later:
                self._release(share, owner)
            after = self._clock()
            share.served_seconds += after - now
            if share.waiting:
                heappush(self._least, share)
            self._forget_empty(share)
        return after


def _class_of(later: Later) -> int:
    return sum(later.used_seconds >= end for end in CLASSES_SECONDS)
