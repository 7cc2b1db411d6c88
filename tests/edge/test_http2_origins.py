"""Origins in HTTP/2, without sockets: requests that share a connection, bodies, ends, trailers."""

from types import SimpleNamespace

import pytest
from hpack import Encoder
from hyperframe.frame import DataFrame, GoAwayFrame, HeadersFrame, PingFrame, PushPromiseFrame, RstStreamFrame

from edgestead.edge import limits
from edgestead.edge.http.http2.origin import SILENT_SECONDS_MAX
from edgestead.http2 import wire
from tests.edge.bench import GET, POST, Transport
from tests.edge.http2_client import Http2Client, fields
from tests.edge.http2_server import TARGET, Http2Server, h2c_bench

OK = (b":status", b"200")
GRPC = ((b"te", b"trailers"), (b"content-type", b"application/grpc"))
CANCEL, REFUSED_STREAM, PROTOCOL_ERROR = 8, 7, 1


@pytest.fixture
def bench():
    made = h2c_bench()
    made.sought = []
    made.edge.pool.seek = lambda aim, seeker, is_again: (
        made.sought.append((aim, seeker)) or SimpleNamespace(cancel=lambda: None)
    )
    return made


@pytest.fixture
def origin(bench):
    return Http2Server(bench)


@pytest.fixture
def client(bench):
    return Http2Client(bench)


def ask(bench, data=GET):
    """By a client of HTTP/1.1 of its own; its transport."""
    connection, transport = type(bench.connection)(bench.edge, port=80), Transport()
    connection.connection_made(transport)
    transport.connection = connection
    connection.data_received(data)
    return transport


def test_a_request_of_http_1_is_asked_in_http_2(bench, origin):
    client = ask(
        bench,
        b"GET /a?b HTTP/1.1\r\nHost: www.example.com\r\nX-Own:  y \r\nConnection: x-gone\r\nX-Gone: z\r\n"
        b"TE: trailers\r\nExpect: 100-continue\r\nX-Real-IP: 6.6.6.6\r\n\r\n",
    )
    number, asked = origin.last
    assert asked.fields[:4] == [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":authority", b"www.example.com"),
        (b":path", b"/a?b"),
    ]
    names = [name for name, _ in asked.fields[4:]]
    assert asked[b"x-own"] == b"y"
    assert asked[b"x-forwarded-for"] == b"192.0.2.9"
    assert asked[b"via"] == b"1.1 here"
    assert not {b"host", b"x-gone", b"connection", b"te", b"expect", b"x-real-ip"} & set(names)
    assert names == [name.lower() for name in names]
    assert asked.ended
    origin.answer(number, [OK, (b"content-length", b"4"), (b"x-a", b"b")], b"page")
    assert client.written.startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-a: b\r\n")
    assert client.written.endswith(b"\r\n\r\npage")


def test_an_answer_without_a_length_is_in_chunks_for_http_1(bench, origin):
    client = ask(bench)
    number, _ = origin.last
    origin.answer(number, [OK], b"pa", b"ge", trailers=[(b"x-t", b"1")])
    assert client.written.endswith(b"\r\n\r\n2\r\npa\r\n2\r\nge\r\n0\r\n\r\n")


def test_many_requests_share_a_connection_and_none_waits_for_another(bench, origin):
    clients = [ask(bench, GET.replace(b"/ ", b"/%d " % number)) for number in range(50)]
    origin.talk()
    assert len(origin.asked) == 50
    for number, asked in reversed(origin.asked.items()):
        origin.answer(number, [OK], b"page of " + asked[b":path"])
    for number, client in enumerate(clients):
        assert b"page of /%d\r\n" % number in client.written
    assert bench.sought == []


@pytest.mark.parametrize(("streams", "offered"), [(3, 100), (100, 3)])
def test_more_requests_than_a_connection_takes_go_to_another(streams, offered):
    bench = h2c_bench(origin_h2_max_streams=offered)
    sought = []
    bench.edge.pool.seek = lambda aim, seeker, is_again: (
        sought.append(seeker) or SimpleNamespace(cancel=lambda: None)
    )
    target = TARGET._replace(streams_max=offered)
    origin = Http2Server(bench, streams=streams)
    origin.edge.target = target
    bench.edge.pool._shared = {target: [origin.edge]}
    for _ in range(5):
        ask(bench)
    origin.talk()
    assert (len(origin.asked), len(sought)) == (3, 2)


