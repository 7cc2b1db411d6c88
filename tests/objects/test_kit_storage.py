"""The test kit: what is stored, taken back, crashed, looked at, woken."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import apsw
import pytest

from edgestead import StatefulObject
from edgestead.objects.errors import (
    BackendError,
    BookmarkError,
    KeyValueError,
    ObjectError,
    ObjectReset,
    SqlError,
)
from edgestead.objects.runtime.database import Database
from edgestead.testing import ObjectNode
from tests.objects.kit_classes import CLASSES


@pytest.fixture
def object_classes() -> list[type[StatefulObject]]:
    return CLASSES


@pytest.fixture
def counter(objects: ObjectNode):
    return objects.Counter["a"]


# what user code can do to its storage


@pytest.mark.parametrize(
    ("call", "rows"), [(lambda t: t.add(False), 1), (lambda t: t.add(True), 0), (lambda t: t.read(), 0)]
)
def test_a_text_that_is_none_is_an_error_and_the_object_goes_on(objects: ObjectNode, call, rows) -> None:
    table = objects.Table["t"]
    for number in (1, 2):
        with pytest.raises(SqlError, match="not UTF-8"):
            call(table)
        assert table.count() == rows * number


def test_a_transaction_that_cannot_be_ended_resets_the_object(
    objects: ObjectNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(database: Database, level: int) -> None:
        raise apsw.BusyError("cannot release savepoint - SQL statements in progress")

    table = objects.Table["t"]
    with monkeypatch.context() as patch:
        patch.setattr(Database, "roll_back_to", fail)
        with pytest.raises(ObjectReset, match="SQL statements in progress"):
            table.add(True)

    assert table.count() == 0


# alarms


@pytest.fixture
def timer(objects: ObjectNode):
    return objects.Timer["t"]


def rang_after(objects: ObjectNode, timer) -> float | None:
    """Seconds from the start of the test's time."""
    rang: float | None = objects.storage(timer).get("rang")
    return None if rang is None else rang - datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def test_an_alarm_runs_at_its_time(objects: ObjectNode, timer) -> None:
    timer.set(60)
    objects.advance(59.9)
    assert rang_after(objects, timer) is None
    objects.advance(3_600)
    assert rang_after(objects, timer) == 60
    assert objects.storage(timer).get_alarm() is None


def test_a_failed_alarm_is_tried_again(objects: ObjectNode, timer) -> None:
    timer.set(60, fails=2)
    objects.advance(hours=1)

    rang = rang_after(objects, timer)
    assert rang is not None
    assert 60 + 2 + 4 <= rang <= 60 + 2.5 + 5


def test_an_alarm_outlives_crash_and_snapshot_and_a_set_clock_is_noticed(objects: ObjectNode, timer) -> None:
    timer.set(days := 30 * 86_400)
    snapshot = objects.snapshot()
    objects.crash()
    objects.advance(days=31)
    assert rang_after(objects, timer) == days
    objects.rollback(snapshot)
    assert rang_after(objects, timer) is None
    objects.set_clock(datetime(2026, 3, 1, tzinfo=UTC))
    objects.advance(0)
    assert rang_after(objects, timer) == 59 * 86_400


def test_an_alarm_is_run_before_its_time(objects: ObjectNode, timer) -> None:
    timer.set(3_600)
    assert objects.run_alarm(timer)
    assert rang_after(objects, timer) == 0
    assert not objects.run_alarm(timer)
    timer.set(3_600, fails=1)
    with pytest.raises(ObjectError, match=r"alarm\(\) method"):
        objects.run_alarm(objects.Plain["p"])
    with pytest.raises(ValueError, match="not yet"):
        objects.inside(timer, lambda self: self.alarm())


# the past


