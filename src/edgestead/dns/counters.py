"""The counters of this room and their sink.

Owns  the slots, the tally that keeps counting off the hot path, times by their bounds.
Not   names and text of metrics.
"""

from bisect import bisect_left
from enum import IntEnum, unique
from typing import Final, Protocol


@unique  # two names for one number would be counted as each other
class Slot(IntEnum):
    """One counter each. The rcodes come first and in the order of their numbers."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    OTHER_RCODE = 6
    QUERIES = 7
    TRUNCATED = 8
    DROPPED = 9
    CACHE_HITS = 10
    UNSENT = 11
    TCP_CONNECTIONS = 12
    TCP_OPEN = 13  # a gauge: it also decreases, and is 0 when the process starts
    LIMITED = 14
    SLIPPED = 15
    COOKIES_GOOD = 16
    TRANSFERS_WHOLE = 17
    TRANSFERS_CHANGES = 18
    TRANSFERS_CURRENT = 19
    TRANSFERS_REFUSED = 20
    NOTIFIES_ANSWERED = 21
    NOTIFIES_UNANSWERED = 22
    HANDSHAKES_DONE = 23
    HANDSHAKES_FAILED = 24
    QUERIES_TLS = 25
    QUERIES_HTTPS = 26


SLOTS: Final = len(Slot)
TIMES_US: Final = (25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000)
TOOK: Final = SLOTS  # queries answered within the first of TIMES_US, the next slot those of the second …
TOOK_US: Final = TOOK + len(TIMES_US) + 1  # what all of them took


class Counters(Protocol):
    """Counts are added from one thread, in intervals. `n` is negative when a gauge decreases.

    A slot is one of `Slot`, or from TOOK to TOOK_US.
    """

    def add(self, slot: int, n: int) -> None: ...


class NoCounters:
    """Counts nothing."""

    def add(self, slot: int, n: int) -> None:
        pass


class Tally:
    """Counts of one loop, by slot, in a plain list, the cheapest way."""

    __slots__ = ("_counters", "counts")

    def __init__(self, counters: Counters) -> None:
        self.counts = [0] * SLOTS
        self._counters = counters

    def took(self, us: int, queries: int) -> None:
        """So many queries were answered together within that time."""
        self._counters.add(TOOK + bisect_left(TIMES_US, us), queries)
        self._counters.add(TOOK_US, us * queries)

    def flush(self) -> None:
        """Pass on the counts since the last call."""
        for slot, n in enumerate(self.counts):
            if n:
                self._counters.add(slot, n)
                self.counts[slot] = 0
