"""Random histories over weeks: a bookmark leads to what was there, whatever was thinned out meanwhile."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgestead import StatefulObject
from edgestead.objects.errors import BookmarkError
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.bookmarks import Bookmark, pack, parse
from edgestead.objects.runtime.classes import Durability
from edgestead.objects.runtime.node import Node
from edgestead.sqlite.objectlog import archive
from edgestead.sqlite.objectlog.history import History
from edgestead.store.history import reader, thinning
from edgestead.store.history.blocks import PastEntry, pack_block
from edgestead.store.history.rows import BlockRow
from edgestead.store.objectlog import UNCHANGED, CommitKind, LogError
from edgestead.store.past import LoggedPosition
from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.simulation import SimulatedLoop, simulate
from tests.objects.logs import Logs, entries, keys, put, ref
from tests.objects.nodes import make_node
from tests.objects.test_recovery import Diary

DAY = 24 * 3600
WINDOW_US = 30 * DAY * 1_000_000
Step = tuple[Any, ...]

STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc"), st.none() | st.integers() | st.text(max_size=3)),
    st.tuples(st.just("write"), st.integers(0, 5), st.sampled_from((1, 50, 6_000, 30_000))),
    st.tuples(st.just("remind"), st.none() | st.integers(60, 90)),
    st.tuples(st.just("forget")),
    st.tuples(st.just("wait"), st.sampled_from((0.001, 1, 4, 11, 3_600, DAY, 8 * DAY))),
    st.tuples(st.just("mark"), st.booleans()),
    st.tuples(st.just("mark"), st.booleans()),
    st.tuples(st.just("tend")),
    st.tuples(st.just("evict")),
    st.tuples(st.just("end"), st.sampled_from(("closed", "killed", "power"))),
    st.tuples(st.just("restore"), st.integers(0, 20)),
)


class Mark:
    """What the object was at a bookmark. One that nobody was given may be thinned out."""

    def __init__(self, bookmark: str, state: Any, time_us: int, handed_out: bool) -> None:
        self.bookmark, self.state, self.time_us, self.handed_out = bookmark, state, time_us, handed_out


class World:
    """One object over several processes, on a clock that is moved by hand."""

    def __init__(self, logs: Logs) -> None:
        self.logs = logs
        self.skew_seconds = 0.0
        self.marks: list[Mark] = []

    def run(self, steps: list[Step]) -> None:
        rest = iter(steps)
        while (ended := self.life(rest)) is not None:
            self.logs.power_cut(len(self.marks)) if ended == "power" else self.logs.killed()
        self.life(iter([("judge",)]))

    def life(self, steps: Iterator[Step]) -> str | None:
        async def main(loop: SimulatedLoop) -> str | None:
            loop.skew_seconds = self.skew_seconds
            node = make_node(self.logs, loop, Diary)
            self.node, self.loop, self.diary = node, loop, node.env.Diary["one"]
            await self.diary.read()
            (self.ref,) = (one.ref for one in entries(node.log))
            for name, *arguments in steps:
                if name == "end":
                    if arguments[0] == "closed":
                        await node.close()
                    return str(arguments[0])
                await getattr(self, name)(*arguments)
            await node.close()
            return None

        ended: str | None = simulate(main, 0)
        self.skew_seconds = self.loop.skew_seconds + self.loop.now
        return ended

    # steps

    async def put(self, key: str, value: Any) -> None:
        await self.diary.put_only(key, value)

    async def write(self, n: int, size: int) -> None:
        await self.diary.write_only(n, chr(97 + n) * size)

    async def remind(self, days: int | None) -> None:
        await self.diary.remind(None if days is None else self.node.now_ms() + days * DAY * 1_000)

    async def forget(self) -> None:
        await self.diary.forget()
        await self.evict()  # the next start makes the table again

    async def wait(self, seconds: float) -> None:
        self.loop.skew_seconds += seconds

    async def mark(self, hand_out: bool) -> None:
        state = await self.diary.read()
        lease = self.node._live[self.ref.class_name, self.ref.id].engine.lease
        bookmark = pack(self.ref.id, Bookmark(0, lease.session, lease.head))
        if hand_out:
            assert bookmark == await self.diary.bookmark()
        self.marks.append(Mark(bookmark, state, self.loop.now_us(), hand_out))

    async def tend(self) -> None:
        for _ in range(8):
            self.node.log.tend()
            await asyncio.sleep(0.2)

    async def evict(self) -> None:
        await asyncio.sleep(0.1)
        self.node.evict((self.ref.class_name, self.ref.id))

    async def restore(self, index: int) -> None:
        if self.marks:
            await self.go_to(self.marks[index % len(self.marks)])

    async def go_to(self, mark: Mark) -> None:
        """Either the bookmark leads to what was, and back; or it is refused, and then it may be."""
        before = await self.diary.read()
        try:
            undo = await Operations(self.node).restore(self.ref, mark.bookmark)
        except BookmarkError:
            assert await self.diary.read() == before
            too_old = mark.time_us < self.loop.now_us() - WINDOW_US
            assert too_old or not mark.handed_out
            return
        assert await self.diary.read() == mark.state
        again = await Operations(self.node).restore(self.ref, undo)
        assert await self.diary.read() == before
        await Operations(self.node).restore(self.ref, again)
        assert await self.diary.read() == mark.state

    async def judge(self) -> None:
        await self.tend()
        for mark in self.marks:
            await self.go_to(mark)
        assert await Operations(self.node).verify(self.ref) == []
        moments = await Operations(self.node).timeline(self.ref)
        assert [one.bookmark for one in moments] == sorted((one.bookmark for one in moments), reverse=True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a short history has many blocks and snapshots."""
    monkeypatch.setattr(archive, "IMAGES_MAX", 8)
    monkeypatch.setattr(archive, "BLOCK_RAW_BYTES", 30_000)
    monkeypatch.setattr(reader, "SNAPSHOT_PAGES", 1)
    monkeypatch.setattr(reader, "SNAPSHOT_PAGES_LEAST", 12)
    monkeypatch.setattr(thinning, "BLOCKS_AT_ONCE", 3)
    monkeypatch.setattr(thinning, "BLOCK_RAW_BYTES", 30_000)


