"""Listening sockets to connections.

Owns  the set of open connections, the sweep of late ones, an orderly end.
Asks  the loop to accept.
Tells nobody.
Not   sockets being made (the supervisor hands them in); what requests mean.
"""

import asyncio
import socket
from collections.abc import Iterable

from edgestead.http1 import limits
from edgestead.http1.connection import Connection, Handler, Refuse

BACKLOG = 1_024


class Server:
    """Serves HTTP/1.1 on sockets that are already bound."""

    def __init__(self, handler: Handler, refuse: Refuse) -> None:
        self._handler, self._refuse = handler, refuse
        self._connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._sweep: asyncio.TimerHandle | None = None

    async def open(self, sockets: Iterable[socket.socket]) -> None:
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(self._handler, self._refuse, loop, self._connections)

        for bound in sockets:
            self._servers.append(await loop.create_server(connection, sock=bound, backlog=BACKLOG))
        self._sweep_late()

    def _sweep_late(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in tuple(self._connections):
            connection.close_if_late(now)
        self._sweep = loop.call_later(limits.SWEEP_SECONDS, self._sweep_late)

    async def close(self, drain_seconds: float) -> None:
        """Accept nothing more, let what is being served finish, then close."""
        for server in self._servers:
            server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        serving = [task for one in tuple(self._connections) if (task := one.serving) is not None]
        for connection in tuple(self._connections):
            connection.finish()
        if serving:
            await asyncio.wait([asyncio.ensure_future(task) for task in serving], timeout=drain_seconds)
