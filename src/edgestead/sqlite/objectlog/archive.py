"""Copying every durable record of the log to its object's history.

Owns  its progress, the blocks it creates, when an object gets a snapshot.
Not   when it runs (`followers`); leaving commits out (`thinning`).

Runs on the upkeep thread, a few MiB to a transaction, and pauses between small pieces of work, so that the
event loop's thread does not wait for it.
"""

import contextlib
import time
from collections.abc import Callable, Iterator

import msgspec

from edgestead.sqlite.objectlog.catalogue import SegmentRow
from edgestead.sqlite.objectlog.format import (
    BLOCK_BYTES,
    KIND_NAME,
    KIND_PIN,
    RECORD_HEADER_BYTES,
    Record,
    read_entries,
    read_record,
    record_length,
    seed_of,
)
from edgestead.sqlite.objectlog.history import Cursor, History
from edgestead.store.files import File, Files
from edgestead.store.history.blocks import (
    PAGE_KINDS,
    Images,
    PastEntry,
    pack_block,
    pack_frames,
    page_count,
)
from edgestead.store.history.reader import PastReader
from edgestead.store.history.rows import BlockRow
from edgestead.store.objectlog import CommitKind, Restored, Unknown

BATCH_BYTES = 4 * 1024 * 1024  # of the log, for one transaction
SMALL_BATCH_BYTES = 128 * 1024  # on a full disk, in the reserved space
BLOCK_RAW_BYTES = 4 * 1024 * 1024  # of one block before compression
WINDOW_BYTES = 1024 * 1024  # read from a segment at once
IMAGES_MAX = 4_096  # page images in memory to compute differences from
PAUSE_WORK = 128  # between two pauses: entries of keys, or an eighth as many of pages
PAGES_WORK = 8
PAUSE_SECONDS = 0.000_05


class Durable(msgspec.Struct, frozen=True):
    """A live segment, and up to where its records are durable."""

    row: SegmentRow
    upto: int
    sealed: bool


