"""One HTTP/1.1 request to somebody else, and the answer to it.

Owns  the bytes of a request, parsing of the answer, back-pressure both ways, deadlines; connections that are
      kept to another process of ours.
Not   redirects, proxies, cookies, decompression; keeping connections to anybody else, which may close them
      while a request is on its way.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import NamedTuple, cast

import httptools
import msgspec

from edgestead.http1 import limits
from edgestead.http1.head import Headers
from edgestead.http1.messages import Body
from edgestead.http1.overhead import Overhead

CONNECT_SECONDS_MAX = 10.0  # to one address, TLS included
KEPT_MAX = 256
"""Connections to one process that wait for their next exchange: how many end at the same time where a crowd
sends requests behind one another. With 64 each process opened, accepted and closed more than a thousand a
second there, and whose exchange needed a new one waited for its turn to be accepted."""
KEPT_SECONDS_MAX = 30.0  # that one waits: far shorter than the other end keeps it (`limits.IDLE_SECONDS_MAX`)
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


class Own(NamedTuple):
    """A way of the caller's own: `open` connects the protocol that it is given. It raises OSError."""

    open: Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]


class Kept:
    """Connections to another process of ours, used again: one exchange at a time on each.

    A new one for each exchange would wait at the other end until it is accepted, of which a loop does one in
    each of its rounds: behind those of a crowd.
    """

    __slots__ = ("_idle", "to")

    def __init__(self, to: Unix | Own) -> None:
        self.to = to
        self._idle: list[tuple[float, _Link]] = []  # since when; the newest is the last

    def take(self) -> "_Link | None":
        """One that waits, if there is any."""
        while self._idle:
            since, link = self._idle.pop()
            if link.transport is None or link.transport.is_closing():  # the other end has closed it
                continue
            if time.monotonic() - since < KEPT_SECONDS_MAX:
                return link
            self.close()  # those that are left have waited longer
            link.close()
        return None

    def give_back(self, link: "_Link") -> None:
        """Its exchange is over, both ways."""
        if len(self._idle) < KEPT_MAX:
            self._idle.append((time.monotonic(), link))
        else:
            link.close()

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, link in idle:
            link.close()


class ExchangeError(OSError):
    """No answer came, or none that can be read. Whether the request had an effect is not known."""


