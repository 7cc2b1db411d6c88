"""A consumer's two ends of the socket, on a thread and on a loop, and control driven by hand at the other."""

import asyncio
import os
import socket
import threading
from contextlib import contextmanager

import pytest

from edgestead.feed.follower import Follower, Position
from edgestead.feed.follower_loop import LoopFollower
from edgestead.feed.follower_thread import ThreadFollower
from edgestead.feed.protocol import (
    Ack,
    Changes,
    Frames,
    Register,
    Serve,
    Snapshot,
    decode,
    frame,
    frame_changes,
)
from edgestead.store.changes import Change
from tests.descriptors import left_open, open_now

SECONDS_MAX = 300


class Served:
    """What a consumer shows, by key; `bug` is a document that it cannot take."""

    def __init__(self):
        self.documents = {}

    def begin(self):
        self.documents = {}

    def load(self, changes):
        self.apply(changes)

    def swap(self):
        pass

    def apply(self, changes):
        for change in changes:
            if change.doc == b"bug":
                raise LookupError(change.key)
            self.documents[change.key] = change.doc


class OnThread:
    def __init__(self, address, follower):
        self.follower, self.failure = ThreadFollower(address, follower), None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            self.follower.run()
        except LookupError as error:
            self.failure = error

    def may_serve(self, seconds):
        return self.follower.wait_until_may_serve(seconds)

    def end(self):
        self.follower.stop()
        self.thread.join(SECONDS_MAX)
        assert not self.thread.is_alive()


class OnLoop:
    def __init__(self, address, follower):
        self.failure, self.made = None, threading.Event()
        self.arguments = address, follower
        self.thread = threading.Thread(target=asyncio.run, args=(self.main(),))
        self.thread.start()
        assert self.made.wait(SECONDS_MAX)

    async def main(self):
        self.loop = asyncio.get_running_loop()
        self.follower = LoopFollower(*self.arguments)
        self.task = asyncio.create_task(self.follower.run())
        self.made.set()
        try:
            await self.task
        except asyncio.CancelledError:
            pass
        except LookupError as error:
            self.failure = error

    def may_serve(self, seconds):
        waiting = asyncio.run_coroutine_threadsafe(self.follower.wait_until_may_serve(), self.loop)
        try:
            waiting.result(seconds)
        except TimeoutError:
            waiting.cancel()
            return False
        return True

    def end(self):
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(SECONDS_MAX)
        assert not self.thread.is_alive()


HOWS = {"thread": OnThread, "loop": OnLoop}


class Control:
    """The other end: it says what a test wants, and hears what is said."""

    def __init__(self, connection):
        self.connection, self.frames, self.heard = connection, Frames(), []
        connection.settimeout(SECONDS_MAX)

    def say(self, *messages, descriptors=()):
        socket.send_fds(self.connection, [b"".join(map(frame, messages))], descriptors)

    def hear(self):
        while not self.heard:
            data = self.connection.recv(65_536)
            assert data, "the consumer hung up"
            self.heard += map(decode, self.frames.feed(data))
        return self.heard.pop(0)

    def gone(self):
        """Whether the consumer has closed the connection."""
        return self.connection.recv(1) == b""

    def snapshot(self, sequence, **documents):
        changes = [Change(1, "z", "name", key, doc) for key, doc in documents.items()]
        descriptor = os.memfd_create("test")
        os.write(descriptor, frame_changes(changes))
        self.say(Snapshot("feed", sequence), descriptors=[descriptor])
        os.close(descriptor)

    def change(self, sequence, key, doc):
        self.say(Changes(sequence - 1, sequence, (Change(sequence, "z", "name", key, doc),)))


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(SECONDS_MAX)
        made.bind(str(tmp_path / "feed.sock"))
        made.listen()
        yield made


@pytest.fixture
def accept(listener):
    @contextmanager
    def accepting():
        connection, _ = listener.accept()
        with connection:
            yield Control(connection)

    return accepting


@pytest.fixture(params=HOWS)
def following(request, listener):
    """Starts to follow; gives what runs and what it shows."""
    running = []

    def start(how=request.param, **position):
        served = Served()
        follower = Follower(served, group="dns", name="dns-0", **position)
        running.append(HOWS[how](listener.getsockname(), follower))
        return running[-1], served

    yield start
    for one in running:
        one.end()


def joined(control):
    """Through the whole joining: register, snapshot, serve."""
    assert control.hear() == Register("dns", "dns-0", (), "", -1, False)
    control.snapshot(5, a=b"1")
    assert control.hear() == Ack(5)
    control.say(Serve(5))


