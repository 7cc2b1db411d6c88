"""`durability = "sqlite"`: what differs from the log. That storage keeps its promises all other tests say."""

import asyncio
from typing import Any

import apsw
import pytest

from edgestead.objects.errors import ObjectError, StorageBroken
from edgestead.objects.ids import from_name
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.database import Database
from edgestead.objects.runtime.node import Node
from edgestead.sqlite.objectlog.local import LocalLease
from edgestead.store.objectlog import LogError, own_path
from tests.objects.logs import Logs, entries, leased
from tests.objects.nodes import run
from tests.objects.test_shards import Alarmed, Counter, Table

ALARM_MS = 10**13


class Lost:
    """What the log says of a group that a kill will take away."""

    state, error = "durable", None

    def on_done(self, callback: Any) -> None:
        callback(None)


LOST = Lost()


@pytest.fixture(autouse=True)
def _own(logs: Logs) -> None:
    logs.durability = "sqlite"


def databases(logs: Logs) -> list[str]:
    return [path for path in logs.disk.inodes if path.endswith(".sqlite")]


def test_the_log_has_every_commit_for_the_past_and_no_database(logs: Logs) -> None:
    async def script(node: Node) -> None:
        for _ in range(5):
            await node.env.Counter["a"].add()
        (entry,) = entries(node.log)
        assert (entry.ref.name, entry.head) == ("a", 6)  # that there is an object, and five commits
        (path,) = databases(logs)
        assert path.endswith(".own.sqlite")

    run(logs, script, Counter)


def test_the_log_knows_an_alarm_as_long_as_there_is_one(logs: Logs) -> None:
    async def script(node: Node) -> None:
        object_ = node.env.Alarmed["a"]
        await object_.remind(ALARM_MS)
        assert node.store.alarms.next_us() == ALARM_MS * 1_000
        await object_.forget()
        assert node.store.alarms.next_us() is None
        await object_.remind(ALARM_MS + 1)

    async def later(node: Node) -> None:
        assert node.store.alarms.next_us() == (ALARM_MS + 1) * 1_000
        assert await node.env.Alarmed["a"].reminder() == ALARM_MS + 1

    run(logs, script, Alarmed)
    logs.killed()
    run(logs, later, Alarmed)


