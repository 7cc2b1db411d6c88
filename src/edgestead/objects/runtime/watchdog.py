"""Ends a process whose loop stands still, or that has grown too large, and says which object caused it.

Owns  the beat of the loop, the thread that listens to it, the rule by which somebody is blamed.
Not   ending slow events: one that awaits takes as long as it likes; what follows from blame (`quarantine`).

User code that computes, or calls something that blocks, stops every object of its process:

                     one mark, tick after tick         another mark, or none
    turning ───────► held, by that object ──┐        ┌─► standing ──────────────────┐
       ▲                     │ OVERDUE ─────┼► end   │      │ STANDING_SECONDS_MAX ──┼► end, nobody to blame
       └──── a beat ─────────┴──────────────┼────────┴──────┘                        │
                                            └─ the mark goes on ─────────────────────┘

A tick is worth its usual length at most, less the time that the loop's thread waited for a processor, and
nothing while it waits for the disk: a busy machine and a slow disk are no object's doing. While others wait
for the loop, the whole tick counts, too, for who has had a part of the limit (`model.overdue`). Many events
in one turn of the loop are many marks, so none of them is blamed for the others.

C code that also keeps the interpreter's lock stops this thread too, and no other code of ours runs in the
process then: somebody outside hears the ticks, and ends it.

A timer of the kernel would not do: one of CLOCK_MONOTONIC (`faulthandler.dump_traceback_later`, tried) is
over at once in a process that was stopped for as long, and one of the process's CPU time never is while code
waits with the lock held.
"""

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import NamedTuple

from edgestead.model.overdue import counted, is_over
from edgestead.objects.runtime.classes import StatefulObject
from edgestead.store.objectlog import ObjectRef

TICKS = 8  # in the time that is allowed; eighths of quarter seconds add up exactly, others may need one more
TICK_SECONDS_MAX = 1.0  # however long is allowed: what those outside expect
STANDING_SECONDS_MAX = 15.0  # of a loop that stands still under no one object's code; twice the limit if more
GROWTHS_MAX = 64  # that are remembered: the newest
GROWTH_BYTES_MIN = 1 << 20  # in one tick; less is everybody's


Waits = tuple[float, bool]
"""Why a thread does not run, which is nobody's doing: how many seconds it waited for a processor since it
began, and whether it waits for a disk now."""


class Verdict(NamedTuple):
    """Why a process has to be ended. `mark` is of the object's event that caused it, 0 nobody's."""

    mark: int
    words: str


class Judge:
    """The table above, without threads and clocks. `mark` is the stage's, of what runs."""

    def __init__(self, block_seconds: float, tick_seconds: float) -> None:
        self._block_seconds, self._tick_seconds = block_seconds, tick_seconds
        self._held = self._passed = self._standing = 0.0
        self._mark, self._waited_seconds = 0, 0.0

    def tick(
        self,
        has_beaten: bool,
        mark: int,
        waits: Waits,
        *,
        elapsed_seconds: float | None = None,
        somebody_waits: bool = False,
    ) -> Verdict | None:
        """Look once, so long after the last time; a tick, if that is not said.

        `somebody_waits`: there is something that the loop would turn to now.
        """
        waited_seconds, on_disk = waits
        waited, self._waited_seconds = waited_seconds - self._waited_seconds, waited_seconds
        before, self._mark = self._mark, mark
        if has_beaten:
            self._held = self._passed = self._standing = 0.0
            return None
        elapsed = self._tick_seconds if elapsed_seconds is None else elapsed_seconds
        own, passed = (0.0, 0.0) if on_disk else counted(self._tick_seconds, elapsed, waited)
        self._standing += own
        if mark and mark == before:
            self._held, self._passed = self._held + own, self._passed + passed
        else:
            self._held = self._passed = 0.0
        if is_over(self._held, self._passed, self._block_seconds, somebody_waits=somebody_waits):
            had_its_time = self._held >= self._block_seconds
            took = f"{self._block_seconds:g}" if had_its_time else f"{self._passed:.1f}"
            return Verdict(mark, f"blocked its process for {took} s")
        if self._standing >= max(2 * self._block_seconds, STANDING_SECONDS_MAX):
            return Verdict(0, f"kept its process from everything else for {self._standing:.0f} s")
        return None


