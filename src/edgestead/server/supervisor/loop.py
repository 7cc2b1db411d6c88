"""The supervisor's event loop: descriptors, timers and signals, from the standard library alone.

Owns  waiting.
Not   anything about processes. asyncio would do, at four times the memory of the process that must not fail.
"""

import heapq
import os
import selectors
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

STEP_SECONDS = 1.0
SIGNALS_READ_MAX = 64  # at once; the others are read in the next turn


class Loop:
    """Call `run`; callbacks run on its thread, one at a time. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._running = True
        self._on_signal: dict[int, Callable[[], object]] = {}

    def watch(self, fd: int, callback: Callable[[], object]) -> None:
        """Call whenever `fd` is readable, until `forget`."""
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def forget(self, fd: int) -> None:
        with suppress(KeyError):  # forgotten already
            self._selector.unregister(fd)

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call once. There is no cancelling: a callback checks whether it is still wanted."""
        heapq.heappush(self._timers, (self._now() + seconds, next(self._order), callback))

    def after_running(self, seconds: float, callback: Callable[[], None]) -> None:
        """The same for time that somebody is given: only time in which this loop could run is counted.

        In steps, of which a machine that slept or a process that was stopped uses up one.
        """
        step = min(seconds, STEP_SECONDS)
        left = seconds - step
        self.after(step, partial(self.after_running, left, callback) if left > 0 else callback)

    def on_signals(self, numbers: tuple[signal.Signals, ...], callback: Callable[[], object]) -> None:
        """Call for each arrival of any of these signals; arrivals within one turn may count as one."""
        if not self._on_signal:
            read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            signal.set_wakeup_fd(write, warn_on_full_buffer=False)
            self.watch(read, partial(self._arrived, read))
        for number in numbers:
            self._on_signal[number] = callback
            signal.signal(number, lambda *_: None)

    def _arrived(self, read: int) -> None:
        for number in os.read(read, SIGNALS_READ_MAX):
            self._on_signal[number]()

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            wait = max(0.0, self._timers[0][0] - self._now()) if self._timers else None
            for key, _ in self._selector.select(wait):
                # An earlier callback of this turn may have closed it, and its number may be in use again.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            while self._timers and self._timers[0][0] <= self._now():
                heapq.heappop(self._timers)[2]()
