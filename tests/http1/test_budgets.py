"""What one client can make a server hold: input without an end, on as many connections as it may have.

Each row is what a client sends on each of its connections until it is refused; the connections are without
sockets. Nothing is asserted of time.
"""

import asyncio
import gc
import tracemalloc

import pytest

from edgestead.http1 import limits
from edgestead.http1.answering import Answering
from edgestead.http1.connection import Action, State
from edgestead.http1.connections import LEAST_BYTES, Account, Connections
from edgestead.http1.messages import BodyBroken, Response
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger

MEMORY_BYTES_MAX = 32 << 20
FED_BYTES_MAX = 8 << 20  # of one connection: what was not stopped by then goes on for ever
OBJECTS_MAX = 60  # of a connection's requests: a request is ten to fifteen
CONNECTIONS = 600  # at a time, of which a few hundred are refused
ADDRESS = "192.0.2.7"
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LENGTH = HEAD + b"Content-Length: 1000000000000\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

# name: (once, then again and again, the budgets that may stop it)
HEADS = {"http_head_bytes", "http_headers"}
BODIES = {"http_overhead", "http_headers"}
ENDLESS = {
    "a method": (b"", b"G" * 4_096, set()),
    "a target": (b"GET /", b"x" * 4_096, HEADS),
    "a header's name": (b"GET / HTTP/1.1\r\n", b"x" * 4_096, HEADS),
    "a header's value": (b"GET / HTTP/1.1\r\nx: ", b"y" * 4_096, HEADS),
    "headers": (b"GET / HTTP/1.1\r\n", b"x: y\r\n" * 600, HEADS),
    "empty headers": (b"GET / HTTP/1.1\r\n", b"x:\r\n" * 1_000, HEADS),
    "lines before a request": (b"", b"\r\n" * 2_048, HEADS),
    "a chunk's size": (CHUNKED, b"0" * 4_096, BODIES),
    "a chunk's extension": (CHUNKED + b"5;", b"x" * 4_096, BODIES),
    "extensions": (CHUNKED, (b"1;" + b"e" * 1_000 + b"\r\nx\r\n") * 4, BODIES),
    "trailers": (CHUNKED + b"0\r\n", b"a:b\r\n" * 800, BODIES),
    "a trailer's name": (CHUNKED + b"0\r\n", b"x" * 4_096, BODIES),
    "a trailer's value": (CHUNKED + b"0\r\na: ", b"x" * 4_096, BODIES),
}
# What is legal, and has no end: reading pauses, and one client's connections together have their budget.
HELD = {
    "a body that nobody reads": (LENGTH, b"x" * 16_384),
    "a body in chunks of an octet": (CHUNKED, b"1\r\nx\r\n" * 2_700),
    "requests behind one another": (GET, GET * 3_000),
    "requests with bodies": (GET, HEAD + b"Content-Length: 60000\r\n\r\n" + b"x" * 60_000),
    "half a head": (b"GET / HTTP/1.1\r\nx: " + b"y" * 60_000, b""),
}


class Client:
    """One connection of a client, as its server sees it: `is_reading` as the driver would."""

    def __init__(self, connections):
        entered = connections.enter(ADDRESS)
        assert isinstance(entered, Account)
        self._connections, self._account = connections, entered
        self.refusals = []
        self.connection = Answering(self._refuse, ADDRESS, account=entered)
        self.is_reading, self.requests = True, []

    def _refuse(self, status, reason, client):
        self.refusals.append(status)
        return Response(status)

    def send(self, data):
        request = self.connection.receive(data)
        if request is not None:
            self.requests.append(request)
        self.act()

    def act(self):
        while self.connection.actions:
            actions, self.connection.actions = self.connection.actions, []
            for action, value in actions:
                if action in (Action.PAUSE, Action.RESUME):
                    self.is_reading = action is Action.RESUME
                elif action is Action.SERVE:
                    self.requests.append(value)
                elif action is Action.READ_SOON:
                    self.connection.read_on()
        if self.is_over:
            self.requests.clear()

    @property
    def is_over(self):
        return self.connection.state in (State.LINGERING, State.CLOSED)

    def leave(self):
        self._connections.leave(self._account)
        self.connection.lost()


@pytest.fixture
def ledger():
    return Ledger(tell=lambda *_: None)


@pytest.fixture
def connections(ledger):
    return Connections(ledger=ledger)


