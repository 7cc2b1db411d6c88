"""One HTTP/1.1 request to somebody else, and the answer to it.

Owns  the bytes of a request, parsing of the answer, back-pressure both ways, deadlines.
Not   redirects, proxies, cookies, decompression; keeping connections: each carries one exchange.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from typing import NamedTuple, cast

import httptools
import msgspec

from edgestead.http1 import limits
from edgestead.http1.head import Headers
from edgestead.http1.messages import Body
from edgestead.http1.overhead import Overhead

CONNECT_SECONDS_MAX = 10.0  # to one address, TLS included
HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade", b"expect"}
)
_NO_BODY = frozenset({204, 304})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class Tcp(NamedTuple):
    """A host by name or address. With `tls` its certificate is checked as the context says."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Unix(NamedTuple):
    path: str


class ExchangeError(OSError):
    """No answer came, or none that can be read. Whether the request had an effect is not known."""


class _Body:
    """The body of an answer, to be iterated over once.

    Its connection ends when its reader stops, and when it is dropped: most callers that only look at a status
    never ask for the body, and a generator that was not begun has no end to clean up at.
    """

    def __init__(self, protocol: "_Exchange", sending: "asyncio.Future[None]") -> None:
        self._protocol, self._sending = protocol, sending

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Raises BodyBroken."""
        try:
            async for chunk in self._protocol.body:
                yield chunk
        finally:
            self._protocol.drop(self._sending)

    def __del__(self) -> None:
        if not self._protocol.is_over:  # on whatever thread collects garbage
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the connection with it
                self._sending.get_loop().call_soon_threadsafe(self._protocol.drop, self._sending)


class Answer(msgspec.Struct):
    """`headers` are without those of the connection. `body` can be read once."""

    status: int
    headers: Headers
    body: AsyncIterable[bytes]


async def exchange(
    to: Tcp | Unix,
    method: str,
    target: bytes,
    headers: Headers,
    body: bytes | AsyncIterable[bytes],
    *,
    head_seconds_max: float | None = None,
) -> Answer:
    """Send a request and wait for the head of its answer.

    A body that is no bytes is sent chunk by chunk: with the length that `headers` say, chunked when they
    say so (`transfer-encoding`), else not at all.
    Raises ExchangeError, other OSErrors when nobody can be reached, what reading `body` raises.
    """
    protocol = _Exchange(method == "HEAD")
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            await _connect(to, protocol)
    except TimeoutError:
        raise ExchangeError(f"no connection within {CONNECT_SECONDS_MAX:g} s") from None
    sending = asyncio.ensure_future(protocol.send(method, target, headers, body))
    sending.add_done_callback(protocol.sent)
    try:
        async with asyncio.timeout(head_seconds_max):
            status, found = await protocol.head
    except BaseException as error:
        protocol.drop(sending)
        if isinstance(error, TimeoutError):
            raise ExchangeError(f"no answer within {head_seconds_max:g} s") from None
        raise
    body = _Body(protocol, sending)
    return Answer(status, [header for header in found if header[0] not in HOP_BY_HOP], body)


async def _connect(to: Tcp | Unix, protocol: "_Exchange") -> None:
    loop = asyncio.get_running_loop()
    if isinstance(to, Unix):
        await loop.create_unix_connection(lambda: protocol, to.path)
    else:
        name = to.host if to.tls is not None else None
        await loop.create_connection(lambda: protocol, to.host, to.port, ssl=to.tls, server_hostname=name)


class _Exchange(asyncio.Protocol):
    def __init__(self, head_only: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._head_only = head_only
        self._headers: Headers = []
        self._head_bytes = 0
        self._overhead = Overhead()
        self._interim = self._until_end = self._paused = False
        self._drained: asyncio.Future[None] | None = None
        self.body = Body(self._balance)
        self.head: asyncio.Future[tuple[int, Headers]] = self._loop.create_future()

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.resume_writing()
        if error is None and self._until_end and self.head.done():
            self.body.end()
        self._fail("the connection ended before the answer did")

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        in_body = self.head.done()
        if not in_body:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the answer cannot be parsed: {error}")
        if not self.head.done() and self._head_bytes > limits.HEAD_BYTES_MAX:
            self._fail(f"the answer's head is larger than {limits.HEAD_BYTES_MAX} bytes")
        elif in_body and not self.body.ended and self._overhead.is_too_much(len(data)):
            self._fail("there is too much around the answer's chunks, or too many trailers")

    def _fail(self, reason: str) -> None:
        if not self.head.done():
            self.head.set_exception(ExchangeError(reason))
        self.body.break_off()
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def drop(self, sending: "asyncio.Future[None]") -> None:
        """Nobody wants the answer, or the rest of it."""
        self.abort()
        sending.cancel()

    @property
    def is_over(self) -> bool:
        return self._transport is None

    # the request

    async def send(
        self, method: str, target: bytes, headers: Headers, body: bytes | AsyncIterable[bytes]
    ) -> None:
        names = {name for name, _ in headers}
        chunked = not isinstance(body, bytes) and b"transfer-encoding" in names
        lines = [b"%b %b HTTP/1.1\r\n" % (method.encode("ascii"), target)]
        lines += [b"%b: %b\r\n" % header for header in headers if header[0] not in HOP_BY_HOP]
        if isinstance(body, bytes) and b"content-length" not in names and (body or method in ("POST", "PUT")):
            lines.append(b"content-length: %d\r\n" % len(body))
        if chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"connection: close\r\n\r\n")
        self._write(b"".join(lines) + (body if isinstance(body, bytes) else b""))
        if isinstance(body, bytes) or not (chunked or b"content-length" in names):
            return
        async for chunk in body:
            self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked and chunk else chunk)
            if self._drained is not None:
                await self._drained
        if chunked:
            self._write(b"0\r\n\r\n")

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def sent(self, sending: "asyncio.Future[None]") -> None:
        """The request is sent, or will never be: then the peer must not take it for complete."""
        error = None if sending.cancelled() else sending.exception()
        if error is not None:
            if not self.head.done():
                self.head.set_exception(error)
            self.abort()

    # the answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= limits.HEADERS_MAX:
            raise ValueError(f"more than {limits.HEADERS_MAX} headers")
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        headers, self._headers = self._headers, []
        framing = [value for name, value in headers if name in _FRAMING]
        self._interim = status < 200
        if self._interim and (status < 100 or any(value != b"0" for value in framing)):
            raise ValueError("no status, or an interim answer that speaks of a body (RFC 9110 §15.2)")
        if self._interim or self.head.done():
            return
        self._until_end = not framing and status not in _NO_BODY
        self.head.set_result((status, headers))
        if self._head_only:
            self._finish()

    def on_body(self, chunk: bytes) -> None:
        self._overhead.content_bytes += len(chunk)
        self.body.feed(chunk)
        self._balance()

    def on_message_complete(self) -> None:
        if not self._interim:
            self._finish()

    def _finish(self) -> None:
        self.body.end()
        if self._transport is not None:
            self._transport.close()

    def _balance(self) -> None:
        full = self.body.waiting_bytes > limits.BODY_BUFFER_BYTES
        if self._transport is not None and full != self._paused:
            self._paused = full
            (self._transport.pause_reading if full else self._transport.resume_reading)()
