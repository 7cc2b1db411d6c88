"""TCP through real sockets, on both event loops."""

import asyncio
import socket
import struct

import dns.edns
import dns.message
import pytest
import uvloop

from edgestead.dns.counters import Slot
from edgestead.dns.tcp import DEFAULT_LIMITS, QUERY_OCTETS_MAX, serve_tcp
from edgestead.model.budgets import table as budgets
from edgestead.model.budgets.ledger import Ledger
from tests.dns.serving import Counts, patient_limits, said

WWW = ("NOERROR", "AA", ["www.example.test. 300 a 192.0.2.80"], [], [])
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


def query(name="www.example.test.", kind="A", number=4711):
    return dns.message.make_query(name, kind, id=number).to_wire()


def frame(message):
    return struct.pack("!H", len(message)) + message


def large_queries(count):
    """Queries whose replies have 60 kB each."""
    return b"".join(frame(query("big.example.test.", "TXT", number=i)) for i in range(count))


class Client:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def read(self):
        return dns.message.from_wire(await self.read_octets())

    async def read_octets(self):
        (length,) = struct.unpack("!H", await self.reader.readexactly(2))
        return await self.reader.readexactly(length)

    async def read_number(self):
        """The ID of the next reply: dnspython takes its time for large ones."""
        return int.from_bytes((await self.read_octets())[:2], "big")

    async def ended(self):
        """Whether the server has ended the connection without a further octet."""
        try:
            return await asyncio.wait_for(self.reader.read(), 60) == b""
        except ConnectionError:
            return True


class World:
    """A server and as many clients as wanted, on one loop."""

    def __init__(self, table, **limits):
        self.table, self.limits = table, patient_limits(**limits)
        self.counts, self.stop, self.clients = Counts(), asyncio.Event(), []

    async def __aenter__(self):
        sock = socket.create_server(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        self.refused = asyncio.Event()
        self.ledger = Ledger(tell=lambda *_: self.refused.set())
        self.task = asyncio.create_task(
            serve_tcp(sock, self.table, self.counts, self.stop, self.limits, ledger=self.ledger)
        )
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self.stop.set()
        await self.task
        for client in self.clients:
            client.writer.close()

    async def client(self, **options):
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, **options))
        self.clients.append(client)
        return client


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request):
    def run(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(coroutine, 300))

    return run


def test_queries_one_after_the_other(run, table):
    async def main():
        async with World(table) as world:
            client = await world.client()
            for _ in range(3):
                client.writer.write(frame(query()))
                assert said(await client.read()) == WWW

    run(main())


def test_pipelined_queries_are_all_answered_however_they_are_cut(run, table):
    octets = b"".join(frame(query(number=i)) for i in range(50))

    async def main():
        async with World(table) as world:
            client = await world.client()
            for start in range(0, len(octets), 7):
                client.writer.write(octets[start : start + 7])
                await client.writer.drain()
                await asyncio.sleep(0)
            assert [(await client.read()).id for _ in range(50)] == list(range(50))
        assert world.counts[Slot.QUERIES] == world.counts[Slot.NOERROR] == 50
        assert world.counts[Slot.CACHE_HITS] == 49

    run(main())


def test_replies_are_not_truncated(run, table):
    async def main():
        async with World(table) as world:
            client = await world.client()
            client.writer.write(frame(query("big.example.test.", "TXT")))
            reply = await client.read()
            assert len(reply.answer[0]) == 300

    run(main())


def test_a_half_closed_connection_gets_its_replies_and_then_the_end(run, table):
    async def main():
        async with World(table) as world:
            client = await world.client()
            client.writer.write(
                b"".join(frame(query("big.example.test.", "TXT", number=i)) for i in range(40))
            )
            client.writer.write_eof()
            assert [(await client.read()).id for _ in range(40)] == list(range(40))
            assert await client.ended()

    run(main())


BROKEN = {
    "a frame of no octets": b"\0\0",
    "a frame too short for a header": b"\0\x0b" + b"a" * 11,
    "a frame too long": struct.pack("!H", QUERY_OCTETS_MAX + 1),
    "the longest frame there is": b"\xff\xff" + b"a" * 100,
}


@pytest.mark.parametrize("octets", BROKEN.values(), ids=BROKEN)
def test_a_broken_frame_ends_the_connection_after_the_replies_before_it(octets, run, table):
    async def main():
        async with World(table) as world:
            client, other = await world.client(), await world.client()
            client.writer.write(frame(query()) + octets + frame(query()))
            assert said(await client.read()) == WWW
            assert await client.ended()
            other.writer.write(frame(query()))
            assert said(await other.read()) == WWW

    run(main())


def test_responses_are_not_answered_and_do_not_disturb(run, table):
    response = query()[:2] + b"\x84\0" + query()[4:]

    async def main():
        async with World(table) as world:
            client = await world.client()
            client.writer.write(frame(response) + frame(query(number=7)))
            assert (await client.read()).id == 7

    run(main())


def test_a_name_that_cannot_be_answered_is_servfail(run, table, caplog):
    async def main():
        async with World(table) as world:
            client = await world.client()
            client.writer.write(frame(query("broken.example.test.")) + frame(query()))
            broken = await client.reader.readexactly(14)
            assert broken[5] & 0x0F == 2
            assert said(await client.read()) == WWW

    run(main())
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "sent", [b"", b"\0", frame(query())[:-1]], ids=["nothing", "an octet", "most of a query"]
)
def test_a_connection_that_completes_no_query_is_ended(sent, run, table):
    async def main():
        async with World(table, idle_seconds=0.2) as world:
            client = await world.client()
            client.writer.write(sent)
            assert await client.ended()
        assert world.counts[Slot.TCP_OPEN] == 0

    run(main())


