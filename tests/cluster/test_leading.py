"""Whom a leader lets follow, and what it keeps in memory for them."""

import asyncio
from types import SimpleNamespace

import pytest

from edgestead.cluster.office import State
from edgestead.cluster.seat import Seat
from edgestead.server.cluster import leading as module
from edgestead.server.cluster.frames import Elsewhere, Follow, Reload
from edgestead.server.cluster.leading import Leading
from edgestead.server.control import store as control_store
from edgestead.store.control import Committed
from edgestead.store.controllog import Entry, Kind, Position
from tests.support.memory_log import MemoryControlLog

LEADERS = Position(3, b"three")


def entry(sequence, body=b"x" * 100):
    return Entry(sequence, Kind.CHANGES, 0, b"chain %d" % sequence, 0, body)


def make(log=None):
    seat = Seat(lambda: 0.0)
    seat.office.state, seat.office.number = State.LEADING, 1
    return Leading(seat, SimpleNamespace(position=LEADERS), log or MemoryControlLog(), lambda: 0.0)


@pytest.mark.parametrize(
    ("chain", "answer"),
    [(b"chain 4", Elsewhere()), (b"of a lost history", Reload()), (b"", Reload())],
    ids=["landed", "lost", "none"],
)
def test_a_copy_that_is_ahead_of_the_leader_is_loaded_again_only_where_the_log_has_another_entry(
    chain, answer
):
    """A follower that reads the log in the database may know of an append before the leader does."""
    log = MemoryControlLog()
    log.entries[4] = entry(4)

    assert asyncio.run(make(log)._refusal(Follow(2, 4, chain))) == answer


def test_newest_entries_stay_in_memory_however_many_there_were(monkeypatch):
    monkeypatch.setattr(module, "RECENT_MAX", 10)
    monkeypatch.setattr(module, "RECENT_BYTES_MAX", 1_500)
    made = make()
    for sequence in range(1, 101):
        made.appended(entry(sequence))
    assert [one.sequence for one in made._recent] == list(range(91, 101))

    made.appended(entry(101, b"y" * 800))

    assert sum(len(one.body) for one in made._recent) <= 1_500
    assert len(made._recent) == 8


def waited(upto, now_ms, *, leads=True):
    """What becomes of a write that waits for entry 3, when every member has `upto`, and so late."""
    times = iter([0.0, now_ms])

    async def main():
        made = make()
        made._now_ms = lambda: next(times)
        made._seat.members = members = SimpleNamespace(applied=2, numbers=[2])
        write = asyncio.create_task(made.replicated(3))
        await asyncio.sleep(0)
        assert made._seat.wanted == 3
        members.applied = upto
        if not leads:
            made._seat.office.state = State.OUTSIDE
        made.settle()
        await asyncio.sleep(0)
        if not write.done():
            write.cancel()
            return "waits"
        return "written" if write.exception() is None else type(write.exception()).__name__

    return asyncio.run(main())


def test_a_write_waits_for_every_member_and_no_longer_than_may_be():
    assert waited(upto=2, now_ms=9_999) == "waits"
    assert waited(upto=3, now_ms=20_000) == "written"
    assert waited(upto=2, now_ms=10_000) == "Unknown"
    assert waited(upto=3, now_ms=0, leads=False) == "Unknown"


def test_a_write_waits_for_its_own_entry_and_not_for_those_that_came_meanwhile(monkeypatch):
    """While the processes of its own node apply it, later groups are committed."""
    asked = []

    class Others:
        newest = 7

        def newest_entry(self):
            return self.newest

        async def replicated(self, entry):
            asked.append(entry)

    class Writes:
        def __init__(self, store, barrier):
            pass

        async def commit(self, fn):
            return Committed("made", 12, 11)

        async def applied(self, committed):
            Others.newest = 9

    async def main():
        store = SimpleNamespace(read=None, read_one=None, on_group=lambda listener: None)
        data = control_store.ControlData(store, None, SimpleNamespace(add=lambda slot: None), others=Others())
        return await data.write(lambda tx: "made")

    monkeypatch.setattr(control_store, "Writes", Writes)
    assert asyncio.run(main()) == "made"
    assert asked == [7]


@pytest.mark.parametrize("after", [0, 1, 6, 7, 8])
def test_of_the_newest_entries_those_are_sent_that_a_follower_has_not(after, monkeypatch):
    monkeypatch.setattr(module, "RECENT_MAX", 6)
    log = MemoryControlLog()
    log.entries = {sequence: entry(sequence) for sequence in range(1, 9)}
    made = make(log)
    made._store.position = Position(8, b"chain 8")
    for sequence in range(1, 9):
        made.appended(entry(sequence))

    found = asyncio.run(made._after(after))

    assert [one.sequence for one in found] == list(range(after + 1, 9))