@pytest.mark.parametrize("durability", ["log", "sqlite"])
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, max_size=30))
def test_every_bookmark_leads_to_what_was(small: None, durability: Durability, steps: list[Step]) -> None:
    one_history(durability, steps)


def one_history(durability: Durability, steps: list[Step]) -> None:
    disk = SimulatedDisk()
    with disk.vfs(f"history-{id(disk)}") as vfs:
        logs = Logs(disk, vfs)
        logs.durability = durability
        try:
            World(logs).run(steps)
        finally:
            logs.abandon()
    disk.wipe()


def test_thinning_leaves_one_commit_in_ten_seconds_and_what_was_handed_out(small: None, logs: Logs) -> None:
    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Diary)
        diary = node.env.Diary["one"]
        pinned = []
        for n in range(60):
            loop.skew_seconds += 1
            await diary.write_only(n % 7, "x" * n)
            if n % 25 == 0:
                pinned.append(await diary.bookmark())
        (entry,) = entries(node.log)
        before = await Operations(node).timeline(entry.ref)
        loop.skew_seconds += 2 * DAY
        for _ in range(30):
            node.log.tend()
            await asyncio.sleep(0.2)
        after = await Operations(node).timeline(entry.ref)

        assert len(before) == 60
        assert len(after) < 25
        assert set(pinned) <= {moment.bookmark for moment in after}
        assert sum(one.bytes_stored for one in after) < sum(one.bytes_stored for one in before)
        await node.close()

    simulate(main, 0)


class Both(StatefulObject):
    storage = "sql"

    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def put_with_a_row(self, key: str, value: Any) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS line (n)")
        self.ctx.storage.put(key, value)

    async def bookmark(self) -> str:
        return await self.ctx.storage.get_current_bookmark()

    async def read(self) -> dict[str, Any]:
        return await self.ctx.storage.list()


def test_thinning_the_first_commits_of_an_object_that_has_only_keys_leaves_its_past_whole(logs: Logs) -> None:
    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Both)
        both = node.env.Both["one"]
        for n in range(3):
            await both.put("a", n)
        bookmark = await both.bookmark()
        (entry,) = entries(node.log)
        assert len(await Operations(node).timeline(entry.ref)) == 3
        loop.skew_seconds += 2 * DAY
        for _ in range(30):
            node.log.tend()
            await asyncio.sleep(0.2)
        assert len(await Operations(node).timeline(entry.ref)) == 1
        await both.put("a", "later")

        assert await Operations(node).verify(entry.ref) == []
        await Operations(node).restore(entry.ref, bookmark)

        assert await both.read() == {"a": 2}
        await node.close()

    simulate(main, 0)


