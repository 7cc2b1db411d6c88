"""The REST API's HTTP server: uvicorn, told how to live under a supervisor.

Owns  uvicorn's settings, and its start and end inside a loop that others share.
Asks  uvicorn, with httptools and uvloop named: its own choice may fall back to a parser that accepts
      ambiguous framing.
Tells its caller when requests are taken.
Not   routes (`api`); bytes that are no request (`api.framing`).
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn

from edgestead.server import process

KEEP_ALIVE_SECONDS = 30  # an idle connection's life after its last answer
DRAIN_SECONDS = 8  # for requests under way at the end; below the supervisor's own limit
_BACKLOG = 1024


class RestServer(uvicorn.Server):
    """One application on one listening socket, on the running loop."""

    def __init__(self, app: Any, protocol: type[asyncio.Protocol], listener: socket.socket) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a stranger's bad bytes are no news
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                loop="none",  # it runs on ours
                ws="none",
                lifespan="off",
                access_log=False,  # the API has its own line
                log_config=None,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=DRAIN_SECONDS,
                backlog=_BACKLOG,
            )
        )
        self._listener = listener
        self._accepts: Callable[[], None]

    async def run_until_ended(self, accepts: Callable[[], None]) -> None:
        """Call `accepts` once requests are taken; serve until `end`, then finish what is under way."""
        self._accepts = accepts
        await self.serve([self._listener])

    def end(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        process.rest_collector()
        self._accepts()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the process's own business (`server.control`)."""
        yield
