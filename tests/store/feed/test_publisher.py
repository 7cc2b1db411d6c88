"""Control's end at its limits. The consumers here are sockets of this very process, so nothing is killed."""

import asyncio
import os
import socket

import pytest

from edgestead.model.errors import Unavailable
from edgestead.store.feed import peer, publisher, snapshot
from edgestead.store.feed.protocol import Ack, Frames, Register, Resumed, Serve, Snapshot, decode, frame
from edgestead.store.feed.publisher import Expected, Publisher
from edgestead.store.feed.waiters import Waiters
from edgestead.store.sqlite.control import SqliteControlStore

HELLO = Register("dns", "test", (), "", -1, False)
SECONDS_MAX = 60


@pytest.fixture
def killed(monkeypatch):
    killed = []
    monkeypatch.setattr(peer, "kill", killed.append)
    return killed


@pytest.fixture
def run(tmp_path, killed):
    def runner(test, *expected):
        async def main():
            store = SqliteControlStore(tmp_path / "control.db")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(tmp_path / "feed.sock"))
                listener.listen()
                made = Publisher(store.feed, listener)
                made.start(store, expected)
                try:
                    async with asyncio.timeout(SECONDS_MAX):
                        await test(made, store)
                finally:
                    made.close()
                    made.close()
                    store.close()

        asyncio.run(main())

    return runner


class Client:
    """A consumer's connection, driven by hand."""

    def __init__(self, made):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(made._listener.getsockname())
        self.socket.settimeout(SECONDS_MAX)
        self.frames = Frames()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def say(self, *messages):
        self.socket.sendall(b"".join(map(frame, messages)))

    async def hear(self):
        """The next messages; nothing at the end of the connection."""
        data, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, self.socket, 65_536, 4)
        for descriptor in descriptors:
            os.close(descriptor)
        return [decode(body) for body in self.frames.feed(data)]


def emit(store, key="a"):
    return store.write(lambda tx: tx.emit("zone", "name", key, b"1")).result(SECONDS_MAX).sequence


def test_a_consumer_joins(run):
    async def test(made, store):
        emit(store)
        with Client(made) as client:
            client.say(HELLO)
            assert await client.hear() == [Snapshot(store.feed.feed_id, 1)]
            client.say(Ack(1))
            assert await client.hear() == [Serve(1)]
            assert made.live("dns") == 1

    run(test)


def test_nobody_else_gets_in_when_there_are_too_many(run, monkeypatch):
    monkeypatch.setattr(publisher, "CONSUMERS_MAX", 1)

    async def test(made, store):
        with Client(made) as first, Client(made) as second:
            assert await second.hear() == []
            first.say(HELLO)
            assert await first.hear() != []

    run(test)


def test_another_users_process_is_refused(run, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12_345)

    async def test(made, store):
        with Client(made) as client:
            assert await client.hear() == []

    run(test)


def test_who_says_nothing_is_let_go(run, monkeypatch):
    monkeypatch.setattr(publisher, "REGISTER_MS_MAX", 1)

    async def test(made, store):
        with Client(made) as client:
            assert await client.hear() == []

    run(test)


def test_a_snapshot_that_could_not_be_made_is_made_again(run, monkeypatch):
    monkeypatch.setattr(publisher, "RETRY_MS", 1)
    real, failures = snapshot.write, [Unavailable(), OSError(24, "too many open files"), KeyError("a bug")]

    def failing(*arguments):
        if failures:
            raise failures.pop()
        return real(*arguments)

    monkeypatch.setattr(snapshot, "write", failing)

    async def test(made, store):
        with Client(made) as client:
            client.say(HELLO)
            assert await client.hear() == [Snapshot(store.feed.feed_id, 0)]

    run(test)
    assert failures == []


def test_a_serving_process_that_closes_its_connection_is_killed(run, killed):
    async def test(made, store):
        client = Client(made)
        client.say(HELLO)
        await client.hear()
        client.say(Ack(0))
        await client.hear()
        client.socket.close()
        while not killed:  # noqa: ASYNC110  the kernel tells no event
            await asyncio.sleep(0.001)
        assert made.live("dns") == 0

    run(test)