def test_a_key_that_was_thinned_out_does_not_come_back_over_pages_that_hold_a_newer_value(logs: Logs) -> None:
    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Both)
        both = node.env.Both["one"]
        await both.put("a", "old")  # logged as a key
        await both.put_with_a_row("a", "new")  # as pages, which hold the key as well
        await both.put("b", 1)
        bookmark = await both.bookmark()
        state = await both.read()
        (entry,) = entries(node.log)
        assert len(await Operations(node).timeline(entry.ref)) == 3
        loop.skew_seconds += 2 * DAY
        for _ in range(30):
            node.log.tend()
            await asyncio.sleep(0.2)
        assert len(await Operations(node).timeline(entry.ref)) == 2, "pages, and the keys behind them"
        await both.put("a", "newest")

        await Operations(node).restore(entry.ref, bookmark)

        assert await both.read() == state == {"a": "new", "b": 1}
        await node.close()

    simulate(main, 0)


@pytest.mark.parametrize("durability", ["log", "sqlite"])
@pytest.mark.parametrize("thinned", [False, True])
def test_every_moment_of_the_timeline_is_one_that_somebody_saw(
    small: None, durability: Durability, logs: Logs, thinned: bool
) -> None:
    """Also around a restore, whose commits on the way are none: `restore` is where the object was back."""
    logs.durability = durability

    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Diary)
        diary = node.env.Diary["one"]
        await diary.read()
        (entry,) = entries(node.log)
        seen = []

        async def look() -> None:
            seen.append(await diary.read())

        for n in range(3):
            await diary.write_only(n, "x" * 9_000)
            await look()
            await diary.put_only("key", n)
            await look()
            await diary.remind(node.now_ms() + (40 + n) * DAY * 1_000)
            await look()
            loop.skew_seconds += 20
        then = seen[5]
        await Operations(node).restore(
            entry.ref, await Operations(node).bookmark(entry.ref, node.now_ms() - 30_000)
        )
        await look()
        await diary.put_only("later", True)  # in the same ten seconds
        await look()
        if thinned:
            loop.skew_seconds += 2 * DAY
            for _ in range(20):
                node.log.tend()
                await asyncio.sleep(0.2)

        moments = await Operations(node).timeline(entry.ref)
        (back,) = [moment for moment in moments if moment.event == "restore"]
        assert back.bytes_stored > 0
        await Operations(node).restore(entry.ref, back.bookmark)
        assert await diary.read() == then == seen[9]
        if thinned:
            for moment in moments[:-1]:  # the first made the table
                await Operations(node).restore(entry.ref, moment.bookmark)
                assert await diary.read() in seen
        await node.close()

    simulate(main, 0)


def test_a_moment_between_merged_pages_and_keys_has_its_alarm(small: None, logs: Logs) -> None:
    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Diary)
        diary = node.env.Diary["one"]
        await diary.read()
        (entry,) = entries(node.log)
        await diary.remind(node.now_ms() + 40 * DAY * 1_000)
        await diary.write_only(1, "pages")
        between = await diary.read()
        await diary.put_only("key", "behind them")
        await diary.remind(node.now_ms() + 50 * DAY * 1_000)
        after = await diary.read()
        assert len(await Operations(node).timeline(entry.ref)) > 2
        loop.skew_seconds += 2 * DAY
        for _ in range(20):
            node.log.tend()
            await asyncio.sleep(0.2)

        newest, older = await Operations(node).timeline(entry.ref)
        await Operations(node).restore(entry.ref, older.bookmark)
        assert await diary.read() == between
        await Operations(node).restore(entry.ref, newest.bookmark)
        assert await diary.read() == after
        await node.close()

    simulate(main, 0)


