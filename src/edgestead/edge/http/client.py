"""One client's connection: requests in order, answers in order.

Owns  parsing, pipelining, keep-alive, back-pressure, the deadline, refusing what cannot be read.
Not   what becomes of a request (`machine`, which it feeds) and the bytes of its answer (`client_stream`).

What becomes of the bytes that are read:

    PARSED ◀──▶ HELD ──▶ TUNNELLED      HELD: behind a request to upgrade, or behind many requests
       │                                TUNNELLED: no HTTP any more, each read is a piece
       ▼
    BROKEN                              what came last is refused when the requests before it are answered

    From each of them ──▶ DROPPED: all is said, and what still comes is read for a while, so that it is seen.
"""

import asyncio
import os
import random
import time
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, cast

import httptools

from edgestead.edge import limits
from edgestead.edge.http import answers, heads, pages
from edgestead.edge.http.address import plain
from edgestead.edge.http.client_stream import ClientStream
from edgestead.edge.http.exchange import Exchange, TlsFacts
from edgestead.edge.http.hello import Hello
from edgestead.edge.http.machine import Body, ExchangeMachine
from edgestead.http1 import head
from edgestead.http1.head import Head, Headers, Refused
from edgestead.http1.overhead import Overhead

if TYPE_CHECKING:
    from edgestead.edge.worker import Edge

_ray = random.Random(os.urandom(32)).getrandbits  # a name, no secret: no system call for each
# TRACE would show what the edge adds, and credentials that browsers hide (RFC 9110 §9.3.8). It is 501: a 405
# would have to say what is allowed instead, and only the origin knows.
_NOT_PASSED = {b"TRACE": (501, "TRACE is not passed on here")}
_VERSIONS = {"1.1": b"HTTP/1.1", "1.0": b"HTTP/1.0"}
_LF = 0x0A  # to look for a number takes a fifth of the time that a `bytes` takes
_COMING, _ENDED = Body.COMING, Body.ENDED
_AWAITED, _OVER = heads.Line.AWAITED, heads.Line.OVER  # a member of an enum is found slowly


class Reading(Enum):
    """What becomes of the bytes that are read; the module's docstring draws it."""

    PARSED = "parsed"
    HELD = "held"
    TUNNELLED = "tunnelled"
    BROKEN = "broken"
    DROPPED = "dropped"


_PARSED, _HELD, _BROKEN, _DROPPED = Reading.PARSED, Reading.HELD, Reading.BROKEN, Reading.DROPPED


