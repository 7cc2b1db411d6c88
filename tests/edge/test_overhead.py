"""What stands around the content of a chunked body is bounded, at both ends of the edge, and ends there."""

import pytest

from edgestead.edge import limits
from edgestead.edge.exchanges.answer_watch import HeldAnswer
from tests.edge.bench import GET, Bench
from tests.edge.made import rule
from tests.http1.floods import FAIR, FLOODS, flood, pieces

TAKEN_BYTES_MAX = 2 * limits.HEAD_BYTES_MAX
POST = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def bench():
    return Bench()


@pytest.mark.parametrize("name", FLOODS)
def test_a_request_that_floods_is_refused_and_its_origin_let_go(bench, name):
    bench.connection.data_received(POST)
    taken = flood(bench.connection.data_received, name, lambda: bench.client.status)

    assert taken <= TAKEN_BYTES_MAX
    assert bench.client.status in (400, 431)
    assert b"connection: close" in bench.client.written
    assert bench.server.state == "aborted"


@pytest.mark.parametrize("name", FLOODS)
def test_a_pipelined_request_that_floods_is_refused_when_its_turn_comes(bench, name):
    bench.connection.data_received(GET + POST)
    taken = flood(bench.connection.data_received, name, lambda: bench.connection._connection._fault)
    bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    assert taken <= TAKEN_BYTES_MAX
    assert [line for line in bench.client.written.split(b"\r\n") if line.startswith(b"HTTP/")][1][9:12] in (
        b"400",
        b"431",
    )


@pytest.mark.parametrize("name", FLOODS)
def test_an_answer_that_floods_breaks_off(bench, name):
    bench.connection.data_received(GET)
    bench.origin.data_received(ANSWER)
    taken = flood(bench.origin.data_received, name, lambda: bench.server.state != "open")

    assert taken <= TAKEN_BYTES_MAX
    assert bench.server.state == bench.client.state == "aborted"


@pytest.mark.parametrize("name", FAIR)
def test_a_fair_request_passes_without_its_trailers(bench, name):
    body, content = FAIR[name]
    for piece in pieces(POST + body):
        bench.connection.data_received(piece)

    assert bench.client.status is None
    assert bench.server.written.endswith(b"\r\n0\r\n\r\n")
    if content is not None:
        assert len(bench.server.written.partition(b"\r\n\r\n")[2]) >= len(content)


@pytest.mark.parametrize("name", FAIR)
def test_a_fair_answer_passes_without_its_trailers(bench, name):
    bench.connection.data_received(GET)
    for piece in pieces(ANSWER + FAIR[name][0]):
        bench.origin.data_received(piece)

    assert (bench.client.status, bench.client.state) == (200, "open")
    assert bench.client.written.endswith(b"\r\n0\r\n\r\n")
    assert b"a: " not in bench.client.written


def test_the_next_request_has_trailers_of_its_own(bench):
    trailers = b"a: b\r\n" * 100
    for _ in range(3):
        bench.connection.data_received(POST + b"0\r\n" + trailers + b"\r\n")
        bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    assert bench.client.written.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("count", [limits.HEADERS_MAX, limits.HEADERS_MAX + 1])
def test_there_may_be_as_many_trailers_as_headers(bench, count):
    bench.connection.data_received(POST + b"0\r\n" + b"a: b\r\n" * count + b"\r\n")

    assert bench.client.status == (None if count == limits.HEADERS_MAX else 431)


def test_a_body_that_is_held_in_tiny_chunks_takes_no_more_room_than_its_octets():
    bench = Bench({"http_request_firewall_custom": [rule("block", 'http.request.body.raw contains "z"')]})
    bench.connection.data_received(POST)
    for number in range(60):
        bench.connection.data_received(b"".join(b"2\r\n%02x\r\n" % number for _ in range(1_000)))
        assert len(bench.connection._connection.current._pieces) <= limits.CHUNKS_HELD_MAX
    bench.connection.data_received(b"0\r\n\r\n")

    body = b"".join(b"%02x" % number * 1_000 for number in range(60))
    assert bench.server.written.endswith(b"\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


def test_an_answer_that_is_held_in_tiny_chunks_takes_no_more_room_than_its_octets():
    held = HeldAnswer(200, [], None, False, 129 * 1024)
    for _ in range(60_000):
        held.add(b"ab")
        assert len(held.chunks) <= limits.CHUNKS_HELD_MAX

    assert held.body == b"ab" * 60_000
