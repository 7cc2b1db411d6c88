"""Control's end of a node's connection: who may ask for what, in which order, and what it is given."""

import asyncio
import random
import socket

import pytest

from edgestead.feed import peer, publisher
from edgestead.feed.promise import Node
from edgestead.feed.protocol import (
    PART_BYTES_MAX,
    Ack,
    Changes,
    Frames,
    Granted,
    Hello,
    Register,
    Renew,
    Secret,
    Serve,
    Snapshot,
    SnapshotPart,
    decode,
    frame,
)
from edgestead.feed.publisher import NodeStanding, Publisher
from edgestead.sqlite.control import SqliteControlStore
from tests.feed.test_publisher import Client

KINDS = ("zone", "name")
NODE = Node("ams-1", 5_000.0)


class Transport:
    """Keeps what was written; nothing is ever full."""

    def __init__(self):
        self.frames, self.said, self.ended = Frames(), [], False
        self.news = asyncio.Event()

    def set_write_buffer_limits(self, high):
        pass

    def write(self, data):
        self.said += map(decode, self.frames.feed(data))
        self.news.set()

    def close(self):
        self.ended = True

    abort = close


class Connection:
    def __init__(self, made, began_us=1, number=1):
        self.transport = Transport()
        self.protocol = made.admit_node(NODE)
        self.protocol.connection_made(self.transport)
        self.send(Hello("1", "", began_us, number))

    def send(self, *messages):
        for message in messages:
            self.protocol.data_received(frame(message))

    def register(self, kinds=KINDS, group="dns", serving=False, half=("", 0)):
        self.send(Register(group, "ams-1", kinds, "", -1, serving, *half))

    def octets(self):
        """Of the snapshot's parts."""
        return b"".join(one.octets for one in self.transport.said if isinstance(one, SnapshotPart))

    async def until(self, kind):
        async with asyncio.timeout(300):
            while not any(isinstance(one, kind) for one in self.transport.said):
                self.transport.news.clear()
                await self.transport.news.wait()
        return [one for one in self.transport.said if isinstance(one, kind)][-1]


@pytest.fixture
def run(tmp_path):
    def runner(test):
        async def main():
            store = SqliteControlStore(tmp_path / "control.db", synced=False)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(tmp_path / "feed.sock"))
                listener.listen()
                made = Publisher(store.feed, listener, node_kinds={"dns": frozenset(KINDS)})
                made.start(store)
                try:
                    await test(made, store)
                finally:
                    made.close()
                    store.close()

        asyncio.run(main())

    return runner


async def live(made, **more):
    connection = Connection(made, **more)
    connection.register()
    snapshot = await connection.until(Snapshot)
    part = await connection.until(SnapshotPart)
    assert part.is_last
    connection.send(Ack(snapshot.sequence))
    await connection.until(Serve)
    return connection


def test_a_node_loads_is_served_and_gets_leases(run):
    async def test(made, store):
        connection = await live(made)
        connection.send(Renew(7))
        assert await connection.until(Granted) == Granted(7, 5_000)
        assert made.nodes() == {"dns": {"ams-1": 0}}

    run(test)


def test_nodes_take_no_place_of_this_machines_processes(run, monkeypatch):
    monkeypatch.setattr(publisher, "CONSUMERS_MAX", 1)
    monkeypatch.setattr(publisher, "NODE_CONSUMERS_MAX", 2)
    monkeypatch.setattr(peer, "kill", lambda pidfd: None)  # the process is this one

    async def test(made, store):
        nodes = [Connection(made), Connection(made)]
        with Client(made) as process:
            process.say(Register("dns", "dns-1", KINDS, "", -1, False))
            assert await process.hear() == [Snapshot(store.feed.feed_id, 0)]
            assert not any(node.transport.ended for node in nodes)
            assert Connection(made).transport.ended

    run(test)


@pytest.mark.parametrize(
    ("kinds", "group"), [((), "dns"), (("zone", "token"), "dns"), (KINDS, "edge"), (KINDS, "objects")]
)
def test_a_node_gets_nothing_that_no_node_is_told(run, kinds, group):
    async def test(made, store):
        connection = Connection(made)
        connection.register(kinds, group)
        assert connection.transport.ended
        assert connection.transport.said == []

    run(test)


