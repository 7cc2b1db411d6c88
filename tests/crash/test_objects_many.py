"""SIGKILL of an objects process or of the whole server under load on many objects: nothing told is lost.

Between two lives of the server the number of objects processes changes, which deals the objects out anew.
"""

import asyncio
import json
import random
import time
from pathlib import Path

import pytest

from edgestead.testing.server import START_SECONDS_MAX, wait_until
from tests.crash.kills import kill_everything, kill_process
from tests.crash.objects_line import Cut, new_line
from tests.crash.objects_pairs import SLOTS

SOURCE = str(Path(__file__).with_name("objects_pairs.py"))
ROUNDS, ROUNDS_LONG = 10, 1_000
CALLERS = 12
JUDGES = 8
NAMES = [f"n{number}" for number in range(36)]
CLASSES = ("Pairs", "Rows", "OwnRows")
WORKERS_MAX = 3
LOAD_SECONDS_MAX = 0.3
START_OVER_SECONDS_MAX = 2.0
PADDINGS = (1, 50, 3_000, 20_000)


class Slot:
    """One pair of one object: the number that a caller was told of, and the last one that it tried."""

    def __init__(self, path, number):
        self.path, self.number = path, number
        self.told = self.tried = self.followed = 0


class Load:
    """The slots, one caller to each, and how often somebody was told something."""

    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.slots = {(c, n, s): Slot(f"{c}/{n}", s) for c in CLASSES for n in NAMES for s in range(SLOTS)}
        self.acknowledged = 0
        self.ended = False

    async def caller(self, line, mine):
        while not self.ended:
            try:
                await self.step(line, self.choose.choice(mine))
                self.acknowledged += 1
            except Cut:
                continue
        line.close()

    async def step(self, line, slot):
        action = self.choose.random()
        slot.tried += 1
        if action < 0.05:
            return await line.call(f"{slot.path}/abort")
        if action < 0.25:
            await line.call(f"{slot.path}/in_steps", slot.number, slot.tried)
        elif action < 0.5 and slot.path.startswith("Pairs/"):
            await line.call(f"{slot.path}/lead", slot.number, slot.tried)
            slot.followed = slot.tried
        else:
            await line.call(f"{slot.path}/write", slot.number, slot.tried, self.choose.choice(PADDINGS))
        slot.told = slot.tried

    async def run_into(self, server, kill):
        """Call until `kill` has happened."""
        self.ended, before = False, self.acknowledged
        lines = [new_line(server) for _ in range(CALLERS)]
        slots = list(self.slots.values())
        callers = [
            asyncio.create_task(self.caller(line, slots[index::CALLERS])) for index, line in enumerate(lines)
        ]
        try:
            # The moment is a matter of chance, but not whether a busy machine came to write anything before.
            async with asyncio.timeout(START_SECONDS_MAX):
                while self.acknowledged == before and not any(map(asyncio.Task.done, callers)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await asyncio.sleep(self.choose.uniform(0, LOAD_SECONDS_MAX))
            await asyncio.to_thread(kill)
        finally:
            self.ended = True
            await asyncio.gather(*callers)

    async def wrong(self, server):
        """What the objects say that they may not, in words."""
        names, found = iter(NAMES), []

        async def judge():
            line = new_line(server)
            for name in names:
                said = {kind: await line.insist(f"{kind}/{name}/read") for kind in CLASSES}
                found.extend(self.judge(name, said))
            line.close()

        await asyncio.gather(*(judge() for _ in range(JUDGES)))
        return found

    def judge(self, name, said):
        for kind, state in said.items():
            if not state.get("intact", True):
                yield f"{kind}/{name}: damaged"
            for number, (a, b) in enumerate(state["pairs"]):
                slot = self.slots[kind, name, number]
                if a != b:
                    yield f"{slot.path} {number}: torn, {a} and {b}"
                elif not slot.told <= a <= slot.tried:
                    yield f"{slot.path} {number}: {a}, told {slot.told}, tried {slot.tried}"
        for number, follower in enumerate(said["Rows"]["followed"]):
            slot, leader = self.slots["Pairs", name, number], said["Pairs"]["pairs"][number][0]
            if not slot.followed <= follower <= leader:
                yield f"{name} {number}: {follower} follows {leader}, told {slot.followed}"


def is_objects(name):
    return name.startswith("objects-")


def kill_one(server, choose):
    """An objects process; sometimes the next one too, while it finds out what is durable."""
    name = choose.choice(list(filter(is_objects, server.children())))
    for _ in range(choose.choice((1, 1, 2))):
        kill_process(server, name)


def restart(server, choose):
    """Start with another number of objects processes; sometimes the first try is killed at it."""
    server.flags = ("--objects", SOURCE, "--objects-workers", str(choose.randint(1, WORKERS_MAX)))
    if choose.random() < 0.2:
        server.launch()
        wait_until(lambda: any(map(is_objects, server.children())), START_SECONDS_MAX)
        time.sleep(choose.uniform(0, START_OVER_SECONDS_MAX))
        kill_everything(server)
    server.start()


@pytest.fixture
def server(new_server):
    return new_server("--objects", SOURCE, "--objects-workers", "2").start()


def rounds(server, count, seed):
    """Load and kill so often. Gives how many calls were acknowledged."""
    choose, load = random.Random(seed), Load(seed)
    for number in range(count):
        if choose.random() < 0.5:
            asyncio.run(load.run_into(server, lambda: kill_one(server, choose)))
        else:
            asyncio.run(load.run_into(server, lambda: kill_everything(server)))
            restart(server, choose)
        assert asyncio.run(load.wrong(server)) == [], f"seed {seed}, round {number}"
    return load.acknowledged


@pytest.mark.timeout(1_800)
def test_ten_kills_lose_and_tear_nothing(server):
    assert rounds(server, ROUNDS, random.randrange(2**32)) >= ROUNDS


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_a_thousand_kills_lose_and_tear_nothing(server):
    began = time.monotonic()
    count = rounds(server, ROUNDS_LONG, random.randrange(2**32))
    print(json.dumps({"acknowledged": count, "seconds": time.monotonic() - began}))  # noqa: T201
    assert count >= ROUNDS_LONG


def test_the_judge_sees_what_is_lost_torn_or_ahead(server):
    load = Load(seed=1)
    line = new_line(server)

    async def forge():
        await line.call("Pairs/n0/write", 0, 3)
        await line.call("Rows/n0/follow", 0, 4)
        await line.call("OwnRows/n1/write", 1, 5)
        line.close()

    asyncio.run(forge())
    load.slots["Pairs", "n0", 0].tried = 3
    lost = load.slots["OwnRows", "n1", 1]
    lost.told = lost.tried = 6

    assert sorted(asyncio.run(load.wrong(server))) == [
        "OwnRows/n1 1: 5, told 6, tried 6",
        "n0 0: 4 follows 3, told 0",
    ]
    torn = {"Pairs": {"pairs": [[1, 2]]}, "Rows": {"pairs": [], "followed": []}}
    assert list(load.judge("n2", torn)) == ["Pairs/n2 0: torn, 1 and 2"]
