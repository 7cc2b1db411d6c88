"""Who is too slow is let go: on a clock that the test turns."""

import pytest

from edgestead.proxy import limits
from edgestead.proxy.client import ClientConnection
from tests.proxy.bench import GET, HEAD_200, POST, Bench, Transport


@pytest.fixture
def bench():
    return Bench()


SLACK = 3  # a sweep's distance before and behind


def test_a_head_that_takes_too_long_is_refused(bench):
    bench.connection.data_received(GET[:20])
    bench.wait(limits.HEAD_SECONDS_MAX - SLACK)
    assert bench.client.status is None
    bench.wait(2 * SLACK)
    assert bench.client.status == 408


def test_a_head_does_not_gain_time_by_every_byte(bench):
    for octet in GET[:12]:
        bench.connection.data_received(bytes((octet,)))
        bench.wait(1)
    bench.wait(SLACK)
    assert bench.client.status == 408


def test_a_connection_at_rest_is_closed(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(HEAD_200 + b"body")
    bench.wait(limits.IDLE_SECONDS_MAX - SLACK)
    assert bench.client.state == "open"
    bench.wait(2 * SLACK)
    assert bench.client.state == "closed"


def test_a_body_that_stops_is_refused_and_its_origin_let_go(bench):
    bench.connection.data_received(POST + b"he")
    bench.wait(limits.BODY_SECONDS_MAX - SLACK)
    bench.connection.data_received(b"l")
    bench.wait(limits.BODY_SECONDS_MAX - SLACK)
    assert bench.client.status is None
    bench.wait(2 * SLACK)
    assert bench.client.status == 408
    assert bench.server.state == "aborted"


def test_an_origin_that_says_nothing_is_a_524(bench):
    bench.connection.data_received(GET)
    bench.wait(100 - SLACK)
    assert bench.client.status is None
    bench.wait(2 * SLACK)
    assert bench.client.status == 524
    assert bench.server.state == "aborted"


def test_an_answer_that_stops_breaks_off(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(HEAD_200 + b"bo")
    bench.wait(limits.ORIGIN_BODY_SECONDS_MAX - SLACK)
    assert bench.client.state == "open"
    bench.wait(2 * SLACK)
    assert bench.client.state == bench.server.state == "aborted"


def test_a_client_that_takes_nothing_is_let_go(bench):
    bench.connection.data_received(GET)
    bench.connection.pause_writing()
    bench.origin.data_received(HEAD_200 + b"bo")
    assert bench.server.is_paused
    bench.wait(limits.STALL_SECONDS_MAX - SLACK)
    assert bench.client.state == "open"
    bench.wait(2 * SLACK)
    assert bench.client.state == bench.server.state == "aborted"


def test_a_client_that_goes_on_taking_is_not(bench):
    bench.connection.data_received(GET)
    bench.connection.pause_writing()
    bench.origin.data_received(HEAD_200 + b"bo")
    bench.connection.resume_writing()
    assert not bench.server.is_paused
    bench.wait(limits.STALL_SECONDS_MAX + SLACK)
    assert bench.client.state == "open"


def test_a_client_that_takes_a_little_is_not_either(bench):
    bench.connection.data_received(GET)
    bench.client.left = 300_000
    bench.connection.pause_writing()
    bench.origin.data_received(HEAD_200 + b"bo")
    for left in (200_000, 100_000):
        bench.client.left = left
        bench.wait(limits.STALL_SECONDS_MAX + SLACK)
        assert bench.client.state == "open"
    bench.wait(limits.STALL_SECONDS_MAX + SLACK)
    assert bench.client.state == bench.server.state == "aborted"


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
def test_what_is_left_of_an_answer_is_not_waited_for_without_end(bench, last):
    bench.connection.data_received(GET[:-2] + last + b"\r\n")
    bench.client.left = 2_000
    bench.origin.data_received(HEAD_200 + b"body")
    assert bench.client.state == ("closed" if last else "open")
    bench.client.left = 1_000
    bench.wait(limits.IDLE_SECONDS_MAX + SLACK)
    assert bench.client.state == ("closed" if last else "open")  # it takes its time, but it takes some
    bench.wait(limits.STALL_SECONDS_MAX + SLACK)
    assert bench.client.state == "aborted"


def test_a_tunnel_that_was_stuffed_is_not_cut_sooner_than_others(bench):
    bench.routes.find(b"www.example.com").takes_websockets = True
    bench.connection.data_received(GET[:-2] + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    bench.origin.data_received(b"HTTP/1.1 101 Hi\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert bench.client.status == 101
    bench.connection.pause_writing()
    bench.connection.resume_writing()
    bench.wait(limits.TUNNEL_SECONDS_MAX - SLACK)
    assert bench.client.state == "open"
    bench.wait(2 * SLACK)
    assert bench.client.state == "aborted"


def test_a_kept_connection_is_closed_before_its_origin_would(bench):
    bench.wait(limits.IDLE_ORIGIN_SECONDS_MAX - SLACK / 2)
    assert bench.server.state == "open"
    bench.wait(SLACK)
    assert bench.server.state == "aborted"


def test_a_refused_client_is_read_for_a_while_and_no_longer(bench):
    bench.connection.data_received(b"nonsense\r\n\r\n")
    assert bench.client.status == 400
    bench.connection.data_received(b"x" * 1_000)
    assert bench.client.state == "open"
    bench.wait(limits.LINGER_SECONDS_MAX + SLACK)
    assert bench.client.state == "aborted"


def test_a_refused_client_that_sends_much_is_cut_off(bench):
    bench.connection.data_received(b"nonsense\r\n\r\n")
    for _ in range(1 + limits.LINGER_BYTES_MAX // 65_536):
        bench.connection.data_received(b"x" * 65_536)
    assert bench.client.state == "aborted"


def test_each_answer_is_counted_once(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(HEAD_200 + b"body")
    bench.connection.data_received(b"nonsense\r\n\r\n")
    assert bench.counted == [200, 400]


def test_connections_beyond_the_limit_are_closed(bench, monkeypatch):
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 1)
    another = Transport()
    turned_away = []
    bench.edge.turned_away = lambda: turned_away.append(1)
    ClientConnection(bench.edge, port=80).connection_made(another)
    assert another.state == "aborted"
    assert turned_away == [1]
