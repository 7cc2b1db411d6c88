"""How long a consumer that runs user code may admit callers based on what it has applied.

Owns  the length of a lease, when one ends, the consumer's side of it.
Not   which callers are admitted; sending.

User code can keep its process from applying a change for as long as it likes, so writes do not wait for the
process itself. On one machine control writes into memory which change of who may call somebody may have been
told of, before it tells anybody, and a process goes by what it has while that covers it. Where other
machines tell, too, nobody writes that number: there a change waits until every such process has applied it
or has no lease, at most LEASE_MS. Times are of CLOCK_MONOTONIC, which all processes of a machine share and
which continues while a process is stopped: when it runs again, its lease has expired.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

BEAT_MS = 150  # between two leases, and between two heartbeats
LEASE_MS = 800  # several of them: a single late one does not end a lease
"""Where leases decide, in a cluster, a revocation takes that long while a process hangs, and callers of
objects wait while control's loop stands still for longer than LEASE_MS less BEAT_MS."""

Told = Callable[[], int]
"""The newest change of who may call that somebody may have been told of; 0 where nobody says."""


class Grant(NamedTuple):
    """Until when a process may go by what it has, and the sequence of the feed up to which it has everything:
    where control says what it has told, that alone counts.
    """

    until_us: int
    upto: int


def nobody_says() -> int:
    return 0


def now_us() -> int:
    """The clock of leases, in whole microseconds."""
    return time.monotonic_ns() // 1000


class Lease:
    """The consumer's side. One thread writes it, any thread reads it."""

    def __init__(self, clock: Callable[[], int] = now_us, told: Told = nobody_says) -> None:
        """`clock` is in microseconds, the same clock as control's."""
        self._clock, self._told = clock, told
        self.grant = Grant(0, -1)
        """By which what was applied may be gone by. Read it *before* what was applied, ask `holds` after:
        so no answer rests on a table that was older than the grant that covers it."""

    def applied(self, upto: int) -> None:
        """More was applied; that says nothing about the time."""
        self.grant = Grant(self.grant.until_us, upto)

    def holds(self, grant: Grant) -> bool:
        """Whether one that was read earlier is still valid now."""
        if told := self._told():
            return told <= grant.upto
        return self._clock() < grant.until_us
