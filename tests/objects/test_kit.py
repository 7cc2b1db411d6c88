"""The test kit: a node in memory whose time, crashes and memory a test decides."""

import asyncio
import datetime as datetime_module
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from edgestead import Response, StatefulObject
from edgestead.objects.database import Database
from edgestead.objects.errors import (
    BackendError,
    BookmarkError,
    FetchError,
    KeyValueError,
    ObjectError,
    ObjectReset,
    RemoteError,
    SqlError,
    UnknownClass,
    UnknownMethod,
)
from edgestead.testing import ObjectNode
from edgestead.testing.answers import Answer
from edgestead.testing.lives import Stuck

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"


class Own(Exception):
    """Nothing that the value codec carries."""


class Counter(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.calls = 0
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS added (amount INTEGER)")

    async def add(self, by: int = 1) -> int:
        self.calls += 1
        total: int = await self.ctx.storage.get("total", default=0) + by
        await self.ctx.storage.put("total", total)
        self.ctx.storage.sql.exec("INSERT INTO added VALUES (?)", by)
        return total

    async def add_elsewhere(self, name: str) -> int:
        return int(await self.env.Counter[name].add())

    async def wait(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    async def wait_for_ever(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def poll_for_ever(self) -> None:
        while True:  # noqa: ASYNC110 - what users write
            await asyncio.sleep(60)

    async def refuse_to_end(self) -> None:
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                self.ctx.storage.put("cancelled", True)

    async def fail(self, own: bool = False) -> None:
        raise Own("words") if own else ValueError("words")

    async def abort(self) -> None:
        self.ctx.abort("enough")

    async def ask(self, url: str) -> str:
        return await (await self.ctx.fetch(url)).text()

    async def fetch(self, request) -> Response:
        body = await request.text()

        async def parts():
            yield f"{request.method} {request.path}?{request.query_string} ".encode()
            yield body.encode()

        return Response(parts(), 201, {"x-seen": request.headers.get("x-sent", "")})


class Plain(StatefulObject):
    async def moments(self) -> list[datetime]:
        return [
            datetime.now(UTC),
            datetime_module.datetime.now(UTC),
            datetime.fromtimestamp(time.time(), UTC),
            datetime.fromtimestamp(time.time_ns() / 1e9, UTC),
        ]

    async def is_still_itself(self) -> bool:
        moment = datetime(2026, 5, 1, tzinfo=UTC)
        return (
            isinstance(moment, datetime)
            and isinstance(date(2026, 5, 1), date)
            and not isinstance("x", datetime)
            and type(moment + timedelta(days=1)) is type(moment)
            and date.today() == datetime.now(UTC).date()
            and datetime.strptime("2026", "%Y").year == 2026
        )

    async def elapsed(self) -> float:
        before = time.monotonic()
        await asyncio.sleep(90)
        return time.monotonic() - before


@pytest.fixture
def counter(objects: ObjectNode):
    return objects.Counter["a"]


# calls


def test_methods_are_called_as_they_are(counter) -> None:
    assert counter.add() == 1
    assert counter.add(by=4) == 5
    assert (counter.name, len(str(counter.id))) == ("a", 64)
    assert counter.add_elsewhere("b") == 1


@pytest.mark.parametrize(
    ("call", "raised"),
    [
        (lambda c: c.fail(), ValueError),
        (lambda c: c.fail(own=True), RemoteError),
        (lambda c: c.abort(), ObjectReset),
        (lambda c: c.missing(), UnknownMethod),
        (lambda c: c.add("text"), TypeError),
        (lambda c: c.ask("http://192.0.2.1/"), FetchError),
        (lambda c: c.wait_for_ever(), Stuck),
        (lambda c: c.poll_for_ever(), Stuck),
        (lambda c: c._private(), AttributeError),
    ],
)
def test_what_fails_is_raised_as_a_caller_sees_it_and_the_object_goes_on(counter, call, raised) -> None:
    with pytest.raises(raised):
        call(counter)

    assert counter.add() == 1


def test_a_class_that_was_not_loaded_is_named(objects: ObjectNode) -> None:
    with pytest.raises(UnknownClass, match=r"'Missing'.*loaded are: Cached, Counter, Plain, Table, Timer"):
        objects.Missing["a"]
    with pytest.raises(AttributeError, match="missing"):
        objects.missing  # noqa: B018


def test_objects_without_a_name_are_new_ones(objects: ObjectNode) -> None:
    one, other = objects.Counter.new(), objects["Counter"].new()
    one.add(5)

    assert (one.name, other.add(), objects[Counter].get(str(one.id)).add()) == (None, 1, 6)
    with pytest.raises(TypeError, match="not of class Plain"):
        objects.Plain.get(one.id)


def test_a_script_calls_several_at_once(objects: ObjectNode) -> None:
    async def script(env):
        return await asyncio.gather(*(env.Counter["a"].add() for _ in range(20)), env.Counter["b"].wait(5))

    assert objects.run(script) == [*range(1, 21), "done"]


def test_a_number_repeats_an_order_of_things() -> None:
    def order(seed: int | None) -> list[int]:
        async def script(env):
            return await asyncio.gather(*(env.Counter["a"].add() for _ in range(8)))

        with ObjectNode(Counter, seed=seed) as objects:
            return objects.run(script)

    assert order(None) == [*range(1, 9)]
    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_inside_a_running_loop_it_says_what_to_do(counter) -> None:
    async def main() -> None:
        counter.add()

    with pytest.raises(RuntimeError, match="plain `def`"):
        asyncio.run(main())


def test_fetch_is_asked_without_a_socket(objects: ObjectNode, counter) -> None:
    answer = objects.fetch(counter, "/x?y=1", method="PUT", headers={"X-Sent": "z"}, body="body")

    assert (answer.status, answer.text, answer.headers) == (201, "PUT /x?y=1 body", {"x-seen": "z"})
    with pytest.raises(UnknownMethod):
        objects.fetch(objects.Plain["a"])


def test_the_test_answers_what_objects_ask_of_the_world(objects: ObjectNode, counter) -> None:
    def respond(request):
        if request.url == "http://example.org/old":
            return Answer(status=302, headers={"Location": "/new"})
        return Answer(f"{request.method} {request.url} {request.headers['host']}")

    objects.on_fetch(respond)
    assert counter.ask("http://example.org/old") == "GET http://example.org/new example.org"
    objects.on_fetch(None)
    with pytest.raises(FetchError, match="no network"):
        counter.ask("http://example.org/old")


# time


def test_time_goes_by_only_when_somebody_waits(objects: ObjectNode, counter) -> None:
    began = objects.now
    counter.add()
    assert objects.now == began == datetime(2026, 1, 1, tzinfo=UTC)
    assert counter.wait(3_600) == "done"
    objects.advance(days=1, seconds=1)
    assert objects.now - began == timedelta(days=1, hours=1, seconds=1)
    with pytest.raises(ValueError, match="set_clock"):
        objects.advance(-1)


def test_user_code_sees_the_invented_time(objects: ObjectNode) -> None:
    objects.set_clock(datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC))

    plain = objects.Plain["a"]
    assert plain.moments() == [datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)] * 4
    assert plain.elapsed() == 90
    assert plain.is_still_itself()
    assert objects.now_ms == datetime(2031, 2, 3, 4, 6, 36, tzinfo=UTC).timestamp() * 1_000


def test_the_tests_own_clock_is_the_real_one(objects: ObjectNode) -> None:
    objects.Plain["a"].moments()

    assert abs(time.time() - datetime.now(UTC).timestamp()) < 3_600
    assert datetime is datetime_module.datetime
    assert objects.now.year == 2026


def test_a_naive_time_is_refused(objects: ObjectNode) -> None:
    with pytest.raises(TypeError, match="naive"):
        objects.set_clock(datetime(2031, 2, 3))


# what user code can do to its storage


class Table(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")

    async def add(self, inside: bool) -> None:
        query = "INSERT INTO t VALUES (cast(x'ff' AS text)) RETURNING a"
        if inside:
            with self.ctx.storage.transaction_sync():
                self.ctx.storage.sql.exec(query)
        else:
            self.ctx.storage.sql.exec(query)

    async def read(self) -> None:
        self.ctx.storage.sql.exec("SELECT cast(x'ff' AS text)").next()

    async def count(self) -> int:
        return int(self.ctx.storage.sql.exec("SELECT count(*) AS n FROM t").one()["n"])


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


class Timer(StatefulObject):
    async def set(self, seconds: float, fails: int = 0) -> None:
        await self.ctx.storage.put("fails", fails)
        await self.ctx.storage.set_alarm(int((time.time() + seconds) * 1_000))

    async def alarm(self) -> None:
        left: int = await self.ctx.storage.get("fails")
        await self.ctx.storage.put("fails", left - 1)
        if left > 0:
            raise ValueError("not yet")
        await self.ctx.storage.put("rang", time.time())


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


class Cached(StatefulObject):
    async def remember(self, key: str, value: str, ttl: int | None = None) -> None:
        await self.env.CACHE.put(key, value, expiration_ttl=ttl, metadata={"by": self.ctx.id.name})

    async def recall(self, key: str) -> str | None:
        found: str | None = await self.env.CACHE.get(key)
        return found

    async def keys(self, limit: int) -> list[list[str]]:
        pages, cursor = [], ""
        while True:
            page = await self.env.CACHE.list(limit=limit, cursor=cursor)
            pages.append([key["name"] for key in page["keys"]])
            if page["list_complete"]:
                return pages
            cursor = page["cursor"]


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


@pytest.mark.parametrize(("key", "value", "ttl"), [("", "x", None), ("k" * 513, "x", None), ("k", "x", 5)])
def test_namespaces_refuse_what_a_server_refuses(objects: ObjectNode, key, value, ttl) -> None:
    with pytest.raises(KeyValueError):
        objects.Cached["c"].remember(key, value, ttl)
    assert objects.namespace("CACHE").keys() == []
    with pytest.raises(KeyError):
        objects.namespace("OTHER")


# the plugin


def test_a_start_of_pytest_pays_nothing_for_the_plugin() -> None:
    code = "import sys, edgestead.testing.plugin; print([m for m in sys.modules if m.startswith(%r)])"
    heavy = ("edgestead.objects", "edgestead.store", "apsw", "msgspec", "uvloop", "httptools")
    done = subprocess.run(
        [sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, env={"PYTHONPATH": str(SRC)}
    )

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_users_project_needs_no_configuration(tmp_path: Path) -> None:
    """As installed: the entry point names the plugin, and a conftest.py that names it too is no error."""
    metadata = tmp_path / "site" / "edgestead-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: edgestead\nVersion: 0\n")
    entry = "edgestead.testing.plugin"
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{entry} = {entry}\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "conftest.py").write_text(f'pytest_plugins = ["{entry}"]\n')
    (project / "shop.py").write_text(
        "from edgestead import StatefulObject\n"
        "class Shop(StatefulObject):\n"
        "    async def hello(self):\n"
        "        return 'hello'\n"
    )
    (project / "test_shop.py").write_text(
        "from shop import Shop\ndef test_it(objects):\n    assert objects.Shop['a'].hello() == 'hello'\n"
    )
    (project / "test_other.py").write_text("def test_it(): pass\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=project,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{SRC}:{tmp_path / 'site'}", "PATH": "/usr/bin:/bin"},
    )

    assert "2 passed" in done.stdout, done.stdout + done.stderr
