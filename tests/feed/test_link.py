"""A framed socket on a loop: everything in order, nothing twice, no descriptor left."""

import asyncio
import os
import socket

import pytest

from edgestead.feed import snapshot
from edgestead.feed.link import READ_BYTES, Link
from edgestead.feed.protocol import FRAME_BYTES_MAX, Ack, ProtocolError, decode, frame
from edgestead.store.changes import SLICE_ROWS_MAX, Change
from tests.descriptors import left_open, open_now

SECONDS_MAX = 300


class Linked:
    """A link and the other end of its connection, with what the link has told."""

    def __init__(self):
        ours, self.theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        self.theirs.settimeout(SECONDS_MAX)
        self.heard, self.ended, self.news = [], [], asyncio.Event()
        self.close_at = None
        self.link = Link(ours, self.on_frame, self.on_end)

    def on_frame(self, body):
        self.heard.append(decode(body))
        if self.heard[-1] == self.close_at:
            self.link.close()
        self.news.set()

    def on_end(self, reason):
        self.ended.append(reason)
        self.news.set()

    async def until(self, condition):
        async with asyncio.timeout(SECONDS_MAX):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def close(self):
        self.link.close()
        self.theirs.close()


@pytest.fixture
def run():
    def runner(test):
        async def main():
            linked = Linked()
            try:
                await test(linked)
            finally:
                linked.close()

        before = open_now()
        asyncio.run(main())
        assert not left_open(before)

    return runner


def test_frames_are_told_in_order(run):
    async def test(linked):
        messages = [Ack(n) for n in range(10_000)]
        stream = b"".join(map(frame, messages))
        assert len(stream) > READ_BYTES
        await asyncio.to_thread(linked.theirs.sendall, stream)
        await linked.until(lambda: len(linked.heard) == len(messages))
        assert linked.heard == messages
        assert linked.ended == []

    run(test)


def test_what_the_socket_does_not_take_at_once_follows_in_order(run):
    async def test(linked):
        descriptors = [os.memfd_create(f"{n}") for n in range(3)]
        for n, descriptor in enumerate(descriptors):
            os.write(descriptor, b"%d" % n)
            linked.link.send(b"%d" % n * 300_000, descriptor)
            linked.link.send(b"-")
        received, passed = bytearray(), []
        while len(received) < 900_003:
            data, found, _, _ = await asyncio.to_thread(socket.recv_fds, linked.theirs, 65_536, 4)
            received += data
            passed += found
        assert received == b"-".join([b"0" * 300_000, b"1" * 300_000, b"2" * 300_000]) + b"-"
        assert [os.pread(descriptor, 9, 0) for descriptor in passed] == [b"0", b"1", b"2"]
        for descriptor in passed:
            os.close(descriptor)

    run(test)


ENDS = {
    "it hangs up": (lambda theirs: theirs.close(), "end of stream"),
    "it says too much": (
        lambda theirs: theirs.sendall((FRAME_BYTES_MAX + 1).to_bytes(4, "big")),
        "larger than",
    ),
    "it says nonsense": (lambda theirs: theirs.sendall(b"\0\0\0\1\xc1"), "not a message"),
}


@pytest.mark.parametrize(("act", "words"), ENDS.values(), ids=ENDS)
def test_the_end_is_told_once_with_its_reason(run, act, words):
    async def test(linked):
        act(linked.theirs)
        await linked.until(lambda: linked.ended)
        linked.link.close()
        linked.link.send(b"x", os.memfd_create("unsent"))
        await asyncio.sleep(0.01)
        (reason,) = linked.ended
        assert words in reason

    run(test)


def test_whoever_closes_hears_of_no_end_nor_of_what_else_arrived(run):
    async def test(linked):
        linked.close_at = Ack(2)
        linked.theirs.sendall(b"".join(frame(Ack(n)) for n in range(1, 5)))
        await linked.until(lambda: len(linked.heard) == 2)
        await asyncio.sleep(0.01)
        assert (linked.heard, linked.ended) == ([Ack(1), Ack(2)], [])
        assert linked.theirs.recv(1) == b""

    run(test)


def test_a_connection_that_breaks_while_it_is_written_ends_later_and_not_within_the_sending(run):
    async def test(linked):
        linked.link.send(b"x" * 1_000_000)
        linked.theirs.close()
        linked.link.send(b"y", os.memfd_create("unsent"))
        assert linked.ended == []
        await linked.until(lambda: linked.ended)
        await asyncio.sleep(0.01)
        assert len(linked.ended) == 1

    run(test)


def test_what_was_queued_when_it_closes_is_forgotten(run):
    async def test(linked):
        for _ in range(3):
            linked.link.send(b"x" * 1_000_000, os.memfd_create("queued"))
        linked.link.close()
        linked.link.close()
        assert linked.ended == []

    run(test)


# snapshots as files


class Feed:
    """A feed of so many documents, of so many bytes each."""

    def __init__(self, count, size):
        self.changes = [Change(n, "z", "name", f"{n}", bytes(size)) for n in range(1, count + 1)]

    def snapshot(self, kinds, sink):
        for start in range(0, len(self.changes), SLICE_ROWS_MAX):
            sink(self.changes[start : start + SLICE_ROWS_MAX])
        return len(self.changes)


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 1), (600, 1_000), (3, 500_000)])
def test_a_snapshot_is_read_as_it_was_written_by_everybody(count, size):
    before = open_now()
    feed = Feed(count, size)
    descriptor, sequence = snapshot.write(feed, frozenset())
    readers = [snapshot.read(os.dup(descriptor)) for _ in range(2)]

    found = [[], []]
    while any(readers):
        for number, reader in enumerate(readers):
            part = next(reader, None) if reader else None
            if part is None:
                readers[number] = None
            else:
                found[number] += part

    assert found == [feed.changes] * 2
    assert sequence == count
    os.close(descriptor)
    assert not left_open(before)


def test_nobody_changes_what_others_read():
    descriptor, _ = snapshot.write(Feed(1, 1), frozenset())

    for change in (lambda: os.pwrite(descriptor, b"x", 0), lambda: os.ftruncate(descriptor, 0)):
        with pytest.raises(PermissionError):
            change()
    os.close(descriptor)


def test_a_scan_that_fails_leaves_no_file():
    before = open_now()
    feed = Feed(1, 1)
    feed.snapshot = lambda kinds, sink: 1 / 0

    with pytest.raises(ZeroDivisionError):
        snapshot.write(feed, frozenset())

    assert not left_open(before)


def test_a_snapshot_that_is_cut_short_is_closed():
    before = open_now()
    descriptor = os.memfd_create("cut")
    os.write(descriptor, frame(Ack(1))[:-1])

    with pytest.raises(ProtocolError, match="cut short"):
        list(snapshot.read(descriptor))

    assert not left_open(before)
