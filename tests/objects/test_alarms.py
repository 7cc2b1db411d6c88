"""Alarms: when they run, what becomes of them, and what no restart or jump of the clock may do to them."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, ClassVar

import apsw
import pytest

from edgestead import StatefulObject
from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime.alarms import RETRIES_MAX, AlarmInfo
from edgestead.objects.runtime.node import Node
from edgestead.testing.simulation import EPOCH_SECONDS, SimulatedLoop
from tests.objects.logs import Logs, entries, keys, ref
from tests.objects.nodes import run

START_MS = EPOCH_SECONDS * 1_000
HOUR_MS = 3_600_000
Handler = Callable[["Bell", AlarmInfo], Coroutine[Any, Any, None]]


async def nothing(bell: "Bell", info: AlarmInfo) -> None:
    """A handler that succeeds."""


async def fail(bell: "Bell", info: AlarmInfo) -> None:
    raise ValueError("the bell is broken")


async def fail_once(bell: "Bell", info: AlarmInfo) -> None:
    if not info.is_retry:
        raise ValueError("the bell is broken")


async def abort(bell: "Bell", info: AlarmInfo) -> None:
    bell.ctx.abort("enough")


class Bell(StatefulObject):
    """Its handler does what the test says; `rung` is when it ran, by the clock."""

    handler: ClassVar[Handler] = staticmethod(nothing)
    rung: ClassVar[list[tuple[int, AlarmInfo]]] = []
    now_ms: ClassVar[Callable[[], int]]

    async def alarm(self, info: AlarmInfo) -> None:
        Bell.rung.append((Bell.now_ms(), info))
        await Bell.handler(self, info)

    async def set(self, time: Any) -> None:
        await self.ctx.storage.set_alarm(time)

    async def get(self) -> int | None:
        return await self.ctx.storage.get_alarm()

    async def delete(self) -> None:
        await self.ctx.storage.delete_alarm()

    async def put(self, value: Any) -> None:
        await self.ctx.storage.put("value", value)

    async def value(self) -> Any:
        return await self.ctx.storage.get("value")

    async def leave(self) -> None:
        self.ctx.abort()


class Silent(StatefulObject):
    async def set(self, time: int) -> None:
        await self.ctx.storage.set_alarm(time)


@pytest.fixture(autouse=True)
def fresh() -> None:
    Bell.handler, Bell.rung = staticmethod(nothing), []


def rung_after() -> list[float]:
    """Seconds from the beginning to each run."""
    return [(at_ms - START_MS) / 1_000 for at_ms, _ in Bell.rung]


def with_bell(logs: Logs, script: Callable[[Any, Node], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def whole(node: Node) -> Any:
        Bell.now_ms = staticmethod(node._now_ms)
        return await script(node.env.Bell["one"], node)

    return run(logs, whole, Bell, Silent, **options)


# when


def test_an_alarm_runs_at_its_time_and_once(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> Any:
        await bell.set(START_MS + 5_000)
        before = await bell.get()
        await asyncio.sleep(20)
        return before, await bell.get()

    assert with_bell(logs, script) == (START_MS + 5_000, None)
    assert len(Bell.rung) == 1
    assert 5.0 <= rung_after()[0] < 5.01
    assert Bell.rung[0][1] == AlarmInfo(START_MS + 5_000, 0)
    assert not Bell.rung[0][1].isRetry


@pytest.mark.parametrize(
    "time", [0, -1, -(10**12), 1, START_MS - 1, datetime(1970, 1, 1, tzinfo=UTC)], ids=str
)
def test_a_time_that_is_past_runs_soon(logs: Logs, time: Any) -> None:
    async def script(bell: Any, node: Node) -> None:
        await bell.set(time)
        await asyncio.sleep(1)

    with_bell(logs, script)

    assert len(Bell.rung) == 1
    assert rung_after()[0] < 0.02


def test_the_last_time_set_counts(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> None:
        for seconds in (3, 9, 2, 7, 7):
            await bell.set(START_MS + seconds * 1_000)
        await asyncio.sleep(20)

    with_bell(logs, script)

    assert [round(after) for after in rung_after()] == [7]


def test_the_handler_runs_behind_on_start_and_knows_its_name(logs: Logs) -> None:
    class Slow(StatefulObject):
        async def on_start(self) -> None:
            await asyncio.sleep(5)
            self.ready = True

        async def set(self) -> None:
            await self.ctx.storage.set_alarm(START_MS + 60_000)

        async def alarm(self) -> None:
            assert self.ready
            await self.ctx.storage.put("rung by", self.ctx.id.name)

        async def rung_by(self) -> Any:
            return await self.ctx.storage.get("rung by")

    async def set_it(node: Node) -> None:
        await node.env.Slow["one"].set()

    async def wait(node: Node) -> Any:
        await asyncio.sleep(70)
        assert node.live_count == 1, "woken by its alarm"
        return await node.env.Slow["one"].rung_by()

    run(logs, set_it, Slow, close=False)
    logs.killed()
    assert run(logs, wait, Slow) == "one"


@pytest.mark.parametrize("handler_fails", [False, True])
def test_delete_all_in_the_handler_leaves_the_end_of_the_alarm_as_it_was(
    logs: Logs, handler_fails: bool
) -> None:
    async def forget(bell: Bell, info: AlarmInfo) -> None:
        await bell.ctx.storage.delete_all()
        if handler_fails and not info.is_retry:
            raise ValueError("afterwards")

    async def script(bell: Any, node: Node) -> Any:
        Bell.handler = staticmethod(forget)
        await bell.put(1)
        await bell.set(0)
        await asyncio.sleep(60)
        return await bell.get(), await bell.value()

    assert with_bell(logs, script) == (None, None)
    assert len(Bell.rung) == 1 + handler_fails


def test_a_deleted_alarm_does_not_run(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> Any:
        await bell.set(START_MS + 1_000)
        await bell.delete()
        await asyncio.sleep(5)
        return await bell.get()

    assert with_bell(logs, script) is None
    assert not Bell.rung


def test_a_class_without_a_handler_cannot_set_one(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> None:
        with pytest.raises(TypeError, match=r"needs a class with an alarm\(\) method"):
            await node.env.Silent["one"].set(START_MS)

    with_bell(logs, script)


def test_a_handler_needs_no_parameter(logs: Logs) -> None:
    class Plain(StatefulObject):
        async def alarm(self) -> None:
            await self.ctx.storage.put("rung", True)

        async def set(self) -> None:
            await self.ctx.storage.set_alarm(0)

        async def rung(self) -> bool:
            return bool(await self.ctx.storage.get("rung"))

    async def script(node: Node) -> bool:
        await node.env.Plain["one"].set()
        await asyncio.sleep(1)
        return bool(await node.env.Plain["one"].rung())

    assert run(logs, script, Plain)


# while the handler runs


def test_the_alarm_is_none_while_its_handler_runs(logs: Logs) -> None:
    seen: list[Any] = []

    async def look(bell: Bell, info: AlarmInfo) -> None:
        seen.append(await bell.get())
        await asyncio.sleep(5)

    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(look)
        await bell.set(0)
        await asyncio.sleep(1)
        seen.append(await bell.get())
        await asyncio.sleep(10)
        seen.append(await bell.get())

    with_bell(logs, script)

    assert seen == [None, None, None]


@pytest.mark.parametrize("handler_fails", [False, True])
def test_an_alarm_set_by_the_handler_follows(logs: Logs, handler_fails: bool) -> None:
    async def again(bell: Bell, info: AlarmInfo) -> None:
        if len(Bell.rung) == 1:
            await bell.ctx.storage.set_alarm(START_MS + 30_000)
            assert await bell.get() == START_MS + 30_000
            if handler_fails:
                raise ValueError("too late: the newer one counts")

    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(again)
        await bell.set(0)
        await asyncio.sleep(60)

    with_bell(logs, script)

    assert [round(after) for after in rung_after()] == [0, 30]
    assert Bell.rung[1][1].retry_count == 0


def test_an_alarm_set_by_a_caller_while_the_handler_runs_follows_it(logs: Logs) -> None:
    running = 0

    async def slow(bell: Bell, info: AlarmInfo) -> None:
        nonlocal running
        running += 1
        assert running == 1, "two runs at once"
        await asyncio.sleep(5)
        running -= 1

    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(slow)
        await bell.set(0)
        await asyncio.sleep(1)
        await bell.set(0)
        await asyncio.sleep(30)

    with_bell(logs, script)

    assert [round(after) for after in rung_after()] == [0, 5]


def test_deleting_the_alarm_does_not_stop_a_handler_that_runs(logs: Logs) -> None:
    async def slow(bell: Bell, info: AlarmInfo) -> None:
        await asyncio.sleep(5)
        await bell.put("finished")

    async def script(bell: Any, node: Node) -> Any:
        Bell.handler = staticmethod(slow)
        await bell.set(0)
        await asyncio.sleep(1)
        await bell.delete()
        await asyncio.sleep(10)
        return await bell.value()

    assert with_bell(logs, script) == "finished"
    assert len(Bell.rung) == 1


def test_a_set_alarm_that_is_rolled_back_leaves_the_running_one(logs: Logs) -> None:
    async def roll_back(bell: Bell, info: AlarmInfo) -> None:
        if not info.is_retry:
            async with bell.ctx.storage.transaction() as txn:
                await bell.ctx.storage.set_alarm(START_MS + 50_000)
                txn.rollback()
            raise ValueError("the first run fails")

    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(roll_back)
        await bell.set(0)
        await asyncio.sleep(60)

    with_bell(logs, script)

    assert [info.retry_count for _, info in Bell.rung] == [0, 1]


# failures


def test_a_failed_alarm_is_tried_again_and_again(logs: Logs) -> None:
    times: list[Any] = []

    async def script(bell: Any, node: Node) -> Any:
        Bell.handler = staticmethod(fail)
        await bell.set(0)
        for _ in range(RETRIES_MAX):
            await asyncio.sleep(0.5)
            times.append(await bell.get())
            await asyncio.sleep((times[-1] - node._now_ms()) / 1_000)
        await asyncio.sleep(300)
        return await bell.get()

    assert with_bell(logs, script) is None
    runs = rung_after()
    assert len(runs) == 1 + RETRIES_MAX == 7
    waits = [after - before for before, after in itertools.pairwise(runs)]
    for retry, wait in enumerate(waits):
        assert 2 * 2**retry <= wait <= 2.5 * 2**retry + 0.02
    assert [info.retry_count for _, info in Bell.rung] == list(range(RETRIES_MAX + 1))
    assert [info.scheduled_time for _, info in Bell.rung[1:]] == times


def test_a_retry_that_succeeds_is_the_last(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> Any:
        Bell.handler = staticmethod(fail_once)
        await bell.set(0)
        await asyncio.sleep(100)
        return await bell.get()

    assert with_bell(logs, script) is None
    assert [info.is_retry for _, info in Bell.rung] == [False, True]


def test_an_alarm_set_after_a_failure_starts_counting_anew(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(fail_once)
        await bell.set(0)
        await asyncio.sleep(1)
        await bell.set(START_MS + 1_500)
        await asyncio.sleep(30)

    with_bell(logs, script)

    assert [info.retry_count for _, info in Bell.rung] == [0, 0, 1]


def test_an_abort_in_the_handler_counts_as_a_failure(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(abort)
        await bell.set(0)
        await asyncio.sleep(600)

    with_bell(logs, script)

    assert [info.retry_count for _, info in Bell.rung] == list(range(RETRIES_MAX + 1))


def test_a_handler_that_never_ends_is_ended_and_tried_again(logs: Logs) -> None:
    async def hang(bell: Bell, info: AlarmInfo) -> None:
        if not info.is_retry:
            await asyncio.Event().wait()

    async def script(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(hang)
        await bell.set(0)
        await asyncio.sleep(1_000)

    with_bell(logs, script)

    assert [int(after) // 60 for after in rung_after()] == [0, 15]


def test_what_the_handler_wrote_before_it_failed_stays(logs: Logs) -> None:
    async def write(bell: Bell, info: AlarmInfo) -> None:
        await bell.put(info.retry_count)
        if not info.is_retry:
            raise ValueError("after the write")

    async def script(bell: Any, node: Node) -> Any:
        Bell.handler = staticmethod(write)
        await bell.set(0)
        await asyncio.sleep(1)
        return await bell.value()

    assert with_bell(logs, script) == 0


# restarts, eviction, clocks


@pytest.mark.parametrize("end", ["closed", "killed", "power"])
def test_an_alarm_outlives_the_process(logs: Logs, end: str) -> None:
    async def set_it(bell: Any, node: Node) -> None:
        await bell.set(START_MS + 3_000)

    async def wait(bell: Any, node: Node) -> None:
        await asyncio.sleep(10)

    with_bell(logs, set_it, close=end == "closed")
    {"closed": logs.killed, "killed": logs.killed, "power": logs.power_cut}[end]()
    assert not Bell.rung
    with_bell(logs, wait)
    with_bell(logs, wait)

    assert len(Bell.rung) == 1


def test_a_retry_outlives_the_process_and_its_count_too(logs: Logs) -> None:
    async def begin(bell: Any, node: Node) -> None:
        Bell.handler = staticmethod(fail)
        await bell.set(0)
        await asyncio.sleep(3)

    async def wait(bell: Any, node: Node) -> None:
        await asyncio.sleep(1_000)

    with_bell(logs, begin, close=False)
    logs.power_cut()
    with_bell(logs, wait)

    assert [info.retry_count for _, info in Bell.rung] == list(range(RETRIES_MAX + 1))


def test_an_alarm_wakes_an_object_that_left_memory(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> int:
        await bell.set(START_MS + 3_600_000)
        await asyncio.sleep(60)
        live = node.live_count
        await asyncio.sleep(3_600)
        return live

    assert with_bell(logs, script) == 0
    assert len(Bell.rung) == 1


def test_an_alarm_waits_for_its_class_to_come_back(logs: Logs) -> None:
    async def set_it(bell: Any, node: Node) -> None:
        await bell.set(START_MS + 3_000)

    async def wait(node: Node) -> None:
        await asyncio.sleep(10)

    with_bell(logs, set_it, close=False)
    logs.killed()
    run(logs, wait, Silent)
    assert not Bell.rung

    async def wait_with(bell: Any, node: Node) -> None:
        await asyncio.sleep(10)

    with_bell(logs, wait_with)

    assert len(Bell.rung) == 1


def test_an_object_that_cannot_start_keeps_its_alarm_for_a_retry(logs: Logs) -> None:
    starts = 0

    class Moody(Bell):
        async def on_start(self) -> None:
            nonlocal starts
            starts += 1
            if starts == 2:
                raise ValueError("not today")

    Moody.__name__ = "Bell"

    async def script(node: Node) -> None:
        Bell.now_ms = staticmethod(node._now_ms)
        await node.env.Bell["one"].set(START_MS + 1_000_000)
        with pytest.raises(ObjectReset):
            await node.env.Bell["one"].leave()
        await node.with_storage(ref_of(node), lambda engine: engine.set_alarm(START_MS * 1_000))
        await asyncio.sleep(10)

    class Names(Moody):
        async def set(self, time: Any) -> None:
            await self.ctx.storage.set_alarm(time)

        async def leave(self) -> None:
            self.ctx.abort()

    Names.__name__ = "Bell"

    def ref_of(node: Node) -> Any:
        return entries(node.log)[0].ref

    run(logs, script, Names)

    assert starts == 3
    assert [info.retry_count for _, info in Bell.rung] == [1]


@pytest.mark.parametrize("fails", ["_numbered", "_number_of"])
def test_an_alarm_that_cannot_be_read_for_a_moment_is_not_forgotten(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """By the timer; and when it is given back behind a run that came to nothing."""

    async def script(bell: Any, node: Node) -> None:
        await bell.set(START_MS + 5_000)
        due: Any = node.store.alarms
        honest, left = getattr(due, fails), [apsw.IOError("once")]

        def fail(asked: Any) -> Any:
            if left:
                raise left.pop()
            return honest(asked)

        monkeypatch.setattr(due, fails, fail)
        if fails == "_number_of":
            honest_run, runs = node.alarms._run, [2.0]

            async def run_late(ref: Any) -> float:
                return runs.pop() if runs else await honest_run(ref)

            monkeypatch.setattr(node.alarms, "_run", run_late)
        await asyncio.sleep(30)
        assert not left

    with_bell(logs, script)

    assert len(Bell.rung) == 1


def test_a_clock_that_jumps_ahead_is_noticed_and_one_that_steps_back_repeats_nothing(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> None:
        loop: Any = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        await bell.set(START_MS + HOUR_MS)
        loop.skew_seconds += 3_600
        await asyncio.sleep(2)
        assert len(Bell.rung) == 1
        await node.env.Bell["two"].set(START_MS + HOUR_MS + 60_000)
        loop.skew_seconds -= 3_600
        await asyncio.sleep(100)
        assert len(Bell.rung) == 1
        await asyncio.sleep(3_600)

    with_bell(logs, script)

    assert len(Bell.rung) == 2


# many


def test_many_alarms_each_run_once(logs: Logs) -> None:
    async def script(bell: Any, node: Node) -> None:
        for number in range(300):
            await node.env.Bell[str(number)].set(START_MS + 10_000 + number % 7)
        await asyncio.sleep(60)

    with_bell(logs, script)

    assert len(Bell.rung) == 300


def test_an_alarm_that_moves_all_the_time_leaves_little_behind(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    for number in range(5_000):
        lease.append([keys()], 10**15 + number)
    log.flush()

    assert len(log.store.alarms._heap) < 2_000
    assert log.store.alarms.next_us() == 10**15 + 4_999
