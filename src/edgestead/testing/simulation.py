"""A loop on invented time, and slow work on it: every run can be repeated by its number.

Owns  `SimulatedLoop`, `SimulatedRunner`.
Not   disks (`disks`).
"""

import asyncio
import contextlib
import random as random_module
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
LAST_TURNS_MAX = 10
EPOCH_SECONDS = 1_700_000_000  # kept apart from the loop's time, which needs its small fractions


class Deadlock(Exception):
    """Everybody waits for somebody, and no timer is left."""


class _NoSelector:
    """Where a real loop would wait for sockets, time is moved instead."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock(f"at {self._loop.now:.6f} s")
        self._loop.now += timeout
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop whose clock jumps to the next timer, and which runs what is ready in any order.

    With `in_order` that is the order in which it became ready, as on a real loop. `epoch_us` is what the
    wall clock says when `now` is 0; it may be changed at any time.
    """

    def __init__(self, random: random_module.Random, *, in_order: bool = False) -> None:
        super().__init__()
        self.now = 0.0
        self.epoch_us = EPOCH_SECONDS * 1_000_000
        self._in_order = in_order
        self.skew_seconds = 0.0  # by which the wall clock is off: set it to make that clock jump
        self.random = random
        self.watch: Callable[[], None] = lambda: None  # asked in each turn; what it raises ends the run
        self.failure: BaseException | None = None  # of a callback: ends the run
        self._selector = _NoSelector(self)

    def time(self) -> float:
        return self.now

    def now_us(self) -> int:
        """The same clock in microseconds since the epoch."""
        return self.epoch_us + int((self.now + self.skew_seconds) * 1_000_000)

    def now_ms(self) -> int:
        return self.now_us() // 1_000

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _run_once(self) -> None:
        if not self._in_order:
            ready: deque[Any] = self._ready  # type: ignore[attr-defined]
            shuffled = list(ready)
            self.random.shuffle(shuffled)
            ready.clear()
            ready.extend(shuffled)
        super()._run_once()  # type: ignore[misc]
        self.watch()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if "handle" in context:
            self.failure = context.get("exception")
        else:
            super().call_exception_handler(context)


class SimulatedRunner:
    """Slow work that takes an invented time of up to `seconds_max`; results come back on the loop."""

    def __init__(self, loop: SimulatedLoop, seconds_max: float = 0.002) -> None:
        self._loop, self._seconds_max = loop, seconds_max
        self._queue: deque[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = deque()
        self._busy = False

    def run(self, job: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        self._queue.append((job, done))
        if not self._busy:
            self._busy = True
            self._loop.call_later(self._loop.random.uniform(0, self._seconds_max), self._next)

    def _next(self) -> None:
        if self._queue:
            self._one()
        if self._queue:
            self._loop.call_later(self._loop.random.uniform(0, self._seconds_max), self._next)
        else:
            self._busy = False

    def _one(self) -> None:
        job, done = self._queue.popleft()
        try:
            result, error = job(), None
        except Exception as raised:
            result, error = None, raised
        done(result, error)

    def drain(self) -> None:
        while self._queue:
            self._one()

    def close(self) -> None:
        self.drain()


def simulate(main: Callable[[SimulatedLoop], Coroutine[Any, Any, T]], seed: int) -> T:
    """Run a coroutine on a simulated loop with that number. What fails is raised."""
    loop = SimulatedLoop(random_module.Random(seed))
    loop.set_debug(False)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.watch = lambda: None
        try:
            _cancel_all(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _cancel_all(loop: SimulatedLoop) -> None:
    """End every task, also those that others begin on their way out: a task that never ran is a warning."""
    for turn in range(LAST_TURNS_MAX):
        tasks = asyncio.all_tasks(loop)
        if not tasks and turn:
            break
        for task in tasks:
            task.cancel()
        with contextlib.suppress(*((Exception,) if turn else ())):
            loop.run_until_complete(asyncio.sleep(0))
