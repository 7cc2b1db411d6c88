"""What the API is given: everything that it does not own.

Owns  `AppContext` and the shapes of its parts.
Not   making any of it (`server`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Protocol, TypeVar, overload

from edgestead.health.rows import Row
from edgestead.http1.connections import Connections
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.call import Profile
from edgestead.model.counters import Page as CounterPage
from edgestead.model.room import Adds
from edgestead.rest.guesses import Guesses
from edgestead.rest.kv_data import KvData
from edgestead.rest.page_cache import PageCache
from edgestead.rest.quota import Quota
from edgestead.rest.request_line import Line
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.access.table import AccessTable
from edgestead.usecases.access.token_uses import TokenUses
from edgestead.usecases.account.dated_uses import DatedUses
from edgestead.usecases.event_index import EventIndex
from edgestead.usecases.platform import Platform

T = TypeVar("T")
R = TypeVar("R")


class Draws:
    """The budgets of credentials and zones."""

    __slots__ = ("requests", "zone_writes")

    def __init__(self, ledger: Ledger) -> None:
        self.requests = Levels(ledger, table.CREDENTIALS_REQUESTS)
        self.zone_writes = Levels(ledger, table.ZONE_WRITES)


class Barrier(Protocol):
    """The store as the API sees it: reads at once, writes until their promise holds."""

    def read(self, fn: Callable[[Reader], T]) -> T:
        """Run on the calling thread: for reads that take well under a millisecond."""
        ...

    def read_one(self, fn: Callable[[Reader], T]) -> T:
        """As `read`, for one statement."""
        ...

    @property
    def groups(self) -> int:
        """It moves on before any write returns (`ControlStore.groups`)."""
        ...

    async def read_long(self, fn: Callable[[Reader], T]) -> T:
        """Run off the event loop: for reads of many rows."""
        ...

    async def write(self, fn: Callable[[Transaction], T]) -> T:
        """Commit, then wait until every live process has applied it. Raises what `fn` raises.

        It asks nobody for a right: what a caller wants goes through `Write` or `WriteAs`.
        """
        ...


class Write(Protocol):
    """A write of a request's caller (`rest.rights`)."""

    @overload
    async def __call__(self, fn: Callable[[Transaction], T]) -> T:
        """As `Barrier.write`. Raises the refusal when the caller's right has ended before the commit."""
        ...

    @overload
    async def __call__(self, fn: Callable[[Transaction], T], then: Callable[[T], R]) -> R:
        """The same, with what is answered of its result: a cluster keeps that with the commit
        (`rest.kept`).
        """
        ...


class WriteAs(Protocol):
    """The same, for what depends on who calls: `fn` gets the caller as the transaction sees him."""

    async def __call__(self, fn: Callable[[Transaction, Identity], T]) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """The application's parts and facts.

    `now_us` is the clock. `as_of` is the date whose behaviour is served, None for the day it is.
    `health` gives the rows of the server's health. `metrics` renders `/metrics`; `counters` is this process's
    page. `log` takes one line; it must not wait.
    `zone_file_turn` is held while a zone file is read, written or made: one at a time; `events_turn` the same
    for a search of security events, which are in `events_folder`. `quota` None lets everybody ask as often as
    they like. `take_room` is told of each write before it begins: what it adds, and how long its body is said
    to be. It raises DiskFull. `metrics_open` serves `/metrics`, and what rows of health say, to whoever asks.
    `behind` names the other machines that answer without the newest writes.
    `guesses` is told of credentials that nobody has. `draws` is what requests draw on.
    """

    barrier: Barrier
    kv: KvData
    access: AccessTable
    platform: Platform
    profile: Profile
    counters: CounterPage
    metrics: Callable[[], str]
    health: Callable[[], tuple[Row, ...]]
    now_us: Callable[[], int]
    log: Callable[[Line], None]
    as_of: date | None = None
    allow_as_of: bool = False
    events_folder: Path | None = None
    events_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    event_index: EventIndex = field(default_factory=EventIndex)
    uses: TokenUses = field(default_factory=TokenUses)
    dated_uses: DatedUses = field(default_factory=DatedUses)
    pages: PageCache = field(default_factory=PageCache)
    zone_file_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    draws: Draws = field(default_factory=lambda: Draws(Ledger()))
    connections: Connections = field(default_factory=Connections)
    quota: Quota | None = None
    take_room: Callable[[Adds, int], None] = lambda adds, length: None
    behind: Callable[[], tuple[str, ...]] = tuple
    metrics_open: bool = True
    guesses: Guesses = field(default_factory=Guesses)
