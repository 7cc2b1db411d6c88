"""Whether a process does nothing at all although something was asked of it: it is stopped, or waits for ever.

Owns  what the kernel knows of a process's threads, and for how long that has not changed.
Not   what a process is asked, what follows from its stillness.

One that computes, waits for its turn on a processor or for a disk is not still, however busy the machine is:
so stillness may be noticed much sooner than silence, which has to be long enough for everything that is slow.
"""

import os
from pathlib import Path

_BUSY = frozenset("RD")  # proc(5): runs or may run, waits for a disk


def work_of(pid: int) -> int | None:
    """How long all threads of a process have run so far, in ns; None while one of them is busy.

    None, too, where the kernel does not say (no CONFIG_SCHED_INFO), or there is no such process.
    """
    ran_ns = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            place = Path(f"/proc/{pid}/task/{task}")
            if place.joinpath("stat").read_text().rpartition(")")[2].split()[0] in _BUSY:
                return None
            ran_ns += int(place.joinpath("schedstat").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return None
    return ran_ns


class Stillness:
    """For how long one process has been seen still. `look` at it now and then, while it owes something."""

    __slots__ = ("_ms", "_work")

    def __init__(self) -> None:
        self._ms, self._work = 0.0, -1

    def look(self, work: int | None, elapsed_ms: float) -> float:
        """`elapsed_ms` is the watcher's time since the last look. Returns for how many ms it is still."""
        if work is None or work != self._work:
            self._ms = 0.0
        else:
            self._ms += elapsed_ms
        self._work = -1 if work is None else work
        return self._ms

    def over(self) -> None:
        """It owes nothing any more."""
        self._ms, self._work = 0.0, -1
