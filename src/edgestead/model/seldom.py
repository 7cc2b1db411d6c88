"""What may happen many times a second is said at once, and then now and then with how often it did.

Owns  when a line is due, and the count that belongs to it.
Not   the line.
"""

import time
from collections.abc import Callable

LINE_SECONDS = 10.0  # between two lines about the same thing


class Seldom:
    """For one thing that is logged. Used by one thread."""

    def __init__(self, seconds: float = LINE_SECONDS, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._now = seconds, now
        self._due_at = now()
        self._times = 0

    def happened(self) -> int:
        """Call each time. How often it happened since the last line, this time included; 0: no line now."""
        self._times += 1
        now = self._now()
        if now < self._due_at:
            return 0
        self._due_at = now + self._seconds
        times, self._times = self._times, 0
        return times
