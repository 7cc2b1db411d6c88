"""Whether a store that does not answer is asked at all: nobody waits for what others wait for in vain.

Owns  the states, and who may ask in which.
Not   what counts as no answer (`bodies`).

                 no answer                 AWAY_SECONDS later, somebody asks
    closed ─────────────────────▶ open ─────────────────────────────────────▶ trying
      ▲                             ▲                                           │ │
      │                             └───────────────── no answer ───────────────┘ │
      └────────────────────────────────── any answer ─────────────────────────────┘

    state    who asks
    closed   everybody
    open     nobody: refused at once
    trying   the one whose asking began it; all others are refused at once

An answer that comes while it is open closes it: it was slow, and is not away.
"""

import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

AWAY_SECONDS: Final = 5.0  # that nobody asks; then one request may wait in vain


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"
    TRYING = "trying"


class Breaker:
    """Safe to use from any thread. Who `may_ask` says afterwards how it ended."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s, self._door = now_s, threading.Lock()
        self._until_s = 0.0
        self.state = State.CLOSED

    def may_ask(self) -> bool:
        with self._door:
            if self.state is State.OPEN and self._now_s() >= self._until_s:
                self.state = State.TRYING
                return True
            return self.state is State.CLOSED

    def answered(self) -> None:
        with self._door:
            self.state = State.CLOSED

    def was_silent(self) -> None:
        with self._door:
            self.state, self._until_s = State.OPEN, self._now_s() + AWAY_SECONDS
