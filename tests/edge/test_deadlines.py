"""Who is too slow is let go: on a clock that the test turns."""

import pytest

from edgestead.edge import limits
from edgestead.edge.exchanges import later
from edgestead.edge.exchanges import turns as inspection_turns
from edgestead.edge.http.client import ClientConnection
from edgestead.edge.http.ends import UNINSPECTED
from edgestead.http1 import limits as http1
from tests.edge.bench import GET, HEAD_200, POST, Bench, Transport
from tests.edge.made import rule


@pytest.fixture
def bench():
    return Bench()


INSPECTED = {"http_request_firewall_custom": [rule("block", 'http.request.body.raw contains "y"')]}
SLACK = 3  # a sweep's distance before and behind


def test_a_head_that_takes_too_long_is_refused(bench):
    bench.connection.data_received(GET[:20])
    bench.wait(http1.HEAD_SECONDS_MAX - SLACK)
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
    bench.wait(http1.IDLE_SECONDS_MAX - SLACK)
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


LONG = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 1000000\r\n\r\n"


@pytest.mark.parametrize("rules", [None, INSPECTED], ids=["passed on", "held"])
def test_a_body_that_drips_is_refused_and_its_origin_let_go(rules):
    bench = Bench(rules)
    bench.connection.data_received(LONG)
    waited = 0
    while bench.client.status is None and waited < 10 * limits.SLOW_BODY_SECONDS_MAX:
        bench.connection.data_received(b"x" * 10)
        bench.wait(5)
        waited += 5
    assert bench.client.status == 408
    assert 0 <= waited - limits.SLOW_BODY_SECONDS_MAX <= 5 + SLACK
    assert bench.server.state == "aborted"
    assert (bench.server.written == b"") == (rules is not None)


def test_a_body_that_comes_steadily_may_take_long(bench):
    bench.connection.data_received(LONG)
    for _ in range(5 * int(limits.SLOW_BODY_SECONDS_MAX)):
        bench.connection.data_received(b"x" * (limits.BODY_BYTES_PER_SECOND_MIN + 50))
        bench.wait(1)
    assert bench.client.status is None
    assert bench.client.state == bench.server.state == "open"


def test_who_waits_for_the_origin_is_not_slow(bench):
    bench.connection.data_received(LONG)
    for _ in range(20):
        bench.connection.data_received(b"x" * 100)
        bench.origin.pause_writing()
        bench.wait(limits.BODY_SECONDS_MAX / 2)
        bench.origin.resume_writing()
    assert bench.client.status is None
    bench.wait(limits.BODY_SECONDS_MAX + SLACK)
    assert bench.client.status == 408


def stuff(bench, left):
    """The origin has so much to take, and its connection takes no more."""
    bench.server.left = left
    bench.origin.pause_writing()


@pytest.mark.parametrize("rest", [b"", b"x" * 999_900], ids=["a part", "all of it"])
def test_an_origin_that_takes_nothing_of_a_body_is_named(bench, rest):
    bench.connection.data_received(LONG + b"x" * 100)
    stuff(bench, 300_000)
    if rest:
        bench.connection.data_received(rest)
    bench.wait(limits.BODY_SECONDS_MAX - SLACK)
    assert bench.client.status is None
    bench.wait(100)
    assert bench.client.status == 524
    assert b"stopped taking the request" in bench.client.written
    assert bench.server.state == "aborted"
    assert [decision.phase for decision in bench.decisions] == ["origin"]


def test_an_origin_that_takes_its_time_with_a_body_may(bench):
    bench.connection.data_received(LONG + b"x" * 100)
    stuff(bench, 300_000)
    for left in (290_000, 280_000, 270_000):
        bench.server.left = left
        bench.wait(limits.STALL_SECONDS_MAX + SLACK)
        assert bench.client.status is None
    bench.wait(limits.STALL_SECONDS_MAX + SLACK)
    assert bench.client.status == 524


def test_a_body_may_drip_while_its_answer_does(bench):
    bench.connection.data_received(LONG)
    bench.origin.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    for _ in range(20):
        bench.connection.data_received(b"x")
        bench.origin.data_received(b"y")
        bench.wait(10)
    assert bench.client.state == bench.server.state == "open"


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
    bench.wait(http1.IDLE_SECONDS_MAX + SLACK)
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
    bench.wait(http1.LINGER_SECONDS_MAX + SLACK)
    assert bench.client.state == "aborted"


