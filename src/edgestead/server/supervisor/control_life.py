"""Whether control lives, in memory that the supervisor and control write, and others read.

Owns  which life of control began and ended last; the newest change of who may call that somebody may have
      been told of.
Not   whether control answers; what follows for callers (`feed.lease`).

The supervisor says that a life begins before it lists, for that life, who may be serving. So a process that
reads "away" is in the list of every control to come, and no control acknowledges a write before it has heard
of everybody in its list (`feed.promise`).

A process that has applied that change needs to hear nothing from control, whether that hangs or is dead: a
newer one stands here before anybody is told of it. That holds for a server of one machine. In a cluster
other machines tell, too, so nobody writes the number, and leases decide; but a life of control that frees the
office of the one before lets no lease of that count, which others need not wait for any more.
"""

import mmap
from typing import Final

_BEGAN, _ENDED, _TOLD = range(3)
BYTES: Final = 24
_MORE_THAN_ANYBODY_HAS: Final = 2**64 - 1


class ControlLife:
    """Lives are numbered from 1."""

    def __init__(self, descriptor: int, *, writes: bool = False) -> None:
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)
        self._words = memoryview(mmap.mmap(descriptor, BYTES, prot=protection)).cast("Q")

    def begins(self) -> None:
        self._words[_BEGAN] += 1

    def tells(self, sequence: int) -> None:
        """Control calls it before anybody can be told of that change of who may call."""
        self._words[_TOLD] = sequence

    def shuts(self) -> None:
        """Nobody is let in by anything, until `leases_decide`."""
        self._words[_TOLD] = _MORE_THAN_ANYBODY_HAS

    def leases_decide(self) -> None:
        self._words[_TOLD] = 0

    @property
    def told(self) -> int:
        """As `feed.lease.Told`."""
        return self._words[_TOLD]

    def ends(self) -> None:
        """The process is dead."""
        self._words[_ENDED] = self._words[_BEGAN]

    @property
    def is_away(self) -> bool:
        return self._words[_BEGAN] == self._words[_ENDED]
