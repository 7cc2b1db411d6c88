"""Connections of HTTP/2 without sockets: streams, windows, floods, ends."""

from base64 import b64encode
from hashlib import sha1
from types import SimpleNamespace

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from edgestead.edge.http.http2 import connection as http2
from edgestead.edge.http.states import State
from edgestead.http2 import wire
from edgestead.http2.driver import Condition
from edgestead.http2.floods import Floods
from edgestead.model.budgets import table
from tests.edge.bench import HEAD_200
from tests.edge.http2_client import HOST, Http2Client, fields, http2_bench

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CALM, FRAME_SIZE_ERROR = (*(0, 1, 2, 7, 11, 6),)


@pytest.fixture
def bench():
    made = http2_bench(websockets="on")
    made.edge.pool.seek = lambda aim, seeker, is_again: SimpleNamespace(
        cancel=lambda: None
    )  # there is one origin
    return made


@pytest.fixture
def client(bench):
    return Http2Client(bench)


def from_origin(client, data):
    client.bench.origin.data_received(data)
    client.listen()


def test_a_request_goes_to_its_origin_in_http_1_and_the_answer_comes_back(bench, client):
    number = client.ask(fields(b"GET", b"/a?b", (b"accept", b"*/*")))
    asked = bench.server.written
    from_origin(client, HEAD_200 + b"page")

    assert asked.startswith(b"GET /a?b HTTP/1.1\r\nhost: www.example.com\r\naccept: */*\r\n")
    assert b"via: 2 " in asked
    answer = client.answers[number]
    assert (answer.status, answer.body, answer.ended, answer.reset) == (200, b"page", True, None)
    assert answer.headers[b"content-length"] == b"4"
    assert len(answer.headers[b"edge-ray"]) == 16
    assert bench.counted == [200]


def test_what_is_offered_and_no_more(client):
    assert client.settings[3] == wire.STREAMS_MAX
    assert client.settings[8] == 1, "WebSocket (RFC 8441)"
    assert client.settings[9] == 1, "no priorities of RFC 7540"


def test_trailers_before_the_end_of_a_length_are_no_end(bench, client):
    """Else its origin would take the next request for the rest of this one."""
    number = client.ask(fields(b"POST", b"/", (b"content-length", b"200")), b"abc", ends=False)
    client.h2.send_headers(number, [(b"x-trailer", b"1")], end_stream=True)
    client.talk()
    assert client.answers[number].reset == PROTOCOL_ERROR
    assert bench.server.state == "aborted"


def test_a_length_without_a_body_is_refused(client):
    assert client.answers[client.ask(fields(b"POST", b"/", (b"content-length", b"5")))].status == 400


