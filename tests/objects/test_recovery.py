"""Going back in time: every bookmark leads to what was, and a restore can be undone."""

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects.errors import (
    Aborted,
    BackendError,
    BookmarkError,
    StorageBroken,
    TransactionError,
)
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.database import Database
from edgestead.objects.runtime.node import Node
from edgestead.store.history import asking
from edgestead.store.history.reader import Damaged
from edgestead.store.objectlog import LogAway
from edgestead.testing.simulation import EPOCH_SECONDS, SimulatedLoop
from tests.objects.logs import Logs, entries
from tests.objects.nodes import run

START_MS = EPOCH_SECONDS * 1_000
DAY_MS = 24 * 3600 * 1_000
Script = Callable[[Any, Node], Coroutine[Any, Any, Any]]


class Diary(StatefulObject):
    """Keys, rows and an alarm."""

    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS line (n INTEGER PRIMARY KEY, text)")

    async def alarm(self) -> None:
        await self.ctx.storage.put("rung", True)

    async def write(self, n: int, text: str = "") -> str:
        self.ctx.storage.sql.exec("INSERT OR REPLACE INTO line VALUES (?, ?)", n, text)
        self.ctx.storage.put("last", n)
        return await self.ctx.storage.get_current_bookmark()

    async def put(self, key: str, value: Any) -> str:
        await self.ctx.storage.put(key, value)
        return await self.ctx.storage.get_current_bookmark()

    async def put_only(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def write_only(self, n: int, text: str) -> None:
        self.ctx.storage.sql.exec("INSERT OR REPLACE INTO line VALUES (?, ?)", n, text)

    async def remind(self, time: int | None) -> None:
        await (self.ctx.storage.delete_alarm() if time is None else self.ctx.storage.set_alarm(time))

    async def forget(self) -> None:
        await self.ctx.storage.delete_all()

    async def bookmark(self) -> str:
        return await self.ctx.storage.get_current_bookmark()

    async def bookmark_for(self, time: Any) -> str:
        return await self.ctx.storage.get_bookmark_for_time(time)

    async def put_and_bookmark_for(self, key: str, ago_ms: int) -> str:
        """Without waiting for anything in between."""
        now_ms = self.now_ms() - ago_ms
        await self.ctx.storage.put(key, 1)
        return await self.ctx.storage.get_bookmark_for_time(now_ms)

    async def late(self, key: str) -> tuple[list[str], list[str]]:
        """Three commits while the log is at others', each in a later millisecond; then when each was."""
        marks, times = [], []
        for n in range(3):
            await self.ctx.storage.put(key, n)
            marks.append(await self.ctx.storage.get_current_bookmark())
            times.append(self.now_ms())
            await self.tick()
        return marks, [await self.ctx.storage.get_bookmark_for_time(time) for time in times]

    async def plan(self, bookmark: Any) -> str:
        return await self.ctx.storage.on_next_session_restore_bookmark(bookmark)

    async def restore_at_once(self, key: str) -> None:
        """To a bookmark of what no disk has yet."""
        await self.ctx.storage.put(key, 1)
        bookmark = await self.ctx.storage.get_current_bookmark()
        await self.ctx.storage.put(key, 2)
        await self.ctx.storage.on_next_session_restore_bookmark(bookmark)
        self.ctx.abort("going back")

    async def give_up(self) -> None:
        self.ctx.abort("giving up")

    async def go_back(self, bookmark: str) -> None:
        await self.ctx.storage.on_next_session_restore_bookmark(bookmark)
        self.ctx.abort("going back")

    async def in_transaction(self) -> None:
        async with self.ctx.storage.transaction():
            await self.ctx.storage.get_current_bookmark()

    async def read(self) -> dict[str, Any]:
        rows = self.ctx.storage.sql.exec("SELECT n, text FROM line ORDER BY n").raw().to_list()
        assert self.ctx.storage.sql.exec("PRAGMA quick_check").one() == {"quick_check": "ok"}
        keys = await self.ctx.storage.list()
        return {"rows": rows, "keys": keys, "alarm": await self.ctx.storage.get_alarm()}


class Keys(StatefulObject):
    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def read(self) -> dict[str, Any]:
        return await self.ctx.storage.list()

    async def bookmark(self) -> str:
        return await self.ctx.storage.get_current_bookmark()

    async def bookmark_for(self) -> str:
        return await self.ctx.storage.get_bookmark_for_time(0)

    async def plan(self) -> str:
        return await self.ctx.storage.on_next_session_restore_bookmark("")


def with_diary(logs: Logs, script: Script, **options: Any) -> Any:
    return run(logs, lambda node: script(node.env.Diary["one"], node), Diary, Keys, **options)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node's clock, for the class."""
    monkeypatch.setattr(Diary, "now_ms", lambda self: _loop().now_ms(), raising=False)

    async def tick(self: Diary) -> None:
        _loop().now += 0.002

    monkeypatch.setattr(Diary, "tick", tick, raising=False)


def _loop() -> SimulatedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop


async def restored(diary: Any, bookmark: str) -> str:
    """Go back; gives the bookmark that undoes it."""
    undo: str = await diary.plan(bookmark)
    with pytest.raises(Aborted):
        await diary.go_back(bookmark)
    return undo


# back and forth


@pytest.mark.parametrize("logging", ["keys", "pages"])
def test_a_restore_brings_back_keys_rows_and_the_alarm(logs: Logs, logging: str) -> None:
    async def script(diary: Any, node: Node) -> None:
        await diary.write(1, "one")
        await diary.remind(START_MS + DAY_MS)
        await diary.put("k", ["kept"])
        then, bookmark = await diary.read(), await diary.bookmark()
        await diary.write(1, "changed")
        await diary.write(2, "two" * 3_000)
        await diary.put("k", None)
        await diary.remind(START_MS + 5 * DAY_MS)
        later = await diary.read()

        undo = await restored(diary, bookmark)
        assert await diary.read() == then
        assert node.store.alarms.next_us() == (START_MS + DAY_MS) * 1_000

        await restored(diary, undo)
        assert await diary.read() == later

    with_diary(logs, script, logging=logging)


def test_a_restore_waits_for_a_log_that_is_away(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(diary: Any, node: Node) -> None:
        first = await diary.write(1)
        await diary.write(2)
        with monkeypatch.context() as patch:
            patch.setattr(node.past, "recall", lambda *question: question[-1](None, LogAway("away")))
            with pytest.raises(Aborted):
                await diary.go_back(first)
            with pytest.raises(StorageBroken, match="away"):
                await diary.read()

        assert [row[0] for row in (await diary.read())["rows"]] == [1]

    with_diary(logs, script)


def test_a_restore_waits_for_a_descriptor(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def script(diary: Any, node: Node) -> None:
        first = await diary.write(1)
        await diary.write(2)
        await diary.plan(first)
        with monkeypatch.context() as patch:
            patch.setattr(node.log._chronicle._archive, "follow", none_left)  # type: ignore[attr-defined]
            with pytest.raises(Aborted):
                await diary.give_up()
            with pytest.raises(StorageBroken, match="Too many open files"):
                await diary.read()

        assert [row[0] for row in (await diary.read())["rows"]] == [1]

    with_diary(logs, script)


def test_a_restore_of_what_cannot_be_read_is_not_said_to_be_done(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(diary: Any, node: Node) -> None:
        first = await diary.write(1)
        await diary.write(2)
        before, ref = await diary.read(), entries(node.log)[0].ref
        with monkeypatch.context() as patch:
            patch.setattr(node.past, "recall", lambda *question: question[-1](None, Damaged("a sum")))
            with pytest.raises(BookmarkError, match="stays as it was"):
                await Operations(node).restore(ref, first)
        assert await diary.read() == before

    with_diary(logs, script)


def test_a_restore_whose_file_cannot_be_written_ends_no_process(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    async def script(diary: Any, node: Node) -> None:
        first = await diary.write(1, "one" * 3_000)
        await diary.write(1, "two" * 3_000)
        with monkeypatch.context() as patch:
            patch.setattr(asking, "write_frames", full)
            patch.setattr(Database, "become", full)
            with pytest.raises(Aborted):
                await diary.go_back(first)
            with pytest.raises(StorageBroken, match="no space left"):
                await diary.read()

        assert logs.fatal == []
        assert (await diary.read())["rows"] == [[1, "one" * 3_000]]

    with_diary(logs, script)


def test_the_undo_bookmark_means_the_moment_just_before_the_restore(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        first = await diary.write(1)
        undo = await diary.plan(first)
        await diary.write(2)  # between the call and the restart
        before = await diary.read()
        await node.take_back(node.log_ref())  # type: ignore[attr-defined]
        assert [row[0] for row in (await diary.read())["rows"]] == [1]

        await restored(diary, undo)

        assert await diary.read() == before

    async def with_ref(diary: Any, node: Node) -> None:
        node.log_ref = lambda: entries(node.log)[0].ref  # type: ignore[attr-defined]
        await script(diary, node)

    with_diary(logs, with_ref)


def test_bookmarks_are_ordered_as_text_also_over_restores(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> list[str]:
        marks = [await diary.bookmark()]
        marks += [await diary.write(n) for n in range(12)]
        undo = await restored(diary, marks[3])
        marks += [undo, await diary.bookmark()]
        marks += [await diary.write(n) for n in range(20, 24)]
        undo = await restored(diary, undo)
        marks += [undo, await diary.bookmark()]
        return marks

    marks = with_diary(logs, script)

    assert marks == sorted(marks)
    assert len(set(marks)) == len(marks)
    assert all(set(mark) <= set("0123456789abcdef-") for mark in marks)


def test_history_is_not_cut_off_by_a_restore(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        marks, states = [], []
        for n in range(6):
            marks.append(await diary.write(n, str(n)))
            states.append(await diary.read())
        for index in (1, 5, 0, 3, 4, 2, 5):
            await restored(diary, marks[index])
            assert await diary.read() == states[index]

    with_diary(logs, script)


def test_a_restore_to_before_the_first_commit_empties_the_object(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> Any:
        await asyncio.sleep(10)
        await diary.write(1)
        await diary.remind(START_MS + DAY_MS)
        await restored(diary, await diary.bookmark_for(START_MS + 1_000))
        empty = await diary.read()
        await diary.write(2)
        return empty, (await diary.read())["rows"]

    assert with_diary(logs, script) == ({"rows": [], "keys": {}, "alarm": None}, [[2, ""]])


def test_a_restore_undoes_delete_all(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> tuple[Any, Any]:
        bookmark = await diary.write(1, "x" * 20_000)
        before = await diary.read()
        await diary.forget()
        with pytest.raises(Aborted):
            await diary.go_back(bookmark)
        return before, await diary.read()

    before, after = with_diary(logs, script)
    assert before == after


def test_a_later_schedule_replaces_an_earlier_one(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> Any:
        first, second = await diary.write(1), await diary.write(2)
        await diary.write(3)
        await diary.plan(first)
        with pytest.raises(Aborted):
            await diary.go_back(second)
        return (await diary.read())["rows"]

    assert with_diary(logs, script) == [[1, ""], [2, ""]]


@pytest.mark.parametrize("end", ["closed", "killed", "power"])
def test_a_restore_that_is_pending_happens_after_any_end(logs: Logs, end: str) -> None:
    async def plan(diary: Any, node: Node) -> Any:
        bookmark = await diary.write(1)
        state = await diary.read()
        await diary.write(2)
        return state, await diary.plan(bookmark)

    state, undo = with_diary(logs, plan, close=end == "closed")
    logs.power_cut() if end == "power" else logs.killed()

    async def look(diary: Any, node: Node) -> tuple[Any, Any]:
        found = await diary.read()
        await restored(diary, undo)
        return found, (await diary.read())["rows"]

    assert with_diary(logs, look) == (state, [[1, ""], [2, ""]])


def test_eviction_is_a_restart_too(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> Any:
        bookmark = await diary.write(1)
        await diary.write(2)
        await diary.plan(bookmark)
        await asyncio.sleep(30)
        return (await diary.read())["rows"]

    assert with_diary(logs, script) == [[1, ""]]


# times


@pytest.mark.parametrize("ago_ms", [0, 1, 60_000, DAY_MS, 29 * DAY_MS])
def test_a_fresh_object_has_a_bookmark_for_any_time(logs: Logs, clock: None, ago_ms: int) -> None:
    async def script(diary: Any, node: Node) -> tuple[str, str]:
        found = await diary.put_and_bookmark_for("k", ago_ms)
        now = await diary.bookmark()
        await restored(diary, found)
        assert (await diary.read())["keys"] == ({"k": 1} if ago_ms == 0 else {})
        return found, now

    found, now = with_diary(logs, script)

    assert int(found.split("-")[2], 16) == (0 if ago_ms else int(now.split("-")[2], 16))


def test_what_has_a_bookmark_counts_for_the_times_after_it(logs: Logs, clock: None) -> None:
    async def script(diary: Any, node: Node) -> None:
        await diary.put("k", "before")
        others = [asyncio.ensure_future(node.env.Keys[str(n)].put("k", n)) for n in range(4)]
        await asyncio.sleep(0)  # the log is at these

        marks, found = await diary.late("k")

        assert found == marks
        assert len(set(marks)) == 3
        await asyncio.gather(*others)

    with_diary(logs, script)


def test_now_is_now_although_the_clock_was_set_back(logs: Logs, clock: None) -> None:
    async def script(diary: Any, node: Node) -> None:
        await diary.put("k", 1)
        _loop().skew_seconds = -3_600

        found = await diary.put_and_bookmark_for("k", 0)

        assert found == await diary.bookmark()

    with_diary(logs, script)


def test_a_bookmark_of_what_no_disk_has_yet_leads_back(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        with pytest.raises(Aborted):
            await diary.restore_at_once("k")

        assert (await diary.read())["keys"] == {"k": 1}

    with_diary(logs, script)


def test_a_bookmark_for_a_time_is_of_the_last_commit_before_it(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        for n in range(5):
            await asyncio.sleep(10)
            await diary.write(n)
        await asyncio.sleep(10)
        for seconds, rows in ((5, 0), (12, 1), (19, 1), (35, 3), (50.5, 5)):
            bookmark = await diary.bookmark_for(START_MS + seconds * 1_000)
            undo = await restored(diary, bookmark)
            assert len((await diary.read())["rows"]) == rows
            await restored(diary, undo)

    with_diary(logs, script)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (lambda now: now + 1_000, "future"),
        (lambda now: now - 31 * DAY_MS, "30 days"),
        (lambda now: 0, "30 days"),
        (lambda now: datetime.fromtimestamp(now / 1_000, UTC) + timedelta(hours=1), "future"),
    ],
)
def test_times_outside_the_window_are_refused(logs: Logs, time: Any, words: str) -> None:
    async def script(diary: Any, node: Node) -> None:
        await diary.write(1)
        with pytest.raises(BookmarkError, match=words):
            await diary.bookmark_for(time(node.now_ms()))

    with_diary(logs, script)


@pytest.mark.parametrize("time", ["today", None, True, [], datetime(2023, 11, 14)])
def test_what_is_no_time_is_a_type_error(logs: Logs, time: Any) -> None:
    async def script(diary: Any, node: Node) -> None:
        with pytest.raises(TypeError):
            await diary.bookmark_for(time)

    with_diary(logs, script)


def test_an_aware_datetime_is_a_time(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> bool:
        await diary.write(1)
        await asyncio.sleep(1)
        now = node.now_ms()
        same: bool = await diary.bookmark_for(now) == await diary.bookmark_for(
            datetime.fromtimestamp(now / 1_000, UTC)
        )
        return same

    assert with_diary(logs, script)


# refusals


def broken(mark: str) -> dict[str, Any]:
    digits = mark.replace("-", "")
    return {
        "empty": "",
        "words": "yesterday",
        "short": mark[:-1],
        "long": mark + "0",
        "upper case": mark.upper() if mark.upper() != mark else "A" + mark[1:],
        "no hyphens": digits,
        "one digit changed": ("0" if mark[30] != "0" else "1").join((mark[:30], mark[31:])),
        "checksum changed": mark[:-1] + ("0" if mark[-1] != "0" else "1"),
    }


@pytest.mark.parametrize("how", broken("0" * 44))
def test_what_is_no_bookmark_is_refused_and_nothing_is_scheduled(logs: Logs, how: str) -> None:
    async def script(diary: Any, node: Node) -> Any:
        bookmark = await diary.write(0xABC)
        with pytest.raises(BookmarkError):
            await diary.plan(broken(bookmark)[how])
        await diary.write(2)
        await asyncio.sleep(30)
        return len((await diary.read())["rows"])

    assert with_diary(logs, script) == 2


@pytest.mark.parametrize("bookmark", [None, 7, b"0"])
def test_another_type_is_a_type_error(logs: Logs, bookmark: Any) -> None:
    async def script(diary: Any, node: Node) -> None:
        with pytest.raises(TypeError):
            await diary.plan(bookmark)

    with_diary(logs, script)


def test_a_bookmark_of_another_object_is_refused(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        await diary.write(1)
        other = await node.env.Diary["two"].write(1)
        with pytest.raises(BookmarkError, match="of this object"):
            await diary.plan(other)

    with_diary(logs, script)


def test_a_position_that_never_was_is_refused(logs: Logs) -> None:
    from edgestead.objects.runtime.bookmarks import Bookmark, pack

    async def script(diary: Any, node: Node) -> None:
        await diary.write(1)
        ref = entries(node.log)[0].ref
        for never in (Bookmark(0, 0, 99), Bookmark(0, 5, 1), Bookmark(0, 7, 2**63 - 1)):
            with pytest.raises(BookmarkError):
                await diary.plan(pack(ref.id, never))

    with_diary(logs, script)


def test_inside_a_transaction_there_is_no_bookmark(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        with pytest.raises(TransactionError):
            await diary.in_transaction()

    with_diary(logs, script)


@pytest.mark.parametrize("method", ["bookmark", "bookmark_for", "plan"])
def test_the_key_value_backend_has_no_bookmarks_for_user_code(logs: Logs, method: str) -> None:
    async def script(diary: Any, node: Node) -> None:
        with pytest.raises(BackendError, match='storage = "sql"'):
            await getattr(node.env.Keys["one"], method)()

    with_diary(logs, script)


# operators


def test_an_operator_takes_back_what_user_code_cannot(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        keys = node.env.Keys["one"]
        await keys.put("a", 1)
        ref = next(one.ref for one in entries(node.log) if one.ref.class_name == "Keys")
        mark = await Operations(node).bookmark(ref)
        await keys.put("a", 2)
        await keys.put("b", 2)

        undo = await Operations(node).restore(ref, mark)
        assert await keys.read() == {"a": 1}
        again = await Operations(node).undo(ref)
        assert await keys.read() == {"a": 2, "b": 2}
        await Operations(node).restore(ref, again)
        assert await keys.read() == {"a": 1}
        assert undo < again
        assert await Operations(node).verify(ref) == []

    with_diary(logs, script)


def test_the_timeline_has_every_commit_and_restore_newest_first(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        marks = []
        for n in range(4):
            marks.append(await diary.write(n, "x" * 100))
            await asyncio.sleep(5)
        await restored(diary, marks[1])
        await diary.read()
        ref = entries(node.log)[0].ref
        moments = await Operations(node).timeline(ref)

        found = [moment.bookmark for moment in moments]
        assert found == sorted(found, reverse=True)
        assert set(marks) <= set(found)
        assert {moment.bookmark for moment in moments if moment.pinned} >= set(marks)
        assert [moment.event for moment in moments].count("restore") == 1
        assert all(moment.bytes_stored >= 0 for moment in moments)
        assert len(await Operations(node).timeline(ref, limit=2)) == 2
        early = await Operations(node).timeline(ref, until_ms=START_MS + 6_000)
        assert max(moment.time_us for moment in early) <= (START_MS + 6_000) * 1_000 + 999

    with_diary(logs, script)


def test_an_operator_sees_and_changes_the_alarm(logs: Logs) -> None:
    async def script(diary: Any, node: Node) -> None:
        await diary.write(1)
        ref = entries(node.log)[0].ref
        operations = Operations(node)
        assert not await operations.run_alarm(ref)
        await operations.set_alarm(ref, START_MS + DAY_MS)
        assert (await operations.alarm(ref)).time_ms == START_MS + DAY_MS
        assert await operations.run_alarm(ref)
        assert (await diary.read())["keys"]["rung"] is True
        assert (await operations.alarm(ref)).time_ms is None
        await operations.set_alarm(ref, START_MS + DAY_MS)
        await operations.set_alarm(ref, None)
        assert (await operations.alarm(ref)).time_ms is None

    with_diary(logs, script)


def test_a_restore_that_was_cut_off_is_done_again(logs: Logs) -> None:
    """Power cuts at each file operation while an object is being taken back."""

    async def plan(diary: Any, node: Node) -> Any:
        bookmark = await diary.write(1, "a" * 9_000)
        state = await diary.read()
        await diary.write(2, "b" * 9_000)
        await diary.plan(bookmark)
        return state

    async def look(diary: Any, node: Node) -> Any:
        return await diary.read()

    for step in range(1, 200, 7):
        for path in list(logs.disk.inodes):
            logs.disk.inodes.pop(path)
        logs.disk.durable_names.clear()
        state = with_diary(logs, plan, close=False)
        logs.killed()
        logs.disk.fail_at = step
        try:
            found = with_diary(logs, look, close=False, watch=logs.disk.raise_if_dead)
            assert found == state
        except BaseException:
            assert logs.disk.dead
        logs.power_cut(random.Random(step).randrange(1 << 30))
        logs.fatal.clear()
        assert with_diary(logs, look, close=False) == state
        logs.killed()


class Caller(StatefulObject):
    """Asks another object, also while it keeps everybody else out."""

    async def begin(self) -> None:
        pass

    async def ask(self, name: str) -> Any:
        return (await self.env.Diary[name].read())["keys"]

    async def ask_alone(self, name: str) -> Any:
        return await self.ctx.block_concurrency_while(lambda: self.ask(name))

    async def end(self) -> None:
        self.ctx.abort("on purpose")


async def to_be_taken_back(node: Node) -> None:
    """Diary/b, which will be what it was when its next caller comes."""
    diary = node.env.Diary["b"]
    bookmark = await diary.put("k", 1)
    await diary.put("k", 2)
    with pytest.raises(Aborted):
        await diary.go_back(bookmark)


async def begun(node: Node) -> None:
    """Until an object is being taken back."""
    for _ in range(1_000):
        if node._ending:
            return
        await asyncio.sleep(0)
    raise AssertionError


def test_a_caller_of_an_object_that_is_taken_back_may_be_kept_out_by_another_one(logs: Logs) -> None:
    """Who came first did the work, and was held at its own object's gate in the middle of it. Whoever had
    shut that gate waited for the same object, and was ended after 30 s.
    """

    async def script(node: Node) -> Any:
        await to_be_taken_back(node)
        caller = node.env.Caller["a"]
        await caller.begin()
        began = asyncio.get_running_loop().time()
        first = asyncio.ensure_future(caller.ask("b"))
        await begun(node)
        asked = await asyncio.gather(first, caller.ask_alone("b"))
        return asked, asyncio.get_running_loop().time() - began < 5

    assert run(logs, script, Diary, Caller) == ([{"k": 1}, {"k": 1}], True)


def test_a_caller_that_ends_while_an_object_is_taken_back_leaves_it_whole(logs: Logs) -> None:
    async def script(node: Node) -> Any:
        await to_be_taken_back(node)
        caller = node.env.Caller["a"]
        await caller.begin()
        asking = asyncio.ensure_future(caller.ask("b"))
        await begun(node)
        with pytest.raises(Aborted):
            await caller.end()
        with pytest.raises(Aborted):
            await asking
        return (await node.env.Diary["b"].read())["keys"]

    assert run(logs, script, Diary, Caller) == {"k": 1}
