"""Control's end at its limits. The consumers here are sockets of this very process, so nothing is killed."""

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import weakref
from random import Random

import pytest

from edgestead.feed import peer, promise, publisher, snapshot
from edgestead.feed.promise import BARRIER_MS, Leased
from edgestead.feed.protocol import (
    Ack,
    Beat,
    Frames,
    Loading,
    Register,
    Resumed,
    Serve,
    Snapshot,
    decode,
    frame,
)
from edgestead.feed.publisher import Expected, Publisher
from edgestead.feed.waiters import Waiters
from edgestead.model.refusals import Unavailable
from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.changes import Change
from tests.descriptors import left_open, open_now

HELLO = Register("dns", "test", (), "", -1, False)
SECONDS_MAX = 300


@pytest.fixture
def killed(monkeypatch):
    killed = []
    monkeypatch.setattr(peer, "kill", killed.append)
    return killed


@pytest.fixture
def run(tmp_path, killed, monkeypatch):
    """Without heartbeats, of which a slow machine has one between any two messages."""
    monkeypatch.setattr(publisher, "BEAT_MS", 3_600_000)

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


def test_a_consumer_that_says_that_it_loads_is_given_time_again(run, killed, monkeypatch):
    monkeypatch.setattr(promise, "JOIN_MS", 20 * promise.TICK_MS)

    async def test(made, store):
        dead = asyncio.Event()
        monkeypatch.setattr(peer, "kill", lambda pidfd: (killed.append(pidfd), dead.set()))
        emit(store)
        with Client(made) as client:
            client.say(HELLO)
            await client.hear()
            for _ in range(40):
                client.say(Loading())
                await asyncio.sleep(2 * promise.TICK_MS / 1000)
            assert killed == []

            await dead.wait()

    run(test)


def test_a_consumer_joins(run):
    async def test(made, store):
        emit(store)
        with Client(made) as client:
            client.say(HELLO)
            assert await client.hear() == [Snapshot(store.feed.feed_id, 1)]
            client.say(Ack(1))
            assert await client.hear() == [Serve(1)]
            assert len(made.live("dns")) == 1

    run(test)


def test_nobody_else_gets_in_when_there_are_too_many(run, monkeypatch):
    monkeypatch.setattr(publisher, "CONSUMERS_MAX", 1)

    async def test(made, store):
        with Client(made) as first, Client(made) as second:
            assert await second.hear() == []
            first.say(HELLO)
            assert await first.hear() != []

    run(test)


