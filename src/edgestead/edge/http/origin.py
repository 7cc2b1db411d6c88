"""One connection to an origin: a request at a time, its answer as it comes.

Owns  writing requests, parsing answers, whether the connection may be used again.
Not   what a request or an answer means: it tells the exchange (`machine`) what came, and does what that asks.

    AWAITED ──▶ COMING ──▶ COMPLETE ──▶ SURPLUS    by its length, or in chunks; what stands behind it
       ├──────▶ UNTIL_CLOSE                        by the end of the connection
       └──────▶ TUNNELLED                          behind 101: no HTTP any more

Nothing that comes behind the end of an answer belongs to anybody: such a connection is never used again, so
that no origin can answer a question which was not asked yet.
"""

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, cast

import httptools

from edgestead.edge import limits
from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.answers import FRAMING, KEPT_FROM_CLIENTS, end_to_end
from edgestead.edge.exchanges.faults import Fault, OriginFault
from edgestead.edge.exchanges.heads import request_head
from edgestead.edge.exchanges.origins import Target
from edgestead.http1.head import LENGTH_DIGITS_MAX, Headers, is_too_large
from edgestead.http1.overhead import Overhead

if TYPE_CHECKING:
    from edgestead.edge.http.machine import ExchangeMachine
    from edgestead.edge.http.pool import Pool

_LAST_CHUNK = b"0\r\n\r\n"
_BODIED = frozenset({b"POST", b"PUT", b"PATCH"})  # they say that they have no body (RFC 9110 §8.6)
_NO_BODY = frozenset({204, 304})
_BODYLESS = frozenset({100, 102, 103})  # interim answers of which llhttp knows it
_SPOKEN = (b"HTTP/1.1 ", b"HTTP/1.0 ")  # llhttp would take HTTP/0.9, HTTP/2.0, RTSP and ICE for them
_VERSIONS = ("1.1", "1.0")


class Answer(Enum):
    """How far the answer to the last request is; the module's docstring draws it."""

    AWAITED = "awaited"
    COMING = "coming"
    UNTIL_CLOSE = "until close"
    COMPLETE = "complete"
    SURPLUS = "surplus"
    TUNNELLED = "tunnelled"


_AWAITED, _COMING, _COMPLETE, _SURPLUS = Answer.AWAITED, Answer.COMING, Answer.COMPLETE, Answer.SURPLUS


