"""Live objects: calls, gates, resets, eviction."""

import asyncio
import re
from typing import Any

import pytest

from edgestead.objects import limits
from edgestead.objects.errors import (
    Aborted,
    DataCloneError,
    LimitError,
    ObjectError,
    ObjectReset,
    RemoteError,
    SqlError,
    StorageBroken,
    UnknownClass,
    UnknownMethod,
)
from edgestead.objects.ids import from_name
from edgestead.objects.runtime.classes import StatefulObject, describe
from edgestead.objects.runtime.node import Node
from tests.objects.logs import Logs
from tests.objects.nodes import run


class OwnError(Exception):
    pass


class Counter(StatefulObject):
    async def on_start(self) -> None:
        self.seen: list[str] = []
        lives = await self.ctx.storage.get("lives", default=0)
        await asyncio.sleep(0.01)
        await self.ctx.storage.put("lives", lives + 1)

    async def add(self, by: int = 1) -> int:
        total: int = await self.ctx.storage.get("n", default=0) + by
        await self.ctx.storage.put("n", total)
        return total

    async def lives(self) -> int:
        lives: int = await self.ctx.storage.get("lives")
        return lives

    async def give(self, value: Any = None, *more: Any, **named: Any) -> Any:
        return [value, list(more), named] if more or named else value

    async def fail(self, kind: str) -> None:
        await self.ctx.storage.put("failed", kind)
        errors: dict[str, Exception] = {
            "value": ValueError("bad", 1),
            "own": OwnError("mine"),
            "limit": LimitError("large"),
            "sql": SqlError("words", "SQLITE_BUSY"),
        }
        raise errors[kind]

    async def give_function(self) -> Any:
        return len

    async def abort_another(self, name: str) -> None:
        await self.env.Counter[name].abort()

    async def abort(self) -> None:
        await self.ctx.storage.put("n", 1_000)
        self.ctx.abort("because")

    async def slow(self, name: str, seconds: float) -> list[str]:
        self.seen.append(f"+{name}")
        await asyncio.sleep(seconds)
        self.seen.append(f"-{name}")
        return self.seen

    async def blocking(self, name: str, seconds: float) -> list[str]:
        async def closure() -> None:
            self.seen.append(f"[{name}")
            await asyncio.sleep(seconds)
            self.seen.append(f"{name}]")

        await self.ctx.block_concurrency_while(closure)
        return self.seen

    async def fail_in_block(self) -> None:
        async def closure() -> None:
            raise OwnError("inside")

        await self.ctx.blockConcurrencyWhile(closure)

    async def in_transaction(self, seconds: float) -> list[str]:
        async with self.ctx.storage.transaction() as txn:
            self.seen.append("(")
            await txn.put("n", 7)
            await asyncio.sleep(seconds)
            self.seen.append(")")
        return self.seen

    async def ask(self, name: str, by: int) -> int:
        total: int = await self.env.Counter[name].add(by=by)
        return total

    async def who(self) -> tuple[str | None, str]:
        return self.ctx.id.name, str(self.ctx.id)

    async def _private(self) -> None:
        raise AssertionError

    def synchronous(self) -> None:
        raise AssertionError

    async def fetch(self, request: Any) -> None:
        raise AssertionError


class Heir(Counter):
    async def mine(self) -> str:
        return "mine"