SAYS_HELLO = """
import os, socket, sys
user, hello = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
os.setgroups([])
os.setuid(user)
feed = socket.socket(socket.AF_UNIX)
feed.settimeout(60)
feed.connect(sys.argv[3])
try:
    feed.sendall(hello)
    print(len(feed.recv(65_536)))
except (BrokenPipeError, ConnectionResetError):
    print(0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("user", "is_heard"), [(65_534, False), (0, True)])
def test_another_users_process_is_refused(run, user, is_heard):
    """It says who it is, as one of ours would: a stranger hears nothing, whatever it says."""

    async def test(made, store):
        address = made._listener.getsockname()
        folder, name = os.path.split(address)
        os.chmod(address, 0o666)
        os.chmod(folder, 0o711)
        asking = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SAYS_HELLO, str(user), frame(HELLO).hex(), name),
            cwd=folder,  # the folders above it are closed to others
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await asking.communicate()
        assert asking.returncode == 0
        assert (int(said) > 0) is is_heard
        assert len(made.live("dns")) == 0

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


def test_consumers_that_ask_at_once_share_one_snapshot(run, monkeypatch):
    real, asked, go = snapshot.write, [], threading.Event()

    def slow(*arguments):
        asked.append(arguments)
        assert go.wait(SECONDS_MAX)
        return real(*arguments)

    monkeypatch.setattr(snapshot, "write", slow)

    async def test(made, store):
        with Client(made) as first, Client(made) as second, Client(made) as other:
            first.say(HELLO)
            second.say(HELLO)
            other.say(Register("dns", "test", ("rule",), "", -1, False))
            while sum(map(len, made._making.values())) < 3:  # noqa: ASYNC110  the publisher tells no event
                await asyncio.sleep(0.001)
            go.set()
            for client in (first, second, other):
                assert await client.hear() == [Snapshot(store.feed.feed_id, 0)]

    run(test)
    assert len(asked) == 2


def test_consumers_for_whom_no_descriptor_is_left_get_their_snapshot_later(run, monkeypatch):
    monkeypatch.setattr(publisher, "RETRY_MS", 1)
    real, made_for = os.dup, []

    def failing(descriptor):
        """For the second of three consumers there is none."""
        made_for.append(descriptor)
        if len(made_for) == 2:
            raise OSError(24, "Too many open files")
        return real(descriptor)

    async def test(made, store):
        with Client(made) as first, Client(made) as second, Client(made) as third:
            clients = first, second, third
            with monkeypatch.context() as scarce:
                scarce.setattr(os, "dup", failing)
                for client in clients:
                    client.say(HELLO)
                for client in clients:
                    assert await client.hear() == [Snapshot(store.feed.feed_id, 0)]

    run(test)
    assert len(made_for) == 4


def test_what_is_not_for_control_ends_the_connection(run):
    async def test(made, store):
        with Client(made) as client:
            client.say(HELLO, Serve(1))
            while messages := await client.hear():
                assert messages == [Snapshot(store.feed.feed_id, 0)]
        assert len(made.live("dns")) == 0

    run(test)


def test_a_process_that_dies_is_waited_for_no_longer_and_forgotten(run):
    before = open_now()
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    async def test(made, store):
        waiting = asyncio.create_task(made.recovered())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        process.kill()
        await waiting
        assert made._peers == made._expected == {}

    run(test, Expected(process.pid, os.pidfd_open(process.pid), "dns"))
    process.wait()
    assert not left_open(before)


def test_who_hung_up_is_forgotten_when_its_lease_is_over_though_nothing_else_happens(
    tmp_path, killed, monkeypatch
):
    monkeypatch.setattr(publisher, "BEAT_MS", 3_600_000)
    monkeypatch.setattr(promise, "LEASE_MS", 50)

    async def main():
        store = SqliteControlStore(tmp_path / "control.db")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "feed.sock"))
            listener.listen()
            leases = {"objects": Leased(frozenset({"token"}), silence_ms=60_000)}
            made = Publisher(store.feed, listener, leases=leases)
            made.start(store)
            with Client(made) as client:
                client.say(Register("objects", "test", (), "", -1, False))
                await client.hear()
                client.say(Ack(0))
                heard = await client.hear()
                while len(heard) < 2:
                    heard += await client.hear()
                assert [type(message) for message in heard] == [Serve, Beat]
            async with asyncio.timeout(SECONDS_MAX):
                while made._peers:  # noqa: ASYNC110  the publisher tells no event
                    await asyncio.sleep(0.001)
            made.close()
        store.close()

    asyncio.run(main())
    assert killed == []


def test_closing_lets_everybody_go_who_waits(run):
    async def test(made, store):
        with Client(made) as client:
            client.say(HELLO)
            await client.hear()
            client.say(Ack(0))
            await client.hear()
            waiting = asyncio.create_task(made.applied(emit(store)))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            made.close()
            await waiting

    run(test)


def test_a_consumer_that_could_not_be_accepted_is_accepted_later(run, monkeypatch, caplog):
    monkeypatch.setattr(publisher, "RETRY_MS", 1)

    class Refusing:
        """Out of descriptors for a moment."""

        def __init__(self, listener):
            self.listener, self.failures = listener, [OSError(24, "Too many open files")]

        def accept(self):
            if self.failures:
                raise self.failures.pop()
            return self.listener.accept()

        def __getattr__(self, name):
            return getattr(self.listener, name)

    async def test(made, store):
        made._listener = Refusing(made._listener)
        with Client(made) as client:
            client.say(HELLO)
            assert await client.hear() == [Snapshot(store.feed.feed_id, 0)]

    run(test)
    assert "Too many open files" in caplog.text


def test_who_gives_no_sign_of_life_is_killed_though_nobody_writes(tmp_path, killed, monkeypatch):
    monkeypatch.setattr(publisher, "BEAT_MS", 200)  # later than the last look at the time for its joining

    async def main():
        store = SqliteControlStore(tmp_path / "control.db")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "feed.sock"))
            listener.listen()
            made = Publisher(store.feed, listener, silence_ms=50)
            made.start(store)
            with Client(made) as client:
                client.say(HELLO)
                await client.hear()
                client.say(Ack(0))
                async with asyncio.timeout(SECONDS_MAX):
                    while not killed:  # noqa: ASYNC110  the kernel tells no event
                        await asyncio.sleep(0.001)
            made.close()
        store.close()

    asyncio.run(main())


def test_nothing_of_the_feed_stays_open(run):
    before = open_now()

    async def test(made, store):
        with Client(made) as first, Client(made) as second:
            first.say(HELLO)
            await first.hear()
            second.say(HELLO)
            await second.hear()

    run(test, Expected(os.getpid(), os.pidfd_open(os.getpid()), "dns"))
    assert not left_open(before)


def test_a_closed_publisher_leaves_nothing_with_its_store(tmp_path):
    async def main():
        store = SqliteControlStore(tmp_path / "control.db", synced=False)
        left = []
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "feed.sock"))
            listener.listen()
            for _ in range(3):
                made = Publisher(store.feed, listener)
                made.start(store)
                emit(store)
                made.close()
                left.append(weakref.ref(made))
                del made
            await asyncio.sleep(0)
            gc.collect()
            assert [one() for one in left] == [None] * 3
            store.close()

    asyncio.run(main())


def test_a_scan_that_is_under_way_at_the_end_leaves_no_file_open(run, monkeypatch):
    begun, go_on, good = threading.Event(), threading.Event(), snapshot.write
    threads = []

    def held(feed, kinds):
        threads.append(threading.current_thread())
        begun.set()
        assert go_on.wait(SECONDS_MAX)
        return good(feed, kinds)

    monkeypatch.setattr(snapshot, "write", held)
    before = open_now()

    async def test(made, store):
        emit(store)
        with Client(made) as client:
            client.say(HELLO)
            await asyncio.to_thread(begun.wait)
            made.close()
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.to_thread(threads[0].join)

    run(test)
    assert not left_open(before)


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
        assert len(made.live("dns")) == 0

    run(test)


@pytest.mark.parametrize("longest_ms", [50, 3 * BARRIER_MS], ids=["while it is alive", "while it dies"])
def test_a_write_answers_after_the_longest_wait_even_when_nothing_dies(run, monkeypatch, killed, longest_ms):
    monkeypatch.setattr(publisher, "APPLIED_MS_MAX", longest_ms)

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
            assert len(made.live("dns")) == 1

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


@pytest.mark.parametrize("kept", [1, 2, 3, 7, 1_000])
def test_however_short_the_tail_is_it_is_resumed_from(run, kept):
    class Short:
        """A feed of a thousand changes that has kept some."""

        def head(self):
            return 1_000

        def tail(self, after, bytes_max):
            wanted = range(after + 1, min(after + 3, 1_000) + 1)  # a little at a time
            return None if after < 1_000 - kept else [Change(n, "z", "name", "a", b"") for n in wanted]

    async def test(made, store):
        made._feed = Short()
        assert made._recent()[-1].sequence == 1_000

    run(test)


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


def test_a_peer_that_has_hung_up_is_not_heard():
    """What it said is no longer true: it may serve by now, and come back to say so."""
    ours, theirs = socket.socketpair()
    theirs.sendall(frame(HELLO))
    theirs.close()

    with ours, pytest.raises(peer.NotOurs):
        peer.identify(ours)


@pytest.mark.parametrize(("pid", "is_ours"), [(-1, False), (0, False), (1, True)])
def test_a_peer_of_another_namespace_has_no_number(monkeypatch, pid, is_ours):
    monkeypatch.setattr(peer, "_open", lambda pid: os.memfd_create("pidfd"))

    class Told(socket.socket):
        """The kernel's answers."""

        def getsockopt(self, level, option, length=0):
            if option == socket.SO_PEERCRED:
                return peer._CREDENTIALS.pack(pid, os.getuid(), 0)
            raise OSError(92, "Protocol not available")

    ours, theirs = socket.socketpair()
    with Told(fileno=ours.detach()) as told, theirs:
        if is_ours:
            found, descriptor = peer.identify(told)
            os.close(descriptor)
            assert found == pid
        else:
            with pytest.raises(peer.NotOurs):
                peer.identify(told)


