"""The bytes of segments and of restores: what is read back, what is told from what, and each boundary."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from edgestead.sqlite.objectlog import segments
from edgestead.sqlite.objectlog.catalogue import SegmentRow
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.format import (
    BLOCK_BYTES,
    FORMAT_VERSION,
    KIND_TIME,
    RECORD_HEADER_BYTES,
    RECORD_MAGIC,
    Record,
    SegmentHeader,
    later_record,
    pack_entry,
    pack_header,
    pack_record,
    read_entries,
    read_record,
    record_length,
    seed_of,
    torn_record,
    unpack_header,
)
from edgestead.sqlite.objectlog.upkeep import Upkeep
from edgestead.store.history import restoring
from edgestead.store.objectlog import UNCHANGED, CommitKind, LogDamaged, LogError, Restored
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES, frames_of
from edgestead.store.past import ObjectState
from edgestead.store.runner import Done, Job, attempt
from edgestead.testing.disks import SimulatedDisk
from tests.descriptors import left_open, open_descriptors, open_now

FOLDER_ID = b"folder-identity!"
SEED = seed_of(FOLDER_ID, 7)


# headers


def test_a_header_comes_back() -> None:
    header = SegmentHeader(FOLDER_ID, 7, 99)
    block = pack_header(header)

    assert len(block) == BLOCK_BYTES
    assert unpack_header(block) == header
    assert unpack_header(block[:100]) == header, "the rest is zeros"


@pytest.mark.parametrize("place", [0, 8, 12, 28, 36, 44])
def test_a_header_with_a_changed_byte_is_none(place: int) -> None:
    block = bytearray(pack_header(SegmentHeader(FOLDER_ID, 7, 99)))
    block[place] ^= 1

    assert unpack_header(bytes(block)) is None
    assert unpack_header(bytes(block[:20])) is None
    assert unpack_header(b"") is None


def test_a_header_of_a_later_version_is_none() -> None:
    block = bytearray(pack_header(SegmentHeader(FOLDER_ID, 7, 99)))
    assert block[8] == FORMAT_VERSION

    assert unpack_header(bytes(block[:8] + bytes([FORMAT_VERSION + 1]) + block[9:])) is None


# records


def entry(number: int, position: int, body: bytes, alarm: Any = UNCHANGED) -> bytes:
    return pack_entry(number, position, CommitKind.KEYS, alarm, len(body)) + body


def test_a_record_gives_its_entries_with_their_times() -> None:
    later = pack_entry(0, 5_000, KIND_TIME, UNCHANGED, 0)
    payload = entry(1, 1, b"a", 9) + entry(2, 4, b"", None) + later + entry(1, 2, b"bc")
    data = b"before" + pack_record(SEED, 3, 1_000, 4, payload)

    record = read_record(memoryview(data), 6, SEED)

    assert record is not None
    assert (record.sequence, record.time_us, record.count, record.end) == (3, 1_000, 4, len(data))
    found = [(e.number, e.position, e.alarm, bytes(e.body), e.time_us) for e in read_entries(record)]
    assert found == [
        (1, 1, 9, b"a", 1_000),
        (2, 4, None, b"", 1_000),
        (1, 2, UNCHANGED, b"bc", 5_000),
    ]


@pytest.mark.parametrize("place", range(RECORD_HEADER_BYTES + 3))
def test_a_record_with_a_changed_byte_is_none(place: int) -> None:
    data = bytearray(pack_record(SEED, 3, 1_000, 1, b"payload"))
    data[place] ^= 1

    assert read_record(memoryview(data), 0, SEED) is None


def test_a_record_of_another_use_of_the_file_or_cut_off_is_none() -> None:
    data = memoryview(pack_record(SEED, 3, 1_000, 1, b"payload"))

    assert read_record(data, 0, SEED) is not None
    assert read_record(data, 0, seed_of(FOLDER_ID, 8)) is None
    assert read_record(data, 0, seed_of(b"another folder !", 7)) is None
    for length in (0, RECORD_HEADER_BYTES - 1, RECORD_HEADER_BYTES, len(data) - 1):
        assert read_record(data[:length], 0, SEED) is None


def test_a_record_without_entries_is_one() -> None:
    data = pack_record(SEED, 3, 1_000, 0, b"")

    record = read_record(memoryview(data), 0, SEED)

    assert isinstance(record, Record)
    assert list(read_entries(record)) == []
    assert record.end == RECORD_HEADER_BYTES


def test_a_record_says_how_long_it_is() -> None:
    data = memoryview(b"x" + pack_record(SEED, 3, 1_000, 1, b"payload"))

    assert record_length(data, 1) == RECORD_HEADER_BYTES + 7
    assert record_length(data[: 1 + RECORD_HEADER_BYTES], 1) == RECORD_HEADER_BYTES + 7
    assert record_length(data[:RECORD_HEADER_BYTES], 1) == RECORD_HEADER_BYTES
    assert record_length(data, 0) == RECORD_HEADER_BYTES, "no record begins there"


def test_the_beginning_of_a_record_says_what_is_torn() -> None:
    data = memoryview(b"x" + pack_record(SEED, 3, 1_000, 2, b"payload"))

    assert torn_record(data, 1, 3) == (RECORD_HEADER_BYTES + 7, 2)
    assert torn_record(data[: 1 + RECORD_HEADER_BYTES], 1, 3) == (RECORD_HEADER_BYTES + 7, 2)
    assert torn_record(data[:RECORD_HEADER_BYTES], 1, 3) is None
    assert torn_record(data, 1, 4) is torn_record(data, 0, 3) is None


def test_a_later_record_is_found_behind_whatever_stands_before_it() -> None:
    record = pack_record(SEED, 3, 1_000, 1, b"payload")
    data = b"x" + RECORD_MAGIC + RECORD_MAGIC + b"y" + record

    assert later_record(record, 0, SEED) == 0
    assert later_record(data, 0, SEED) == 10
    assert later_record(data, 10, SEED) == 10
    assert later_record(data, 11, SEED) is None
    assert later_record(data[:-1], 0, SEED) is None


# files of segments


@pytest.mark.parametrize("fill_bytes", [1_000, 4_096, 1 << 20])
def test_a_new_segment_is_as_long_as_it_says_and_an_old_one_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill_bytes: int
) -> None:
    monkeypatch.setattr(segments, "FILL_BYTES", fill_bytes)
    files, folder, path = LocalFiles(), str(tmp_path), tmp_path / "segment-1"
    for generation, size in ((1, 10_000), (2, 10_000), (3, 12_000)):
        row = SegmentRow(generation, "segment-1", size)
        made = segments.prepare(files, folder, FOLDER_ID, row)
        assert path.stat().st_size == size
        assert (made.generation, made.seed, made.offset) == (
            generation,
            seed_of(FOLDER_ID, generation),
            BLOCK_BYTES,
        )
        assert [made.fits(length) for length in (size - BLOCK_BYTES, size - BLOCK_BYTES + 1)] == [True, False]
        assert segments.read_whole(files, folder, FOLDER_ID, row)[0][BLOCK_BYTES:] == bytes(
            size - BLOCK_BYTES
        )
        made.file.close()


ZERO_ROW = SegmentRow(1, "segment-1", 40_000)


def read_zero_row(folder: Path, *parts: tuple[int, bytes]) -> list[Record]:
    """The records of a segment that has these bytes at these offsets, and zeros elsewhere."""
    segment = segments.prepare(LocalFiles(), str(folder), FOLDER_ID, ZERO_ROW)
    for offset, octets in parts:
        segment.file.write(octets, offset)
    segment.file.close()
    data, end = segments.read_whole(LocalFiles(), str(folder), FOLDER_ID, ZERO_ROW)
    assert end <= ZERO_ROW.bytes_total
    assert not any(data[end:])
    return list(segments.records(data, end, "segment-1", seed_of(FOLDER_ID, 1)))


@pytest.mark.parametrize("fill_bytes", [1_000, 4_096, 1 << 20])
@pytest.mark.parametrize("payload", [bytes(9_000), b"x" + bytes(20_000), bytes(20_000) + b"x"])
def test_zeros_that_are_part_of_a_record_are_no_end_of_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill_bytes: int, payload: bytes
) -> None:
    monkeypatch.setattr(segments, "FILL_BYTES", fill_bytes)
    monkeypatch.setattr(segments, "_ZEROS", bytes(fill_bytes))
    seed = seed_of(FOLDER_ID, 1)
    first = pack_record(seed, 1, 1_000, 1, payload)
    second = pack_record(seed, 2, 1_000, 1, b"payload")

    found = read_zero_row(tmp_path, (BLOCK_BYTES, first), (BLOCK_BYTES + len(first), second))
    assert [bytes(one.payload) for one in found] == [payload, b"payload"]
    with pytest.raises(LogDamaged, match="before a whole one"):
        read_zero_row(tmp_path, (BLOCK_BYTES, bytes(len(first))))


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_segment_that_cannot_be_made_leaves_nothing_new(exists: bool, operation: str) -> None:
    disk, row = SimulatedDisk(), SegmentRow(1, "segment-1", 10_000)
    if exists:
        disk.open("/log/segment-1", create=True).write(b"old" * 2_000, 0)
    disk.fails_on = lambda found, path: found == operation
    disk.operations, disk.fail_at, disk.fail_errno = 0, 1, errno.ENOSPC

    with pytest.raises(OSError, match="No space"):
        segments.prepare(disk, "/log", FOLDER_ID, row)

    assert disk.exists("/log/segment-1") is exists


def test_room_is_tried_and_given_back(tmp_path: Path) -> None:
    disk = SimulatedDisk()
    segments.try_room(LocalFiles(), str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert open_descriptors(tmp_path) == 0

    for room in (segments.FILL_BYTES - 1, segments.FILL_BYTES):
        disk.space_bytes = room
        if room < segments.FILL_BYTES:
            with pytest.raises(OSError, match="No space"):
                segments.try_room(disk, "/log")
        else:
            segments.try_room(disk, "/log")
        assert (disk.exists("/log/room"), disk.space_bytes) == (False, room)


class LateRunner:
    """Runs a job at once; its result comes when it is delivered."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def run(self, job: Job, done: Done) -> None:
        self.results.append((done, attempt(job)))

    def deliver(self) -> None:
        done, result = self.results.pop(0)
        done(*result)