def test_a_body_passes_with_its_length_or_in_chunks(bench, client):
    client.ask(fields(b"POST", b"/", (b"content-length", b"5")), b"hello")
    assert bench.server.written.endswith(b"content-length: 5\r\n\r\nhello")
    from_origin(client, HEAD_200 + b"page")
    bench.server.written = b""
    number = client.ask(fields(b"POST", b"/"), b"hel", ends=False)
    client.send(number, b"lo", ends=True)
    assert bench.server.written.endswith(
        b"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    )


@pytest.mark.parametrize("length", [b"3", b"6"])
def test_a_length_that_is_not_the_bodys_ends_the_stream(bench, client, length):
    number = client.ask(fields(b"POST", b"/", (b"content-length", length)), b"hello")
    assert client.answers[number].reset == PROTOCOL_ERROR
    assert b"hell" not in bench.server.written or bench.server.state == "aborted"
    assert client.transport.state == "open"


def test_trailers_end_a_body_and_go_no_further(bench, client):
    number = client.ask(fields(b"POST", b"/"), b"hello", ends=False)
    client.h2.send_headers(number, [(b"x-trailer", b"1")], end_stream=True)
    client.talk()
    assert bench.server.written.endswith(b"5\r\nhello\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "trailer",
    [(b":path", b"/"), (b"transfer-encoding", b"chunked"), (b"x", b"y\r\nz"), (b"X", b"y"), (b"a b", b"c")],
)
def test_trailers_that_are_none_end_the_stream(bench, client, trailer):
    number = client.ask(fields(b"POST", b"/"), b"hello", ends=False)
    client.h2.send_headers(number, [trailer], end_stream=True)
    client.talk()
    assert client.answers[number].reset == PROTOCOL_ERROR
    assert bench.server.state == "aborted"


def test_what_is_malformed_is_answered_and_the_connection_goes_on(bench, client):
    number = client.ask(fields(b"GET", b"/", (b"x", b"a\r\nb")))
    answer = client.answers[number]
    assert (answer.status, answer.ended) == (400, True)
    assert b"was refused" in answer.body
    client.ask()
    from_origin(client, HEAD_200 + b"page")
    assert bench.counted == [400, 200]


def test_a_host_of_a_zone_without_http_2_is_misdirected():
    client = Http2Client(http2_bench(http2="off"))
    assert client.answers[client.ask()].status == 421


def test_a_host_that_is_nobodys_is_no_page(client):
    assert client.answers[client.ask(fields(authority=b"elsewhere.example"))].status == 530


def test_heads_of_answers_without_a_body_end_their_stream(bench, client):
    number = client.ask(fields(b"HEAD"))
    from_origin(client, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n")
    assert client.answers[number].ended
    bench.keep_origin()
    number = client.ask()
    from_origin(client, b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    assert client.answers[number].headers.keys() == {b":status", b"date", b"edge-ray"}
    assert client.answers[number].ended


def test_interim_answers_come_before_the_answer(bench, client):
    number = client.ask()
    from_origin(client, b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n" + HEAD_200 + b"page")
    answer = client.answers[number]
    assert answer.interim == [{b":status": b"103", b"link": b"</a.css>"}]
    assert answer.body == b"page"


def test_a_client_that_awaits_100_is_told_to_go_on(client):
    said = fields(b"PUT", b"/", (b"expect", b"100-continue"), (b"content-length", b"5"))
    number = client.ask(said, ends=False)
    assert client.answers[number].interim == [{b":status": b"100"}]


# windows


def test_an_origin_waits_for_a_client_whose_window_is_closed(bench):
    client = Http2Client(bench, window=1_000)
    number = client.ask()
    body = bytes(range(256)) * 1_024
    from_origin(client, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body[:100_000])

    assert len(client.answers[number].body) == 1_000
    assert bench.server.is_paused
    client.give(100_000, number)
    assert not bench.server.is_paused
    from_origin(client, body[100_000:])
    client.give(1 << 20, number)
    assert client.answers[number].body == body
    assert client.answers[number].ended


def test_a_body_gets_its_window_back_as_its_origin_takes_it(bench, client):
    number = client.ask(fields(b"PUT", b"/"), ends=False)
    bench.origin.pause_writing()
    while client.h2.local_flow_control_window(number):
        client.send(number, b"x" * min(16_000, client.h2.local_flow_control_window(number)))
    assert len(bench.server.written) > 100_000, "what was in the window is on its way"
    bench.origin.resume_writing()
    client.listen()
    assert client.h2.local_flow_control_window(number) > 0


def test_a_whole_body_that_was_held_gives_its_window_back_when_there_is_an_origin(bench, client):
    """Else the connection's window is gone with eight of them, until the first one is answered."""
    client.ask()  # which takes the only origin
    exchanges = []
    bench.edge.pool.seek = lambda aim, exchange, is_again: exchanges.append(exchange)
    for _ in range(5):
        number = client.ask(fields(b"PUT", b"/"), ends=False)
        while window := client.h2.local_flow_control_window(number):
            client.send(number, b"x" * min(16_000, window))
        client.send(number, b"", ends=True)
    assert client.h2.outbound_flow_control_window < wire.CONNECTION_WINDOW // 2
    for exchange in exchanges:
        bench.keep_origin()
        exchange.connected(bench.origin)
    client.listen()

    assert client.h2.outbound_flow_control_window > wire.CONNECTION_WINDOW // 2


def test_one_closed_window_keeps_no_other_stream_waiting(bench):
    client = Http2Client(bench, window=1_000)
    slow, origin = client.ask(), bench.origin
    origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n" + b"s" * 90_000)
    bench.keep_origin()
    quick = client.ask()
    from_origin(client, HEAD_200 + b"page")
    assert client.answers[quick].ended
    assert not client.answers[slow].ended


def test_the_most_urgent_answer_goes_first_and_images_take_turns(bench):
    client = Http2Client(bench, window=0)
    asked = []
    for value in (b"u=5", b"u=1", b"i", b"i"):
        asked.append(client.ask(fields(b"GET", b"/", (b"priority", value))))
        bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 50000\r\n\r\n" + b"x" * 50_000)
        bench.keep_origin()
    client.h2.update_settings({4: 1 << 20})
    client.h2.increment_flow_control_window(1 << 20)
    client.talk()

    later, first, image, other = asked
    order = list(dict.fromkeys(client.arrived))
    assert order == [first, image, other, later]
    images = [number for number in client.arrived if number in (image, other)]
    assert images[:4] == [image, other, image, other]


# ends


def test_who_takes_a_request_back_is_not_served_on(bench, client):
    number = client.ask()
    client.reset(number)
    assert bench.server.state == "aborted"
    assert client.edge._streams == {}


def test_an_answer_that_breaks_off_is_reset_not_ended(bench, client):
    number = client.ask()
    from_origin(client, b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")
    bench.origin.connection_lost(None)
    client.listen()
    answer = client.answers[number]
    assert (answer.body, answer.ended, answer.reset) == (b"part", False, INTERNAL_ERROR)
    assert client.transport.state == "open"


def test_an_early_answer_ends_the_stream_and_the_rest_of_the_body_is_not_wanted(bench, client):
    number = client.ask(fields(b"PUT", b"/"), b"hello", ends=False)
    from_origin(client, HEAD_200 + b"page")
    answer = client.answers[number]
    assert (answer.status, answer.body, answer.ended, answer.reset) == (200, b"page", True, NO_ERROR)


def test_a_lost_connection_leaves_nothing_behind(bench, client):
    number = client.ask()
    machine = client.edge._streams[number].machine
    client.edge.connection_lost(None)
    assert machine.state is State.CUT
    assert bench.server.state == "aborted"
    assert bench.edge.connections == 1  # the bench's own
    assert bench.edge.accounts.memory.held["192.0.2.9"] == 16_384


def test_a_server_that_ends_answers_what_was_asked_for_and_takes_nothing_more(bench, client):
    number = client.ask()
    client.edge.finish()
    late = client.h2.get_next_available_stream_id()
    client.h2.send_headers(late, fields(), end_stream=True)
    client.edge.data_received(client.h2.data_to_send())
    bench.origin.data_received(HEAD_200 + b"page")
    written = client.transport.written

    assert client.transport.state == "closed"
    frames = list(frames_of(written))
    assert [(kind, stream) for kind, stream, _ in frames if kind in (0, 3, 7)] == [
        (7, 0),
        (3, late),
        (0, number),
    ]
    assert frames[[kind for kind, _, _ in frames].index(3)][2] == REFUSED_STREAM.to_bytes(4, "big")


def frames_of(data):
    """(type, stream, payload) of each."""
    while data:
        length = int.from_bytes(data[:3], "big")
        yield data[3], int.from_bytes(data[5:9], "big"), data[9 : 9 + length]
        data = data[9 + length :]


def test_a_connection_ends_in_order_after_many_requests(bench, client, monkeypatch):
    monkeypatch.setattr(http2, "REQUESTS_MAX", 2)
    client.ask()
    from_origin(client, HEAD_200 + b"page")
    client.h2.send_headers(3, fields(), end_stream=True)
    client.edge.data_received(client.h2.data_to_send())
    bench.origin.data_received(HEAD_200 + b"page")
    said = [(kind, stream) for kind, stream, _ in frames_of(client.transport.written)]
    assert said == [(7, 0), (1, 3), (0, 3)]
    assert client.transport.state == "closed"


@pytest.mark.parametrize(("seconds", "state"), [(9, "open"), (12, "closed")])
def test_a_connection_has_ten_seconds_to_say_who_it_is(bench, seconds, state):
    silent = Http2Client.__new__(Http2Client)
    edge = http2.Http2Connection(
        bench.edge, "", port=443, hello=SimpleNamespace(server_name=HOST, message=b"")
    )
    silent.transport = type(bench.client)()
    edge.connection_made(silent.transport)
    bench.wait(seconds)
    assert silent.transport.state == state


def test_without_a_request_it_ends_in_order(bench, client):
    bench.wait(70)
    assert client.transport.state == "open"
    bench.wait(10)
    client.listen()
    assert (client.goaway, client.transport.state) == (NO_ERROR, "closed")


def test_a_client_that_takes_nothing_of_its_answer_loses_it(bench):
    client = Http2Client(bench, window=10)
    number = client.ask()
    from_origin(client, b"HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n" + b"s" * 90_000)
    for _ in range(7):
        bench.wait(10)
    client.listen()
    assert client.answers[number].reset == INTERNAL_ERROR


def test_a_client_that_asks_for_nothing_more_gets_what_it_asked_for(bench, client):
    number = client.ask()
    client.edge.data_received(GoAwayFrame(0, last_stream_id=0).serialize())
    from_origin(client, HEAD_200 + b"page")
    assert client.answers[number].body == b"page"
    assert client.transport.state == "closed"


def test_what_is_taken_back_while_the_server_ends_loses_no_other_answer(bench, client):
    number = client.ask()
    client.edge.finish()
    late = client.h2.get_next_available_stream_id()
    client.h2.send_headers(late, fields(), end_stream=True)
    client.h2.reset_stream(late)
    client.edge.data_received(client.h2.data_to_send())
    bench.origin.data_received(HEAD_200 + b"page")
    kinds = [(kind, stream) for kind, stream, _ in frames_of(client.transport.written)]
    assert (0, number) in kinds
    assert client.transport.state == "closed"


def test_a_connection_that_comes_while_the_server_ends_is_told(bench):
    bench.edge.is_ending = True
    client = Http2Client(bench)
    assert (client.goaway, client.transport.state) == (NO_ERROR, "closed")


def test_a_body_without_an_end_behind_its_answer_is_not_read_for_ever(bench):
    client = Http2Client(bench, window=1)
    number = client.ask(fields(b"PUT", b"/"), b"x", ends=False)
    from_origin(client, HEAD_200 + b"page")
    for _ in range(200):
        if client.answers[number].reset is None:
            client.send(number, b"x" * 16_000)
    assert client.answers[number].reset == INTERNAL_ERROR


def test_blanks_around_a_value_stay_with_the_origin(bench, client):
    number = client.ask()
    from_origin(
        client,
        b"HTTP/1.1 103 Early Hints\r\nlink: </a> \r\ncontent-length: 5\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-type:  text/html \t\r\ncontent-length: 4\r\n\r\npage",
    )
    answer = client.answers[number]
    assert answer.headers[b"content-type"] == b"text/html"
    assert answer.interim == [{b":status": b"103", b"link": b"</a>"}]


def test_what_is_put_off_is_read_when_its_turn_comes(bench, client):
    works = []
    bench.edge.processor = SimpleNamespace(
        must_wait=lambda octets: True, wait=lambda subject, work: works.append(work)
    )
    for number in range(40):
        client.ask(fields(b"GET", b"/", (b"x", b"%d" % number + b"y" * 3_000)))
    assert len(works) == 1
    assert client.transport.is_paused
    while works:
        works.pop()()
    assert len(client.edge._streams) == 40
    assert not client.transport.is_paused


# floods

PAYLOAD = b"\0" * 8
FLOODS = {
    "ping": lambda n: PingFrame(0, opaque_data=PAYLOAD),
    "settings": lambda n: SettingsFrame(0, settings={}),
    "windows": lambda n: WindowUpdateFrame(1, window_increment=1),
    "windows of all": lambda n: WindowUpdateFrame(0, window_increment=1),
    "priority": lambda n: PriorityFrame(1, depends_on=3),
    "empty data": lambda n: DataFrame(1, data=b""),
}


@pytest.mark.parametrize("name", FLOODS)
def test_frames_that_carry_nothing_end_the_connection(bench, client, name):
    client.ask(fields(b"PUT", b"/"), ends=False)
    frame = FLOODS[name](1).serialize()
    for _ in range(20):
        client.edge.data_received(frame * (table.HTTP2_FRAMES.limit // 20 - 1))
        if client.transport.state != "open":
            break
    assert client.transport.state == "open"
    client.edge.data_received(frame * 200)
    client.listen()
    assert client.goaway == CALM
    assert client.transport.state == "closed"
    assert bench.edge.ledger.refused(table.HTTP2_FRAMES) == 1


def test_a_window_that_is_opened_by_an_octet_each_time_is_a_flood(bench):
    """CVE-2019-9511."""
    client = Http2Client(bench, window=0)
    number = client.ask()
    from_origin(client, b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n" + b"x" * 9_000)
    for _ in range(table.HTTP2_FRAMES.limit + 1):
        client.edge.data_received(WindowUpdateFrame(number, window_increment=1).serialize())
    kind, _, said = list(frames_of(client.transport.written))[-1]
    assert (kind, said[4:8]) == (7, CALM.to_bytes(4, "big"))


def test_windows_for_what_was_sent_may_come_in_any_second_and_are_still_counted():
    """As Go's client gives them back: for each 4 KiB, when it has read them."""
    floods = Floods()
    for _ in range(1_000):
        floods.sent(16_384)
    floods.begin_second()

    assert all(floods.frame() is None for _ in range(4_000 + table.HTTP2_FRAMES.limit))
    assert any(floods.frame() for _ in range(1_001))


def test_each_second_has_its_own_frames(bench, client):
    for _ in range(5):
        client.edge.data_received(PingFrame(0, opaque_data=PAYLOAD).serialize() * 900)
        bench.wait(1)
    assert client.transport.state == "open"


def test_requests_that_are_taken_back_end_the_connection(bench, client):
    """CVE-2023-44487."""
    for _ in range(table.HTTP2_RESETS.limit + 1):
        number = client.h2.get_next_available_stream_id()
        client.h2.send_headers(number, fields(), end_stream=True)
        client.h2.reset_stream(number)
        if client.transport.state == "open":
            client.edge.data_received(client.h2.data_to_send())
    client.listen()
    assert client.goaway == CALM
    assert bench.edge.ledger.refused(table.HTTP2_RESETS) == 1


def test_more_streams_than_are_offered_are_refused_and_many_of_them_end_the_connection(client):
    for number in range(1, 2 * wire.STREAMS_MAX + 2, 2):
        client.edge.data_received(request_frame(client, number))
    assert client.transport.state == "open"
    said = list(frames_of(client.transport.written))
    assert said[-1] == (3, number, REFUSED_STREAM.to_bytes(4, "big"))
    for _ in range(table.HTTP2_RESETS.limit):
        client.edge.data_received(request_frame(client, number := number + 2))
    assert client.transport.state == "closed"


def request_frame(client, number):
    block = client.h2.encoder.encode(fields())
    return HeadersFrame(number, data=block, flags=["END_HEADERS", "END_STREAM"]).serialize()


def test_fields_longer_than_a_head_may_be_are_not_kept(bench, client):
    client.edge.data_received(HeadersFrame(1, data=b"\0" * 16_000).serialize())
    assert bench.edge.accounts.memory.held["192.0.2.9"] >= 16_384 + 16_000
    for _ in range(4):
        client.edge.data_received(ContinuationFrame(1, data=b"\0" * 16_000).serialize())
    assert client.transport.state == "closed"


@pytest.mark.parametrize("octets", [0, 100])
def test_a_head_without_an_end_ends_the_connection(client, octets):
    client.edge.data_received(HeadersFrame(1, data=b"").serialize())
    for _ in range(2_000):
        client.edge.data_received(ContinuationFrame(1, data=b"\0" * octets).serialize())
        if client.transport.state != "open":
            break
    assert client.transport.state == "closed"


def test_a_small_head_that_unpacks_to_a_large_one_ends_the_connection(client):
    block = client.h2.encoder.encode([*fields(), (b"x", b"y" * 4_000)])
    frame = HeadersFrame(1, data=block + b"\xbe" * 10_000, flags=["END_HEADERS", "END_STREAM"])
    client.edge.data_received(frame.serialize())
    assert client.transport.state == "closed"
    assert client.edge._state is Condition.CLOSED


@pytest.mark.parametrize("step", [1, 7, 5_000])
def test_a_frame_longer_than_was_offered_is_not_even_kept(bench, client, step):
    client.ask(fields(b"PUT", b"/"), b"x" * 16_384, ends=False)
    assert client.transport.state == "open"
    frame = DataFrame(1, data=b"x" * 16_385).serialize()[:5_000]
    for at in range(0, len(frame), step):
        if client.transport.state == "open":
            client.edge.data_received(frame[at : at + step])
    client.listen()
    assert client.goaway == FRAME_SIZE_ERROR
    assert client.edge._wire.held < 9 + 1


def test_bytes_that_are_no_http_2_end_the_connection(bench):
    client = Http2Client(bench)
    client.edge.data_received(b"\x00\x00\x00\x00")
    client.edge.data_received(b"\x00" * 5_000)
    assert client.transport.state == "closed"
    other = http2.Http2Connection(
        bench.edge, "", port=443, hello=SimpleNamespace(server_name=HOST, message=b"")
    )
    transport = type(client.transport)()
    other.connection_made(transport)
    other.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert transport.state == "closed"


# WebSocket


def handshake(path=b"/chat"):
    said = fields(b"CONNECT", path, (b"sec-websocket-version", b"13"), (b"sec-websocket-protocol", b"a"))
    return [said[0], (b":protocol", b"websocket"), *said[1:]]


def accepted(asked):
    key = next(line for line in asked.split(b"\r\n") if line.startswith(b"sec-websocket-key")).split()[1]
    accept = b64encode(sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Accept: %b\r\nSec-WebSocket-Protocol: a\r\n\r\n" % accept
    )


def test_a_websocket_goes_both_ways_within_a_stream(bench, client):
    number = client.ask(handshake(), ends=False)
    asked = bench.server.written
    assert asked.startswith(b"GET /chat HTTP/1.1\r\n")
    assert b"upgrade: websocket\r\n" in asked
    from_origin(client, accepted(asked) + b"first")
    answer = client.answers[number]
    assert answer.status == 200
    assert answer.headers.keys() == {b":status", b"sec-websocket-protocol", b"date", b"edge-ray"}
    bench.server.written = b""
    client.send(number, b"hello")
    assert bench.server.written == b"hello"
    assert answer.body == b"first"
    client.send(number, b"", ends=True)
    assert bench.server.state == "aborted"
    assert answer.ended


def test_an_origin_that_did_not_read_the_handshake_gets_no_websocket(bench, client):
    number = client.ask(handshake(), ends=False)
    from_origin(client, accepted(b"\r\nsec-websocket-key: x\r\n"))
    assert client.answers[number].reset == INTERNAL_ERROR
    assert bench.server.state == "aborted"


def test_an_origin_may_decline_a_websocket(bench, client):
    number = client.ask(handshake(), ends=False)
    from_origin(client, b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")
    assert (client.answers[number].status, client.answers[number].body) == (403, b"no")


def test_a_zone_without_websockets_takes_none():
    client = Http2Client(http2_bench(websockets="off"))
    assert client.answers[client.ask(handshake(), ends=False)].status == 501


def test_what_comes_before_the_origin_agreed_waits_for_that(bench, client):
    number = client.ask(handshake(), ends=False)
    asked = bench.server.written
    client.send(number, b"early")
    assert bench.server.written == asked
    bench.server.written = b""
    from_origin(client, accepted(asked))
    assert bench.server.written == b"early"
    client.send(number, b"late")
    assert bench.server.written == b"earlylate"


def test_what_came_for_a_websocket_that_is_declined_is_nobodys(bench, client):
    """Else it would be the next request on the connection to the origin, which is somebody else's."""
    number = client.ask(handshake(), ends=False)
    asked = bench.server.written
    client.send(number, b"GET /admin HTTP/1.1\r\nHost: internal\r\n\r\n")
    assert bench.server.written == asked
    from_origin(client, HEAD_200 + b"page")
    assert client.answers[number].body == b"page"
    bench.server.written = b""
    client.ask(fields(b"GET", b"/next"))
    assert bench.server.written.startswith(b"GET /next ")


def test_who_ends_before_the_origin_agreed_has_no_tunnel(bench, client):
    number = client.ask(handshake(), ends=False)
    asked = bench.server.written
    client.send(number, b"", ends=True)
    from_origin(client, accepted(asked))
    assert client.answers[number].ended
    assert bench.server.state == "aborted"


# memory


def test_heads_of_requests_are_drawn_as_they_were_unpacked(bench, client):
    before = bench.edge.accounts.memory.held["192.0.2.9"]
    client.ask(fields(b"GET", b"/", (b"cookie", b"a=" + b"x" * 40_000)))
    assert bench.edge.accounts.memory.held["192.0.2.9"] >= before + 40_000 - 16_384


def test_what_the_client_took_is_not_drawn_any_more(bench, client):
    client.transport.left = 300_000
    client.edge.pause_writing()
    assert bench.edge.accounts.memory.held["192.0.2.9"] > 300_000
    assert client.transport.is_paused
    client.transport.left = 0
    client.edge.resume_writing()
    assert bench.edge.accounts.memory.held["192.0.2.9"] < 60_000
    assert not client.transport.is_paused


def test_settings_that_nobody_knows_are_not_kept(bench, client):
    for number in range(200):
        client.edge.data_received(settings_of(range(0x1000 + 20 * number, 0x1000 + 20 * number + 20)))
    assert client.transport.state == "open"
    client.edge.data_received(settings_of(range(0x1000, 0x1030)))
    assert client.transport.state == "closed"


def settings_of(numbers):
    """By hand: hyperframe writes one octet of a number."""
    payload = b"".join(number.to_bytes(2, "big") + b"\0\0\0\1" for number in numbers)
    return len(payload).to_bytes(3, "big") + b"\4\0\0\0\0\0" + payload


def test_a_client_does_not_choose_how_much_is_remembered_of_answers(client):
    client.edge.data_received(SettingsFrame(0, settings={1: 1 << 31}).serialize())
    assert client.edge._wire.table_octets_max == 4_096


def test_what_an_address_holds_is_bounded_whatever_its_streams_do(bench):
    memory = bench.edge.accounts.memory
    greedy = []
    for number in range(1, 10):
        client = Http2Client(bench, peer=f"2001:db8::{number:x}", window=0)
        greedy.append(client)
        for _ in range(wire.STREAMS_MAX):
            bench.keep_origin()
            client.ask()
            bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 99000\r\n\r\n" + b"s" * 60_000)
            if client.transport.state != "open":
                break
        client.edge.data_received(PingFrame(0, opaque_data=PAYLOAD).serialize())
    assert memory.held["2001:db8::/64"] <= 32 << 20
    assert bench.edge.ledger.refused(table.HTTP_BYTES_ADDRESS) > 0
    for client in greedy:
        client.edge.connection_lost(None)
    assert "2001:db8::/64" not in memory.held
