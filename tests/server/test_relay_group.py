"""A relay's group while a new file comes into place: leases begin and end, notes are due, the relay ends."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from contextlib import closing
from types import SimpleNamespace

import pytest

from edgestead.feed import peer
from edgestead.feed.follower import Position
from edgestead.feed.protocol import Granted, Serve, Snapshot, SnapshotPart, frame, frame_changes
from edgestead.feed.publisher import Expected
from edgestead.server.relay import group
from edgestead.server.relay.file import RelayFile
from edgestead.store.changes import Change

FEED = "the-feed"
KINDS = ("zone",)
LEASE_MS = 5_000
SECONDS_MAX = 300
SELECT = "SELECT doc FROM feed_state"


def documents(file):
    return [bytes(doc) for (doc,) in file.store.read(lambda tx: tx.rows(SELECT))]


def snapshot(sequence):
    """The messages of a snapshot with one document that says its sequence."""
    octets = frame_changes([Change(sequence, "z", "zone", "a", b"%d" % sequence)])
    return Snapshot(FEED, sequence), SnapshotPart(octets, True)


def put(file, sequence):
    file.begin()
    file.load([Change(sequence, "z", "zone", "a", b"%d" % sequence)]).result(SECONDS_MAX)
    file.swap(Position(FEED, sequence))


class Held:
    """Stands before a function: who calls it waits until `let_go`."""

    def __init__(self, function):
        self.function, self.called, self.free = function, threading.Event(), threading.Event()

    def __call__(self, *arguments):
        self.called.set()
        assert self.free.wait(SECONDS_MAX)
        return self.function(*arguments)

    async def wait(self):
        assert await asyncio.to_thread(self.called.wait, SECONDS_MAX)

    def let_go(self):
        self.free.set()


def play(monkeypatch, folder, test, *, stops=False, addresses=lambda: ()):
    """Run a test with a group whose file is at sequence 1. It has no connection: the test says what comes."""

    async def main():
        file = RelayFile(folder, "edge", kinds=KINDS)
        put(file, 1)
        made = []

        class Counted(group.Following):
            def __init__(self, *arguments, **more):
                super().__init__(*arguments, **more)
                made.append(self)

        monkeypatch.setattr(group, "Following", Counted)
        clock = [0.0]
        monkeypatch.setattr(group, "boot_ms", lambda: clock[0])
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "feed.sock"))
            listener.listen()
            one = group.GroupRelay(
                *("edge", KINDS, file, listener),
                SimpleNamespace(peer=SimpleNamespace(name="ams-1")),
                addresses,
                stops=stops,
                stale_seconds=3_600,
                zones_expire=False,
                expected=(),
                memories={},
                patience={},
                release="",
                region="",
            )
            held = []
            lab = SimpleNamespace(group=one, relay=one.relay, file=file, made=made, clock=clock, held=held)
            await running(one, test(lab), held)

    asyncio.run(main())


async def running(one, test, held):
    """Raises what ended the relay, or the test."""
    tasks = [asyncio.create_task(one.run()), asyncio.create_task(test)]
    try:
        done, _ = await asyncio.wait(tasks, timeout=SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
        assert done
        for task in done:
            task.result()
    finally:
        for function in held:
            function.let_go()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        one.close()


def hold(lab, function):
    lab.held.append(Held(function))
    return lab.held[-1]


def hear(lab, *messages):
    for message in messages:
        lab.relay.received(frame(message)[4:])


def leased(lab):
    lab.relay.connected()
    hear(lab, Granted(lab.relay._number, LEASE_MS))


async def until(condition):
    while not condition():  # noqa: ASYNC110 - it is told to nobody
        await asyncio.sleep(0.01)


async def live(lab):
    """The processes here may follow, at sequence 1."""
    leased(lab)
    hear(lab, Serve(1))
    await until(lambda: lab.relay.is_open)


def publishers(lab):
    """Those that publish, as the stores that they do it from."""
    return [one._feed for one in lab.made if not one._closed]


def test_who_may_answer_while_a_new_file_comes_into_place_follows_that_alone(tmp_path, monkeypatch):
    async def test(lab):
        lab.relay.connected()
        lab.group._file.swap = held = hold(lab, lab.file.swap)
        hear(lab, *snapshot(2))
        await held.wait()
        lab.relay.disconnected()
        lab.clock[0] += 2_000
        lab.relay.tick()
        assert lab.relay.is_open
        assert publishers(lab) == []

        held.let_go()
        await until(lambda: publishers(lab))
        assert publishers(lab) == [lab.file.store.feed]
        assert documents(lab.file) == [b"2"]

    play(monkeypatch, tmp_path, test)


def test_two_new_files_in_a_row_are_followed_when_the_second_is_there(tmp_path, monkeypatch):
    async def test(lab):
        await live(lab)
        lab.group._file.swap = held = hold(lab, lab.file.swap)
        hear(lab, *snapshot(2), *snapshot(3))
        await held.wait()
        held.let_go()
        await until(lambda: publishers(lab))
        assert publishers(lab) == [lab.file.store.feed]
        assert len(lab.made) == 2
        assert documents(lab.file) == [b"3"]

    play(monkeypatch, tmp_path, test)


def test_a_lease_that_ends_while_a_new_file_comes_into_place_is_followed_by_another_connection(
    tmp_path, monkeypatch
):
    async def test(lab):
        await live(lab)
        lab.group._file.swap = held = hold(lab, lab.file.swap)
        hear(lab, *snapshot(2))
        await held.wait()
        lab.relay.disconnected()
        lab.clock[0] += LEASE_MS
        lab.relay.tick()
        assert not lab.relay.may_connect
        held.let_go()
        await until(lambda: lab.relay.may_connect)

    play(monkeypatch, tmp_path, test, stops=True)


def test_processes_whose_end_is_awaited_when_a_new_file_is_there_are_awaited_once(tmp_path, monkeypatch):
    monkeypatch.setattr(peer, "kill", lambda pidfd: None)  # it does not die at once

    async def test(lab):
        await live(lab)
        lab.group._released.append(Expected(process.pid, os.pidfd_open(process.pid), "edge"))
        lab.clock[0] += LEASE_MS
        lab.relay.tick()
        hear(lab, *snapshot(2))
        await until(lambda: not lab.group._swaps)
        assert documents(lab.file) == [b"2"]
        assert lab.relay.is_shutting
        process.stdin.close()
        await until(lambda: not lab.relay.is_shutting)

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        play(monkeypatch, tmp_path, test, stops=True)


def test_a_lease_is_noted_when_the_new_file_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(group, "NOTE_SECONDS", 0.0)
    monkeypatch.setattr(group, "TICK_SECONDS", 0.001)

    async def test(lab):
        await live(lab)
        closed = lab.file.store
        closed.close = held = hold(lab, closed.close)
        ticks, enough = [], asyncio.Event()
        tick = lab.relay.tick

        def counted():
            ticks.append(1)
            if len(ticks) == 10:
                enough.set()
            tick()

        hear(lab, *snapshot(2))
        await held.wait()
        closed.write = refused
        lab.relay.tick = counted
        await enough.wait()
        held.let_go()
        await until(lambda: not lab.group._swaps)

    play(monkeypatch, tmp_path, test)


def test_a_lease_that_is_over_when_the_new_file_is_there_is_not_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(group, "NOTE_SECONDS", 0.0)
    monkeypatch.setattr(group, "TICK_SECONDS", 0.001)

    async def test(lab):
        await live(lab)
        seconds = [1_000]
        lab.file._now_s = lambda: seconds[0]
        closed = lab.file.store
        closed.close = held = hold(lab, closed.close)
        hear(lab, *snapshot(2))
        await held.wait()
        await until(lambda: not lab.group._work.empty())
        lab.clock[0] += LEASE_MS
        seconds[0] += 5
        held.let_go()
        await until(lambda: not lab.group._swaps and lab.group._work.empty())
        lab.file.store.write(lambda tx: None).result(SECONDS_MAX)  # behind what was written before
        assert lab.file.seconds_since_lease == 5

    play(monkeypatch, tmp_path, test)


def refused(_):
    raise AssertionError("the store is closed")


def unreadable():
    raise PermissionError(13, "not this node's")


@pytest.mark.parametrize("addresses", [unreadable, lambda: ()], ids=["unreadable", "none"])
def test_a_node_that_knows_no_control_node_says_so_and_goes_on(tmp_path, monkeypatch, caplog, addresses):
    asked = []

    def counted():
        asked.append(1)
        return addresses()

    async def test(_):
        await until(lambda: len(asked) > 2)

    play(monkeypatch, tmp_path, test, addresses=counted)
    assert len([one for one in caplog.messages if "control node" in one]) == 1


def test_a_new_file_that_is_on_its_way_when_the_relay_ends_comes_into_place(tmp_path):
    file = RelayFile(tmp_path, "edge", kinds=KINDS)
    put(file, 1)
    file.begin()
    file.load([Change(2, "z", "zone", "a", b"2")])
    aside, good = file._aside, file._aside.close
    aside.close = held = Held(good)
    swapping = threading.Thread(target=file.swap, args=(Position(FEED, 2),))
    swapping.start()
    assert held.called.wait(SECONDS_MAX)

    aside.close = good
    ending = threading.Thread(target=file.close)
    ending.start()
    ending.join(1)  # it would not have waited
    held.let_go()
    swapping.join()
    ending.join()
    with closing(RelayFile(tmp_path, "edge", kinds=KINDS)) as again:
        assert again.position == (FEED, 2)
        assert documents(again) == [b"2"]