def upkeep(disk: SimulatedDisk, runner: LateRunner) -> Upkeep:
    catalogue = SimpleNamespace(folder_id=FOLDER_ID, add_segment=lambda row: None)
    return Upkeep(
        disk,
        "/log",
        "/data",
        catalogue,  # type: ignore[arg-type]
        runner,  # type: ignore[arg-type]
        segment_bytes=2 * BLOCK_BYTES,
        generation=0,
        sealed=[],
        free=[],
        on_spare=lambda: None,
        fatal=pytest.fail,
    )


@pytest.mark.parametrize("full_later", [True, False])
def test_a_look_that_began_before_the_disk_was_full_shows_nothing(full_later: bool) -> None:
    disk, runner = SimulatedDisk(), LateRunner()
    made = upkeep(disk, runner)
    made.prepare_spare()
    runner.deliver()
    made.look_for_space()
    disk.space_bytes = 0 if full_later else None
    made.look_for_space()  # as a write does that finds the disk full
    assert len(runner.results) == 1
    assert not made.full

    runner.deliver()
    runner.deliver()

    assert made.full is full_later
    assert runner.results == []


def test_room_that_is_found_by_a_later_look_ends_the_refusal() -> None:
    disk, runner = SimulatedDisk(), LateRunner()
    made = upkeep(disk, runner)
    made.prepare_spare()
    runner.deliver()
    disk.space_bytes = 0
    made.look_for_space()
    disk.space_bytes = None
    made.look_for_space()

    runner.deliver()
    assert made.full
    runner.deliver()
    assert not made.full


