"""Recovery: the state of every object from the files on the disk.

Owns  reading all live segments in order, folding their entries per object, redoing pages.
Not   serving; writing to segments.

There is one rule: a database file is its catalogued base, plus the newest image of every page logged since,
cut to the size of the last logged transaction; key records logged after that are its tail. A `-wal` file is
never read: it may hold commits that were never acknowledged. Redoing twice gives the same file, so recovery
may itself be cut off at any moment.
"""

from collections.abc import Callable, Iterator

import msgspec

from edgestead.sqlite.objectlog.catalogue import Catalogue, ObjectRow, SegmentRow, Tracked
from edgestead.sqlite.objectlog.format import (
    BLOCK_BYTES,
    KIND_NAME,
    KIND_PIN,
    Entry,
    Record,
    read_entries,
    seed_of,
    torn_record,
)
from edgestead.sqlite.objectlog.segments import read_whole, records
from edgestead.sqlite.objectlog.watermark import Mark
from edgestead.store.files import Files
from edgestead.store.migrations import Doing, quiet
from edgestead.store.objectlog import (
    UNCHANGED,
    CommitKind,
    LogDamaged,
    LogLost,
    ObjectRef,
    Restored,
    Tail,
    Target,
)
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES

FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES


class Recovered(Tracked):
    """One object after the log's records.

    `pages` are the newest images since the base, `paged` the position of the last commit that brought any.
    """

    pages: dict[int, memoryview] = msgspec.field(default_factory=dict)
    pages_total: int = 0
    paged: int = 0


class Found(msgspec.Struct):
    """The content of the live segments. `oldest` is each object's first generation with records."""

    objects: dict[int, Recovered]
    oldest: dict[int, int]
    unused: list[SegmentRow]
    used: list[SegmentRow]
    sequence: int
    time_us: int
    ends: dict[int, int] = msgspec.field(default_factory=dict)  # of records, by the segment's generation
    dropped: list[str] = msgspec.field(default_factory=list)  # groups that were not acknowledged, as text


def read_segments(
    files: Files,
    folder: str,
    folder_id: bytes,
    rows: list[SegmentRow],
    dropped: Callable[[str], None] = lambda words: None,
) -> Iterator[tuple[SegmentRow, Record]]:
    """Every record of the live segments, in order. `dropped` is called with the offset of a torn one.

    Raises LogDamaged, naming the segment, when a record that must have been acknowledged cannot be read.
    """
    last: int | None = None
    silent: SegmentRow | None = None
    for row in rows:
        path = f"{folder}/{row.slot}"
        count, end = 0, BLOCK_BYTES
        data, zeros_from = read_whole(files, folder, folder_id, row)
        for record in records(data, zeros_from, path, seed_of(folder_id, row.generation)):
            if silent is not None:
                raise LogDamaged(f"segment {folder}/{silent.slot} lost its records; later ones are whole")
            if last is not None and record.sequence != last + 1:
                raise LogDamaged(
                    f"records {last + 1} to {record.sequence - 1} before segment {path} are gone"
                )
            last = record.sequence
            count, end = count + 1, record.end
            yield row, record
        if not count:
            silent = row
        if torn := torn_record(memoryview(data), end, (last or 0) + 1):
            dropped(f"segment {path}: a group of {torn[1]} entries at byte {end} ({torn[0]} bytes) is torn")


def recover(files: Files, folder: str, catalogue: Catalogue, mark: Mark, doing: Doing = quiet) -> Found:
    """Fold every live record.

    Raises LogDamaged, LogLost when the log ends before what was acknowledged; changes nothing.
    """
    rows = catalogue.segments()
    found = Found({}, {}, [], [], sequence=0, time_us=0)
    names: dict[int, ObjectRef] = {}
    for row, record in read_segments(files, folder, catalogue.folder_id, rows, found.dropped.append):
        found.sequence = record.sequence
        found.ends[row.generation] = record.end
        if not found.used or found.used[-1] is not row:
            found.used.append(row)
            doing(f"reading {row.slot}, {len(found.used)} of at most {len(rows)}")
        for entry in read_entries(record):
            fold(found.objects, names, catalogue.numbered, entry)
            found.time_us = max(found.time_us, entry.time_us)
            found.oldest.setdefault(entry.number, row.generation)
    found.unused = [row for row in rows if row not in found.used]
    _check_end(folder, rows, catalogue.last_generation(), found.ends, mark)
    return found