class ClientConnection(asyncio.Protocol):
    """`peer` names the client where a PROXY header did; `port` is where it came in."""

    __slots__ = (
        "_active",
        "_bodied",
        "_deadline",
        "_fault",
        "_head_bytes",
        "_headers",
        "_held",
        "_hello",
        "_is_paused",
        "_is_repeating",
        "_is_stuffed",
        "_left_bytes",
        "_line",
        "_lingered_bytes",
        "_overhead",
        "_parser",
        "_peer",
        "_port",
        "_reading",
        "_receiving",
        "_scheme",
        "_server",
        "_target",
        "_tls",
        "_trailers",
        "_transport",
        "_trusted",
        "_waiting",
        "edge",
    )

    def __init__(self, edge: "Edge", peer: str = "", *, port: int, hello: Hello | None = None) -> None:
        """`peer` "" is whoever is connected; `hello` is None without TLS."""
        self.edge = edge
        self._peer = peer
        self._port = port
        self._server = ""
        self._hello = hello
        self._tls: TlsFacts | None = None
        self._scheme = b"http" if hello is None else b"https"
        self._trusted = False
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._target = b""
        self._headers: Headers = []
        self._head_bytes = 0
        self._line = _AWAITED
        self._overhead: Overhead | None = None  # of the chunked body that is being read
        self._trailers = 0
        self._receiving: ExchangeMachine | None = None
        self._active: ExchangeMachine | None = None
        self._waiting: deque[ExchangeMachine] = deque()
        self._reading = _PARSED
        self._held: list[bytes] = []
        self._fault = (0, "")  # what is said of what is BROKEN
        # Asks for an upgrade, with a body that llhttp does not see; its head is then said to another parser.
        self._bodied: ExchangeMachine | None = None
        self._is_repeating = False
        self._lingered_bytes = 0
        self._left_bytes = 0  # of answers that the client has not taken, when they were looked at last
        self._is_stuffed = False  # there are so many of them that it has to take some first
        self._is_paused = False  # nothing more is read of it
        self._deadline = edge.soon + limits.HEAD_SECONDS_MAX

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        if not self._peer:
            found = transport.get_extra_info("peername")
            self._peer = plain(found[0]) if isinstance(found, tuple) else ""
        own = transport.get_extra_info("sockname")
        self._server = plain(own[0]) if isinstance(own, tuple) else ""
        if self._hello is not None:
            self._tls = _facts(transport, self._hello)
        self._trusted = self.edge.trust.trusts(self._peer)
        if not self.edge.admit(self, self._peer, trusted=self._trusted):
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.edge.dismiss(self, self._peer)
        self._waiting.clear()
        active, self._active = self._active, None
        if active is not None:
            active.client_gone()

    def pause_writing(self) -> None:
        self._is_stuffed = True
        self._expect_taking()
        if self._active is not None:
            self._active.client_full(full=True)

    def resume_writing(self) -> None:
        self._is_stuffed = False
        if self._reading is _DROPPED:
            return
        if self._active is None:
            self._deadline = self.edge.soon + limits.IDLE_SECONDS_MAX
            self._go_to_next()
            return
        self._active.client_full(full=False)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._reading is not _PARSED:
            self._set_aside(data)
        elif len(data) > limits.PIECE_BYTES and not self._is_in_body(len(data)):
            self._take_pieces(data)
        else:
            self._feed_on(data)
            self._go_and_balance()

    def _set_aside(self, data: bytes) -> None:
        """What is not to be parsed, or not yet."""
        reading = self._reading
        if reading is _HELD:
            self._held.append(data)
            self.balance()
        elif reading is Reading.TUNNELLED and self._active is not None:
            self._active.body_piece(data)
        elif reading is _DROPPED:
            self._lingered_bytes += len(data)
            if self._lingered_bytes > limits.LINGER_BYTES_MAX:
                self.break_off()

    def _is_in_body(self, octets: int) -> bool:
        """Whether the next so many bytes can be nothing but the body of the request that is being read."""
        exchange = self._receiving
        return exchange is not None and exchange.length is not None and exchange.left_bytes >= octets

    def _take_pieces(self, data: bytes) -> None:
        """One read may hold thousands of small requests, and each costs a hundred times its own bytes."""
        at = 0
        while at < len(data) and self._reading is _PARSED:
            if len(self._waiting) > limits.REQUESTS_WAITING_MAX:
                self._reading = _HELD
                break
            end = len(data) if self._is_in_body(len(data) - at) else at + limits.PIECE_BYTES
            self._feed_on(data[at:end])
            at = end
        if at < len(data):
            self._set_aside(data[at:])
        self._go_and_balance()

    def _go_and_balance(self) -> None:
        if self._active is not None:
            self._active.proceed()
        if self._is_paused or self._receiving is not None or self._waiting or self._reading is not _PARSED:
            self.balance()

    def _feed_on(self, data: bytes) -> None:
        """All of it, as far as it may be parsed."""
        while data and self._reading is _PARSED:
            data = self._feed(data)
        if data:
            self._set_aside(data)

    def _feed(self, data: bytes) -> bytes:
        """Parse; what is left where that has to stop: at an upgrade, or before what may be a request line."""
        overhead, rest, receiving = self._overhead, b"", self._receiving
        if receiving is None:
            if data.isascii() and (self._line is _OVER or _LF in data.lstrip(b"\r\n")):
                self._line = _OVER
            else:
                data, rest, self._line = heads.readable(data, self._line)
            self._head_bytes += len(data)
        elif receiving.length is not None and 0 < receiving.left_bytes < len(data):
            data, rest = data[: receiving.left_bytes], data[receiving.left_bytes :]
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._stopped_at_upgrade()
            return data[pause.args[0] :] + rest
        except httptools.HttpParserError as error:
            self._refuse(error, data)
            return b""
        if self._head_bytes > limits.HEAD_BYTES_MAX:
            self._give_up(431, f"its head is larger than {limits.HEAD_BYTES_MAX} bytes")
        elif overhead is not None and overhead is self._overhead and overhead.is_too_much(len(data)):
            self._give_up(431, "there is too much around its chunks, or too many trailers")
        elif self._head_bytes and self._line is _AWAITED:
            self._line = heads.line_behind(data)
        return rest

    def _refuse(self, error: httptools.HttpParserError, data: bytes) -> None:
        self._give_up(*head.refusal_of(error, data).args)

    def _stopped_at_upgrade(self) -> None:
        """llhttp stops behind a head that asks for another protocol, whether or not a body follows it."""
        bodied, self._bodied = self._bodied, None
        if bodied is not None:
            self._receiving = bodied
            self._parser = self._parser_in_body(bodied.length)
            return
        newest = self._waiting[-1] if self._waiting else self._active
        if newest is not None and newest.upgrades:
            self._reading = _HELD

    def _parser_in_body(self, length: int | None) -> httptools.HttpRequestParser:
        """A parser to which the head was said again without the upgrade: it waits for the body."""
        framing = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
        parser = httptools.HttpRequestParser(self)
        self._is_repeating = True
        parser.feed_data(b"POST / HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n" % framing)
        self._is_repeating = False
        self._headers, self._head_bytes, self._trailers = [], 0, 0
        return parser

    # the parser

    def on_message_begin(self) -> None:
        self._target, self._headers = b"", []
        self._head_bytes = max(self._head_bytes, 1)
        if self._active is None:
            self._deadline = self.edge.soon + limits.HEAD_SECONDS_MAX

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._receiving is not None:
            self._drop_trailer()
        else:
            self._headers.append((name.lower(), value))

    def _drop_trailer(self) -> None:
        """Trailers end here (RFC 9110 §6.5.1); there may be as many of them as of headers. Raises Refused."""
        self._trailers += 1
        if self._trailers > limits.HEADERS_MAX:
            raise Refused(431, f"it has more than {limits.HEADERS_MAX} trailers")

    def on_headers_complete(self) -> None:
        if self._is_repeating:
            return
        if self._head_bytes > limits.HEAD_BYTES_MAX and head.is_too_large(self._target, self._headers):
            raise head.too_large()
        self._head_bytes = 0
        self._line = _AWAITED
        exchange = self._begin()
        self._headers = []
        self._receiving = exchange
        if exchange.length is None:
            self._overhead, self._trailers = Overhead(), 0
        if self._parser.should_upgrade() and exchange.length != 0:
            self._bodied = exchange
        if self._active is None and not self._is_stuffed:
            self._active = exchange
        else:
            self._waiting.append(exchange)

    def _begin(self) -> ExchangeMachine:
        parser, edge, headers = self._parser, self.edge, self._headers
        version = parser.get_http_version()
        method = parser.get_method()
        if method in _NOT_PASSED:
            raise Refused(*_NOT_PASSED[method])
        read = heads.read(version, method, self._target, headers)
        ray = b"%016x" % _ray(64)
        route = edge.routes.find(read.host)
        if route is None:
            raise Refused(530, "the host is not one that is proxied here")
        if self._tls is not None and route.facts.settings["min_tls_version"] == "1.3":
            self._check_version(self._tls)
        protocol = _VERSIONS[version]
        client, scheme, added = edge.address.of(
            self._peer, self._trusted, self._scheme, read, ray, protocol[5:]
        )
        exchange = Exchange(  # by position: by name it takes 0.65 µs, so 0.2
            client,
            self._peer,
            scheme,
            self._port,
            protocol,
            method,
            read.target,
            headers,
            read.found,
            read.host,
            route.facts,
            ray,
            time.time_ns() // 1000,
            self._server,
            self._tls,
        )
        if read.length != 0:
            exchange.body_length, exchange.body_complete = read.length, False
        stream = ClientStream(
            self,
            ray,
            parser.should_keep_alive(),
            version == "1.0",
            b"expect" in read.found and _expects_continue(read, version),
            method == b"HEAD",
        )
        return ExchangeMachine(
            exchange,
            stream,
            edge,
            route,
            read,
            added,
            route.takes_websockets and _wants_websocket(read, method, version),
            _ENDED if read.length == 0 else _COMING,
        )

    def _check_version(self, tls: TlsFacts) -> None:
        """A connection that was made for another name may be on weaker terms than this one's zone asks for.

        Raises Refused.
        """
        if tls.version != b"TLSv1.3":
            raise Refused(421, "this host asks for TLS 1.3")

    def on_body(self, chunk: bytes) -> None:
        if self._overhead is not None:
            self._overhead.content_bytes += len(chunk)
        if self._receiving is not None:
            self._receiving.body_piece(chunk)

    def on_message_complete(self) -> None:
        if self._bodied is not None:
            return  # its body is still to come
        exchange, self._receiving, self._overhead = self._receiving, None, None
        if exchange is not None:
            exchange.body_end()

    # what streams ask

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def wait(self, seconds: float) -> None:
        if not self._is_stuffed:  # then it is the client that is waited for
            self._deadline = self.edge.soon + seconds

    def through(self, *, keep_alive: bool, drained: bool) -> None:
        """A request is answered: the next one, or the end."""
        self._active = None
        if self._transport is None:
            return
        if not keep_alive or self.edge.is_ending:
            self._end(drained=drained)
            return
        self._deadline = self.edge.soon + limits.IDLE_SECONDS_MAX
        self._go_to_next()

    def _go_to_next(self) -> None:
        """Begin what has waited, unless the client has to take answers first."""
        if self._is_stuffed:
            self._expect_taking()
        elif self._waiting:
            self._active = self._waiting.popleft()
            self.edge.loop.call_soon(self._go_on)
        elif self._reading is _BROKEN:
            self._give_up(*self._fault)
        elif self._held:
            self.edge.loop.call_soon(self._take_held)
        else:
            self._reading = _PARSED
            if self._is_paused:
                self.balance()

    def _go_on(self) -> None:
        if self._active is not None:
            if self._is_stuffed:  # with answers to requests before this one
                self._active.client_full(full=True)
            self._active.proceed()
        self.balance()

    def _take_held(self) -> None:
        if self._active is not None:
            return
        if self._reading is _HELD:
            self._reading = _PARSED
        self._read_held()

    def tunnel(self) -> None:
        """What came behind the request, and whatever comes from now on, is no HTTP."""
        self._reading = Reading.TUNNELLED
        self._read_held()

    def _read_held(self) -> None:
        held, self._held = self._held, []
        if held:
            self.data_received(b"".join(held))
        self.balance()

    def break_off(self) -> None:
        """An answer ends in its middle, and the client has to notice."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End a tunnel, when what its origin said last is taken."""
        self._reading = _DROPPED
        if self._transport is not None:
            self._expect_taking()
            self._transport.close()

    def balance(self) -> None:
        """Read on only while what is here already is worked off."""
        transport = self._transport
        if transport is None:
            return
        active = self._active
        full = (
            (active is not None and active.is_full)
            or len(self._waiting) > limits.REQUESTS_WAITING_MAX
            or (self._waiting and self._waiting[-1].held_bytes > 0)
            or self._held
            or self._reading is _BROKEN
        )
        full = bool(full) and self._reading is not _DROPPED
        if full != self._is_paused:
            self._is_paused = full
            (transport.pause_reading if full else transport.resume_reading)()
            if active is not None and not full:
                active.grant_time()

    # the end

    def _give_up(self, status: int, reason: str) -> None:
        """Refuse what cannot be read, and close: nobody knows where the next request begins."""
        if self._reading is _DROPPED:
            return
        if self._active is not None or self._waiting:
            broken, self._receiving = self._receiving, None
            if broken is not None and broken is self._active:  # its own body is what cannot be read
                broken.refuse(status, f"The request was refused: {reason}.")
                return
            if broken is not None:
                self._waiting.remove(broken)
            self._reading, self._fault = _BROKEN, (status, reason)
            return
        ray = b"%016x" % _ray(64)
        host = next((value for name, value in self._headers if name == b"host"), b"")
        method = self._parser.get_method() if self._target else b""
        refused = self.edge.tools.observer.refused
        refused(self._peer, ray, status, reason, method, host, self._target)
        self.edge.count(status)
        words = f"The request was refused: {reason}."
        accept = next((value for name, value in self._headers if name == b"accept"), None)
        answer = pages.page(status, words, ray=ray, accept=accept)
        lines = self.edge.own_lines(ray)
        self.write(
            answers.own_answer(answer, lines, head_only=method == b"HEAD", keep_alive=False, old=False)
        )
        self._end(drained=False)

    def _end(self, *, drained: bool) -> None:
        """Close. Bytes that are still coming would make the kernel reset the connection, and the client might
        never see what was said last: so they are read for a while and dropped.
        """
        self._reading = _DROPPED
        if self._transport is None:
            return
        if drained and self._receiving is None:
            self._expect_taking()
            self._transport.close()  # when all is taken
            return
        self._deadline = self.edge.soon + limits.LINGER_SECONDS_MAX
        self.balance()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def close_if_late(self, now: float) -> None:
        if now <= self._deadline or self._transport is None or self._is_taking(now):
            return
        if self._reading is _DROPPED:
            self._transport.abort()
        elif self._active is not None:
            self._deadline = now + limits.STALL_SECONDS_MAX
            self._active.late()
        elif self._head_bytes:
            self._give_up(408, "its head takes too long")
        elif self._left_bytes:
            self._transport.abort()  # to close would wait until they are taken
        else:
            self._transport.close()

    def _expect_taking(self) -> None:
        """From now on it is the client that is waited for: until it takes what was said to it."""
        if self._transport is not None:
            self._left_bytes = self._transport.get_write_buffer_size()
            self._deadline = self.edge.soon + limits.STALL_SECONDS_MAX

    def _is_taking(self, now: float) -> bool:
        """Whether the client has taken some of its answer since the last look. Then it has time again."""
        assert self._transport is not None
        before, self._left_bytes = self._left_bytes, self._transport.get_write_buffer_size()
        if not self._left_bytes or 0 < before <= self._left_bytes:
            return False
        self._deadline = now + limits.STALL_SECONDS_MAX
        return True

    def finish(self) -> None:
        """The worker ends: close once what is being served is."""
        if self._active is None and self._transport is not None:
            self._transport.close()


def _facts(transport: asyncio.BaseTransport, hello: Hello) -> TlsFacts:
    agreed = transport.get_extra_info("ssl_object")
    cipher = transport.get_extra_info("cipher")
    return TlsFacts(
        version=(agreed.version() or "").encode() if agreed is not None else b"",
        cipher=cipher[0].encode() if cipher else b"",
        server_name=hello.server_name,
        hello=hello.message,
    )


def _expects_continue(read: Head, version: str) -> bool:
    return version == "1.1" and read.found[b"expect"].lower() == b"100-continue"


def _wants_websocket(read: Head, method: bytes, version: str) -> bool:
    return (
        b"upgrade" in read.connection
        and method == b"GET"
        and version == "1.1"
        and read.length == 0
        and read.found.get(b"upgrade", b"").lower() == b"websocket"
    )