def test_a_consumer_loads_serves_and_applies(following, accept):
    running, served = following()
    assert running.follower.applied == -1
    assert not running.may_serve(0.01)

    with accept() as control:
        joined(control)
        assert running.may_serve(SECONDS_MAX)
        control.change(6, "a", b"2")
        assert control.hear() == Ack(6)

        assert served.documents == {"a": b"2"}
        assert running.follower.applied == 6


def test_when_control_goes_it_comes_back_with_what_it_has(following, accept):
    running, served = following()
    with accept() as control:
        joined(control)
        assert running.may_serve(SECONDS_MAX)

    for _ in range(2):
        with accept() as control:
            assert control.hear() == Register("dns", "dns-0", (), "feed", 5, True)
    assert served.documents == {"a": b"1"}


@pytest.mark.parametrize("nonsense", [b"\xff" * 9, frame(Ack(1))], ids=["no frame", "not for a consumer"])
def test_after_nonsense_it_begins_again(following, accept, nonsense):
    following()
    with accept() as control:
        control.hear()
        control.connection.sendall(nonsense)
        assert control.gone()

    with accept() as control:
        assert control.hear() == Register("dns", "dns-0", (), "", -1, False)


def test_where_no_control_is_it_waits_for_one(following, accept, listener, tmp_path):
    away = str(tmp_path / "away")
    os.rename(listener.getsockname(), away)
    following()
    threading.Event().wait(0.1)  # some attempts fail meanwhile

    os.rename(away, listener.getsockname())

    with accept() as control:
        assert isinstance(control.hear(), Register)


def test_a_bug_of_the_consumer_ends_it(following, accept):
    running, _ = following()
    with accept() as control:
        joined(control)
        control.change(6, "odd", b"bug")
        assert control.gone()

    running.thread.join(SECONDS_MAX)
    assert isinstance(running.failure, LookupError)


def test_nothing_stays_open(following, accept):
    before = open_now()
    running, _ = following()
    with accept() as control:
        control.hear()
        for sequence in (1, 2):
            control.snapshot(sequence, a=b"1")
            control.hear()
        running.end()
        assert control.gone()

    assert not left_open(before)


def test_what_arrives_in_many_pieces_is_applied(following, accept):
    _, served = following(position=Position("feed", 5))
    with accept() as control:
        assert control.hear().after == 5
        for byte in frame(Changes(5, 6, (Change(6, "z", "name", "a", b"2"),))):
            control.connection.sendall(bytes([byte]))
        assert control.hear() == Ack(6)
    assert served.documents == {"a": b"2"}


def test_a_great_deal_at_once_is_answered_in_order(following, accept):
    following(position=Position("feed", 0))
    with accept() as control:
        control.hear()
        for sequence in range(1, 101):
            control.change(sequence, f"{sequence}", bytes(2_000))
        assert [control.hear() for _ in range(100)] == [Ack(sequence) for sequence in range(1, 101)]


@pytest.mark.parametrize("following", ["loop"], indirect=True)
def test_on_a_loop_whoever_waits_hears_that_control_went(following, accept):
    running, _ = following()
    with accept() as control:
        joined(control)
        assert running.may_serve(SECONDS_MAX)
        assert not running.follower.control_went.is_set()
        assert running.follower.position == Position("feed", 5)

    waiting = asyncio.run_coroutine_threadsafe(running.follower.control_went.wait(), running.loop)
    assert waiting.result(SECONDS_MAX)


# serving without control


@pytest.mark.parametrize("following", ["thread"], indirect=True)
@pytest.mark.parametrize("says", [True, False])
def test_who_serves_alone_has_hung_up_and_comes_back_as_one_that_serves(following, accept, says):
    running, _ = following()
    with accept() as control:
        assert control.hear().serving is False
        asked = []

        def may_serve():
            asked.append(control.gone())
            return says

        assert running.follower.serve_alone(may_serve) is says
        assert asked == [True], "nothing of us is on its way any more"

    assert running.may_serve(0) is says
    with accept() as control:
        assert control.hear() == Register("dns", "dns-0", (), "", -1, says)


@pytest.mark.parametrize("following", ["thread"], indirect=True)
def test_whoever_was_stopped_follows_no_more(following, accept, listener):
    running, _ = following()
    with accept() as control:
        control.hear()
        running.end()
        assert control.gone()

    listener.settimeout(0.2)
    with pytest.raises(TimeoutError):
        listener.accept()
    running.follower.stop()