def test_a_write_answers_after_the_longest_wait_even_when_nothing_dies(run, monkeypatch, killed):
    monkeypatch.setattr(publisher, "APPLIED_MS_MAX", 50)

    async def test(made, store):
        with Client(made) as client:
            client.say(HELLO)
            await client.hear()
            client.say(Ack(0))
            await client.hear()
            await made.applied(emit(store))

    run(test)


def test_writes_are_refused_while_an_expected_process_neither_returns_nor_dies(run, monkeypatch):
    monkeypatch.setattr(publisher, "RECOVERED_MS_MAX", 1)

    async def test(made, store):
        with pytest.raises(Unavailable):
            await made.recovered()

    run(test, Expected(os.getpid(), os.pidfd_open(os.getpid()), "dns"))


def test_an_expected_process_that_registers_lets_writes_through(run):
    async def test(made, store):
        with Client(made) as client:
            client.say(Register("dns", "test", (), store.feed.feed_id, 0, True))
            await made.recovered()
            assert made.live("dns") == 1

    run(test, Expected(os.getpid(), os.pidfd_open(os.getpid()), "dns"))


def test_a_long_history_is_resumed_from_its_newest_part(tmp_path, killed, monkeypatch):
    monkeypatch.setattr(publisher, "RESUME_ROWS_MAX", 500)
    store = SqliteControlStore(tmp_path / "control.db", tail_rows_max=100)
    for _ in range(10):
        store.write(lambda tx: [tx.emit("z", "name", str(n), b"") for n in range(100)]).result(SECONDS_MAX)

    async def main():
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "feed.sock"))
            listener.listen()
            made = Publisher(store.feed, listener)
            made.start(store)
            with Client(made) as client:
                client.say(Register("dns", "test", (), store.feed.feed_id, 950, True))
                resumed, *messages = await client.hear()
                while not messages:
                    messages = await client.hear()
                assert resumed == Resumed(store.feed.feed_id)
            made.close()
            return messages

    messages = asyncio.run(main())
    store.close()

    assert (messages[0].after, messages[-1].upto) == (950, 1000)


class Lives:
    """A feed whose earlier life "earlier" is known up to sequence 1."""

    def __init__(self, feed):
        self._feed = feed
        self.includes = lambda feed_id, sequence: (
            feed.includes(feed_id, sequence) or (feed_id == "earlier" and 0 <= sequence <= 1)
        )

    def __getattr__(self, name):
        return getattr(self._feed, name)


POSITIONS = [("earlier", 1, True), ("earlier", 2, False), ("another", 1, False), ("earlier", -1, False)]


@pytest.mark.parametrize(("feed_id", "after", "resumes"), POSITIONS)
def test_a_consumer_goes_on_from_an_earlier_life_as_far_as_it_is_our_history(run, feed_id, after, resumes):
    async def test(made, store):
        made._feed = Lives(store.feed)
        for _ in range(2):
            store.write(lambda tx: tx.emit("z", "name", "a", b"")).result(SECONDS_MAX)
        with Client(made) as client:
            client.say(Register("dns", "test", (), feed_id, after, False))
            first, *_ = await client.hear()
            assert isinstance(first, Resumed) is resumes
            assert first.feed_id == store.feed.feed_id

    run(test)


def test_a_peer_that_is_gone_has_no_pidfd():
    ours, theirs = socket.socketpair()
    theirs.close()

    with ours, pytest.raises(peer.NotOurs):
        peer._open(ours, os.getpid())


def test_a_peer_is_found_without_the_kernels_help():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.close(peer._open(ours, os.getpid()))
        pid, pidfd = peer.identify(ours)
        os.close(pidfd)

    assert pid == os.getpid()


def test_waiters_go_in_the_order_of_sequences_and_deadlines():
    async def main():
        loop, waiters = asyncio.get_running_loop(), Waiters()
        futures = {n: loop.create_future() for n in (3, 1, 2)}
        for n, future in futures.items():
            waiters.add(n, n * 100, future)
        futures[1].cancel()
        waiters.release_upto(2)
        assert [futures[n].done() for n in (1, 2, 3)] == [True, True, False]
        assert waiters.release_overdue(299) == 0
        assert waiters.release_overdue(300) == 1
        assert futures[3].done()
        assert len(waiters) == 0

    asyncio.run(main())
