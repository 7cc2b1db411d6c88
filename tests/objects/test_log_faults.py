"""What the log does when the disk refuses: full disks, failed writes, failed syncs."""

import asyncio
import contextlib
import errno
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import apsw
import pytest

from edgestead.objects import limits
from edgestead.objects.errors import StorageBroken
from edgestead.objects.ids import from_name
from edgestead.objects.runtime.classes import StatefulObject
from edgestead.objects.runtime.node import Node
from edgestead.server.objects import host
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.store.objectlog import Commit, CommitKind, LogBroken, LogError, NoSpace, ObjectRef
from edgestead.store.pages import PAGE_BYTES, frames_of
from edgestead.store.runner import attempt
from edgestead.testing.simulation import EPOCH_SECONDS
from tests.objects.logs import Logs, answer, keys, put, ref
from tests.objects.nodes import run


class Notes(StatefulObject):
    async def write(self, key: str, size: int = 1) -> None:
        await self.ctx.storage.put(key, b"x" * size)

    async def keys(self) -> list[str]:
        return list(await self.ctx.storage.list())


class Table(Notes):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (k PRIMARY KEY, v)")

    async def write(self, key: str, size: int = 1) -> None:
        self.ctx.storage.sql.exec("INSERT INTO t VALUES (?, zeroblob(?))", key, size)

    async def keys(self) -> list[str]:
        return [row["k"] for row in self.ctx.storage.sql.exec("SELECT k FROM t ORDER BY k")]


def fail_next(logs: Logs, operation: str, path_part: str, number: int) -> None:
    """Fail the next operation of that kind on such a file."""
    logs.disk.fails_on = lambda found, path: found == operation and path_part in path
    logs.disk.operations, logs.disk.fail_at, logs.disk.fail_errno = 0, 1, number


@pytest.mark.parametrize(
    ("operation", "number"), [("sync", errno.EIO), ("sync", errno.ENOSPC), ("write", errno.EIO)]
)
def test_a_failed_sync_or_write_ends_the_process(logs: Logs, operation: str, number: int) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    fail_next(logs, operation, "segment-", number)

    group = put(log, lease, keys(a=b"2"))

    assert (group.state, type(group.error)) == ("refused", LogBroken)
    assert [getattr(error, "errno", None) for error in logs.fatal] == [number]
    for use in (lambda: lease.append([keys(b=b"3")], None), lambda: log.lease(ref("x"))):
        with pytest.raises(LogBroken):
            use()
    assert log.room.is_full


def test_a_write_without_space_is_refused_and_leaves_nothing(logs: Logs) -> None:
    log = logs.open()
    lease, other = log.lease(ref()), log.lease(ref("other"))
    put(log, lease, keys(a=b"1"), alarm=5)
    fail_next(logs, "write", "segment-", errno.ENOSPC)

    group = put(log, lease, keys(a=b"2"), alarm=6)

    assert (group.state, type(group.error)) == ("refused", NoSpace)
    assert logs.fatal == []
    lease.release({"a": b"2"}, rebuild=True)
    lease = log.lease(ref())
    assert (lease.head, lease.tail, lease.alarm_us) == (1, {"a": b"1"}, 5)
    assert lease.pin(1) is not None, "it was not handed out before"
    assert put(log, lease, keys(a=b"3")).state == "durable"
    assert put(log, other, keys(b=b"1")).state == "durable"
    logs.power_cut()
    log = logs.open()
    again = log.lease(ref())
    assert (again.head, again.tail) == (2, {"a": b"3"})
    assert log.lease(ref("other")).tail == {"b": b"1"}


def without_spare(logs: Logs) -> LocalObjectLog:
    """A log on a disk that has become full: its next segment could not be made."""
    log = logs.open()
    lease = log.lease(ref("filler"))
    logs.disk.space_bytes = 0
    while not log.room.is_full:
        assert put(log, lease, keys(filler=b"x" * 8_000)).state == "durable"
    return log


def test_without_a_spare_segment_the_log_takes_only_upkeep(logs: Logs) -> None:
    log = without_spare(logs)
    lease = log.lease(ref())

    with pytest.raises(NoSpace):
        lease.append([keys(a=b"1")], None)
    group = lease.append([keys(a=b"1")], None, upkeep=True)
    log.flush()

    assert group.state == "durable"


