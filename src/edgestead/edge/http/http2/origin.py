"""One connection of HTTP/2 to an origin, and the requests on it.

Owns  which requests are on it and whether it takes another; their bodies and windows; whether it is alive.
Not   frames (`wire`), fields (`head`); what an answer means: that is told to the exchange (`machine`).

    AWAITED ──▶ COMING ──▶ COMPLETE          by its end, and by its length where it states one; trailers go on
       └───────────┴─────▶ FAILED            what cannot be read, or was reset, ends one request and no other

Requests of many clients share it. So no window of one of them keeps another waiting, a stream's end is its
own, and where the origin says that it has not looked at a request (GOAWAY, REFUSED_STREAM), another
connection is tried. A connection that says nothing while it is asked is sent a PING, and then given up.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

import msgspec

from edgestead.edge import limits
from edgestead.edge.exchanges import faults, heads
from edgestead.edge.exchanges.answers import KEPT_FROM_CLIENTS, NO_BODY
from edgestead.edge.exchanges.faults import Fault
from edgestead.edge.exchanges.origins import Target
from edgestead.http1.head import LENGTH_DIGITS_MAX, Headers
from edgestead.http2 import head, wire
from edgestead.http2.field_blocks import AllBut
from edgestead.http2.floods import Floods
from edgestead.http2.wire import FRAME_OCTETS_MAX, Broken, Wire

if TYPE_CHECKING:
    from edgestead.edge.http.machine import ExchangeMachine
    from edgestead.edge.http.pool import Pool

HELD_BYTES_MAX = 64 * 1024  # of a request's body, for which its origin has no window: then the client waits
WRITE_BYTES = 64 * 1024  # of frames, in one write
SILENT_SECONDS_MAX = 10.0  # while it is asked; as long again for the answer to a PING
# What may be in the table of the compression, at the origin and here: what browsers say alike, and we. Of
# several clients none may find another one's secret there (RFC 7541 §7.1), and any header may have one.
_ALIKE = (
    b":method :scheme :authority accept accept-encoding accept-language user-agent content-type te via"
    b" cdn-loop cache-control pragma dnt origin priority upgrade-insecure-requests x-forwarded-proto"
    b" x-requested-with sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-ch-ua"
    b" sec-ch-ua-mobile sec-ch-ua-platform sec-gpc grpc-encoding grpc-accept-encoding"
)
KEPT_OUT = AllBut(_ALIKE.split())


class OriginStream(msgspec.Struct, eq=False):
    """One request on it, as its exchange knows its origin (`parties.Origin`)."""

    connection: "Http2Origin"
    reused: bool
    exchange: "ExchangeMachine | None" = None
    number: int = 0
    length: int | None = None  # of the answer, where it states one
    received: int = 0  # octets of it
    interims: int = 0
    has_answer: bool = False
    has_no_body: bool = False  # its answer, whatever its length says
    held: "deque[bytes | memoryview]" = msgspec.field(default_factory=deque)
    held_bytes: int = 0
    sent_bytes: int = 0
    asked_bytes: int = 0  # of these, when `takes` was asked the last time
    unread: int = 0  # octets of the answer for which the origin has no window back
    is_whole: bool = False  # nothing follows what is held, and that is still to be said
    is_full: bool = False
    is_paused: bool = False

    def begin(self, exchange: "ExchangeMachine", pieces: list[bytes], *, ended: bool) -> None:
        self.exchange = exchange
        self.connection.begin(self, exchange, pieces, ended=ended)

    def piece(self, piece: bytes) -> None:
        if piece and self.exchange is not None:
            self.held.append(piece)
            self.held_bytes += len(piece)
            self.connection.send(self)

    def end(self) -> None:
        if self.exchange is not None:
            self.is_whole = True
            self.connection.send(self)

    def pause(self, *, paused: bool) -> None:
        self.is_paused = paused
        if not paused:
            self.connection.give(self)

    def takes(self) -> bool:
        before, self.asked_bytes = self.asked_bytes, self.sent_bytes
        return self.sent_bytes > before

    def release(self, *, usable: bool) -> None:
        """The exchange is through: what is left of its request is of no use to anybody."""
        self.exchange = None
        self.connection.leave(self, wire.NO_ERROR if usable else wire.CANCEL)

    def abort(self) -> None:
        self.exchange = None
        self.connection.leave(self, wire.CANCEL)


class Http2Origin(asyncio.Protocol):
    """`streams` are those whose exchanges still wait for something."""

    def __init__(self, pool: "Pool", target: Target) -> None:
        self._pool, self.target = pool, target
        self.transport: asyncio.Transport | None = None
        self._floods = Floods()
        self._wire = Wire(self, self._floods, is_server=False, kept_out=KEPT_OUT)
        self._streams: dict[int, OriginStream] = {}
        self._waiting: deque[OriginStream] = deque()  # that have something to send; each once
        self._touched: list[OriginStream] = []  # of which something came
        self._is_stuffed = self._is_acting = self._is_write_due = self._is_leaving = False
        self._served = 0
        self.idle_since = self._heard = pool.now
        self._asked_for_life = 0.0  # when a PING was sent

    # for the pool

    @property
    def has_room(self) -> bool:
        """Whether it takes another request."""
        transport = self.transport
        return (
            transport is not None
            and not self._is_leaving
            and not self._is_stuffed
            and len(self._streams) < min(self.target.streams_max, self._wire.streams_max)
            and self._wire.highest < wire.WINDOW_MAX - 2
            and not transport.is_closing()
        )

    @property
    def is_asked(self) -> bool:
        """Whether there is a request on it."""
        return bool(self._streams)

    def stream(self) -> OriginStream:
        return OriginStream(self, self._served > 0)

    def sweep(self, now: float) -> None:
        """Look whether it is alive, and whether it is of use."""
        self._floods.begin_second()
        if not self._streams:
            if now - self.idle_since > limits.IDLE_HTTP2_ORIGIN_SECONDS_MAX:
                self.abort()
        elif now - self._heard > SILENT_SECONDS_MAX:
            if not self._asked_for_life:
                self._asked_for_life = now
                self._wire.ping()
                self._write()
            elif now - self._asked_for_life > SILENT_SECONDS_MAX:
                self.abort()

    def retire(self) -> None:
        """Take no further requests, and end with the last of those that are on it."""
        self._is_leaving = True
        self._rest()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        self._write()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._wire.drop()
        self._pool.left(self)
        self._end_all(faults.BROKE_OFF)

    def pause_writing(self) -> None:
        self._is_stuffed = True

    def resume_writing(self) -> None:
        self._is_stuffed = False
        self._send_all()

    def data_received(self, data: bytes) -> None:
        self._heard, self._asked_for_life = self._pool.now, 0.0
        self._wire.feed(data)
        self._is_acting = True
        try:
            while self._wire.is_left:
                self._wire.step()
        except Broken as broken:
            self._wire.goaway(broken.code)
            self._write()
            self._is_leaving = True
            self._end_all(faults.UNREADABLE)
            self.abort()
        finally:
            self._is_acting = False
        touched, self._touched = self._touched, []
        for stream in touched:
            if stream.exchange is not None:
                stream.exchange.flush()
        self._send_all()

    # a request

    def begin(
        self, stream: OriginStream, exchange: "ExchangeMachine", pieces: list[bytes], *, ended: bool
    ) -> None:
        if self.transport is None:
            self._lose(stream, faults.BROKE_OFF)
            return
        stream.number = number = self._wire.open_stream()
        self._streams[number] = stream
        self._served += 1
        has_body = any(pieces) or not ended
        self._wire.head(number, self._fields(exchange, has_body=has_body), ends=not has_body)
        if has_body:
            stream.is_whole = ended
            stream.held.extend(piece for piece in pieces if piece)
            stream.held_bytes = sum(map(len, pieces))
            self._wait(stream)
        self._send_all()

    def _fields(self, exchange: "ExchangeMachine", *, has_body: bool) -> Headers:
        facts, choice = exchange.exchange, exchange.exchange.origin
        host = choice.host_header if choice is not None and choice.host_header else facts.header(b"host")
        headers = facts.to_send
        connection = exchange.read.connection if headers is facts.headers else None
        said = heads.to_origin(headers, connection)
        if has_body and exchange.length is not None:
            said.append((b"content-length", b"%d" % exchange.length))
        if facts.version == b"HTTP/2" and facts.header(b"te") == b"trailers":
            said.append((b"te", b"trailers"))  # as gRPC asks for it; what comes of it goes on to this client
        scheme = b"https" if self.target.tls else b"http"
        return head.of_request(facts.method, scheme, host or b"", facts.target, said, exchange.added)

    def send(self, stream: OriginStream) -> None:
        """More of its body is here, or its end."""
        self._wait(stream)
        self._send_all()
        if stream.held_bytes > HELD_BYTES_MAX and not stream.is_full and stream.exchange is not None:
            stream.is_full = True
            stream.exchange.origin_full(full=True)

    def _wait(self, stream: OriginStream) -> None:
        if stream not in self._waiting:
            self._waiting.append(stream)

    def _send_all(self) -> None:
        """A frame of each in turn, as far as windows reach."""
        if self._is_acting or self.transport is None:
            return
        sent = 0
        waiting = self._waiting
        while waiting and not self._is_stuffed:
            stream = waiting.popleft()
            if stream.number not in self._streams:
                continue
            sent += self._send_frame(stream)
            if sent > WRITE_BYTES:
                self._write()
                sent = 0
        self._write_soon()

    def _send_frame(self, stream: OriginStream) -> int:
        """One frame; it waits on where there are more, and for its window where that is closed."""
        held, size = stream.held, min(self._wire.window(stream.number), FRAME_OCTETS_MAX)
        piece: bytes | memoryview = held[0] if held else b""
        if piece and size <= 0:
            return 0  # `window_came` has it wait again
        if len(piece) > size:
            piece, held[0] = memoryview(piece)[:size], memoryview(piece)[size:]
        elif piece:
            held.popleft()
        ends = stream.is_whole and not held
        if not piece and not ends:
            return 0
        self._wire.data(stream.number, piece, ends=ends)
        if ends:
            stream.is_whole = False
        stream.held_bytes -= len(piece)
        stream.sent_bytes += len(piece)
        if held:
            self._waiting.append(stream)
        if stream.is_full and stream.held_bytes < HELD_BYTES_MAX // 2:
            stream.is_full = False
            if stream.exchange is not None:
                stream.exchange.origin_full(full=False)
        return len(piece)

    def give(self, stream: OriginStream) -> None:
        """For what its exchange has taken the origin may send as much again."""
        if stream.unread and not stream.is_paused:
            unread, stream.unread = stream.unread, 0
            self._wire.give(stream.number, unread)
            self._write_soon()

    def leave(self, stream: OriginStream, code: int) -> None:
        if self._streams.get(stream.number) is stream:
            del self._streams[stream.number]
            self._wire.reset(stream.number, code)  # where an end is still missing
            self._write_soon()
            self._rest()

    def _rest(self) -> None:
        """Where no request is left on it, it is idle from now on; or ends, when it takes no more."""
        if not self._streams:
            self.idle_since = self._pool.now
            if self._is_leaving:
                self._write()
                self.abort()

    def _write_soon(self) -> None:
        """Once for all that is said in this turn of the loop."""
        if not self._is_write_due:
            self._is_write_due = True
            self._pool.loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_write_due = False
        data = self._wire.take()
        if data and self.transport is not None:
            self.transport.write(data)

    # what comes

    def settings_came(self) -> None:
        self._wait_all()
        if not self._wire.streams_max:  # it has no room for any: kept, it would be one more for each request
            self.retire()

    def window_came(self, number: int) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            self._wait(stream)
        elif not number:
            self._wait_all()

    def _wait_all(self) -> None:
        for stream in self._streams.values():
            if stream.held or stream.is_whole:
                self._wait(stream)

    def priority_came(self, number: int, value: bytes) -> None:
        pass

    def head_came(self, number: int, fields: Headers, ends: bool) -> None:
        stream = self._streams.get(number)
        exchange = None if stream is None else stream.exchange
        if stream is None or exchange is None:
            return
        try:
            if stream.has_answer:
                self._take_trailers(stream, exchange, fields, ends)
            else:
                self._take_head(stream, exchange, *head.read_answer(fields), ends)
        except head.Malformed:
            self._fail(stream)

    def _take_head(
        self, stream: OriginStream, exchange: "ExchangeMachine", status: int, headers: Headers, ends: bool
    ) -> None:
        """Raises Malformed."""
        if status < 200:
            stream.interims += 1
            bodied = any(name == b"content-length" and value != b"0" for name, value in headers)
            if ends or bodied or status == 101 or stream.interims > limits.INTERIM_MAX:
                raise head.Malformed
            exchange.interim(status, [one for one in headers if one[0] not in KEPT_FROM_CLIENTS])
            self._touched.append(stream)
            return
        length = _length(headers)
        bodyless = exchange.exchange.method == b"HEAD" or status in NO_BODY
        if ends and length and not bodyless:
            raise head.Malformed
        stream.has_answer, stream.has_no_body, stream.length = True, bodyless, length
        exchange.answer_head(status, headers, dict(headers), length, bodyless)
        if ends:
            exchange.answer_end()
        else:
            self._touched.append(stream)

    def _take_trailers(
        self, stream: OriginStream, exchange: "ExchangeMachine", fields: Headers, ends: bool
    ) -> None:
        """Raises Malformed."""
        if not ends or not _is_complete(stream):
            raise head.Malformed
        trailers = head.read_trailers(fields)
        if trailers:
            exchange.answer_trailers(trailers)
        exchange.answer_end()

    def data_came(self, number: int, piece: bytes, octets: int, ends: bool) -> None:
        stream = self._streams.get(number)
        exchange = None if stream is None else stream.exchange
        if stream is None or exchange is None:
            return
        stream.received += len(piece)
        too_long = stream.length is not None and stream.received > stream.length
        if not stream.has_answer or too_long or (piece and stream.has_no_body):
            self._fail(stream)
            return
        if piece:
            exchange.answer_piece(piece)
        if ends:
            if _is_complete(stream):
                exchange.answer_end()
            else:
                self._fail(stream)
            return
        stream.unread += octets
        self.give(stream)
        self._touched.append(stream)

    def reset_came(self, number: int, code: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            untaken = code == wire.REFUSED_STREAM and not stream.has_answer
            self._lose(stream, faults.UNTAKEN if untaken else faults.BROKE_OFF)
            self._rest()

    def goaway_came(self, last: int, code: int) -> None:
        """It takes no more: what it has not looked at is asked elsewhere, the rest is still answered."""
        self._is_leaving = True
        for number in [one for one in self._streams if one > last]:
            self._lose(self._streams.pop(number), faults.UNTAKEN)
        self.retire()

    # ends

    def _fail(self, stream: OriginStream) -> None:
        """Its answer cannot be read; those of others can."""
        self._streams.pop(stream.number, None)
        self._wire.reset(stream.number, wire.PROTOCOL_ERROR)
        self._lose(stream, faults.UNREADABLE)
        self._rest()

    def _lose(self, stream: OriginStream, fault: Fault) -> None:
        exchange, stream.exchange = stream.exchange, None
        if exchange is not None:
            exchange.origin_lost(fault)

    def _end_all(self, fault: Fault) -> None:
        streams, self._streams = self._streams, {}
        self._waiting.clear()
        for stream in streams.values():
            self._lose(stream, fault)


def _length(headers: Headers) -> int | None:
    """What the answer states. Raises Malformed."""
    stated = [value for name, value in headers if name == b"content-length"]
    if not stated:
        return None
    if len(stated) > 1 or not stated[0].isdigit() or len(stated[0]) > LENGTH_DIGITS_MAX:
        raise head.Malformed
    return int(stated[0])


def _is_complete(stream: OriginStream) -> bool:
    return stream.length is None or stream.has_no_body or stream.received == stream.length