class _Body:
    """The body of an answer, to be iterated over once.

    Its exchange ends when its reader stops, and when it is dropped: most callers that only look at a status
    never ask for the body, and a generator that was not begun has no end to clean up at.
    """

    def __init__(self, exchange: "_Exchange") -> None:
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Raises BodyBroken."""
        try:
            async for chunk in self._exchange.body:
                yield chunk
        finally:
            self._exchange.drop()

    def __del__(self) -> None:
        if not self._exchange.is_over:  # on whatever thread collects garbage
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the connection with it
                self._exchange.head.get_loop().call_soon_threadsafe(self._exchange.drop)


class Answer(msgspec.Struct):
    """`headers` are without those of the connection. `body` can be read once. `ends`: they said that the
    connection ends with this answer.
    """

    status: int
    headers: Headers
    body: AsyncIterable[bytes]
    ends: bool = False


async def exchange(
    to: Tcp | Unix | Own | Kept,
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
    kept = to if isinstance(to, Kept) else None
    link = kept.take() if kept is not None else None
    if link is None:
        link = _Link()
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await _connect(to.to if isinstance(to, Kept) else to, link)
        except TimeoutError:
            raise ExchangeError(f"no connection within {CONNECT_SECONDS_MAX:g} s") from None
    begun = _Exchange(link, kept, head_only=method == "HEAD")
    begun.begin(method, target, headers, body)
    try:
        async with asyncio.timeout(head_seconds_max):
            status, found = await begun.head
    except BaseException as error:
        begun.drop()
        if isinstance(error, TimeoutError):
            raise ExchangeError(f"no answer within {head_seconds_max:g} s") from None
        raise
    kept_headers = [header for header in found if header[0] not in HOP_BY_HOP]
    ends = any(name == b"connection" and b"close" in value.lower() for name, value in found)
    return Answer(status, kept_headers, _Body(begun), ends)


async def _connect(to: Tcp | Unix | Own, link: "_Link") -> None:
    loop = asyncio.get_running_loop()
    if isinstance(to, Unix):
        await loop.create_unix_connection(lambda: link, to.path)
    elif isinstance(to, Own):
        await to.open(lambda: link)
    else:
        name = to.host if to.tls is not None else None
        await loop.create_connection(lambda: link, to.host, to.port, ssl=to.tls, server_hostname=name)


class _Link(asyncio.Protocol):
    """A connection: what comes is of its exchange. Without one, nothing should come."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.exchange: _Exchange | None = None
        self.drained: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.resume_writing()
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.lost(error)

    def balance(self) -> None:
        if self.exchange is not None:
            self.exchange.balance()

    def pause_writing(self) -> None:
        self.drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        drained, self.drained = self.drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.exchange is None:
            self.abort()
        else:
            self.exchange.data_received(data)

    def write(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _Exchange:
    """On one connection, which it gives back to those that are `kept` when it can carry another one.

    It leaves no cycle behind: of 17 objects each, a crowd's made collections of 10 ms, five in a second.
    """

    def __init__(self, link: _Link, kept: Kept | None, *, head_only: bool) -> None:
        self._link, self._kept = link, kept
        link.exchange = self
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)  # to the end
        self._head_only = head_only
        self._headers: Headers = []
        self._head_bytes = 0
        self._overhead = Overhead()
        self._interim = self._until_end = self._paused = False
        self._is_sent = False
        self._sending: asyncio.Task[None] | None = None  # of a body that is no bytes
        self.body = Body(link.balance)
        self.head: asyncio.Future[tuple[int, Headers]] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return self._link.exchange is not self or self._link.transport is None

    # the connection

    def lost(self, error: Exception | None) -> None:
        self._parser = None
        if error is None and self._until_end and self.head.done():
            self.body.end()
        self._fail("the connection ended before the answer did")

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            return
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
        self._abort()

    def _abort(self) -> None:
        if not self.is_over:
            self._link.abort()

    def drop(self) -> None:
        """Nobody wants the answer, or the rest of it."""
        self._abort()
        if self._sending is not None:
            self._sending.cancel()

    # the request

    def begin(self, method: str, target: bytes, headers: Headers, body: bytes | AsyncIterable[bytes]) -> None:
        """Send it: bytes at once, what comes by and by on a task."""
        names = {name for name, _ in headers}
        chunked = not isinstance(body, bytes) and b"transfer-encoding" in names
        lines = [b"%b %b HTTP/1.1\r\n" % (method.encode("ascii"), target)]
        lines += [b"%b: %b\r\n" % header for header in headers if header[0] not in HOP_BY_HOP]
        if isinstance(body, bytes) and b"content-length" not in names and (body or method in ("POST", "PUT")):
            lines.append(b"content-length: %d\r\n" % len(body))
        if chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"connection: close\r\n\r\n" if self._kept is None else b"\r\n")
        self._write(b"".join(lines) + (body if isinstance(body, bytes) else b""))
        if isinstance(body, bytes) or not (chunked or b"content-length" in names):
            self._is_sent = True
            return
        self._sending = asyncio.get_running_loop().create_task(self._send(body, chunked=chunked))
        self._sending.add_done_callback(self._sent)

    async def _send(self, body: AsyncIterable[bytes], *, chunked: bool) -> None:
        async for chunk in body:
            self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked and chunk else chunk)
            if self._link.drained is not None:
                await self._link.drained
        if chunked:
            self._write(b"0\r\n\r\n")
        self._is_sent = True

    def _write(self, data: bytes) -> None:
        if not self.is_over:
            self._link.write(data)

    def _sent(self, sending: "asyncio.Task[None]") -> None:
        """The request is sent, or will never be: then the peer must not take it for complete."""
        error = None if sending.cancelled() else sending.exception()
        if error is not None:
            if not self.head.done():
                self.head.set_exception(error)
            self._abort()

    # the answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= limits.HEADERS_MAX:
            raise ValueError(f"more than {limits.HEADERS_MAX} headers")
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._parser is None:  # behind its end
            return
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
            self._finish(is_reusable=False)

    def on_body(self, chunk: bytes) -> None:
        self._overhead.content_bytes += len(chunk)
        self.body.feed(chunk)
        self.balance()

    def on_message_complete(self) -> None:
        if self._parser is not None and not self._interim:
            self._finish(is_reusable=self._is_sent and self._parser.should_keep_alive())

    def _finish(self, *, is_reusable: bool) -> None:
        self._parser = None
        self.body.end()
        if self.is_over:
            return
        if self._kept is None or not is_reusable:
            self._link.close()
            return
        if self._paused:
            assert self._link.transport is not None
            self._link.transport.resume_reading()
        self._link.exchange = None
        self._kept.give_back(self._link)

    def balance(self) -> None:
        """Read on, or no further, as its reader takes what has come."""
        full = self.body.waiting_bytes > limits.BODY_BUFFER_BYTES
        if not self.is_over and full != self._paused:
            assert self._link.transport is not None
            self._paused = full
            transport = self._link.transport
            (transport.pause_reading if full else transport.resume_reading)()
