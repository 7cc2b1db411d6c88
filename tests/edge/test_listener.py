"""Connections that are nobody's yet: how many may be there at once, through real sockets."""

import asyncio
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_network

import pytest

from edgestead.cli.server.authority import Authority
from edgestead.edge.http import listener
from edgestead.edge.http.address import Trust
from edgestead.edge.http.certificates import Certificates
from edgestead.model.budgets import table
from tests.edge.bench import Bench
from tests.edge.talk import PATIENCE_SECONDS

HOST = "www.example.com"
ROOM = 2


@pytest.fixture
def certificates(tmp_path):
    (tmp_path / f"{HOST}.pem").write_bytes(
        Authority.new(datetime.now(UTC)).issue([HOST], datetime.now(UTC)).pem
    )
    return Certificates(tmp_path)


def first_message():
    """What a client of TLS says first."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=HOST).do_handshake()
    return out.read()


def arrive(certificates, monkeypatch, said, *, trusted=False):
    """Whether each of ROOM + 1 connections that say `said` and then nothing is left open, and the next one
    after one of them has gone."""
    narrow = table.EDGE_ARRIVALS_ADDRESS._replace(limit=ROOM)
    monkeypatch.setattr(table, "EDGE_ARRIVALS_ADDRESS", narrow)

    async def talk():
        bench = Bench()
        edge = bench.edge
        edge.loop = asyncio.get_running_loop()
        edge.trust = Trust([ip_network("127.0.0.0/8")] if trusted else [])
        turned_away = []
        edge.turned_away = lambda: turned_away.append(1)
        http, https = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
        address = https.getsockname()
        served = listener.Listener(edge, proxy_protocol=False, certificates=certificates)
        await served.open(http, https)
        opened = [await _connect(address, said) for _ in range(ROOM + 1)]
        left = [await _is_open(served, reader, number) for number, (reader, _) in enumerate(opened, 1)]
        opened[0][1].close()
        for _ in range(PATIENCE_SECONDS * 100):
            if len(served._arrivals) < ROOM + trusted:
                break
            await asyncio.sleep(0.01)
        reader, writer = await _connect(address, said)
        left.append(await _is_open(served, reader, ROOM + trusted))
        for _, one in (*opened, (reader, writer)):
            one.close()
        served.close()
        return left, len(turned_away)

    return asyncio.run(talk())


async def _connect(address, said):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(said)
    return reader, writer


async def _is_open(served, reader, number):
    """When so many have arrived it is open; a connection that was turned away ends."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if reader.at_eof():
                return False
            if reader.exception() is not None:
                return False
            if len(served._arrivals) >= number:
                return True
            with suppress(TimeoutError, ConnectionError):
                await asyncio.wait_for(reader.read(1), 0.02)


SAID = [pytest.param(b"", id="nothing"), pytest.param(first_message(), id="half a handshake")]


@pytest.mark.parametrize("said", SAID)
def test_one_address_cannot_take_all_the_room(certificates, monkeypatch, said):
    left, turned_away = arrive(certificates, monkeypatch, said)
    assert left == [True, True, False, True]
    assert turned_away == 1


@pytest.mark.parametrize("said", SAID)
def test_a_trusted_proxy_has_many_clients(certificates, monkeypatch, said):
    left, turned_away = arrive(certificates, monkeypatch, said, trusted=True)
    assert left == [True, True, True, True]
    assert turned_away == 0


HELLO = first_message()
ANNOUNCED = b"PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\n"


async def listening(certificates, *, announces):
    edge = Bench().edge
    edge.loop = asyncio.get_running_loop()
    edge.trust = Trust([ip_network("127.0.0.0/8")] if announces else [])
    http, https = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    served = listener.Listener(edge, proxy_protocol=announces, certificates=certificates)
    await served.open(http, https)
    return served, https.getsockname()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param((HELLO[:1],), id="one byte"),
        pytest.param((HELLO[:40], HELLO[40:90]), id="half a hello, in two"),
        pytest.param((ANNOUNCED[:20],), id="half an announcement"),
        pytest.param((ANNOUNCED[:20], ANNOUNCED[20:] + HELLO[:1]), id="an announcement, and one byte"),
    ],
)
def test_a_client_that_ends_in_the_middle_of_its_first_words_is_dropped_at_once(
    certificates, monkeypatch, said
):
    """What was only looked at is readable, and so is the end: looks would follow one another for 10 s."""
    looked, too_often, looks = asyncio.Event(), asyncio.Event(), []
    monkeypatch.setattr(listener.limits, "HANDSHAKE_SECONDS_MAX", 10 * PATIENCE_SECONDS)

    class Counted(listener._Arrival):
        def _look(self):
            looks.append(1)
            looked.set()
            if len(looks) == 20:
                too_often.set()
            super()._look()

    monkeypatch.setattr(listener, "_Arrival", Counted)

    async def talk():
        served, address = await listening(certificates, announces=said[0].startswith(b"PROXY"))
        reader, writer = await _connect(address, said[0])
        for more in said[1:]:
            await looked.wait()
            writer.write(more)
        writer.write_eof()
        ends = [asyncio.create_task(one) for one in (reader.read(), too_often.wait())]
        await asyncio.wait(ends, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        left = len(served._arrivals)
        served.close()
        ends[1].cancel()
        await asyncio.wait(ends)
        writer.close()
        return left

    assert asyncio.run(talk()) == 0
    assert len(looks) < 20


def test_a_client_waits_for_its_next_words_where_the_kernel_says_that_there_are_some(
    certificates, monkeypatch
):
    """As a kernel does that is short of memory: it heeds no SO_RCVLOWAT then."""
    monkeypatch.setattr(socket, "SO_RCVLOWAT", socket.SO_KEEPALIVE)
    monkeypatch.setattr(listener, "AGAIN_SECONDS", 0.01)
    looked, is_read = asyncio.Event(), []

    class Watched(listener._Arrival):
        def _look(self):
            is_for_nothing = self._seen == 40 and not looked.is_set()
            super()._look()
            if is_for_nothing:
                is_read.append(self._listener.loop.remove_reader(self._socket))
                looked.set()

    monkeypatch.setattr(listener, "_Arrival", Watched)

    async def talk():
        served, address = await listening(certificates, announces=False)
        reader, writer = await _connect(address, HELLO[:40])
        async with asyncio.timeout(PATIENCE_SECONDS):
            await looked.wait()
            writer.write(HELLO[40:])
            said = await reader.read(1)
        served.close()
        writer.close()
        return said

    assert asyncio.run(talk()) == b"\x16", "a handshake"
    assert is_read == [False], "it is not read until the next look"


def test_a_look_at_the_certificates_that_fails_is_not_the_last_one(certificates, monkeypatch):
    monkeypatch.setattr(listener, "LOOK_SECONDS", 0.001)
    looks = []

    async def talk():
        edge = Bench().edge
        edge.loop = asyncio.get_running_loop()
        edge.loop.set_exception_handler(lambda *_: None)
        again = asyncio.Event()

        def look():
            looks.append(1)
            if len(looks) == 2:
                raise RuntimeError("unforeseen")
            if len(looks) == 3:
                again.set()

        monkeypatch.setattr(certificates, "look", look)
        served = listener.Listener(edge, proxy_protocol=False, certificates=certificates)
        await served.open(*(socket.create_server(("127.0.0.1", 0)) for _ in range(2)))
        await asyncio.wait_for(again.wait(), PATIENCE_SECONDS)
        served.close()

    asyncio.run(talk())
