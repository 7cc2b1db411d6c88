"""Turns of processor time: whose work is done next while a loop has more of it than it can do at once.

Owns  `Turns`: whether work has to wait, the order of what waits, how much of a round of the loop it gets.
Not   what is worked on; the loop and its clock, which are parameters; memory of what waits (`ledger`).

A loop asks each connection that is readable, one after the other, and each would do all of its work at once:
then the last one waits for all others. So a round has two parts.

              it has taken LATE_SECONDS, or work was put off
    AT ONCE ─────────────────────────────────────────────────▶ IN TURNS
       ▲                                                          │
       └──────────────────────────────────────────────────────────┘
                            nothing waits any more

    AT ONCE    work is done where it comes up. Nothing is counted but octets, to look at a clock now and then
    IN TURNS   what comes up is put off, which is cheap. Once in a round it is worked for TURN_SECONDS, each
               time for the address that has had least. What is new is seen between any two turns

What an address has had, in seconds of the processor, is its account. It is charged for each work what that
took, and FOLLOWS_SECONDS for what follows from it elsewhere: a task, an origin's answer.

    an address   with work that waits   its account
    NEW          none                   none: begins at the account of the one that is served now
    WAITING      some                   grows with its turns
    SERVED       none any more          kept while others have had less, so that to leave and come back earns
                                        nothing; forgotten when nothing waits

This is start-time fair queueing (Goyal, Vin and Cheng 1996). An address that asks for less than its share is
next when it asks: it waits for the work that was begun, and for those who ask for as little. One that asks
for more waits once for each other address that has work. An address alone has the whole processor.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from time import monotonic
from typing import Final

from edgestead.model.budgets.table import TRACKED_MAX

LATE_SECONDS: Final = 0.002
"""Of a round, before what else comes up in it waits for its turn."""
TURN_SECONDS: Final = 0.0005
"""Of a round for what waits. A work that was begun is ended: each room cuts its own into portions."""
ONE_A_ROUND: Final = 0.0
"""The same where an answer takes many rounds: each is as short as one work and what is on its way."""
FOLLOWS_SECONDS: Final = 0.00005
"""What a request costs later, about: as much as itself. So a turn begins ten of them at most."""
LOOK_OCTETS: Final = 4_096
"""Received between two looks at the clock, each piece with PIECE_OCTETS on top: eight small requests."""
PIECE_OCTETS: Final = 512

Work = Callable[[], None]


class _Account:
    """Of one address: what it has had, and what waits. `number` orders equal ones by arrival."""

    __slots__ = ("had_seconds", "number", "works")

    def __init__(self) -> None:
        self.had_seconds, self.number = 0.0, 0
        self.works: deque[Work] = deque()

    def __lt__(self, other: "_Account") -> bool:
        return (self.had_seconds, self.number) < (other.had_seconds, other.number)


class Turns:
    """One for each loop. `call_soon` is the loop's; `clock` counts seconds.

    `round_began` is when the loop's round began, by that clock. uvloop's `time` is: it stands still within a
    round, in milliseconds. By that of asyncio no round is ever late.
    """

    __slots__ = (
        "_accounts",
        "_call_soon",
        "_clock",
        "_follows_seconds",
        "_forget_at",
        "_is_in_turns",
        "_number",
        "_reached_seconds",
        "_round_began",
        "_served",
        "_turn_seconds",
        "_unseen_octets",
        "_waiting",
    )

    def __init__(
        self,
        call_soon: Callable[[Work], object],
        round_began: Callable[[], float],
        clock: Callable[[], float] = monotonic,
        *,
        turn_seconds: float = TURN_SECONDS,
        follows_seconds: float = FOLLOWS_SECONDS,
    ) -> None:
        self._call_soon, self._round_began, self._clock = call_soon, round_began, clock
        self._turn_seconds, self._follows_seconds = turn_seconds, follows_seconds
        self._is_in_turns = False
        self._accounts: dict[object, _Account] = {}
        self._waiting: list[_Account] = []  # a heap of those that wait, but for the one that is served
        self._served: _Account | None = None
        self._reached_seconds = 0.0  # what the one served last had had before: nobody waits who has had less
        self._number = 0
        self._unseen_octets = 0  # since the last look at the clock
        self._forget_at = TRACKED_MAX

    def must_wait(self, octets: int) -> bool:
        """Whether work that comes up now, with so many octets, has to be put off."""
        if self._is_in_turns:
            return True
        self._unseen_octets += octets + PIECE_OCTETS
        if self._unseen_octets < LOOK_OCTETS:
            return False
        self._unseen_octets = 0
        return self._clock() - self._round_began() > LATE_SECONDS

    def wait(self, address: object, work: Work) -> None:
        """Do it when the turn of the address has come; never from within this call."""
        account = self._accounts.get(address)
        if account is None:
            self._forget_some()
            account = self._accounts[address] = _Account()
        if not account.works and account is not self._served:
            self._enter(account)
        account.works.append(work)
        if not self._is_in_turns:
            self._is_in_turns = True
            self._call_soon(self._turn)

    def _enter(self, account: _Account) -> None:
        account.had_seconds = max(account.had_seconds, self._reached_seconds)
        self._number += 1
        account.number = self._number
        heappush(self._waiting, account)

    def _turn(self) -> None:
        now = self._clock()
        end = now + self._turn_seconds
        try:
            while self._waiting:
                now = self._serve(heappop(self._waiting), now)
                end -= self._follows_seconds
                if now >= end:
                    break
        finally:  # an error of one is no reason for others to wait for ever
            if self._waiting:
                self._call_soon(self._turn)
            else:
                self._is_in_turns, self._reached_seconds = False, 0.0
                self._accounts.clear()

    def _serve(self, account: _Account, now: float) -> float:
        """Do the first of its works; the time after that."""
        self._served, self._reached_seconds = account, account.had_seconds
        try:
            account.works.popleft()()
        finally:
            after = self._clock()
            self._served = None
            account.had_seconds += after - now + self._follows_seconds
            if account.works:
                self._enter(account)
        return after

    def _forget_some(self) -> None:
        """Of those served, when there are too many. Who waits is bounded by the number of connections."""
        if len(self._accounts) > self._forget_at:
            kept = {
                address: account
                for address, account in self._accounts.items()
                if account.works or account is self._served
            }
            self._accounts = kept
            self._forget_at = max(TRACKED_MAX, 2 * len(kept))
