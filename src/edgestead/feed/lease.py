"""How long a consumer that runs user code may let callers in by what it has applied.

Owns  the length of a lease, the moment at which one ends, the consumer's end of it.
Not   who is let in; sending.

User code can keep its process from applying a change for as long as it likes, so nobody waits for the
process: a change of who may call waits until every such process has applied it or has no lease, which takes
at most LEASE_MS. Times are of CLOCK_MONOTONIC, which is one clock for all processes of a machine and goes on
while one of them is stopped: the first thing that a process sees when it wakes is that its lease is over.
"""

import time
from collections.abc import Callable

BEAT_MS = 500  # between two leases, and between two questions whether a consumer lives
LEASE_MS = 2_000  # several of them: one that is late ends nothing


def now_us() -> int:
    """The clock of leases, in whole microseconds."""
    return time.monotonic_ns() // 1000


class Lease:
    """The consumer's end. One thread writes it, any other one reads it."""

    def __init__(self, clock: Callable[[], int] = now_us) -> None:
        """`clock` is in microseconds, of the clock that control has."""
        self._clock = clock
        self.until_us = 0
        """Until when what was applied may be gone by. Read it *before* what was applied, ask `holds` after:
        so no answer rests on a table that was older than the lease that covers it."""

    def holds(self, until_us: int) -> bool:
        """Whether a lease that was read before still covers this moment."""
        return self._clock() < until_us
