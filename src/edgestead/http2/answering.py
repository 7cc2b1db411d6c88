"""A connection of HTTP/2 whose requests an application answers: DNS over HTTPS.

Owns  requests as an application gets them, answers as frames, streams that are late.
Not   the connection (`driver`); what a request's fields may be (`head`); the application, its refusals and
      its other connections (`http1.server`, which serves both versions).

    (head came) ──▶ SERVED ──▶ ANSWERED ──▶ gone       a `_Stream` each. Its body may come before, while it is
                       └─ reset ──┴───────────▲        served and after its answer, and its answer goes out
                                                       as far as windows reach

It is served when the frames that came with its head are read: mostly its whole body is among them. Answers
are whole; nothing here streams one, and `Response.close` says nothing where a connection has many.
"""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

import msgspec

from edgestead.http1 import limits
from edgestead.http1.head import Headers, Refused
from edgestead.http1.head import read as read_head
from edgestead.http1.messages import NO_BODY, Body, Request, Response
from edgestead.http2 import head, wire
from edgestead.http2.driver import CLOSED, REQUESTS_MAX, WRITE_BYTES, Driver
from edgestead.http2.wire import FRAME_OCTETS_MAX
from edgestead.model.budgets.networks import network_of

if TYPE_CHECKING:
    from edgestead.http1.server import Server

log = logging.getLogger(__name__)
SCHEME = b"https"  # nobody is served in HTTP/2 without TLS
IGNORED_BYTES_MAX = wire.STREAM_WINDOW  # of a body behind its answer
_KEPT_OUT = frozenset({b"content-length", b"set-cookie"})
_NOTHING = contextvars.Context()  # what a request inherits from the one before it


class _Stream(msgspec.Struct, eq=False):
    """`left` of its answer is not sent yet, None before there is one; `unread` octets of its body were not
    given back. `length` is what the body says to have, None where it says nothing.
    """

    number: int
    deadline: float
    request: Request | None = None
    length: int | None = None
    is_receiving: bool = False
    head_bytes: int = 0
    body_bytes: int = 0
    unread: int = 0
    head_only: bool = False
    left: memoryview | None = None


