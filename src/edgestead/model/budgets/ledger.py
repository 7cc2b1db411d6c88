"""The accounts of one process: who has drawn how much on which budget.

Owns  what is held at a time (`Levels`), what was spent lately (`Windows`), counting and telling refusals.
Not   the numbers (`table`); what a refusal looks like; clocks, which are parameters.

    draw     an addition and two comparisons; None, or the Refusal. Nothing is drawn then
    release  what was drawn; a subject that holds nothing any more has no account

So there are never more accounts than what is held of the smallest draw, and of windows TRACKED_MAX. Each
refusal is counted on the process's page. The first of a budget is told, and what followed it EVENT_SECONDS
later: a flood must not become one of the log.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final, NamedTuple

from edgestead.model.budgets.table import ALONE_PART, NAMES, SPARE_BYTES, TRACKED_MAX, Budget, Subject
from edgestead.model.counters import Page, private_page, slot

UNLIMITED: Final = 1 << 62
EVENT_SECONDS: Final = 10.0  # between two lines about one budget
_SUBJECT_CHARS_MAX = 100  # of a subject in a line
_US = 1_000_000
_FIRST = slot("edge_budget_refused_total", NAMES[0])
_CELLS = {name: _FIRST + offset for offset, name in enumerate(NAMES)}
_log = logging.getLogger("edgestead.server")


class Refusal(NamedTuple):
    """A draw that was not allowed: by which budget, and its limit here."""

    budget: Budget
    limit: int

    @property
    def reason(self) -> str:
        subject = self.budget.subject
        whose = "all clients" if subject is Subject.PROCESS else f"one {subject.value}"
        return f"more than {self.limit} {self.budget.unit} of {whose}"


Tell = Callable[[Refusal, object, int], None]
"""(what was refused, whom, how many were before that nobody told of)."""


def write_line(refusal: Refusal, subject: object, untold: int) -> None:
    """The event, as a line of the process's log."""
    _log.warning(
        "budget %s is spent: %s, now %s; refused, as were %d since the last such line",
        refusal.budget.name,
        refusal.reason,
        str(subject)[:_SUBJECT_CHARS_MAX],
        untold,
    )


class Ledger:
    """Made once in a process, used by one thread. `clock` gives seconds that only grow."""

    def __init__(
        self, page: Page | None = None, tell: Tell = write_line, clock: Callable[[], float] = monotonic
    ) -> None:
        self._page = private_page() if page is None else page
        self._tell, self._clock = tell, clock
        self._told: dict[Budget, tuple[float, int]] = {}  # when last, and how many since

    def refuse(self, budget: Budget, subject: object, limit: int | None = None) -> Refusal:
        """Count and tell one refusal."""
        self._page.add(_CELLS[budget.name])
        refusal, now = Refusal(budget, budget.limit if limit is None else limit), self._clock()
        at, untold = self._told.get(budget, (-EVENT_SECONDS, 0))
        if now - at < EVENT_SECONDS:
            self._told[budget] = at, untold + 1
        else:
            self._told[budget] = now, 0
            self._tell(refusal, subject, untold)
        return refusal

    def refused(self, budget: Budget) -> int:
        """How many refusals were counted, by this process in all its lives."""
        return self._page.cells[_CELLS[budget.name]]


