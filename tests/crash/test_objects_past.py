"""Power cuts and kills while objects go back in time, their past is thinned out, and alarms ring.

One caller at a time writes to each object, so after a crash it is what the last acknowledged call left, or
what the one that was cut off would have left; every bookmark that was handed out still leads to what was.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects.errors import ObjectError
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.classes import Durability
from edgestead.objects.runtime.node import Node
from edgestead.store.history.thinning import Keeping
from edgestead.testing.disks import PowerCut, SimulatedDisk
from edgestead.testing.simulation import SimulatedLoop, simulate
from tests.objects.logs import Logs, entries
from tests.objects.nodes import make_node

KEEPING = Keeping(recent_us=0, spacing_us=200_000)  # thinned out at once, to five commits a second
SEGMENT_BYTES = 96 * 1024
ROUNDS = 24
LONG_ROUNDS = 1_000
OBJECTS = 3


class Traveller(StatefulObject):
    """Keys and rows that must agree."""

    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS row (slot INTEGER PRIMARY KEY, n, padding)")

    async def write(self, slot: int, n: int, padding: int) -> None:
        if slot % 2:
            self.ctx.storage.put({f"{slot}": n, f"padding{slot}": b"p" * padding})
        else:
            sql = self.ctx.storage.sql
            sql.exec("INSERT OR REPLACE INTO row VALUES (?, ?, randomblob(?))", slot, n, padding)

    async def mark(self) -> str:
        return await self.ctx.storage.get_current_bookmark()

    async def go_back(self, bookmark: str) -> str:
        undo = await self.ctx.storage.on_next_session_restore_bookmark(bookmark)
        await self.ctx.storage.sync()
        return undo

    async def leave(self) -> None:
        self.ctx.abort()

    async def read(self) -> dict[str, int]:
        rows = self.ctx.storage.sql.exec("SELECT slot, n FROM row").raw().to_list()
        keys = await self.ctx.storage.list()
        assert self.ctx.storage.sql.exec("PRAGMA quick_check").one() == {"quick_check": "ok"}
        return {str(slot): n for slot, n in rows} | {
            key: value for key, value in keys.items() if "padding" not in key
        }


class Ringer(StatefulObject):
    """Notes the number of each alarm that rang, and how often."""

    async def set(self, n: int, time_ms: int) -> None:
        self.ctx.storage.put("n", n)
        self.ctx.storage.set_alarm(time_ms)

    async def alarm(self) -> None:
        n = await self.ctx.storage.get("n")
        times = await self.ctx.storage.get(f"rung{n}", default=0)
        await self.ctx.storage.put(f"rung{n}", times + 1)

    async def read(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.ctx.storage.list()
        return found


CLASSES = (Traveller, Ringer)


class Told:
    """What each traveller may be, what it was at each bookmark, and which alarms were set."""

    def __init__(self) -> None:
        self.states: dict[str, list[dict[str, int]]] = {str(n): [{}] for n in range(OBJECTS)}
        self.marks: dict[str, dict[str, dict[str, int]]] = {str(n): {} for n in range(OBJECTS)}
        self.alarms: dict[str, int] = {}
        self.skew_seconds = 0.0
        self.count = 0


async def travel(node: Node, told: Told, name: str, chance: random.Random, steps: int) -> None:
    stub = node.env.Traveller[name]
    for _ in range(steps):
        await asyncio.sleep(chance.uniform(0, 0.1))
        (now,) = told.states[name] = [await settled(stub, told, name)]
        action = chance.random()
        if action < 0.6:
            slot, n = chance.randrange(6), chance.randrange(10**6)
            told.states[name] = [now, now | {str(slot): n}]
            await stub.write(slot, n, chance.choice((1, 100, 9_000)))
            told.states[name] = [now | {str(slot): n}]
        elif action < 0.8 or not told.marks[name]:
            told.marks[name][await stub.mark()] = now
        elif action < 0.95:
            bookmark = chance.choice(sorted(told.marks[name]))
            told.states[name] = [now, told.marks[name][bookmark]]
            undo = await stub.go_back(bookmark)
            told.states[name] = [told.marks[name][bookmark], now]  # happens at the next start
            told.marks[name][undo] = now
            await leave(stub)
            assert await stub.read() == told.marks[name][bookmark]
            told.states[name] = [told.marks[name][bookmark]]
        else:
            await leave(stub)
        told.count += 1


async def leave(stub: Any) -> None:
    try:
        await stub.leave()
    except ObjectError:
        pass


async def settled(stub: Any, told: Told, name: str) -> dict[str, int]:
    """What the object is, which must be something that it may be."""
    found: dict[str, int] = await stub.read()
    assert found in told.states[name], (name, found, told.states[name])
    return found


async def set_alarms(node: Node, told: Told, chance: random.Random, steps: int, first: int) -> None:
    for n in range(first, first + steps):
        await asyncio.sleep(chance.uniform(0, 0.3))
        name = chance.choice("xy")
        await node.env.Ringer[name].set(n, node.now_ms() + chance.choice((-5, 0, 50, 400)))
        told.alarms[name] = n
        told.count += 1


async def jump(loop: SimulatedLoop, told: Told, chance: random.Random) -> None:
    """The wall clock is set, ahead and back."""
    while True:
        await asyncio.sleep(chance.uniform(0.2, 1.5))
        told.skew_seconds += chance.choice((-30, -1, -0.1, 0.1, 1, 40))
        loop.skew_seconds = told.skew_seconds


def one_life(logs: Logs, told: Told, seed: int, steps: int, first: int) -> None:
    """A node under load until it is done or the disk is dead."""

    def watch() -> None:
        logs.disk.raise_if_dead()
        if logs.fatal:
            raise PowerCut

    async def main(loop: SimulatedLoop) -> None:
        loop.watch, loop.skew_seconds = watch, told.skew_seconds
        node = make_node(logs, loop, *CLASSES, segment_bytes=SEGMENT_BYTES, idle_seconds=0.3, keeping=KEEPING)
        node.start()
        clock = loop.create_task(jump(loop, told, random.Random(seed)))
        await asyncio.gather(
            *(travel(node, told, str(n), random.Random(seed + n), steps) for n in range(OBJECTS)),
            set_alarms(node, told, random.Random(seed), steps, first),
        )
        clock.cancel()
        await node.close()

    try:
        simulate(main, seed)
    except (PowerCut, Exception) as error:
        if isinstance(error, AssertionError) or not (logs.disk.dead or logs.fatal):
            raise


def verdict(logs: Logs, told: Told) -> None:
    async def main(loop: SimulatedLoop) -> None:
        loop.skew_seconds = told.skew_seconds + 60
        node = make_node(logs, loop, *CLASSES, segment_bytes=SEGMENT_BYTES, keeping=KEEPING)
        node.start()
        for name in told.states:
            stub = node.env.Traveller[name]
            await settled(stub, told, name)
            for bookmark, state in told.marks[name].items():
                await stub.go_back(bookmark)
                await leave(stub)
                assert await stub.read() == state
        await asyncio.sleep(200)  # a failed commit of a handler is tried again
        for name, n in told.alarms.items():
            rung = await node.env.Ringer[name].read()
            assert rung.get(f"rung{max(n, rung['n'])}", 0) >= 1
            assert node.store.alarms.next_us() is None
        for entry in list(entries(node.log)):
            assert await Operations(node).verify(entry.ref) == []
        await node.close()

    simulate(main, 0)


def crash_often(logs: Logs, seed: int) -> Told:
    chance, told = random.Random(seed), Told()
    for life in range(3):
        logs.disk.operations = 0
        logs.disk.fail_at = chance.choice((chance.randrange(1, 300), chance.randrange(300, 6_000)))
        one_life(logs, told, seed + life, steps=25, first=1 + 1_000 * life)
        logs.power_cut(chance.randrange(1 << 30)) if chance.random() < 0.7 else logs.killed()
        logs.fatal.clear()
    return told


def fresh() -> Iterator[Logs]:
    disk = SimulatedDisk()
    with disk.vfs(f"past-{id(disk)}") as vfs:
        opened = Logs(disk, vfs)
        yield opened
        opened.abandon()
    disk.wipe()


@pytest.mark.parametrize(
    ("durability", "seed"),
    [("log", seed) for seed in range(ROUNDS)] + [("sqlite", seed) for seed in range(ROUNDS // 3)],
)
def test_no_crash_breaks_the_past(durability: Durability, seed: int) -> None:
    for logs in fresh():
        logs.durability = durability
        verdict(logs, crash_often(logs, seed))


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_thousand_crashes_break_no_past() -> None:
    acknowledged = 0
    for seed in range(LONG_ROUNDS):
        for logs in fresh():
            logs.durability = "sqlite" if seed % 4 == 0 else "log"
            told = crash_often(logs, 10_000 + seed)
            acknowledged += told.count
            verdict(logs, told)
    assert acknowledged > 20 * LONG_ROUNDS