def test_a_segment_that_is_not_what_the_catalogue_says_is_damaged(tmp_path: Path) -> None:
    files, folder = LocalFiles(), str(tmp_path)
    segments.prepare(files, folder, FOLDER_ID, SegmentRow(1, "segment-1", 10_000)).file.close()

    for row, words in (
        (SegmentRow(2, "segment-1", 10_000), "no valid header of generation 2"),
        (SegmentRow(1, "segment-1", 9_999), "no valid header of generation 1"),
        (SegmentRow(1, "segment-2", 10_000), r"segment-2 \(generation 1\) is missing"),
    ):
        with pytest.raises(LogDamaged, match=words):
            segments.read_whole(files, folder, FOLDER_ID, row)
    with pytest.raises(LogDamaged, match="no valid header"):
        segments.read_whole(files, folder, b"another folder !", SegmentRow(1, "segment-1", 10_000))
    assert open_descriptors(tmp_path) == 0


# restores


def image(letters: str) -> bytes:
    return b"".join(letter.encode() * PAGE_BYTES for letter in letters)


def numbers(frames: bytes) -> list[int]:
    step = FRAME_HEADER_BYTES + PAGE_BYTES
    return [int.from_bytes(frames[start : start + 4], "big") for start in range(0, len(frames), step)]


