"""One client's connection: requests in order, answers in order.

Owns  parsing, pipelining, keep-alive, back-pressure, deadlines, refusing what cannot be read.
Asks  llhttp to parse, `heads` what may be taken, `routing` where it belongs, `address` whose it is.
Tells a `Passage` per request.
Not   origins; what an answer says.
"""

import asyncio
import os
import random
import time
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools

from edgestead.http1.messages import Headers
from edgestead.proxy import heads, limits, pages
from edgestead.proxy.address import plain
from edgestead.proxy.exchange import Exchange, TlsFacts
from edgestead.proxy.hello import Hello
from edgestead.proxy.origin import is_too_large
from edgestead.proxy.passage import Passage, own_answer

if TYPE_CHECKING:
    from edgestead.proxy.edge import Edge

_ray = random.Random(os.urandom(32)).getrandbits  # a name, no secret: no system call for each
_VERSIONS = {"1.1": b"HTTP/1.1", "1.0": b"HTTP/1.0"}


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
        "_is_closing",
        "_is_repeating",
        "_left_bytes",
        "_lingered",
        "_parser",
        "_peer",
        "_port",
        "_receiving",
        "_scheme",
        "_server",
        "_target",
        "_tls",
        "_transport",
        "_trusted",
        "_tunnel",
        "_waiting",
        "edge",
        "is_stuffed",
        "paused_by_origin",
        "reading_paused",
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
        self._receiving: Passage | None = None
        self._active: Passage | None = None
        self._waiting: deque[Passage] = deque()
        self._tunnel: Passage | None = None
        self._held: list[bytes] | None = None  # not parsed yet: behind a request to upgrade, or behind many
        self._fault: tuple[int, str] | None = None  # what to say when the requests before are answered
        self._is_closing = self._is_repeating = False
        self._bodied: Passage | None = None  # asks for an upgrade, with a body that llhttp does not see
        self._lingered = -1
        self._left_bytes = 0  # of answers that the client has not taken, when they were looked at last
        self.is_stuffed = False  # there are so many of them that it has to take some first
        self.reading_paused = self.paused_by_origin = False
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
            active.abandon()

    def pause_writing(self) -> None:
        self.is_stuffed = True
        self._expect_taking()
        if self._active is not None:
            self._active.pause(True)

    def resume_writing(self) -> None:
        self.is_stuffed = False
        if self._is_closing:
            return
        if self._active is None:
            self._deadline = self.edge.soon + limits.IDLE_SECONDS_MAX
            self._go_to_next()
            return
        self._active.pause(False)
        tunnels = self._tunnel is not None
        self.expect_origin(limits.TUNNEL_SECONDS_MAX if tunnels else limits.ORIGIN_BODY_SECONDS_MAX)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.tunnel_out(data)
        elif self._is_closing:
            self._linger(len(data))
        elif self._held is not None:
            self._held.append(data)
            self._balance()
        elif len(data) > limits.PIECE_BYTES and not self._is_in_body(len(data)):
            self._take_pieces(data)
        else:
            self._parse(data)

    def _is_in_body(self, octets: int) -> bool:
        """Whether the next so many bytes can be nothing but the body of the request that is being read."""
        passage = self._receiving
        return passage is not None and passage.length is not None and passage.left_bytes >= octets

    def _take_pieces(self, data: bytes) -> None:
        """One read may hold thousands of small requests, and each costs a hundred times its own bytes."""
        at = 0
        while at < len(data) and self._held is None and not self._is_closing:
            if len(self._waiting) > limits.REQUESTS_WAITING_MAX:
                self._held = []
                break
            end = len(data) if self._is_in_body(len(data) - at) else at + limits.PIECE_BYTES
            self._feed(data[at:end])
            at = end
        rest = data[at:]
        if self._is_closing:
            self._linger(len(rest))
        elif self._held is not None and rest:
            self._held.append(rest)
        self._go_and_balance()

    def _parse(self, data: bytes) -> None:
        self._feed(data)
        self._go_and_balance()

    def _go_and_balance(self) -> None:
        if self._active is not None:
            self._active.go()
        if self.reading_paused or self._receiving is not None or self._waiting or self._held:
            self._balance()

    def _feed(self, data: bytes) -> None:
        if self._receiving is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._paused_for_upgrade(data[pause.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._give_up(*(cause.args if isinstance(cause, heads.Refused) else (400, "it cannot be parsed")))
        else:
            if self._head_bytes > limits.HEAD_BYTES_MAX:
                self._give_up(431, f"its head is larger than {limits.HEAD_BYTES_MAX} bytes")

    def _paused_for_upgrade(self, rest: bytes) -> None:
        """llhttp stops behind a head that asks for another protocol, whether or not a body follows it."""
        bodied, self._bodied = self._bodied, None
        if bodied is not None:
            self._receiving = bodied
            self._parser = self._parser_in_body(bodied.length)
            if rest:
                self._feed(rest)
            return
        newest = self._waiting[-1] if self._waiting else self._active
        if newest is not None and newest.upgrades:
            self._held = [rest] if rest else []
        elif rest:
            self._feed(rest)

    def _parser_in_body(self, length: int | None) -> httptools.HttpRequestParser:
        """A parser to which the head was said again without the upgrade: it waits for the body."""
        framing = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
        parser = httptools.HttpRequestParser(self)
        self._is_repeating = True
        parser.feed_data(b"POST / HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n" % framing)
        self._is_repeating = False
        self._headers, self._head_bytes = [], 0
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
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._is_repeating:
            return
        if self._head_bytes > limits.HEAD_BYTES_MAX and (
            len(self._target) > limits.HEAD_BYTES_MAX or is_too_large(self._headers)
        ):
            raise heads.Refused(431, f"its head is larger than {limits.HEAD_BYTES_MAX} bytes")
        self._head_bytes = 0
        passage = self._begin()
        self._headers = []  # trailers come to the same callback, and to nobody's attention
        self._receiving = passage
        if self._parser.should_upgrade() and passage.length != 0:
            self._bodied = passage
        if self._active is None and not self.is_stuffed:
            self._active = passage
        else:
            self._waiting.append(passage)

    def _begin(self) -> Passage:
        parser, edge, headers = self._parser, self.edge, self._headers
        version = parser.get_http_version()
        method = parser.get_method()
        if len(headers) > limits.HEADERS_MAX:
            raise heads.Refused(431, f"it has more than {limits.HEADERS_MAX} headers")
        if version not in _VERSIONS:
            raise heads.Refused(505, "only HTTP/1.1 and HTTP/1.0 are offered here")
        if method == b"CONNECT":
            raise heads.Refused(405, "this is no proxy for other hosts")
        read = heads.read(version, self._target, headers)
        ray = b"%016x" % _ray(64)
        route = edge.routes.find(read.host)
        if route is None:
            raise heads.Refused(530, "the host is not one that is proxied here")
        if self._tls is not None and route.facts.settings["min_tls_version"] == "1.3":
            self._check_version(self._tls)
        client, scheme, added = edge.address.of(self._peer, self._trusted, self._scheme, read, ray)
        exchange = Exchange(
            client=client,
            peer=self._peer,
            scheme=scheme,
            server=self._server,
            port=self._port,
            version=_VERSIONS[version],
            method=method,
            target=read.target,
            headers=headers,
            host=read.host,
            zone=route.facts,
            ray=ray,
            arrived_us=time.time_ns() // 1000,
            tls=self._tls,
            by_name=read.found,
            body_length=read.length,
            body_complete=read.length == 0,
        )
        return Passage(
            self,
            exchange,
            route,
            read,
            keep_alive=parser.should_keep_alive(),
            old=version == "1.0",
            upgrades=route.takes_websockets and _wants_websocket(read, method, version),
            _expects=b"expect" in read.found and _expects_continue(read, version),
            _added=added,
            ended_body=read.length == 0,
        )

    def _check_version(self, tls: TlsFacts) -> None:
        """A connection that was made for another name may be on weaker terms than this one's zone asks for.

        Raises Refused.
        """
        if tls.version != b"TLSv1.3":
            raise heads.Refused(421, "this host asks for TLS 1.3")

    def on_body(self, chunk: bytes) -> None:
        if self._receiving is not None:
            self._receiving.feed(chunk)

    def on_message_complete(self) -> None:
        if self._bodied is not None:
            return  # its body is still to come
        passage, self._receiving = self._receiving, None
        if passage is not None:
            passage.end_body()

    # what passages ask

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def hold(self, paused: bool) -> None:
        """The origin does not keep up with the request's body, or does again."""
        self.paused_by_origin = paused
        self._balance()

    def read_on(self) -> None:
        """Less is held than before."""
        self._balance()

    def expect_body(self) -> None:
        self._deadline = self.edge.soon + limits.BODY_SECONDS_MAX

    def expect_origin(self, seconds: float) -> None:
        if not self.is_stuffed:  # then it is the client that is waited for
            self._deadline = self.edge.soon + seconds

    def through(self, passage: Passage) -> None:
        """A request is answered: the next one, or the end."""
        if passage is not self._active or self._transport is None:
            return
        self._active = None
        self.paused_by_origin = False
        if not passage.keep_alive or self.edge.is_ending:
            self._end(drained=passage.ended_body)
            return
        self._deadline = self.edge.soon + limits.IDLE_SECONDS_MAX
        self._go_to_next()

    def _go_to_next(self) -> None:
        """Begin what has waited, unless the client has to take answers first."""
        if self.is_stuffed:
            self._expect_taking()
        elif self._waiting:
            self._active = self._waiting.popleft()
            self.edge.loop.call_soon(self._go_on)
        elif self._fault is not None:
            self._give_up(*self._fault)
        elif self._held:
            self.edge.loop.call_soon(self._take_held)
        else:
            self._held = None
            if self.reading_paused:
                self._balance()

    def _go_on(self) -> None:
        if self._active is not None:
            self._active.go()
        self._balance()

    def _take_held(self) -> None:
        if self._active is not None:
            return
        held, self._held = self._held, None
        if held:
            self.data_received(b"".join(held))
        self._balance()

    def tunnel(self, passage: Passage) -> None:
        self._tunnel = passage
        held, self._held = self._held, None
        if held:
            passage.tunnel_out(b"".join(held))
        self._balance()

    def break_off(self) -> None:
        """An answer ends in its middle, and the client has to notice."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _balance(self) -> None:
        """Read on only while what is here already is worked off."""
        transport = self._transport
        if transport is None:
            return
        active = self._active
        full = (
            self.paused_by_origin
            or len(self._waiting) > limits.REQUESTS_WAITING_MAX
            or (active is not None and active.held_bytes > limits.INSPECTED_BYTES_MAX)
            or (self._waiting and self._waiting[-1].held_bytes > 0)
            or (self._held is not None and len(self._held) > 0)
        )
        full = bool(full) and not self._is_closing
        if full != self.reading_paused:
            self.reading_paused = full
            (transport.pause_reading if full else transport.resume_reading)()

    # the end

    def _give_up(self, status: int, reason: str) -> None:
        """Refuse what cannot be read, and close: nobody knows where the next request begins."""
        if self._active is not None or self._waiting:
            broken, self._receiving = self._receiving, None
            if broken is not None and broken is self._active:  # its own body is what cannot be read
                broken.refuse(status, f"The request was refused: {reason}.")
                return
            if broken is not None:
                self._waiting.remove(broken)
            self._fault = (status, reason)
            self._held = []
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
        self.write(own_answer(answer, lines, head_only=method == b"HEAD", keep_alive=False, old=False))
        self._end(drained=False)

    def _end(self, *, drained: bool) -> None:
        """Close. Bytes that are still coming would make the kernel reset the connection, and the client might
        never see what was said last: so they are read for a while and dropped.
        """
        self._is_closing = True
        if self._transport is None:
            return
        if drained and self._receiving is None:
            self._expect_taking()
            self._transport.close()  # when all is taken
            return
        self._lingered = 0
        self._deadline = self.edge.soon + limits.LINGER_SECONDS_MAX
        self._balance()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _linger(self, octets: int) -> None:
        self._lingered += octets
        if self._lingered > limits.LINGER_BYTES_MAX:
            self.break_off()

    def close_if_late(self, now: float) -> None:
        if now <= self._deadline or self._transport is None or self._is_taking(now):
            return
        if self._is_closing or self._tunnel is not None:
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


def _expects_continue(read: heads.Read, version: str) -> bool:
    return version == "1.1" and read.found[b"expect"].lower() == b"100-continue"


def _wants_websocket(read: heads.Read, method: bytes, version: str) -> bool:
    return (
        b"upgrade" in read.connection
        and method == b"GET"
        and version == "1.1"
        and read.length == 0
        and read.found.get(b"upgrade", b"").lower() == b"websocket"
    )
