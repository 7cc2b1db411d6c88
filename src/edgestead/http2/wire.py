"""Frames of HTTP/2 (RFC 9113) on one connection, on either side of it, without I/O.

Owns  reading and writing frames; which streams are open; windows of flow control; settings; floods.
Not   what fields mean, what goes first, when a connection ends: that is up to its `Party`. Fields' blocks
      (`field_blocks`).

    (idle) ──▶ OPEN ──▶ ENDED BY US, or BY THE PEER ──▶ gone      a `Lane` each; what is gone is a number
                 └──────── reset by either ──────────────▲          below the highest one, and no more

A head of a frame is looked at before anything of it is kept: what is longer than was offered, and what is
one of too many that carry nothing, ends the connection. At most FRAMES_AT_ONCE are read in one step.
"""

from struct import Struct
from typing import Protocol

from edgestead.http1.head import Headers
from edgestead.http1.limits import HEAD_BYTES_MAX
from edgestead.http2.field_blocks import Reader, Unreadable, Writer
from edgestead.http2.floods import Floods
from edgestead.model.budgets.table import Budget

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # §3.4
HEAD_OCTETS = 9
FRAME_OCTETS_MAX = 16_384  # §6.5.2: what no setting has to offer
SETTINGS_OCTETS_MAX = 32 * 6  # settings of one frame; there are ten in all
FRAMES_AT_ONCE = 24  # a millisecond, where each is a request
CONTINUATIONS_MAX = 64  # frames of a block, in which a client could send an octet each
WINDOW_USUAL = 65_535  # §6.9.2
WINDOW_MAX = (1 << 31) - 1  # §6.9.1
STREAMS_MAX = 100  # at a time: what browsers and curl go by
STREAM_WINDOW = 128 * 1024  # of a body, before who serves it has taken any
CONNECTION_WINDOW = 1 << 20  # of all bodies together

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0, 1, 2, 3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL = 5, 6, 7, 8
COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 9, 11

_DATA, _HEADERS, _PRIORITY, _RESET, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = range(10)
_PRIORITY_UPDATE = 0x10  # RFC 9218 §7.1
_END_STREAM, _END_HEADERS, _PADDED, _HAS_PRIORITY, _ACK = 0x1, 0x4, 0x8, 0x20, 0x1
TABLE_SIZE, ENABLE_PUSH, STREAMS, WINDOW, FRAME_SIZE, LIST_SIZE = range(1, 7)
CONNECT, NO_PRIORITIES = 8, 9
SETTINGS_OF_SERVERS = {
    STREAMS: STREAMS_MAX,
    WINDOW: STREAM_WINDOW,
    LIST_SIZE: HEAD_BYTES_MAX,
    CONNECT: 1,  # RFC 8441 §3
    NO_PRIORITIES: 1,  # RFC 9218 §2.1.1
}
SETTINGS_OF_CLIENTS = {ENABLE_PUSH: 0, WINDOW: STREAM_WINDOW, LIST_SIZE: HEAD_BYTES_MAX}
_HEAD = Struct(">HBBBL")
_HEAD_AND_LONG = Struct(">HBBBLL")
_SETTING = Struct(">HL")


class Broken(Exception):
    """The connection cannot be read on. `code` is what the peer is told, `over` the budget it is over."""

    def __init__(self, code: int, over: Budget | None = None) -> None:
        super().__init__(code)
        self.code, self.over = code, over


class Party(Protocol):
    """Whose connection it is: what came."""

    def settings_came(self) -> None: ...

    def head_came(self, number: int, fields: Headers, ends: bool) -> None:
        """The first fields of a stream, interim ones or trailers."""
        ...

    def data_came(self, number: int, piece: bytes, octets: int, ends: bool) -> None:
        """`octets` are taken from the windows: `give` returns them."""
        ...

    def reset_came(self, number: int, code: int) -> None: ...

    def window_came(self, number: int) -> None:
        """There is more room on a stream, 0: on all."""
        ...

    def priority_came(self, number: int, value: bytes) -> None: ...

    def goaway_came(self, last: int, code: int) -> None: ...


class Lane:
    """One stream's windows, and which of its ends were said. `owed` is not given back yet."""

    __slots__ = ("ended_by_peer", "ended_by_us", "owed", "window_in", "window_out")

    def __init__(self, window_out: int) -> None:
        self.window_out = window_out
        self.window_in = STREAM_WINDOW
        self.owed = 0
        self.ended_by_peer = self.ended_by_us = False


