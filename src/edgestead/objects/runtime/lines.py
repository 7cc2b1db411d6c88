"""Lines in front of one gate: whose turn it is, when many want through and one may.

Owns  the order: by arrival within a line, and between lines by what each has had.
Not   the gate, and whose line running code stands in (`gates`); turns of the loop (`model.budgets.turns`).

A line is a client's address, or None for what no client asked for: alarms, operators. Its account are the
seconds for which it kept the gate. Next is who has had least; who comes anew begins where the one that was
next before is, so that staying away earns nothing. Who has one call waits for one turn of each other line at
most, however many calls wait there.

Accounts are forgotten when nobody waits, and those of lines without anybody when there are too many.
"""

from collections import deque
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from edgestead.model.budgets.table import TRACKED_MAX

T = TypeVar("T")
Line = str | None
PASSAGE_SECONDS: Final = 0.00005
"""What each passage costs a line, on top of the time for which the gate is kept."""


class _Account(Generic[T]):
    """Of one line. `number` orders equal ones by arrival; `owed_seconds` are added when it is looked at."""

    __slots__ = ("had_seconds", "number", "owed_seconds", "waiting")

    def __init__(self, had_seconds: float) -> None:
        self.had_seconds, self.owed_seconds, self.number = had_seconds, 0.0, 0
        self.waiting: deque[T] = deque()

    def __lt__(self, other: "_Account[T]") -> bool:
        return (self.had_seconds, self.number) < (other.had_seconds, other.number)


class Lines(Generic[T]):
    """Those who wait."""

    __slots__ = ("_accounts", "_count", "_heap", "_number", "_reached_seconds")

    def __init__(self) -> None:
        self._accounts: dict[Line, _Account[T]] = {}
        self._heap: list[_Account[T]] = []  # of those with somebody in line
        self._reached_seconds, self._number, self._count = 0.0, 0, 0

    def __len__(self) -> int:
        return self._count

    def add(self, line: Line, one: T) -> None:
        account = self._account(line)
        account.waiting.append(one)
        self._count += 1
        if len(account.waiting) == 1:
            self._enter(account)

    def pop(self) -> T:
        """Whose turn it is. Raises IndexError when nobody waits."""
        account = heappop(self._heap)
        while account.owed_seconds:
            self._settle(account)
            account = heappop(self._heap)
        self._reached_seconds = account.had_seconds
        one = account.waiting.popleft()
        self._count -= 1
        account.had_seconds += PASSAGE_SECONDS
        if account.waiting:
            self._enter(account)
        elif not self._count:
            self._accounts.clear()
            self._reached_seconds = 0.0
        return one

    def charge(self, line: Line, seconds: float) -> None:
        """A line has kept the gate, while others waited or nobody."""
        if self._count:
            self._account(line).owed_seconds += seconds

    def _account(self, line: Line) -> _Account[T]:
        account = self._accounts.get(line)
        if account is None:
            if len(self._accounts) > max(TRACKED_MAX, 2 * len(self._heap)):
                self._accounts = {name: one for name, one in self._accounts.items() if one.waiting}
            account = self._accounts[line] = _Account(self._reached_seconds)
        return account

    def _settle(self, account: _Account[T]) -> None:
        account.had_seconds += account.owed_seconds
        account.owed_seconds = 0.0
        self._enter(account)

    def _enter(self, account: _Account[T]) -> None:
        account.had_seconds = max(account.had_seconds, self._reached_seconds)
        self._number += 1
        account.number = self._number
        heappush(self._heap, account)
