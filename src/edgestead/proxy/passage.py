"""One request's way through the edge: decided, sent to an origin, answered.

Owns  the request's body on its way, the choice of a connection, a second try, the answer's bytes.
Asks  the zone's pipeline, `pool`, `heads`, `answers`, `pages`.
Tells its client's connection what to write and when it is through.
Not   parsing (`client`, `origin`); keeping connections.

No task runs for a request, except while a new connection to an origin is made: everything else happens in the
callbacks of the two connections.
"""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from edgestead.http1.messages import Headers
from edgestead.proxy import answers, faults, heads, limits, pages
from edgestead.proxy.answer_watch import HeldAnswer
from edgestead.proxy.exchange import Exchange, Response, ResponseHead
from edgestead.proxy.faults import Fault, OriginFault
from edgestead.proxy.late_body import LateBody
from edgestead.proxy.later import Later
from edgestead.proxy.origin import OriginConnection
from edgestead.proxy.origins import Way
from edgestead.proxy.routing import Route
from edgestead.services.events import Decision

if TYPE_CHECKING:
    from edgestead.proxy.client import ClientConnection

_REPEATABLE = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"TRACE"})  # RFC 9110 §9.2.2
_LAST_CHUNK = b"0\r\n\r\n"


class Passage(msgspec.Struct, eq=False):
    """What `client` reads of a request, and what `route` says of it. Made for every request: in C."""

    _client: "ClientConnection"
    exchange: Exchange
    _route: Route
    _read: heads.Read
    keep_alive: bool
    old: bool  # HTTP/1.0: no chunks, no 1xx
    upgrades: bool
    _expects: bool
    _added: bytes
    ended_body: bool
    held_bytes: int = 0
    body_bytes: int = 0
    done: bool = False
    _chunks: list[bytes] = []
    _out: list[bytes] = []
    _decided: bool = False
    _answered: bool = False
    _sent: bool = False
    _retried: bool = False
    _behind: list[bytes] | None = None  # what came while the part before it is being inspected
    _ends_late: bool = False  # and then the body ended
    _held: HeldAnswer | None = None  # while somebody looks at it
    _is_framed: bool = False  # the answer to the client is chunked
    _origin: OriginConnection | None = None
    _connecting: asyncio.Task[None] | None = None
    _way: Way | None = None
    _host: bytes | None = None
    _tried: tuple[str, ...] | None = None

    @property
    def length(self) -> int | None:
        """What Content-Length says; None for chunks."""
        return self._read.length

    @property
    def left_bytes(self) -> int:
        """How many bytes of a body with a length are still to come, at most."""
        return (self._read.length or 0) - self.body_bytes

    # the request's body

    def feed(self, chunk: bytes) -> None:
        if self.done:
            return
        self.body_bytes += len(chunk)
        if self.body_bytes > self._route.body_bytes_max:
            self.refuse(413, "The request's body is larger than this zone takes.")
            return
        if self.exchange.late is None:
            self._pass(chunk)
        else:
            self._feed_late(chunk)

    def _pass(self, chunk: bytes) -> None:
        if self._sent and self._origin is not None:
            if chunk:
                self._origin.write(
                    b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._read.length is None else chunk
                )
            self._client.expect_body()
        elif chunk:
            self._chunks.append(chunk)
            self.held_bytes += len(chunk)

    def _feed_late(self, chunk: bytes) -> None:
        """What follows an inspected prefix passes in order, and when it was looked at."""
        late = self.exchange.late
        assert late is not None
        if self._behind is None:
            self._settle_late(late.feed(chunk))
        else:
            self._behind.append(chunk)
            self.held_bytes += len(chunk)

    def _settle_late(self, passed: bytes | Response | Later) -> None:
        if isinstance(passed, Later):
            self._behind = []
            self._client.edge.loop.call_soon(self._late_on, passed)
        elif isinstance(passed, Response):
            self.answer(passed)
        else:
            self._pass(passed)

    def _late_on(self, later: Later) -> None:
        """Others had their turn; then it is the turn of what came meanwhile."""
        behind, self._behind = self._behind or [], None
        if not self.done:
            self._settle_late(later.go_on())
        self._feed_again(behind)
        if self.done or self._behind is not None:
            return
        if self._ends_late:
            self.end_body()
        if not self.done and not self._sent and self._connecting is None:
            self._continue()
            self._ask()
        self._client.read_on()

    def _feed_again(self, chunks: list[bytes]) -> None:
        for chunk in chunks:
            self.held_bytes -= len(chunk)
            if not self.done:
                self._feed_late(chunk)

    def end_body(self) -> None:
        if self._behind is not None:
            self._ends_late = True
            return
        self.ended_body = True
        if self._ends_badly():
            return
        if self._sent and self._origin is not None:
            if self._read.length is None:
                self._origin.write(_LAST_CHUNK)
            self._client.expect_origin(self._route.head_seconds)

    # deciding

    def go(self) -> None:
        """Do what can be done with what is there. Called when more of the request has arrived."""
        if self._decided or self.done:
            return
        exchange = self.exchange
        wanted = self._route.pipeline.body_octets
        if wanted and not self.ended_body and self.held_bytes < min(wanted, limits.INSPECTED_BYTES_MAX):
            self._continue()
            self._client.expect_body()
            return
        self._decided = True
        if self._read.length is not None and self._read.length > self._route.body_bytes_max:
            self.refuse(413, "The request's body is larger than this zone takes.")
            return
        if self._chunks:
            exchange.body = b"".join(self._chunks)
            self._chunks = [exchange.body]
        exchange.body_complete = self.ended_body
        self._settle(self._route.pipeline.request(exchange))

    def _settle(self, answer: Response | Later | None) -> None:
        if isinstance(answer, Later):
            self._client.edge.loop.call_soon(self._go_on, answer)
        elif answer is not None:
            self.answer(answer)
        else:
            if self.exchange.late is not None:
                self._let_late_pass(self.exchange.late)
            if not self.done and self._behind is None:
                self._continue()
                self._ask()

    def _let_late_pass(self, late: LateBody) -> None:
        """Of what is here already, keep what may pass; or the request ends with another answer."""
        follows, self._chunks = self._chunks[1:], [late.first] if late.first else []
        has_ended, self.ended_body = self.ended_body, False
        self._feed_again(follows)
        if has_ended and not self.done:
            self.end_body()

    def _ends_badly(self) -> bool:
        late = self.exchange.late
        answer = None if late is None or self.done else late.end()
        if answer is not None:
            self.answer(answer)
        return answer is not None

    def _go_on(self, later: Later) -> None:
        """Others had their turn."""
        if not self.done:
            self._settle(later.go_on())

    def _continue(self) -> None:
        if self._expects and not self.ended_body:
            self._client.write(answers.CONTINUE)
        self._expects = False

    # the origin

    def _ask(self) -> None:
        exchange, client = self.exchange, self._client
        edge = client.edge
        choice = exchange.origin
        mode = self._route.tls_mode if exchange.scheme == b"https" else ""
        port = edge.origin_port or (443 if mode else 80)
        server_name = ""
        host = self._route.origins.alias
        if choice is not None:
            port = choice.port or port
            host = choice.host or host
        if mode:
            name = exchange.host if choice is None else choice.sni or choice.host_header or exchange.host
            server_name = name.partition(b":")[0].decode("ascii", "replace")
        self._way, self._host = (port, mode, server_name), host
        if host is None:
            addresses = self._tried = self._route.origins.in_turn(edge.soon)
            kept = edge.pool.take((addresses[0], port, mode, server_name)) if addresses else None
            if kept is not None:
                self._attach(kept)
                return
        self._connect()

    def _connect(self) -> None:
        self._client.expect_origin(2 * limits.CONNECTS_SECONDS_MAX)  # the pool has a deadline of its own
        self._connecting = self._client.edge.loop.create_task(self._connected())

    async def _connected(self) -> None:
        assert self._way is not None
        try:
            origin = await self._client.edge.pool.connect(
                self._route.origins, self._tried, self._host, self._way
            )
        except OriginFault as error:
            self._connecting = None
            self._fail(error.fault)
            return
        self._connecting = None
        if self.done:
            self._client.edge.pool.put(origin)
            return
        self._attach(origin)

    def _attach(self, origin: OriginConnection) -> None:
        exchange = self.exchange
        self._origin, self._sent = origin, True
        choice = exchange.origin
        host = choice.host_header if choice is not None and choice.host_header else exchange.header(b"host")
        added = self._added
        if self.upgrades:
            added += b"connection: upgrade\r\nupgrade: websocket\r\n"
        headers = exchange.to_send
        connection = self._read.connection if headers is exchange.headers else None
        parts = [
            heads.request_head(exchange.method, exchange.target, host or b"", headers, connection, added)
        ]
        if self._read.length is None:
            parts.append(b"transfer-encoding: chunked\r\n\r\n")
            parts += [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in self._chunks]
            if self.ended_body:
                parts.append(_LAST_CHUNK)
        elif self._read.length or exchange.method in (b"POST", b"PUT", b"PATCH"):
            parts.append(b"content-length: %d\r\n\r\n" % (self._read.length or 0))
            parts += self._chunks
        else:
            parts.append(b"\r\n")
        if not self.ended_body:
            self._chunks = []  # the rest is passed on as it comes: there is no second try
        self.held_bytes = sum(map(len, self._behind or ()))
        if self.ended_body:
            self._client.expect_origin(self._route.head_seconds)
        else:
            self._client.expect_body()
            self._client.hold(False)  # what was held for its inspection is on its way: read on
        origin.begin(self, b"".join(parts), exchange.method == b"HEAD")
        if self._client.is_stuffed:  # with answers to requests before this one
            self.pause(True)

    def hold_client(self) -> None:
        self._client.hold(True)

    def release_client(self) -> None:
        self._client.hold(False)

    def pause(self, paused: bool) -> None:
        """The client does not keep up, or does again."""
        origin = self._origin
        if origin is not None and origin.transport is not None:
            (origin.transport.pause_reading if paused else origin.transport.resume_reading)()

    # the answer

    def interim(self, status: int, headers: Headers) -> None:
        """RFC 9110 §15.2: passed on to those who know them; 100 was asked for by nobody."""
        if status != 100 and not self.old:
            kept = [header for header in headers if header[0] not in answers.KEPT_FROM_CLIENTS]
            self._out.append(answers.head(status, kept, b""))

    def head(
        self,
        status: int,
        headers: Headers,
        found: dict[bytes, bytes],
        length: int | None,
        bodyless: bool,
    ) -> None:
        """`found` are the headers by name, the last one of each."""
        headers = answers.end_to_end(headers, found)
        watch = self.exchange.watch
        if watch is None or status == 101:
            self._tell(status, headers, length, bodyless)
            return
        self._held = watch.hold(status, headers, length, bodyless)
        self._look()

    def _look(self) -> None:
        """Have the answer looked at, when enough of it is here."""
        self._client.expect_origin(limits.ORIGIN_BODY_SECONDS_MAX)
        held, watch = self._held, self.exchange.watch
        assert held is not None
        assert watch is not None
        if held.is_enough and not held.is_decided:
            held.is_decided = True
            self.pause(True)
            self._decide(watch.decide(held))

    def _decide(self, answer: Response | Later | None) -> None:
        if isinstance(answer, Later):
            self._client.edge.loop.call_soon(self._decide_on, answer)
            return
        held, self._held = self._held, None
        if answer is not None or held is None:
            if answer is not None:
                self.answer(answer)
            return
        self.pause(False)
        self._tell(held.status, held.headers, held.length, held.bodyless)
        if self.done:  # a phase had another answer
            return
        for chunk in held.chunks:
            self.body(chunk)
        if held.ended:
            self.ended()

    def _decide_on(self, later: Later) -> None:
        if not self.done and self._held is not None:
            self._decide(later.go_on())
            self.flush()

    def _tell(self, status: int, headers: Headers, length: int | None, bodyless: bool) -> None:
        """Say the answer's head to the client."""
        self._answered = True
        exchange = self.exchange
        if self._route.pipeline.has_response:
            exchange.response = ResponseHead(status, headers)
            answer = self._route.pipeline.response(exchange)
            if answer is not None:
                self._drop_origin()
                self.answer(answer)
                return
            status, headers = exchange.response.status, exchange.response.headers
            headers = [header for header in headers if header[0] not in answers.FRAMING]
            if length is not None:
                headers.append((b"content-length", b"%d" % length))
        added = self._client.edge.ray_line % exchange.ray
        if status == 101:
            added += b"connection: upgrade\r\nupgrade: websocket\r\n"
        elif not bodyless and length is None:
            added += self._frame()
        if not self.ended_body or self._client.edge.is_ending:
            self.keep_alive = False
        if not self.keep_alive and status != 101:
            added += answers.CLOSE
        elif self.old:
            added += answers.KEEP_ALIVE
        self._out.append(answers.head(status, headers, added))
        self._client.edge.count(status)
        self._client.expect_origin(limits.ORIGIN_BODY_SECONDS_MAX)

    def _frame(self) -> bytes:
        if self.old:
            self.keep_alive = False
            return b""
        self._is_framed = True
        return answers.CHUNKED

    def body(self, chunk: bytes) -> None:
        if self._held is not None:
            self._held.add(chunk)
            self._look()
        elif self._is_framed:
            self._out.append(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        else:
            self._out.append(chunk)

    def flush(self) -> None:
        """Everything of this piece was seen: one write for all of it."""
        if self._out:
            out, self._out = self._out, []
            self._client.write(out[0] if len(out) == 1 else b"".join(out))
            self._client.expect_origin(limits.ORIGIN_BODY_SECONDS_MAX)

    def ended(self) -> None:
        """The answer is complete."""
        if self.done:
            return
        if self._held is not None:
            self._ended_held(self._held)
            return
        if self._is_framed:
            self._out.append(_LAST_CHUNK)
        self.flush()
        self._release_origin()
        self._finish()

    def _ended_held(self, held: HeldAnswer) -> None:
        held.ended = True
        self.pause(False)
        self._release_origin()
        self._look()

    def _release_origin(self) -> None:
        origin, self._origin = self._origin, None
        if origin is not None:
            origin.release(self, usable=self.ended_body)

    def lost(self, fault: Fault) -> None:
        """The origin's connection ended before its answer did."""
        self._held = None
        origin, self._origin = self._origin, None
        if self.done:
            return
        if self._answered:
            self.done = True
            self.flush()
            self._client.break_off()
        elif (
            origin is not None
            and origin.reused
            and fault is faults.BROKE_OFF
            and self.ended_body
            and not self._retried
            and self.exchange.method in _REPEATABLE
        ):
            # Closed by its origin just as it was taken: that says nothing of this request (RFC 9112 §9.3.1).
            self._retried = True
            self._connect()
        else:
            self._fail(fault)

    def _fail(self, fault: Fault) -> None:
        self._client.edge.tools.observer.failed(self.exchange, fault.status, fault.reason)
        self._show(fault.status, fault.reason)

    def late(self) -> None:
        """A deadline is over."""
        if self._answered:
            self._drop_origin()
            self.done = True
            self._client.break_off()
        elif not self.ended_body:
            self.refuse(408, "The request's body came too slowly.")
        else:
            self._drop_origin()
            self._fail(faults.NO_ANSWER)

    # an answer of the edge's own

    def refuse(self, status: int, reason: str) -> None:
        """What the request asks for, or how it is asked, is not taken: an event, and a page."""
        decision = Decision("http", "refuse", status, reason=reason)
        self._client.edge.tools.observer.decided(self.exchange, decision)
        self._show(status, reason)

    def _show(self, status: int, reason: str) -> None:
        exchange = self.exchange
        accept = exchange.header(b"accept")
        self.answer(pages.page(status, reason, ray=exchange.ray, host=exchange.host, accept=accept))

    def answer(self, response: Response) -> None:
        """Answer in the place of the origin, and be through."""
        self._drop_origin()
        if self._route.pipeline.has_response and not self._answered:
            response = self._shaped(response)
        self._answered = True
        self._client.edge.count(response.status)
        if not self.ended_body:
            self.keep_alive = False
        self._client.write(
            own_answer(
                response,
                self._client.edge.own_lines(self.exchange.ray),
                head_only=self.exchange.method == b"HEAD",
                keep_alive=self.keep_alive,
                old=self.old,
            )
        )
        self._finish()

    def _shaped(self, response: Response) -> Response:
        """What the zone's rules for answers make of one of the edge's own."""
        exchange = self.exchange
        head = exchange.response = ResponseHead(response.status, list(response.headers), from_origin=False)
        other = self._route.pipeline.response(exchange)
        if other is not None:
            return other
        headers = [header for header in head.headers if header[0] not in answers.FRAMING]
        return Response(head.status, headers, response.body)

    def _finish(self) -> None:
        self.done = True
        self._chunks = []
        self._client.through(self)

    def _drop_origin(self) -> None:
        origin, self._origin = self._origin, None
        if origin is not None:
            origin.abort()
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()

    def abandon(self) -> None:
        """The client is gone."""
        self.done = True
        self._drop_origin()

    # an upgraded connection

    def switched(self) -> bool:
        """The origin said 101: bytes are passed on as they are from now on. False when nobody asked."""
        if not self.upgrades:
            return False
        self.flush()
        self._client.tunnel(self)
        return True

    def tunnel_in(self, data: bytes) -> None:
        self._client.write(data)
        self._client.expect_origin(limits.TUNNEL_SECONDS_MAX)

    def tunnel_out(self, data: bytes) -> None:
        if self._origin is not None:
            self._origin.write(data)
            self._client.expect_origin(limits.TUNNEL_SECONDS_MAX)

    def tunnel_lost(self) -> None:
        self._origin = None
        self.done = True
        self._client.close()


def own_answer(response: Response, lines: bytes, *, head_only: bool, keep_alive: bool, old: bool) -> bytes:
    """The bytes of an answer that the edge gives itself. `lines` are `Edge.own_lines`."""
    body = response.body
    assert isinstance(body, bytes)
    added = lines
    if response.status not in answers.NO_BODY:
        added += b"content-length: %d\r\n" % len(body)
    if not keep_alive:
        added += answers.CLOSE
    elif old:
        added += answers.KEEP_ALIVE
    head = answers.head(response.status, response.headers, added)
    return head if head_only else head + body
