"""One client's connection of HTTP/2: streams driven for exchanges.

Owns  streams and their machines, what is sent next, deadlines of streams.
Not   the connection (`http2.driver`), frames, windows and floods (`http2.wire`); what a request's fields may
      be (`http2.head`); what becomes of one (`machine`).

An answer that its client does not take waits for its window, and its origin waits with it: a stream holds
HELD_BYTES_MAX and one read at most. A body gets its window back as its machine takes it. What a connection
holds is drawn on its address, as with HTTP/1.
"""

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, cast

from edgestead.edge import limits
from edgestead.edge.exchanges import heads
from edgestead.edge.http.hello import Hello
from edgestead.edge.http.http2 import priority
from edgestead.edge.http.http2.stream import KEPT_OUT, Stream, new_key
from edgestead.edge.http.machine import ExchangeMachine
from edgestead.edge.http.requests import NOT_PASSED, Caller, begin, calling, refusal
from edgestead.edge.http.states import Body, State
from edgestead.http1 import limits as http1
from edgestead.http1.head import Headers, Refused
from edgestead.http2 import head, wire
from edgestead.http2.driver import CLOSED, REQUESTS_MAX, WRITE_BYTES, Driver
from edgestead.http2.wire import FRAME_OCTETS_MAX
from edgestead.model.budgets.networks import network_of

if TYPE_CHECKING:
    from edgestead.edge.http.worker import Edge

HELD_BYTES_MAX = 64 * 1024  # said on a stream and not sent: then its origin waits
IGNORED_BYTES_MAX = 1 << 20  # of a body behind its answer, while that waits for the client's window
_OVER = (State.DONE, State.CUT)


