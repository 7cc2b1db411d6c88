"""From what a disk holds to what every object is.

Owns  reading all live segments in order, folding their entries per object, redoing pages.
Asks  `segments` for records, `catalogue` for where each object stood, `files` for databases.
Tells `local`, which carries on from the result.
Not   serving; writing to segments.

The rule is one: a database file is its catalogued base, plus the newest image of every page logged since,
cut to the size of the last logged transaction; key records logged after that are its tail. A `-wal` file is
never read: it may hold commits that were never acknowledged. Redoing twice gives the same file, so recovery
may itself be cut off at any moment.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from edgestead.store.objectlog import (
    FRAME_HEADER_BYTES,
    PAGE_BYTES,
    UNCHANGED,
    CommitKind,
    LogDamaged,
    ObjectRef,
    Restored,
    Target,
)
from edgestead.store.sqlite.objectlog.catalogue import Catalogue, ObjectRow, SegmentRow, Tail, Tracked
from edgestead.store.sqlite.objectlog.files import Files
from edgestead.store.sqlite.objectlog.format import (
    KIND_NAME,
    KIND_PIN,
    Entry,
    Record,
    read_entries,
    seed_of,
)
from edgestead.store.sqlite.objectlog.segments import read_whole, records

FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES


class Recovered(Tracked):
    """One object as the log's records leave it.

    `pages` are the newest images since the base, `paged` the position of the last commit that brought any.
    """

    pages: dict[int, memoryview] = msgspec.field(default_factory=dict)
    pages_total: int = 0
    paged: int = 0


class Found(msgspec.Struct):
    """Everything that live segments hold. `oldest` is each object's first generation with records."""

    objects: dict[int, Recovered]
    oldest: dict[int, int]
    unused: list[SegmentRow]
    used: list[SegmentRow]
    sequence: int
    time_us: int


def read_segments(
    files: Files, folder: str, folder_id: bytes, rows: list[SegmentRow]
) -> Iterator[tuple[SegmentRow, Record]]:
    """Every record of the live segments, in order.

    Raises LogDamaged, naming the segment, when a record that must have been acknowledged cannot be read.
    """
    last: int | None = None
    silent: SegmentRow | None = None
    for row in rows:
        path = f"{folder}/{row.slot}"
        count = 0
        for record in records(
            read_whole(files, folder, folder_id, row), path, seed_of(folder_id, row.generation)
        ):
            if silent is not None:
                raise LogDamaged(f"segment {folder}/{silent.slot} lost its records; later ones are whole")
            if last is not None and record.sequence != last + 1:
                raise LogDamaged(
                    f"records {last + 1} to {record.sequence - 1} before segment {path} are gone"
                )
            last = record.sequence
            count += 1
            yield row, record
        if not count:
            silent = row


def recover(files: Files, folder: str, catalogue: Catalogue) -> Found:
    """Fold every live record. Raises LogDamaged; changes nothing."""
    rows = catalogue.segments()
    found = Found({}, {}, [], [], sequence=0, time_us=0)
    names: dict[int, ObjectRef] = {}
    for row, record in read_segments(files, folder, catalogue.folder_id, rows):
        found.sequence, found.time_us = record.sequence, max(found.time_us, record.time_us)
        if not found.used or found.used[-1] is not row:
            found.used.append(row)
        for entry in read_entries(record):
            fold(found.objects, names, catalogue.numbered, entry)
            found.oldest.setdefault(entry.number, row.generation)
    found.unused = [row for row in rows if row not in found.used]
    return found


def fold(
    objects: dict[int, Recovered],
    names: dict[int, ObjectRef],
    catalogued: Callable[[int], ObjectRow | None],
    entry: Entry,
) -> None:
    """Apply one entry to what is known. Raises LogDamaged when it does not follow from that."""
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
    """An object as the catalogue has it; its base is all there is."""
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


def select(stream: Iterable[tuple[SegmentRow, Record]], number: int) -> Iterator[tuple[int, Entry]]:
    """(time, entry) of one object's entries."""
    for _, record in stream:
        for entry in read_entries(record):
            if entry.number == number:
                yield record.time_us, entry
