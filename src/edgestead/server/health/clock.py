"""Whether the wall clock goes forward.

Owns  comparing it with the clock that nobody sets, and with the files of the data folder.
Not   keeping it right.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

STEP_SECONDS = 1.0  # what slewing and a late look explain
MEMORY_SECONDS = 3_600.0  # how long a step back is remembered
_MICROSECONDS = 1_000_000


def newest_file_us(folder: Path) -> int:
    """When the newest file of a folder was changed; 0 in one that is empty. Call before changing any."""
    newest = 0
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                newest = max(newest, path.stat().st_mtime_ns // 1_000)
    return newest


def _boot_seconds() -> float:
    """Goes on while the machine sleeps, as the wall clock does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ClockWatch:
    """`files_us` is the newest file's time at the start. Call `look` every few seconds."""

    def __init__(
        self,
        files_us: int,
        *,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
        steady: Callable[[], float] = _boot_seconds,
    ) -> None:
        self._files_us = files_us
        self._now_us = now_us
        self._steady = steady
        self._offset = self._measure()
        self._back_seconds, self._back_at = 0.0, 0.0

    def look(self) -> None:
        offset = self._measure()
        if self._offset - offset > STEP_SECONDS:
            self._back_seconds, self._back_at = self._offset - offset, self._steady()
        self._offset = offset

    @property
    def back_seconds(self) -> float:
        """How far the last step back went; 0 when it was long ago."""
        recent = self._back_seconds and self._steady() - self._back_at < MEMORY_SECONDS
        return self._back_seconds if recent else 0.0

    @property
    def behind_seconds(self) -> float:
        """How far the clock is behind a file that was there at the start."""
        return max(0.0, (self._files_us - self._now_us()) / _MICROSECONDS)

    def _measure(self) -> float:
        return self._now_us() / _MICROSECONDS - self._steady()