def _check_end(folder: str, rows: list[SegmentRow], last: int, ends: dict[int, int], mark: Mark) -> None:
    """A lost segment before the mark's is detected as a gap; a retired one was in databases."""
    if mark.generation > last:
        raise LogDamaged(
            f"{folder}/catalogue.db is older than the log: it knows {last} segments, acknowledged records "
            f"were in number {mark.generation}. Nothing was changed. Bring back a backup"
        )
    for row in rows:
        end = ends.get(row.generation, BLOCK_BYTES)
        if row.generation == mark.generation and end < mark.offset:
            raise LogLost(
                f"segment {folder}/{row.slot} lost acknowledged records: they end at byte {end} and had come "
                f"to byte {mark.offset}. Nothing was changed. Bring back a backup, or go on without them by "
                "`edgecli object accept-loss`"
            )


def fold(
    objects: dict[int, Recovered],
    names: dict[int, ObjectRef],
    catalogued: Callable[[int], ObjectRow | None],
    entry: Entry,
) -> None:
    """Apply one entry to the state. Raises LogDamaged when it does not fit."""
    if entry.kind == KIND_NAME:
        names[entry.number] = ObjectRef(*msgspec.msgpack.decode(entry.body))
        return
    if entry.kind == KIND_PIN:
        return
    object_ = objects.get(entry.number)
    if object_ is None:
        object_ = objects[entry.number] = _begin(names, catalogued, entry.number)
    if entry.position <= object_.base:
        return
    if entry.position != object_.head + 1:
        which = f"{object_.ref.class_name}/{object_.ref.id}"
        raise LogDamaged(f"object {which}: commit {entry.position} follows {object_.head}")
    object_.head = entry.position
    if entry.alarm is not UNCHANGED:
        assert entry.alarm is None or isinstance(entry.alarm, int)
        object_.alarm_us = entry.alarm
    if entry.kind == CommitKind.PAGES:
        _collect(object_, entry.body)
        object_.paged, object_.has_file = entry.position, True
        object_.tail.clear()
    elif entry.kind == CommitKind.RESTORE:
        object_.pending = msgspec.msgpack.decode(entry.body, type=Target | None)
    elif entry.kind == CommitKind.RESTORED:
        object_.session, object_.pending = msgspec.msgpack.decode(entry.body, type=Restored).session, None
        object_.tail.clear()
    elif entry.kind == CommitKind.KEYS:
        object_.tail.update(msgspec.msgpack.decode(entry.body, type=Tail))


def _begin(
    names: dict[int, ObjectRef], catalogued: Callable[[int], ObjectRow | None], number: int
) -> Recovered:
    row = catalogued(number)
    if row is not None:
        return of_row(row)
    if number not in names:
        raise LogDamaged(f"object number {number} has commits but no name")
    return Recovered(number, names[number], 0, 0, False, None)


def of_row(row: ObjectRow) -> Recovered:
    """An object from the catalogue alone, without records."""
    found = Recovered.of_row(row)
    found.head = found.base
    return found


def _collect(object_: Recovered, body: memoryview) -> None:
    for offset in range(0, len(body), FRAME_BYTES):
        page = int.from_bytes(body[offset : offset + 4], "big")
        object_.pages[page] = body[offset + FRAME_HEADER_BYTES : offset + FRAME_BYTES]
    # the last frame of a transaction says how many pages the database has after it
    last = len(body) - FRAME_BYTES
    object_.pages_total = int.from_bytes(body[last + 4 : last + 8], "big")


def redo(files: Files, path: str, recovered: Recovered) -> None:
    """Bring a database file to its last logged transaction, and its base with it. Not synced."""
    for suffix in ("-wal", "-shm", "-journal"):
        files.remove(path + suffix)
    if recovered.pages:
        _write_pages(files, path, recovered)
    recovered.base = max(recovered.base, recovered.paged if recovered.tail else recovered.head)
    recovered.pages = {}


def _write_pages(files: Files, path: str, recovered: Recovered) -> None:
    files.make_folder(path.rpartition("/")[0])
    file = files.open(path, create=True)
    try:
        for page in sorted(recovered.pages):
            if page <= recovered.pages_total:
                file.write(recovered.pages[page], (page - 1) * PAGE_BYTES)
        file.truncate(recovered.pages_total * PAGE_BYTES)
    finally:
        file.close()


def read_one(
    files: Files, folder: str, catalogue: Catalogue, rows: list[SegmentRow], number: int, ref: ObjectRef
) -> Recovered:
    """The state of one object in catalogue and log, for an open log. Raises LogDamaged."""
    objects: dict[int, Recovered] = {}
    names: dict[int, ObjectRef] = {}
    for _, record in read_segments(files, folder, catalogue.folder_id, rows):
        for entry in read_entries(record):
            if entry.number == number:
                fold(objects, names, catalogue.numbered, entry)
    if number in objects:
        return objects[number]
    row = catalogue.numbered(number)
    if row is None:
        return Recovered(number, ref, 0, 0, False, None)
    found = of_row(row)
    found.head = row.head
    return found
