"""A row of the server's health: one statement about one thing, with the next step.

Owns  the three states, the shape of a row, since when a state holds.
Not   what is examined (`health.checks`), or where rows are shown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

State = Literal["ok", "warn", "fail"]
LEVELS: Final[Mapping[State, int]] = {"ok": 0, "warn": 1, "fail": 2}  # as /metrics has them
SUBJECTS_MAX = 200  # rows of one check that are not ok; the worst come first


class Finding(NamedTuple):
    """What a check says. `subject` tells several findings of one check apart: a process, a host name.

    `next_step` is what an operator does about it; empty where there is nothing to do.
    """

    state: State
    message: str
    next_step: str = ""
    subject: str = ""


class Row(msgspec.Struct, frozen=True):
    """A finding with the name of its check. `since_us` is when its state began, or when the server did."""

    check: str
    subject: str
    state: State
    message: str
    next_step: str
    since_us: int

    @property
    def key(self) -> str:
        return f"{self.check}/{self.subject}" if self.subject else self.check

    @property
    def sentence(self) -> str:
        return f"{self.message}. {self.next_step}" if self.next_step else f"{self.message}."


def worst(rows: Iterable[Row]) -> State:
    return max((row.state for row in rows), key=LEVELS.__getitem__, default="ok")


def levels(rows: Sequence[Row], checks: Iterable[str]) -> dict[str, int]:
    """The worst level of each check; 0 for those without a row."""
    found = dict.fromkeys(checks, 0)
    for row in rows:
        found[row.check] = max(found[row.check], LEVELS[row.state])
    return found


def bounded(findings: Iterable[Finding]) -> list[Finding]:
    """At most SUBJECTS_MAX that are not ok, and one for those that are."""
    found = sorted(findings, key=lambda one: -LEVELS[one.state])
    bad = [one for one in found if one.state != "ok"]
    shown = bad[:SUBJECTS_MAX]
    if len(bad) > len(shown):
        left = len(bad) - len(shown)
        shown.append(Finding(bad[SUBJECTS_MAX].state, f"{left} more are not well", subject="more"))
    return shown


class Board:
    """Since when each row has had its state. Used by one thread; `now_us` is the clock."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._known: dict[str, Row] = {}

    def rows(self, found: Iterable[tuple[str, Finding]]) -> tuple[Row, ...]:
        """The rows of these findings by check; what is not among them is forgotten."""
        now_us = self._now_us()
        before, self._known = self._known, {}
        for check, one in found:
            row = Row(check, one.subject, one.state, one.message, one.next_step, now_us)
            old = before.get(row.key)
            if old is not None and old.state == row.state:
                row = msgspec.structs.replace(row, since_us=old.since_us)
            self._known[row.key] = row
        return tuple(self._known.values())
