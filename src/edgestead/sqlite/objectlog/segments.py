"""Segments: the files of the log's records.

Owns  how a segment's file is created, reused, opened and read as a whole.
Not   which segments exist (`catalogue`); when one is dropped (`upkeep`).
"""

import mmap
from collections.abc import Iterator

import msgspec

from edgestead.sqlite.objectlog.catalogue import SegmentRow
from edgestead.sqlite.objectlog.format import (
    BLOCK_BYTES,
    Record,
    SegmentHeader,
    later_record,
    pack_header,
    read_record,
    seed_of,
    unpack_header,
)
from edgestead.store.files import File, Files
from edgestead.store.objectlog import LogDamaged

FILL_BYTES = 1024 * 1024
_ZEROS = bytes(FILL_BYTES)


class Segment(msgspec.Struct):
    """A live segment, open. `offset` is where its next record begins."""

    row: SegmentRow
    file: File
    seed: int
    offset: int = BLOCK_BYTES

    @property
    def generation(self) -> int:
        return self.row.generation

    def fits(self, length: int) -> bool:
        return self.offset + length <= self.row.bytes_total


def prepare(files: Files, folder: str, folder_id: bytes, row: SegmentRow) -> Segment:
    """Prepare a slot's file for a generation: full length, zeros where it is new, header, synced.

    Zeros are written rather than allocated: an unwritten extent costs a journal commit at each first sync.
    Raises OSError; a new file is then removed.
    """
    path = f"{folder}/{row.slot}"
    fresh = not files.exists(path)
    file = files.open(path, create=True)
    try:
        _fill(file, row.bytes_total)
        file.write(pack_header(SegmentHeader(folder_id, row.generation, row.bytes_total)), 0)
        file.sync()
        if fresh:
            files.sync_folder(folder)
    except OSError:
        file.close()
        if fresh:
            files.remove(path)
        raise
    return Segment(row, file, seed_of(folder_id, row.generation))


def _fill(file: File, bytes_total: int) -> None:
    for offset in range(file.size(), bytes_total, FILL_BYTES):
        file.write(memoryview(_ZEROS)[: min(FILL_BYTES, bytes_total - offset)], offset)


def try_room(files: Files, folder: str) -> None:
    """Raises OSError when a megabyte cannot be written durably; leaves nothing behind."""
    path = f"{folder}/room"
    file = files.open(path, create=True)
    try:
        _fill(file, FILL_BYTES)
        file.sync()
    finally:
        file.close()
        files.remove(path)


def read_whole(files: Files, folder: str, folder_id: bytes, row: SegmentRow) -> tuple[mmap.mmap, int]:
    """A live segment's bytes, and where those end that are not zeros.

    Most of a segment is zeros until it is full: they are not copied, and take no memory. Raises LogDamaged
    when it is missing or it has another segment's header.
    """
    path = f"{folder}/{row.slot}"
    if not files.exists(path):
        raise LogDamaged(f"segment {path} (generation {row.generation}) is missing")
    file = files.open(path)
    data, end = mmap.mmap(-1, row.bytes_total), 0
    try:
        for offset in range(0, row.bytes_total, FILL_BYTES):
            part = file.read(min(FILL_BYTES, row.bytes_total - offset), offset)
            if part != _ZEROS and any(part):
                end = offset + len(part)
                data[offset:end] = part
    finally:
        file.close()
    if unpack_header(data[:BLOCK_BYTES]) != SegmentHeader(folder_id, row.generation, row.bytes_total):
        raise LogDamaged(f"segment {path} has no valid header of generation {row.generation}")
    return data, end


def records(data: mmap.mmap, end: int, path: str, seed: int) -> Iterator[Record]:
    """The records of a segment, up to its end or its torn tail. `end`: behind it are zeros.

    Raises LogDamaged when a whole record lies behind a broken one: the broken one had been acknowledged.
    """
    view = memoryview(data)
    offset = BLOCK_BYTES
    while (record := read_record(view, offset, seed)) is not None:
        yield record
        offset = record.end
    if (later := later_record(data, offset, seed, end)) is not None:
        raise LogDamaged(
            f"segment {path} has a damaged record at byte {offset}, before a whole one at {later}"
        )
