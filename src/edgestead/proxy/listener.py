"""Accepting clients.

Owns  the listening sockets while this worker serves.
Asks  the loop to accept.
Tells each new `ClientConnection`.
Not   binding sockets (the supervisor hands them in); requests.
"""

import asyncio
import socket
from collections.abc import Iterable

from edgestead.proxy.client import ClientConnection
from edgestead.proxy.edge import Edge

_BACKLOG = 1_024


class Listener:
    def __init__(self, edge: Edge, *, proxy_protocol: bool) -> None:
        self._edge = edge
        self._proxy_protocol = proxy_protocol
        self._servers: list[asyncio.Server] = []

    async def open(self, sockets: Iterable[socket.socket]) -> None:
        edge = self._edge
        for bound in sockets:
            port = bound.getsockname()[1]

            def connection(port: int = port) -> ClientConnection:
                return ClientConnection(edge, port=port)

            self._servers.append(await edge.loop.create_server(connection, sock=bound, backlog=_BACKLOG))

    def close(self) -> None:
        for server in self._servers:
            server.close()