DIFFERENCES: dict[str, tuple[str, str, list[int] | None]] = {
    "nothing": ("ABC", "ABC", None),
    "one in the middle": ("ABC", "AXC", [2]),
    "the first and the last": ("ABC", "XBY", [1, 3]),
    "a page more": ("AB", "ABC", [3]),
    "a page less": ("ABC", "AB", [1]),
    "everything": ("", "AB", [1, 2]),
    "moved on by one": ("AABC", "ABCC", [2, 3]),
}


@pytest.mark.parametrize(("current", "wanted", "pages"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_a_restore_logs_the_pages_that_differ_and_writes_them(
    tmp_path: Path, current: str, wanted: str, pages: list[int] | None
) -> None:
    path = tmp_path / "folder/a.sqlite"
    frames = restoring.differing_frames(image(current), image(wanted))

    assert (frames and numbers(frames)) == pages
    if frames is not None:
        (tmp_path / "folder").mkdir()
        path.write_bytes(image(current))
        before = open_now()
        restoring.write_frames(LocalFiles(), str(path), frames)
        assert restoring.read_file(LocalFiles(), str(path)) == path.read_bytes() == image(wanted)
        assert not left_open(before)


def test_a_file_that_is_not_there_is_empty_and_is_made(tmp_path: Path) -> None:
    path = str(tmp_path / "new/folder/a.sqlite")
    assert restoring.read_file(LocalFiles(), path) == b""
    frames = restoring.differing_frames(b"", image("AB"))
    assert frames is not None

    restoring.write_frames(LocalFiles(), path, frames)

    assert restoring.read_file(LocalFiles(), path) == image("AB")


@pytest.mark.parametrize(("room", "fits"), [(0, True), (-1, False)])
def test_a_restore_is_at_most_as_large_as_a_commit(
    monkeypatch: pytest.MonkeyPatch, room: int, fits: bool
) -> None:
    monkeypatch.setattr(restoring, "COMMIT_BYTES_MAX", 2 * (FRAME_HEADER_BYTES + PAGE_BYTES) + room)

    if fits:
        assert restoring.differing_frames(image("ABC"), image("XBY")) is not None
    else:
        with pytest.raises(LogError, match="at most"):
            restoring.differing_frames(image("ABC"), image("XBY"))


def kinds(current: bytes, state: ObjectState) -> list[CommitKind]:
    first, *follow = restoring.restoring_commits(current, state, 3)
    begins = msgspec.msgpack.decode(first.body, type=Restored)
    assert begins == Restored(3, state.position, len(follow))
    return [first.kind, *(commit.kind for commit in follow)]


def test_a_restore_is_a_beginning_and_what_is_needed_behind_it() -> None:
    pages, tail = bytearray(image("A")), {"k": b"1"}

    assert kinds(image("A"), ObjectState(5, pages, {}, None)) == [CommitKind.RESTORED]
    assert kinds(b"", ObjectState(5, bytearray(), {}, None)) == [CommitKind.RESTORED]
    assert kinds(image("B"), ObjectState(5, pages, {}, None)) == [CommitKind.RESTORED, CommitKind.PAGES]
    assert kinds(b"", ObjectState(5, pages, dict(tail), None)) == [
        CommitKind.RESTORED,
        CommitKind.PAGES,
        CommitKind.KEYS,
    ]


def test_an_object_that_had_no_database_gets_an_empty_one() -> None:
    _, pages = restoring.restoring_commits(image("AB"), ObjectState(0, bytearray(), {}, None), 1)

    assert pages.kind is CommitKind.PAGES
    assert numbers(pages.body) == [1]
    assert pages.body[FRAME_HEADER_BYTES:] == restoring.EMPTY_PAGE


def test_the_last_frame_says_how_many_pages_there_are() -> None:
    frames = frames_of(image("ABC"), [1, 3], 7)

    step = FRAME_HEADER_BYTES + PAGE_BYTES
    sizes = [int.from_bytes(frames[start + 4 : start + 8], "big") for start in (0, step)]
    assert (numbers(frames), sizes, len(frames)) == ([1, 3], [0, 7], 2 * step)
    assert [frames[start + FRAME_HEADER_BYTES :][:PAGE_BYTES] for start in (0, step)] == [
        image("A"),
        image("C"),
    ]
