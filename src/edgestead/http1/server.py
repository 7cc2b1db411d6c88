"""Listening sockets to connections.

Owns  the set of open connections, the sweep of late ones, the date of answers, an orderly end.
Not   making sockets (the supervisor hands them in); what requests mean.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import Protocol as Interface

from edgestead.http1 import limits
from edgestead.http1.answering import Refuse
from edgestead.http1.connections import Account, Connections
from edgestead.http1.head import Refused
from edgestead.http1.protocol import ClientOf, Handler, PassingOn, Protocol
from edgestead.http1.sweeping import Sweep
from edgestead.model.budgets.turns import Turns

BACKLOG = 1_024
CANCELLED_SECONDS_MAX = 1.0  # that requests have for their last words when the time to drain is over


class Served(Interface):
    """A connection of whatever version of HTTP, which ends in the server's order."""

    def sweep(self, now: float) -> None: ...
    def finish(self) -> None: ...
    def cancel(self) -> None: ...
    def abort(self) -> None: ...


class Server:
    """Serves HTTP/1.1 on sockets that are bound, and knows connections of HTTP/2. Made on the running loop.

    `refuse` words what is refused before `handler` is asked. `connections` None are as many as come.
    `stalled` is told of clients that do not take their answers. `processor` has the turns of the
    loop, where that has other servers, too. With `client_of` its clients are processes of ours.
    """

    def __init__(
        self,
        handler: Handler,
        refuse: Refuse,
        *,
        connections: Connections | None = None,
        stalled: Callable[[str], None] = lambda client: None,
        headers_max: int = limits.HEADERS_MAX,
        processor: Turns | None = None,
        client_of: ClientOf | None = None,
    ) -> None:
        self.client_of: ClientOf = client_of or (lambda request: request.client)
        self._kind = Protocol if client_of is None else PassingOn
        self.headers_max = headers_max
        self.handler, self.refuse, self.stalled = handler, refuse, stalled
        self.loop = asyncio.get_running_loop()
        self.processor = processor or Turns(self.loop.call_soon, self.loop.time)
        self.soon = self.loop.time() + limits.SWEEP_SECONDS
        self._connections = connections
        self._open: dict[Served, Account | Refused | None] = {}
        self._refused = 0  # of them, that were turned away and wait for their answer
        self._servers: list[asyncio.Server] = []
        self._sweeping = Sweep()
        self._sweep: asyncio.TimerHandle | None = None
        self._date_line = b""
        self._emptied: asyncio.Event | None = None  # while it ends

    def connection(self) -> Protocol:
        """For a transport that another part of the process has opened."""
        return self._kind(self)

    async def open(self, sockets: Iterable[socket.socket]) -> None:
        for bound in sockets:
            self._servers.append(await self.loop.create_server(self.connection, sock=bound, backlog=BACKLOG))
        self._sweep_late()

    def date_line(self) -> bytes:
        """RFC 9110 §6.6.1. Made by each sweep, of which there is one a second."""
        return self._date_line

    def _sweep_late(self) -> None:
        """One that fails is not the last: the next one is asked for first."""
        self._sweep = self.loop.call_later(limits.SWEEP_SECONDS, self._sweep_late)
        now = self.loop.time()
        self.soon = now + limits.SWEEP_SECONDS
        self._date_line = b"date: %b\r\n" % formatdate(time.time(), usegmt=True).encode("ascii")
        self._sweeping.each(self._open, now)

    # what protocols ask

    def enter(self, protocol: Served, client: str) -> tuple[Account | None, Refused | None]:
        """Take one more connection with its account, or say why not."""
        entered = None if self._connections is None else self._connections.enter(client)
        self._open[protocol] = entered
        if not isinstance(entered, Refused):
            return entered, None
        self._refused += 1
        if self._refused > limits.CONNECTIONS_REFUSED_MAX and self._connections is not None:
            self._connections.full(client)
            status, reason = entered.args
            self.refuse(status, reason, client)
            protocol.abort()
        return None, entered

    def leave(self, protocol: Served) -> None:
        entered = self._open.pop(protocol)
        if self._emptied is not None and not self._open:
            self._emptied.set()
        if isinstance(entered, Refused):
            self._refused -= 1
        elif entered is not None and self._connections is not None:
            self._connections.leave(entered)

    # the end

    async def close(self, drain_seconds: float) -> None:
        """Accept no more, let what is being served finish, then end it."""
        for server in self._servers:
            server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        for protocol in tuple(self._open):
            protocol.finish()
        if not await self._is_empty_within(drain_seconds):
            for protocol in tuple(self._open):
                protocol.cancel()
            await self._is_empty_within(CANCELLED_SECONDS_MAX)
        for protocol in tuple(self._open):
            protocol.abort()

    async def _is_empty_within(self, seconds: float) -> bool:
        self._emptied = asyncio.Event()
        if self._open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), seconds)
        return not self._open
