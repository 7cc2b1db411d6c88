"""Ends a process whose loop stands still, and says which class holds it.

Owns  the beat of the loop, the thread that listens to it, the words about who is to blame.
Asks  the interpreter for the loop's stack; `faulthandler` where that thread cannot run either.
Tells its caller once, through `blocked`, which has to end the process.
Not   ending slow events: one that awaits may take as long as it likes.

User code that computes, or calls something that blocks, stops every object of its process. A thread sees that
the loop has not beaten for so long. C code that also keeps the interpreter's lock stops that thread too: then
`faulthandler`, which needs no lock, prints the stack and ends the process.
"""

import asyncio
import faulthandler
import sys
import threading
from collections.abc import Callable
from types import FrameType

from edgestead.objects.classes import StatefulObject

BEATS = 8  # in the time that is allowed
_LOCKED_FACTOR = 2  # times that, until a process that holds the interpreter's lock is ended


class Watchdog:
    """Make it on the loop's thread. Time is counted in ticks: a machine that stood still is not blamed."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, blocked: Callable[[str], None]
    ) -> None:
        self._loop, self._seconds, self._blocked = loop, seconds, blocked
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
        faulthandler.cancel_dump_traceback_later()

    def _beat(self) -> None:
        self._beaten = True
        faulthandler.dump_traceback_later(_LOCKED_FACTOR * self._seconds, exit=True)
        self._timer = self._loop.call_later(self._seconds / BEATS, self._beat)

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