def test_trickling_octets_do_not_keep_a_connection(run, table):
    async def main():
        async with World(table, idle_seconds=0.3) as world:
            client = await world.client()
            ended = asyncio.create_task(client.ended())
            for octet in frame(query())[:-1]:
                if ended.done():
                    break
                client.writer.write(bytes((octet,)))
                await asyncio.sleep(0.05)
            assert await ended

    run(main())


def test_a_new_connection_takes_the_place_of_the_quietest(run, table):
    async def main():
        async with World(table, connections_max=3) as world:
            clients = [await world.client() for _ in range(3)]
            for client in (clients[1], clients[2], clients[0]):
                client.writer.write(frame(query()))
                await client.read()
            newcomer = await world.client()
            newcomer.writer.write(frame(query()))
            assert said(await newcomer.read()) == WWW
            assert await clients[1].ended()
            for client in (clients[0], clients[2]):
                client.writer.write(frame(query()))
                assert said(await client.read()) == WWW

    run(main())


def test_a_client_that_does_not_read_is_not_answered_without_end_and_then_ended(run, table):
    async def main():
        async with World(table, idle_seconds=0.5) as world:
            client = await world.client(limit=1024)
            client.writer.transport.pause_reading()
            client.writer.write(large_queries(1000))
            while not world.counts[Slot.TCP_CONNECTIONS] or world.counts[Slot.TCP_OPEN]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert world.counts[Slot.TCP_OPEN] == 0
        assert world.counts[Slot.QUERIES] < 1000

    run(main())


def test_a_slow_reader_gets_everything(run, table):
    async def main():
        async with World(table) as world:
            client = await world.client()
            client.writer.write(large_queries(300))
            numbers = []
            for i in range(300):
                numbers.append(await client.read_number())
                if i % 30 == 0:
                    await asyncio.sleep(0.01)
            assert numbers == list(range(300))

    run(main())


def test_at_the_stop_connections_get_their_replies_and_no_new_one_is_taken(run, table):
    async def main():
        async with World(table) as world:
            client = await world.client()
            client.writer.write(frame(query()))
            assert said(await client.read()) == WWW
            world.stop.set()
            assert await client.ended()
            await world.task
            with pytest.raises(ConnectionError):
                await world.client()

    run(main())


def test_one_address_has_its_share_of_the_places_and_no_more(run, table):
    """Its newest connection takes the place of its own quietest one, not of somebody else's."""

    async def main():
        async with World(table, address_connections_max=3, connections_max=5) as world:
            others = [await world.client(local_addr=("127.0.0.2", 0)) for _ in range(2)]
            mine = [await world.client() for _ in range(3)]
            for client in (*others, *mine):
                client.writer.write(frame(query("www.example.test.")))
                await client.read()

            newest = await world.client()
            assert await mine[0].ended()

            for client in (*others, *mine[1:], newest):
                client.writer.write(frame(query("www.example.test.")))
                assert (await client.read()).answer

    run(main())


def test_one_address_that_reads_no_reply_holds_no_more_than_its_share(run, table, monkeypatch):
    narrow = budgets.DNS_BYTES_ADDRESS._replace(limit=200_000)
    monkeypatch.setattr(budgets, "DNS_BYTES_ADDRESS", narrow)

    async def main():
        async with World(table, idle_seconds=60) as world:
            deaf = [await world.client() for _ in range(20)]
            for client in deaf:
                client.writer.transport.pause_reading()
                client.writer.write(large_queries(200))
            await world.refused.wait()
            assert world.ledger.refused(narrow)
            other = await world.client(local_addr=("127.0.0.2", 0))
            other.writer.write(frame(query()))
            assert said(await other.read()) == WWW
            for client in deaf:
                client.writer.transport.abort()

    run(main())


def test_many_slow_clients_do_not_keep_a_quick_one_waiting(run, table):
    async def main():
        async with World(table, address_connections_max=150, idle_seconds=60) as world:
            slow = [await world.client() for _ in range(150)]
            for client in slow:
                client.writer.write(b"\0")
            quick = await world.client(local_addr=("127.0.0.2", 0))
            for number in range(200):
                quick.writer.write(frame(query("www.example.test.", number=number)))
                assert await quick.read_number() == number
            assert world.counts[Slot.TCP_OPEN] <= 151

    run(main())


@pytest.mark.parametrize(("open_before", "units"), [(0, 100), (8, 0)])
def test_a_client_that_asks_is_told_how_long_it_may_be_idle(open_before, units, run, table):
    """RFC 7828: in tenths of a second; 0, when there is hardly a place left."""
    asked = dns.message.make_query(
        "www.example.test.", "A", use_edns=0, options=[dns.edns.GenericOption(11, b"")]
    )

    async def main():
        async with World(table, connections_max=10, idle_seconds=DEFAULT_LIMITS.idle_seconds) as world:
            for _ in range(open_before):
                client = await world.client()
                client.writer.write(frame(query("www.example.test.")))
                await client.read()
            client = await world.client()
            client.writer.write(frame(asked.to_wire()))
            reply = await client.read()
            assert [option.to_wire() for option in reply.options] == [struct.pack("!H", units)]

    run(main())
