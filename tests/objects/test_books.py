"""What the log knows of its objects and segments: in the catalogue, in memory, and in copies of both."""

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import apsw
import msgspec
import pytest

from edgestead.server.backup import BackupError
from edgestead.server.objects import backup, layout
from edgestead.server.objects.copying import copy_log
from edgestead.sqlite.objectlog import catalogue, distribution
from edgestead.sqlite.objectlog.adoption import accept_loss, adopt
from edgestead.sqlite.objectlog.archive import Archive
from edgestead.sqlite.objectlog.catalogue import Catalogue, Identity, ObjectRow, SegmentRow
from edgestead.sqlite.objectlog.checking import check_folder
from edgestead.sqlite.objectlog.chronicle import Chronicle
from edgestead.sqlite.objectlog.directory import Directory
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.history import PIECE_BYTES, History
from edgestead.sqlite.objectlog.paths import catalogue_path, data_path, history_path, keep_path
from edgestead.store import due
from edgestead.store.history.reader import PastReader
from edgestead.store.history.rows import SnapshotRow
from edgestead.store.history.thinning import Keeping
from edgestead.store.objectlog import (
    UNCHANGED,
    Commit,
    CommitKind,
    LogDamaged,
    LogError,
    NoSpace,
    ObjectRef,
    Target,
    own_path,
)
from edgestead.store.pages import PAGE_BYTES, frames_of
from tests.descriptors import left_open, open_now
from tests.objects.logs import Logs, answer, kept, keys, put, ref
from tests.objects.test_schema import open_log
from tests.support.forgetful import ForgetfulFolder

FOLDER_ID = b"folder-identity!"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Catalogue]:
    made = Catalogue(str(tmp_path / "catalogue.db"), "", FOLDER_ID, 1)
    yield made
    made.close()


def row(number: int, name: str = "", **known: Any) -> ObjectRow:
    columns = {"head": 0, "base": 0, "has_file": False, "alarm_us": None} | known
    return ObjectRow(number, ref(name or f"o{number}"), **columns)


# the catalogue


def test_an_object_is_what_was_written_down_last(book: Catalogue) -> None:
    book.settle([row(1, head=3, base=2, has_file=True, alarm_us=5, session=1, pending=Target(0, 2))], ())
    book.settle([row(2)], ())
    later = row(1, head=4, base=4, has_file=True, session=2)

    book.settle([later], ())

    assert book.numbered(1) == book.object("Counter", ref("o1").id) == later
    assert book.numbered(2) == row(2)
    assert book.numbered(3) is None
    assert book.object("Counter", "0") is None
    assert book.last_number() == 2