def test_what_an_older_connection_said_changes_nothing(run):
    """Found by schedule 100,273: it took the lease from the node that had it."""

    async def test(made, store):
        newer = await live(made, number=2)
        older = Connection(made, number=1)
        older.register()
        assert older.transport.ended
        newer.send(Renew(1))
        assert (await newer.until(Granted)).lease_ms == 5_000
        again = Connection(made, number=3)
        again.register()
        assert not again.transport.ended

    run(test)


async def broken_off(made, store):
    """A snapshot of two parts and a half that its node has not acknowledged, and its octets."""
    doc = random.Random(1).randbytes(int(2.5 * PART_BYTES_MAX))
    await asyncio.wrap_future(store.write(lambda tx: tx.emit("z", "zone", "", doc)))
    first = Connection(made)
    first.register()
    await first.until(SnapshotPart)
    (snapshot,) = [one for one in first.transport.said if isinstance(one, Snapshot)]
    return first, snapshot, first.octets()


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_node_that_was_lost_goes_on_with_its_snapshot(run, is_noticed):
    """Also when the old connection still looks alive."""

    async def test(made, store):
        first, snapshot, octets = await broken_off(made, store)
        assert len(octets) > 2 * PART_BYTES_MAX
        if is_noticed:
            first.protocol.connection_lost(None)

        again = Connection(made, number=2)
        again.register(half=(snapshot.name, PART_BYTES_MAX))
        rest = await again.until(Snapshot)
        await again.until(SnapshotPart)

        assert (rest.name, rest.sequence, rest.offset) == (snapshot.name, snapshot.sequence, PART_BYTES_MAX)
        assert again.octets() == octets[PART_BYTES_MAX:]
        again.send(Ack(rest.sequence))
        await again.until(Serve)
        assert made._kept == {}

    run(test)


@pytest.mark.parametrize("why", ["unknown", "other kinds", "too old", "too late", "acknowledged"])
def test_a_snapshot_that_cannot_be_gone_on_with_begins_again(run, monkeypatch, why):
    monkeypatch.setattr(publisher, "KEPT_SECONDS", 0.0 if why == "too late" else 600.0)

    async def test(made, store):
        first, snapshot, octets = await broken_off(made, store)
        if why == "acknowledged":
            first.send(Ack(snapshot.sequence))
        first.protocol.connection_lost(None)
        if why == "too late":
            await asyncio.sleep(0.001)
        if why == "too old":
            made._promise.holds = lambda sequence: False
        name = "another" if why == "unknown" else snapshot.name
        again = Connection(made, number=2)
        again.register(KINDS[:1] if why == "other kinds" else KINDS, half=(name, PART_BYTES_MAX))

        assert (await again.until(Snapshot)).offset == 0
        await again.until(SnapshotPart)
        assert again.octets() == octets

    run(test)


def test_how_a_node_stands_is_known_while_it_is_connected(run):
    async def test(made, store):
        assert made.standings() == {}
        joins = Connection(made)
        joins.register()
        assert made.standings() == {"ams-1": {"dns": NodeStanding(is_live=False, behind=0, release="1")}}
        joins.protocol.connection_lost(None)
        assert made.standings() == {}

        connection = await live(made, number=2)
        assert made.standings()["ams-1"]["dns"].is_live
        await asyncio.wrap_future(store.write(lambda tx: tx.emit("z", "zone", "", b"new")))
        changes = await connection.until(Changes)
        assert made.standings()["ams-1"]["dns"] == NodeStanding(is_live=True, behind=1, release="1")
        connection.send(Ack(changes.upto))
        assert made.standings()["ams-1"]["dns"].behind == 0

    run(test)


def test_secrets_come_with_the_register_and_whenever_they_change(run):
    async def test(made, store):
        made.tell_nodes("dns", "keys", b"x" * 300_000)
        connection = await live(made)
        parts = [one for one in connection.transport.said if isinstance(one, Secret)]
        assert b"".join(one.octets for one in parts) == b"x" * 300_000
        assert [one.is_last for one in parts] == [False, True]
        made.tell_nodes("dns", "keys", b"")
        assert connection.transport.said[-1] == Secret("keys", b"", True)
        made.tell_nodes("edge", "keys", b"other")
        assert connection.transport.said[-1] == Secret("keys", b"", True)

    run(test)