def test_a_body_waits_for_its_origins_window_and_its_client_with_it(bench):
    origin, client = Http2Server(bench, window=10_000), Http2Client(bench)
    origin.takes = False
    number = client.ask(fields(b"PUT", b"/"), ends=False)
    body = b"".join(b"%07d " % at for at in range(100_000))
    sent = 0
    while (window := min(client.h2.local_flow_control_window(number), 16_000, len(body) - sent)) > 0:
        client.send(number, body[sent : sent + window])
        sent += window
    asked = origin.last[1]
    assert asked.body == body[:10_000]
    assert sent < 300_000
    for _ in range(200):
        origin.h2.increment_flow_control_window(10_000, max(origin.asked))
        origin.h2.increment_flow_control_window(10_000)
        origin.talk()
        client.listen()
        window = min(client.h2.local_flow_control_window(number), 16_000, len(body) - sent)
        if window > 0:
            client.send(number, body[sent : sent + window])
            sent += window
    client.send(number, b"", ends=True)
    origin.talk()
    assert asked.body == body
    assert asked.ended


def test_what_an_origin_does_not_take_is_drawn_on_the_clients_address(bench, origin):
    origin.takes = False
    client, memory = Http2Client(bench), bench.edge.accounts.memory
    before = memory.held["192.0.2.9"]
    numbers = [client.ask(fields(b"PUT", b"/"), ends=False) for _ in range(40)]
    sent, left = 0, numbers
    while left:
        left = [one for one in left if client.h2.local_flow_control_window(one) > 0]
        for number in left:
            window = min(client.h2.local_flow_control_window(number), 16_000)
            client.send(number, bytes(window))
            sent += window
    assert sent > 3_000_000
    assert memory.held["192.0.2.9"] - before > sent - 2 * wire.WINDOW_USUAL
    for number in numbers:
        client.reset(number)
    client.edge.data_received(PingFrame(0, opaque_data=bytes(8)).serialize())
    assert memory.held["192.0.2.9"] == before


def test_an_answer_waits_for_its_client_and_no_other_one_with_it(bench, origin):
    slow, quick = Http2Client(bench, window=1_000), Http2Client(bench)
    slow_number = slow.ask()
    first, _ = origin.last
    body = bytes(range(256)) * 2_000
    origin.h2.send_headers(first, [OK])
    sent = 0
    while (window := origin.h2.local_flow_control_window(first)) > 0 and sent < len(body):
        window = min(window, 16_000)
        origin.h2.send_data(first, body[sent : sent + window])
        sent += window
        origin.talk()
        slow.listen()
    assert sent < 260_000, "a window, and what a client's stream holds"
    number = quick.ask()
    second, _ = origin.last
    origin.answer(second, [OK], b"x" * 16_000, b"y" * 16_000)
    quick.listen()
    assert quick.answers[number].ended
    for _ in range(200):
        slow.give(20_000, slow_number)
        origin.talk()
        while (window := min(origin.h2.local_flow_control_window(first), 16_000, len(body) - sent)) > 0:
            origin.h2.send_data(first, body[sent : sent + window])
            sent += window
            origin.talk()
    origin.h2.end_stream(first)
    origin.talk()
    slow.give(1 << 20, slow_number)
    assert slow.answers[slow_number].body == body
    assert slow.answers[slow_number].ended


# gRPC


