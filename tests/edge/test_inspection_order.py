"""What is worked before whom, in rounds of a loop: every step of every inspection is recorded."""

from collections import deque

import pytest

from edgestead.edge.exchanges import later
from edgestead.edge.exchanges import turns as inspection_turns
from edgestead.edge.http.client import ClientConnection
from tests.edge.bench import GET, HEAD_200, Bench, Transport

HEAVY, LIGHT = 20, 3  # steps of an inspection, each as long as a slice
CONNECTIONS = 10


class Recorded(Bench):
    """An edge whose requests are inspected in so many steps as their path says: `/NAME/STEPS`.

    `worked` are the names, a step each, in order. Time goes on by a second with each step and not else:
    whoever is served next depends on it, and a busy machine may stop us within any step.
    """

    def __init__(self):
        super().__init__()
        self.worked, self.soon = [], deque()
        self.edge.turns._clock = self.seconds
        self.clock.call_soon = lambda function, *arguments: self.soon.append((function, arguments))
        self.edge.turns._call_soon = self.clock.call_soon
        self.routes.find(b"www.example.com").pipeline._request = (self._inspect,)

    def seconds(self):
        return float(len(self.worked))

    def _inspect(self, exchange):
        _, name, steps = exchange.target.decode().split("/")
        return later.Later(self._steps(name, int(steps)))

    def _steps(self, name, steps):
        for step in range(steps):
            self.worked.append(name)
            if step + 1 < steps:
                yield
        return None

    def round(self):
        """What was asked for before it begins."""
        for _ in range(len(self.soon)):
            function, arguments = self.soon.popleft()
            function(*arguments)

    def connect(self, address):
        client, connection = Transport(address), ClientConnection(self.edge, port=80)
        connection.connection_made(client)
        return connection, client

    def ask(self, connection, name, steps):
        connection.data_received(GET.replace(b" / ", b" /%b/%d " % (name.encode(), steps)))


@pytest.fixture
def edge(monkeypatch):
    monkeypatch.setattr(inspection_turns, "SLICE_SECONDS", 0)
    monkeypatch.setattr(inspection_turns, "TURN_SECONDS", 0)
    recorded = Recorded()
    monkeypatch.setattr(later, "perf_counter", recorded.seconds)
    return recorded


def test_of_many_connections_that_begin_together_one_is_worked_on_at_once(edge):
    for number in range(CONNECTIONS):
        edge.ask(edge.connect("192.0.2.1")[0], f"heavy{number}", HEAVY)

    assert edge.worked == ["heavy0"]


def test_a_request_of_another_address_waits_for_as_many_steps_as_it_takes_itself(edge):
    for number in range(CONNECTIONS):
        edge.ask(edge.connect("192.0.2.1")[0], f"heavy{number}", HEAVY)
    edge.round()
    before = len(edge.worked)

    connection, client = edge.connect("192.0.2.2")
    edge.ask(connection, "light", LIGHT)
    rounds = 0
    while edge.server.written == b"":
        edge.round()
        rounds += 1
    edge.origin.data_received(HEAD_200 + b"body")

    assert client.status == 200
    worked = edge.worked[before:]
    assert worked.count("light") == LIGHT
    assert len(worked) <= 2 * LIGHT + 1
    assert rounds <= 2 * LIGHT + 1


def test_a_request_that_needs_one_step_waits_for_nobodys(edge):
    for number in range(CONNECTIONS):
        edge.ask(edge.connect("192.0.2.1")[0], f"heavy{number}", HEAVY)
    edge.round()
    before = len(edge.worked)

    edge.ask(edge.connect("192.0.2.2")[0], "light", 1)

    assert edge.worked[before:] == ["light"]
    assert edge.server.written != b""


def test_connections_that_end_and_begin_anew_earn_no_slices(edge):
    """Who breaks off each time after the slice that is worked at once."""
    edge.ask(edge.connect("192.0.2.1")[0], "first", HEAVY)
    for number in range(50):
        connection, _ = edge.connect("192.0.2.1")
        edge.ask(connection, f"again{number}", HEAVY)
        connection.connection_lost(None)

    assert edge.worked == ["first"]
    assert edge.edge.turns.waiting == 1
