"""One client's connection of HTTP/2: `h2` read and driven for exchanges.

Owns  streams and their machines, windows both ways, what is sent next, floods, deadlines, an orderly end.
Not   frames and HPACK (`h2`); what a request's fields may be (`head`); what becomes of one (`machine`).

              its settings came         GOAWAY: ours, its,        no stream is left
    OPENING ──────────────────▶ OPEN ─────────────────▶ ENDING ──────────────────────▶ CLOSED
       └───────────────────────────┴───────────────────────┴────────────────────────────▲
                    the client is gone, late, too much, or cannot be read

    OPEN     streams come and go; without any for IDLE_SECONDS_MAX it is ENDING
    ENDING   what was asked for is answered, further streams are refused: they may be asked for elsewhere
    CLOSED   what is to be sent is sent, and nothing is read any more

An answer that its client does not take waits for its window, and its origin waits with it: a stream holds
HELD_BYTES_MAX and one read at most. A body gets its window back as its machine takes it. What a connection
holds is drawn on its address, as with HTTP/1.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from hyperframe.frame import GoAwayFrame

from edgestead.edge import limits
from edgestead.edge.exchanges import heads
from edgestead.edge.http.hello import Hello
from edgestead.edge.http.http2 import head, priority
from edgestead.edge.http.http2.floods import Floods
from edgestead.edge.http.http2.frame_heads import FrameHeads
from edgestead.edge.http.http2.frames import Frames
from edgestead.edge.http.http2.stream import Stream, new_key
from edgestead.edge.http.machine import ExchangeMachine
from edgestead.edge.http.requests import NOT_PASSED, Caller, begin, calling, refusal
from edgestead.edge.http.states import Body, State
from edgestead.http1 import limits as http1
from edgestead.http1.connections import Account
from edgestead.http1.head import Headers, Refused
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import Budget

if TYPE_CHECKING:
    from edgestead.edge.http.worker import Edge

REQUESTS_MAX = 10_000  # of a connection: then it ends in order, and with it what the compression has learned
CONNECTION_WINDOW = 1 << 20  # of all bodies together
HELD_BYTES_MAX = 64 * 1024  # said on a stream and not sent: then its origin waits
WRITE_BYTES = 64 * 1024  # of frames, in one write
READ_BYTES = 16 * 1024  # at once: of few frames
IGNORED_BYTES_MAX = 1 << 20  # of a body behind its answer, while that waits for the client's window
WAITING_BYTES_MAX = 64 * 1024  # received and put off to a turn: then nothing more is read
CONNECTION_BYTES = 24 * 1024  # that it takes by itself, tables of the compression and a frame included
PRIORITY_UPDATE = 0x10  # RFC 9218 §7.1
_OVER = (State.DONE, State.CUT)


class Condition(Enum):
    OPENING = "opening"
    OPEN = "open"
    ENDING = "ending"
    CLOSED = "closed"


_OPENING, _OPEN, _ENDING, _CLOSED = Condition
_CALM = ErrorCodes.ENHANCE_YOUR_CALM


class Http2Connection(asyncio.Protocol):
    """`peer` names the client where a PROXY header did; `port` is where it came in."""

    def __init__(self, edge: "Edge", peer: str, *, port: int, hello: Hello) -> None:
        self.edge = edge
        self._hello = hello
        self._caller = Caller(peer, port)
        self._subject: object = self
        self._account: Account | None = None
        self._transport: asyncio.Transport | None = None
        self._frames = Frames()
        self._state = _OPENING
        self._streams: dict[int, Stream] = {}
        self._waiting = priority.Waiting()
        self._touched: list[Stream] = []  # of which something came: their machines go on when all is read
        self._floods = Floods()
        self._heads = FrameHeads(self._floods)
        self._put_off = b""
        self._is_put_off = self._is_paused = self._is_acting = self._is_stuffed = False
        self._left_bytes = 0  # of what was written, not taken when it was looked at last
        self._requests = 0
        self._receiving = 0  # streams whose body still comes
        self._deadline = edge.soon + http1.HEAD_SECONDS_MAX

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        caller = self._caller = calling(self.edge, transport, self._caller, self._hello)
        if not caller.is_trusted:
            self._subject = network_of(caller.peer)
        self._account = self.edge.admit(self, caller.peer, trusted=caller.is_trusted)
        if self._account is None:
            self._state = _CLOSED
            self._transport.abort()
            return
        self._frames.initiate_connection()
        window = self._frames.inbound_flow_control_window
        self._frames.increment_flow_control_window(CONNECTION_WINDOW - window)
        self._write()
        if self.edge.is_ending:  # its handshake had begun before
            self._go_away()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport, self._account = None, None
        self.edge.dismiss(self)
        self._end_streams()
        self._state, self._put_off = _CLOSED, b""

    def data_received(self, data: bytes) -> None:
        if self._is_put_off or self.edge.processor.must_wait(len(data)):
            self._put_data_off(data)
        else:
            self._receive(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_stuffed = True
        self._expect_taking()
        self._balance()
        self._draw()

    def resume_writing(self) -> None:
        self._is_stuffed, self._left_bytes = False, 0
        self._send_all()
        self._draw()

    # turns

    def _put_data_off(self, data: bytes) -> None:
        """Read it when the turn of the address has come; of much, no more before."""
        if self._state is _CLOSED:
            return
        self._put_off += data
        if not self._is_put_off:
            self._is_put_off = True
            self.edge.processor.wait(self._subject, self._read_on)
        self._balance()
        self._draw()

    def _read_on(self) -> None:
        self._is_put_off = False
        data, self._put_off = self._put_off, b""
        self._balance()
        self._receive(data)

    def _balance(self) -> None:
        """Read on only while there is room, and the client takes the acknowledgements it asks for."""
        full = len(self._put_off) > WAITING_BYTES_MAX or self._is_stuffed
        if full != self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._is_paused = full
            (self._transport.pause_reading if full else self._transport.resume_reading)()

    def _receive(self, data: bytes) -> None:
        at, processor = 0, self.edge.processor
        self._is_acting = True
        try:
            while at < len(data) and self._state is not _CLOSED:
                before = at
                at = min(self._heads.read(data[: at + READ_BYTES], at), len(data))
                self._take(data[before:at])
                if at < len(data) and processor.must_wait(at - before):
                    self._put_data_off(data[at:])
                    break
            self._go_on()
        finally:
            self._is_acting = False
        self._send_all()
        self._draw()

    def _take(self, data: bytes) -> None:
        if self._heads.is_bad:
            self._count(self._heads.over)
            self._calm(ErrorCodes.FRAME_SIZE_ERROR if self._heads.over is None else _CALM)
            return
        try:
            for event in self._frames.receive_data(data):
                react = _REACTIONS.get(event.__class__)
                if react is not None and self._state is not _CLOSED:
                    react(self, event)
        except ProtocolError:
            self._close()  # h2 has said why, in its GOAWAY

    def _go_on(self) -> None:
        """All that was received is read: what follows from it."""
        touched, self._touched = self._touched, []
        for stream in touched:
            if stream.machine is not None and not stream.is_full:
                stream.machine.proceed()

    # what comes

    def _on_settings(self, event: events.RemoteSettingsChanged) -> None:
        if self._state is _OPENING:
            self._state = _OPEN
            self._deadline = self.edge.soon + http1.IDLE_SECONDS_MAX
        self._wait_all()

    def _on_request(self, event: events.RequestReceived) -> None:
        number, fields = event.stream_id, event.headers
        assert number is not None
        if self.edge.is_ending:
            self._go_away()
        if self._state is _ENDING:
            self._try_reset(number, ErrorCodes.REFUSED_STREAM)
            return
        stream = self._streams[number] = Stream(self, number, is_receiving=event.stream_ended is None)
        self._receiving += stream.is_receiving
        self._requests += 1
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
        said = head.read([(bytes(name), bytes(value)) for name, value in fields], scheme)
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
        stream.head_bytes = sum(len(name) + len(value) for name, value in headers)
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

    def _on_data(self, event: events.DataReceived) -> None:
        number, size = event.stream_id, event.flow_controlled_length or 0
        assert number is not None
        stream = self._streams.get(number)
        machine = None if stream is None else stream.machine
        if stream is None or machine is None or machine.state in _OVER:
            self._frames.acknowledge_received_data(size, number)
            if stream is not None:
                stream.ignored_bytes += size
                if stream.ignored_bytes > IGNORED_BYTES_MAX:
                    self.reset(stream)
            return
        stream.unread += size
        if stream.key and not stream.is_tunnel:  # it is no body: the origin has not agreed to it yet
            stream.early.append(event.data)
            return
        if event.data:
            machine.body_piece(event.data)
        self.give_window(stream)
        self._touched.append(stream)

    def _on_end(self, event: events.StreamEnded) -> None:
        assert event.stream_id is not None
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        self._received(stream)
        machine = stream.machine
        if stream.is_tunnel:
            stream.end_tunnel()
        elif machine is not None and machine.state not in _OVER and not stream.key:
            if machine.length is not None and machine.body_bytes != machine.length:
                self.reset(stream, ErrorCodes.PROTOCOL_ERROR)  # trailers came before its end
                return
            machine.body_end()
            self._touched.append(stream)

    def _received(self, stream: Stream) -> None:
        self._receiving -= stream.is_receiving
        stream.is_receiving = False

    def _on_reset(self, event: events.StreamReset) -> None:
        assert event.stream_id is not None
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            self._forget(stream)
            if stream.machine is not None:
                stream.machine.client_gone()

    def _on_window(self, event: events.WindowUpdated) -> None:
        stream = self._streams.get(event.stream_id or 0)
        if stream is not None:
            self._wait(stream)
        elif not event.stream_id:
            self._wait_all()

    def _on_unknown(self, event: events.UnknownFrameReceived) -> None:
        """Of the frames that `h2` does not know, one says how urgent an answer is."""
        frame: Any = event.frame
        if frame is None or frame.type != PRIORITY_UPDATE or frame.stream_id or len(frame.body) < 4:
            return
        stream = self._streams.get(int.from_bytes(frame.body[:4], "big") & 0x7FFFFFFF)
        if stream is not None:
            stream.priority = priority.read(frame.body[4:])

    def _on_goaway(self, event: events.ConnectionTerminated) -> None:
        """The client asks for nothing more."""
        if self._state is not _CLOSED:
            self._state = _ENDING

    # what streams ask

    def say(self, stream: Stream, fields: Headers) -> None:
        """An answer before the answer."""
        if stream.number in self._streams and self._try_say(stream, fields, ends=False):
            self._send_all()

    def send(self, stream: Stream) -> None:
        """What it has said, as far as windows reach."""
        if stream.number not in self._streams:
            return
        fields, stream.head_said = stream.head_said, None
        if fields is not None:
            ends = stream.is_whole and not stream.held
            if not self._try_say(stream, fields, ends=ends):
                return
            if ends:
                self._ended(stream)
        self._wait(stream)
        self._send_all()
        if stream.held_bytes > HELD_BYTES_MAX:
            stream.fill()

    def _try_say(self, stream: Stream, fields: Headers, *, ends: bool) -> bool:
        try:
            self._frames.send_headers(stream.number, fields, end_stream=ends)
        except ProtocolError:  # it was reset in what was received just now, and is not looked at yet
            return False
        return True

    def reset(self, stream: Stream, code: ErrorCodes = ErrorCodes.INTERNAL_ERROR) -> None:
        """It ends in the middle, and the client has to notice."""
        if self._streams.get(stream.number) is stream:
            self._forget(stream)
            self._try_reset(stream.number, code)
            if stream.machine is not None:
                stream.machine.client_gone()
            self._send_all()

    def give_window(self, stream: Stream) -> None:
        """For what the machine has taken of a body the client may send as much again."""
        machine = stream.machine
        if stream.unread and (machine is None or not machine.is_full):
            unread, stream.unread = stream.unread, 0
            self._frames.acknowledge_received_data(unread, stream.number)
            self._write_soon()

    # sending

    def _wait(self, stream: Stream) -> None:
        if stream.held or (stream.is_whole and stream.has_answer):
            if stream.number in self._streams:
                self._waiting.add(stream.number, stream.priority)

    def _wait_all(self) -> None:
        for stream in self._streams.values():
            self._wait(stream)

    def _send_all(self) -> None:
        """Frames of those that have something to send, the most urgent ones first."""
        if self._is_acting or self._transport is None or self._state is _CLOSED:
            return
        self._is_acting = True
        try:
            sent = 0
            while self._waiting and not self._is_stuffed:
                number = self._waiting.first()
                octets = self._send_frame(self._streams[number])
                sent += octets
                if sent > WRITE_BYTES:
                    self._write()
                    sent = 0
            self._write()
        finally:
            self._is_acting = False
        self._go_on()
        self._balance()
        if self._account is not None and self._account.drawn > self._account.least:
            self._draw()
        if self._state is _ENDING and not self._streams:
            self._close()

    def _send_frame(self, stream: Stream) -> int:
        """One frame, if its window reaches; how many octets."""
        number, frames = stream.number, self._frames
        size = min(frames.local_flow_control_window(number), frames.max_outbound_frame_size)
        piece: bytes | memoryview = stream.held[0] if stream.held else b""
        if piece and size <= 0:
            self._waiting.remove(number)
            return 0
        if len(piece) > size:
            piece, stream.held[0] = memoryview(piece)[:size], memoryview(piece)[size:]
        elif piece:
            stream.held.popleft()
        ends = stream.is_whole and not stream.held
        frames.send_data(number, cast(bytes, piece), end_stream=ends)
        self._floods.sent(len(piece))
        stream.held_bytes -= len(piece)
        if ends:
            self._ended(stream)
        elif not stream.held:
            self._waiting.remove(number)
        else:
            self._waiting.served(number, stream.priority)
        if stream.is_full or stream.is_whole:
            stream.taken()
        if stream.held_bytes < HELD_BYTES_MAX // 2:
            stream.drain()
        return len(piece)

    def _ended(self, stream: Stream) -> None:
        """All of its answer is sent. The rest of the request's body is of no use (RFC 9113 §8.1)."""
        if stream.is_receiving:
            self._try_reset(stream.number, ErrorCodes.NO_ERROR)
        self._forget(stream)

    def _try_reset(self, number: int, code: ErrorCodes) -> None:
        try:
            self._frames.reset_stream(number, code)
        except ProtocolError:
            pass  # the client has done so

    def _forget(self, stream: Stream) -> None:
        self._received(stream)
        self._streams.pop(stream.number, None)
        self._waiting.remove(stream.number)
        if stream.unread:
            self._frames.acknowledge_received_data(stream.unread, stream.number)
            stream.unread = 0
        if not self._streams:
            self._deadline = self.edge.soon + http1.IDLE_SECONDS_MAX

    def _write_soon(self) -> None:
        if not self._is_acting:
            self._write()

    def _write(self) -> None:
        data = self._frames.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    # memory

    def _draw(self) -> None:
        """Draw on the account for what is held now; who is over the budget has to leave."""
        if self._account is None:
            return
        held = CONNECTION_BYTES + self._heads.held + len(self._put_off) + self._left_bytes
        for stream in self._streams.values():
            held += http1.REQUEST_BYTES + stream.head_bytes + stream.held_bytes
            if stream.machine is not None:
                held += stream.machine.held_bytes
        if self._account.hold(held) is not None:
            self._calm()

    def _count(self, over: Budget | None) -> None:
        if over is not None and self._account is not None:
            self._account.refuse(over)

    # the end

    def _calm(self, code: ErrorCodes = _CALM) -> None:
        self._say_goaway(code)
        self._close()

    def _say_goaway(self, code: ErrorCodes) -> None:
        """By hand: `h2` would say nothing behind it, and what was asked for is still to be answered."""
        self._write()
        if self._transport is not None and not self._transport.is_closing():
            last = self._frames.highest_inbound_stream_id
            self._transport.write(GoAwayFrame(0, last_stream_id=last, error_code=code).serialize())

    def _go_away(self) -> None:
        if self._state in (_OPENING, _OPEN):
            self._state = _ENDING
            self._say_goaway(ErrorCodes.NO_ERROR)
            if not self._streams:
                self._close()

    def _close(self) -> None:
        if self._state is _CLOSED:
            return
        self._write()
        self._state, self._put_off = _CLOSED, b""
        self._end_streams()
        if self._transport is not None:
            self._expect_taking()
            self._transport.close()  # when all is taken

    def _end_streams(self) -> None:
        streams, self._streams = self._streams, {}
        self._waiting, self._touched = priority.Waiting(), []
        for stream in streams.values():
            if stream.machine is not None:
                stream.machine.client_gone()

    def finish(self) -> None:
        """The server ends: close once what is being served is answered."""
        self._go_away()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # time

    def _expect_taking(self) -> None:
        if self._transport is not None:
            self._left_bytes = self._transport.get_write_buffer_size()
            self._deadline = self.edge.soon + limits.STALL_SECONDS_MAX

    def _is_taking(self) -> bool:
        """Whether the client has taken some of what was written since the last look."""
        assert self._transport is not None
        before, self._left_bytes = self._left_bytes, self._transport.get_write_buffer_size()
        return self._left_bytes < before

    def close_if_late(self, now: float) -> None:
        if self._transport is None:
            return
        self._floods.begin_second()
        if self._is_stuffed or self._state is _CLOSED:
            if self._is_taking():
                self._deadline = now + limits.STALL_SECONDS_MAX
            elif now > self._deadline:
                self._transport.abort()
                return
        for stream in tuple(self._streams.values()):
            waits = self._is_stuffed and (stream.is_full or stream.is_whole)  # for the client to take it
            if now > stream.deadline > 0.0 and not waits:
                self._end_late(stream)
        if self._is_stuffed or self._state is _CLOSED:
            return
        if not self._streams and now > self._deadline:
            self._go_away() if self._state is _OPEN else self._close()

    def _end_late(self, stream: Stream) -> None:
        machine = stream.machine
        if machine is None or machine.state in _OVER:
            self.reset(stream)  # it is answered, and the client does not take it
        else:
            machine.late()


_REACTIONS: dict[type, Callable[[Http2Connection, Any], None]] = {
    events.RemoteSettingsChanged: Http2Connection._on_settings,
    events.RequestReceived: Http2Connection._on_request,
    events.DataReceived: Http2Connection._on_data,
    events.StreamEnded: Http2Connection._on_end,
    events.StreamReset: Http2Connection._on_reset,
    events.WindowUpdated: Http2Connection._on_window,
    events.UnknownFrameReceived: Http2Connection._on_unknown,
    events.ConnectionTerminated: Http2Connection._on_goaway,
}