def test_trailers_go_from_end_to_end(bench, origin, client):
    number = client.ask(fields(b"POST", b"/svc/Call", *GRPC), b"\0\0\0\0\1a")
    at, asked = origin.last
    assert (asked[b"te"], asked.body, asked[b"content-length"]) == (b"trailers", b"\0\0\0\0\1a", None)
    trailers = [(b"grpc-status", b"0"), (b"x-own", b"y"), (b"set-cookie", b"a=b"), (b"content-length", b"9")]
    got = []
    take = client._take
    client._take = lambda event: got.append(event) or take(event)
    origin.answer(at, [OK, GRPC[1]], b"\0\0\0\0\1b", trailers=trailers)
    client.listen()
    assert (client.answers[number].body, client.answers[number].ended) == (b"\0\0\0\0\1b", True)
    found = [event.headers for event in got if type(event).__name__ == "TrailersReceived"]
    assert [dict(one) for one in found] == [{b"grpc-status": b"0", b"x-own": b"y"}]


def test_an_answer_that_is_trailers_only_stays_one_head(bench, origin, client):
    number = client.ask(fields(b"POST", b"/svc/Call", *GRPC), b"\0\0\0\0\0")
    at, _ = origin.last
    origin.answer(at, [OK, GRPC[1], (b"grpc-status", b"12")])
    client.listen()
    answer = client.answers[number]
    assert (answer.headers[b"grpc-status"], answer.body, answer.ended) == (b"12", b"", True)
    assert b"content-length" not in answer.headers


def test_both_sides_speak_as_they_like(bench, origin, client):
    number = client.ask(fields(b"POST", b"/svc/Talk", *GRPC), ends=False)
    at, asked = origin.last
    origin.answer(at, [OK, GRPC[1]], ends=False)
    for turn in range(5):
        client.send(number, b"ask %d;" % turn)
        origin.talk()
        assert asked.body.endswith(b"ask %d;" % turn)
        origin.h2.send_data(at, b"tell %d;" % turn)
        origin.talk()
        client.listen()
        assert client.answers[number].body.endswith(b"tell %d;" % turn)
    client.send(number, b"", ends=True)
    origin.talk()
    origin.h2.send_headers(at, [(b"grpc-status", b"0")], end_stream=True)
    origin.talk()
    client.listen()
    assert asked.ended
    assert client.answers[number].ended


def test_no_header_of_a_client_but_what_browsers_say_alike_is_in_the_table_of_all(bench, origin):
    """A guess that is shorter on the wire than others is right: so there are no guesses."""
    sizes = []
    for guess in (b"key-0123456789", b"key-9876543210", b"key-0123456789"):
        ask(bench, GET[:-2] + b"X-Api-Key: %b\r\nAccept: text/html\r\n\r\n" % guess)
        connection = origin.edge
        connection._write()
        sizes.append(len(origin.transport.written))
        origin.talk()
    assert sizes[1] == sizes[2] < sizes[0], "and what is alike is said once"


# ends


def test_who_takes_a_request_back_ends_a_stream_and_no_connection(bench, origin, client):
    number = client.ask()
    at, asked = origin.last
    client.reset(number)
    origin.talk()
    assert asked.reset == CANCEL
    assert origin.transport.state == "open"
    ask(bench)
    assert origin.last[0] == at + 2


def test_an_early_answer_ends_the_stream_of_a_body_that_still_comes(bench, origin, client):
    number = client.ask(fields(b"PUT", b"/"), b"some", ends=False)
    at, asked = origin.last
    origin.answer(at, [OK], b"page")
    client.listen()
    origin.talk()
    assert (client.answers[number].body, asked.reset) == (b"page", CANCEL)
    assert origin.transport.state == "open"


def test_what_the_origin_refuses_is_asked_once_more_whatever_its_method(bench, origin):
    client = ask(bench, POST + b"hello")
    at, asked = origin.last
    assert asked.body == b"hello"
    origin.raw(RstStreamFrame(at, error_code=REFUSED_STREAM).serialize())
    assert len(bench.sought) == 1
    other = Http2Server(bench)
    bench.sought[0][1].connected(other.edge.stream())
    at, asked = other.last
    assert asked.body == b"hello"
    other.raw(RstStreamFrame(at, error_code=REFUSED_STREAM).serialize())
    assert client.status == 520
    assert len(bench.sought) == 1


