"""A client that does one thing after the other, and how long it was not served in between.

Owns  doing it again and again on a thread; when each was acknowledged, how many were refused.
Not   what is done, and what happens to servers meanwhile.
"""

import threading
import time
from collections.abc import Callable

AGAIN_SECONDS = 0.01  # after what was refused


class Repeating:
    """`does` tells whether it was acknowledged; what the network refuses counts as refused."""

    def __init__(self, does: Callable[[], bool]) -> None:
        self.acknowledged: list[float] = []
        self.refused = 0
        self._does, self._ended = does, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Repeating":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                is_done = self._does()
            except OSError:
                is_done = False
            if is_done:
                self.acknowledged.append(time.monotonic())
            else:
                self.refused += 1
                time.sleep(AGAIN_SECONDS)

    @property
    def longest(self) -> float:
        """Seconds between two that were acknowledged one behind the other."""
        assert len(self.acknowledged) > 1, "nothing was acknowledged"
        pairs = zip(self.acknowledged, self.acknowledged[1:], strict=False)
        return max(after - before for before, after in pairs)
