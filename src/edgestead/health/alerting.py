"""What one receiver of alerts is sent, and when: a state machine for each row of health.

Owns  the states of an alert, holding down what flaps, repeating, resolving.
Not   sending (`server.alerts`), files, clocks: time comes in as the seconds between two looks.

    quiet ──▶ pending ──▶ firing ──▶ sent ◀──▶ repeating
      ▲          │           ▲  │      │           │
      ├──────────┘           │  ▼      ▼           │
      └──────────────────── resolving ◀────────────┘

    state      means                     while not well          while well                     delivered
    quiet      no alert                  pending                 -                              -
    pending    held down                 firing, after the hold  quiet, when it is used up      -
    firing     to be sent                -                       after the hold: resolving if   sent
                                                                 it was tried, else quiet
    sent       the receiver knows        firing, when worse      resolving, after the hold      -
                                         repeating, on schedule
    repeating  to be sent once more      -                       the same                       sent
    resolving  to be sent: it is over    firing                  -                              quiet

What flaps adds to its hold while it is not well, and loses half as much while it is well: it fires after
some rounds, and resolves when it has been well for the whole hold. An attempt that failed may have arrived,
so what was tried is resolved in words, too. There is no queue: what is to be sent is the state itself, one
message at a time, so a receiver that is away for a week gets one message. Looks at which nothing is known
change nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from edgestead.health.rows import LEVELS, Row, State

AlertState = Literal["pending", "firing", "sent", "repeating", "resolving"]
ALERTS_MAX = 500  # of one receiver; what comes on top is not looked at until others end
_DUE: Final = frozenset({"firing", "repeating", "resolving"})


class Alert(msgspec.Struct):
    """One row at one receiver. `row` is as it was last not well; `number` counts its messages.

    `worst_sent` is the state that the receiver knows of, empty before the first message.
    """

    id: str
    row: Row
    state: AlertState = "pending"
    number: int = 0
    tried: bool = False
    worst_sent: State | Literal[""] = ""
    held_seconds: float = 0.0
    well_seconds: float = 0.0
    waited_seconds: float = 0.0

    @property
    def is_due(self) -> bool:
        return self.state in _DUE


class Item(NamedTuple):
    """One alert in a message. `kind` is its state when the message was made."""

    id: str
    number: int
    kind: AlertState
    row: Row


class Terms(NamedTuple):
    """What a receiver wants. `checks` empty means all; `repeat_seconds` 0 never repeats."""

    checks: frozenset[str]
    level: State
    hold_seconds: float
    repeat_seconds: float

    def wants(self, row: Row) -> bool:
        chosen = not self.checks or row.check in self.checks
        return chosen and LEVELS[row.state] >= LEVELS[self.level]


class Alerting:
    """The alerts of one receiver. `new_id` names a new one; `alerts` are those of before a restart."""

    def __init__(self, terms: Terms, new_id: Callable[[], str], alerts: Iterable[Alert] = ()) -> None:
        self._terms = terms
        self._new_id = new_id
        self.alerts: dict[str, Alert] = {alert.row.key: alert for alert in alerts}

    def look(self, rows: Sequence[Row] | None, seconds: float) -> bool:
        """Rows as they are now, None when they are unknown; `seconds` since the last look.

        True when a state has changed, which is to be stored.
        """
        if rows is None:
            return False
        bad = {row.key: row for row in rows if self._terms.wants(row)}
        for key, row in bad.items():
            if key not in self.alerts and len(self.alerts) < ALERTS_MAX:
                self.alerts[key] = Alert(self._new_id(), row)
        changed = False
        for key, alert in list(self.alerts.items()):
            before = alert.state
            if key in bad:
                self._not_well(alert, bad[key], seconds)
            elif self._well(alert, seconds):
                del self.alerts[key]
                changed = changed or before != "pending"
            changed = changed or alert.state != before
        return changed

    def due(self) -> list[Item]:
        """What the next message says, the worst first; empty when there is nothing to send."""
        found = [alert for alert in self.alerts.values() if alert.is_due]
        found.sort(key=lambda alert: (alert.state == "resolving", -LEVELS[alert.row.state]))
        return [Item(alert.id, alert.number + 1, alert.state, alert.row) for alert in found]

    def trying(self, items: Iterable[Item]) -> None:
        """A message is about to be sent. Store it first: after a crash it may have arrived."""
        for alert, _ in self._named(items):
            alert.tried = True

    def delivered(self, items: Iterable[Item]) -> None:
        """The receiver took a message."""
        for alert, item in self._named(items):
            alert.number = item.number
            alert.worst_sent = item.row.state
            alert.waited_seconds = 0.0
            if item.kind != alert.state:
                continue  # it has changed meanwhile, so there is a message to come
            if item.kind == "resolving":
                del self.alerts[alert.row.key]
            else:
                alert.state = "sent"
                self._worse(alert)

    def _named(self, items: Iterable[Item]) -> Iterable[tuple[Alert, Item]]:
        for item in items:
            alert = self.alerts.get(item.row.key)
            if alert is not None:
                yield alert, item

    def _not_well(self, alert: Alert, row: Row, seconds: float) -> None:
        alert.row = row
        alert.well_seconds = 0.0
        if alert.state == "pending":
            alert.held_seconds += seconds
            if alert.held_seconds >= self._terms.hold_seconds:
                alert.state = "firing"
        elif alert.state == "resolving":
            alert.state = "firing"
        elif alert.state == "sent":
            alert.waited_seconds += seconds
            if not self._worse(alert) and 0 < self._terms.repeat_seconds <= alert.waited_seconds:
                alert.state = "repeating"

    def _worse(self, alert: Alert) -> bool:
        """One that has become worse than the receiver knows is sent at once."""
        if alert.worst_sent and LEVELS[alert.row.state] > LEVELS[alert.worst_sent]:
            alert.state = "firing"
            return True
        return False

    def _well(self, alert: Alert, seconds: float) -> bool:
        """True when it is quiet again."""
        if alert.state == "pending":
            alert.held_seconds -= seconds / 2
            return alert.held_seconds <= 0
        if alert.state != "resolving":
            alert.well_seconds += seconds
            if alert.well_seconds >= self._terms.hold_seconds:
                if not alert.tried:
                    return True
                alert.state = "resolving"
        return False
