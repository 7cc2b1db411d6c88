"""A look for late connections that fails in an unforeseen way is not the last one."""

import asyncio
from types import SimpleNamespace

from edgestead.http1 import limits
from edgestead.http1.server import Server
from tests.edge.bench import Bench

SECONDS_MAX = 300


class FailsOnce:
    """In a connection's place."""

    def __init__(self):
        self.looks, self.again = 0, asyncio.Event()

    def sweep(self, now):
        self.looks += 1
        if self.looks == 1:
            raise RuntimeError("unforeseen")
        self.again.set()


def run(begin, monkeypatch):
    """`begin` has a connection looked at from the loop; returns what ends it."""
    monkeypatch.setattr(limits, "SWEEP_SECONDS", 0.001)

    async def main():
        loop, one = asyncio.get_running_loop(), FailsOnce()
        loop.set_exception_handler(lambda *_: None)
        end = begin(loop, one)
        await asyncio.wait_for(one.again.wait(), SECONDS_MAX)
        end()

    asyncio.run(main())


def test_of_http_1(monkeypatch):
    def begin(loop, one):
        server = Server(None, None)
        server.enter(one, "192.0.2.1")
        loop.call_soon(server._sweep_late)
        return lambda: server._sweep.cancel()

    run(begin, monkeypatch)


def test_of_the_edge(monkeypatch):
    monkeypatch.setattr("edgestead.edge.limits.SWEEP_SECONDS", 0.001)

    def begin(loop, one):
        edge = Bench().edge
        edge.loop = loop
        edge._clients = {one: None}
        edge.pool = SimpleNamespace(sweep=lambda now: None)
        loop.call_soon(edge.sweep)
        return lambda: edge._sweeping.cancel()

    run(begin, monkeypatch)
