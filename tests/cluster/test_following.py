"""What a follower says on its link: how far its copy is, whichever way it got there."""

import asyncio
from asyncio import constants
from types import SimpleNamespace

import pytest

from edgestead.server.cluster import frames
from edgestead.server.cluster.following import Following
from edgestead.server.cluster.frames import Applied, Follow, Ping
from edgestead.server.nodes import port
from edgestead.store.controllog import Position
from tests.support.nodes import Cluster


class Copy:
    """A store whose entries arrive by other ways than the link."""

    def __init__(self):
        self.position, self.feed = Position(3, b"3"), SimpleNamespace(head=lambda: self.position.sequence)

    def read_from_log(self):
        self.position = Position(4, b"4")


class Writer:
    """The leader's end of what a follower writes."""

    def __init__(self):
        self.reader = asyncio.StreamReader()
        self.write = self.reader.feed_data

        self.transport = SimpleNamespace(abort=lambda: None)


async def applied(sequence): ...


async def told(copy, monkeypatch, *, while_dialling=lambda: None, then=lambda: None):
    """The first two messages, and the answer to a ping behind them."""
    reader, writer = asyncio.StreamReader(), Writer()

    async def open_streams(member, address, alpn):
        while_dialling()
        return reader, writer, SimpleNamespace(name="leader")

    monkeypatch.setattr(port, "open_streams", open_streams)
    link = Following(copy, None, ("", 0), 7, applied=applied, live=lambda: (), admitted=lambda leader: None)
    running = asyncio.create_task(link.run())
    first, second = await frames.read(writer.reader), await frames.read(writer.reader)
    then()
    answers = []
    while not answers or answers[-1].sequence < copy.position.sequence:
        reader.feed_data(frames.frame(Ping()))
        answers.append(await frames.read(writer.reader))
    running.cancel()
    return first, second, answers[-1]


def test_what_was_read_from_the_log_while_the_link_was_made_is_told(monkeypatch):
    copy = Copy()

    first, second, _ = asyncio.run(told(copy, monkeypatch, while_dialling=copy.read_from_log))

    assert first == Follow(7, 4, b"4")
    assert second == Applied(4, ())


@pytest.mark.timeout(60)
def test_what_a_read_of_before_the_link_brings_later_is_told_at_the_next_ping(monkeypatch):
    copy = Copy()

    first, second, last = asyncio.run(told(copy, monkeypatch, then=copy.read_from_log))

    assert (first, second, last.sequence) == (Follow(7, 3, b"3"), Applied(3, ()), 4)


def test_a_link_to_a_leader_that_went_silent_ends_without_its_goodbye(tmp_path, monkeypatch):
    """As of a machine that stands still, or that is cut off: while the link has not ended none is dialled."""
    monkeypatch.setattr(frames, "SILENT_SECONDS_MAX", 0.2)
    monkeypatch.setattr(constants, "SSL_SHUTDOWN_TIMEOUT", 3_600.0)
    cluster, copy = Cluster(tmp_path), Copy()

    async def live():
        over = asyncio.Event()

        async def stand_still(reader, writer, peer):
            writer.transport.pause_reading()
            await over.wait()

        async with cluster.listening({frames.LOG_ALPN: port.streams(stand_still)}):
            host, _, number = cluster.address.partition(":")
            where = (host, int(number))
            link = Following(
                *(copy, cluster.main, where, 7),
                applied=applied,
                live=lambda: (),
                admitted=lambda leader: None,
            )
            running = asyncio.create_task(link.run())
            done, _ = await asyncio.wait([running], timeout=60)
            over.set()
            running.cancel()
            return done

    (ended,) = asyncio.run(live())
    assert isinstance(ended.exception(), TimeoutError)
