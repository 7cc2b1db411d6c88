"""Who is let through a gate next: by lines, one at a time, and nobody is forgotten."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects.runtime import gates, lines
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.lines import PASSAGE_SECONDS, Lines
from edgestead.objects.runtime.node import Node
from edgestead.testing.simulation import SimulatedLoop, simulate
from tests.objects.hosts import Client
from tests.objects.logs import Logs
from tests.objects.nodes import run
from tests.objects.test_shards import name_of
from tests.objects.test_shards import run as run_shards

HOLD_SECONDS = 0.5


class Model:
    """A second account: looks at all lines each time."""

    def __init__(self) -> None:
        self.had: dict[str, float] = {}
        self.waiting: list[tuple[str, int]] = []  # by arrival
        self.entered: dict[str, int] = {}
        self.reached, self.number = 0.0, 0

    def add(self, line: str, one: int) -> None:
        if all(other != line for other, _ in self.waiting):
            self.enter(line)
        self.waiting.append((line, one))

    def enter(self, line: str) -> None:
        self.had[line] = max(self.had.get(line, 0.0), self.reached)
        self.number += 1
        self.entered[line] = self.number

    def pop(self) -> int:
        line = min((line for line, _ in self.waiting), key=lambda one: (self.had[one], self.entered[one]))
        self.reached = self.had[line]
        one = next(one for other, one in self.waiting if other == line)
        self.waiting.remove((line, one))
        self.had[line] += PASSAGE_SECONDS
        if any(other == line for other, _ in self.waiting):
            self.enter(line)
        if not self.waiting:
            self.had.clear()
            self.reached = 0.0
        return one


@pytest.mark.parametrize("seed", range(20))
def test_the_line_that_has_had_least_is_next(seed: int) -> None:
    chance, made, model = random.Random(seed), Lines[int](), Model()
    for number in range(400):
        if chance.random() < 0.6:
            line = chance.choice("aaaaabbc")
            made.add(line, number)
            model.add(line, number)
        elif made:
            assert made.pop() == model.pop()
    while made:
        assert made.pop() == model.pop()
    assert not model.waiting


def test_who_kept_the_gate_waits_for_as_long_as_others_need() -> None:
    made = Lines[str]()
    for number in range(3):
        made.add("long", f"long {number}")
        made.add("short", f"short {number}")
    assert made.pop() == "long 0"
    made.charge("long", 10 * PASSAGE_SECONDS)
    made.charge("nobody yet", 10 * PASSAGE_SECONDS)
    made.add("nobody yet", "late")
    assert [made.pop() for _ in range(len(made))] == [
        "short 0",
        "short 1",
        "short 2",
        "late",
        "long 1",
        "long 2",
    ]


def test_accounts_are_bounded_however_many_lines_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "TRACKED_MAX", 10)
    made = Lines[int]()
    made.add("always", 0)
    for number in range(100):
        made.charge("always", 1.0)
        made.add(f"line {number}", number)
        assert made.pop() == number
        assert len(made._accounts) <= 12


class World:
    """Tasks at one gate, on invented time; what they do, in order."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop, self.gate, self.inside = loop, InputGate(), 0
        self.came, self.order = list[str](), list[str]()

    async def hold(self, name: str, line: str, seconds: float = HOLD_SECONDS, depth: int = 0) -> None:
        gates.stand_in(line)
        self.came.append(name)
        async with self.gate.hold():
            assert self.inside == 0
            self.inside += 1
            try:
                await asyncio.sleep(seconds)
                if depth:  # its own code, at once and twice
                    nested = [self._nested(seconds) for _ in range(depth)]
                    await asyncio.gather(*nested)
            finally:
                self.inside -= 1
        self.order.append(name)

    async def _nested(self, seconds: float) -> None:
        async with self.gate.hold():
            assert self.inside == 1
            self.inside += 1
            try:
                await asyncio.sleep(seconds)
            finally:
                self.inside -= 1


def in_world(script: Any, seed: int = 0) -> World:
    async def main(loop: SimulatedLoop) -> World:
        world = World(loop)
        await script(world)
        assert not world.gate.is_shut
        assert world.gate._waiting == {}
        return world

    return simulate(main, seed)


