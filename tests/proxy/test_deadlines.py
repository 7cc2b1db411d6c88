"""Who is too slow is let go: on a clock that the test turns."""

import pytest

from edgestead.model import edge as documents
from edgestead.model import names
from edgestead.model.call import Profile
from edgestead.proxy import limits
from edgestead.proxy.address import NAMES, Addresses, Trust
from edgestead.proxy.client import ClientConnection
from edgestead.proxy.edge import Edge
from edgestead.proxy.origin import OriginConnection
from edgestead.proxy.origins import Target
from edgestead.proxy.phase import local_tools
from edgestead.proxy.policy import Policy
from edgestead.proxy.pool import Pool
from edgestead.proxy.routing import Routes
from edgestead.store.changes import Change

ZONE = "5" * 32
TARGET = Target("192.0.2.1", 80)
GET = b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n"
HEAD_200 = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Clock:
    """As much of an event loop as deadlines need."""

    def __init__(self):
        self.now = 1_000.0

    def time(self):
        return self.now

    def call_later(self, seconds, function, *arguments):
        return None

    def call_soon(self, function, *arguments):
        function(*arguments)


class Transport:
    """Remembers what was written; `state` is open, closed or aborted."""

    def __init__(self, peer="192.0.2.9"):
        self.peer, self.written, self.state, self.is_paused = peer, b"", "open", False

    def get_extra_info(self, name, default=None):
        return (self.peer, 5) if name == "peername" else default

    def set_write_buffer_limits(self, octets):
        pass

    def write(self, data):
        self.written += data

    def can_write_eof(self):
        return False

    def is_closing(self):
        return self.state != "open"

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False

    def close(self):
        self.state = "closed"

    def abort(self):
        self.state = "aborted"

    @property
    def status(self):
        return int(self.written.split()[1]) if self.written else None


class Bench:
    """An edge with one proxied name, a client's connection, and a kept one to the origin."""

    def __init__(self):
        self.clock, tools = Clock(), local_tools()
        routes = Routes(tools)
        owner = names.wire_from_text("www.example.com")
        zone = documents.EdgeZone("example.com", "a" * 32, "free", False, {})
        name = documents.EdgeName(owner, (bytes((192, 0, 2, 1)),))
        routes.load(
            [
                Change(1, ZONE, documents.KIND_EDGE_ZONE, "", documents.encode(zone)),
                Change(2, ZONE, documents.KIND_EDGE_NAME, owner.hex(), documents.encode(name)),
            ]
        )
        routes.swap()
        pool = Pool(self.clock, Policy((), ()), None, None)
        trust, spelled = Trust(()), NAMES[Profile.SPEC]
        self.counted = []
        self.edge = Edge(
            self.clock,
            routes=routes,
            pool=pool,
            trust=trust,
            address=Addresses(trust, spelled, b"here"),
            names=spelled,
            tools=tools,
            count=self.counted.append,
        )
        self.connection, self.client = ClientConnection(self.edge, port=80), Transport()
        self.connection.connection_made(self.client)
        self.origin, self.server = OriginConnection(pool, TARGET), Transport("192.0.2.1")
        self.origin.connection_made(self.server)
        self.edge.sweep()
        pool.put(self.origin)

    def wait(self, seconds):
        self.clock.now += seconds
        self.edge.sweep()


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
    ClientConnection(bench.edge, port=80).connection_made(another)
    assert another.state == "aborted"
