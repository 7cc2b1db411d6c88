"""Visits: the way to an object's storage that does not go through its class."""

import asyncio
import errno
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects import ids
from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.node import Node
from edgestead.objects.values.codec import decode, encode
from tests.objects.logs import Logs
from tests.objects.nodes import run
from tests.objects.test_log_faults import fail_next

REF = ids.from_name("Plain", "a")


class Plain(StatefulObject):
    async def put(self, value: Any) -> None:
        await self.ctx.storage.put("key", value)

    async def get(self) -> Any:
        return await self.ctx.storage.get("key")

    async def hold(self) -> None:
        async with self.ctx.storage.transaction():
            self.ctx.storage.put("key", "half")
            await asyncio.sleep(1)
            self.ctx.storage.put("key", "whole")

    async def wait(self) -> None:
        await asyncio.sleep(60)


async def put_seven(engine: Engine) -> str:
    engine.put("key", encode(7))
    return "put"


async def look(engine: Engine) -> Any:
    value = engine.get("key")
    return None if value is None else decode(value)


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_what_a_visit_wrote_is_durable_when_it_is_over(logs: Logs, live: bool, seed: int) -> None:
    async def before(node: Node) -> None:
        if live:
            await node.env.Plain["a"].put(1)
        assert await node.visit(REF, put_seven) == "put"

    async def after(node: Node) -> None:
        assert await node.env.Plain["a"].get() == 7

    run(logs, before, Plain, seed=seed, close=False)
    logs.power_cut(seed)
    run(logs, after, Plain)


def test_of_an_object_that_is_not_in_memory_only_the_storage_is_opened(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.visit(REF, put_seven)
        assert node.live_count == 0

    run(logs, script, Plain)


def test_calls_wait_until_a_visit_is_over(logs: Logs) -> None:
    async def script(node: Node) -> None:
        order = []

        async def slow(engine: Engine) -> None:
            await asyncio.sleep(1)
            engine.put("key", encode("visited"))
            order.append("visit")

        async def call() -> None:
            assert await node.env.Plain["a"].get() == "visited"
            order.append("call")

        async def other() -> None:
            await asyncio.sleep(0.1)
            assert await node.visit(REF, look) == "visited"
            order.append("other")

        await asyncio.gather(node.visit(REF, slow), call(), other())
        assert (order[0], sorted(order)) == ("visit", ["call", "other", "visit"])

    run(logs, script, Plain)


def test_a_visit_sees_whole_transactions_of_a_living_object(logs: Logs) -> None:
    async def script(node: Node) -> None:
        holding = asyncio.get_running_loop().create_task(node.env.Plain["a"].hold())
        await asyncio.sleep(0.5)
        assert await node.visit(REF, look) == "whole"
        await holding

    run(logs, script, Plain)


def test_a_visit_that_ends_the_life_resets_callers_and_has_the_storage_alone(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.env.Plain["a"].put(1)
        waiting = asyncio.get_running_loop().create_task(node.env.Plain["a"].wait())
        await asyncio.sleep(0.1)
        await node.visit(REF, put_seven, ends="the operator came")
        with pytest.raises(ObjectReset, match="the operator came"):
            await waiting
        assert node.live_count == 0
        assert await node.env.Plain["a"].get() == 7

    run(logs, script, Plain)


@pytest.mark.parametrize("live", [True, False])
def test_a_visit_that_fails_raises_and_the_object_goes_on(logs: Logs, live: bool) -> None:
    class Own(Exception):
        """No codec carries it."""

    async def fail(engine: Engine) -> None:
        raise Own("words")

    async def script(node: Node) -> None:
        if live:
            await node.env.Plain["a"].put(1)
        with pytest.raises(Own, match="words"):
            await node.visit(REF, fail)
        await node.env.Plain["a"].put(2)
        assert await node.visit(REF, look) == 2

    run(logs, script, Plain)


@pytest.mark.parametrize("seed", range(5))
def test_a_visit_that_fails_behind_a_write_is_over_when_the_log_has_decided_that(
    logs: Logs, seed: int
) -> None:
    """Nobody goes on from what is refused then: the positions would have a gap."""

    async def fail(engine: Engine) -> None:
        engine.put("key", encode(7))
        fail_next(logs, "write", "segment-", errno.ENOSPC)
        raise ValueError("wrong")

    async def script(node: Node) -> None:
        await node.env.Plain["a"].put(1)
        await node.visit(REF, look, ends="for the visit")
        others = [asyncio.create_task(node.env.Plain[name].wait()) for name in "bc"]
        await asyncio.sleep(0.1)  # while there are some, the log waits for the disk on a thread
        with pytest.raises(ValueError, match="wrong"):
            await node.visit(REF, fail)
        found = await node.env.Plain["a"].get()
        assert found == 1 or logs.durability == "sqlite", "what the log refused"
        await asyncio.sleep(1)
        logs.disk.fails_on = lambda operation, path: False  # its write may have come to nothing
        await node.env.Plain["a"].put(2)
        for other in others:
            other.cancel()

    async def after(node: Node) -> None:
        assert await node.env.Plain["a"].get() == 2

    run(logs, script, Plain, seed=seed, close=False)
    logs.killed()
    run(logs, after, Plain)


def test_a_node_that_closes_takes_no_visits(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.close()
        with pytest.raises(ObjectReset, match="closing"):
            await node.visit(REF, look)

    run(logs, script, Plain, close=False)
