"""Whether this node's clock of the day is the leader's.

Owns  comparing the times of entries with when they arrive.
Not   leases and order: no clock of the day is asked for them.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

SAMPLES: Final = 5  # entries: the way of one may take long, of five in a row hardly
SAMPLE_SECONDS_MAX: Final = 300.0  # of an entry's age: the clock may have been set right since
_SECOND_US: Final = 1_000_000


class Clocks:
    """Of a node that follows; used on one loop. `now_us` is its clock of the day, `now_ms` one that nobody
    sets.
    """

    def __init__(self, now_us: Callable[[], int], now_ms: Callable[[], float]) -> None:
        self._now_us, self._now_ms = now_us, now_ms
        self._apart_us: deque[tuple[float, int]] = deque(maxlen=SAMPLES)  # and when it arrived

    def arrived(self, made_us: int) -> None:
        """An entry that the leader made a moment ago."""
        self._apart_us.append((self._now_ms(), self._now_us() - made_us))

    def forget(self) -> None:
        """Another process leads, or this one."""
        self._apart_us.clear()

    @property
    def apart_seconds(self) -> float:
        """How far this clock is ahead of the leader's; negative behind it. What the way took comes to it, so
        the least of the newest counts; 0 where there are too few of the last minutes.
        """
        since_ms = self._now_ms() - SAMPLE_SECONDS_MAX * 1000
        newest = [apart_us for at_ms, apart_us in self._apart_us if at_ms >= since_ms]
        return min(newest) / _SECOND_US if len(newest) == SAMPLES else 0.0