def test_time_never_goes_back_also_over_a_restart_that_leaves_no_segment(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    lease.put_base(lease.head)
    log.close()
    logs.open().close()  # the segments are gone from here on
    logs.clock = itertools.count(1_000)  # far back

    log = logs.open()
    put(log, log.lease(ref()), keys(a=b"2"))
    found: list[LoggedPosition] = []
    log.past.moments(ref(), 0, 2**62, 10, lambda moments, error: found.extend(moments or []))

    assert [one.position for one in found] == [2, 1]
    assert found[0].time_us >= found[1].time_us


def test_thinning_keeps_the_order_of_commits_that_a_clock_left_in_disorder(tmp_path: Path) -> None:
    """As was written before the clock of a log only went forward."""
    history = History(str(tmp_path / "history.db"))
    days = (1, 40, 1)  # the second one is not to be thinned yet
    for position, day in enumerate(days, 1):
        at_us = day * DAY * 1_000_000 + position
        body, raw = pack_block([PastEntry(position, at_us, CommitKind.KEYS, UNCHANGED, b"\x80")])
        history.add_block(BlockRow(1, position, position, at_us, at_us, 0, 0, False, 0, raw, len(body)), body)
    thinner = thinning.Thinning(history, thinning.Keeping(window_us=100 * DAY * 1_000_000))

    for _ in range(5):
        thinner.step(40 * DAY * 1_000_000)

    assert [(row.first, row.last) for row in history.blocks(1, 0, 9)] == [(1, 1), (2, 2), (3, 3)]
    assert reader.PastReader(history).check(1, 3) == []
    history.close()


def test_what_is_older_than_the_window_goes(small: None, logs: Logs) -> None:
    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Diary)
        diary = node.env.Diary["one"]
        old = await diary.write(1, "a" * 50_000)
        loop.skew_seconds += 1
        await diary.write(1, "b" * 50_000)  # what the object was when the window begins
        (entry,) = entries(node.log)
        await Operations(node).timeline(entry.ref)
        loop.skew_seconds += 29 * DAY
        young = await diary.write(2, "b")
        loop.skew_seconds += 2 * DAY
        for _ in range(10):
            node.log.tend()
            await asyncio.sleep(0.2)

        with pytest.raises(BookmarkError):
            await Operations(node).restore(entry.ref, old)
        await Operations(node).restore(entry.ref, young)
        assert len((await diary.read())["rows"]) == 2
        at = await Operations(node).bookmark(entry.ref, node.now_ms() - 29 * DAY * 1_000)
        assert parse(entry.ref.id, at).position > 0
        await node.close()

    simulate(main, 0)


def test_the_quota_lets_the_oldest_go_and_the_present_stay(small: None, logs: Logs) -> None:
    async def main(loop: SimulatedLoop) -> None:
        keeping = thinning.Keeping(bytes_max=600_000)
        node: Node = make_node(logs, loop, Diary, keeping=keeping)
        diary = node.env.Diary["one"]
        first = await diary.write(0, "x")
        for n in range(60):
            loop.skew_seconds += 1
            last = await diary.write(n % 5, noise(n))
        state = await diary.read()
        (entry,) = entries(node.log)
        await Operations(node).timeline(entry.ref)
        assert node.log.history_bytes > 600_000
        for _ in range(30):
            node.log.tend()
            await asyncio.sleep(0.2)

        assert node.log.history_bytes <= 600_000
        with pytest.raises(BookmarkError):
            await Operations(node).restore(entry.ref, first)
        await Operations(node).restore(entry.ref, last)
        assert await diary.read() == state
        await node.close()

    simulate(main, 0)


@pytest.mark.parametrize("asked", ["restore", "verify"])
def test_a_damaged_piece_of_the_past_is_known_once_it_was_read(small: None, logs: Logs, asked: str) -> None:
    async def main(loop: SimulatedLoop) -> None:
        node: Node = make_node(logs, loop, Diary)
        diary = node.env.Diary["one"]
        first = await diary.write(0, "x")
        await diary.write(1, "y")
        (entry,) = entries(node.log)
        await Operations(node).timeline(entry.ref)
        assert not node.log.is_history_damaged
        node.log._chronicle._history._run("UPDATE blocks SET body = x'00'")
        assert not node.log.is_history_damaged

        if asked == "restore":
            with pytest.raises(LogError, match="cannot be read"):
                await Operations(node).restore(entry.ref, first)
        else:
            assert any("cannot be read" in one for one in await Operations(node).verify(entry.ref))

        assert node.log.is_history_damaged
        assert len((await diary.read())["rows"]) == 2
        await node.close()

    simulate(main, 0)


def noise(seed: int) -> str:
    import random

    return random.Random(seed).randbytes(12_000).hex()


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_thousand_histories(small: None) -> None:
    @settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(STEPS, max_size=80), durability=st.sampled_from(("log", "sqlite")))
    def check(steps: list[Step], durability: Durability) -> None:
        one_history(durability, steps)

    check()