def test_the_log_takes_commits_again_when_there_is_space(logs: Logs) -> None:
    log = without_spare(logs)
    log.tend()
    assert log.room.is_full
    logs.disk.space_bytes = None

    log.tend()

    assert not log.room.is_full
    assert put(log, log.lease(ref()), keys(a=b"1")).state == "durable"


def test_a_group_that_has_no_room_is_refused_where_nothing_waits_for_a_thread(logs: Logs) -> None:
    """In a command beside no server: it would go on waiting for its segment, and never end."""
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    logs.disk.space_bytes = 100_000

    group = put(log, lease, keys(a=b"x" * 2_000_000))

    assert (group.state, type(group.error)) == ("refused", NoSpace)


def test_a_catalogue_that_fails_ends_the_log_and_nobody_waits(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waited for the log to settle asked for the spare segment again and again, for ever."""
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))

    def fails(*_: object) -> None:
        raise apsw.IOError("disk I/O error")

    monkeypatch.setattr(log._catalogue, "settle", fails)
    group = put(log, lease, keys(a=b"x" * 2_000_000))
    log.settle()

    assert group.state == "refused"
    assert isinstance(group.error, LogBroken)
    assert len(logs.fatal) == 1
    logs.killed()
    logs.fatal.clear()
    monkeypatch.undo()
    assert logs.open().lease(ref()).tail == {"a": b"1"}


@pytest.mark.parametrize("fails", ["the large segment", "the catalogue"])
def test_a_group_that_has_no_room_leaves_the_spare_segment(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """One that is larger than a segment has one of its own. Each that was refused took one from the disk."""
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    before = [name for name in logs.disk.names("/objects/log") if name.startswith("segment-")]
    logs.disk.space_bytes = 1_500_000
    if fails == "the catalogue":

        def full(*_: object) -> None:
            raise apsw.FullError("database or disk is full")

        monkeypatch.setattr(log._catalogue, "settle", full)
    jobs: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []
    upkeep = SimpleNamespace(run=lambda *job: jobs.append(job))
    monkeypatch.setattr(log._upkeep, "_runner", upkeep)

    def work() -> None:
        while jobs:
            job, done = jobs.pop(0)
            done(*attempt(job))

    for number in range(3):
        group = put(log, log.lease(ref(str(number))), keys(a=b"x" * 2_000_000))
        work()
        assert group.state == "refused"
        log.tend()
        work()
        assert not log.room.is_full
        assert put(log, lease, keys(a=b"2")).state == "durable"

    monkeypatch.undo()
    assert [name for name in logs.disk.names("/objects/log") if name.startswith("segment-")] == before
    while log.sealed_segments < 2:
        assert put(log, lease, keys(a=b"x" * 8_000)).state == "durable"
    logs.killed()
    assert logs.open().lease(ref()).tail == {"a": b"x" * 8_000}


def test_a_full_disk_beside_a_spare_segment_is_noticed_too(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    logs.disk.space_bytes = 0
    fail_next(logs, "write", "segment-", errno.ENOSPC)

    group = put(log, lease, keys(a=b"2"))

    assert (group.state, type(group.error), log.room.is_full) == ("refused", NoSpace, True)
    with pytest.raises(NoSpace):
        log.lease(ref("other")).append([keys(a=b"1")], None)
    log.tend()
    assert log.room.is_full, "still full"
    logs.disk.space_bytes = None
    log.tend()
    assert not log.room.is_full
    assert put(log, log.lease(ref()), keys(a=b"3")).state == "durable"
    assert "room" not in logs.disk.names("/objects/log")


def test_a_retired_segment_is_space_enough(logs: Logs) -> None:
    log = without_spare(logs)
    lease = log.lease(ref("filler"))

    lease.put_base(lease.head)

    assert not log.room.is_full
    assert put(log, lease, keys(a=b"1")).state == "durable"


def test_a_start_without_space_for_a_segment_says_so(logs: Logs) -> None:
    logs.disk.space_bytes = 20_000

    with pytest.raises(NoSpace):
        logs.open()


@pytest.mark.parametrize("kind", [Notes, Table])
def test_a_full_disk_refuses_before_it_acknowledges_and_resets(
    logs: Logs, kind: type[StatefulObject]
) -> None:
    acknowledged: list[str] = []

    async def script(node: Node) -> None:
        stub = node.env[kind.__name__]["a"]
        await stub.write("first")
        acknowledged.append("first")
        logs.disk.space_bytes = 100_000
        with pytest.raises(StorageBroken) as caught:  # noqa: PT012
            for number in range(1_000):
                await stub.write(f"k{number:04}", 5_000)
                acknowledged.append(f"k{number:04}")
        assert caught.value.reset
        await asyncio.sleep(0.1)
        assert node.log.room.is_full
        if kind is Notes:
            assert await stub.keys() == sorted(acknowledged), "readable while the disk is full"
        logs.disk.space_bytes = None
        node.log.tend()
        await asyncio.sleep(5)
        assert not node.log.room.is_full
        await stub.write("last")
        acknowledged.append("last")

    async def after(node: Node) -> None:
        assert await node.env[kind.__name__]["a"].keys() == sorted(acknowledged)

    run(logs, script, kind)
    logs.killed()
    run(logs, after, kind)
    assert not logs.fatal


class Large(Table):
    """Each `write` is more pages than wait for a checkpoint."""

    async def write(self, key: str, size: int = 50_000) -> None:
        for part in range(3):
            self.ctx.storage.sql.exec("INSERT INTO t VALUES (?, zeroblob(?))", f"{key}{part}", size)

    async def keys(self) -> list[str]:
        return await super().keys()


@pytest.mark.parametrize("durability", ["log", "sqlite"], indirect=True)
@pytest.mark.parametrize("room_bytes", range(50_000, 1_000_000, 100_000))
def test_a_large_commit_on_a_full_disk_ends_no_process(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    """Wherever the disk becomes full: write-ahead log, segment, database file, history, catalogue."""
    monkeypatch.setattr(limits, "CHECKPOINT_FRAMES", 30)
    acknowledged: list[str] = []

    async def write(stub: Any, key: str) -> None:
        with contextlib.suppress(StorageBroken):
            await stub.write(key)
            acknowledged.extend(f"{key}{part}" for part in range(3))

    async def script(node: Node) -> None:
        small, large = node.env.Notes["small"], node.env.Large["large"]
        await small.write("first")
        await node.env.Large["other"].write("", 1)
        logs.disk.space_bytes = room_bytes
        for key in "abc":
            await write(large, key)
            await asyncio.sleep(2)  # history, thinning, bases and retiring have their turns
        assert await small.keys() == ["first"], "other objects can be read"
        assert len(await node.env.Large["other"].keys()) == 3
        logs.disk.space_bytes = None
        await asyncio.sleep(5)
        assert not node.log.room.is_full
        await large.write("d")
        acknowledged.extend(["d0", "d1", "d2"])
        assert await large.keys() == sorted(acknowledged)

    async def after(node: Node) -> None:
        assert await node.env.Large["large"].keys() == sorted(acknowledged)

    run(logs, script, Notes, Large, segment_bytes=300_000)
    assert not logs.fatal
    logs.power_cut()
    run(logs, after, Notes, Large, segment_bytes=300_000)


def test_a_base_that_has_no_room_waits_and_others_move(logs: Logs) -> None:
    async def script(node: Node) -> None:
        for name in "ab":
            await node.env.Table[name].write("k", 5_000)
        await asyncio.sleep(1)
        failing = next(path for path in logs.disk.inodes if path.endswith(".sqlite"))
        honest = logs.disk.take_space

        def take_space(growth: int, path: str) -> None:
            if path == failing and growth > 0:
                raise OSError(errno.ENOSPC, "full", path)
            honest(growth, path)

        logs.disk.take_space = take_space  # type: ignore[method-assign]
        for number in range(100):  # until segments are full, and bases have to move
            for name in "ab":
                await node.env.Table[name].write(f"{number}", 5_000)
        await asyncio.sleep(1)
        behind = {ref.id for ref in node.log.lagging(10)}
        assert len(behind) == 1, "one waits, the other one moved"
        del logs.disk.take_space
        await asyncio.sleep(5)
        assert not node.log.lagging(10)

    run(logs, script, Table)
    assert not logs.fatal


@pytest.mark.parametrize("ends", ["retired", "closed"])
def test_what_a_refused_object_was_stays_when_its_segment_goes(logs: Logs, ends: str) -> None:
    log = logs.open()
    lease, filler = log.lease(ref()), log.lease(ref("filler"))
    put(log, lease, keys(a=b"1"), alarm=5)
    lease.put_base(lease.head)
    while not log.sealed_segments:
        put(log, filler, keys(filler=b"x" * 8_000))
    fail_next(logs, "write", "segment-", errno.ENOSPC)
    assert put(log, lease, keys(a=b"2"), alarm=6).state == "refused"
    lease.release({}, rebuild=True)

    filler.put_base(filler.head)
    log.tend()
    if ends == "closed":
        log.close()
    logs.killed()

    log = logs.open()
    found = answer(lambda done: log.find(ref(), done))
    assert found is not None
    assert (found.head, found.alarm_us) == (1, 5)
    assert put(log, log.lease(ref()), keys(a=b"3")).state == "durable"


def test_segments_stay_while_somebody_holds_what_was_refused(logs: Logs) -> None:
    log = logs.open()
    lease, filler = log.lease(ref()), log.lease(ref("filler"))
    put(log, lease, keys(a=b"1"))
    lease.put_base(lease.head)
    while not log.sealed_segments:
        put(log, filler, keys(filler=b"x" * 8_000))
    fail_next(logs, "write", "segment-", errno.ENOSPC)
    assert put(log, lease, keys(a=b"2")).state == "refused"

    filler.put_base(filler.head)
    log.tend()
    assert log.sealed_segments == 1
    lease.release({}, rebuild=True)
    log.tend()

    assert log.sealed_segments == 0


def test_segments_stay_while_a_database_cannot_be_made_again(
    logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    log = logs.open()
    lease, filler = log.lease(ref()), log.lease(ref("filler"))
    image = b"A" * PAGE_BYTES
    pages = Commit(CommitKind.PAGES, frames_of(image, [1], 1))
    put(log, lease, pages)
    while not log.sealed_segments:
        put(log, filler, keys(filler=b"x" * 8_000))
    fail_next(logs, "write", "segment-", errno.ENOSPC)
    assert put(log, lease, pages).state == "refused"
    lease.release({}, rebuild=True)
    filler.put_base(filler.head)
    fail_next(logs, "write", ".sqlite", errno.ENOSPC)
    log._directory.unbased.clear()  # as if its base had moved

    log.tend()
    assert log.sealed_segments == 1
    assert "segments stay for Counter/" in caplog.text
    log.tend()

    assert log.sealed_segments == 0
    assert bytes(logs.disk.inodes[lease.path].data) == image


def test_an_object_that_cannot_be_read_again_is_no_lease_and_may_be_asked_for_later(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    pages = Commit(CommitKind.PAGES, frames_of(b"A" * PAGE_BYTES, [1], 1))
    put(log, lease, pages)
    fail_next(logs, "write", "segment-", errno.ENOSPC)
    assert put(log, lease, pages).state == "refused"
    lease.release({}, rebuild=True)
    fail_next(logs, "write", ".sqlite", errno.ENOSPC)

    with pytest.raises(LogError, match="cannot be read again"):
        answer(lambda done: log.acquire(ref(), done))

    assert answer(lambda done: log.acquire(ref(), done)).head == 1


def test_a_base_whose_object_cannot_be_read_keeps_nobody_out_of_it(logs: Logs) -> None:
    async def script(node: Node) -> None:
        stub = node.env.Table["a"]
        await stub.write("kept", 5_000)
        fail_next(logs, "write", "segment-", errno.ENOSPC)
        with pytest.raises(StorageBroken):
            await stub.write("refused", 5_000)
        await asyncio.sleep(0.1)
        fail_next(logs, "write", ".sqlite", errno.ENOSPC)

        node._move_base(from_name("Table", "a"))

        async with asyncio.timeout(10):
            assert await stub.keys() == ["kept"]

    run(logs, script, Table, close=False)


def test_a_base_that_cannot_move_is_tried_once_a_second(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Looks come fifty times a second while something is behind, and nothing says that the disk is full."""

    def refuse(self: LocalObjectLog, ref: ObjectRef) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def script(node: Node) -> None:
        stub = node.env.Table["a"]
        await stub.write("k", 5_000)
        await asyncio.sleep(2)
        one = from_name("Table", "a")
        assert node.evict((one.class_name, one.id))
        monkeypatch.setattr(LocalObjectLog, "lagging", lambda self, limit: [one])
        monkeypatch.setattr(LocalObjectLog, "lease", refuse)
        await asyncio.sleep(10)

    run(logs, script, Table, close=False)
    lines = [line for line in caplog.messages if "moving the base" in line]
    assert 5 < len(lines) < 20


def test_a_database_that_cannot_be_closed_does_not_count_among_the_open_ones(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where those are many, the oldest of them go: it would be among them each time."""

    def refuse() -> None:
        raise OSError(errno.EIO, "the disk fails")

    async def script(node: Node) -> None:
        await node.env.Table["a"].write("k")
        one = from_name("Table", "a")
        monkeypatch.setattr(node._live[one.class_name, one.id].engine, "close", refuse)
        assert len(node._opened) == 1

        with pytest.raises(OSError, match="the disk fails"):
            node.evict((one.class_name, one.id))

        assert not node._opened

    run(logs, script, Table, close=False)


def test_upkeep_that_failed_once_is_not_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "TEND_SECONDS", 0.0)

    async def script() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        made, again = host.Host(str(tmp_path), {}), asyncio.Event()
        steps = [lambda: None, lambda: 1 / 0]
        monkeypatch.setattr(made.log, "tend", lambda: steps.pop(0)() if steps else again.set())
        made.start()
        async with asyncio.timeout(60):
            await again.wait()
        await made.close()

    asyncio.run(script())


def test_segments_stay_while_no_descriptor_is_left(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever puts a base is not told: it is put all the same."""
    log = logs.open()
    lease = log.lease(ref())
    while not log.sealed_segments:
        put(log, lease, keys(filler=b"x" * 8_000))

    def refuse(path: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files", path)

    with monkeypatch.context() as busy:
        busy.setattr(logs.disk, "lock", refuse)
        lease.put_base(lease.head)
        log.tend()
    assert log.sealed_segments == 1
    log.tend()

    assert log.sealed_segments == 0


class Erasing(StatefulObject):
    async def write(self, key: str) -> None:
        await self.ctx.storage.put(key, "x")

    async def keys(self) -> list[str]:
        return list(await self.ctx.storage.list())

    async def erase(self) -> bool:
        try:
            await self.ctx.storage.delete_all()
        except Exception:
            return False  # and it goes on with what it believes to have
        return True


@pytest.mark.parametrize("durability", ["log", "sqlite"], indirect=True)
def test_erasing_that_meets_a_full_disk_takes_nothing_away(logs: Logs) -> None:
    async def script(node: Node) -> None:
        stub, faults = node.env.Erasing["a"], 0
        await stub.write("kept")
        is_erased = False
        while not is_erased:
            faults += 1
            logs.disk.fails_on = lambda operation, path: ".sqlite" in path
            logs.disk.operations, logs.disk.fail_at, logs.disk.fail_errno = 0, faults, errno.ENOSPC
            with contextlib.suppress(StorageBroken):
                is_erased = await stub.erase()
            logs.disk.fail_at = 0
            node.room.look()
            await asyncio.sleep(1)
            found = await stub.keys()
            has_its_own = logs.durability == "sqlite"  # in which it may be durable, when the log refuses it
            assert found == ([] if is_erased or (has_its_own and not found) else ["kept"])
            await stub.write("kept")
        assert faults > 2

    async def after(node: Node) -> None:
        assert await node.env.Erasing["a"].keys() == ["kept"]

    run(logs, script, Erasing, close=False)
    logs.killed()
    run(logs, after, Erasing)


def test_what_waits_behind_a_refused_commit_is_refused_too(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    begun: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []
    log._writer._runner = SimpleNamespace(run=lambda *job: begun.append(job))  # type: ignore[assignment]
    in_flight = put(log, lease, keys(a=b"2"))
    behind = put(log, lease, keys(a=b"3"))

    begun[0][1](None, NoSpace("no space left for the object log"))

    assert (in_flight.state, behind.state) == ("refused", "refused")
    assert len(begun) == 1, "its position would follow one that nobody has"


def test_who_hears_of_a_refused_commit_has_nothing_written_that_waits_behind_it(logs: Logs) -> None:
    """Objects that are reset by it flush, so that the log decides what they wait for."""
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    begun: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []
    log._writer._runner = SimpleNamespace(run=lambda *job: begun.append(job))  # type: ignore[assignment]
    in_flight = put(log, lease, keys(a=b"2"))
    behind = put(log, lease, keys(a=b"3"))
    in_flight.on_done(lambda error: log.flush())
    stale: list[bool] = []
    in_flight.on_done(lambda error: stale.append(behind.state == "refused"))

    begun[0][1](None, NoSpace("no space left for the object log"))

    assert (in_flight.state, behind.state, stale) == ("refused", "refused", [True])
    assert len(begun) == 1, "its position would follow one that nobody has"


@pytest.mark.parametrize("error", [NoSpace("no space left"), OSError(errno.EIO, "the disk fails")])
def test_an_error_of_who_hears_of_a_refused_commit_ends_the_process(logs: Logs, error: Exception) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    begun: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []
    log._writer._runner = SimpleNamespace(run=lambda *job: begun.append(job))  # type: ignore[assignment]
    in_flight = put(log, lease, keys(a=b"2"))
    behind = put(log, lease, keys(a=b"3"))
    wrong = RuntimeError("wrong")

    def raises(_: object) -> None:
        raise wrong

    in_flight.on_done(raises)

    begun[0][1](None, error)

    assert wrong in logs.fatal
    assert behind.state == "refused"


def test_a_database_that_meets_a_full_disk_makes_the_log_read_only(logs: Logs) -> None:
    async def script(node: Node) -> None:
        await node.env.Table["a"].write("first")
        await asyncio.sleep(0.5)  # the spare segment is there
        logs.disk.space_bytes = 0
        with pytest.raises(StorageBroken):
            await node.env.Table["a"].write("second", 50_000)
        await asyncio.sleep(0.2)
        assert node.log.room.is_full
        with pytest.raises(StorageBroken, match="no space"):
            await node.env.Notes["b"].write("key")
        logs.disk.space_bytes = None
        await asyncio.sleep(2)
        await node.env.Notes["b"].write("key")

    run(logs, script, Table, Notes)


def test_an_object_that_is_as_large_as_it_may_be_troubles_nobody_else(logs: Logs) -> None:
    async def script(node: Node) -> None:
        large = node.env.Table["large"]
        await large.write("first")
        database = next(iter(node._live.values())).engine.database
        assert database is not None
        database._run_once("PRAGMA max_page_count = 5")
        with pytest.raises(StorageBroken, match="full"):
            await large.write("second", 100_000)
        await asyncio.sleep(0.1)
        assert not node.log.room.is_full
        await node.env.Table["other"].write("first")
        assert await large.keys() == ["first"]

    run(logs, script, Table)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_database_that_cannot_be_opened_resets_its_object(logs: Logs, number: int) -> None:
    async def script(node: Node) -> None:
        fail_next(logs, "create", ".sqlite", number)
        with pytest.raises(StorageBroken) as caught:
            await node.env.Table["a"].write("first")
        assert caught.value.reset
        await node.env.Table["a"].write("first")
        assert await node.env.Table["a"].keys() == ["first"]

    run(logs, script, Table)


def test_a_damaged_database_resets_the_object_and_is_made_anew(logs: Logs) -> None:
    async def script(node: Node) -> Any:
        stub = node.env.Table["a"]
        await stub.write("kept")
        fail_next(logs, "write", "sqlite-wal", errno.EIO)
        with pytest.raises(StorageBroken):
            await stub.write("lost")
        logs.disk.fails_on = lambda operation, path: False
        assert await stub.keys() == ["kept"]
        await stub.write("more")
        assert await stub.keys() == ["kept", "more"]

    run(logs, script, Table)


class Bell(StatefulObject):
    """Its first run does what the test says, and fills the disk for one write of the log."""

    ring: ClassVar[Callable[["Bell"], Coroutine[Any, Any, None]]]
    rung: ClassVar[int] = 0

    async def set(self, time: int) -> None:
        await self.ctx.storage.set_alarm(time)

    async def alarm(self) -> None:
        Bell.rung += 1
        if Bell.rung == 1:
            await self.ring()


async def let_it_go(bell: Bell) -> None:
    """The alarm is deleted at its end."""


async def set_a_later_one(bell: Bell) -> None:
    await bell.ctx.storage.set_alarm(EPOCH_SECONDS * 1_000 + 3_600_000)


@pytest.mark.parametrize(
    ("durability", "then"),
    [
        pytest.param("log", let_it_go, id="log, deleted"),
        pytest.param("log", set_a_later_one, id="log, moved"),
        pytest.param("sqlite", set_a_later_one, id="sqlite, moved"),
    ],
    indirect=["durability"],
)
def test_an_alarm_that_a_refused_commit_changed_is_due_though_nobody_asks_for_its_object(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, then: Callable[[Bell], Coroutine[Any, Any, None]]
) -> None:
    async def ring(bell: Bell) -> None:
        await then(bell)
        fail_next(logs, "write", "segment-", errno.ENOSPC)

    monkeypatch.setattr(Bell, "ring", ring, raising=False)
    monkeypatch.setattr(Bell, "rung", 0)

    async def script(node: Node) -> None:
        await node.env.Bell["one"].set(EPOCH_SECONDS * 1_000 + 5_000)
        await asyncio.sleep(60)

    run(logs, script, Bell)

    assert Bell.rung == 2
    assert not logs.fatal


@pytest.mark.parametrize("seed", range(6))
def test_a_record_that_a_killed_process_did_not_sync_is_durable_before_others_follow_it(
    logs: Logs, seed: int
) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    fail_next(logs, "sync", "segment-", errno.EIO)
    put(log, lease, keys(a=b"2"))  # written, and nobody was told
    logs.killed()

    log = logs.open()
    lease = log.lease(ref())
    found = lease.head
    put(log, lease, keys(b=b"3"))
    logs.power_cut(seed)

    assert logs.open().lease(ref()).head == found + 1


def test_a_commit_that_was_never_logged_is_not_there_after_a_kill(logs: Logs) -> None:
    async def write(node: Node) -> None:
        await node.env.Table["a"].write("kept")

    async def unlogged(node: Node) -> None:
        assert await node.env.Table["a"].keys() == ["kept"]
        database = next(iter(node._live.values())).engine.database
        assert database is not None
        database.begin(0)
        database.connection.execute("INSERT INTO t VALUES ('unlogged', 1)").fetchall()
        assert database.commit()

    async def after(node: Node) -> None:
        assert await node.env.Table["a"].keys() == ["kept"]

    run(logs, write, Table)
    run(logs, unlogged, Table, close=False)
    logs.killed()
    run(logs, after, Table)


def test_a_refused_commit_of_pages_is_taken_out_of_the_database(logs: Logs) -> None:
    async def script(node: Node) -> None:
        stub = node.env.Table["a"]
        await stub.write("kept")
        log = node.log
        assert isinstance(log, LocalObjectLog)
        log._upkeep.full = True
        with pytest.raises(StorageBroken):
            await stub.write("refused")
        log._upkeep.full = False
        assert await stub.keys() == ["kept"]
        await stub.write("later")
        assert await stub.keys() == ["kept", "later"]

    run(logs, script, Table)


def test_debris_of_a_database_that_was_never_logged_is_removed(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(from_name("Table", "a"))
    put(log, lease, keys(), alarm=5)
    logs.disk.open(lease.path, create=True).write(b"half a header", 0)
    logs.disk.open(lease.path + "-journal", create=True).write(b"half a journal", 0)
    logs.killed()

    async def script(node: Node) -> None:
        await node.env.Table["a"].write("works")
        assert await node.env.Table["a"].keys() == ["works"]

    run(logs, script, Table)


def test_a_refused_commit_is_never_written_down_as_a_head(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    lease.put_base(1)
    fail_next(logs, "write", "segment-", errno.ENOSPC)
    assert put(log, lease, keys(a=b"2")).state == "refused"

    log.close()

    log = logs.open()
    lease = log.lease(ref())
    assert lease.head == 1
    put(log, lease, keys(a=b"3"))
    logs.killed()
    assert logs.open().lease(ref()).tail == {"a": b"3"}