@pytest.mark.parametrize("option", [peer.SO_PEERPIDFD, -1], ids=["with", "without"])
def test_a_peer_is_found_with_and_without_the_kernels_help(option, monkeypatch):
    monkeypatch.setattr(peer, "SO_PEERPIDFD", option)
    ours, theirs = socket.socketpair()
    with ours, theirs:
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


@pytest.mark.parametrize("seed", range(20))
def test_waiters_keep_their_order_when_some_of_them_give_up(seed):
    async def main():
        loop, waiters, chance = asyncio.get_running_loop(), Waiters(), Random(seed)
        futures = {n: (loop.create_future(), chance.randrange(100)) for n in chance.sample(range(50), 50)}
        for n, (future, deadline_ms) in futures.items():
            waiters.add(n, deadline_ms, future)

        overdue = waiters.release_overdue(60)
        waiters.release_upto(30)

        done = {n for n, (future, _) in futures.items() if future.done()}
        assert overdue == sum(deadline_ms <= 60 for _, deadline_ms in futures.values())
        assert done == {n for n, (_, deadline_ms) in futures.items() if deadline_ms <= 60 or n <= 30}
        assert len(waiters) == 50 - len(done)
        waiters.release_all()
        assert all(future.done() for future, _ in futures.values())

    asyncio.run(main())
