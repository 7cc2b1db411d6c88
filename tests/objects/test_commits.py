"""When a turn's commits are written: by whom, and how long a turn lasts."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from edgestead.objects.ids import from_name
from edgestead.objects.runtime.calls import pack_arguments, unpack
from edgestead.objects.runtime.classes import StatefulObject
from edgestead.objects.runtime.commits import ROUNDS_SECONDS_MAX, Turns
from edgestead.objects.runtime.node import Node
from edgestead.store.runner import QUICK_SECONDS, TRY_EVERY, TimedRunner
from tests.objects.logs import Logs
from tests.objects.nodes import run

SLOW = [QUICK_SECONDS * 10] * 20


class Disk:
    """A clock that moves while a job runs, as often as one is to take time."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.left = 0.0, list(seconds)

    def __call__(self) -> float:
        return self.now

    def job(self) -> None:
        self.now += self.left.pop(0)


@pytest.mark.parametrize(
    ("seconds", "quick"),
    [
        ([], True),  # nothing is known
        ([QUICK_SECONDS / 2] * 20, True),
        ([QUICK_SECONDS / 2] * 20 + [10.0], True),  # one that is late
        (SLOW, False),
        (SLOW + [QUICK_SECONDS / 2] * 20, True),
    ],
)
def test_a_runner_knows_whether_its_jobs_are_quick(seconds: list[float], quick: bool) -> None:
    disk = Disk(*seconds)
    runner = TimedRunner(disk)
    results: list[Any] = []
    for _ in seconds:
        runner.run(disk.job, lambda *result: results.append(result))

    assert runner.is_quick is quick
    assert results == [(None, None)] * len(seconds)


def test_what_is_slow_is_tried_again_now_and_then() -> None:
    runner = TimedRunner(Disk())

    assert [runner.is_due() for _ in range(TRY_EVERY * 2)].count(True) == 2


def test_without_a_clock_nothing_is_quick_and_nothing_tried() -> None:
    runner = TimedRunner(None)
    results: list[Any] = []
    runner.run(lambda: 7, lambda *result: results.append(result))

    assert results == [(7, None)]
    assert not runner.is_quick
    assert not any(runner.is_due() for _ in range(TRY_EVERY * 2))


class Log:
    """Only what `Turns` asks of a log."""

    def __init__(self, quick: bool) -> None:
        self.is_quick, self.flushed = quick, list[bool]()

    def flush(self, *, here: bool = False) -> None:
        self.flushed.append(here)


class Engine:
    def __init__(self) -> None:
        self.commits = 0

    def commit(self) -> None:
        self.commits += 1


class Rounds:
    """A turn over a log: `after(calls)` is one round of the loop, in which so many calls were going on."""

    def __init__(self, *, quick: bool) -> None:
        self.log, self.engine = Log(quick), Engine()
        self.calls, self.now = 0, 0.0
        self.soon: list[Callable[[], None]] = []
        self.turns = Turns(self.log, self.soon.append, lambda: self.calls, lambda: self.now)  # type: ignore[arg-type]
        self.turns.changed(self.engine)

    def after(self, calls: int) -> list[bool]:
        self.calls = calls
        due, self.soon[:] = list(self.soon), []
        for callback in due:
            callback()
        return self.log.flushed


@pytest.mark.parametrize(("quick", "calls", "inline"), [(False, 1, True), (False, 2, False), (True, 1, True)])
def test_who_syncs(quick: bool, calls: int, inline: bool) -> None:
    assert Rounds(quick=quick).after(calls) == [inline]


def test_a_turn_lasts_while_calls_come_if_syncing_is_quick() -> None:
    rounds = Rounds(quick=True)

    assert rounds.after(2) == []
    assert rounds.after(5) == []
    assert rounds.engine.commits == 0
    assert rounds.after(5) == [True]
    assert rounds.engine.commits == 1
    assert rounds.soon == [], "the turn is over"


def test_a_commit_that_raises_keeps_no_other_from_the_end_of_the_turn() -> None:
    rounds = Rounds(quick=False)
    behind = Engine()

    def fail() -> None:
        raise MemoryError

    rounds.engine.commit = fail  # type: ignore[method-assign]
    rounds.turns.changed(behind)
    with pytest.raises(MemoryError):
        rounds.after(1)
    assert rounds.after(1) == [False, True]
    assert behind.commits == 1
    rounds.turns.changed(behind)
    rounds.after(1)

    assert behind.commits == 2


def test_a_turn_does_not_last_long() -> None:
    rounds = Rounds(quick=True)

    assert rounds.after(2) == []
    rounds.now = ROUNDS_SECONDS_MAX
    assert rounds.after(3) == [True]


class Counter(StatefulObject):
    async def add(self) -> int:
        count: int = await self.ctx.storage.get("n", default=0) + 1
        await self.ctx.storage.put("n", count)
        return count


def test_on_a_quick_disk_calls_share_groups_and_lose_nothing_they_were_told(logs: Logs) -> None:
    refs = [from_name("Counter", str(number)) for number in range(8)]

    async def add(node: Node) -> list[Any]:
        calls = (node.call(one, "add", pack_arguments((), {})) for one in refs * 3)
        return [unpack(reply) for reply in await asyncio.gather(*calls)]

    async def add_often(node: Node) -> None:
        counts = await add(node)
        assert max(counts) == 3
        assert 0 < node.log.progress.groups < len(counts)

    run(logs, add_often, Counter, clock=lambda: 0.0, close=False)
    logs.power_cut()

    assert sorted(run(logs, add, Counter)) == sorted([4, 5, 6] * len(refs))
