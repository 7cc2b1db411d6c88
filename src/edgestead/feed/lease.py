"""How long a consumer that runs user code may admit callers based on what it has applied.

Owns  the length of a lease, when one ends, the consumer's side of it.
Not   which callers are admitted; sending.

User code can keep its process from applying a change for as long as it likes, so writes do not wait for the
process itself: a change of who may call waits until every such process has applied it or has no lease, at
most LEASE_MS. Times are of CLOCK_MONOTONIC, which all processes of a machine share and which continues while
a process is stopped: when it runs again, its lease has expired.

While control is dead nobody changes who may call, so a lease that was valid at its death is until another one
may have acknowledged something (`outlives`).
"""

import time
from collections.abc import Callable

BEAT_MS = 150  # between two leases, and between two heartbeats
LEASE_MS = 800  # several of them: a single late one does not end a lease
"""A revocation takes that long while a process hangs. Callers of objects wait while control's loop stands
still for longer than LEASE_MS less BEAT_MS."""

Outlives = Callable[[int, int], bool]
"""Whether a lease until a time is still valid at a later one. Both are in microseconds, of the same clock."""


def never(until_us: int, now_us: int) -> bool:
    return False


def now_us() -> int:
    """The clock of leases, in whole microseconds."""
    return time.monotonic_ns() // 1000


class Lease:
    """The consumer's side. One thread writes it, any thread reads it."""

    def __init__(self, clock: Callable[[], int] = now_us, outlives: Outlives = never) -> None:
        """`clock` is in microseconds, the same clock as control's."""
        self._clock, self._outlives = clock, outlives
        self.until_us = 0
        """Until when what was applied may be gone by. Read it *before* what was applied, ask `holds` after:
        so no answer rests on a table that was older than the lease that covers it."""

    def holds(self, until_us: int) -> bool:
        """Whether a lease that was read earlier is still valid now."""
        now = self._clock()
        return now < until_us or self._outlives(until_us, now)
