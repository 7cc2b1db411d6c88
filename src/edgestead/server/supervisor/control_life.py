"""Whether control lives, in memory that the supervisor and control write, and others read.

Owns  which life of control began, opened and ended last, and when; what follows for a lease.
Not   whether control answers: one that hangs may go on at any moment, and acknowledge something.

The supervisor says that a life begins before it lists, for that life, who may be serving. So a process that
reads "away" is in the list of every control to come, and no control acknowledges a write before it has heard
of everybody in its list (`feed.promise`).
"""

import mmap
from collections.abc import Callable
from typing import Final

from edgestead.feed import lease

_BEGAN, _OPENED, _OPENED_US, _ENDED, _ENDED_US = range(5)
BYTES: Final = 40
_LEASE_US: Final = lease.LEASE_MS * 1000


class ControlLife:
    """Lives are numbered from 1. A time is written before the number that it belongs to, and read behind."""

    def __init__(
        self, descriptor: int, *, writes: bool = False, now_us: Callable[[], int] = lease.now_us
    ) -> None:
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)
        self._lives = memoryview(mmap.mmap(descriptor, BYTES, prot=protection)).cast("Q")
        self._now_us = now_us

    def begins(self) -> None:
        self._lives[_BEGAN] += 1

    def opens(self) -> None:
        """Control calls it before it changes or acknowledges anything."""
        self._lives[_OPENED_US] = self._now_us()
        self._lives[_OPENED] = self._lives[_BEGAN]

    def ends(self) -> None:
        """The process is dead."""
        if self._lives[_OPENED] == self._lives[_BEGAN]:  # one that never opened has acknowledged nothing
            self._lives[_ENDED_US] = self._now_us()
        self._lives[_ENDED] = self._lives[_BEGAN]

    @property
    def is_away(self) -> bool:
        return self._lives[_BEGAN] == self._lives[_ENDED]

    def outlives(self, until_us: int, now_us: int) -> bool:
        """As `feed.lease.Outlives`.

        the control that opened last    a lease of before its death
        lives                           until LEASE_MS after it opened: it waits for that long itself
        is dead                         valid, if it was when that control died
        """
        ended, opened = self._lives[_ENDED], self._lives[_OPENED]
        if until_us <= self._lives[_ENDED_US]:
            return False
        return opened <= ended or now_us < self._lives[_OPENED_US] + _LEASE_US
