"""Objects leave memory with their slot: idle ones at once, busy ones when they have ended, or by a reset."""

import asyncio

import pytest

from edgestead import StatefulObject
from edgestead.objects import ids
from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime.calls import error_of, pack_arguments
from edgestead.objects.runtime.moving import Moving
from tests.objects.nodes import run

NOTHING = pack_arguments((), {})


class Counter(StatefulObject):
    going_on: asyncio.Event

    async def add(self):
        n = await self.ctx.storage.get("n", default=0) + 1
        await self.ctx.storage.put("n", n)
        return n

    async def wait(self):
        type(self).going_on = asyncio.Event()
        await self.going_on.wait()


def of_slot(slot):
    refs = (ids.from_name("Counter", str(number)) for number in range(100))
    return next(ref for ref in refs if slot_of(ref.class_name, ref.id) == slot)


def slot_of(class_name, object_id):
    return int(object_id[0], 16) % 2


A, B = of_slot(0), of_slot(1)


@pytest.fixture
def play(logs):
    def play(scene):
        async def script(node):
            await scene(node, Moving(node, slot_of))

        run(logs, script, Counter)

    return play


def test_idle_objects_of_a_slot_leave_memory_and_no_others(play):
    async def scene(node, moving):
        for ref in (A, B):
            await node.call(ref, "add", NOTHING)

        assert moving.let_go(0)

        assert node.live() == [B]
        assert (await node.call(A, "add", NOTHING)).ok

    play(scene)


def test_a_busy_object_keeps_its_slot_until_it_has_ended(play):
    async def scene(node, moving):
        waiting = asyncio.create_task(node.call(A, "wait", NOTHING))
        while not hasattr(Counter, "going_on"):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert not moving.let_go(0)
        assert moving.let_go(1)

        Counter.going_on.set()
        assert (await waiting).ok

        assert moving.let_go(0)
        assert node.live() == []

    play(scene)


def test_what_runs_in_a_slot_that_others_may_have_is_reset(play):
    async def scene(node, moving):
        waiting = asyncio.create_task(node.call(A, "wait", NOTHING))
        while not hasattr(Counter, "going_on"):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

        moving.abandon([0])

        reply = await waiting
        assert isinstance(error_of(reply), ObjectReset)
        while not moving.let_go(0):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    play(scene)


@pytest.fixture(autouse=True)
def forget():
    yield
    if hasattr(Counter, "going_on"):
        del Counter.going_on


def test_of_objects_that_have_left_memory_nothing_is_remembered(play):
    async def scene(node, moving):
        for end in (node.evict, lambda key: node.find_live(A).reset(ObjectReset("over"))):
            await node.call(A, "add", NOTHING)
            assert moving._keys == {0: {("Counter", A.id): None}}
            end(("Counter", A.id))
            await asyncio.sleep(1)
            assert moving._keys == {}
        await node.visit(B, lambda engine: asyncio.sleep(0))
        assert moving._keys == {}

    play(scene)