@pytest.mark.parametrize("name", ENDLESS)
def test_what_has_no_end_is_refused_by_name(ledger, connections, name):
    first, again, budgets = ENDLESS[name]
    client = Client(connections)
    client.send(first)
    fed = 0
    while not client.is_over and fed < FED_BYTES_MAX:
        client.send(again)
        fed += len(again)

    assert client.is_over
    assert fed <= 3 * limits.HEAD_BYTES_MAX
    spent = {budget.name for budget in table.BUDGETS if ledger.refused(budget)}
    assert spent <= budgets
    assert bool(spent) is bool(budgets)
    assert client.refusals == [431 if budgets else 400]
    client.leave()
    assert (connections.memory.total, connections.memory.held) == (0, {})


@pytest.mark.parametrize("piece", [GET, GET * 70, GET * 3_000], ids=["one", "2 KiB", "84 KB"])
def test_requests_behind_one_another_are_bytes_until_it_is_their_turn(connections, piece):
    """Objects of requests that nobody serves yet are a pause for everybody: collections look at all."""
    one = Client(connections)
    one.send(GET)
    gc.collect()
    before = len(gc.get_objects())
    clients = [Client(connections) for _ in range(100)]
    connected = len(gc.get_objects()) - before
    for client in clients:
        fill(client, GET, piece)
    gc.collect()

    assert all(not client.is_reading for client in clients)
    assert len(gc.get_objects()) - before - connected <= 100 * OBJECTS_MAX


def fill(client, first, again):
    if first:
        client.send(first)
    fed = len(first)
    while again and client.is_reading and not client.is_over and fed < FED_BYTES_MAX:
        client.send(again)
        fed += len(again)
    return fed


@pytest.mark.parametrize("name", HELD)
def test_one_client_holds_no_more_memory_than_its_address_may(ledger, connections, name):
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    clients = [Client(connections) for _ in range(CONNECTIONS)]
    for client in clients:
        fill(client, *HELD[name])
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert connections.memory.held["192.0.2.7"] <= MEMORY_BYTES_MAX
    assert after - before <= MEMORY_BYTES_MAX
    assert ledger.refused(table.HTTP_BYTES_ADDRESS) > 0
    assert {status for client in clients for status in client.refusals} <= {429}
    for client in clients:
        client.leave()
    assert connections.memory.held == {}


def test_another_client_is_served_while_one_has_all_it_may(connections):
    greedy = [Client(connections) for _ in range(600)]
    for client in greedy:
        fill(client, LENGTH, b"x" * 16_384)
    entered = connections.enter("192.0.2.8")
    modest = Answering(lambda *_: Response(500), "192.0.2.8", account=entered)
    request = modest.receive(HEAD + b"Content-Length: 30000\r\n\r\n" + b"x" * 30_000)

    assert modest.is_serving(request)
    assert request.body.taken_whole(30_000) == b"x" * 30_000


async def _read(request):
    return await request.body.read(1 << 20)


def test_what_a_reader_keeps_of_a_body_is_held_until_the_answer(connections):

    async def run():
        client = Client(connections)
        client.send(HEAD + b"Content-Length: 200000\r\n\r\n" + b"x" * 100_000)
        (request,) = client.requests
        reading = asyncio.ensure_future(_read(request))
        await asyncio.sleep(0)
        client.send(b"y" * 99_999)
        await asyncio.sleep(0)
        before = connections.memory.total
        client.send(b"z")
        body = await reading
        during = connections.memory.total
        client.connection.answer(Response(200))
        after = connections.memory.total
        client.leave()
        return len(body), before, during, after

    length, before, during, after = asyncio.run(run())

    assert length == 200_000
    assert before >= 199_999
    assert during >= 200_000
    assert after == LEAST_BYTES


def test_a_body_in_chunks_of_an_octet_costs_a_reader_no_more_than_its_length(connections):

    octets = 300_000

    async def run():
        client = Client(connections)
        client.send(CHUNKED)
        (request,) = client.requests
        reading = asyncio.ensure_future(_read(request))
        tracemalloc.start()
        for _ in range(octets // 1_000):
            client.send(b"1\r\nx\r\n" * 1_000)
            await asyncio.sleep(0)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        client.send(b"0\r\n\r\n")
        body = await reading
        client.leave()
        return len(body), held

    length, held = asyncio.run(run())

    assert length == octets
    assert held <= 3 * octets


def test_a_client_that_goes_away_leaves_nothing_behind(connections):

    async def run():
        client = Client(connections)
        client.send(LENGTH + b"x" * 200_000)
        (request,) = client.requests
        reading = asyncio.ensure_future(_read(request))
        await asyncio.sleep(0)
        client.leave()
        with pytest.raises(BodyBroken):
            await reading

    asyncio.run(run())

    assert (connections.memory.held, connections.memory.total) == ({}, 0)
