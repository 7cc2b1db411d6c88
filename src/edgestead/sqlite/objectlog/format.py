"""The bytes of a segment.

Owns  the layouts of segment header, record and commit entry, and their checksums.
Not   files.

    segment  header (one block of 4,096 bytes) · record · record · … · zeros
    record   magic · crc · payload length · sequence · time · number of entries · payload
    entry    object number · position · kind · alarm flag · alarm · body length · body

A record is one group: it is written and synced as a whole, and the next one is written only after that. So
any record of a later sequence proves that the ones before it were acknowledged. Its checksum starts from the
folder's identity and the segment's generation: old bytes of a recycled file, or of another folder, are never
taken for a record. All numbers are little-endian.

A record's time is that of its first commit. Commits of a later millisecond, appended while the group before
was being synced, follow an entry with their time (`KIND_TIME`, since version 2).
"""

import struct
import zlib
from collections.abc import Iterator
from mmap import mmap

import msgspec

from edgestead.store.objectlog import UNCHANGED, Alarm

BLOCK_BYTES = 4_096
SEGMENT_MAGIC = b"EDGESTLG"
RECORD_MAGIC = b"\xe5REC"
FORMAT_VERSION = 2  # 1 had no `KIND_TIME`
_VERSIONS = (1, 2)  # that can be read
FOLDER_ID_BYTES = 16

_HEADER = struct.Struct("<8sHxx16sQQI")  # magic, version, folder, generation, bytes, crc
_RECORD = struct.Struct("<4sIIQQI")  # magic, crc, length, sequence, time_us, entries
_COVERED = struct.Struct("<IQQI")  # the part of a record's header that its crc covers
_ENTRY = struct.Struct("<QQBBqI")  # object, position, kind, alarm flag, alarm_us, length

RECORD_HEADER_BYTES = _RECORD.size
ENTRY_HEADER_BYTES = _ENTRY.size

KIND_NAME = 0
"""An entry that says which object a number stands for; its body is msgpack `[class, id, name]`."""

KIND_PIN = 255
"""An entry that says that a position was handed out, and is to be kept. It takes no position itself."""

KIND_TIME = 254
"""An entry that says when the commits behind it were made, in the place of a position, in microseconds."""

_ALARM_UNCHANGED, _ALARM_NONE, _ALARM_SET = range(3)


class SegmentHeader(msgspec.Struct, frozen=True):
    folder_id: bytes
    generation: int
    bytes_total: int


class Record(msgspec.Struct, frozen=True):
    """One group as read. `payload` has its entries; `end` is the offset after it."""

    sequence: int
    time_us: int
    count: int
    payload: memoryview
    end: int


class Entry(msgspec.Struct, frozen=True):
    """One entry as read. `time_us` is when it was appended, to the millisecond."""

    number: int
    position: int
    kind: int
    alarm: Alarm
    body: memoryview
    time_us: int


def seed_of(folder_id: bytes, generation: int) -> int:
    """The start value of the checksums of one use of a segment."""
    return zlib.crc32(folder_id + generation.to_bytes(8, "little"))


def pack_header(header: SegmentHeader) -> bytes:
    """The header's block."""
    fields = (SEGMENT_MAGIC, FORMAT_VERSION, header.folder_id, header.generation, header.bytes_total)
    crc = zlib.crc32(_HEADER.pack(*fields, 0))
    return _HEADER.pack(*fields, crc).ljust(BLOCK_BYTES, b"\0")


def unpack_header(block: bytes) -> SegmentHeader | None:
    """The header in a block, or None when it is foreign or torn."""
    if len(block) < _HEADER.size:
        return None
    magic, version, folder_id, generation, bytes_total, crc = _HEADER.unpack_from(block)
    if magic != SEGMENT_MAGIC or version not in _VERSIONS:
        return None
    if crc != zlib.crc32(_HEADER.pack(magic, version, folder_id, generation, bytes_total, 0)):
        return None
    return SegmentHeader(folder_id, generation, bytes_total)


def pack_entry(number: int, position: int, kind: int, alarm: Alarm, length: int) -> bytes:
    """The header of one entry, to be followed by its body."""
    if alarm is UNCHANGED:
        return _ENTRY.pack(number, position, kind, _ALARM_UNCHANGED, 0, length)
    if alarm is None:
        return _ENTRY.pack(number, position, kind, _ALARM_NONE, 0, length)
    return _ENTRY.pack(number, position, kind, _ALARM_SET, alarm, length)


def pack_record(seed: int, sequence: int, time_us: int, count: int, payload: bytes) -> bytes:
    """One whole record."""
    covered = (len(payload), sequence, time_us, count)
    crc = zlib.crc32(payload, zlib.crc32(_COVERED.pack(*covered), seed))
    return _RECORD.pack(RECORD_MAGIC, crc, *covered) + payload


def read_record(data: memoryview, offset: int, seed: int) -> Record | None:
    """The record at an offset, or None when there is no whole one."""
    start = offset + RECORD_HEADER_BYTES
    if start > len(data):
        return None
    magic, crc, length, sequence, time_us, count = _RECORD.unpack_from(data, offset)
    if magic != RECORD_MAGIC or start + length > len(data):
        return None
    payload = data[start : start + length]
    if crc != zlib.crc32(payload, zlib.crc32(_COVERED.pack(length, sequence, time_us, count), seed)):
        return None
    return Record(sequence, time_us, count, payload, start + length)


def record_length(data: memoryview, offset: int) -> int:
    """The length that the record at an offset declares; that of a header when there is none, or it is cut
    off.
    """
    if offset + RECORD_HEADER_BYTES > len(data):
        return RECORD_HEADER_BYTES
    magic, _, length, *_ = _RECORD.unpack_from(data, offset)
    return RECORD_HEADER_BYTES + (length if magic == RECORD_MAGIC else 0)


def torn_record(data: memoryview, offset: int, sequence: int) -> tuple[int, int] | None:
    """(bytes, entries) of the record with that sequence whose beginning is at an offset; None without one."""
    if offset + RECORD_HEADER_BYTES > len(data):
        return None
    magic, _, length, found, _, count = _RECORD.unpack_from(data, offset)
    return (RECORD_HEADER_BYTES + length, count) if (magic, found) == (RECORD_MAGIC, sequence) else None


def read_entries(record: Record) -> Iterator[Entry]:
    """The entries of a record, in order, without those that only have a time."""
    offset, time_us = 0, record.time_us
    for _ in range(record.count):
        number, position, kind, flag, alarm_us, length = _ENTRY.unpack_from(record.payload, offset)
        offset += ENTRY_HEADER_BYTES
        if kind == KIND_TIME:
            time_us = position
            continue
        alarm: Alarm = UNCHANGED if flag == _ALARM_UNCHANGED else alarm_us if flag == _ALARM_SET else None
        yield Entry(number, position, kind, alarm, record.payload[offset : offset + length], time_us)
        offset += length


def later_record(data: bytes | mmap, offset: int, seed: int, end: int | None = None) -> int | None:
    """The offset of a whole record that begins somewhere behind a broken one, and before `end`, or None.

    There is none behind a torn last group: the next group was never written.
    """
    view = memoryview(data)
    end = len(data) if end is None else end
    while (offset := data.find(RECORD_MAGIC, offset, end)) >= 0:
        if read_record(view, offset, seed) is not None:
            return offset
        offset += 1
    return None