class Table(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")

    async def fill(self, rows: int) -> None:
        for _ in range(rows):
            self.ctx.storage.sql.exec("INSERT INTO t VALUES (zeroblob(1000))")

    async def count(self) -> int:
        row: dict[str, int] = self.ctx.storage.sql.exec("SELECT count(*) AS n FROM t").one()
        return row["n"]


class Broken(StatefulObject):
    starts = 0

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        Broken.starts += 1
        if Broken.starts == 1:
            raise OwnError("first")

    async def answer(self) -> int:
        return Broken.starts


def test_calls_are_answered_and_kept(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        assert await counter.add() == 1
        assert await counter.add(by=4) == 5
        assert await node.env["Counter"].get_by_name("a").add(2) == 7
        assert await node.env.Counter["b"].add() == 1

    async def again(node: Node) -> None:
        assert await node.env.Counter["a"].add(0) == 7
        assert await node.env.Counter["a"].lives() == 2

    run(logs, script, Counter)
    run(logs, again, Counter)


def test_arguments_and_results_are_clones(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        value = {"t": (1, {2}), "p": re.compile("x")}

        back = await counter.give(value)

        assert back == value
        assert back is not value
        assert await counter.give(1, 2, x=(3,)) == [1, [2], {"x": (3,)}]
        with pytest.raises(DataCloneError):
            await counter.give(len)
        with pytest.raises(DataCloneError, match="could not be cloned"):
            await counter.give_function()

    run(logs, script, Counter)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("value", ValueError, "bad"),
        ("own", RemoteError, "OwnError: mine"),
        ("limit", LimitError, "large"),
        ("sql", SqlError, "words: SQLITE_BUSY"),
    ],
)
def test_what_a_method_raises_reaches_the_caller_and_resets_nothing(
    logs: Logs, kind: str, error: type[Exception], words: str
) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        with pytest.raises(error, match=words) as caught:
            await counter.fail(kind)
        assert type(caught.value) is error
        assert getattr(caught.value, "code", "SQLITE_BUSY") == "SQLITE_BUSY"
        assert await counter.lives() == 1

    run(logs, script, Counter)


def test_the_log_says_which_method_raised(logs: Logs, caplog: pytest.LogCaptureFixture) -> None:
    async def script(node: Node) -> None:
        with pytest.raises(ValueError, match="bad"):
            await node.env.Counter["a"].fail("value")

    with caplog.at_level("INFO", logger="edgestead.objects"):
        run(logs, script, Counter)

    assert [record.getMessage() for record in caplog.records] == ["Counter a raised in fail"]


def test_the_reset_of_another_object_is_not_the_reset_of_the_one_that_passes_it_on(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        with pytest.raises(Aborted) as own:
            await counter.abort()
        assert (own.value.reset, own.value.retryable) == (True, True)
        with pytest.raises(Aborted, match="because") as passed_on:
            await counter.abort_another("b")
        assert (passed_on.value.reset, passed_on.value.retryable) == (False, False), "what it did stays done"

    run(logs, script, Counter)


@pytest.mark.parametrize(
    "method", ["missing", "synchronous", "fetch", "on_start", "alarm", "ctx", "env", "storage"]
)
def test_only_public_async_methods_can_be_called(logs: Logs, method: str) -> None:
    async def script(node: Node) -> None:
        with pytest.raises(UnknownMethod):
            await getattr(node.env.Counter["a"], method)()
        assert node.live() == [], "nothing was started for it"

    run(logs, script, Counter)


def test_inherited_and_private_methods_are_not_callable() -> None:
    assert describe(Heir).methods == {"mine"}
    assert "_private" not in describe(Counter).methods


def test_a_region_is_a_short_text() -> None:
    class Local(StatefulObject):
        region = "fra"

    class Wrong(StatefulObject):
        region = 7  # type: ignore[assignment]

    assert (describe(Local).region, describe(Counter).region) == ("fra", "")
    with pytest.raises(TypeError, match=r"Wrong\.region must be a text"):
        describe(Wrong)


def test_an_unknown_class_is_named(logs: Logs) -> None:
    async def script(node: Node) -> None:
        with pytest.raises(UnknownClass, match="Nobody"):
            node.env.Nobody["a"]

    run(logs, script, Counter)


def test_ids_name_one_object(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counters = node.env.Counter
        by_name = counters.id_from_name("a")
        assert by_name == counters.idFromName("a") == counters.id_from_string(str(by_name))
        assert (await counters.get(by_name).who()) == ("a", str(by_name))
        unique = counters.newUniqueId()
        assert unique != counters.new_unique_id()
        assert await counters.get(unique).who() == (None, str(unique))
        for bad in ("", "x" * 64, str(by_name).upper(), str(by_name)[:-1] + "0", str(by_name) + "00"):
            with pytest.raises(TypeError):
                counters.id_from_string(bad)
        with pytest.raises(TypeError, match="not of class"):
            node.env.Heir.get(by_name)

    run(logs, script, Counter, Heir)


def test_one_object_lives_once_and_starts_before_its_first_event(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        totals = await asyncio.gather(*(counter.add() for _ in range(20)))
        assert sorted(totals) == list(range(1, 21))
        assert await counter.lives() == 1

    run(logs, script, Counter)


def test_abort_drops_what_was_not_committed_and_tells_the_callers(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add(3)
        waiting = asyncio.ensure_future(counter.slow("x", 60))
        await asyncio.sleep(0.1)
        with pytest.raises(Aborted, match="because") as caught:
            await counter.abort()
        assert caught.value.reset
        with pytest.raises(Aborted, match="because"):
            await waiting
        assert await counter.add(0) == 3
        assert await counter.lives() == 2

    run(logs, script, Counter)


def test_events_interleave_where_they_wait_unless_one_blocks(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add()
        slow = asyncio.ensure_future(counter.slow("s", 0.05))
        await asyncio.sleep(0.01)
        block = asyncio.ensure_future(counter.blocking("b", 0.2))
        await asyncio.sleep(0.01)
        late = asyncio.ensure_future(counter.slow("late", 0))
        seen = (await asyncio.gather(slow, block, late))[2]

        assert seen[:3] == ["+s", "[b", "b]"], "neither a new event nor an older one runs inside a block"
        assert set(seen[3:]) == {"-s", "+late", "-late"}

    run(logs, script, Counter)


def test_a_transaction_keeps_other_events_out(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add()
        both = await asyncio.gather(counter.in_transaction(0.1), counter.in_transaction(0.1))
        assert both[1] == ["(", ")", "(", ")"]

    run(logs, script, Counter)


def test_a_block_that_fails_or_lasts_resets_the_object(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add(3)
        with pytest.raises(ObjectReset, match="OwnError: inside"):
            await counter.fail_in_block()
        assert await counter.lives() == 2
        with pytest.raises(ObjectReset, match="TimeoutError"):
            await counter.blocking("b", limits.BLOCK_SECONDS_MAX + 1)
        assert await counter.lives() == 3
        assert await counter.add(0) == 3

    run(logs, script, Counter)


def test_objects_call_one_another(logs: Logs) -> None:
    async def script(node: Node) -> None:
        assert await node.env.Counter["a"].ask("b", 5) == 5
        assert await node.env.Counter["b"].add(1) == 6

    run(logs, script, Counter)


def test_a_constructor_that_raises_is_tried_again(logs: Logs) -> None:
    Broken.starts = 0

    async def script(node: Node) -> None:
        broken = node.env.Broken["a"]
        with pytest.raises(ObjectReset, match="OwnError: first"):
            await broken.answer()
        assert await broken.answer() == 2

    run(logs, script, Broken)


def test_an_idle_object_leaves_memory_and_comes_back(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add(3)
        await asyncio.sleep(5)
        assert len(node.live()) == 1
        await asyncio.sleep(10)
        assert node.live() == []
        assert await counter.add(0) == 3
        assert await counter.lives() == 2

    run(logs, script, Counter)


def test_upkeep_that_fails_once_goes_on(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(node: Node) -> None:
        told = failures_of(monkeypatch)
        await node.env.Counter["a"].add()
        evict = node.evict_idle
        fails = [OSError("too many open files")]

        def fail_once(at_once: int) -> bool:
            if fails:
                raise fails.pop()
            return evict(at_once)

        monkeypatch.setattr(node, "evict_idle", fail_once)
        await asyncio.sleep(30)
        assert len(told) == 1
        assert node.live() == []

    run(logs, script, Counter)


def test_an_object_whose_storage_cannot_be_closed_keeps_nobody_waiting(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(node: Node) -> None:
        told = failures_of(monkeypatch)
        counter = node.env.Counter["a"]
        await counter.add(3)
        engine = node._live["Counter", from_name("Counter", "a").id].engine

        def fail() -> None:
            raise OSError("too many open files")

        monkeypatch.setattr(engine, "close", fail)
        with pytest.raises(Aborted):
            await counter.abort()
        async with asyncio.timeout(10):
            assert await counter.add(1) == 4
        assert len(told) == 1

    run(logs, script, Counter, close=False)


def failures_of(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What callbacks of the loop raise, from now on, which a simulated one ends with."""
    told: list[Any] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", told.append)
    return told


def test_many_idle_objects_leave_a_few_at_a_time(logs: Logs) -> None:
    async def script(node: Node) -> None:
        for number in range(5):
            await node.env.Counter[str(number)].add()
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        for instance in node._live.values():
            instance.used_at = loop.time() - 11
        left = []
        while node.evict_idle(2):
            left.append(len(node.live()))
        assert (left, node.live()) == ([3, 1], [])

    run(logs, script, Counter)


def test_an_idle_object_gives_back_the_pages_it_only_remembers(logs: Logs) -> None:
    async def script(node: Node) -> None:
        table = node.env.Table["a"]
        await table.fill(40)
        engine = next(iter(node._live.values())).engine
        assert engine.relax()
        assert not engine.relax()
        assert await table.count() == 40

    run(logs, script, Table)


def test_open_databases_are_bounded_where_the_oldest_ones_are_busy(logs: Logs) -> None:
    class Waiting(StatefulObject):
        async def use(self, *, wait: bool = False) -> None:
            await self.ctx.storage.put("key", 1)
            if wait:
                await self.ctx.storage.sync()
                await asyncio.Event().wait()

    async def script(node: Node) -> None:
        busy = [asyncio.ensure_future(node.env.Waiting[f"busy {n}"].use(wait=True)) for n in range(8)]
        await asyncio.sleep(0.1)
        for number in range(40):
            await node.env.Waiting[str(number)].use()
            await asyncio.sleep(0.02)
        assert len(node._opened) <= 16
        for one in busy:
            one.cancel()

    run(logs, script, Waiting, databases_max=12, logging="pages")


def test_an_object_whose_file_is_gone_is_not_taken_for_an_empty_one(logs: Logs) -> None:
    async def script(node: Node) -> None:
        table = node.env.Table["a"]
        await table.fill(3)
        (ref,) = node.live()
        assert node.evict((ref.class_name, ref.id))
        (path,) = (path for path in logs.disk.inodes if path.endswith(f"{ref.id}.sqlite"))
        logs.disk.remove(path)

        for _ in range(2):
            with pytest.raises(StorageBroken, match="is gone"):
                await table.count()

    logs.durability = "log"
    run(logs, script, Table)


def test_open_databases_are_bounded(logs: Logs) -> None:
    async def script(node: Node) -> None:
        for number in range(12):
            await node.env.Counter[str(number)].add()
            await asyncio.sleep(0.02)
        assert len(node._opened) <= 4
        assert [await node.env.Counter[str(number)].add() for number in range(12)] == [2] * 12

    run(logs, script, Counter, databases_max=4, logging="pages")


def test_a_caller_that_goes_away_stops_nothing(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add()
        call = asyncio.ensure_future(counter.slow("x", 0.1))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.sleep(0.1)
        assert await counter.slow("y", 0) == ["+x", "-x", "+y", "-y"]

    run(logs, script, Counter)


def test_no_reply_leaves_before_its_writes_are_durable(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        for _ in range(20):
            total = await counter.add()
            logs.disk.dead = True
            survivors = dict(logs.disk.inodes)
            logs.disk.dead = False
            assert survivors
            durable = b"".join(inode.durable for inode in survivors.values())
            in_log, in_row = b"\xa1n" + bytes([0xC4, 1, total]), b"\x03\x0f\x0en" + bytes([total])
            assert (in_log if logs.durability == "log" else in_row) in durable, "key and value are on disk"

    run(logs, script, Counter, logging="keys")


def test_no_call_to_another_object_leaves_before_its_callers_writes_are_durable(logs: Logs) -> None:
    nodes: list[Node] = []
    durable: list[bool] = []

    class Asker(StatefulObject):
        async def ask(self) -> None:
            await self.ctx.storage.put("asked", True)
            await self.env.Asked["it"].answer()

    class Asked(StatefulObject):
        async def answer(self) -> None:
            asker = nodes[0]._live[("Asker", from_name("Asker", "a").id)]
            durable.append(asker.engine.is_confirmed)

    async def script(node: Node) -> None:
        nodes.append(node)
        await node.env.Asker["a"].ask()

    run(logs, script, Asker, Asked)
    assert durable == [True]


def test_closing_lets_calls_finish_and_refuses_new_ones(logs: Logs) -> None:
    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        call = asyncio.ensure_future(counter.slow("x", 0.5))
        await asyncio.sleep(0.1)
        closing = asyncio.ensure_future(node.close())
        await asyncio.sleep(0.01)
        with pytest.raises(ObjectError):
            await node.env.Counter["b"].add()
        assert await call == ["+x", "-x"]
        await closing

    run(logs, script, Counter)