def test_a_post_that_was_reset_in_another_way_is_not_asked_again(bench, origin):
    first = ask(bench)
    number, _ = origin.last
    origin.answer(number, [OK], b"page")
    client = ask(bench, POST + b"hello")
    origin.raw(RstStreamFrame(origin.last[0], error_code=2).serialize())
    assert (first.status, client.status, bench.sought) == (200, 520, [])


def test_an_origin_that_goes_away_answers_what_it_has_taken_and_the_rest_is_asked_elsewhere(bench, origin):
    clients = [ask(bench, POST + b"hello") for _ in range(3)]
    origin.talk()
    origin.raw(GoAwayFrame(0, last_stream_id=3).serialize())
    assert len(bench.sought) == 1, "of the third"
    ask(bench)
    assert len(bench.sought) == 2, "and nothing more is asked here"
    assert origin.transport.state == "open"
    for number in (1, 3):
        block = Encoder().encode([OK, (b"content-length", b"0")])
        frame = HeadersFrame(number, data=block, flags=["END_HEADERS", "END_STREAM"])
        origin.edge.data_received(frame.serialize())
    assert [client.status for client in clients] == [200, 200, None]
    assert origin.transport.state == "aborted"


@pytest.mark.parametrize("end", ["reset", "unreadable", "answer"])
def test_a_connection_that_takes_no_more_ends_with_its_last_request(bench, origin, end):
    ask(bench)
    number, _ = origin.last
    origin.raw(GoAwayFrame(0, last_stream_id=number).serialize())
    assert origin.transport.state == "open"
    assert [one for kept in bench.edge.pool._shared.values() for one in kept] == [origin.edge], "it is swept"
    ask(bench)
    assert len(bench.sought) == 1
    if end == "reset":
        origin.raw(RstStreamFrame(number, error_code=CANCEL).serialize())
    elif end == "unreadable":
        origin.raw(DataFrame(number, b"before its head").serialize())
    else:
        origin.answer(number, [OK], b"page")
    assert origin.transport.state == "aborted"
    assert not bench.edge.pool._shared


def test_a_connection_that_has_room_for_nothing_is_not_kept(bench):
    origin = Http2Server(bench, streams=0)
    assert origin.transport.state == "aborted"
    assert not bench.edge.pool._shared


def test_a_connection_that_ends_takes_its_requests_with_it(bench, origin):
    fresh = ask(bench)
    origin.lost()
    assert fresh.status == 520
    assert bench.edge.pool._shared == {}


def test_a_get_on_a_connection_that_has_served_is_asked_once_more(bench, origin):
    ask(bench)
    origin.answer(origin.last[0], [OK], b"page")
    ask(bench)
    origin.lost()
    assert len(bench.sought) == 1


def test_a_connection_that_says_nothing_is_asked_whether_it_lives(bench, origin):
    client = ask(bench)
    for _ in range(int(SILENT_SECONDS_MAX) + 2):
        bench.wait(1)
    origin.talk()
    assert origin.pings == 1
    for _ in range(int(SILENT_SECONDS_MAX) + 2):
        bench.wait(1)
    origin.transport.written = b""
    assert client.status is None, "it has answered"
    for _ in range(2 * int(SILENT_SECONDS_MAX) + 3):
        bench.wait(1)
    assert origin.transport.state == "aborted"
    assert client.status == 520


def test_a_connection_of_no_use_is_closed(bench, origin):
    ask(bench)
    origin.answer(origin.last[0], [OK], b"page")
    for _ in range(int(limits.IDLE_HTTP2_ORIGIN_SECONDS_MAX) - 1):
        bench.wait(1)
    assert origin.transport.state == "open"
    for _ in range(3):
        bench.wait(1)
    assert origin.transport.state == "aborted"


