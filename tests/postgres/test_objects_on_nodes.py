"""Objects of users on nodes whose log is a cluster's database, one node after another."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects import ids
from edgestead.objects.errors import ObjectReset
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.classes import describe
from edgestead.objects.runtime.node import Node
from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.simulation import SimulatedLoop, simulate
from tests.postgres.test_objectlog import Cluster, Losing
from tests.support.postgres import Postgres

REF = ids.from_name("Ledger", "a")


class Ledger(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entries (n INTEGER PRIMARY KEY, text TEXT)")

    async def add(self, number: int) -> None:
        self.ctx.storage.sql.exec("INSERT INTO entries VALUES (?, ?)", number, "x" * 300)
        await self.ctx.storage.put("last", number)

    async def all(self) -> list[int]:
        rows = self.ctx.storage.sql.exec("SELECT n FROM entries ORDER BY n")
        return [row["n"] for row in rows]

    async def last(self) -> int | None:
        return await self.ctx.storage.get("last")

    async def ring_in(self, seconds: float) -> None:
        await self.ctx.storage.set_alarm(int((await self.now()) + seconds * 1_000))

    async def now(self) -> float:
        return asyncio.get_running_loop().now_ms()  # type: ignore[attr-defined, no-any-return]

    async def alarm(self) -> None:
        await self.ctx.storage.put("rang", (await self.ctx.storage.get("rang", default=0)) + 1)

    async def rang(self) -> int:
        return await self.ctx.storage.get("rang", default=0)


@pytest.fixture
def cluster(postgres: Postgres) -> Iterator[Cluster]:
    with closing(Cluster(postgres.emptied())) as made:
        yield made


Script = Callable[[Node], Coroutine[Any, Any, Any]]


def run(cluster: Cluster, script: Script, *, close: bool = False, **options: Any) -> Any:
    """Run a script with another node, which has taken the place of those before."""

    async def main(loop: SimulatedLoop) -> Any:
        loop.epoch_us += cluster.now_us
        cluster._now_us = loop.now_us  # type: ignore[method-assign]
        disk = SimulatedDisk()
        with disk.vfs(f"cluster-{id(disk)}") as vfs:
            log = cluster.take_over(files=disk, **options)
            node = Node(
                {"Ledger": describe(Ledger)},
                log.store,
                disk,
                now_ms=loop.now_ms,
                random=lambda length: bytes(length),
                vfs=vfs,
            )
            node.start()
            try:
                return await script(node)
            finally:
                cluster.now_us = loop.now_us()
                if close:
                    await node.close()
                for instance in list(node._live.values()):
                    if instance.engine.database is not None:
                        instance.engine.database.close()

    return simulate(main, 0)


@pytest.mark.parametrize("base_bytes", [-1, 1 << 20])
@pytest.mark.parametrize("close", [True, False])
def test_a_table_and_keys_come_along_from_node_to_node(
    cluster: Cluster, base_bytes: int, close: bool
) -> None:
    for first in range(0, 40, 10):

        async def script(node: Node, first: int = first) -> None:
            ledger = node.env.Ledger["a"]
            assert await ledger.all() == list(range(first))
            assert await ledger.last() == (first - 1 if first else None)
            for number in range(first, first + 10):
                await ledger.add(number)
            if first == 20:
                assert node.evict((REF.class_name, REF.id))
                assert await ledger.all() == list(range(30))

        run(cluster, script, close=close, base_bytes=base_bytes)


def test_what_was_not_written_for_sure_was_not_answered(cluster: Cluster) -> None:
    async def script(node: Node) -> None:
        await node.env.Ledger["a"].add(1)
        Losing.ends = ["lost after COMMIT"]
        with pytest.raises(ObjectReset):
            await node.env.Ledger["a"].add(2)
        assert cluster.fatal

    async def after(node: Node) -> None:
        assert await node.env.Ledger["a"].all() == [1, 2]

    run(cluster, script)
    run(cluster, after)


def test_an_alarm_rings_once_on_the_node_that_has_the_object_then(cluster: Cluster) -> None:
    async def before(node: Node) -> None:
        await node.env.Ledger["a"].ring_in(60)

    async def after(node: Node) -> None:
        await asyncio.sleep(70)
        assert await node.env.Ledger["a"].rang() == 1

    run(cluster, before)
    run(cluster, after)
    run(cluster, after)


def test_an_object_is_taken_back_on_another_node(cluster: Cluster) -> None:
    async def before(node: Node) -> str:
        ledger = node.env.Ledger["a"]
        await ledger.add(1)
        bookmark = await Operations(node).bookmark(REF)
        await ledger.add(2)
        return bookmark

    bookmark = run(cluster, before, base_bytes=-1)

    async def after(node: Node) -> str:
        undo = await Operations(node).restore(REF, bookmark)
        assert await node.env.Ledger["a"].all() == [1]
        assert await node.env.Ledger["a"].last() == 1
        await node.env.Ledger["a"].add(3)
        return undo

    undo = run(cluster, after)

    async def last(node: Node) -> None:
        assert await node.env.Ledger["a"].all() == [1, 3]
        assert await Operations(node).verify(REF) == []
        await Operations(node).restore(REF, undo)
        assert await node.env.Ledger["a"].all() == [1, 2]

    run(cluster, last)
