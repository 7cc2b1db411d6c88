"""Tasks that objects' code starts, time-outs, blocks that wait: nobody gets into another's transaction."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects.errors import TransactionError
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.node import Node
from edgestead.testing import ObjectNode
from tests.objects.logs import Logs
from tests.objects.nodes import run


class Ledger(StatefulObject):
    storage = "sql"

    async def note(self, key: str) -> None:
        await asyncio.sleep(1)
        await self.ctx.storage.put(key, True)

    async def gathered(self) -> None:
        await asyncio.gather(self.note("a"), self.note("b"))

    async def grouped(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.note("a"))
            group.create_task(self.note("b"))

    async def timed_out(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.sleep(5)
        await self.ctx.storage.put("a", True)
        await self.ctx.storage.put("b", True)

    async def begun_late(self) -> None:
        await asyncio.sleep(0.4999)
        await asyncio.gather(*(asyncio.create_task(self.write(key)) for key in "ab"))

    async def write(self, key: str) -> None:
        await self.ctx.storage.put(key, True)

    async def undone(self) -> None:
        """A transaction that is open from 0.5 s to 2.5 s, and then rolled back."""
        await asyncio.sleep(0.5)
        async with self.ctx.storage.transaction() as txn:
            await txn.put("undone", True)
            await asyncio.sleep(2)
            txn.rollback()

    async def blocked_with_tasks(self) -> list[str]:
        order: list[str] = []

        async def closure() -> None:
            await asyncio.gather(*(self.step(order, name) for name in "xy"))

        await self.ctx.block_concurrency_while(closure)
        return order

    async def step(self, order: list[str], name: str) -> None:
        await asyncio.sleep(1)
        order.append(name)

    async def waits_inside(self) -> None:
        with self.ctx.storage.transaction_sync():
            await self.ctx.storage.put("inside", True)  # does not really wait
            await asyncio.sleep(1)

    async def task_waits_inside(self) -> None:
        await asyncio.create_task(self.waits_inside())

    async def catches_and_goes_on(self) -> str:
        with self.ctx.storage.transaction_sync():
            await self.ctx.storage.put("kept", True)
            with contextlib.suppress(TransactionError):
                await asyncio.sleep(1)
        await asyncio.sleep(1)
        return "waited behind the block"

    async def abort_blocked(self) -> None:
        async def closure() -> None:
            await asyncio.sleep(1)
            self.ctx.abort("over")

        await self.ctx.block_concurrency_while(closure)

    async def keys(self) -> list[str]:
        return list(await self.ctx.storage.list())


WAITING = ["gathered", "grouped", "timed_out", "begun_late"]


@pytest.mark.parametrize("method", WAITING)
@pytest.mark.parametrize("seed", range(3))
def test_what_was_answered_is_in_nobodys_transaction(logs: Logs, method: str, seed: int) -> None:
    async def script(node: Node) -> list[str]:
        one = node.env.Ledger["one"]
        await asyncio.gather(getattr(one, method)(), one.undone())
        keys: list[str] = await one.keys()
        return keys

    assert run(logs, script, Ledger, seed=seed) == ["a", "b"]


def test_tasks_inside_a_block_belong_to_it(objects: ObjectNode) -> None:
    assert sorted(objects.Ledger["one"].blocked_with_tasks()) == ["x", "y"]


@pytest.mark.parametrize("method", ["waits_inside", "task_waits_inside"])
def test_a_synchronous_block_that_waits_is_refused_and_rolled_back(objects: ObjectNode, method: str) -> None:
    async def both(env: Any) -> list[Any]:
        one = env.Ledger["one"]
        return list(await asyncio.gather(getattr(one, method)(), one.write("a"), return_exceptions=True))

    refused, written = objects.run(both)

    assert isinstance(refused, TransactionError)
    assert "transaction()" in str(refused)
    assert written is None
    assert objects.Ledger["one"].keys() == ["a"]


def test_behind_a_synchronous_block_one_may_wait_again(objects: ObjectNode) -> None:
    assert objects.Ledger["one"].catches_and_goes_on() == "waited behind the block"
    assert objects.Ledger["one"].keys() == ["kept"]


def test_a_reset_lets_go_who_is_held_at_the_gate(objects: ObjectNode) -> None:
    async def both(env: Any) -> list[Any]:
        one = env.Ledger["one"]
        calls = (one.abort_blocked(), one.gathered(), one.keys())
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert [str(error) for error in objects.run(both)] == ["over"] * 3


def test_a_task_with_a_context_of_its_own_is_held_by_nobody(logs: Logs) -> None:
    """The platform's: an alarm rings though the object that set the timer is in a transaction."""
    rang: list[float] = []

    class Bell(StatefulObject):
        async def alarm(self) -> None:
            rang.append(asyncio.get_running_loop().time())

    class Setter(StatefulObject):
        now_ms: Callable[[], int]

        async def alarm(self) -> None:
            pass

        async def set_alarm(self) -> None:
            await self.ctx.storage.set_alarm(self.now_ms() + 100)

        async def block(self) -> None:
            async with self.ctx.storage.transaction():
                await asyncio.sleep(5)

    async def script(node: Node) -> None:
        Setter.now_ms = staticmethod(node._now_ms)
        began = asyncio.get_running_loop().time()
        setter = node.env.Setter["a"]
        await setter.set_alarm()
        blocking = asyncio.get_running_loop().create_task(setter.block())
        await Operations(node).set_alarm(node.env.Bell.id_from_name("b")._ref, node._now_ms() + 200)
        await blocking
        assert [round(at - began, 1) for at in rang] == [0.2]

    run(logs, script, Bell, Setter)
