"""The two gates: what an event may not see of another one, and what leaves an object when."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects import limits
from edgestead.objects.errors import ObjectReset, StorageBroken
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.storage import Storage
from edgestead.testing import ObjectNode
from tests.objects.logs import Logs
from tests.objects.nodes import run, with_storage


class Page(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.seen: list[str] = []

    async def add(self) -> int:
        """Read, then write: the gates alone keep two callers apart."""
        total: int = await self.ctx.storage.get("total", default=0, allow_concurrency=False)
        await self.ctx.storage.list()
        await self.ctx.storage.put("total", total + 1)
        return total + 1

    async def see(self) -> list[str]:
        self.seen.append("event")
        return self.seen

    async def look_back(self) -> list[str]:
        self.seen.append("(")
        await self.ctx.storage.get_bookmark_for_time(self.now_ms())
        self.seen.append(")")
        return self.seen

    now_ms: Callable[[], int]

    async def write(self, key: str, unconfirmed: bool = False) -> str:
        await self.ctx.storage.put(key, True, allow_unconfirmed=unconfirmed)
        return key

    async def read(self, key: str) -> Any:
        return await self.ctx.storage.get(key)

    async def tell(self, name: str) -> None:
        await self.ctx.storage.put("told", True)
        await self.env.Page[name].write("heard")

    async def nest(self, depth: int) -> int:
        async def closure() -> int:
            return await self.nest(depth - 1) if depth else 0

        return await self.ctx.block_concurrency_while(closure) + 1


def fail_writes(logs: Logs, number: int = errno.ENOSPC) -> None:
    """From now on the log's next write fails."""
    logs.disk.fails_on = lambda operation, path: operation == "write" and "segment-" in path
    logs.disk.operations, logs.disk.fail_at, logs.disk.fail_errno = 0, 1, number


@pytest.mark.parametrize("seed", range(5))
def test_no_event_comes_between_a_read_and_a_write(logs: Logs, seed: int) -> None:
    async def script(node: Node) -> list[int]:
        return await asyncio.gather(*(node.env.Page["a"].add() for _ in range(10)))

    assert sorted(run(logs, script, Page, seed=seed)) == list(range(1, 11))


@pytest.mark.parametrize("seed", range(5))
def test_an_operation_that_really_waits_keeps_other_events_out(logs: Logs, seed: int) -> None:
    async def script(node: Node) -> list[str]:
        Page.now_ms = staticmethod(node._now_ms)
        page = node.env.Page["a"]
        await page.write("key")
        looking = asyncio.ensure_future(page.look_back())
        await asyncio.sleep(0)
        await asyncio.gather(looking, *(page.see() for _ in range(4)))
        seen: list[str] = await page.see()
        return seen

    seen = run(logs, script, Page, seed=seed)
    assert seen.index(")") == seen.index("(") + 1


def test_answers_leave_in_the_order_of_their_calls() -> None:
    called: list[int] = []
    left: list[int] = []

    async def script(env: Any) -> None:
        async def ask(number: int) -> None:
            page = env.Page["a"]
            for _ in range(number % 7):
                await asyncio.sleep(0)  # some come while the log is busy with earlier ones
            called.append(number)
            await (page.write(f"{number}") if number % 3 == 0 else page.read("0"))
            left.append(number)

        await asyncio.gather(*map(ask, range(30)))

    with ObjectNode(Page) as objects:
        objects.run(script)

    assert sorted(left) == list(range(30))
    assert left == called


@pytest.mark.parametrize("unconfirmed", [False, True])
def test_a_write_that_fails_resets_the_object_confirmed_or_not(logs: Logs, unconfirmed: bool) -> None:
    async def script(node: Node) -> None:
        page = node.env.Page["a"]
        await page.write("kept")
        fail_writes(logs)
        if unconfirmed:
            assert await page.write("lost", unconfirmed=True) == "lost"
            await asyncio.sleep(1)
            assert node.live() == [], "reset, although the reply had left"
        else:
            with pytest.raises(StorageBroken) as caught:
                await page.write("lost")
            assert (caught.value.reset, caught.value.retryable) == (True, True)
        logs.disk.fails_on = lambda operation, path: False
        assert (await page.read("kept"), await page.read("lost")) == (True, None)

    run(logs, script, Page)


def test_messages_behind_a_write_that_fails_are_never_sent(logs: Logs) -> None:
    async def script(node: Node) -> Any:
        await node.env.Page["a"].write("kept")
        fail_writes(logs)
        with pytest.raises(StorageBroken):
            await node.env.Page["a"].tell("b")
        logs.disk.fails_on = lambda operation, path: False
        await asyncio.sleep(1)
        return await node.env.Page["b"].read("heard")

    assert run(logs, script, Page) is None


def test_sync_waits_for_what_was_written_before_it(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("before", 1)
        synced = storage.sync()
        assert not synced.done()  # type: ignore[attr-defined]
        await synced
        assert storage.sync().done(), "nothing is left to wait for"  # type: ignore[attr-defined]

        earlier = storage.sync()
        await storage.put("after", 1)
        assert earlier.done(), "what came later is not its business"  # type: ignore[attr-defined]
        await earlier

    with_storage(logs, body)


def test_sync_raises_when_the_write_failed(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("a", 1, allow_unconfirmed=True)
        fail_writes(logs)
        with pytest.raises(StorageBroken):
            await storage.sync()
        with pytest.raises(StorageBroken):
            storage.sync()

    with_storage(logs, body)


def test_blocks_nest_only_so_deep(logs: Logs) -> None:
    async def script(node: Node) -> None:
        page = node.env.Page["a"]
        assert await page.nest(limits.NESTED_MAX - 1) == limits.NESTED_MAX
        with pytest.raises(ObjectReset, match="nested too deeply"):
            await page.nest(limits.NESTED_MAX)

    run(logs, script, Page)
