"""Input without an end to an HTTP/1 connection in every state that its table has.

A state that is new has no way here, and fails until somebody says how a client brings a connection to it.
"""

import tracemalloc

import pytest

from edgestead.http1.connection import TABLE, State
from edgestead.http1.connections import Connections
from edgestead.http1.messages import Response
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger
from tests.http1.test_budgets import GET, LENGTH, MEMORY_BYTES_MAX, Client

PORTION_BYTES = 65_536
FED_BYTES_MAX = table.HTTP_UNREAD_BYTES.limit + 2 * PORTION_BYTES
FILLINGS = {
    "octets": b"x" * PORTION_BYTES,
    "requests": GET * (PORTION_BYTES // len(GET)),
    "lines": b"\r\n" * (PORTION_BYTES // 2),
    "zeros": bytes(PORTION_BYTES),
}


def serving(client):
    client.send(LENGTH)


def sending(client):
    serving(client)
    client.connection.stream()


def draining(client):
    serving(client)
    client.connection.answer(Response(200))
    client.act()


def tunnelled(client):
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
    client.connection.stream()
    client.connection.switch()


def closed(client):
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    client.connection.answer(Response(200))
    client.act()


WAYS = {
    State.WAITING: lambda client: None,
    State.HEAD: lambda client: client.send(b"GET / HT"),
    State.SERVING: serving,
    State.SENDING: sending,
    State.DRAINING: draining,
    State.LINGERING: lambda client: client.send(b"\0\r\n"),
    State.TUNNELLED: tunnelled,
    State.CLOSED: closed,
}


@pytest.mark.parametrize("filling", FILLINGS)
@pytest.mark.parametrize("state", TABLE, ids=lambda state: state.value)
def test_input_without_an_end_is_stopped_in_every_state(state, filling):
    assert state in WAYS, "say here how a client brings a connection to this state"
    connections = Connections(ledger=Ledger(tell=lambda *_: None))
    client = Client(connections)
    WAYS[state](client)
    assert client.connection.state is state
    fed = 0
    tracemalloc.start()
    try:
        while client.is_reading and client.connection.state is not State.CLOSED and fed <= FED_BYTES_MAX:
            client.send(bytes(bytearray(FILLINGS[filling])))
            fed += PORTION_BYTES
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert fed <= FED_BYTES_MAX, "it goes on taking that"
    assert peak <= MEMORY_BYTES_MAX
    client.leave()
    assert (connections.memory.total, connections.memory.held) == (0, {})