def test_one_call_of_another_line_does_not_wait_for_all_of_a_crowd() -> None:
    async def script(world: World) -> None:
        crowd = [asyncio.ensure_future(world.hold(f"bad {n}", "crowd")) for n in range(200)]
        await asyncio.sleep(10 * HOLD_SECONDS)
        await world.hold("good", "alone")
        assert len(world.order) <= 14
        await asyncio.gather(*crowd)

    world = in_world(script)
    assert [name for name in world.order if name != "good"] == world.came[:-1]


def test_a_hand_over_wakes_one_however_many_wait() -> None:
    turns: dict[int, int] = {}

    async def script(world: World, count: int) -> None:
        before = world.loop.call_soon
        calls = 0

        def counted(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            return before(*arguments, **named)

        world.loop.call_soon = counted  # type: ignore[method-assign, assignment]
        await asyncio.gather(*(world.hold("", f"{n % 7}", 0.001) for n in range(count)))
        turns[count] = calls

    for count in (100, 400):
        in_world(lambda world, count=count: script(world, count))
    assert turns[400] < 5 * turns[100]


@pytest.mark.parametrize("seed", range(60))
def test_at_random_one_is_inside_and_everybody_gets_in_or_is_cancelled(seed: int) -> None:
    chance = random.Random(seed)

    async def script(world: World) -> None:
        tasks = []
        for number in range(60):
            hold = world.hold(
                f"{number}",
                chance.choice("abc"),
                chance.choice([0, 0, 0.001, 0.01]),
                chance.choice([0, 0, 3]),
            )
            tasks.append(asyncio.ensure_future(hold))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0, 0.001, 0.02]))
            if chance.random() < 0.2:
                chance.choice(tasks).cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(one is None or isinstance(one, asyncio.CancelledError) for one in ended), ended
        assert ended.count(None) == len(world.order)

    in_world(script, seed)


def test_code_that_a_block_left_behind_waits_as_everybody_does() -> None:
    async def script(world: World) -> None:
        left = list[asyncio.Task[None]]()

        async def late() -> None:
            await asyncio.sleep(2)  # the block is over by now, and another one is held
            await world.hold("late", "a")

        async with world.gate.hold():
            left.append(asyncio.ensure_future(late()))
            await asyncio.sleep(1)
        await world.hold("other", "b", 5)
        await asyncio.gather(*left)

    assert in_world(script).order == ["other", "late"]


class Held(StatefulObject):
    async def transact(self) -> str | None:
        async with self.ctx.storage.transaction():
            await asyncio.sleep(HOLD_SECONDS)
        return gates.standing_in()

    async def line(self) -> str | None:
        return gates.standing_in()

    async def line_there(self, name: str) -> str | None:
        found: str | None = await self.env.Held[name].line()
        return found


@pytest.mark.parametrize("seed", range(5))
def test_a_clients_call_has_its_turn_beside_a_crowd_that_another_object_calls_for(
    logs: Logs, seed: int
) -> None:
    async def call(node: Node, line: str, ended: list[str]) -> None:
        gates.stand_in(line)
        assert await node.env.Held["a"].transact() == line
        ended.append(line)

    async def script(node: Node) -> None:
        ended: list[str] = []
        crowd = [asyncio.ensure_future(call(node, "crowd", ended)) for _ in range(50)]
        await asyncio.sleep(2 * HOLD_SECONDS)
        await asyncio.ensure_future(call(node, "alone", ended))
        assert len(ended) < 8
        await asyncio.gather(*crowd)

    run(logs, script, Held, seed=seed)


def test_a_call_stands_in_its_clients_line_wherever_its_object_lives(tmp_path: Path) -> None:
    there, other = name_of(1, 2, "Held"), name_of(0, 2, "Held")

    async def script(clients: list[Client], hosts: Any) -> None:
        for name in (there, other):
            assert await clients[0].call(f"Held/{name}/line") == "127.0.0.1"
        assert await clients[0].call(f"Held/{other}/line_there", there) == "127.0.0.1"
        assert await clients[0].call(f"Held/{there}/line_there", other) == "127.0.0.1"

    run_shards(tmp_path, 2, script, Held)