class Wire:
    """`is_server`: the peer asks. `kept_out` are names of fields whose values are never remembered.

    A client's window for all of its streams grows again as theirs do. An origin's (`is_server` False) does at
    once, since its streams have several clients: one that takes nothing would keep all others waiting.
    """

    __slots__ = (
        *("_at", "_begun", "_block", "_block_octets", "_continuations", "_data", "_first_window", "_floods"),
        *(
            "_is_greeted",
            "_is_looked_at",
            "_is_server",
            "_lanes",
            "_late",
            "_needs_preface",
            "_out",
            "_owed",
            "_party",
        ),
        *("_reader", "_window_in", "_window_out", "_writer", "highest", "is_left", "streams_max"),
    )

    def __init__(self, party: Party, floods: Floods, *, is_server: bool, kept_out: frozenset[bytes]) -> None:
        self._party = party
        self._floods = floods
        self._is_server = self._needs_preface = is_server
        self._reader, self._writer = Reader(HEAD_BYTES_MAX), Writer(kept_out)
        self._lanes: dict[int, Lane] = {}
        self._late = 0  # octets that may still come on streams that were ended here
        self._data, self._at = b"", 0  # received, and up to where it was read
        self._begun: tuple[int, bool] | None = (
            None  # stream of a block that goes on, and whether it ends that
        )
        self._block: list[bytes] = []
        self._block_octets = self._continuations = 0
        self._is_greeted = self._is_looked_at = False  # by settings; the head of the frame that is not whole
        self._window_out, self._window_in, self._owed = WINDOW_USUAL, CONNECTION_WINDOW, 0
        self._first_window = WINDOW_USUAL  # of a stream, as the peer's settings have it
        self._out: list[bytes] = []
        self.highest = 0  # of the streams that were opened
        self.streams_max = STREAMS_MAX  # at a time, as the peer's settings have it
        self.is_left = False  # frames are here that were not read in this step
        settings = SETTINGS_OF_SERVERS if is_server else SETTINGS_OF_CLIENTS
        if not is_server:
            self._out.append(PREFACE)
        self._say(_SETTINGS, 0, 0, b"".join(_SETTING.pack(*setting) for setting in settings.items()))
        self._say_long(_WINDOW, 0, CONNECTION_WINDOW - WINDOW_USUAL)

    @property
    def held(self) -> int:
        """Octets that are kept until they can be read."""
        return len(self._data) - self._at + self._block_octets

    @property
    def table_octets_max(self) -> int:
        """Of what the peer remembers of our fields."""
        return self._writer.table_octets_max

    # reading

    def feed(self, data: bytes) -> None:
        """What was received, to be read by `step`."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at, self.is_left = 0, True

    def drop(self) -> None:
        """Nothing is read any more."""
        self._data, self._at, self._block, self._block_octets, self.is_left = b"", 0, [], 0, False

    def step(self) -> int:
        """Read some frames; how many octets. Whether more are here is `is_left`. Raises Broken."""
        before = self._at
        if self._needs_preface and not self._read_preface():
            return 0
        for _ in range(FRAMES_AT_ONCE):
            data, at = self._data, self._at
            if len(data) - at < HEAD_OCTETS:
                self.is_left = False
                break
            high, low, kind, flags, number = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if not self._is_looked_at:
                self._look(kind, flags, length)
            end = at + HEAD_OCTETS + length
            if len(data) < end:
                self.is_left, self._is_looked_at = False, True
                break
            self._is_looked_at, self._at = False, end
            self._read(kind, flags, number & WINDOW_MAX, data[at + HEAD_OCTETS : end])
        return max(self._at - before, 0)

    def _read_preface(self) -> bool:
        """Whether it is whole."""
        begin = self._data[self._at : self._at + len(PREFACE)]
        if not PREFACE.startswith(begin):
            raise Broken(PROTOCOL_ERROR)
        if len(begin) < len(PREFACE):
            self.is_left = False
            return False
        self._at += len(PREFACE)
        self._needs_preface = False
        return True

    def _look(self, kind: int, flags: int, length: int) -> None:
        """At a frame's head, before anything of it is kept."""
        over = None
        if kind == _HEADERS:
            self._block_octets, self._continuations = length, 0
        elif kind == _CONTINUATION:
            self._block_octets += length
            self._continuations += 1
            if self._block_octets > HEAD_BYTES_MAX or self._continuations > CONTINUATIONS_MAX:
                raise Broken(ENHANCE_YOUR_CALM)
        elif not self._is_server and (kind == _WINDOW or kind == _RESET):
            # An origin answers each message of gRPC with two windows, and may end each request that it was
            # asked. Its connection is many clients': what one of them provokes must not end it for others.
            pass
        elif kind == _RESET:
            over = self._floods.reset()
        elif kind != _DATA or (not length and not flags & _END_STREAM):
            over = self._floods.frame()
        if over is not None:
            raise Broken(ENHANCE_YOUR_CALM, over)
        if length > (SETTINGS_OCTETS_MAX if kind == _SETTINGS else FRAME_OCTETS_MAX):
            raise Broken(FRAME_SIZE_ERROR)

    def _read(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if (self._begun is not None) is not (kind == _CONTINUATION):
            raise Broken(PROTOCOL_ERROR)  # §6.10: nothing stands within a block
        if not self._is_greeted and kind != _SETTINGS:
            raise Broken(PROTOCOL_ERROR)  # §3.4
        if kind > _CONTINUATION:
            if kind == _PRIORITY_UPDATE and self._is_server and not number and len(payload) >= 4:
                self._party.priority_came(int.from_bytes(payload[:4], "big") & WINDOW_MAX, payload[4:])
            return
        if bool(number) is not _OF_STREAMS[kind]:
            if kind != _WINDOW or number:
                raise Broken(PROTOCOL_ERROR)
        length = _LENGTHS[kind]
        if length is not None and len(payload) != length:
            raise Broken(FRAME_SIZE_ERROR)
        _READERS[kind](self, flags, number, payload)

    def _read_head(self, flags: int, number: int, payload: bytes) -> None:
        if flags & _PADDED:
            payload = _unpadded(payload)
        if flags & _HAS_PRIORITY:
            if len(payload) < 5:
                raise Broken(FRAME_SIZE_ERROR)
            payload = payload[5:]
        if flags & _END_HEADERS:
            self._block_octets = 0
            self._take_head(number, payload, bool(flags & _END_STREAM))
        else:
            self._begun, self._block = (number, bool(flags & _END_STREAM)), [payload]

    def _read_continuation(self, flags: int, number: int, payload: bytes) -> None:
        assert self._begun is not None
        begun, ends = self._begun
        if number != begun:
            raise Broken(PROTOCOL_ERROR)
        self._block.append(payload)
        if flags & _END_HEADERS:
            block, self._block, self._begun, self._block_octets = b"".join(self._block), [], None, 0
            self._take_head(number, block, ends)

    def _take_head(self, number: int, block: bytes, ends: bool) -> None:
        try:
            fields = self._reader.read(block)
        except Unreadable:
            raise Broken(COMPRESSION_ERROR) from None
        lane = self._lanes.get(number)
        if lane is None:
            if number <= self.highest and number & 1:
                self._count(self._floods.frame())  # it was reset, and this was on its way
                return
            if not self._is_server or not number & 1:
                raise Broken(PROTOCOL_ERROR)
            self.highest = number
            if len(self._lanes) >= STREAMS_MAX:
                self._say_long(_RESET, number, REFUSED_STREAM)
                self._count(self._floods.reset())
                return
            lane = self._lanes[number] = Lane(self._first_window)
        elif lane.ended_by_peer:
            self._break(number, STREAM_CLOSED)
            return
        if ends:
            self._ended_by_peer(number, lane)
        self._party.head_came(number, fields, ends)

    def _read_data(self, flags: int, number: int, payload: bytes) -> None:
        octets = len(payload)
        if octets > self._window_in:
            raise Broken(FLOW_CONTROL_ERROR)
        self._window_in -= octets
        if flags & _PADDED:
            payload = _unpadded(payload)
        lane = self._lanes.get(number)
        if lane is None:
            if number > self.highest or not number & 1:
                raise Broken(PROTOCOL_ERROR)
            self._give_all(octets)
            self._take_late(octets)
            return
        if not self._is_server:
            self._give_all(octets)
        if lane.ended_by_peer or octets > lane.window_in:
            if self._is_server:
                self._give_all(octets)
            self._break(number, STREAM_CLOSED if lane.ended_by_peer else FLOW_CONTROL_ERROR)
            return
        lane.window_in -= octets
        ends = bool(flags & _END_STREAM)
        if ends:
            self._ended_by_peer(number, lane)
        elif octets and not payload:
            self._count(self._floods.frame())  # nothing but padding
        self._party.data_came(number, payload, octets, ends)

    def _take_late(self, octets: int) -> None:
        """Content of a stream that is gone: an origin may have sent as much of it as there was window."""
        if self._is_server or not octets:
            self._count(self._floods.frame())
            return
        self._late -= octets
        if self._late < 0:
            raise Broken(FLOW_CONTROL_ERROR)

    def _read_reset(self, flags: int, number: int, payload: bytes) -> None:
        if number > self.highest:
            raise Broken(PROTOCOL_ERROR)
        if self._lanes.pop(number, None) is not None:
            self._party.reset_came(number, int.from_bytes(payload, "big"))
        elif not self._is_server:
            self._count(self._floods.frame())

    def _read_settings(self, flags: int, number: int, payload: bytes) -> None:
        if flags & _ACK:
            if payload or not self._is_greeted:
                raise Broken(FRAME_SIZE_ERROR if payload else PROTOCOL_ERROR)
            return
        if len(payload) % _SETTING.size:
            raise Broken(FRAME_SIZE_ERROR)
        for name, value in _SETTING.iter_unpack(payload):
            self._set(name, value)
        self._is_greeted = True
        self._say(_SETTINGS, _ACK, 0, b"")
        self._party.settings_came()

    def _set(self, name: int, value: int) -> None:
        if name == TABLE_SIZE:
            self._writer.resize(value)
        elif name == WINDOW:
            if value > WINDOW_MAX:
                raise Broken(FLOW_CONTROL_ERROR)
            more, self._first_window = value - self._first_window, value
            for lane in self._lanes.values():
                lane.window_out += more
                if lane.window_out > WINDOW_MAX:
                    raise Broken(FLOW_CONTROL_ERROR)
        elif name == STREAMS:
            self.streams_max = value
        elif name == FRAME_SIZE:
            if not FRAME_OCTETS_MAX <= value < 1 << 24:
                raise Broken(PROTOCOL_ERROR)
        elif (name == ENABLE_PUSH or name == CONNECT) and value > 1:
            raise Broken(PROTOCOL_ERROR)

    def _read_ping(self, flags: int, number: int, payload: bytes) -> None:
        if not flags & _ACK:
            self._say(_PING, _ACK, 0, payload)

    def _read_goaway(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) < 8:
            raise Broken(FRAME_SIZE_ERROR)
        last, code = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")
        self._party.goaway_came(last & WINDOW_MAX, code)

    def _read_window(self, flags: int, number: int, payload: bytes) -> None:
        more = int.from_bytes(payload, "big") & WINDOW_MAX
        if not number:
            self._window_out += more
            if not more or self._window_out > WINDOW_MAX:
                raise Broken(FLOW_CONTROL_ERROR if more else PROTOCOL_ERROR)
        else:
            lane = self._lanes.get(number)
            if lane is None:
                if number > self.highest:
                    raise Broken(PROTOCOL_ERROR)
                return
            lane.window_out += more
            if not more or lane.window_out > WINDOW_MAX:
                self._break(number, FLOW_CONTROL_ERROR if more else PROTOCOL_ERROR)
                return
        self._party.window_came(number)

    def _read_priority(self, flags: int, number: int, payload: bytes) -> None:
        """RFC 9113 §5.3.2: it says nothing any more."""

    def _read_push(self, flags: int, number: int, payload: bytes) -> None:
        raise Broken(PROTOCOL_ERROR)  # nobody was offered to push

    def _break(self, number: int, code: int) -> None:
        """End one stream, which the peer has used as it may not."""
        self.reset(number, code)
        self._party.reset_came(number, code)

    def _ended_by_peer(self, number: int, lane: Lane) -> None:
        lane.ended_by_peer = True
        if lane.ended_by_us:
            del self._lanes[number]

    def _count(self, over: Budget | None) -> None:
        if over is not None:
            raise Broken(ENHANCE_YOUR_CALM, over)

    # saying

    def open_stream(self) -> int:
        """The number of the next one. Ours to open only where the peer is a server."""
        self.highest = self.highest + 2 if self.highest else 1
        self._lanes[self.highest] = Lane(self._first_window)
        return self.highest

    def window(self, number: int) -> int:
        """How many octets may be sent on a stream now."""
        lane = self._lanes.get(number)
        if lane is None:
            return 0
        return lane.window_out if lane.window_out < self._window_out else self._window_out

    def head(self, number: int, fields: Headers, *, ends: bool) -> bool:
        """Whether it was said: not on a stream that was reset just now."""
        lane = self._lanes.get(number)
        if lane is None:
            return False
        block, flags = self._writer.write(fields), _END_STREAM if ends else 0
        if len(block) <= FRAME_OCTETS_MAX:
            self._say(_HEADERS, flags | _END_HEADERS, number, block)
        else:
            kind = _HEADERS
            while len(block) > FRAME_OCTETS_MAX:
                self._say(kind, flags, number, block[:FRAME_OCTETS_MAX])
                kind, flags, block = _CONTINUATION, 0, block[FRAME_OCTETS_MAX:]
            self._say(kind, _END_HEADERS, number, block)
        if ends:
            self._ended_by_us(number, lane)
        return True

    def data(self, number: int, piece: bytes | memoryview, *, ends: bool) -> None:
        """A frame of at most `window` and FRAME_OCTETS_MAX octets."""
        lane = self._lanes[number]
        octets = len(piece)
        lane.window_out -= octets
        self._window_out -= octets
        self._floods.sent(octets)
        self._out.append(_HEAD.pack(octets >> 8, octets & 0xFF, _DATA, _END_STREAM if ends else 0, number))
        if octets:
            self._out.append(bytes(piece))
        if ends:
            self._ended_by_us(number, lane)

    def _ended_by_us(self, number: int, lane: Lane) -> None:
        lane.ended_by_us = True
        if lane.ended_by_peer:
            del self._lanes[number]

    def reset(self, number: int, code: int) -> None:
        """Harmless where it is gone."""
        lane = self._lanes.pop(number, None)
        if lane is not None:
            self._say_long(_RESET, number, code)
            if not lane.ended_by_peer:
                self._late = min(self._late + lane.window_in, CONNECTION_WINDOW)

    def give(self, number: int, octets: int) -> None:
        """So much of a stream's content was taken: the peer may send as much again."""
        if self._is_server:
            self._give_all(octets)
        lane = self._lanes.get(number)
        if lane is not None and not lane.ended_by_peer:
            lane.owed += octets
            if lane.owed >= STREAM_WINDOW // 2:
                lane.window_in += lane.owed
                self._say_long(_WINDOW, number, lane.owed)
                lane.owed = 0

    def _give_all(self, octets: int) -> None:
        self._owed += octets
        if self._owed >= CONNECTION_WINDOW // 2:
            self._window_in += self._owed
            self._say_long(_WINDOW, 0, self._owed)
            self._owed = 0

    def ping(self) -> None:
        """Ask whether the peer is there: it answers."""
        self._say(_PING, 0, 0, bytes(8))

    def goaway(self, code: int) -> None:
        last = self.highest if self._is_server else 0
        self._say(_GOAWAY, 0, 0, last.to_bytes(4, "big") + code.to_bytes(4, "big"))

    def _say(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        length = len(payload)
        self._out.append(_HEAD.pack(length >> 8, length & 0xFF, kind, flags, number) + payload)

    def _say_long(self, kind: int, number: int, value: int) -> None:
        self._out.append(_HEAD_AND_LONG.pack(0, 4, kind, 0, number, value))

    def take(self) -> bytes:
        """What is to be sent."""
        out = self._out
        if not out:
            return b""
        self._out = []
        return out[0] if len(out) == 1 else b"".join(out)


def _unpadded(payload: bytes) -> bytes:
    if not payload or payload[0] >= len(payload):
        raise Broken(PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]


# By number of the frame: of a stream, or of the connection (windows are of both); its length if it has one.
_OF_STREAMS = (True, True, True, True, False, True, False, False, True, True)
_LENGTHS = (None, None, 5, 4, None, None, 8, None, 4, None)
_READERS = (
    Wire._read_data,
    Wire._read_head,
    Wire._read_priority,
    Wire._read_reset,
    Wire._read_settings,
    Wire._read_push,
    Wire._read_ping,
    Wire._read_goaway,
    Wire._read_window,
    Wire._read_continuation,
)