class OriginConnection(asyncio.Protocol):
    __slots__ = (
        "_answer",
        "_exchange",
        "_head_bytes",
        "_head_only",
        "_headers",
        "_interims",
        "_is_chunked",
        "_left_bytes",
        "_line",
        "_overhead",
        "_parser",
        "_pool",
        "_trailers",
        "idle_since",
        "keep_alive",
        "reused",
        "target",
        "transport",
        "writing_paused",
    )

    def __init__(self, pool: "Pool", target: Target) -> None:
        self._pool = pool
        self.target = target
        self.transport: asyncio.Transport | None = None
        self._exchange: ExchangeMachine | None = None
        self.reused = False
        self.idle_since = 0.0
        self.keep_alive = False
        self.writing_paused = False
        self._parser = self._new_parser()
        self._headers: Headers = []
        self._answer = _COMPLETE
        self._head_bytes = 0
        self._line = b""  # what is here of an answer's first words, while they are not all
        self._interims = 0
        self._left_bytes = 0  # of what was sent, not taken when it was looked at last
        self._overhead: Overhead | None = None  # of a chunked answer
        self._trailers = 0
        self._is_chunked = False  # the request's body
        self._head_only = False  # the request was HEAD

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            self._pool.gone(self)
        elif self._answer is Answer.UNTIL_CLOSE and error is None:
            exchange.answer_end()
        else:
            exchange.origin_lost(faults.BROKE_OFF)

    def pause_writing(self) -> None:
        self.writing_paused = True
        self.takes()
        if self._exchange is not None:
            self._exchange.origin_full(full=True)

    def resume_writing(self) -> None:
        self.writing_paused = False
        if self._exchange is not None:
            self._exchange.origin_full(full=False)

    def _new_parser(self) -> httptools.HttpResponseParser:
        """Lines of heads may end in LF alone (RFC 9112 §2.2): only we read them, and they are written anew.

        Chunks have to be framed as they should be.
        """
        parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        return parser

    # a request

    def begin(self, exchange: "ExchangeMachine", pieces: list[bytes], *, ended: bool) -> None:
        """Send a request's head and what there is of its body, in one write."""
        assert self.transport is not None
        self._exchange = exchange
        self._answer = _AWAITED
        self._head_bytes = self._interims = 0
        self._overhead = None
        length = exchange.length
        facts, self._is_chunked = exchange.exchange, length is None
        self._head_only = facts.method == b"HEAD"
        head = _head(exchange)
        if length is None:
            chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
            last = _LAST_CHUNK if ended else b""
            first = b"".join((head, b"transfer-encoding: chunked\r\n\r\n", *chunks, last))
        elif length or facts.method in _BODIED:
            first = b"".join((head, b"content-length: %d\r\n\r\n" % length, *pieces))
        else:
            first = head + b"\r\n"
        self.transport.write(first)

    def piece(self, piece: bytes) -> None:
        if self.transport is not None:
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def end(self) -> None:
        if self.transport is not None and self._is_chunked:
            self.transport.write(_LAST_CHUNK)

    def pause(self, *, paused: bool) -> None:
        if self.transport is not None:
            (self.transport.pause_reading if paused else self.transport.resume_reading)()

    @property
    def held_bytes(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def takes(self) -> bool:
        """Whether it has taken some of what was sent to it since this was asked the last time."""
        before = self._left_bytes
        self._left_bytes = 0 if self.transport is None else self.transport.get_write_buffer_size()
        return self._left_bytes < before

    def release(self, *, usable: bool) -> None:
        """The exchange is through with this connection."""
        self._exchange = None
        if self.transport is None:
            return
        usable = usable and self.keep_alive and self._answer is _COMPLETE and not self.writing_paused
        if not usable or self.transport.is_closing():
            self.transport.abort()
            return
        if self._head_only:  # the parser still waits for the body that a HEAD's answer only speaks of
            self._parser = self._new_parser()
        self.reused = True
        self._pool.put(self)

    def abort(self) -> None:
        self._exchange = None
        if self.transport is not None:
            self.transport.abort()

    # the answer

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:  # it says something that nobody asked for
            self.abort()
            return
        overhead = self._overhead
        if self._answer is _AWAITED:
            if (not self._head_bytes or self._line) and not self._speaks_http(data):
                self._fail(exchange, faults.UNREADABLE)
                return
            self._head_bytes += len(data)
        elif self._answer is Answer.TUNNELLED:
            exchange.answer_piece(data)
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._stopped(exchange, data[pause.args[0] :])
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._unread(exchange, cause.fault if isinstance(cause, OriginFault) else faults.UNREADABLE)
            return
        if self._answer is _COMPLETE or self._answer is _SURPLUS:
            exchange.answer_end()
        elif self._answer is _AWAITED and self._head_bytes > limits.HEAD_BYTES_MAX:
            self._fail(exchange, faults.UNREADABLE)
        elif overhead is not None and overhead.is_too_much(len(data)):
            self._fail(exchange, faults.UNREADABLE)
        elif self._exchange is exchange:
            exchange.flush()

    def _speaks_http(self, data: bytes) -> bool:
        """Whether an answer begins, as far as it is here, with a version of the protocol that was asked."""
        if data.startswith(_SPOKEN) and not self._line:
            return True
        line = (self._line + data).lstrip(b"\r\n")[: len(_SPOKEN[0])]
        self._line = b"" if line in _SPOKEN else line or b"\n"
        return any(spoken.startswith(line) for spoken in _SPOKEN)

    def _stopped(self, exchange: "ExchangeMachine", rest: bytes) -> None:
        """At a head that says 101, where there may be a tunnel from now on."""
        switches = self._answer is not _SURPLUS and self._parser.get_status_code() == 101
        if not (switches and exchange.switched()):
            self._unread(exchange, faults.UNREADABLE)
            return
        self._answer = Answer.TUNNELLED
        if rest:
            exchange.answer_piece(rest)

    def _unread(self, exchange: "ExchangeMachine", fault: Fault) -> None:
        """What cannot be read is this answer, or stands behind it and is nobody's."""
        if self._answer is _COMPLETE or self._answer is _SURPLUS:
            self._answer = _SURPLUS
            exchange.answer_end()
        else:
            self._fail(exchange, fault)

    def _fail(self, exchange: "ExchangeMachine", fault: Fault) -> None:
        self.abort()
        exchange.origin_lost(fault)

    def on_message_begin(self) -> None:
        if self._answer is not _AWAITED:
            self._answer = _SURPLUS
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is _AWAITED:
            self._headers.append((name.lower(), value))
            return
        self._trailers += 1  # and dropped (RFC 9110 §6.5.1)
        if self._trailers > limits.HEADERS_MAX:
            raise OriginFault(faults.UNREADABLE)

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        if self._answer is not _AWAITED or exchange is None:
            return
        status = self._parser.get_status_code()
        if status < 200 and self._is_interim(status, exchange):
            kept = [header for header in self._headers if header[0] not in KEPT_FROM_CLIENTS]
            exchange.interim(status, kept)
            return
        if self._interims and self._parser.get_http_version() not in _VERSIONS:
            raise OriginFault(faults.UNREADABLE)
        if len(self._headers) > limits.HEADERS_MAX or (
            self._head_bytes > limits.HEAD_BYTES_MAX and is_too_large(b"", self._headers)
        ):
            raise OriginFault(faults.UNREADABLE)
        self.keep_alive = self._parser.should_keep_alive()
        found = dict(self._headers)
        length, framed = _framing(self._headers, found)
        if framed and length is None:
            self._overhead, self._trailers = Overhead(), 0
        bodyless = self._head_only or status in _NO_BODY or status == 101
        if self._head_only:
            self._answer = _COMPLETE
        else:
            self._answer = _COMING if framed or bodyless else Answer.UNTIL_CLOSE
        exchange.answer_head(status, end_to_end(self._headers, found), found, length, bodyless)

    def _is_interim(self, status: int, exchange: "ExchangeMachine") -> bool:
        """Whether a head below 200 is an interim answer's. Raises OriginFault.

        Such an answer has no body, whatever it says (RFC 9112 §6.3). The parser takes one all the same where
        it does not know the status, and what stands in it would be an answer to the client's next request: so
        an origin that speaks of a body there is not read on. 101 is no interim answer, but the last one of
        this protocol, to who asked for it.
        """
        if status == 101 and exchange.upgrades and self._parser.should_upgrade():
            return False
        self._interims += 1
        bodied = status not in _BODYLESS and any(
            name in FRAMING and value != b"0" for name, value in self._headers
        )
        if status < 100 or status == 101 or bodied or self._interims > limits.INTERIM_MAX:
            raise OriginFault(faults.UNREADABLE)
        return True

    def on_body(self, chunk: bytes) -> None:
        if self._answer is _AWAITED:
            raise OriginFault(faults.UNREADABLE)
        if self._answer is _COMPLETE:  # of a HEAD, which has none
            self._answer = _SURPLUS
        elif self._answer is not _SURPLUS and self._exchange is not None:
            if self._overhead is not None:
                self._overhead.content_bytes += len(chunk)
            self._exchange.answer_piece(chunk)

    def on_message_complete(self) -> None:
        if self._answer is not _AWAITED and self._answer is not _SURPLUS:
            self._answer = _COMPLETE


def _head(exchange: "ExchangeMachine") -> bytes:
    """The head as the origin gets it, but for the lines that say how long the body is."""
    facts = exchange.exchange
    choice = facts.origin
    host = choice.host_header if choice is not None and choice.host_header else facts.header(b"host")
    added = exchange.added
    if exchange.upgrades:
        added += b"connection: upgrade\r\nupgrade: websocket\r\n"
    headers = facts.to_send
    connection = exchange.read.connection if headers is facts.headers else None
    return request_head(facts.method, facts.target, host or b"", headers, connection, added)


def _framing(headers: Headers, found: dict[bytes, bytes]) -> tuple[int | None, bool]:
    """Content-Length, and whether the answer says how long it is at all."""
    stated, encoding = found.get(b"content-length"), found.get(b"transfer-encoding")
    if len(found) != len(headers) and sum(name in FRAMING for name, _ in headers) > 1:
        raise OriginFault(faults.UNREADABLE)
    if encoding is not None:
        if stated is not None or encoding.strip().lower() != b"chunked":
            raise OriginFault(faults.UNREADABLE)
        return None, True
    if stated is None:
        return None, False
    if not stated.isdigit() or len(stated) > LENGTH_DIGITS_MAX:
        raise OriginFault(faults.UNREADABLE)
    return int(stated), True
