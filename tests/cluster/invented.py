"""Invented time for processes that ask one database: late and lost statements, pauses, partitions, outages.

Owns  the clock, when a statement arrives and its answer does, and the faults that all worlds share.
Not   what processes do; what the database answers; the judge.
"""

import heapq
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Protocol

DEADLINE_MS = 900
LATENCIES_MS = (1, 1, 2, 5)  # the usual ones
LOST = object()


class Process(Protocol):
    node: str
    alive: bool
    paused_until: float


class Invented:
    """`cut_pairs` are ends between which nothing arrives: nodes, and "" for the database."""

    NODES: tuple[str, ...]
    database: Any  # `execute(node, ask)`: statements are atomic, and happen when they arrive
    processes: Mapping[str, Any]

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self._events: list[tuple[float, int, Process | None, Callable[[], Any]]] = []
        self._count = 0
        self.cut_pairs: set[tuple[str, str]] = set()
        self.is_faulty = self.is_up = True

    # Time and statements.

    def at(self, delay_ms: float, process: Process | None, fn: Callable[[], Any]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + delay_ms, self._count, process, fn))

    def after(self, process: Process, delay_ms: float, fn: Callable[[], Any]) -> None:
        self.at(delay_ms, process, fn)

    def run_until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, process, fn = heapq.heappop(self._events)
            if process is not None and not process.alive:
                continue
            if process is not None and process.paused_until > self.now:
                self.at(process.paused_until - self.now, process, fn)
                continue
            fn()
        self.now = end

    def _latency(self) -> float:
        """Of one draw: these are a third of what a schedule computes."""
        drawn = self.random.random()
        if drawn > 0.95 and self.is_faulty:
            return 5 + (drawn - 0.95) * 395 / 0.05
        return LATENCIES_MS[int(drawn * len(LATENCIES_MS))]

    def _arrival(self, ask: Any) -> float:
        """Of a statement at the database."""
        return self._latency()

    def _is_lost(self, ask: Any) -> bool:
        """Whether the answer to it is."""
        return self.is_faulty and self.random.random() < 0.01

    def ask(self, process: Process, ask: Any, answered: Callable[[Any], None]) -> None:
        """A statement: it arrives or does not, is late, or its answer is lost."""
        node, until = process.node, self.now + DEADLINE_MS

        def lose() -> None:
            self.at(max(until - self.now, 0), process, partial(answered, LOST))

        def arrive() -> None:
            if not self.is_up or (node, "") in self.cut_pairs:
                lose()
                return
            result = self.database.execute(node, ask)
            is_lost = ("", node) in self.cut_pairs or self._is_lost(ask)
            latency = self._latency()
            if is_lost or self.now + latency > until:
                lose()
            else:
                self.at(latency, process, partial(answered, result))

        def arrive_late() -> None:  # nobody listens any more
            if self.is_up and (node, "") not in self.cut_pairs:
                self.database.execute(node, ask)

        arrival = self._arrival(ask)
        if arrival < DEADLINE_MS:
            self.at(arrival, None, arrive)
        else:
            self.at(arrival, None, arrive_late)
            lose()

    # Faults.

    def pause(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        # Never shortened: what waits for the end of a longer pause would come after what happens since.
        until = self.now + self.random.choice((100, 900, 2_500, 10_000))
        process.paused_until = max(process.paused_until, until)

    def cut_one_way(self) -> None:
        ends = [*self.NODES, ""]
        source, to = self.random.sample(ends, 2)
        self.cut_pairs.add((source, to))
        if self.random.random() < 0.5:
            self.cut_pairs.add((to, source))

    def flap(self) -> None:
        self.is_up = False
        self.at(self.random.choice((50, 400, 5_000)), None, self._database_up)

    def _database_up(self) -> None:
        self.is_up = True

    def heal(self) -> None:
        self.cut_pairs.clear()
