"""A log that lost acknowledged records says so, and one that lost what nobody was told of does not."""

import logging
import os
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.server.objects import layout as layout
from edgestead.sqlite.objectlog import adoption, watermark
from edgestead.sqlite.objectlog.catalogue import Catalogue
from edgestead.sqlite.objectlog.checking import check_folder
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.format import BLOCK_BYTES
from edgestead.sqlite.objectlog.recovery import recover
from edgestead.sqlite.objectlog.watermark import read_mark
from edgestead.store.objectlog import LogDamaged, LogLost
from tests.objects.logs import SEGMENT_BYTES, Logs, kept, keys, put, ref
from tests.objects.test_schema import open_log

SEGMENT = "/objects/log/segment-0001.log"
MARK = "/objects/log/mark"
LOSSES = {  # what becomes of a segment's bytes; `end` is behind its last record
    "cut to 64 bytes": lambda data, end: data[:64],
    "cut to its header": lambda data, end: data[:BLOCK_BYTES],
    "cut in the middle": lambda data, end: data[: end // 2],
    "cut in the last record": lambda data, end: data[: end - 1],
    "zeros from the header on": lambda data, end: data[:BLOCK_BYTES].ljust(SEGMENT_BYTES, b"\0"),
    "zeros from the middle on": lambda data, end: data[: end // 2].ljust(SEGMENT_BYTES, b"\0"),
    "a zero in the last record": lambda data, end: data[: end - 1] + b"\0" + data[end:],
}


def written(logs: Logs, commits: int = 8) -> int:
    """A log of a killed process; gives the end of its records."""
    log = logs.open()
    lease = log.lease(ref())
    for number in range(commits):
        put(log, lease, keys(**{f"k{number}": b"x" * 500}))
    assert log._writer.segment is not None
    end = log._writer.segment.offset
    logs.killed()
    return end


def lose(logs: Logs, how: str, end: int) -> None:
    inode = logs.disk.inodes[SEGMENT]
    inode.data = bytearray(LOSSES[how](bytes(inode.data), end))


@pytest.mark.parametrize("how", LOSSES)
def test_a_log_that_lost_its_end_is_not_opened_and_not_changed(logs: Logs, how: str) -> None:
    end = written(logs)
    lose(logs, how, end)
    before = bytes(logs.disk.inodes[SEGMENT].data)

    for _ in range(2):
        with pytest.raises(LogLost, match=rf"{SEGMENT} lost .* byte {end}\..*accept-loss") as refusal:
            logs.open()
        assert "\n" not in str(refusal.value)

    assert bytes(logs.disk.inodes[SEGMENT].data) == before


@pytest.mark.parametrize("how", LOSSES)
def test_a_lost_end_of_a_sealed_segment_is_told_before_anything_is_in_the_next(logs: Logs, how: str) -> None:
    end = written(logs)
    logs.open()  # which begins a new segment
    logs.killed()
    lose(logs, how, end)

    with pytest.raises(LogLost, match="segment-0001"):
        logs.open()


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("followed", [False, True], ids=["history behind", "history ahead"])
def test_a_loss_that_was_accepted_lets_the_log_go_on(logs: Logs, how: str, followed: bool) -> None:
    log = logs.open()
    lease = log.lease(ref())
    for number in range(8):
        put(log, lease, keys(**{f"k{number}": b"x" * 500}))
    if followed:
        kept(log, ref(), 0, 8)
    assert log._writer.segment is not None
    end = log._writer.segment.offset
    logs.killed()
    lose(logs, how, end)

    words = adoption.accept_loss("/objects", logs.disk, logs.vfs)

    assert words is not None
    assert f"byte {end}" in words
    log = logs.open()
    lease = log.lease(ref())
    assert lease.head < 8
    assert len(lease.tail) == lease.head
    assert log.life == 1, "bookmarks of what is lost are of another life"
    put(log, lease, keys(new=b"1"))
    assert [one.position for one in kept(log, ref(), lease.head - 1, lease.head)] == [lease.head]
    log.close()
    assert adoption.accept_loss("/objects", logs.disk, logs.vfs) is None


def test_what_nobody_was_told_of_is_dropped_with_an_entry(
    logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    end = written(logs)
    log = logs.open()
    lease = log.lease(ref())
    lease.append([keys(a=b"x" * 900)], None)
    segment = log._writer.segment
    assert segment is not None
    path = f"/objects/log/{segment.row.slot}"
    mark = bytes(logs.disk.inodes[MARK].data)
    log.flush()
    logs.disk.inodes[path].data[segment.offset - 100 : segment.offset] = bytes(100)  # torn by a power cut …
    logs.disk.inodes[MARK].data[:] = mark  # … before it was synced
    logs.killed()

    with caplog.at_level(logging.WARNING):
        assert logs.open().lease(ref()).head == 8

    assert f"{path}: a group of 1 entries at byte {BLOCK_BYTES} " in caplog.text
    assert end > BLOCK_BYTES


def test_a_first_group_that_nobody_was_told_of_is_dropped_with_an_entry_too(
    logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    log = logs.open()
    mark = bytes(logs.disk.inodes[MARK].data)
    put(log, log.lease(ref()), keys(a=b"x" * 900))
    segment = log._writer.segment
    assert segment is not None
    path = f"/objects/log/{segment.row.slot}"
    logs.disk.inodes[path].data[segment.offset - 100 : segment.offset] = bytes(100)
    logs.disk.inodes[MARK].data[:] = mark
    logs.killed()

    with caplog.at_level(logging.WARNING):
        assert not logs.open().has(ref())

    assert f"{path}: a group of 2 entries at byte {BLOCK_BYTES} " in caplog.text, "its name and the commit"


@pytest.mark.parametrize(
    "damage",
    [lambda mark: mark.clear(), lambda mark: mark.__setitem__(20, 255 - mark[20]), lambda mark: None],
    ids=["empty", "torn", "gone"],
)
def test_a_mark_that_cannot_be_read_stops_nobody(logs: Logs, damage: object) -> None:
    written(logs)
    damage(logs.disk.inodes[MARK].data)  # type: ignore[operator]

    assert logs.open().lease(ref()).head == 8


MARKS = {  # what becomes of the file
    "gone": Path.unlink,
    "empty": lambda path: os.truncate(path, 0),
    "cut": lambda path: os.truncate(path, 10),
    "zeros": lambda path: path.write_bytes(bytes(4_096)),
    "of another folder": lambda path: watermark.write_mark(
        LocalFiles(), str(path.parents[1]), b"x" * 16, watermark.NOWHERE
    ),
}


@pytest.mark.parametrize("how", MARKS)
def test_a_mark_that_was_there_and_is_not_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    folder, told = str(tmp_path), f"{tmp_path}/log/mark is gone or damaged"
    open_log(folder).close()
    assert check_folder(folder) == []
    MARKS[how](tmp_path / "log" / "mark")

    (found,) = check_folder(folder)
    open_log(folder).close()

    assert told in found
    assert caplog.text.count(told) == 1
    assert check_folder(folder) == []
    open_log(folder).close()
    assert caplog.text.count(told) == 1


def test_a_copy_and_a_next_life_begin_without_a_mark(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, copy = tmp_path / "one", tmp_path / "two"
    open_log(str(folder)).close()
    shutil.copytree(folder, copy)
    (copy / "log" / "mark").unlink()

    assert check_folder(str(copy)) == []
    adoption.adopt(str(copy))
    assert check_folder(str(copy)) == []
    open_log(str(copy)).close()
    assert "is gone" not in caplog.text
    (copy / "log" / "mark").unlink()
    assert len(check_folder(str(copy))) == 1


def test_a_catalogue_that_is_older_than_the_mark_is_refused(tmp_path: Path) -> None:
    folder, book = str(tmp_path), tmp_path / "log" / "catalogue.db"
    open_log(folder).close()
    older = book.read_bytes()
    log = open_log(folder)
    put(log, log.lease(ref()), keys(a=b"1"))
    log.close()
    book.write_bytes(older)

    with pytest.raises(LogDamaged, match=r"catalogue\.db is older than the log") as refusal:
        open_log(folder)
    assert check_folder(folder) == [str(refusal.value)]


# a catalogue, or a past, that is gone

BOOKS = {
    "gone": Path.unlink,
    "empty": lambda path: os.truncate(path, 0),
    "cut": lambda path: os.truncate(path, 100),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}


@pytest.mark.parametrize(
    ("how", "without"), [*((how, "") for how in BOOKS), ("gone", "segment-*"), ("gone", "../data")]
)
def test_a_log_without_its_catalogue_is_not_begun_anew(tmp_path: Path, how: str, without: str) -> None:
    folder, book = str(tmp_path), tmp_path / "log" / "catalogue.db"
    log = open_log(folder)
    put(log, log.lease(ref()), keys(a=b"1"))
    log.close()
    (tmp_path / "data" / "Counter").mkdir(exist_ok=True)
    for path in book.parent.glob(without) if without else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    BOOKS[how](book)
    segments = {path: path.read_bytes() for path in book.parent.glob("segment-*")}

    for act in (open_log, adoption.accept_loss, adoption.adopt, open_log):
        with pytest.raises(LogDamaged, match=r"catalogue\.db.*Bring back a backup") as refusal:
            act(folder)
        assert "\n" not in str(refusal.value)
    (found, *_) = check_folder(folder)

    assert "catalogue.db" in found
    assert {path: path.read_bytes() for path in book.parent.glob("segment-*")} == segments


def test_another_number_of_processes_does_not_begin_a_lost_catalogue_anew(tmp_path: Path) -> None:
    folder = layout.settle(tmp_path, 0, 1)
    open_log(str(folder)).close()
    (folder / "log" / "catalogue.db").unlink()

    with pytest.raises(LogDamaged, match="Bring back a backup"):
        layout.settle(tmp_path, 0, 2)


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_past_that_is_gone_is_told_and_begins_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    folder, book = str(tmp_path), tmp_path / "log" / "history.db"
    log = open_log(folder)
    put(log, log.lease(ref()), keys(a=b"1"))
    log.close()
    assert "no past" not in caplog.text, "of a new folder there is nothing to tell"
    BOOKS[how](book)

    (found,) = check_folder(folder)
    assert found == f"{book}: what was kept of the past is gone; the next start begins it anew"
    open_log(folder).close()

    assert f"{book}: there is no past of these objects: it begins now" in caplog.text
    assert check_folder(folder) == []


@pytest.mark.parametrize("seed", range(20))
def test_after_a_power_cut_the_mark_is_never_ahead_of_the_log(logs: Logs, seed: int) -> None:
    chance = random.Random(seed)
    log = logs.open()
    leases = [log.lease(ref(f"o{number}")) for number in range(3)]
    for number in range(chance.randrange(1, 60)):
        put(log, chance.choice(leases), keys(k=b"%d" % number * chance.randrange(1, 2_000)))
        if chance.random() < 0.2:
            log.tend()
    logs.power_cut(seed)

    catalogue = Catalogue("/objects/log/catalogue.db", logs.vfs, None)
    mark = read_mark(logs.disk, "/objects", catalogue.folder_id)
    assert mark is not None
    recover(logs.disk, "/objects/log", catalogue, mark)
    catalogue.close()


def test_the_mark_is_made_durable_each_second_of_upkeep(logs: Logs) -> None:
    log = logs.open()
    put(log, log.lease(ref()), keys(a=b"1"))
    assert logs.disk.inodes[MARK].dirty

    log.tend()

    assert not logs.disk.inodes[MARK].dirty


def test_a_loss_is_accepted_by_the_command_and_only_once(tmp_path: Path) -> None:
    folder = layout.settle(tmp_path / "objects", 0, 1)
    log = open_log(str(folder))
    put(log, log.lease(ref()), keys(a=b"1"))
    log.close()
    os.truncate(folder / "log" / "segment-0001.log", 64)
    (told,) = check_folder(str(folder))
    assert "lost acknowledged records" in told

    command = ["accept-loss", "--data-dir", str(tmp_path)]
    refused = CliRunner().invoke(cli, ["object", *command], input="n\n")
    assert check_folder(str(folder)) == [told]
    accepted = CliRunner().invoke(cli, ["object", *command, "--yes"])
    again = CliRunner().invoke(cli, ["object", *command, "--yes"])

    assert (refused.exit_code, accepted.exit_code, again.exit_code) == (1, 0, 0)
    assert accepted.output == f"Accepted: {told.partition('. Nothing')[0]}.\n"
    assert "no log ends before" in again.output
    open_log(str(folder)).close()
    assert check_folder(str(folder)) == []
