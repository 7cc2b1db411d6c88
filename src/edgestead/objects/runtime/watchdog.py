"""Ends a process whose loop stands still, and says which class holds it.

Owns  the beat of the loop, the thread that listens to it, the words about who is to blame.
Not   ending slow events: one that awaits may take as long as it likes.

User code that computes, or calls something that blocks, stops every object of its process. A thread sees that
the loop has not beaten for so long. C code that also keeps the interpreter's lock stops that thread too, and
no other code of ours runs in the process then: somebody outside hears the same beats, and ends it.

Both count time in ticks of their own. A timer of the kernel would not do: one of CLOCK_MONOTONIC
(`faulthandler.dump_traceback_later`, tried) is over at once in a process that was stopped for as long, and
one of the process's CPU time never is while code waits with the lock held.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType

from edgestead.objects.runtime.classes import StatefulObject

BEATS = 8  # in the time that is allowed
BEAT_SECONDS_MAX = 1.0  # between two, however long is allowed: what those outside expect


class Watchdog:
    """Make it on the loop's thread. `beaten` is called with each beat, `blocked` once, by another thread:

    then the process has to be ended.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        blocked: Callable[[str], None],
        beaten: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop, self._seconds, self._blocked, self._told = loop, seconds, blocked, beaten
        self._watched = threading.get_ident()
        self._beaten = True
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        self._beaten = True
        self._told()
        self._timer = self._loop.call_later(min(self._seconds / BEATS, BEAT_SECONDS_MAX), self._beat)

    def _watch(self) -> None:
        missed = 0
        while not self._ended.wait(self._seconds / BEATS):
            missed = 0 if self._beaten else missed + 1
            self._beaten = False
            if missed >= BEATS:
                self._blocked(f"{self._culprit()} blocked its process for {self._seconds:g} s")
                return

    def _culprit(self) -> str:
        try:
            return _who(sys._current_frames().get(self._watched))
        except Exception as error:  # user code may have replaced what is read; the process ends all the same
            return f"code that cannot be named ({error!r})"


def _who(frame: FrameType | None) -> str:
    """The innermost object on a stack, and the place where it is."""
    while frame is not None:
        made = frame.f_locals.get("self")
        if isinstance(made, StatefulObject):
            code = frame.f_code
            name = made.ctx.id.name or str(made.ctx.id)
            place = f"{code.co_filename}:{frame.f_lineno}"
            return f"class {type(made).__name__} (object {ascii(name)[:100]}), in {code.co_name} at {place},"
        frame = frame.f_back
    return "code that belongs to no object"
