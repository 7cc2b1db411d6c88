"""What one exchange asks of its connections, seen through them: no sockets, a clock to turn."""

import pytest

from edgestead.edge import limits
from edgestead.edge.exchanges.faults import BROKE_OFF
from tests.edge.bench import GET, HEAD_200, Bench, Transport

PUT = b"PUT / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n"
CHUNKS = b"transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
UPGRADE = GET[:-2] + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n"


class Stuffed(Transport):
    """Says from within a write that its buffer is full, as the loop's transports do."""

    def __init__(self, connection):
        super().__init__()
        self.connection = connection

    def write(self, data):
        super().write(data)
        self.connection.pause_writing()


class Seeking(Bench):
    """Counts how often a connection to the origin was asked for."""

    def __init__(self):
        super().__init__()
        self.sought = 0
        self.edge.pool.seek = self.seek

    def seek(self, aim, exchange, *, is_again):
        self.sought += 1
        self.is_again = is_again


@pytest.mark.parametrize(("pieces", "again"), [([PUT + b"hello"], 1), ([PUT + b"he", b"llo"], 0)])
def test_a_request_is_sent_again_only_if_all_of_its_body_is_still_here(pieces, again):
    bench = Seeking()
    bench.origin.reused = True
    for piece in pieces:
        bench.connection.data_received(piece)
    assert bench.server.written.endswith(b"hello")

    bench.origin.connection_lost(None)

    assert bench.sought == again
    assert not again or bench.is_again
    assert bench.client.status == (None if again else BROKE_OFF.status)


def test_an_origin_that_was_paused_for_a_slow_client_is_read_for_the_next_request():
    bench = Bench()
    slow = bench.connection._transport = Stuffed(bench.connection)
    bench.connection.data_received(GET)

    bench.origin.data_received(HEAD_200 + b"body")

    assert slow.status == 200
    assert bench.edge.pool.idle == [bench.origin]
    assert not bench.server.is_paused


@pytest.mark.parametrize(("octets", "status"), [(5, None), (6, 413)])
@pytest.mark.parametrize("request_", [PUT, CHUNKED])
def test_a_body_may_be_as_large_as_its_zone_takes(request_, octets, status):
    bench = Bench()
    bench.routes.find(b"www.example.com").body_bytes_max = 5
    body = b"x" * octets
    if request_ is PUT:
        said = PUT.replace(b": 5", b": %d" % octets) + body
    else:
        said = CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (octets, body)

    bench.connection.data_received(said)

    assert bench.client.status == status
    assert (body in bench.server.written) == (status is None)


def test_phases_that_want_to_see_a_body_see_exactly_that_much_of_it():
    bench = Bench()
    pipeline = bench.routes.find(b"www.example.com").pipeline
    pipeline.body_octets, seen = 4, []
    pipeline._request = (lambda exchange: seen.append(exchange.body),)

    bench.connection.data_received(PUT + b"hel")
    assert seen == []
    bench.connection.data_received(b"l")

    assert seen == [b"hell"]


def test_what_came_quickly_of_a_body_is_no_time_for_the_rest():
    bench = Bench()
    bench.connection.data_received(PUT.replace(b": 5", b": 90000") + b"x" * 50_000)
    while bench.client.status is None and bench.clock.now < 1_200:
        bench.wait(limits.BODY_SECONDS_MAX - 10)
        bench.connection.data_received(b"x")

    assert bench.client.status == 408


@pytest.mark.parametrize(
    ("version", "answer", "said", "body", "state"),
    [
        (b"1.1", b"content-length: 4\r\n\r\nbody", b"", b"body", "open"),
        (b"1.1", CHUNKS, b"transfer-encoding: chunked\r\n", b"4\r\nbody\r\n0\r\n\r\n", "open"),
        (b"1.0", b"content-length: 4\r\n\r\nbody", b"connection: keep-alive\r\n", b"body", "open"),
        (b"1.0", CHUNKS, b"connection: close\r\n", b"body", "closed"),
    ],
    ids=["length", "chunks", "old, length", "old, chunks"],
)
def test_an_answer_is_framed_as_its_client_reads_it(version, answer, said, body, state):
    bench = Bench()
    request = GET.replace(b"HTTP/1.1\r\n", b"HTTP/%b\r\nConnection: keep-alive\r\n" % version)
    bench.connection.data_received(request)

    bench.origin.data_received(b"HTTP/1.1 200 OK\r\n" + answer)

    head, _, sent = bench.client.written.partition(b"\r\n\r\n")
    framing = [line for line in head.split(b"\r\n") if line.startswith((b"connection", b"transfer"))]
    assert b"".join(line + b"\r\n" for line in framing) == said
    assert (sent, bench.client.state) == (body, state)


def test_behind_a_body_that_is_not_all_here_no_other_request_is_read():
    bench = Bench()
    bench.connection.data_received(PUT + b"he")

    bench.origin.data_received(HEAD_200 + b"body")

    assert b"\r\nconnection: close\r\n" in bench.client.written
    assert bench.edge.pool.idle == []


@pytest.mark.parametrize("allowed", [True, False])
def test_an_upgrade_is_asked_for_where_the_zone_allows_it(allowed):
    bench = Bench()
    bench.routes.find(b"www.example.com").takes_websockets = allowed

    bench.connection.data_received(UPGRADE)

    assert (b"upgrade: websocket\r\n" in bench.server.written) == allowed


def test_a_switch_of_protocols_behind_a_complete_answer_is_nobodys():
    bench = Bench()
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(UPGRADE)

    bench.origin.data_received(HEAD_200 + b"body" + SWITCHED + b"raw")

    assert bench.client.written.endswith(b"\r\n\r\nbody")
    assert bench.client.written.count(b"HTTP/1.1 ") == 1
    assert bench.server.state == "aborted"


def test_a_tunnel_whose_origin_is_gone_waits_for_its_client_to_take_the_rest_and_not_for_ever():
    bench = Bench()
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(UPGRADE)
    bench.origin.data_received(SWITCHED + b"rest")
    assert bench.client.written.endswith(b"rest")
    assert b"connection: close" not in bench.client.written
    bench.client.left = 4

    bench.origin.connection_lost(None)
    assert bench.client.state == "closed"
    bench.wait(limits.STALL_SECONDS_MAX + 2 * limits.SWEEP_SECONDS)

    assert bench.client.state == "aborted"


def test_a_body_that_is_too_large_and_broken_in_one_read_is_refused_once():
    bench = Bench()
    bench.routes.find(b"www.example.com").body_bytes_max = 4

    bench.connection.data_received(CHUNKED + b"5\r\nhello\r\nnonsense")

    assert bench.client.written.count(b"HTTP/1.1 ") == 1
    assert bench.client.status == 400