def test_an_alarm_that_only_the_log_knows_was_never_set(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(node: Node) -> None:
        await node.env.Alarmed["a"].remind(ALARM_MS)
        logs.disk.fail_errno = 28
        logs.disk.fail_at = logs.disk.operations + 4  # behind the log's record and its sync
        with pytest.raises(ObjectError):
            await node.env.Alarmed["a"].remind(ALARM_MS + 1)
        logs.disk.fail_errno = 0
        assert node.store.alarms.next_us() == (ALARM_MS + 1) * 1_000
        assert await node.env.Alarmed["a"].reminder() == ALARM_MS
        assert node.store.alarms.next_us() == ALARM_MS * 1_000

    run(logs, script, Alarmed)


@pytest.mark.parametrize(("first", "then"), [("log", "sqlite"), ("sqlite", "log")])
def test_a_class_with_objects_cannot_change_its_durability(logs: Logs, first: Any, then: Any) -> None:
    marks: list[str] = []

    async def write(node: Node) -> None:
        await node.env.Counter["a"].add()

    async def refused(node: Node) -> None:
        (entry,) = entries(node.log)
        with pytest.raises(ObjectError, match=f'durability = "{first}"'):
            await node.env.Counter["a"].add()
        marks.append(await Operations(node).bookmark(entry.ref))  # operators look into it all the same
        assert await node.check(entry.ref) == []
        assert await node.env.Counter["b"].add() == 1

    async def unharmed(node: Node) -> None:
        (entry,) = [one for one in entries(node.log) if one.ref.name == "a"]
        assert await node.env.Counter["a"].add() == 2
        await Operations(node).restore(entry.ref, marks[0])
        assert await node.env.Counter["a"].add() == 2

    for durability, script in ((first, write), (then, refused), (first, unharmed)):
        logs.durability = durability
        run(logs, script, Counter)


def test_commits_that_the_log_was_not_told_of_are_told_at_the_next_start(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks: list[str] = []

    async def script(node: Node) -> None:
        counter = node.env.Counter["a"]
        await counter.add()
        (entry,) = entries(node.log)
        marks.append(await Operations(node).bookmark(entry.ref))
        with monkeypatch.context() as patch:
            patch.setattr(LocalLease, "append", lambda *args, **named: LOST)
            for _ in range(3):
                await counter.add()

    async def later(node: Node) -> None:
        counter = node.env.Counter["a"]
        assert await counter.add() == 5
        (entry,) = entries(node.log)
        now = await Operations(node).bookmark(entry.ref)
        undo = await Operations(node).restore(entry.ref, marks[0])
        assert await counter.add() == 2
        await Operations(node).restore(entry.ref, undo)
        assert await counter.add() == 6
        await Operations(node).restore(entry.ref, now)
        assert await counter.add() == 6
        assert await Operations(node).verify(entry.ref) == []

    run(logs, script, Counter, close=False)
    logs.killed()
    run(logs, later, Counter)


def test_an_object_that_somebody_else_has_by_now_is_closed_all_the_same(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.env.Counter["a"].add()
        ref = from_name("Counter", "a")
        assert node.evict(("Counter", ref.id))
        engine = node._make_engine(leased(node.log, ref), lambda error: None, "sqlite")
        leased(node.log, ref)

        engine.close()

        assert engine.database is None

    run(logs, script, Counter)


def test_an_object_whose_log_is_full_as_it_begins_ends_no_process(logs: Logs) -> None:
    async def script(node: Node) -> None:
        alarmed = node.env.Alarmed["a"]
        await alarmed.remind(ALARM_MS)
        logs.disk.fail_errno = 28
        logs.disk.fail_at = logs.disk.operations + 4  # behind the log's record and its sync
        with pytest.raises(ObjectError):
            await alarmed.remind(ALARM_MS + 1)
        await asyncio.sleep(0.01)
        logs.disk.fails_on = lambda operation, path: "/log/segment" in path
        logs.disk.fail_at = logs.disk.operations + 1  # what the database says, in the log
        with pytest.raises(StorageBroken, match="no space left"):
            await alarmed.reminder()
        logs.disk.fail_errno = 0

        assert logs.fatal == []
        await asyncio.sleep(3)
        assert await alarmed.reminder() == ALARM_MS

    run(logs, script, Alarmed)


def test_an_object_that_cannot_begin_leaves_nothing_open(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(database: Database) -> None:
        raise apsw.IOError("disk I/O error")

    async def script(node: Node) -> None:
        ref = from_name("Counter", "a")
        await node.env.Counter["a"].add()
        assert node.evict(("Counter", ref.id))
        with monkeypatch.context() as patch:
            patch.setattr(Database, "own_state", broken)
            for _ in range(2):
                with pytest.raises(StorageBroken, match="I/O"):
                    await node.env.Counter["a"].add()
            with pytest.raises(LogError, match="I/O"):
                await node.check(ref)
        await asyncio.sleep(0.01)

        assert len(logs.databases) == 4
        for database in logs.databases:
            with pytest.raises(apsw.ConnectionClosedError):
                database.connection.execute("SELECT 1")
        assert not node._opened
        assert not node.log._directory.find(ref).leased  # type: ignore[attr-defined]
        assert await node.env.Counter["a"].add() == 2

    run(logs, script, Counter)


def test_own_path_stands_beside_what_the_log_would_keep() -> None:
    assert own_path("/d/Counter/ab/abc.sqlite") == "/d/Counter/ab/abc.own.sqlite"


def test_tables_survive_a_kill_without_a_checkpoint(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.env.Table["a"].insert("x")
        await node.env.Table["a"].insert("y")

    async def later(node: Node) -> None:
        assert await node.env.Table["a"].values() == ["x", "y"]

    run(logs, script, Table, close=False)
    logs.power_cut()
    run(logs, later, Table)