class Archive:
    """`life` gives the generation of bookmarks for records in a segment of the log."""

    def __init__(
        self,
        history: History,
        files: Files,
        folder: str,
        folder_id: bytes,
        life: Callable[[int], int],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._history, self._files, self._folder, self._folder_id = history, files, folder, folder_id
        self._past = PastReader(history)
        self._life = life
        self._generation = 0
        self._pause = pause
        self._images: dict[int, Images] = {}
        self._image_count = self._worked = 0
        self._sessions: dict[int, int] = {}

    def follow(self, segments: list[Durable], batch_bytes: int = BATCH_BYTES) -> Cursor:
        """Copy everything durable that history does not have yet. Raises OSError, apsw.Error: try again."""
        cursor = self._history.cursor()
        for segment in segments:
            if segment.row.generation < cursor.segment:
                continue
            begin = cursor.offset if segment.row.generation == cursor.segment else BLOCK_BYTES
            cursor = self._follow_one(segment, begin, cursor, batch_bytes)
            if segment.sealed:
                cursor = self.move_on(segment.row.generation + 1)
        return cursor

    def move_on(self, segment: int) -> Cursor:
        """There is nothing more before a segment."""
        cursor = Cursor(segment, BLOCK_BYTES, self._history.cursor().time_us)
        self._history.set_cursor(cursor)
        return cursor

    def _follow_one(self, segment: Durable, offset: int, cursor: Cursor, batch_bytes: int) -> Cursor:
        file = self._files.open(f"{self._folder}/{segment.row.slot}")
        try:
            batch: list[Record] = []
            size = 0
            for record in self._records(file, segment, offset):
                batch.append(record)
                size += len(record.payload)
                if size >= batch_bytes:
                    cursor = self._keep(batch, segment.row.generation)
                    batch, size = [], 0
            if batch:
                cursor = self._keep(batch, segment.row.generation)
        finally:
            file.close()
        return cursor

    def _records(self, file: File, segment: Durable, offset: int) -> Iterator[Record]:
        """The records of a segment from an offset on; `end` counts from the segment's beginning."""
        seed = seed_of(self._folder_id, segment.row.generation)
        window, start = memoryview(b""), offset
        while offset + RECORD_HEADER_BYTES <= segment.upto:
            record = read_record(window, offset - start, seed)
            if record is None:
                length = min(record_length(window, offset - start), segment.upto - offset)
                window, start = memoryview(file.read(max(WINDOW_BYTES, length), offset)), offset
                length = min(record_length(window, 0), segment.upto - offset)
                if length > len(window):
                    window = memoryview(file.read(length, offset))
                record = read_record(window, 0, seed)
                if record is None:
                    return
            offset = start + record.end
            yield msgspec.structs.replace(record, end=offset)

    # one transaction

    def _keep(self, batch: list[Record], segment: int) -> Cursor:
        cursor = Cursor(segment, batch[-1].end, batch[-1].time_us)
        self._generation = self._life(segment)
        try:
            with self._history:
                for number, entries in self._by_object(batch).items():
                    self._add(number, entries)
                self._history.set_cursor(cursor)
        except BaseException:
            self._forget_images()  # they may be ahead of what is kept
            raise
        return cursor

    def _by_object(self, batch: list[Record]) -> dict[int, list[PastEntry]]:
        found: dict[int, list[PastEntry]] = {}
        for record in batch:
            for entry in read_entries(record):
                self._work(1)
                if entry.kind == KIND_NAME:
                    continue
                if entry.kind == KIND_PIN:
                    self._history.pin(entry.number, entry.position, entry.time_us)
                    continue
                made = PastEntry(entry.position, entry.time_us, entry.kind, entry.alarm, entry.body)
                found.setdefault(entry.number, []).append(made)
        return found

    def _work(self, amount: int) -> None:
        """Count work done and pause occasionally, so that the event loop's thread can run."""
        self._worked += amount
        if self._worked >= PAUSE_WORK:
            self._worked = 0
            self._pause(PAUSE_SECONDS)

    def _add(self, number: int, entries: list[PastEntry]) -> None:
        session = self._session(number)
        block: list[PastEntry] = []
        pages = size = 0
        for entry in entries:
            if entry.kind == CommitKind.RESTORED or size >= BLOCK_RAW_BYTES:
                self._add_block(number, session, block, pages)
                block, pages, size = [], 0, 0
            if entry.kind == CommitKind.RESTORED:
                session = self._sessions[number] = msgspec.msgpack.decode(entry.body, type=Restored).session
            if entry.kind in PAGE_KINDS:
                images = self._images.setdefault(number, Images())
                before = len(images.pages)
                entry.body = pack_frames(entry.body, images)
                self._image_count += len(images.pages) - before
                pages += page_count(entry.body)
                self._work(PAGES_WORK)
            block.append(entry)
            size += len(entry.body) + 32
        self._add_block(number, session, block, pages)
        if self._image_count > IMAGES_MAX:
            self._forget_images()

    def _session(self, number: int) -> int:
        session = self._sessions.get(number)
        if session is None:
            session = self._sessions[number] = self._past.last_session(number)
        return session

    def _add_block(self, number: int, session: int, entries: list[PastEntry], pages: int) -> None:
        if not entries:
            return
        body, raw = pack_block(entries)
        first, last = entries[0], entries[-1]
        row = BlockRow(
            number,
            first.position,
            last.position,
            first.time_us,
            last.time_us,
            self._generation,
            session,
            False,
            pages,
            raw,
            len(body),
        )
        self._history.add_block(row, body)
        if self._past.reading_costs_too_much(number, last.position):
            with contextlib.suppress(Unknown):  # an object older than its history
                self._past.make_snapshot(number, last.position)

    def _forget_images(self) -> None:
        self._images.clear()
        self._sessions.clear()
        self._image_count = 0
