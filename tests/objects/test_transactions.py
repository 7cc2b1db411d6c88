"""transaction(), transaction_sync(), sync(), alarms as storage keeps them."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from edgestead.objects import limits
from edgestead.objects.errors import LimitError, StorageBroken, TransactionError
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.storage import Storage
from edgestead.store.objectlog import Commit
from tests.objects.logs import Logs
from tests.objects.nodes import with_storage

BAD_ALARMS: list[tuple[Any, type[Exception]]] = [
    ("soon", TypeError),
    (None, TypeError),
    (True, TypeError),
    (float("nan"), LimitError),
    (float("inf"), LimitError),
    (9e15, LimitError),
    (dt.datetime(2030, 1, 1), TypeError),
]


@pytest.fixture(params=["kv", "sql"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def told_first(logs: Logs) -> int:
    """With a database of its own, the log is told first that there is an object."""
    return 1 if logs.durability == "sqlite" else 0


def test_a_transaction_commits_and_gives_the_result(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        async def closure(txn: Any) -> str:
            await txn.put("a", 1)
            await storage.put("b", 2)
            assert await txn.get("b") == 2
            assert await txn.list() == {"a": 1, "b": 2}
            assert await txn.delete("missing") is False
            return "result"

        assert await storage.transaction(closure) == "result"
        assert await storage.transaction(lambda txn: "plain") == "plain"
        assert await storage.list() == {"a": 1, "b": 2}

    with_storage(logs, body, backend)


def test_an_exception_rolls_back_and_passes(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.put({"kept": 1, "changed": 1, "deleted": 1})

        with pytest.raises(KeyError, match="mine"):  # noqa: PT012
            async with storage.transaction() as txn:
                await txn.put({"new": 2, "changed": 2})
                await txn.delete("deleted")
                await storage.set_alarm(9_999_999_999_999)
                if backend == "sql":
                    storage.sql.exec("CREATE TABLE t (a)")
                raise KeyError("mine")

        assert await storage.list() == {"changed": 1, "deleted": 1, "kept": 1}
        assert await storage.get_alarm() is None
        if backend == "sql":
            assert storage.sql.exec("SELECT name FROM sqlite_schema WHERE name = 't'").to_list() == []

    with_storage(logs, body, backend)


def test_rollback_is_no_error_and_ends_the_transaction(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        async def closure(txn: Any) -> str:
            await txn.put("a", 1)
            txn.rollback()
            txn.rollback()
            for operation, arguments in (
                ("get", ("a",)),
                ("put", ("a", 1)),
                ("delete", ("a",)),
                ("list", ()),
            ):
                with pytest.raises(
                    TransactionError, match=rf"Cannot {operation}\(\) on rolled back transaction"
                ):
                    getattr(txn, operation)(*arguments)
            await storage.put("outside", 2)
            return "still a result"

        assert await storage.transaction(closure) == "still a result"
        assert await storage.list() == {"outside": 2}

    with_storage(logs, body, backend)


def test_txn_is_over_behind_its_closure(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        txn = await storage.transaction(lambda txn: txn)

        with pytest.raises(TransactionError, match="did you move txn outside of the closure"):
            txn.put("a", 1)

    with_storage(logs, body)


def test_nested_transactions_roll_back_alone(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        async with storage.transaction() as outer:
            await outer.put({"a": 1, "b": 1})
            with pytest.raises(ValueError, match="inner"):  # noqa: PT012
                async with storage.transaction() as inner:
                    await inner.put({"a": 2, "c": 2})
                    with pytest.raises(TransactionError, match="nested transaction is still running"):
                        outer.rollback()
                    raise ValueError("inner")
            async with storage.transaction() as inner:
                await inner.put("d", 3)

        assert await storage.list() == {"a": 1, "b": 1, "d": 3}

    with_storage(logs, body, backend)


def test_an_outer_rollback_takes_what_an_inner_one_committed(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        async with storage.transaction() as outer:
            await outer.put("a", 1)
            async with storage.transaction() as inner:
                await inner.put({"a": 2, "b": 2})
                if backend == "sql":
                    storage.sql.exec("CREATE TABLE t (a)")
            outer.rollback()

        assert await storage.list() == {}

    with_storage(logs, body, backend)


def test_transactions_nest_only_so_deep(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        def deeper(depth: int) -> None:
            with storage.transaction_sync():
                storage.put(str(depth), depth)
                deeper(depth + 1)

        with pytest.raises(TransactionError, match="nested too deeply"):
            deeper(0)
        assert await storage.list() == {}

    with_storage(logs, body)


def test_transaction_sync_gives_the_result_and_rolls_back(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE t (a)")

        def fails() -> None:
            storage.sql.exec("INSERT INTO t VALUES (2)")
            storage.put("lost", 1)
            with storage.transaction_sync():
                storage.sql.exec("INSERT INTO t VALUES (3)")
            raise ValueError("mine")

        assert (
            storage.transaction_sync(lambda: storage.sql.exec("INSERT INTO t VALUES (1)").rows_written) == 1
        )
        with pytest.raises(ValueError, match="mine"):
            storage.transaction_sync(fails)

        assert storage.sql.exec("SELECT a FROM t").to_list() == [{"a": 1}]
        assert await storage.list() == {}

    with_storage(logs, body)


def test_sql_that_first_runs_deep_inside_rolls_back_level_by_level(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE t (a)")
        await storage.sync()
        with storage.transaction_sync():
            with pytest.raises(ValueError, match="in"), storage.transaction_sync():  # noqa: PT012
                storage.sql.exec("INSERT INTO t VALUES (1)")
                raise ValueError("in")
            storage.sql.exec("INSERT INTO t VALUES (2)")

        assert storage.sql.exec("SELECT a FROM t").to_list() == [{"a": 2}]

    with_storage(logs, body)


def test_transaction_sync_refuses_async_callbacks(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        async def callback() -> None:
            storage.put("a", 1)

        for bad in (callback, lambda: callback(), lambda: storage.put("a", 1)):
            with pytest.raises(TypeError, match="synchronous callback"):
                storage.transaction_sync(bad)
        assert await storage.list() == {}

    with_storage(logs, body)


def test_writes_of_one_turn_are_one_commit(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        head = storage._engine.lease.head
        for number in range(50):
            await storage.put(str(number), number)
            if backend == "sql":
                with storage.transaction_sync():
                    storage.put("x", 1)
        await storage.sync()

        assert storage._engine.lease.head == head + told_first(logs) + 1

    with_storage(logs, body, backend)


def test_a_transaction_is_one_commit_of_its_own(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[str] = []
    commit = Engine._make_commit

    def noted(engine: Engine, flush: bool) -> Commit | None:
        if engine.changes:
            commits.append(" ".join(engine.changes))
        return commit(engine, flush)

    monkeypatch.setattr(Engine, "_make_commit", noted)

    async def body(storage: Storage) -> None:
        await storage.put("before", 1)
        async with storage.transaction() as txn:
            await txn.put("a", 1)
            await asyncio.sleep(0.1)
            await txn.put("b", 1)
            assert commits == ["before"], "what was written before is committed, this is not"
        await storage.sync()

        assert commits == ["before", "a b"]
        if logs.durability == "log":
            assert storage._engine.lease.head == told_first(logs) + 2

    with_storage(logs, body)


def test_sync_waits_for_unconfirmed_writes_too(logs: Logs, backend: str) -> None:
    async def body(storage: Storage) -> None:
        await storage.sync()
        await storage.put("a", 1, allow_unconfirmed=True)
        assert storage._engine.is_confirmed

        await asyncio.gather(storage.sync(), storage.sync())

        assert storage._engine.is_settled
        assert storage._engine.lease.head == told_first(logs) + 1

    with_storage(logs, body, backend)


SHUT_THE_GATE: list[Callable[[Storage], Any]] = [
    lambda storage: storage.put("a", 1),
    lambda storage: storage.delete("old"),
    lambda storage: storage.set_alarm(9_999_999_999_999),
    lambda storage: storage.delete_alarm(),
    lambda storage: storage.sql.exec("CREATE TABLE t (a)"),
    lambda storage: storage.delete_all(),
    lambda storage: storage.delete_all(allow_unconfirmed=True),
]


@pytest.mark.parametrize("write", SHUT_THE_GATE)
def test_one_confirmed_write_shuts_the_output_gate(logs: Logs, write: Callable[[Storage], Any]) -> None:

    async def body(storage: Storage) -> None:
        await storage.put("old", 1)
        await storage.sync()
        await storage.put("b", 1, allow_unconfirmed=True)
        assert storage._engine.is_confirmed

        write(storage)

        # SQLite alone erases on the spot, and durably; nothing else is done before the turn ends.
        erased = write in SHUT_THE_GATE[-2:] and logs.durability == "sqlite"
        assert storage._engine.is_confirmed is erased
        await storage.sync()
        assert storage._engine.is_confirmed

    with_storage(logs, body)


@pytest.mark.parametrize(
    "write",
    [
        lambda storage: storage.put("a", 1, allow_unconfirmed=True),
        lambda storage: storage.delete("old", allow_unconfirmed=True),
        lambda storage: storage.set_alarm(9_999_999_999_999, allow_unconfirmed=True),
        lambda storage: storage.delete_alarm(allow_unconfirmed=True),
    ],
)
def test_unconfirmed_writes_leave_the_output_gate_open(logs: Logs, write: Callable[[Storage], Any]) -> None:
    async def body(storage: Storage) -> None:
        await storage.put("old", 1)
        await storage.sync()

        write(storage)

        assert storage._engine.is_confirmed
        assert not storage._engine.is_clean

    with_storage(logs, body)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("write", [SHUT_THE_GATE[0], SHUT_THE_GATE[2], SHUT_THE_GATE[4]])
def test_a_confirmed_write_inside_counts_when_it_is_kept(
    logs: Logs, write: Callable[[Storage], Any], kept: bool
) -> None:
    async def body(storage: Storage) -> None:
        await storage.sync()
        async with storage.transaction() as txn:
            await txn.put("outer", 1, allow_unconfirmed=True)
            async with storage.transaction() as inner:
                write(storage)
                if not kept:
                    inner.rollback()
        assert storage._engine.is_confirmed is not kept
        await storage.sync()
        assert await storage.get("outer") == 1

    with_storage(logs, body)


def test_keys_of_a_transaction_that_was_rolled_back_need_no_table(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        with pytest.raises(ValueError, match="mine"), storage.transaction_sync():  # noqa: PT012
            storage.sql.exec("CREATE TABLE t (a)")
            storage.put("lost", 1)
            raise ValueError("mine")
        await storage.sync()
        storage.sql.exec("CREATE TABLE t (a)")
        await storage.put("kept", 2)
        assert storage._engine.checkpoint()
        storage._engine.known.clear()
        assert await storage.list() == {"kept": 2}

    with_storage(logs, body)


def test_after_a_critical_error_nothing_of_the_transaction_is_kept(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE t (a)")
        await storage.put("kept", 1)
        await storage.sync()
        storage._engine.open()._run_once("PRAGMA max_page_count = 5")

        with pytest.raises(StorageBroken, match="full"):  # noqa: PT012
            async with storage.transaction() as txn:
                await txn.put("lost", 1)
                with contextlib.suppress(StorageBroken):
                    storage.sql.exec("INSERT INTO t VALUES (zeroblob(100000))")

    async def after(storage: Storage) -> None:
        assert await storage.list() == {"kept": 1}
        assert storage.sql.exec("SELECT * FROM t").to_list() == []

    with_storage(logs, body)
    with_storage(logs, after)


def test_the_alarm_is_kept(logs: Logs, backend: str) -> None:
    when = dt.datetime(2040, 1, 2, tzinfo=dt.UTC)

    async def body(storage: Storage) -> None:
        assert await storage.get_alarm() is None
        await storage.set_alarm(9_999_999_999_999)
        assert await storage.get_alarm() == 9_999_999_999_999
        await storage.setAlarm(when)

    async def after(storage: Storage) -> None:
        assert await storage.get_alarm() == int(when.timestamp() * 1_000)
        await storage.delete_alarm()
        await storage.deleteAlarm()

    async def at_last(storage: Storage) -> None:
        assert await storage.get_alarm() is None

    for step in (body, after, at_last):
        with_storage(logs, step, backend)


@pytest.mark.parametrize("past", [0, -5, 1_000, 1.5, dt.datetime(1999, 1, 1, tzinfo=dt.UTC)])
def test_a_past_alarm_means_soon(logs: Logs, past: Any) -> None:
    async def body(storage: Storage) -> None:
        await storage.set_alarm(past)

        assert await storage.get_alarm() == storage._now_ms()

    with_storage(logs, body)


@pytest.mark.parametrize(("time", "error"), BAD_ALARMS)
def test_a_bad_alarm_is_refused(logs: Logs, time: Any, error: type[Exception]) -> None:
    async def body(storage: Storage) -> None:
        with pytest.raises(error):
            storage.set_alarm(time)
        assert await storage.get_alarm() is None

    with_storage(logs, body)


def test_a_class_without_a_handler_cannot_set_alarms(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage._has_alarm = False
        with pytest.raises(TypeError, match=r"alarm\(\) method"):
            storage.set_alarm(9_999_999_999_999)

    with_storage(logs, body)


def test_the_limits_are_the_specifications() -> None:
    assert (limits.KEY_BYTES_MAX, limits.VALUE_BYTES_MAX, limits.PAIRS_MAX) == (2_048, 131_072, 128)
