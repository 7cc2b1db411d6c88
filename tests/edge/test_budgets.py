"""What one client's connections can make the edge hold."""

from types import SimpleNamespace

import pytest

from edgestead.edge.http.client import ClientConnection
from edgestead.model.budgets import table
from tests.edge.bench import GET, Bench, Transport

MEMORY_BYTES_MAX = 32 << 20
CONNECTIONS = 600
FILLINGS = {
    "half a head": (b"GET / HTTP/1.1\r\nHost: www.example.com\r\nx: " + b"y" * 60_000,),
    "requests behind one another": (GET, GET * 2_000),
}


@pytest.fixture
def bench():
    made = Bench()
    made.edge.pool.seek = lambda aim, seeker, is_again: SimpleNamespace(
        cancel=lambda: None
    )  # no origin answers
    return made


def opened(bench, address):
    connection, transport = ClientConnection(bench.edge, port=80), Transport(address)
    connection.connection_made(transport)
    return connection, transport


@pytest.mark.parametrize("name", FILLINGS)
def test_one_client_holds_no_more_than_its_address_may_and_another_is_served(bench, name):
    memory = bench.edge.accounts.memory
    greedy = [opened(bench, f"2001:db8::{number:x}") for number in range(1, CONNECTIONS)]
    for connection, _ in greedy:
        for piece in FILLINGS[name]:
            connection.data_received(piece)
    modest, _ = opened(bench, "2001:db8:0:1::1")
    modest.data_received(GET)

    assert memory.held["2001:db8::/64"] <= MEMORY_BYTES_MAX
    assert bench.edge.ledger.refused(table.HTTP_BYTES_ADDRESS) > 0
    assert {transport.status for _, transport in greedy} <= {None, 429}
    assert modest._connection.current is not None
    for connection, _ in (*greedy, (modest, None), (bench.connection, None)):
        connection.connection_lost(None)
    assert (memory.held, bench.edge.connections) == ({}, 0)


def test_a_trusted_proxy_has_no_limit_but_that_of_all(bench):
    accounts = bench.edge.accounts
    accounts._by_address.limit, accounts.memory.limit = 1, 100_000

    proxied = [accounts.enter("192.0.2.1", trusted=True) for _ in range(3)]

    assert [account.hold(200_000) for account in proxied] == [None] * 3
    assert accounts.enter("192.0.2.2").hold(50_000) is None


def test_answers_that_a_client_does_not_take_are_held_for_it(bench):
    memory = bench.edge.accounts.memory
    bench.connection.data_received(GET)
    bench.client.left = 300_000
    bench.connection.pause_writing()
    during = memory.total
    bench.connection.resume_writing()

    assert during >= 300_000
    assert memory.total < 100_000


def test_a_body_that_its_origin_does_not_take_is_held_for_the_client(bench):
    memory = bench.edge.accounts.memory
    bench.keep_origin()
    bench.connection.data_received(
        b"POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 400000\r\n\r\n" + b"x" * 300_000
    )
    bench.server.left = 300_000
    bench.origin.pause_writing()
    during = memory.total
    bench.server.left = 0
    bench.origin.resume_writing()

    assert during >= 300_000
    assert memory.total < 100_000
