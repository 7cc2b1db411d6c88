"""What all connections of one worker share.

Owns  the set of clients' connections, their limits, the sweep of late ones, an orderly end, counting.
Not   accepting connections (`listener`); requests.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Protocol

from edgestead.edge import limits
from edgestead.edge.access.log import AccessLog
from edgestead.edge.exchanges.packing import Packers
from edgestead.edge.exchanges.turns import Turns
from edgestead.edge.http.address import Addresses, Names, Trust
from edgestead.edge.http.pool import Pool
from edgestead.edge.routing import Routes
from edgestead.edge.tools.phase import Tools
from edgestead.http1.connections import Account, Connections
from edgestead.http1.head import Refused
from edgestead.http1.sweeping import Sweep
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.budgets.turns import Turns as Processor


class Connected(Protocol):
    """A client's connection, as the worker knows it."""

    def sweep(self, now: float) -> None: ...

    def finish(self) -> None:
        """The server ends: close once what is being served is answered."""
        ...

    def abort(self) -> None: ...


class Edge:
    """`origin_port` None means 80, and 443 for TLS. `count` is told the status of every answer, `turned_away`
    of every connection that there is no room for, `took` when a request arrived whose answer begins now.
    `ledger` has what clients draw on.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        routes: Routes,
        pool: Pool,
        trust: Trust,
        address: Addresses,
        names: Names,
        tools: Tools,
        count: Callable[[int], None],
        turned_away: Callable[[], None] = lambda: None,
        took: Callable[[int], None] = lambda arrived_us: None,
        origin_port: int | None = None,
        per_address_max: int | None = None,
        ledger: Ledger | None = None,
        processor: Processor | None = None,
        access: AccessLog | None = None,
    ) -> None:
        self.loop = loop
        self.routes = routes
        self.pool = pool
        self.trust = trust
        self.address = address
        self.names = names
        self.ray_line = names.ray_line
        self.tools = tools
        self.observer = tools.observer
        self.count = count
        self.access = access
        self.turned_away = turned_away
        self.took = took
        self.origin_port = origin_port
        self.ledger = ledger or Ledger()
        self.processor = processor or Processor(loop.call_soon, loop.time)
        self.accounts = Connections(
            None,
            per_address_max,
            self.ledger,
            each=table.EDGE_CONNECTIONS_ADDRESS,
            total=table.EDGE_CONNECTIONS,
        )
        self.turns = Turns(loop.call_soon, ledger=self.ledger, memory=self.accounts.memory)
        self.packers = Packers()
        self.is_ending = False
        # The time of the next sweep. Deadlines count from it: exact enough for seconds, never too early, and
        # no request asks for the time.
        self.soon = loop.time() + limits.SWEEP_SECONDS
        self.date = b""  # as headers say it; behind by as much as a sweep is away
        self._clients: dict[Connected, Account] = {}
        self._empty = asyncio.Event()
        self._sweep = Sweep()
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        return len(self._clients)

    def own_lines(self, ray: bytes) -> bytes:
        """What every answer of the edge's own says: its request's id, and the time (RFC 9110 §6.6.1)."""
        return self.ray_line % ray + b"date: %b\r\n" % self.date

    def admit(self, client: Connected, peer: str, *, trusted: bool) -> Account | None:
        """The account of another connection; None where that is one too many. A proxy has many clients."""
        account = self.accounts.enter(peer, trusted=trusted)
        if isinstance(account, Refused):
            self.turned_away()
            return None
        self._clients[client] = account
        return account

    def dismiss(self, client: Connected) -> None:
        account = self._clients.pop(client, None)
        if account is not None:
            self.accounts.leave(account)
            if self.is_ending and not self._clients:
                self._empty.set()

    def sweep(self) -> None:
        """Look for late connections, now and every SWEEP_SECONDS, also after a look that fails."""
        self._sweeping = self.loop.call_later(limits.SWEEP_SECONDS, self.sweep)
        now = self.loop.time()
        self.soon = now + limits.SWEEP_SECONDS
        self.date = formatdate(usegmt=True).encode()
        self._sweep.each(self._clients, now)
        self.pool.sweep(now)
        if self.access is not None:
            self.access.count()

    async def close(self, drain_seconds: float) -> None:
        """Let what is being served finish, then close. Accept nothing more before."""
        self.is_ending = True
        for client in tuple(self._clients):
            client.finish()
        if self._clients:
            with suppress(TimeoutError):
                async with asyncio.timeout(drain_seconds):
                    await self._empty.wait()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for client in tuple(self._clients):
            client.abort()
        self.pool.close()
