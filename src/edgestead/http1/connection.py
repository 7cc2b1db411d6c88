"""One HTTP/1.1 connection of a server: requests in order, answers in order.

Owns  parsing, keep-alive, pipelining, back-pressure, deadlines, the bytes of an answer.
Asks  httptools (llhttp) to parse, `framing` what may be read, the application's handler for answers.
Tells the peer.
Not   routing and meaning; TLS; accepting connections (`server`).
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine
from http import HTTPStatus
from typing import Any, cast

import httptools

from edgestead.http1 import limits
from edgestead.http1.framing import fault
from edgestead.http1.messages import Body, Headers, Request, Response

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Refuse = Callable[[int, str], Response]

log = logging.getLogger(__name__)
_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}
_NO_BODY = frozenset({204, 304})
_NOTHING = contextvars.Context()  # what a request inherits from the one before it


class Connection(asyncio.Protocol):
    """`handler` answers each request and never raises; `refuse` words what is refused before it."""

    def __init__(
        self,
        handler: Handler,
        refuse: Refuse,
        loop: asyncio.AbstractEventLoop,
        open_connections: "set[Connection]",
    ) -> None:
        self._handler, self._refuse, self._loop = handler, refuse, loop
        self._all = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._client = ""
        self._target, self._headers = b"", cast(Headers, [])
        self._expects_continue = False
        self._head_bytes = 0  # of the head being read; 0 between heads
        self._body: Body | None = None
        self._waiting: deque[tuple[Request, bool, bool]] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._paused = self._closing = False
        self._drained: asyncio.Future[None] | None = None
        self.deadline = loop.time() + limits.HEAD_SECONDS_MAX

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        peer = transport.get_extra_info("peername")
        self._client = peer[0] if isinstance(peer, tuple) else ""
        self._all.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._all.discard(self)
        self._transport = None
        self._waiting.clear()
        if self._body is not None:
            self._body.break_off()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self._body is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._give_up(501, "upgrades are not offered")
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._give_up(*(cause.args if isinstance(cause, _Refused) else (400, "it cannot be parsed")))
        if self._head_bytes > limits.HEAD_BYTES_MAX and not self._closing:
            self._give_up(431, f"its head is larger than {limits.HEAD_BYTES_MAX} bytes")

    # the parser

    def on_message_begin(self) -> None:
        self._target, self._headers = b"", []
        self._expects_continue = False
        self._head_bytes = max(self._head_bytes, 1)
        if self._serving is None:
            self.deadline = self._loop.time() + limits.HEAD_SECONDS_MAX

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= limits.HEADERS_MAX:
            raise _Refused(431, f"it has more than {limits.HEADERS_MAX} headers")
        name = name.lower()
        self._headers.append((name, value))
        if name == b"expect":
            self._expects_continue = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        version = self._parser.get_http_version()
        reason = fault(version, self._headers)
        if reason is not None:
            raise _Refused(400, reason)
        self._head_bytes = 0
        body = self._body = Body(self._balance)
        request = Request(self._parser.get_method().decode(), self._target, self._headers, self._client, body)
        self._waiting.append((request, self._parser.should_keep_alive(), version == "1.0"))
        if self._expects_continue and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._balance()

    def on_body(self, chunk: bytes) -> None:
        assert self._body is not None
        self._body.feed(chunk)
        self._balance()

    def on_message_complete(self) -> None:
        assert self._body is not None
        self._body.end()
        self._body = None
        if self._serving is None:
            self._serve_next()

    def _balance(self) -> None:
        """Read on only while what is already here is worked off; begin to serve what is."""
        if self._transport is None:
            return
        body = self._body
        full = len(self._waiting) > limits.REQUESTS_WAITING_MAX or (
            body is not None and body.waiting_bytes > limits.BODY_BUFFER_BYTES
        )
        if full != self._paused:
            self._paused = full
            (self._transport.pause_reading if full else self._transport.resume_reading)()
        if body is not None and body.waiting_bytes and self._serving is None:
            self._serve_next()

    # serving

    def _serve_next(self) -> None:
        if self._waiting and not self._closing:
            serving = self._serve(*self._waiting.popleft())
            self._serving = self._loop.create_task(serving, context=_NOTHING.copy())

    async def _serve(self, request: Request, keep_alive: bool, old: bool) -> None:
        self.deadline = float("inf")
        response = await self._handler(request)
        keep_alive = keep_alive and request.body.ended and not self._closing
        if self._transport is not None:
            body = b"" if request.method == "HEAD" else response.body
            head = _head(response, keep_alive, old)
            if isinstance(body, bytes):
                self._transport.write(head + body)
            else:
                self._transport.write(head)
                await self._stream(body, chunked=not old)
        self._serving = None
        if self._transport is None:
            return
        if not keep_alive:
            self._transport.close()
            return
        self.deadline = self._loop.time() + limits.IDLE_SECONDS_MAX
        if self._waiting or self._paused or self._body is not None:
            self._serve_next()
            self._balance()

    async def _stream(self, body: AsyncIterable[bytes], *, chunked: bool) -> None:
        try:
            async for chunk in body:
                if self._transport is None:
                    return
                if chunk:
                    self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
                if self._drained is not None:
                    await self._drained
        except Exception as error:
            # too late for another answer: a connection that breaks is how the peer hears of it
            log.warning("a streamed answer broke off", exc_info=error)
            if self._transport is not None:
                self._transport.abort()
            return
        if self._transport is not None and chunked:
            self._transport.write(b"0\r\n\r\n")
        if self._transport is not None and not chunked:
            self._transport.close()

    # the end

    def _give_up(self, status: int, reason: str) -> None:
        """Refuse what cannot be read, and close: nobody knows where the next request begins."""
        self._closing = True
        if self._body is not None:
            self._body.break_off()
        if self._transport is None:
            return
        if self._serving is None:
            response = self._refuse(status, reason)
            assert isinstance(response.body, bytes)
            self._transport.write(_head(response, False, False) + response.body)
            self._transport.close()

    def close_if_late(self, now: float) -> None:
        """Close when a head takes too long, or no further request comes."""
        if now > self.deadline and self._transport is not None:
            if self._head_bytes:
                self._give_up(408, "its head takes too long")
            else:
                self._transport.close()

    def finish(self) -> None:
        """Close after the request that is being served."""
        self._closing = True
        if self._serving is None and self._transport is not None:
            self._transport.close()

    @property
    def serving(self) -> Awaitable[None] | None:
        return self._serving


class _Refused(Exception):
    """Raised through the parser: (status, reason)."""


def _head(response: Response, keep_alive: bool, old: bool) -> bytes:
    lines = [_STATUS_LINES.get(response.status) or b"HTTP/1.1 %d \r\n" % response.status]
    lines += [b"%b: %b\r\n" % header for header in response.headers]
    if isinstance(response.body, bytes):
        if response.status not in _NO_BODY:
            lines.append(b"content-length: %d\r\n" % len(response.body))
    elif not old:
        lines.append(b"transfer-encoding: chunked\r\n")
    if not keep_alive:
        lines.append(b"connection: close\r\n")
    elif old:
        lines.append(b"connection: keep-alive\r\n")
    lines.append(b"\r\n")
    return b"".join(lines)
