"""Frames of HTTP/2 that may not be, on either side of a connection: what each of them ends."""

import pytest

from edgestead.http2 import wire
from edgestead.http2.floods import Floods
from edgestead.http2.wire import Broken, Wire

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
GET = b"\x82\x87\x84\x41\x01a"  # GET https / of a


class Seen:
    """A party that remembers."""

    def __init__(self):
        self.came = []

    def __getattr__(self, name):
        if not name.endswith("_came"):
            raise AttributeError(name)
        return lambda *said: self.came.append((name.removesuffix("_came"), *said))


def frame(kind, flags=0, number=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + number.to_bytes(4, "big") + payload


def read(one, *frames):
    """The code of what ends the connection, or None."""
    one.feed(b"".join(frames))
    try:
        while one.is_left:
            one.step()
    except Broken as broken:
        return broken.code
    return None


@pytest.fixture
def seen():
    return Seen()


@pytest.fixture
def server(seen):
    """One whose client has greeted it."""
    made = Wire(seen, Floods(), is_server=True, kept_out=frozenset())
    assert read(made, wire.PREFACE, frame(SETTINGS)) is None
    made.take()
    seen.came.clear()
    return made


@pytest.fixture
def client(seen):
    """One that has asked for stream 1, and was greeted."""
    made = Wire(seen, Floods(), is_server=False, kept_out=frozenset())
    assert read(made, frame(SETTINGS)) is None
    made.head(made.open_stream(), [(b":method", b"GET")], ends=True)
    made.take()
    seen.came.clear()
    return made


def setting(name, value):
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


PROTOCOL, SIZE, FLOW, COMPRESSION, CALM = (*(1, 6, 3, 9, 11),)
OPEN = frame(HEADERS, 4, 1, GET)
ENDS = {  # name: (frames, the code that ends the connection)
    "DATA of a stream that is not there": ([frame(DATA, 0, 1, b"a")], PROTOCOL),
    "DATA of no stream": ([frame(DATA, 0, 0, b"a")], PROTOCOL),
    "DATA of a server's stream": ([OPEN, frame(DATA, 0, 2, b"a")], PROTOCOL),
    "HEADERS of no stream": ([frame(HEADERS, 4, 0, GET)], PROTOCOL),
    "HEADERS of a server's stream": ([frame(HEADERS, 4, 2, GET)], PROTOCOL),
    "RST_STREAM of a stream that is not there": ([frame(RESET, 0, 1, bytes(4))], PROTOCOL),
    "RST_STREAM of no stream": ([frame(RESET, 0, 0, bytes(4))], PROTOCOL),
    "a window of a stream that is not there": ([frame(WINDOW, 0, 1, b"\0\0\0\1")], PROTOCOL),
    "a window of nothing": ([frame(WINDOW, 0, 0, bytes(4))], PROTOCOL),
    "a window larger than may be": ([frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff")], FLOW),
    "SETTINGS of a stream": ([frame(SETTINGS, 0, 1)], PROTOCOL),
    "PING of a stream": ([frame(PING, 0, 1, bytes(8))], PROTOCOL),
    "GOAWAY of a stream": ([frame(GOAWAY, 0, 1, bytes(8))], PROTOCOL),
    "PRIORITY of no stream": ([frame(PRIORITY, 0, 0, bytes(5))], PROTOCOL),
    "a push": ([OPEN, frame(PUSH, 4, 1, bytes(4) + GET)], PROTOCOL),
    "CONTINUATION of nothing": ([frame(CONTINUATION, 4, 1, GET)], PROTOCOL),
    "CONTINUATION of another stream": (
        [frame(HEADERS, 0, 1, GET), frame(CONTINUATION, 4, 3, b"")],
        PROTOCOL,
    ),
    "something within a block": ([frame(HEADERS, 0, 1, GET), frame(PING, 0, 0, bytes(8))], PROTOCOL),
    "something unknown within a block": ([frame(HEADERS, 0, 1, GET), frame(99, 0, 0, b"")], PROTOCOL),
    "more padding than content": ([frame(HEADERS, 4 | 8, 1, b"\x07" + GET)], PROTOCOL),
    "padding without a length": ([OPEN, frame(DATA, 8, 1, b"")], PROTOCOL),
    "a priority that is cut off": ([frame(HEADERS, 4 | 0x20, 1, b"\0\0")], SIZE),
    "a short PING": ([frame(PING, 0, 0, bytes(7))], SIZE),
    "a short RST_STREAM": ([OPEN, frame(RESET, 0, 1, bytes(3))], SIZE),
    "a short window": ([frame(WINDOW, 0, 0, bytes(3))], SIZE),
    "a short PRIORITY": ([frame(PRIORITY, 0, 1, bytes(4))], SIZE),
    "a short GOAWAY": ([frame(GOAWAY, 0, 0, bytes(7))], SIZE),
    "SETTINGS that are cut off": ([frame(SETTINGS, 0, 0, bytes(5))], SIZE),
    "an acknowledgement that says something": ([frame(SETTINGS, 1, 0, bytes(6))], SIZE),
    "a frame that is too long": ([OPEN, frame(DATA, 0, 1, bytes(16_385))], SIZE),
    "an offer to push that is none": ([frame(SETTINGS, 0, 0, setting(2, 2))], PROTOCOL),
    "a window that no stream may have": ([frame(SETTINGS, 0, 0, setting(4, 1 << 31))], FLOW),
    "a window that a stream gets too large by": (
        [OPEN, frame(WINDOW, 0, 1, b"\x7f\xff\0\0"), frame(SETTINGS, 0, 0, setting(4, 1 << 30))],
        FLOW,
    ),
    "frames shorter than they have to be": ([frame(SETTINGS, 0, 0, setting(5, 100))], PROTOCOL),
    "fields that cannot be read": ([frame(HEADERS, 4, 1, b"\xff")], COMPRESSION),
    "trailers that cannot be read": ([OPEN, frame(HEADERS, 5, 1, b"\xff")], COMPRESSION),
    "fields of a stream that was reset, that cannot be read": (
        [OPEN, frame(RESET, 0, 1, bytes(4)), frame(HEADERS, 5, 1, b"\xff")],
        COMPRESSION,
    ),
    "a block in too many frames": ([frame(HEADERS, 0, 1, GET)] + [frame(CONTINUATION, 0, 1)] * 65, CALM),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_what_may_not_be_ends_the_connection(server, name):
    frames, code = ENDS[name]
    assert read(server, *frames) == code


@pytest.mark.parametrize("octets", [1, 5, 9])
@pytest.mark.parametrize("name", ENDS)
def test_in_whatever_pieces_it_comes(server, name, octets):
    frames, code = ENDS[name]
    data, found = b"".join(frames), None
    for at in range(0, min(len(data), 2_000), octets):
        found = read(server, data[at : at + octets])
        if found is not None:
            break
    assert found == code


PASSES = {  # name: (frames, what came)
    "a request": ([frame(HEADERS, 5, 1, GET)], [("head", 1, True)]),
    "a request in padding, with a priority": (
        [frame(HEADERS, 5 | 8 | 0x20, 1, b"\2" + bytes(5) + GET + b"\0\0")],
        [("head", 1, True)],
    ),
    "a request in three frames": (
        [frame(HEADERS, 1, 1, GET[:2]), frame(CONTINUATION, 0, 1, GET[2:3]),
         frame(CONTINUATION, 4, 1, GET[3:])],
        [("head", 1, True)],
    ),
    "a body in padding": (
        [OPEN, frame(DATA, 9, 1, b"\2ab\0\0")],
        [("head", 1, False), ("data", 1, b"ab", 5, True)],
    ),
    "what was on its way to a stream that is gone": (
        [OPEN, frame(RESET, 0, 1, b"\0\0\0\x08"), frame(DATA, 0, 1, b"a"), frame(WINDOW, 0, 1, b"\0\0\0\1"),
         frame(HEADERS, 5, 1, GET), frame(RESET, 0, 1, bytes(4))],
        [("head", 1, False), ("reset", 1, 8)],
    ),
    "what nobody knows": (
        [frame(99, 255, 7, b"abc"), frame(SETTINGS, 0, 0, setting(99, 1))], [("settings",)]
    ),
    "a flag that nobody knows": ([frame(HEADERS, 5 | 0x80, 1, GET)], [("head", 1, True)]),
    "a reserved bit": ([frame(HEADERS, 5, 1 | 1 << 31, GET)], [("head", 1, True)]),
    "how urgent it is": ([frame(0x10, 0, 0, b"\0\0\0\1u=1")], [("priority", 1, b"u=1")]),
    "an end": ([frame(GOAWAY, 0, 0, bytes(8) + b"why")], [("goaway", 0, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("octets", [1, 3, 1_000])
@pytest.mark.parametrize("name", PASSES)
def test_what_may_be_comes(server, seen, name, octets):
    frames, came = PASSES[name]
    data = b"".join(frames)
    for at in range(0, len(data), octets):
        assert read(server, data[at : at + octets]) is None
    assert [one if one[0] != "head" else (one[0], one[1], one[3]) for one in seen.came] == came


STREAMS = {  # name: (frames, the code that ends this stream and no other)
    "content behind its end": ([frame(HEADERS, 5, 1, GET), frame(DATA, 0, 1, b"a")], 5),
    "fields behind its end": ([frame(HEADERS, 5, 1, GET), frame(HEADERS, 5, 1, GET)], 5),
    "a window of nothing": ([OPEN, frame(WINDOW, 0, 1, bytes(4))], 1),
    "a window larger than may be": ([OPEN, frame(WINDOW, 0, 1, b"\x7f\xff\xff\xff")], 3),
    "more content than its window": ([OPEN] + [frame(DATA, 0, 1, bytes(16_384))] * 9, 3),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_used_as_it_may_not_be_ends_alone(server, seen, name):
    frames, code = STREAMS[name]
    assert read(server, *frames) is None
    assert seen.came[-1] == ("reset", 1, code)
    assert server.take().endswith(frame(RESET, 0, 1, code.to_bytes(4, "big")))
    assert len(server._lanes) == 0


def test_more_content_than_the_window_of_all(server):
    heads = [frame(HEADERS, 4, number, GET) for number in range(1, 21, 2)]
    content = [frame(DATA, 0, number, bytes(16_384)) for number in range(1, 21, 2) for _ in range(8)]
    assert read(server, *heads, *content) == FLOW


def test_what_was_taken_may_come_again(server):
    assert read(server, OPEN) is None
    for _ in range(1_000):
        assert read(server, frame(DATA, 0, 1, bytes(16_384))) is None
        server.give(1, 16_384)
    assert len(server._lanes) == 1


@pytest.mark.parametrize(
    "first", [frame(PING, 0, 0, bytes(8)), frame(SETTINGS, 1), b"GET / HTTP/1.1\r\n\r\n" * 2]
)
def test_a_connection_begins_with_a_preface_and_settings(seen, first):
    for begin in (b"", wire.PREFACE):
        made = Wire(seen, Floods(), is_server=True, kept_out=frozenset())
        assert read(made, begin, first) is not None


# the other side

ANSWERED = frame(HEADERS, 4, 1, b"\x88")
ENDS_CLIENT = {
    "an answer that nobody asked for": ([frame(HEADERS, 4, 3, b"\x88")], PROTOCOL),
    "a stream of the origin's": ([frame(HEADERS, 4, 2, b"\x88")], PROTOCOL),
    "a push": ([frame(PUSH, 4, 1, b"\0\0\0\2\x82")], PROTOCOL),
    "content that nobody asked for": ([frame(DATA, 0, 3, b"a")], PROTOCOL),
    "no settings": ([], None),
}


@pytest.mark.parametrize("name", ENDS_CLIENT)
def test_what_an_origin_may_not_say_ends_its_connection(client, name):
    frames, code = ENDS_CLIENT[name]
    assert read(client, *frames) == code


def test_one_stream_that_nobody_takes_keeps_no_other_waiting(client, seen):
    for _ in range(99):
        client.head(client.open_stream(), [(b":method", b"GET")], ends=True)
    numbers = range(1, 201, 2)
    for number in numbers:
        assert read(client, frame(HEADERS, 4, number, b"\x88")) is None
        for _ in range(7):
            assert read(client, frame(DATA, 0, number, bytes(16_384))) is None
    assert len([one for one in seen.came if one[0] == "data"]) == 700
    assert len(client._lanes) == 100


def test_an_origin_may_open_windows_as_often_as_it_likes(client):
    """One of gRPC opens two for each message; only what has to be answered is a flood."""
    assert read(client, *[frame(WINDOW, 0, 0, b"\0\0\0\1")] * 5_000) is None
    assert read(client, *[frame(PING, 0, 0, bytes(8))] * 1_001) == CALM


def test_an_origin_may_end_each_request_that_it_was_asked(client):
    for number in range(1, 601, 2):
        assert read(client, frame(RESET, 0, number, bytes(4))) is None
        client.head(client.open_stream(), [(b":method", b"GET")], ends=True)
    assert read(client, *[frame(RESET, 0, 1, bytes(4))] * 1_001) == CALM


def test_what_was_on_its_way_when_a_stream_was_ended_is_no_flood_and_is_bounded(client):
    """Who takes back many requests of one origin must not end its connection for all others."""
    client.reset(1, 8)
    sent = wire.STREAM_WINDOW // 50
    assert sent > 2_000
    assert read(client, *[frame(DATA, 0, 1, bytes(50))] * sent) is None
    assert read(client, *[frame(DATA, 0, 1, bytes(50))] * 2) == FLOW