class Levels:
    """What subjects hold at a time of `each`, and all together of `total`."""

    __slots__ = ("_each", "_total", "held", "ledger", "limit", "total", "total_limit")

    def __init__(
        self,
        ledger: Ledger,
        each: Budget,
        total: Budget | None = None,
        *,
        limit: int | None = None,
        total_limit: int | None = None,
    ) -> None:
        self.ledger, self._each, self._total = ledger, each, total
        self.limit = each.limit if limit is None else limit
        self.total_limit = total_limit or (total.limit if total is not None else 1 << 62)
        self.held: dict[object, int] = {}
        self.total = 0

    def draw(self, subject: object, amount: int, mine: int = 0, spare: int = 0) -> Refusal | None:
        """Draw, unless that is too much.

        `mine` is what the one thing holds for which it is drawn, this included: alone it may pass the limit.
        UNLIMITED is a subject that is only charged with the others. `spare` passes whatever all hold.
        """
        held, total = self.held.get(subject, 0) + amount, self.total + amount
        if held > self.limit and held - mine > self.limit // ALONE_PART * (mine > 0):
            return self.ledger.refuse(self._each, subject, self.limit)
        if total > self.total_limit and held > spare and self._total is not None:
            return self.ledger.refuse(self._total, subject, self.total_limit)
        self.held[subject], self.total = held, total
        return None

    @contextmanager
    def drawn(self, subject: object, amount: int = 1) -> Iterator[Refusal | None]:
        """Draw for as long as the block lasts, which has to look whether that was refused."""
        refusal = self.draw(subject, amount)
        try:
            yield refusal
        finally:
            if refusal is None:
                self.release(subject, amount)

    def release(self, subject: object, amount: int) -> None:
        self.total -= amount
        left = self.held[subject] - amount
        if left:
            self.held[subject] = left
        else:
            del self.held[subject]


class Holding:
    """What one connection holds of memory for its address: drawn in steps, given back at its end."""

    __slots__ = ("_is_limited", "_levels", "_subject", "drawn", "least")

    def __init__(self, levels: Levels, subject: object, least: int, *, is_limited: bool = True) -> None:
        """`least` is drawn at once, whatever is held already: connections have a budget of their own."""
        self._levels, self._subject, self._is_limited = levels, subject, is_limited
        self.drawn = self.least = least
        levels.held[subject] = levels.held.get(subject, 0) + least
        levels.total += least

    def hold(self, amount: int) -> Refusal | None:
        """It holds so much now. What is refused is not drawn; what it held stays drawn."""
        amount = max(amount, self.least)
        more = amount - self.drawn
        if more > 0:
            mine = amount if self._is_limited else UNLIMITED
            refusal = self._levels.draw(self._subject, more, mine, SPARE_BYTES)
            if refusal is not None:
                return refusal
        elif more < 0:
            self._levels.release(self._subject, -more)
        self.drawn = amount
        return None

    def refuse(self, budget: Budget) -> None:
        """Count and tell what is refused to the same subject, of a budget that it has by itself."""
        self._levels.ledger.refuse(budget, self._subject)

    def close(self) -> None:
        if self.drawn:
            self._levels.release(self._subject, self.drawn)
            self.drawn = self.least = 0


class Windows:
    """What subjects spent of `budget` within its seconds, counted from the first. A limit of 0 is none.

    The one that began first comes first: when there are too many it is given up.
    """

    __slots__ = ("_budget", "_ledger", "_windows", "limit")

    def __init__(self, ledger: Ledger, budget: Budget, limit: int | None = None) -> None:
        self._ledger, self._budget = ledger, budget
        self.limit = budget.limit if limit is None else limit
        self._windows: dict[object, tuple[int, int]] = {}  # when it began, and how much was spent

    def __len__(self) -> int:
        return len(self._windows)

    def spend(self, subject: object, now_us: int, amount: int = 1) -> Refusal | None:
        """Count it; a Refusal when that is more than the budget."""
        if not self.limit:
            return None
        began_us, spent = self._windows.get(subject, (now_us, 0))
        if not 0 <= now_us - began_us < self._budget.seconds * _US:
            began_us, spent = now_us, 0
        if not spent:
            self._windows.pop(subject, None)
            if len(self._windows) >= TRACKED_MAX:
                del self._windows[next(iter(self._windows))]
        self._windows[subject] = began_us, spent + amount
        over = spent + amount > self.limit
        return self._ledger.refuse(self._budget, subject, self.limit) if over else None

    def seconds_left(self, subject: object, now_us: int) -> int:
        """Until a subject's budget is whole again."""
        began_us, _ = self._windows[subject]
        return -(-(began_us + self._budget.seconds * _US - now_us) // _US)
