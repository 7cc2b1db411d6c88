"""How old what one process has may be, since the cluster's database did not answer it.

Owns  since when it is silent, and for how long reads may go on meanwhile.
Not   asking it (`seat`); whether the operator wants that (`cluster.reads = stale`).

    current ──a question fails──▶ silent ──any answer──▶ heard ──the process may answer──▶ current
                                     ◀──a question fails──┘

A process whose place is gone, and which the database told so, hears it: what is silent is the database, or
the way to it, and nothing else. What it has is as old as before until it has joined again.
"""

from math import inf
from typing import NamedTuple


class Age(NamedTuple):
    """Seconds since the first question that failed; whether the database is silent still."""

    seconds: int
    is_silent: bool


class Silence:
    """Times in milliseconds of one clock that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self._since_ms: float | None = None
        self.is_silent = False
        """However long it is, and though what the process has is current still."""

    def heard(self) -> None:
        """A question was answered."""
        self.is_silent = False

    def failed(self, asked_ms: float) -> None:
        """A question, asked then, had no answer."""
        self.is_silent = True
        if self._since_ms is None:
            self._since_ms = asked_ms

    def may_answer(self) -> None:
        """What the process has is current, or as good as that for as long as its lease holds."""
        if not self.is_silent:
            self._since_ms = None

    def age(self, now_ms: float, hours_max: float = inf) -> Age | None:
        """None: it is current, or silent for longer than the hours."""
        if self._since_ms is None:
            return None
        seconds = int(now_ms - self._since_ms) // 1000
        return Age(seconds, self.is_silent) if seconds < hours_max * 3600 else None
