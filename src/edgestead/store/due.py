"""The alarms of all objects, by time.

Owns  which alarm is due next, and which ones are taken.
Not   when an alarm becomes durable; objects, which are numbers here (`directory`).
"""

import heapq
from collections.abc import Callable
from typing import Protocol

from edgestead.store.objectlog import ObjectRef

HEAP_SLACK = 1_000  # outdated times that the heap may contain


class Numbered(Protocol):
    @property
    def ref(self) -> ObjectRef: ...


class DueAlarms:
    """`Alarms` in memory; the log has them durably."""

    def __init__(
        self, number_of: Callable[[ObjectRef], int | None], numbered: Callable[[int], Numbered | None]
    ) -> None:
        self.on_set: Callable[[int], None] = lambda time_us: None
        self._number_of, self._numbered = number_of, numbered
        self._times: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self._taken: set[int] = set()

    def set(self, number: int, time_us: int | None) -> None:
        """Set or delete an alarm, as an object's commit says."""
        if time_us is None:
            self._times.pop(number, None)
            self._taken.discard(number)
        elif self._times.get(number) != time_us or number in self._taken:
            self._times[number] = time_us
            self._taken.discard(number)
            self._push(time_us, number)

    def _push(self, time_us: int, number: int) -> None:
        heapq.heappush(self._heap, (time_us, number))
        if len(self._heap) > HEAP_SLACK + 2 * len(self._times):  # moved alarms leave an outdated entry
            self._heap = [(at_us, one) for one, at_us in self._times.items() if one not in self._taken]
            heapq.heapify(self._heap)
        self.on_set(time_us)

    def take(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        found: list[tuple[int, ObjectRef]] = []
        while self._heap and len(found) < limit and self._heap[0][0] <= before_us:
            time_us, number = self._heap[0]
            if self._times.get(number) == time_us and number not in self._taken:
                try:
                    known = self._numbered(number)
                except Exception:
                    if found:  # these are taken, and the next call raises
                        break
                    raise
                self._taken.add(number)
                if known is not None:
                    found.append((time_us, known.ref))
            heapq.heappop(self._heap)
        return found

    def give_back(self, ref: ObjectRef) -> None:
        number = self._number_of(ref)
        if number is not None and number in self._taken:
            self._taken.discard(number)
            self._push(self._times[number], number)

    def next_us(self) -> int | None:
        heap = self._heap
        while heap and (heap[0][1] in self._taken or self._times.get(heap[0][1]) != heap[0][0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None
