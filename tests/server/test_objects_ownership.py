"""Processes that have slots, against PostgreSQL: starting, ending, dying, giving, waiting for an owner."""

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from edgestead.cluster.placement import SLOTS, wanted
from edgestead.cluster.slots import State
from edgestead.objects.errors import Overloaded
from edgestead.postgres.connection import Link
from edgestead.postgres.slots import SlotClerk, drain
from edgestead.server.objects import ownership as module
from edgestead.server.objects.ownership import Ownership
from tests.support.postgres import postgres, postgres_binaries

__all__ = ["postgres", "postgres_binaries"]
PATIENCE_SECONDS = 300


def now_ms():
    return time.monotonic() * 1000


class Process:
    def __init__(self, dsn, node):
        self.busy, self.fatal, self.left, self.came = set(), [], set(), set()
        self.ownership = Ownership(
            SlotClerk(dsn, node, 0, f"{node}:1"),
            SlotClerk(dsn, node, 0, ""),
            now_ms=now_ms,
            is_quiet=lambda slot: slot not in self.busy,
            left=self.left.update,
            came=self.came.update,
            fatal=self.fatal.append,
        )
        self.slots = self.ownership.slots

    def die(self):
        """As it is for others: no statement of it is sent any more."""
        self.ownership._closing.set()
        self.ownership._rounds.cancel()


@asynccontextmanager
async def running(dsn, *nodes):
    async with AsyncExitStack() as stack:
        made = []
        for node in nodes:
            made.append(process := Process(dsn, node))
            await process.ownership.register()
            await process.ownership.open()
            stack.push_async_callback(process.ownership.close)
        yield made


async def until(fn):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not fn():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)


@pytest.fixture
def dsn(postgres):
    return postgres.emptied()


def play(scene):
    asyncio.run(scene())


def test_the_first_process_has_all_slots_and_another_gets_its_share(dsn):
    async def scene():
        async with running(dsn, "a") as (a,):
            assert len(a.slots.held) == SLOTS == len(a.came)
            async with running(dsn, "b") as (b,):
                await until(lambda: len(b.slots.held) >= 16)
                given = set(b.slots.held)
                targets = wanted(b.slots.workers.values())
                assert all(targets[slot] == b.slots.number for slot in given)
                assert given <= a.left
                owner = await a.ownership.owner(min(given))
                assert (owner.number, owner.address) == (b.slots.number, "b:1")
            await until(lambda: len(a.slots.held) == SLOTS)

    play(scene)


def test_a_process_that_dies_has_its_slots_taken_over_after_its_lease(dsn):
    async def scene():
        async with running(dsn, "a", "b") as (a, b):
            await until(lambda: b.slots.held)
            a.die()
            await until(lambda: len(b.slots.held) == SLOTS)

            assert not a.slots.may_answer()
            await until(b.slots.may_answer)  # it renews, also on a machine that stood still for a moment
            a.ownership._closing.clear()  # it was not dead, it stood still
            await asyncio.to_thread(a.ownership._renew)
            assert "is gone" in a.fatal[0]

    play(scene)


def test_a_fault_while_a_slot_is_given_does_not_end_the_looks_at_the_map(dsn):
    async def scene():
        async with running(dsn, "a") as (a,):
            faults = [ZeroDivisionError("of an object that leaves memory")] * 2

            def is_quiet(slot):
                if faults:
                    raise faults.pop()
                return True

            a.slots._is_quiet = is_quiet
            async with running(dsn, "b") as (b,):
                await until(lambda: a.ownership._rounds.done() or len(b.slots.held) >= 16)
                assert not a.ownership._rounds.done()
                assert faults == []

    play(scene)


def test_a_process_that_cannot_renew_any_more_ends(dsn):
    """Its lease would end, and it answer nothing, for ever."""

    async def scene():
        async with running(dsn, "a") as (a,):
            a.die()
            a.ownership._renewals.join()
            a.ownership._closing.clear()

            def answer(ask):
                raise ZeroDivisionError

            a.ownership._renewing.answer = answer
            await asyncio.to_thread(a.ownership._renew)
            assert "ZeroDivisionError" in a.fatal[0]

    play(scene)


def test_the_next_process_of_a_place_has_the_slots_without_a_wait(dsn):
    async def scene():
        async with running(dsn, "a") as (a,):
            a.die()
            async with running(dsn, "a") as (again,):
                assert len(again.slots.held) == SLOTS
                assert again.slots.number > a.slots.number

    play(scene)


def test_a_node_that_drains_has_no_slot_in_the_end(dsn, monkeypatch):
    monkeypatch.setattr("edgestead.cluster.slots.GIVE_MS", 0.1)
    monkeypatch.setattr("edgestead.cluster.slots.GIVING_MAX", 1_024)

    async def scene():
        async with running(dsn, "a", "b") as (a, b):
            link = Link(dsn)
            drain(link, "a")
            link.close()

            await until(lambda: a.slots.held == [] and len(b.slots.held) == SLOTS)

            await until(a.slots.may_answer)  # it ends what it does

    play(scene)


def test_slots_are_given_while_somebody_wants_one_look_after_the_other(dsn, monkeypatch):
    """As callers do whose object nobody has, or cannot be reached: each time they have a newer map."""
    monkeypatch.setattr("edgestead.cluster.slots.GIVE_MS", 1)
    monkeypatch.setattr("edgestead.cluster.slots.GIVING_MAX", 256)
    monkeypatch.setattr(module, "LOOK_SECONDS_MAX", PATIENCE_SECONDS)

    async def looks_on(process, is_enough):
        look, looks = process.slots.round, []

        def counted():
            yield from look()
            looks.append(0)

        process.slots.round = counted
        while not is_enough():
            before = len(looks)
            await process.ownership.looked()
            assert len(looks) > before

    async def scene():
        async with running(dsn, "a", "b") as (a, b):
            await asyncio.wait_for(looks_on(a, lambda: len(b.slots.held) > SLOTS / 4), PATIENCE_SECONDS)

    play(scene)


def test_a_call_to_a_slot_that_is_given_waits_and_hears_of_its_owner(dsn):
    async def scene():
        async with running(dsn, "a") as (a,):
            a.busy = set(range(SLOTS))
            async with running(dsn, "b") as (b,):
                await until(lambda: a.slots.is_giving)
                slot = next(slot for slot in range(SLOTS) if a.slots.state(slot) is State.GIVING)
                waiting = asyncio.create_task(a.ownership.owner(slot))
                a.busy.clear()
                a.ownership.ended()

                assert (await waiting).number in (a.slots.number, b.slots.number)

    play(scene)


def test_a_slot_that_nobody_has_is_waited_for_and_then_refused(dsn, monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS_MAX", 0.05)

    async def scene():
        async with running(dsn, "a") as (a,):
            with pytest.raises(Overloaded):
                await a.ownership.owner(0, since=a.slots.version + 1_000)

    play(scene)