def test_an_object_is_taken_back_to_a_bookmark_or_a_time(objects: ObjectNode, counter) -> None:
    counter.add(1)
    mark, then = objects.bookmark(counter), objects.now
    objects.advance(60)
    counter.add(10)

    undo = objects.restore(counter, mark)
    assert counter.add(0) == 1
    assert objects.storage(counter).sql("SELECT sum(amount) AS n FROM added") == [{"n": 1}]
    objects.restore(counter, undo)
    assert counter.add(0) == 11
    objects.crash()
    objects.restore(counter, then)
    assert counter.add(0) == 1
    objects.undo(counter)
    assert counter.add(0) == 11
    assert objects.bookmark(counter, then) == mark
    assert mark in [moment.bookmark for moment in objects.timeline(counter)]


def test_objects_of_the_other_backend_are_taken_back_too(objects: ObjectNode) -> None:
    storage = objects.storage(plain := objects.Plain["p"])
    storage.put("key", 1)
    mark = objects.bookmark(plain)
    storage.delete_all()

    objects.restore(plain, mark)

    assert storage.get("key") == 1


def test_a_moment_that_is_not_kept_is_refused(objects: ObjectNode, counter) -> None:
    counter.add(1)
    mark = objects.bookmark(counter)
    for to in ("x", objects.bookmark(other := objects.Counter["b"]), datetime(2020, 1, 1, tzinfo=UTC)):
        with pytest.raises(BookmarkError):
            objects.restore(counter, to)
    objects.advance(days=31)
    counter.add(1)
    with pytest.raises(BookmarkError):
        objects.undo(other)
    assert counter.add(0) == 2
    assert objects.bookmark(counter) > mark


# processes


@pytest.mark.parametrize("power", [False, True])
def test_a_crash_loses_memory_and_nothing_that_was_answered(objects: ObjectNode, counter, power) -> None:
    for seed in range(5):
        assert counter.add() == seed + 1
        objects.crash(power=power, seed=seed)
        assert not objects.is_live(counter)

    assert objects.storage(counter).sql("SELECT sum(amount) AS total FROM added") == [{"total": 5}]
    assert objects.inside(counter, lambda self: self.calls) == 0


def test_a_crash_in_the_middle_has_no_effect_of_what_came_behind(objects: ObjectNode, counter) -> None:
    async def script(env):
        asyncio.get_running_loop().create_task(env.Counter["a"].refuse_to_end())
        await asyncio.sleep(5)

    objects.run(script)
    objects.crash()

    assert objects.storage(counter).list() == {}


def test_a_rollback_takes_storage_and_time_back(objects: ObjectNode, counter) -> None:
    counter.add(10)
    before, snapshot = objects.now, objects.snapshot()
    objects.advance(3_600)
    counter.add(5)
    objects.Counter["other"].add()

    objects.rollback(snapshot)

    assert objects.now == before
    assert (counter.add(), objects.Counter["other"].add()) == (11, 1)
    objects.rollback(snapshot)
    assert counter.add(2) == 12


def test_a_snapshot_begins_other_nodes_also_of_later_classes(objects: ObjectNode, counter) -> None:
    counter.add(10)
    snapshot = objects.snapshot()

    class Counter(StatefulObject):
        storage = "sql"

        async def double(self) -> int:
            return int(await self.ctx.storage.get("total")) * 2

    with ObjectNode(Counter, start=snapshot) as later:
        assert later.Counter["a"].double() == 20
        assert later.now == objects.now
    assert counter.add() == 11


def test_objects_leave_memory_when_nobody_calls_or_when_told(objects: ObjectNode, counter) -> None:
    counter.add()
    objects.advance(5)
    assert objects.is_live(counter)
    objects.advance(11)
    assert not objects.is_live(counter)
    counter.add()
    assert objects.evict(counter)
    assert not objects.is_live(counter)


def test_many_commits_of_many_objects_do_not_fill_the_disk(objects: ObjectNode) -> None:
    for number in range(40):
        objects.storage(objects.Plain[f"{number}"]).put("key", "x" * 60_000)
        objects.advance(1)

    assert sum(len(inode.data) for inode in objects.disk.inodes.values()) < 12_000_000


