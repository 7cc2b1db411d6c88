"""Whether control lives, in memory that the supervisor writes and DNS processes read.

Owns  two numbers: lives of control that began, and that ended.
Not   whether control answers: one that hangs may go on at any moment, and acknowledge something.

The supervisor says that a life begins before it lists, for that life, who may be serving. So a process that
reads "away" is in the list of every control to come, and no control acknowledges a write before it has heard
of everybody in its list (`feed.promise`).
"""

import mmap
from typing import Final

BYTES: Final = 16


class ControlLife:
    def __init__(self, descriptor: int) -> None:
        self._lives = memoryview(mmap.mmap(descriptor, BYTES)).cast("Q")

    def begins(self) -> None:
        self._lives[0] += 1

    def ends(self) -> None:
        self._lives[1] = self._lives[0]

    @property
    def is_away(self) -> bool:
        return self._lives[0] == self._lives[1]
