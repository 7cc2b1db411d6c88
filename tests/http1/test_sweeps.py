"""A look for late connections that fails in an unforeseen way is not the last one, nor the only one."""

import asyncio
from types import SimpleNamespace

from edgestead.http1 import limits
from edgestead.http1.server import Server
from tests.edge.bench import Bench

SECONDS_MAX = 300


class Fails:
    """In a connection's place."""

    def sweep(self, now):
        raise RuntimeError("unforeseen")


class Looked:
    """In the place of one behind it."""

    def __init__(self):
        self.looks, self.again = 0, asyncio.Event()

    def sweep(self, now):
        self.looks += 1
        if self.looks == 2:
            self.again.set()


def run(begin, monkeypatch, caplog):
    """`begin` has connections looked at from the loop; returns what ends it."""
    monkeypatch.setattr(limits, "SWEEP_SECONDS", 0.001)

    async def main():
        loop, last = asyncio.get_running_loop(), Looked()
        end = begin(loop, [Fails(), last])
        await asyncio.wait_for(last.again.wait(), SECONDS_MAX)
        end()

    asyncio.run(main())
    assert caplog.messages[0] == "1 looks whether a connection is late failed"


def test_of_http_1(monkeypatch, caplog):
    def begin(loop, connections):
        server = Server(None, None)
        for one in connections:
            server.enter(one, "192.0.2.1")
        loop.call_soon(server._sweep_late)
        return lambda: server._sweep.cancel()

    run(begin, monkeypatch, caplog)


def test_of_the_edge(monkeypatch, caplog):
    monkeypatch.setattr("edgestead.edge.limits.SWEEP_SECONDS", 0.001)
    counted = []

    def begin(loop, connections):
        edge = Bench().edge
        edge.loop = loop
        edge._clients = dict.fromkeys(connections)
        edge.pool = SimpleNamespace(sweep=counted.append)
        loop.call_soon(edge.sweep)
        return lambda: edge._sweeping.cancel()

    run(begin, monkeypatch, caplog)
    assert counted, "origins have their turn, too"