def test_a_plan_to_go_back_is_written_down(book: Catalogue) -> None:
    planned = row(1, pending=Target(0, 7), session=3)
    book.settle([planned], ())

    assert book.numbered(1) == planned


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_objects_are_listed_in_order_in_batches_of_any_size(book: Catalogue, batch: int) -> None:
    """Ids of the second class begin before those of the first end."""
    made = [ObjectRow(n, ref(f"o{n % 4}", "AB"[n // 4]), n, 0, False, None) for n in range(7, 0, -1)]
    book.settle(made, ())

    def names(after: tuple[str, str] = ("", "")) -> list[tuple[str, str | None]]:
        return [(found.ref.class_name, found.ref.name) for found in book.rows(batch, after)]

    everything = names()
    assert everything == sorted(everything)
    assert len(everything) == 7
    assert names(("A", ref("o2").id)) == [("A", "o3"), ("B", "o0"), ("B", "o1"), ("B", "o2"), ("B", "o3")]
    assert [entry.head for entry in book.entries(("B", ref("o2").id))] == [7]


def test_alarms_are_those_of_objects_that_have_one(book: Catalogue) -> None:
    book.settle([row(1, alarm_us=5), row(2), row(3, alarm_us=0)], ())

    assert sorted(book.alarms()) == [(0, 3), (5, 1)]


def test_segments_are_live_until_they_are_retired(book: Catalogue) -> None:
    assert (book.segments(), book.last_generation()) == ([], 0)
    segments = [SegmentRow(n, f"segment-{n}", 100 * n) for n in (1, 2, 3)]
    for segment in segments:
        book.add_segment(segment)

    book.settle((), [1, 3])

    assert book.segments() == segments[1:2]
    assert book.last_generation() == 3


def test_a_folder_keeps_its_identity(book: Catalogue, tmp_path: Path) -> None:
    known = Identity(2, 1, 7, 8, 9)
    assert book.identity() == Identity(0, 0, 0, None, None)
    assert book.marked_life is None
    book.set_identity(known)
    book.note_mark(2)
    book.close()

    again = Catalogue(str(tmp_path / "catalogue.db"), "", b"another identity", 5)

    assert (again.folder_id, again.identity(), again.marked_life) == (FOLDER_ID, known, 2)
    assert [known.life_of(segment) for segment in (1, 7, 8)] == [1, 1, 2]
    again.close()


def test_room_is_reserved_in_the_catalogue(book: Catalogue) -> None:
    ((free,),) = book.connection.execute("PRAGMA freelist_count").fetchall()

    assert free * 4_096 >= catalogue.RESERVE_BYTES


def test_a_catalogue_that_cannot_be_used_holds_no_file_open(tmp_path: Path) -> None:
    before = open_now()
    path = tmp_path / "catalogue.db"
    for content in (None, b"", b"no database" * 1_000):
        if content is not None:
            path.write_bytes(content)
        for only_read in (False, True):
            with pytest.raises(LogDamaged, match="Bring back a backup"):
                Catalogue(str(path), "", None, only_read=only_read)

    assert not left_open(before)


# objects in memory


def in_memory(book: Catalogue) -> Directory:
    return Directory(book, (), {})


def test_an_object_has_the_next_number_and_keeps_it(book: Catalogue) -> None:
    book.settle([row(5)], ())
    known = in_memory(book)

    one, two = known.find(ref("one")), known.find(ref("two"))

    assert (one.number, two.number, known.find(ref("o5")).number) == (6, 7, 5)
    assert known.find(ref("one")) is one
    assert known.existing(ref("one")) is None, "it was never written"
    assert known.existing(ref("o5")) is not None
    assert known.existing(ref("nobody")) is None


def test_what_the_catalogue_alone_brings_back_takes_no_memory(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    lease.put_base(1)
    lease.release({})
    assert ("Counter", ref().id) in log._directory.known

    log._catalogue.settle(log._directory.rows(), ())
    log._directory.settled(log._directory.rows())

    assert log._directory.known == {}
    assert log._directory.touched == {}
    found = answer(lambda done: log.find(ref(), done))
    assert found is not None
    assert found.head == 1


@pytest.mark.parametrize("why", ["leased", "tail", "unbased", "touched"])
def test_what_only_memory_knows_stays_there(logs: Logs, why: str) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    if why != "unbased":
        lease.put_base(1)
    if why != "touched":
        log._catalogue.settle(log._directory.rows(), ())
        log._directory.settled(log._directory.rows())
    if why == "leased":
        log._directory.forget(lease._known)
    else:
        lease.release({"a": b"1"} if why == "tail" else {})

    assert ("Counter", ref().id) in log._directory.known


def test_alarms_come_earliest_first_and_each_is_taken_once(book: Catalogue) -> None:
    book.settle([row(n, alarm_us=10 * n) for n in range(1, 6)], ())
    alarms = in_memory(book).alarms

    def names(found: list[tuple[int, ObjectRef]]) -> list[str | None]:
        return [one.name for _, one in found]

    assert names(alarms.take(99, 2)) == ["o1", "o2"]
    assert (names(alarms.take(39, 9)), alarms.next_us()) == (["o3"], 40)
    alarms.give_back(ref("o2"))
    alarms.give_back(ref("o4"))  # that nobody took
    assert alarms.next_us() == 20
    assert names(alarms.take(99, 9)) == ["o2", "o4", "o5"]
    assert alarms.next_us() is None


def test_an_alarm_that_is_moved_counts_where_it_is_now(book: Catalogue) -> None:
    book.settle([row(1, alarm_us=10), row(2, alarm_us=20)], ())
    known, told = in_memory(book).alarms, []
    known.on_set = told.append

    known.set(1, 30)
    known.set(1, 30)
    known.set(2, None)
    known.set(3, None)

    assert told == [30]
    assert (known.next_us(), len(known.take(29, 9)), len(known.take(30, 9))) == (30, 0, 1)
    known.set(1, 30)  # the one that somebody is at is set again
    assert [time_us for time_us, _ in known.take(99, 9)] == [30]


def test_alarms_that_are_moved_often_leave_nothing_behind(
    book: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "HEAP_SLACK", 10)
    book.settle([row(n, alarm_us=n) for n in (1, 2, 3)], ())
    known = in_memory(book).alarms
    assert len(known.take(3, 1)) == 1
    sizes = []

    for time_us in range(100, 200):
        known.set(2, time_us)
        sizes.append(len(known._heap))

    assert max(sizes) == 10 + 2 * 3
    assert min(sizes[20:]) == 2
    assert [time_us for time_us, _ in known.take(999, 9)] == [3, 199]
    known.give_back(ref("o1"))
    assert known.next_us() == 1


def test_objects_whose_base_lags_are_found_oldest_first(book: Catalogue) -> None:
    known = in_memory(book)
    for generation, name in ((1, "a"), (1, "b"), (3, "c")):
        found = known.find(ref(name))
        known.note(found, generation, UNCHANGED)
        known.note(found, 9, UNCHANGED)

    assert known.needed_from(7) == 1
    assert [found.name for found in known.unbased_upto(2, 9)] == ["a", "b"]
    assert [found.name for found in known.unbased_upto(3, 9)] == ["a", "b", "c"]
    assert [found.name for found in known.unbased_upto(3, 1)] == ["a"]
    known.unbased.clear()
    assert known.needed_from(7) == 7


# how objects are dealt out to other logs


def owner(found: ObjectRef) -> int:
    return int((found.name or "o0")[1:]) % 2


@pytest.fixture
def dealt(tmp_path: Path) -> Callable[[list[str]], list[str]]:
    def deal(old: list[str]) -> list[str]:
        new = [str(tmp_path / f"new/{number}") for number in range(2)]
        Path(new[0]).parent.mkdir()
        chance = random.Random(1)
        distribution.deal_out(LocalFiles(), old, new, owner, random=chance.randbytes, now_us=5)
        return new

    return deal


def settled_log(folder: Path, names: list[str]) -> str:
    """A closed log of objects, each with a key and a base at its head."""
    log = open_log(str(folder))
    for name in names:
        lease = log.lease(ref(name))
        put(log, lease, keys(a=name.encode()), alarm=int(name[1:]))
        lease.put_base(1)
        lease.release({})
    log.close()
    return str(folder)


@pytest.mark.parametrize("batch_rows", [1, 2, 1_000])
def test_objects_of_two_logs_are_dealt_out_with_their_past(
    tmp_path: Path, dealt: Any, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    monkeypatch.setattr(distribution, "BATCH_ROWS", batch_rows)
    old = [settled_log(tmp_path / "a", ["o1", "o2", "o3"]), settled_log(tmp_path / "b", ["o4", "o5"])]
    files = {}
    for path in (data_path(old[0], ref("o1")), own_path(data_path(old[1], ref("o4"))) + "-wal"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(path.encode())
        files[path.rpartition("/")[2]] = path.encode()
    book = apsw.Connection(catalogue_path(old[0]))
    book.execute("UPDATE objects SET has_file = 1 WHERE name = 'o1'").fetchall()
    book.close()
    adopt(old[1])
    before = open_now()

    new = dealt(old)

    assert not left_open(before)
    for number, names in enumerate((["o2", "o4"], ["o1", "o3", "o5"])):
        log = open_log(new[number])
        assert sorted(str(entry.ref.name) for entry in log.entries()) == names
        assert [entry.head for entry in log.entries()] == [1] * len(names)
        assert {entry.alarm_us for entry in log.entries()} == {int(name[1:]) for name in names}
        assert [kept(log, ref(name), 0, 1)[0].position for name in names] == [1] * len(names)
        assert log.life == 1
        log.close()
        assert check_folder(new[number]) == []
    found = {path.name: path.read_bytes() for path in Path(tmp_path, "new").rglob("*.sqlite*")}
    assert found == files


def test_a_log_that_is_not_at_its_end_is_not_dealt_out(tmp_path: Path, dealt: Any) -> None:
    folder = str(tmp_path / "a")
    log = open_log(folder)
    lease = log.lease(ref("o1"))
    put(log, lease, keys(a=b"1"))
    lease.release({"a": b"1"})
    log.close()
    before = open_now()

    with pytest.raises(LogError, match="commits that are in no database yet"):
        dealt([folder])

    assert not left_open(before)


def test_an_object_whose_database_lags_is_not_dealt_out(tmp_path: Path, dealt: Any) -> None:
    folder = settled_log(tmp_path / "a", ["o1"])
    book = apsw.Connection(catalogue_path(folder))
    book.execute("UPDATE objects SET head = 2").fetchall()
    book.close()

    with pytest.raises(LogError, match="lags behind its log"):
        dealt([folder])


# examination, copies and what stays open


@pytest.mark.parametrize("act", [check_folder, adopt, accept_loss])
def test_a_command_on_a_folder_leaves_nothing_open(tmp_path: Path, act: Callable[[str], Any]) -> None:
    before = open_now()
    folder = settled_log(tmp_path / "a", ["o1"])
    assert not left_open(before)

    act(folder)

    assert not left_open(before)
    open_log(folder).close()


def test_a_log_that_does_not_open_leaves_nothing_open(tmp_path: Path) -> None:
    folder = settled_log(tmp_path / "a", ["o1"])
    shutil.copytree(folder, tmp_path / "copy")
    before = open_now()

    for path in ("copy", "a"):
        if path == "a":
            Path(history_path(folder)).write_bytes(b"no database" * 1_000)
        with pytest.raises(LogError):
            open_log(str(tmp_path / path))

    assert not left_open(before)


HARMED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a segment that cannot be read": (
        lambda log: [(path.unlink(), path.mkdir()) for path in log.glob("segment-*")],
        "{folder}: ",
    ),
    "a past that is no database": (
        lambda log: (log / "history.db").write_bytes(b"no database" * 1_000),
        "{folder}/log/history.db: ",
    ),
    "a past that was put aside": (
        lambda log: (log / "history.db").rename(log / "history.db.before-loss"),
        "{folder}/log/history.db: what was kept of the past was put aside, to ",
    ),
    "a catalogue that is no database": (
        lambda log: (log / "catalogue.db").write_bytes(b"no database" * 1_000),
        "{folder}/log/catalogue.db: ",
    ),
}


@pytest.mark.parametrize(("harm", "words"), HARMED.values(), ids=HARMED)
def test_harm_is_told_in_a_line(tmp_path: Path, harm: Callable[[Path], Any], words: str) -> None:
    folder = str(tmp_path)
    log = open_log(folder)
    put(log, log.lease(ref("o1")), keys(a=b"1"))
    log.close()
    harm(tmp_path / "log")
    before = open_now()

    (found,) = check_folder(folder)

    assert found.startswith(words.format(folder=folder))
    assert not left_open(before)


def test_the_books_are_copied_as_they_are_at_one_moment(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "one"))
    put(log, log.lease(ref("o1")), keys(a=b"1"))
    assert len(kept(log, ref("o1"), 0, 1)) == 1  # history is there
    (tmp_path / "two/log").mkdir(parents=True)
    told: list[LogError | None] = []

    log.copy_books(str(tmp_path / "two"), lambda _, error: told.append(error))
    log.copy_books(str(tmp_path / "two"), lambda _, error: told.append(error))
    (tmp_path / "two/log/history.db").unlink()
    log.copy_books(str(tmp_path / "two"), lambda _, error: told.append(error))

    assert [type(error) for error in told] == [type(None), LogError, LogError]
    assert "catalogue" in str(told[2])
    copied = Catalogue(catalogue_path(str(tmp_path / "two")), "", None, only_read=True)
    assert (copied.folder_id, copied.segments()) == (log._catalogue.folder_id, log._catalogue.segments())
    copied.close()
    past = History(history_path(str(tmp_path / "two")))
    assert PastReader(past).state(1, 1).tail == {"a": b"1"}
    past.close()
    log.close()


@pytest.mark.parametrize("ends", ["is closed", "is killed"])
def test_a_copy_during_which_the_process_begins_anew_is_whole(tmp_path: Path, ends: str) -> None:
    """What the databases lacked when they were copied is in the segments that are copied after them."""
    one, two, files = str(tmp_path / "one"), str(tmp_path / "two"), LocalFiles()
    image = b"p" * PAGE_BYTES
    log = open_log(one)
    put(log, log.lease(ref("o1")), Commit(CommitKind.PAGES, frames_of(image, [1], 1)))
    copying = files.lock(keep_path(one))  # and its database is copied: there is none yet

    if ends == "is closed":
        log.close()
    else:
        for open_file in (log._lock, log._mark, log._chronicle, log._catalogue):
            open_file.close()
        log._upkeep.close()
    log = open_log(one)
    assert Path(data_path(one, ref("o1"))).read_bytes() == image
    asyncio.run(copy_log(None, log, two))  # type: ignore[arg-type]
    copying.close()
    log.tend()
    log.close()

    adopt(two)
    open_log(two).close()
    assert Path(data_path(two, ref("o1"))).read_bytes() == image
    with closing(Catalogue(catalogue_path(one), "", None)) as book:
        assert book.segments() == [], "what is copied no more is shortened again"


def test_a_folder_is_at_rest_when_no_process_has_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is stopped says so before its objects have written down what they have."""
    folder = str(layout.settle(tmp_path / "objects", 0, 1))
    log = open_log(folder)
    put(log, log.lease(ref("o1")), keys(a=b"1"))
    (tmp_path / "copy").mkdir()

    with monkeypatch.context() as impatient:
        impatient.setattr(backup, "KEEP_SECONDS_MAX", 0.0)
        with pytest.raises(BackupError, match="an objects process still uses it"):
            backup.copy_objects(tmp_path)(tmp_path / "copy")
    assert not (tmp_path / "copy/objects").exists()
    log.close()

    backup.copy_objects(tmp_path)(tmp_path / "copy")
    assert check_folder(str(tmp_path / "copy/objects/1/0")) == []


@pytest.mark.parametrize("error", [apsw.CorruptError(), apsw.IOError(), ValueError("damage"), OSError(5, "")])
def test_a_log_is_closed_whatever_is_wrong_with_its_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    log = open_log(str(tmp_path))
    put(log, log.lease(ref("o1")), keys(a=b"1"))

    with monkeypatch.context() as damaged:
        damaged.setattr(Archive, "follow", Mock(side_effect=error))
        log.close()

    again = open_log(str(tmp_path))
    assert again.lease(ref("o1")).tail == {"a": b"1"}
    assert len(kept(again, ref("o1"), 0, 1)) == 1
    again.close()


def test_a_new_log_outlives_a_power_cut_with_the_folders_above_it(tmp_path: Path) -> None:
    top = tmp_path / "data"
    top.mkdir()
    disk = ForgetfulFolder(top)

    with disk.watching():
        log = open_log(str(layout.settle(top / "objects", 0, 1)))
        put(log, log.lease(ref("o1")), keys(a=b"acknowledged"))
        disk.leave(tmp_path / "after")
    log.close()

    after = tmp_path / "after/objects/1/0/log"
    assert any(b"acknowledged" in path.read_bytes() for path in after.glob("segment-*"))


# when history has its turn


class Later:
    """A runner that does nothing until it is told."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []

    def run(self, job: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        self.jobs.append((job, done))

    def next(self) -> None:
        job, done = self.jobs.pop(0)
        try:
            done(job(), None)
        except Exception as error:
            done(None, error)

    def drain(self) -> None: ...

    def close(self) -> None: ...


class Follows:
    """An archive that fails as it is told, and otherwise says where it has come to."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.fails: list[Exception] = []
        self.batches: list[int] = []

    def follow(self, segments: list[Any], batch_bytes: int = 0) -> Any:
        self.batches.append(batch_bytes)
        if self.fails:
            raise self.fails.pop(0)
        return msgspec.structs.replace(self.history.cursor(), segment=4)


@pytest.fixture
def chronicle(tmp_path: Path) -> Iterator[tuple[Chronicle, Later, Follows, list[int]]]:
    history, runner, moved = History(str(tmp_path / "history.db")), Later(), []
    follows = Follows(history)
    made = Chronicle(
        history,
        follows,
        runner,
        list,
        lambda: moved.append(1),
        Keeping(),
        lambda: 1,  # type: ignore[arg-type]
    )
    yield made, runner, follows, moved
    made.close()


Chronicled = tuple[Chronicle, Later, Follows, list[int]]


def test_history_follows_once_at_a_time_and_tells_when_it_has_moved(chronicle: Chronicled) -> None:
    made, runner, follows, moved = chronicle
    made.follow()
    made.follow()
    made.tend()
    assert (len(runner.jobs), made.needed_from) == (1, 0)

    runner.next()

    assert (len(runner.jobs), made.needed_from, moved, made.bytes_total > 0) == (0, 4, [1], True)
    made.tend()
    made.tend()
    made.follow()
    assert len(runner.jobs) == 1
    runner.next()
    made.follow()
    assert len(runner.jobs) == 1
    assert follows.batches == [0]


def test_history_that_does_not_follow_is_tried_again(
    chronicle: Chronicled, caplog: pytest.LogCaptureFixture
) -> None:
    made, runner, follows, moved = chronicle
    follows.fails = [OSError("on purpose")]
    made.follow()
    runner.next()
    assert (moved, made.needed_from) == ([], 0)
    assert "on purpose" in caplog.text

    made.follow()
    runner.next()

    assert (moved, made.needed_from) == ([1], 4)


def test_on_a_full_disk_history_makes_room_and_follows_in_small_steps(chronicle: Chronicled) -> None:
    made, runner, follows, moved = chronicle
    follows.fails = [apsw.FullError("full")]

    made.follow()
    runner.next()

    assert moved == [1]
    assert len(follows.batches) == 2
    assert follows.batches[1] > 0


ERRORS = {
    "full": ([apsw.FullError("full")] * 2, NoSpace, "no space left"),
    "broken": ([apsw.IOError("broken")], LogError, "cannot be read: broken"),
    "of the log": ([LogDamaged("damaged")], LogDamaged, "damaged"),
}


@pytest.mark.parametrize(("fails", "kind", "words"), ERRORS.values(), ids=ERRORS)
def test_a_question_that_cannot_be_answered_hears_why(
    chronicle: Chronicled, fails: list[Exception], kind: type[LogError], words: str
) -> None:
    made, runner, follows, _ = chronicle
    follows.fails = list(fails)
    told: list[tuple[Any, LogError | None]] = []

    made.ask(lambda past: 1, lambda result, error: told.append((result, error)))
    runner.next()
    made.ask(lambda past: 2, lambda result, error: told.append((result, error)))
    runner.next()

    (first, error), second = told
    assert (first, type(error)) == (None, kind)
    assert words in str(error)
    assert second == (2, None)
    assert made.needed_from == 4


def test_a_snapshot_says_what_all_of_its_pieces_take(tmp_path: Path) -> None:
    image = random.Random(1).randbytes(2 * PIECE_BYTES + 5)
    history = History(str(tmp_path / "history.db"))
    with history:
        stored = history.add_snapshot(SnapshotRow(1, 1, 0, 0, 0, 0, 0, b"rest"), image)
    kept = history.snapshot(1, 1)
    history.close()

    assert stored >= len(image)  # what is random cannot be compressed
    assert kept is not None
    assert kept.stored == stored