class Growth:
    """Under whose code the process has grown lately."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._before_bytes = bytes_max
        self._growths: deque[tuple[int, int]] = deque(maxlen=GROWTHS_MAX)

    def tick(self, resident_bytes: int, mark: int) -> Verdict | None:
        """Look once. Who caused half of the newest growth is to blame, else nobody."""
        grown, self._before_bytes = resident_bytes - self._before_bytes, resident_bytes
        if grown >= GROWTH_BYTES_MIN:
            self._growths.append((mark, grown))
        if resident_bytes <= self._bytes_max:
            return None
        by_mark: dict[int, int] = {}
        for one, size in self._growths:
            by_mark[one] = by_mark.get(one, 0) + size
        most = max(by_mark, key=lambda one: by_mark[one], default=0)
        if 2 * by_mark.get(most, 0) < sum(by_mark.values()):
            most = 0
        return Verdict(
            most, f"made its process larger than {self._bytes_max >> 20} MiB ({resident_bytes >> 20} MiB)"
        )


class Process(NamedTuple):
    """What is looked at. `mark` and `who` are the stage's; `waits` are those of the loop's thread.

    `somebody_waits`: whether the loop would find anything to do if it turned now.
    """

    mark: Callable[[], int]
    who: Callable[[int], ObjectRef | None]
    waits: Callable[[], Waits]
    resident_bytes: Callable[[], int]
    somebody_waits: Callable[[], bool] = lambda: False


class Watchdog:
    """Make it on the loop's thread. Another thread calls `ticked` with each tick, and `over` once:

    then the process has to be ended.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        process: Process,
        over: Callable[[Verdict], None],
        ticked: Callable[[], None] = lambda: None,
        *,
        block_seconds: float,
        memory_bytes_max: int,
    ) -> None:
        self._loop, self._process, self._over, self._ticked = loop, process, over, ticked
        self._seconds = min(block_seconds / TICKS, TICK_SECONDS_MAX)
        self._judge, self._growth = Judge(block_seconds, self._seconds), Growth(memory_bytes_max)
        self._watched = threading.get_ident()
        self._beaten = True
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._ticked()  # before any code of users: who never gave a sign is not waited for
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        self._beaten = True
        self._timer = self._loop.call_later(self._seconds / 2, self._beat)

    def _watch(self) -> None:
        looked = monotonic()
        while not self._ended.wait(self._seconds):
            before, looked = looked, monotonic()
            self._ticked()
            beaten, self._beaten = self._beaten, False
            mark = self._process.mark()
            verdict = self._judge.tick(
                beaten,
                mark,
                self._process.waits(),
                elapsed_seconds=looked - before,
                somebody_waits=self._process.somebody_waits(),
            )
            verdict = verdict or self._growth.tick(self._process.resident_bytes(), mark)
            if verdict is not None:
                self._over(verdict._replace(words=f"{self._culprit(verdict.mark)} {verdict.words}"))
                return

    def _culprit(self, mark: int) -> str:
        try:
            ref = self._process.who(mark)
            place = _where(sys._current_frames().get(self._watched))
        except Exception as error:  # user code may have replaced what is read; the process ends all the same
            return f"code that cannot be named ({error!r})"
        if ref is None:
            return f"code that belongs to no object{place}"
        return f"class {ref.class_name} (object {ascii(ref.name or ref.id)[:100]}){place}"


def _where(frame: FrameType | None) -> str:
    """The place of the innermost object's code on a stack, if there is any."""
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), StatefulObject):
            code = frame.f_code
            return f", in {code.co_name} at {code.co_filename}:{frame.f_lineno},"
        frame = frame.f_back
    return ""
