"""Writes that wait until every process has applied a sequence.

Owns  the futures, in the order of their sequences, and their deadlines.
Not   what the processes have applied.
"""

import asyncio
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple


class _Waiter(NamedTuple):
    sequence: int
    number: int  # futures have no order
    deadline_ms: float
    future: asyncio.Future[None]


class Waiters:
    def __init__(self) -> None:
        self._heap: list[_Waiter] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, sequence: int, deadline_ms: float, future: asyncio.Future[None]) -> None:
        heappush(self._heap, _Waiter(sequence, next(self._numbers), deadline_ms, future))

    def release_upto(self, sequence: int) -> None:
        while self._heap and self._heap[0].sequence <= sequence:
            _release(heappop(self._heap))

    def release_overdue(self, now_ms: float) -> int:
        """Release the futures whose deadline is over; returns how many."""
        overdue = [waiter for waiter in self._heap if waiter.deadline_ms <= now_ms]
        if overdue:
            self._heap = [waiter for waiter in self._heap if waiter.deadline_ms > now_ms]
            heapify(self._heap)
            for waiter in overdue:
                _release(waiter)
        return len(overdue)

    def release_all(self) -> None:
        while self._heap:
            _release(self._heap.pop())


def _release(waiter: _Waiter) -> None:
    if not waiter.future.done():  # its caller may have been cancelled
        waiter.future.set_result(None)
