"""Alarms: when each object's handler runs, and when it runs again.

Owns  the timer of a node, which alarms are running, the back-off after a failure.
Not   the alarm's time, which is part of an object's commits (`engine`); its handler (`instance`).

The log knows every alarm, so nothing here has to outlive the process: an alarm leaves the log only by the
commit of a handler that succeeded, by six retries, or by its object. The timer never sleeps for more than a
second, so that a clock that jumps is noticed.

Source: spec "Events"; the reference's back-off: 2 s, doubling, with up to a quarter more, six times.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context

import msgspec

from edgestead.store.alarms import Alarms as DueAlarms
from edgestead.store.objectlog import ObjectRef

log = logging.getLogger(__name__)

LOOK_SECONDS_MAX = 1.0  # between two looks at the clock: it may have been set
TAKEN_AT_ONCE = 64  # begun in one turn of the loop, before others are served
RUNNING_MAX = 4_096  # handlers at once; others are late
RETRIES_MAX = 6  # of an alarm whose handler raised; then it is dropped, as in the reference runtime
RETRY_SECONDS = 2.0
JITTER = 0.25
UNCOUNTED_SECONDS = 2.0  # until an alarm is tried again that failed for no fault of its object
HANDLER_SECONDS_MAX = 15 * 60.0  # of one alarm, as in the reference runtime; then it counts as failed

Seconds = float
NEVER: Seconds = -1.0


class AlarmInfo(msgspec.Struct, frozen=True):
    """What a handler `async def alarm(self, info)` is told: which time came, which try this is."""

    scheduled_time: int
    """Milliseconds since the epoch: when this run was due."""
    retry_count: int

    @property
    def is_retry(self) -> bool:
        return self.retry_count > 0

    @property
    def scheduledTime(self) -> int:
        return self.scheduled_time

    @property
    def retryCount(self) -> int:
        return self.retry_count

    @property
    def isRetry(self) -> bool:
        return self.is_retry


def pack_time(time_ms: int, failures: int = 0) -> int:
    """An alarm as it is logged: microseconds, of which those below a millisecond count the failures."""
    return time_ms * 1_000 + failures


def unpack_time(alarm_us: int) -> tuple[int, int]:
    """(milliseconds, failures)"""
    return divmod(alarm_us, 1_000)


def retry_time(now_ms: int, failures: int, chance: float) -> int | None:
    """The alarm after so many failures, packed; None when it is given up. `chance` is within 0 and 1."""
    if failures > RETRIES_MAX:
        return None
    seconds = RETRY_SECONDS * 2 ** (failures - 1) * (1 + JITTER * chance)
    return pack_time(now_ms + int(seconds * 1_000), failures)


class Alarms:
    """The alarms of one node.

    `run` runs one, and says after how many seconds to look at it again, or NEVER.
    """

    def __init__(
        self,
        due: DueAlarms,
        loop: asyncio.AbstractEventLoop,
        now_us: Callable[[], int],
        run: Callable[[ObjectRef], Awaitable[Seconds]],
    ) -> None:
        self._due, self._loop, self._now_us, self._run = due, loop, now_us, run
        self.look_seconds_max = LOOK_SECONDS_MAX  # longer where no clock jumps unseen
        self._timer: asyncio.Handle | None = None
        self._timer_us = 0  # when it goes off; 0 without a timer
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._open = False

    def start(self) -> None:
        """Begin. What became due while nobody looked runs at once."""
        self._open = True
        self._due.on_set = self._changed
        self.look()

    def close(self) -> None:
        """Begin no more. Those that run go on."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()

    def is_running(self, ref: ObjectRef) -> bool:
        return (ref.class_name, ref.id) in self._running

    async def run_now(self, ref: ObjectRef) -> None:
        """Run an alarm that is due without waiting for the timer, and wait for the end of that run."""
        self._begin(ref)
        await asyncio.wait([self._running[ref.class_name, ref.id]])

    @property
    def running_count(self) -> int:
        return len(self._running)

    def _changed(self, time_us: int) -> None:
        """The log was told of an alarm."""
        if self._open and (not self._timer_us or time_us < self._timer_us):
            self._set_timer(time_us)

    def _set_timer(self, time_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        now_us = self._now_us()
        seconds = min(max(0.0, (time_us - now_us) / 1e6), self.look_seconds_max)
        self._timer_us = now_us + int(seconds * 1e6)
        self._timer = self._loop.call_later(seconds, self.look)

    def look(self) -> None:
        """Begin what is due, and set the timer for the rest. Also to be called when the clock was set."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_us = None, 0
        if not self._open:
            return
        room = min(TAKEN_AT_ONCE, RUNNING_MAX - len(self._running))
        try:
            due = self._due.take(self._now_us(), room)
        except Exception:
            log.exception("which alarms are due cannot be read; trying again")
            self._set_timer(self._now_us() + int(UNCOUNTED_SECONDS * 1e6))
            return
        for _, ref in due:
            self._begin(ref)
        self._set_next()

    def _begin(self, ref: ObjectRef) -> None:
        key = (ref.class_name, ref.id)
        if key not in self._running:  # else it is looked at when that run has ended
            self._running[key] = self._loop.create_task(self._wait_for(key, ref), context=Context())

    async def _wait_for(self, key: tuple[str, str], ref: ObjectRef) -> None:
        try:
            seconds = await self._run(ref)
        except Exception:
            log.exception("the alarm of %s/%s", ref.class_name, ref.name or ref.id)
            seconds = UNCOUNTED_SECONDS
        finally:
            del self._running[key]
        if seconds > 0:
            self._loop.call_later(seconds, self._give_back, ref)
        elif seconds == 0:
            self._give_back(ref)
        self._set_next()

    def _give_back(self, ref: ObjectRef) -> None:
        if not self._open:
            return
        try:
            self._due.give_back(ref)  # if it is still there, that sets the timer
        except Exception:
            log.exception("the alarm of %s/%s waits", ref.class_name, ref.name or ref.id)
            self._loop.call_later(UNCOUNTED_SECONDS, self._give_back, ref)

    def _set_next(self) -> None:
        """Set the timer for the next alarm, unless it is set or nothing more can run."""
        next_us = self._due.next_us() if self._open else None
        if next_us is not None and not self._timer_us and len(self._running) < RUNNING_MAX:
            self._set_timer(next_us)
