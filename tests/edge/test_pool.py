"""Connecting to origins: what has no name that can be asked for is a fault, not a wait."""

import asyncio
import socket
import time
from ipaddress import ip_network

import pytest
import uvloop

from edgestead.edge import limits
from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.faults import OriginFault
from edgestead.edge.exchanges.origins import Origins, Target
from edgestead.edge.http import origin_tls
from edgestead.edge.http.http2.origin import Http2Origin
from edgestead.edge.http.origin import OriginConnection
from edgestead.edge.http.policy import Policy
from edgestead.edge.http.pool import Pool
from tests.edge.bench import Transport

NO_NAMES = ["", "a..example.com", ".example.com", "x" * 64 + ".example.com"]


def a_pool(resolve=None):
    """On the running loop."""
    policy = Policy((), [ip_network("127.0.0.0/8")])
    return Pool(asyncio.get_running_loop(), policy, resolve, origin_tls.Contexts(None))


def fault_of(*, host=None, tls="", server_name="", resolve=None):
    """The fault of connecting to a port where somebody listens and says nothing."""

    async def connect():
        pool = a_pool(resolve)
        addresses = None if host else ("127.0.0.1",)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            way = (listening.getsockname()[1], tls, server_name)
            with pytest.raises(OriginFault) as caught:
                await pool.connect(Origins(()), addresses, host, way)
        return caught.value.fault

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(connect())


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_tls_cannot_ask_for_is_a_525(name):
    assert fault_of(tls="full", server_name=name) is faults.NO_TLS


def test_a_name_that_dns_cannot_ask_for_is_a_530():
    async def resolve(host):
        raise ValueError(host)

    assert fault_of(host=b"a..example.com", resolve=resolve) is faults.UNRESOLVED


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_process_that_stood_still_takes_the_connection_that_was_made_meanwhile(monkeypatch, loop):
    """On a machine that is short of processors a round of the loop may be longer than connecting may take."""
    monkeypatch.setattr(limits, "CONNECT_SECONDS_MAX", 0.05)

    async def connect():
        pool = a_pool()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            way = (listening.getsockname()[1], "", "", 0)
            asking = [
                asyncio.create_task(pool.connect(Origins(()), ("127.0.0.1",), None, way)) for _ in range(9)
            ]
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # each is on its way
            time.sleep(0.2)  # noqa: ASYNC251 - nobody runs
            assert all(isinstance(one, OriginConnection) for one in await asyncio.gather(*asking))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(connect())


def test_who_asks_for_a_connection_and_leaves_leaves_nothing_behind():
    """Whenever it leaves: on each round of the loop until it is there."""

    async def leave(after):
        pool = a_pool()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            way = (listening.getsockname()[1], "", "", 0)
            asking = asyncio.create_task(pool.connect(Origins(()), ("127.0.0.1",), None, way))
            for _ in range(after):
                await asyncio.sleep(0)
            asking.cancel()
            made = (await asyncio.gather(asking, return_exceptions=True))[0]
            if isinstance(made, OriginConnection):
                made.abort()
                return True
            listening.settimeout(0.2)
            try:
                accepted, _ = listening.accept()
            except TimeoutError:
                return False
            with accepted:
                accepted.settimeout(20)
                assert accepted.recv(1) == b""
            return False

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert sum(runner.run(leave(after)) for after in range(12))


def test_what_is_sent_again_takes_no_connection_that_was_kept():
    """An origin that restarts closes all of them, and the next one might break off just the same."""

    async def connect(pool, port, **more):
        return await pool.connect(Origins(()), ("127.0.0.1",), None, (port, "", "", 0), **more)

    async def again():
        pool = a_pool()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            first, second = [await connect(pool, port) for _ in range(2)]
            pool.put(first)
            pool.put(second)
            sent_again = await connect(pool, port, is_again=True)
            assert sent_again not in (first, second)
            assert await connect(pool, port) is second
            for one in (first, second, sent_again):
                one.abort()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(again())


@pytest.mark.parametrize("kind", [OriginConnection, Http2Origin])
def test_who_has_a_connection_opened_gets_another_where_somebody_is_quicker(kind):
    """It was told that its origin had broken off."""
    target, opened = Target("127.0.0.1", 80, streams_max=1), []

    async def open_one(target):
        opened.append(kind(pool, target))
        opened[-1].connection_made(Transport())
        if kind is Http2Origin:
            pool._shared.setdefault(target, []).append(opened[-1])
        is_open.set()
        return opened[-1]

    async def race():
        nonlocal pool, is_open
        is_open = asyncio.Event()
        pool = Pool(asyncio.get_running_loop(), Policy((), []), None, origin_tls.Contexts(None))
        pool._open = open_one
        seeking = asyncio.create_task(pool.connect(Origins(()), ("127.0.0.1",), None, target[1:]))
        await is_open.wait()
        quicker = pool.take(target)
        assert quicker is not None
        if kind is Http2Origin:
            opened[0]._streams[1] = quicker
        found = await seeking
        assert getattr(found, "connection", found) is opened[1]

    pool = is_open = None
    asyncio.run(race())