def test_a_refused_client_that_sends_much_is_cut_off(bench):
    bench.connection.data_received(b"nonsense\r\n\r\n")
    for _ in range(1 + http1.LINGER_BYTES_MAX // 65_536):
        bench.connection.data_received(b"x" * 65_536)
    assert bench.client.state == "aborted"


def test_each_answer_is_counted_once(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(HEAD_200 + b"body")
    bench.connection.data_received(b"nonsense\r\n\r\n")
    assert bench.counted == [200, 400]


def test_connections_beyond_the_limit_are_closed(bench):
    bench.edge.accounts._by_address.total_limit = 1
    another = Transport()
    turned_away = []
    bench.edge.turned_away = lambda: turned_away.append(1)
    ClientConnection(bench.edge, port=80).connection_made(another)
    assert another.state == "aborted"
    assert turned_away == [1]


@pytest.mark.parametrize(
    ("second", "state"),
    [("2001:db8::2", "aborted"), ("2001:db8:0:1::1", "open"), ("::ffff:192.0.2.1", "open")],
)
def test_an_ipv6_network_is_one_address(bench, second, state):
    bench.edge.accounts._by_address.limit = 1
    first, another = Transport("2001:db8::1"), Transport(second)
    connection = ClientConnection(bench.edge, port=80)
    connection.connection_made(first)

    ClientConnection(bench.edge, port=80).connection_made(another)

    assert (first.state, another.state) == ("open", state)
    connection.connection_lost(None)
    again = Transport("2001:db8::3")
    ClientConnection(bench.edge, port=80).connection_made(again)
    assert again.state == "open"


class Waiting(Bench):
    """An edge whose only phase takes as long as the test lets it, and `step` of it when the test says so."""

    def __init__(self):
        super().__init__()
        self.soon = []
        self.clock.call_soon = lambda function, *arguments: self.soon.append((function, arguments))
        self.edge.turns._call_soon = self.clock.call_soon
        route = self.routes.find(b"www.example.com")
        route.pipeline._request = (lambda exchange: later.Later(self._steps()),)
        self.outcome = None
        self.steps = 0

    def _steps(self):
        while self.outcome is None:
            self.steps += 1
            yield
        return None

    def go_on(self):
        soon, self.soon = self.soon, []
        for function, arguments in soon:
            function(*arguments)


@pytest.fixture
def waiting(monkeypatch):
    monkeypatch.setattr(inspection_turns, "SLICE_SECONDS", 0)
    monkeypatch.setattr(inspection_turns, "TURN_SECONDS", 0)
    return Waiting()


def test_the_time_of_a_head_does_not_run_while_the_request_is_inspected(waiting):
    waiting.connection.data_received(GET)
    waiting.wait(http1.HEAD_SECONDS_MAX + SLACK)
    waiting.go_on()
    waiting.wait(limits.INSPECTION_SECONDS_MAX - http1.HEAD_SECONDS_MAX - 3 * SLACK)
    assert waiting.client.status is None

    waiting.keep_origin()
    waiting.outcome = "done"
    waiting.go_on()
    waiting.wait(2 * SLACK)
    assert waiting.client.status is None
    waiting.origin.data_received(HEAD_200 + b"body")
    assert waiting.client.status == 200


def test_an_inspection_that_does_not_get_its_turns_is_a_503_of_its_own(waiting):
    waiting.connection.data_received(GET)
    waiting.wait(limits.INSPECTION_SECONDS_MAX + SLACK)

    assert waiting.client.status == 503
    assert b"could not be checked in time" in waiting.client.written
    (decision,) = waiting.decisions
    assert (decision.phase, decision.action, decision.status) == ("http", "refuse", 503)
    assert decision.reason == UNINSPECTED
    waiting.go_on()
    assert waiting.steps == 1
    assert waiting.edge.turns.waiting == 0
    assert waiting.server.written == b""


def test_who_is_gone_is_inspected_no_further_and_nothing_is_held_of_it(waiting):
    waiting.connection.data_received(GET)
    waiting.go_on()
    assert waiting.steps == 2

    waiting.connection.connection_lost(None)

    assert waiting.edge.turns.waiting == 0
    waiting.go_on()
    assert waiting.steps == 2


def test_an_inspection_for_which_there_is_no_room_is_the_same_503(waiting, monkeypatch):
    monkeypatch.setattr(inspection_turns, "PER_ADDRESS_MAX", 1)
    waiting.connection.data_received(GET)
    other, client = ClientConnection(waiting.edge, port=80), Transport()
    other.connection_made(client)
    other.data_received(GET)

    assert waiting.client.status is None
    assert client.status == 503
    assert [decision.reason for decision in waiting.decisions] == [UNINSPECTED]
    assert waiting.steps == 1
