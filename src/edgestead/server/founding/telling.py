"""How far a copy is that may take hours, in words, at times.

Owns  when something is said.
Not   what is copied.
"""

import time
from collections.abc import Callable
from typing import Final

SAY_SECONDS: Final = 5.0  # between two lines


class Telling:
    """`words` makes a line of how many things there are so far, and of their octets."""

    def __init__(self, say: Callable[[str], None], words: Callable[[int, int], str]) -> None:
        self._say, self._words = say, words
        self._said_s = time.monotonic()
        self._things = self._octets = 0

    def tell(self, words: str) -> None:
        if time.monotonic() - self._said_s >= SAY_SECONDS:
            self._said_s = time.monotonic()
            self._say(words)

    def advance(self, octets: int, things: int = 0) -> None:
        """As much more is copied."""
        self._octets += octets
        self._things += things
        self.tell(self._words(self._things, self._octets))