class Answering(Driver[_Stream]):
    """One client's connection to a `server`, which is the one of HTTP/1.1, too."""

    def __init__(self, server: "Server") -> None:
        super().__init__(server, _KEPT_OUT)
        self._server, self._client = server, ""
        self._touched: list[_Stream] = []  # to be served when what was read with them is
        self._tasks: set[asyncio.Task[None]] = set()  # also of streams that are gone

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._client = peer[0]
            self._subject = network_of(self._client)
        self._account, turned_away = self._server.enter(self, self._client)
        if turned_away is not None:
            self._calm()
        self._write()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.leave(self)
        self._gone()

    # what comes

    def head_came(self, number: int, fields: Headers, ends: bool) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            if ends and head.are_trailers(fields):  # which say nothing to an application
                self._end_body(stream)
            else:
                self._reset(stream, wire.PROTOCOL_ERROR)
            return
        if not self._is_taken():
            self._wire.reset(number, wire.REFUSED_STREAM)
            return
        deadline = self._server.soon + limits.BODY_SECONDS_MAX
        stream = self._streams[number] = _Stream(number, deadline, is_receiving=not ends)
        stream.head_only = (b":method", b"HEAD") in fields
        stream.head_bytes = sum(len(name) + len(value) for name, value in fields)
        try:
            self._make(stream, fields)
        except Refused as refused:
            status, reason = refused.args
            self._answer(stream, self._server.refuse(status, reason, self._client))
        else:
            self._touched.append(stream)
        if self._requests >= REQUESTS_MAX:
            self._go_away()

    def _make(self, stream: _Stream, fields: Headers) -> None:
        """Raises Refused."""
        said = head.read(fields, SCHEME)
        if said.is_websocket:
            raise Refused(501, "here is no WebSocket")
        read = read_head("1.1", said.method, said.target, said.headers, self._server.headers_max)
        is_said = b"content-length" in read.found
        stream.length = read.length if is_said or not stream.is_receiving else None
        if not stream.is_receiving and read.length:
            raise Refused(400, "its body is shorter than it says")
        body = Body(lambda: self._give(stream), ended=not stream.is_receiving)
        stream.request = Request(
            said.method.decode(), read.target, said.headers, self._client, body, read.found
        )

    def data_came(self, number: int, piece: bytes, octets: int, ends: bool) -> None:
        stream = self._streams.get(number)
        if stream is None:
            self._wire.give(number, octets)
            return
        stream.unread += octets
        stream.body_bytes += len(piece)
        if stream.request is None or stream.left is not None:
            if stream.body_bytes > IGNORED_BYTES_MAX:
                self._reset(stream, wire.CANCEL)
                return
        elif stream.length is not None and stream.body_bytes > stream.length:
            self._reset(stream, wire.PROTOCOL_ERROR)
            return
        elif piece:
            stream.deadline = self._server.soon + limits.BODY_SECONDS_MAX
            stream.request.body.feed(piece)
        if ends:
            self._end_body(stream)

    def _end_body(self, stream: _Stream) -> None:
        stream.is_receiving = False
        if stream.request is None or stream.left is not None:
            return
        if stream.length is not None and stream.body_bytes != stream.length:
            self._reset(stream, wire.PROTOCOL_ERROR)  # RFC 9113 §8.1.1
            return
        stream.request.body.end()

    def _give(self, stream: _Stream) -> None:
        """The application has read what was there."""
        unread, stream.unread = stream.unread, 0
        self._wire.give(stream.number, unread)
        if not self._is_acting:
            self._write_soon()

    def reset_came(self, number: int, code: int) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            self._forget(stream)

    def window_came(self, number: int) -> None:
        """`_send_ready` looks at all of them."""

    # serving

    def _stepped(self) -> None:
        self._go_on()

    def _go_on(self) -> None:
        touched, self._touched = self._touched, []
        for stream in touched:
            if stream.number in self._streams:
                self._serve(stream)

    def _serve(self, stream: _Stream) -> None:
        assert stream.request is not None
        try:
            answer = self._server.handler(stream.request)
        except Exception:
            log.exception("serving %s", stream.request.method)
            self._reset(stream, wire.INTERNAL_ERROR)
            return
        if isinstance(answer, Response):
            self._answer(stream, answer)
        else:
            task = self._server.loop.create_task(self._serve_later(stream, answer), context=_NOTHING.copy())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve_later(self, stream: _Stream, answer: Coroutine[Any, Any, Response | None]) -> None:
        response = None
        try:
            response = await answer
        except Exception:
            log.exception("serving a request")
        finally:
            if response is None:
                self._reset(stream, wire.INTERNAL_ERROR)
        if response is not None:
            self._answer(stream, response)
            self._send_all()
            self._draw()

    def _answer(self, stream: _Stream, response: Response) -> None:
        response.done(None)
        if stream.number not in self._streams:
            return  # its client has taken it back
        body = response.body
        assert isinstance(body, bytes)
        fields = [(b":status", b"%d" % response.status), *response.headers]
        fields.append((b"date", self._server.date_line()[len(b"date: ") : -len(b"\r\n")]))
        if response.status in NO_BODY:
            body = b""
        else:
            fields.append((b"content-length", b"%d" % len(body)))
        stream.left = memoryview(b"" if stream.head_only else body)
        stream.deadline = self._server.soon + limits.STALL_SECONDS_MAX
        is_said = self._wire.head(stream.number, fields, ends=not stream.left)
        if is_said and not stream.left:
            self._answered(stream)

    def _send_ready(self) -> None:
        """Frames by turns, so that no long answer is in the way of short ones."""
        unsent = [stream for stream in self._streams.values() if stream.left]
        total = 0
        while unsent and not self._is_stuffed and self._state is not CLOSED:
            sent = [(stream, self._send_frame(stream)) for stream in unsent]
            unsent = [stream for stream, octets in sent if octets and stream.left]
            total += sum(octets for _, octets in sent)
            if total > WRITE_BYTES:
                self._write()
                total = 0

    def _send_frame(self, stream: _Stream) -> int:
        """One frame, as far as its window reaches; how many octets."""
        assert stream.left is not None
        piece = stream.left[: max(0, min(self._wire.window(stream.number), FRAME_OCTETS_MAX))]
        if piece:
            stream.left = stream.left[len(piece) :]
            stream.deadline = self._server.soon + limits.STALL_SECONDS_MAX
            self._wire.data(stream.number, piece, ends=not stream.left)
            if not stream.left:
                self._answered(stream)
        return len(piece)

    def _answered(self, stream: _Stream) -> None:
        """All of it is said. The rest of the request's body is of no use (RFC 9113 §8.1)."""
        self._floods.answered()
        if stream.is_receiving:
            self._wire.reset(stream.number, wire.NO_ERROR)
        self._forget(stream)

    def _reset(self, stream: _Stream, code: int) -> None:
        if stream.number in self._streams:
            self._wire.reset(stream.number, code)
            self._forget(stream)
            self._send_all()

    def _forget(self, stream: _Stream) -> None:
        self._streams.pop(stream.number, None)
        self._leave(stream)
        if stream.unread:
            self._wire.give(stream.number, stream.unread)
            stream.unread = 0
        if not self._streams:
            self._deadline = self._server.soon + limits.IDLE_SECONDS_MAX

    def _leave(self, stream: _Stream) -> None:
        if stream.request is not None:
            stream.request.body.break_off()

    # what ends

    def _held_bytes(self) -> int:
        held = 0
        for stream in self._streams.values():
            held += limits.REQUEST_BYTES + stream.head_bytes + len(stream.left or b"")
            held += 0 if stream.request is None else stream.request.drawn_bytes
        return held

    def _end_streams(self) -> None:
        streams, self._streams, self._touched = self._streams, {}, []
        for stream in streams.values():
            self._leave(stream)

    def cancel(self) -> None:
        """The time to drain is over."""
        for task in tuple(self._tasks):
            task.cancel()

    def _look_at(self, stream: _Stream, now: float) -> None:
        if now > stream.deadline and not self._is_stuffed and self._state is not CLOSED:
            self._reset(stream, wire.CANCEL)