def test_a_websocket_is_asked_in_http_1(bench, origin):
    ask(
        bench,
        b"GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    assert bench.server.written.startswith(b"GET / HTTP/1.1\r\n")
    assert origin.asked == {}


# what is no answer

LENGTH_4 = (b"content-length", b"4")
HEADS = {  # fields that are no answer
    "no status": [(b"x", b"y")],
    "nothing": [],
    "a status that is no number": [(b":status", b"2oo")],
    "a status of four digits": [(b":status", b"2000")],
    "a status of two": [(b":status", b"99")],
    "a status below 100": [(b":status", b"099")],
    "a status with a blank": [(b":status", b"200 ")],
    "two": [OK, OK],
    "a status behind a header": [(b"x", b"y"), OK],
    "a path": [OK, (b":path", b"/")],
    "another protocol": [(b":status", b"101")],
    "an interim answer with a body": [(b":status", b"103"), LENGTH_4],
    "a line end in a value": [OK, (b"x", b"a\r\nset-cookie: b=c")],
    "LF in a value": [OK, (b"x", b"a\nb")],
    "CR in a value": [OK, (b"x", b"a\rb")],
    "NUL in a value": [OK, (b"x", b"a\0b")],
    "blanks around a value": [OK, (b"x", b" a")],
    "a line end in a name": [OK, (b"x\r\ny", b"a")],
    "a colon in a name": [OK, (b"x:y", b"a")],
    "a blank in a name": [OK, (b"x ", b"a")],
    "a name without octets": [OK, (b"", b"a")],
    "a name in upper case": [OK, (b"Content-Length", b"4")],
    "a transfer encoding": [OK, (b"transfer-encoding", b"chunked")],
    "a connection": [OK, (b"connection", b"close")],
    "an upgrade": [OK, (b"upgrade", b"h2c")],
    "keep-alive": [OK, (b"keep-alive", b"5")],
    "two lengths": [OK, LENGTH_4, LENGTH_4],
    "a list of lengths": [OK, (b"content-length", b"4, 4")],
    "a length with a sign": [OK, (b"content-length", b"+4")],
    "a length in hexadecimals": [OK, (b"content-length", b"0x4")],
    "a length without digits": [OK, (b"content-length", b"")],
    "a length beyond any": [OK, (b"content-length", b"9" * 30)],
    "too many headers": [OK, *[(b"x", b"y")] * 200],
}


def say(origin, number, fields, *, ends=False):
    block = origin.h2.encoder.encode(fields)
    flags = ["END_HEADERS", "END_STREAM"] if ends else ["END_HEADERS"]
    origin.raw(HeadersFrame(number, data=block, flags=flags).serialize())


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_is_no_answer_is_520_and_others_on_the_connection_are_answered(bench, origin, name):
    broken, good = ask(bench), ask(bench)
    say(origin, 1, HEADS[name])
    say(origin, 3, [OK], ends=True)
    assert broken.written.count(b"HTTP/1.1 ") == 1
    assert broken.status == 520
    assert b"b=c" not in broken.written
    assert good.status == 200
    origin.talk()
    assert origin.asked[1].reset == PROTOCOL_ERROR
    assert origin.transport.state == "open"


CUT = {  # (head, frames behind it): an answer that began, and is none
    "less than its length": ([OK, LENGTH_4], [DataFrame(1, b"abc", flags=["END_STREAM"])]),
    "more than its length": ([OK, LENGTH_4], [DataFrame(1, b"abcde", flags=["END_STREAM"])]),
    "no length is reached": ([OK, LENGTH_4], [DataFrame(1, b"", flags=["END_STREAM"])]),
    "a body where none may be": ([(b":status", b"204")], [DataFrame(1, b"abc", flags=["END_STREAM"])]),
    "fields within the body": ([OK], [DataFrame(1, b"abc"), [(b"x", b"y")]]),
    "a second head": ([OK], [[OK]]),
    "trailers before the end of its length": ([OK, LENGTH_4], [DataFrame(1, b"abc"), ([(b"x", b"y")], True)]),
    "trailers with a status": ([OK], [DataFrame(1, b"abc"), ([OK], True)]),
    "trailers with a line end": ([OK], [DataFrame(1, b"abc"), ([(b"x", b"a\r\nb")], True)]),
    "a reset": ([OK], [DataFrame(1, b"abc"), RstStreamFrame(1, error_code=2)]),
}  # fmt: skip


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("name", CUT)
def test_an_answer_that_breaks_off_is_noticed_by_the_client(bench, origin, name, version):
    first, behind = CUT[name]
    if version == "1":
        client = ask(bench)
    else:
        client = Http2Client(bench)
        number = client.ask()
    say(origin, 1, first)
    for one in behind:
        if isinstance(one, tuple):
            say(origin, 1, one[0], ends=one[1])
        elif isinstance(one, list):
            say(origin, 1, one)
        else:
            origin.raw(one.serialize())
    if version == "1":
        assert client.state == "aborted"
        assert not client.written.endswith(b"\r\n0\r\n\r\n")
        assert b"abcde" not in client.written
    else:
        client.listen()
        assert client.answers[number].reset is not None
        assert not client.answers[number].ended
    assert origin.transport.state == "open"


ENDS = {
    "a push": PushPromiseFrame(
        1, promised_stream_id=2, data=Encoder().encode(fields()), flags=["END_HEADERS"]
    ),
    "fields that cannot be read": HeadersFrame(1, data=b"\xff\xff\xff\xff\xff\xff", flags=["END_HEADERS"]),
    "an answer to nobody": HeadersFrame(9, data=Encoder().encode([OK]), flags=["END_HEADERS"]),
    "a frame that is too long": DataFrame(1, b"x" * 20_000),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_what_is_no_http_2_ends_all_that_share_the_connection(bench, origin, name):
    clients = [ask(bench), ask(bench)]
    origin.talk()
    origin.edge.data_received(ENDS[name].serialize())
    assert [client.status for client in clients] == [520, 520]
    assert origin.transport.state == "aborted"
    assert bench.edge.pool._shared == {}


def test_content_before_its_head_is_no_answer(bench, origin):
    client = ask(bench)
    origin.raw(DataFrame(1, b"abc").serialize())
    assert client.status == 520


def test_an_origin_that_floods_is_left(bench, origin):
    client = ask(bench)
    origin.talk()
    origin.edge.data_received(PingFrame(0, opaque_data=bytes(8)).serialize() * 1_001)
    assert client.status == 520
    assert origin.transport.state == "aborted"


def test_interim_answers_are_passed_on_and_have_an_end(bench, origin, client):
    number = client.ask()
    at, _ = origin.last
    for _ in range(3):
        origin.h2.send_headers(at, [(b":status", b"103"), (b"link", b"</a>")])
    origin.answer(at, [OK], b"page")
    client.listen()
    assert len(client.answers[number].interim) == 3
    client.ask()
    at, _ = origin.last
    for _ in range(limits.INTERIM_MAX + 1):
        origin.h2.send_headers(at, [(b":status", b"103")])
    origin.talk()
    assert origin.asked[at].reset == PROTOCOL_ERROR


def test_secrets_and_what_differs_are_in_no_table(bench, origin):
    for number in range(5):
        ask(
            bench,
            b"GET /%d HTTP/1.1\r\nHost: www.example.com\r\nCookie: s=%d\r\nAuthorization: Bearer %d\r\n"
            b"Accept: */*\r\n\r\n" % (number, number, number),
        )
    origin.talk()
    table = origin.h2.decoder.header_table.dynamic_entries
    assert {bytes(name) for name, _ in table} <= {
        b":authority",
        b"accept",
        b"via",
        b"cdn-loop",
        b"x-forwarded-proto",
    }


def test_the_window_of_a_connection_is_no_limit_for_those_that_share_it(bench, origin):
    """A hundred clients that take nothing hold a stream's window each, and the next one is served."""
    for _ in range(60):
        Http2Client(bench, window=0).ask()
        at, _ = origin.last
        origin.h2.send_headers(at, [OK])
        while (window := min(origin.h2.local_flow_control_window(at), 16_000)) > 0:
            origin.h2.send_data(at, b"x" * window)
            origin.talk()
    quick = ask(bench)
    origin.answer(origin.last[0], [OK], b"page")
    assert b"page" in quick.written
    assert wire.STREAM_WINDOW * 60 > wire.CONNECTION_WINDOW