class Http2Connection(Driver[Stream]):
    """`peer` names the client where a PROXY header did; `port` is where it came in."""

    def __init__(self, edge: "Edge", peer: str, *, port: int, hello: Hello) -> None:
        super().__init__(edge, KEPT_OUT | {edge.names.ray})
        self.edge = edge
        self._hello = hello
        self._caller = Caller(peer, port)
        self._waiting = priority.Waiting()
        self._touched: list[Stream] = []  # of which something came: their machines go on when all is read
        self._receiving = 0  # streams whose body still comes

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        caller = self._caller = calling(self.edge, transport, self._caller, self._hello)
        if not caller.is_trusted:
            self._subject = network_of(caller.peer)
        self._account = self.edge.admit(self, caller.peer, trusted=caller.is_trusted)
        if self._account is None:
            self._state = CLOSED
            self._transport.abort()
            return
        self._write()
        if self.edge.is_ending:  # its handshake had begun before
            self._go_away()

    def connection_lost(self, error: Exception | None) -> None:
        self.edge.dismiss(self)
        self._gone()

    def _go_on(self) -> None:
        """All that was received is read: what follows from it."""
        touched, self._touched = self._touched, []
        for stream in touched:
            if stream.machine is not None and not stream.is_full:
                stream.machine.proceed()

    # what comes

    def head_came(self, number: int, fields: Headers, ends: bool) -> None:
        if number in self._streams:
            self._end_body(number, is_end=ends and head.are_trailers(fields))  # which go no further
            return
        if self.edge.is_ending:
            self._go_away()
        if not self._is_taken():
            self._wire.reset(number, wire.REFUSED_STREAM)
            return
        stream = self._streams[number] = Stream(self, number, is_receiving=not ends)
        self._receiving += stream.is_receiving
        try:
            stream.machine = self._made(stream, fields)
        except Refused as refused:
            self._refuse(stream, refused, fields)
        else:
            self._touched.append(stream)
        if self._requests >= REQUESTS_MAX:
            self._go_away()

    def _made(self, stream: Stream, fields: Headers) -> ExchangeMachine:
        """Raises Refused."""
        scheme = self._caller.scheme
        said = head.read(fields, scheme)
        method, headers = said.method, said.headers
        if method in NOT_PASSED:
            raise Refused(*NOT_PASSED[method])
        if said.is_websocket:
            stream.key = new_key()
            headers += [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
            headers += [(b"sec-websocket-key", stream.key)]
        read = heads.read("1.1", method, said.target, headers)
        if said.is_websocket:
            read.length = 0
        elif not stream.is_receiving:
            if read.length:
                raise Refused(400, "its body is shorter than it says")
        elif b"content-length" not in read.found:
            read.length = None
        exchange, route, added = begin(self.edge, self._caller, scheme, b"HTTP/2", method, headers, read)
        if route.facts.settings["http2"] != "on":
            raise Refused(421, "this host is not served in HTTP/2")
        if said.is_websocket and not route.takes_websockets:
            raise Refused(501, "this host takes no WebSocket")
        stream.head_bytes = sum(map(len, chain.from_iterable(headers)))
        stream.ray, stream.head_only = exchange.ray, method == b"HEAD"
        stream.expects = read.found.get(b"expect", b"").lower() == b"100-continue"
        stream.priority = priority.read(read.found.get(b"priority"))
        body = Body.ENDED if read.length == 0 else Body.COMING
        return ExchangeMachine(exchange, stream, self.edge, route, read, added, said.is_websocket, body)

    def _refuse(self, stream: Stream, refused: Refused, fields: Headers) -> None:
        """Answer what has no exchange."""
        said = dict(reversed(fields))
        known = [(b"host", said.get(b":authority", said.get(b"host", b"")))]
        if b"accept" in said:
            known.append((b"accept", said[b"accept"]))
        method = said.get(b":method", b"")
        status, reason = refused.args
        page, stream.ray = refusal(
            self.edge, self._caller, status, reason, (method, said.get(b":path", b""), known)
        )
        if refused.budget is not None and self._account is not None:
            self._account.refuse(refused.budget)
        stream.head_only = method == b"HEAD"
        stream.answer(page, drained=not stream.is_receiving)

    def data_came(self, number: int, piece: bytes, octets: int, ends: bool) -> None:
        stream = self._streams.get(number)
        machine = None if stream is None else stream.machine
        if stream is None or machine is None or machine.state in _OVER:
            self._wire.give(number, octets)
            if stream is not None:
                stream.ignored_bytes += octets
                if stream.ignored_bytes > IGNORED_BYTES_MAX:
                    self.reset(stream)
                    return
        elif stream.key and not stream.is_tunnel:  # it is no body: the origin has not agreed to it yet
            stream.unread += octets
            stream.early.append(piece)
        else:
            stream.unread += octets
            length = None if stream.is_tunnel else machine.length
            if length is not None and machine.body_bytes + len(piece) > length:
                self.reset(stream, wire.PROTOCOL_ERROR)
                return
            if piece:
                machine.body_piece(piece)
            self.give_window(stream)
            self._touched.append(stream)
        if ends:
            self._end_body(number, is_end=True)

    def _end_body(self, number: int, *, is_end: bool) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        if not is_end:  # a second head, or trailers that are none (RFC 9113 §8.1)
            self.reset(stream, wire.PROTOCOL_ERROR)
            return
        self._received(stream)
        machine = stream.machine
        if stream.is_tunnel:
            stream.end_tunnel()
        elif machine is not None and machine.state not in _OVER and not stream.key:
            if machine.length is not None and machine.body_bytes != machine.length:
                self.reset(stream, wire.PROTOCOL_ERROR)  # it, or trailers, came before its end
                return
            machine.body_end()
            self._touched.append(stream)

    def _received(self, stream: Stream) -> None:
        self._receiving -= stream.is_receiving
        stream.is_receiving = False

    def reset_came(self, number: int, code: int) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            self._forget(stream)
            self._leave(stream)

    def window_came(self, number: int) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            self._wait(stream)
        elif not number:
            self._wait_all()

    def priority_came(self, number: int, value: bytes) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            stream.priority = priority.read(value)

    # what streams ask

    def say(self, stream: Stream, fields: Headers) -> None:
        """An answer before the answer."""
        if stream.number in self._streams and self._wire.head(stream.number, fields, ends=False):
            self._send_all()

    def send(self, stream: Stream) -> None:
        """What it has said, as far as windows reach."""
        if stream.number not in self._streams:
            return
        fields, stream.head_said = stream.head_said, None
        if fields is not None:
            ends = stream.is_whole and not stream.held and not stream.trailers_said
            if not self._wire.head(stream.number, fields, ends=ends):
                return  # it was reset in what was received just now, and is not looked at yet
            if ends:
                self._ended(stream)
        self._wait(stream)
        self._send_all()
        if stream.held_bytes > HELD_BYTES_MAX:
            stream.fill()

    def reset(self, stream: Stream, code: int = wire.INTERNAL_ERROR) -> None:
        """It ends in the middle, and the client has to notice."""
        if self._streams.get(stream.number) is stream:
            self._forget(stream)
            self._wire.reset(stream.number, code)
            self._leave(stream)
            self._send_all()

    def give_window(self, stream: Stream) -> None:
        """For what the machine has taken of a body the client may send as much again."""
        machine = stream.machine
        if stream.unread and (machine is None or not machine.is_full):
            unread, stream.unread = stream.unread, 0
            self._wire.give(stream.number, unread)
            if not self._is_acting:
                self._write_soon()

    # sending

    def _wait(self, stream: Stream) -> None:
        if stream.held or (stream.is_whole and stream.has_answer):
            if stream.number in self._streams:
                self._waiting.add(stream.number, stream.priority)

    def _wait_all(self) -> None:
        for stream in self._streams.values():
            self._wait(stream)

    def _send_ready(self) -> None:
        """Frames of those that have something to send, the most urgent ones first."""
        sent = 0
        while self._waiting and not self._is_stuffed:
            number = self._waiting.first()
            sent += self._send_frame(self._streams[number])
            if sent > WRITE_BYTES:
                self._write()
                sent = 0

    def _sent(self) -> None:
        if self._touched:
            self._go_on()

    def _send_frame(self, stream: Stream) -> int:
        """One frame, if its window reaches; how many octets."""
        number, held = stream.number, stream.held
        size = min(self._wire.window(number), FRAME_OCTETS_MAX)
        piece: bytes | memoryview = held[0] if held else b""
        if piece and size <= 0:
            self._waiting.remove(number)
            return 0
        if len(piece) > size:
            piece, held[0] = memoryview(piece)[:size], memoryview(piece)[size:]
        elif piece:
            held.popleft()
        ends = stream.is_whole and not held
        if not (ends and stream.trailers_said):
            self._wire.data(number, piece, ends=ends)
        else:
            if piece:
                self._wire.data(number, piece, ends=False)
            self._wire.head(number, stream.trailers_said, ends=True)
        stream.held_bytes -= len(piece)
        if ends:
            self._ended(stream)
        elif not held:
            self._waiting.remove(number)
        else:
            self._waiting.served(number, stream.priority)
        if stream.is_full or stream.is_whole:
            stream.taken()
        if stream.is_full and stream.held_bytes < HELD_BYTES_MAX // 2:
            stream.drain()
        return len(piece)

    def _ended(self, stream: Stream) -> None:
        """All of its answer is sent. The rest of the request's body is of no use (RFC 9113 §8.1)."""
        self._floods.answered()
        if stream.is_receiving:
            self._wire.reset(stream.number, wire.NO_ERROR)
        self._forget(stream)
        stream.machine = None  # they hold each other: else they would wait for the collector

    def _forget(self, stream: Stream) -> None:
        self._received(stream)
        self._streams.pop(stream.number, None)
        self._waiting.remove(stream.number)
        if stream.unread:
            self._wire.give(stream.number, stream.unread)
            stream.unread = 0
        if not self._streams:
            self._deadline = self.edge.soon + http1.IDLE_SECONDS_MAX

    def _held_bytes(self) -> int:
        held = 0
        for stream in self._streams.values():
            held += http1.REQUEST_BYTES + stream.head_bytes + stream.held_bytes
            if stream.machine is not None:
                held += stream.machine.drawn_bytes
        return held

    # the end

    def _end_streams(self) -> None:
        streams, self._streams = self._streams, {}
        self._waiting, self._touched = priority.Waiting(), []
        for stream in streams.values():
            self._leave(stream)

    def _leave(self, stream: Stream) -> None:
        machine, stream.machine = stream.machine, None
        if machine is not None:
            machine.client_gone()

    # time

    def _look_at(self, stream: Stream, now: float) -> None:
        waits = self._is_stuffed and (stream.is_full or stream.is_whole)  # for the client to take it
        if now > stream.deadline > 0.0 and not waits:
            self._end_late(stream)

    def _end_late(self, stream: Stream) -> None:
        machine = stream.machine
        if machine is None or machine.state in _OVER:
            self.reset(stream)  # it is answered, and the client does not take it
        else:
            machine.late()