# inside


def test_storage_is_read_and_written_from_outside_without_running_the_class(
    objects: ObjectNode, counter
) -> None:
    storage = objects.storage(counter)
    storage.put({"total": 41, "other": None})
    assert (storage.get("total"), storage.get("missing", 5), storage.list(prefix="o")) == (
        41,
        5,
        {"other": None},
    )
    assert not objects.is_live(counter)

    assert counter.add() == 42
    assert storage.get("total") == 42
    storage.put("total", 1)
    assert storage.delete("other")
    assert objects.is_live(counter)
    assert counter.add() == 2
    storage.delete_all()
    assert storage.list() == {}


@pytest.mark.parametrize("live", [True, False])
def test_what_was_stored_from_outside_outlives_a_crash(objects: ObjectNode, counter, live: bool) -> None:
    if live:
        counter.add()
    objects.storage(counter).put("total", 41)

    objects.crash(power=True, seed=3)

    assert counter.add() == 42


def test_what_storage_refuses_is_raised(objects: ObjectNode) -> None:
    with pytest.raises(BackendError):
        objects.storage(objects.Plain["a"]).sql("SELECT 1")
    with pytest.raises(TypeError, match="alarm"):
        objects.storage(objects.Plain["a"]).set_alarm(5)


def test_the_living_object_can_be_looked_at(objects: ObjectNode, counter) -> None:
    async def look(self) -> int:
        await asyncio.sleep(1)
        return int(self.calls)

    counter.add()
    assert objects.inside(counter, lambda self: self.calls) == objects.inside(counter, look) == 1
    with pytest.raises(ZeroDivisionError):
        objects.inside(counter, lambda self: 1 / 0)


@pytest.fixture
def object_namespaces() -> list[str]:
    return ["CACHE"]


def test_objects_reach_key_value_namespaces(objects: ObjectNode) -> None:
    cached, cache = objects.Cached["c"], objects.namespace("CACHE")
    cache.put("outside", "x")
    cached.remember("a", "1")
    cached.remember("b", "2", ttl=60)

    assert (cached.recall("outside"), cached.recall("missing"), cache.get("a")) == ("x", None, "1")
    assert cached.keys(2) == [["a", "b"], ["outside"]]
    objects.advance(60)
    assert cached.recall("b") is None
    snapshot = objects.snapshot()
    cache.delete("a")
    objects.crash()
    assert cache.keys() == ["outside"]
    objects.rollback(snapshot)
    assert cache.keys(prefix="a") == ["a"]


def test_metadata_is_as_long_as_its_shortest_json(objects: ObjectNode) -> None:
    longest = ["é" * 500, 1234567, "x" * 9]  # 1,024 bytes without blanks and escapes

    async def write(env: Any) -> Any:
        await env.CACHE.put("k", "v", metadata=longest)
        with pytest.raises(KeyValueError):
            await env.CACHE.put("k", "v", metadata=[*longest, "y"])
        return await env.CACHE.get_with_metadata("k")

    assert objects.run(write) == {"value": "v", "metadata": longest}


@pytest.mark.parametrize("method", ["get", "get_with_metadata"])
def test_another_type_is_refused_whether_or_not_there_is_a_value(objects: ObjectNode, method: str) -> None:
    async def ask(env: Any) -> None:
        with pytest.raises(TypeError, match='"text", "json" or "bytes"'):
            await getattr(env.CACHE, method)("nothing", type="xml")

    objects.run(ask)


@pytest.mark.parametrize(("key", "value", "ttl"), [("", "x", None), ("k" * 513, "x", None), ("k", "x", 5)])
def test_namespaces_refuse_what_a_server_refuses(objects: ObjectNode, key, value, ttl) -> None:
    with pytest.raises(KeyValueError):
        objects.Cached["c"].remember(key, value, ttl)
    assert objects.namespace("CACHE").keys() == []
    with pytest.raises(KeyError):
        objects.namespace("OTHER")
