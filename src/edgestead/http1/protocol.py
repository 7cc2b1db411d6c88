"""A connection to an application: its tasks, and readers of its answers.

Owns  tasks of requests that have to wait, streams, slow readers.
Not   what happens when (`connection`), and carrying it out (`driver`); sockets (`server`).
"""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from edgestead.http1 import limits
from edgestead.http1.answering import Answering
from edgestead.http1.connection import State
from edgestead.http1.driver import NEVER, Driver
from edgestead.http1.messages import Request, Response
from edgestead.model.budgets.networks import network_of

if TYPE_CHECKING:
    from edgestead.http1.server import Server

log = logging.getLogger(__name__)
_NOTHING = contextvars.Context()  # what a request inherits from the one before it

Handler = Callable[[Request], Response | Coroutine[Any, Any, Response | None]]
"""Answers a request and never raises: at once, or later by a coroutine, which runs in a task. None is no
answer: the connection is closed."""


ClientOf = Callable[[Request], str]
"""The address of whom another process speaks for with a request."""


class Protocol(Driver[Request]):
    """One client's connection to a `server`."""

    _connection: Answering
    __slots__ = (
        "_client",
        "_drained",
        "_loop",
        "_next",
        "_server",
        "_stall_deadline",
        "_unread_bytes",
        "task",
    )

    def __init__(self, server: "Server") -> None:
        super().__init__(server)
        self._server, self._loop = server, server.loop
        self._client = ""
        self._drained: asyncio.Future[None] | None = None  # while the client does not take what is sent
        self._unread_bytes, self._stall_deadline = 0, NEVER
        self._next: Request | None = None  # waits until it does
        self.task: asyncio.Task[None] | None = None  # of the request that is served

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        peer = transport.get_extra_info("peername")
        self._client = peer[0] if isinstance(peer, tuple) else ""
        self._take_turns(self._client)
        server = self._server
        account, turned_away = server.enter(self, self._client)
        self._connection = Answering(
            server.refuse,
            self._client,
            account=account,
            turned_away=turned_away,
            wake=self._act,
            date_line=server.date_line,
            headers_max=server.headers_max,
        )
        self._act()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.leave(self)
        self._transport = self._next = self._subject = None  # which is itself, where it has no address
        self._connection.lost()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._watch_reader(self._loop.time())
        self._connection.unsent(self._unread_bytes)
        self._act()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        self._stall_deadline = NEVER
        self._connection.unsent(0)
        if drained is not None and not drained.done():
            drained.set_result(None)
        request, self._next = self._next, None
        if request is not None:
            self._serve(request)

    # serving

    def _serve(self, request: Request) -> None:
        if not self._connection.is_serving(request):
            return  # its client is gone, or was told why its body cannot be read
        if self._drained is not None:
            self._next = request
            return
        try:
            answer = self._server.handler(request)
        except Exception:
            log.exception("serving %s", request.method)
            self._connection.break_off()
            self._act()
            return
        if isinstance(answer, Response):
            self._send(answer)
        else:
            self.task = self._loop.create_task(self._serve_later(answer), context=_NOTHING.copy())

    def _send(self, response: Response) -> None:
        self._connection.answer(response)
        self._act()
        if self._connection.state is State.SENDING:
            self.task = self._loop.create_task(self._stream(response), context=_NOTHING.copy())
        else:
            response.done(None)

    async def _serve_later(self, answer: Coroutine[Any, Any, Response | None]) -> None:
        response = None
        try:
            response = await answer
        except Exception:
            log.exception("serving a request")
        finally:
            self.task = None
            if response is None:
                self._connection.break_off()
                self._act()
        if response is not None:
            self._send(response)

    async def _stream(self, response: Response) -> None:
        error: BaseException | None = None
        try:
            await self._send_portions(cast(AsyncIterable[bytes], response.body))
        except BaseException as fault:
            error = fault
            if not isinstance(fault, Exception):
                raise
            log.warning("a streamed answer broke off", exc_info=fault)
        finally:
            self.task = None
            response.done(error)
            if error is None:
                self._connection.end_answer()
            else:  # too late for another answer: the client has to see that this one is not complete
                self._connection.break_off()
            self._act()

    async def _send_portions(self, body: AsyncIterable[bytes]) -> None:
        async for portion in body:
            if self._transport is None:
                return
            self._transport.write(self._connection.portion(portion))
            if self._drained is not None:
                await self._drained

    def cancel(self) -> None:
        """The time to drain is over."""
        if self.task is not None:
            self.task.cancel()

    # time

    def sweep(self, now: float) -> None:
        """Look for what is late."""
        if now > self._stall_deadline and self._transport is not None:
            if self._transport.get_write_buffer_size() > self._unread_bytes - limits.STALL_BYTES_MIN:
                self._connection.stalled()
                self._server.stalled(self._client)
                self._transport.abort()
            else:
                self._watch_reader(now)
        elif now > self._deadline:
            self._deadline = NEVER
            self._connection.late()
            self._act()

    def _watch_reader(self, now: float) -> None:
        if self._transport is not None:
            self._unread_bytes = self._transport.get_write_buffer_size()
            self._stall_deadline = now + limits.STALL_SECONDS_MAX


class PassingOn(Protocol):
    """A connection of another process of ours, which speaks for many clients, one after the other.

    So its bytes are read at once, and each request takes the turn of its own client.
    """

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        request = self._connection.receive(data)
        if request is not None:
            if self._processor.must_wait(len(data)):
                client = self._server.client_of(request)
                self._processor.wait(network_of(client), partial(self._serve_now, request))
            else:
                self._serve(request)
        self._act()

    def _serve_now(self, request: Request) -> None:
        self._serve(request)
        self._act()
