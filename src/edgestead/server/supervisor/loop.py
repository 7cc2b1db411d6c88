"""The supervisor's event loop: descriptors, timers and signals, from the standard library alone.

Owns  waiting; what becomes of a callback that raises.
Not   anything about processes. asyncio would do, at four times the memory of the process that must not fail.

| the loop | an error of a callback |
| --- | --- |
| is lenient | is logged, and the loop goes on |
| is lenient, and it is the ERRORS_MAXth within ERRORS_SECONDS | ends it |
| is not | ends it |

A server that answers is not ended for one thing that could not be done. What goes wrong again and again is no
longer supervised: the callback of a descriptor, which stays readable, would also keep a processor busy and
fill the log. The process ends then, and its service manager makes a new one.
"""

import heapq
import logging
import os
import selectors
import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

STEP_SECONDS = 1.0
SIGNALS_READ_MAX = 64  # at once; the others are read in the next turn
ERRORS_MAX = 10  # of callbacks, in ERRORS_SECONDS, until the process ends
ERRORS_SECONDS = 60.0

_log = logging.getLogger("edgestead.server")


class Loop:
    """Call `run`; callbacks run on its thread, one at a time. `now` is a monotonic clock in seconds.

    `is_lenient` is for whoever uses it to set: while an error of a callback is better outlived than heard.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._running = True
        self._on_signal: dict[int, Callable[[], object]] = {}
        self._errors: deque[float] = deque(maxlen=ERRORS_MAX)  # when the last ones were
        self.is_lenient = False

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
            self._call(self._on_signal[number])

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            wait = max(0.0, self._timers[0][0] - self._now()) if self._timers else None
            for key, _ in self._selector.select(wait):
                # An earlier callback of this turn may have closed it, and its number may be in use again.
                if self._selector.get_map().get(key.fd) is key:
                    self._call(key.data)
            while self._timers and self._timers[0][0] <= self._now():
                self._call(heapq.heappop(self._timers)[2])

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception:
            if not self._outlives_error():
                raise
            _log.exception("something that the supervisor does failed; it goes on")

    def _outlives_error(self) -> bool:
        now = self._now()
        self._errors.append(now)
        is_again_and_again = len(self._errors) == ERRORS_MAX and self._errors[0] > now - ERRORS_SECONDS
        return self.is_lenient and not is_again_and_again
