"""Blocks that a database owns beyond what it uses, so that small commits need no free ones.

Owns  how many blocks these are, extending both files, and when the journal is written back.
Not   groups of writes (`writer`); the reserve of a data folder (`server.space`).

After each commit both files are allocated further than they are used:

    file        allocated beyond its use   so that
    database    DATABASE_AHEAD_BYTES       a checkpoint needs no free block, whatever was committed
    journal     JOURNAL_AHEAD_BYTES        the next commits need none: a checkpoint sends them to its start

On a disk without a free block deletions and revocations commit into these, and no other program can take
them. SQLite truncates the database to its pages after each checkpoint, rounded up to the connection's chunk
size; the chunk is therefore as large as the file is to be. The zeros behind the journal's last frame end it,
like a torn frame.

A transaction that needs more than what is allocated is refused before its commit. If it was committed, its
pages could not be written back, and the journal would grow until nothing could be committed.
"""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from edgestead.sqlite.connection import (
    CHECKPOINT_PAGES,
    PAGE_BYTES,
    SPARING_PAGES,
    WAL_BYTES_KEPT_MAX,
    let_journal_grow,
    pragma,
)

DATABASE_AHEAD_BYTES: Final = 2 << 20  # pages that deletions and revocations add: some thousand of them
JOURNAL_AHEAD_BYTES: Final = 4 << 20  # a group of writes changes up to a thousand pages
STEP_BYTES: Final = 1 << 20  # more than that at once, so that few commits extend a file
CHUNK_BYTES_MAX: Final = 1 << 30  # SQLite has it in 31 bits; larger files are several chunks
JOURNAL_HEADER_BYTES: Final = 32  # https://sqlite.org/fileformat2.html#walformat
FRAME_BYTES: Final = PAGE_BYTES + 24
SPARING_BYTES: Final = SPARING_PAGES * FRAME_BYTES + JOURNAL_AHEAD_BYTES + 2 * STEP_BYTES


class NoAhead:
    """For a database that allocates nothing in advance; SQLite decides when the journal is written back."""

    is_short = True

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def begin(self) -> None: ...

    def check(self) -> None: ...

    def keep(self) -> None: ...

    def let_journal_grow(self, grow: bool) -> None:
        let_journal_grow(self._db, grow)

    def close(self) -> None: ...


class Ahead(NoAhead):
    """Of one connection that writes. Used on its thread, except for `is_short`.

    Made as soon as the database is open, so that nothing is truncated that an earlier process allocated.
    Raises OSError, apsw.Error. Cost of a commit: 3 µs of processor time (busy machine).
    """

    is_short = True

    def __init__(self, db: apsw.Connection, path: Path) -> None:
        super().__init__(db)
        self._frames = 0  # in the journal, since it last began at its start
        self._frames_max = CHECKPOINT_PAGES
        self._used_bytes = self._count_used()
        self._allocated_bytes = path.stat().st_size
        self._chunk_bytes, _ = _chunks(max(self._allocated_bytes, PAGE_BYTES))
        self._set_chunk(self._chunk_bytes)
        self._journal = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC)  # SQLite has no locks on it
        self._journal_bytes = 0
        db.set_wal_hook(self._note)

    def begin(self) -> None:
        """Before the first write. What is in the journal may fill it to its end."""
        self._used_bytes = self._count_used()
        self._check_in()
        self.keep()

    def check(self) -> None:
        """Before the commit. Raises apsw.FullError when the transaction needs blocks that do not exist."""
        used_bytes = self._count_used()
        if used_bytes > self._allocated_bytes and not self._extend_database(used_bytes):
            raise apsw.FullError("database or disk is full")
        self._used_bytes = used_bytes

    def keep(self) -> None:
        """After the commit: allocate again what it used, as far as the disk has blocks. Never raises."""
        if self._frames >= self._frames_max:
            self._check_in()
        if not self._extend_journal():
            self._check_in()
            self._extend_journal()
        if self._allocated_bytes < self._used_bytes + DATABASE_AHEAD_BYTES:
            self._extend_database(self._used_bytes)
        self.is_short = (
            self._allocated_bytes < self._used_bytes + DATABASE_AHEAD_BYTES // 2
            or self._journal_bytes < self._position() + JOURNAL_AHEAD_BYTES // 2
        )

    def let_journal_grow(self, grow: bool) -> None:
        self._frames_max = CHECKPOINT_PAGES if grow else SPARING_PAGES
        pragma(self._db, "journal_size_limit", WAL_BYTES_KEPT_MAX if grow else SPARING_BYTES)

    def close(self) -> None:
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def _note(self, db: apsw.Connection, name: str, frames: int) -> int:
        self._frames = frames
        return apsw.SQLITE_OK

    def _count_used(self) -> int:
        pages: int = self._db.execute("PRAGMA page_count").get
        return pages * PAGE_BYTES

    def _position(self) -> int:
        return JOURNAL_HEADER_BYTES + self._frames * FRAME_BYTES

    def _check_in(self) -> None:
        """Write the journal back. The next commit begins at its start, unless a reader still needs it.

        Errors are ignored, as SQLite ignores its own: the next commit tries again.
        """
        with suppress(apsw.Error):
            frames, written = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if frames == written:
                self._frames = 0

    def _extend_journal(self) -> bool:
        """False when the disk has too few blocks."""
        needed = self._position() + JOURNAL_AHEAD_BYTES
        try:
            self._journal_bytes = os.fstat(self._journal).st_size
            if self._journal_bytes < needed:
                missing = needed + STEP_BYTES - self._journal_bytes
                os.posix_fallocate(self._journal, self._journal_bytes, missing)
                self._journal_bytes += missing
        except OSError:
            return False
        return True

    def _extend_database(self, used_bytes: int) -> bool:
        """False when the disk has too few blocks. The chunk is never larger than what is allocated, or
        SQLite's truncation would lengthen the file without blocks.
        """
        chunk, chunks = _chunks(used_bytes + DATABASE_AHEAD_BYTES + STEP_BYTES)
        try:
            self._set_chunk(chunk)
            hint = ctypes.c_int64(chunk * chunks)
            self._db.file_control("main", apsw.SQLITE_FCNTL_SIZE_HINT, ctypes.addressof(hint))
        except apsw.Error:
            self._set_chunk(self._chunk_bytes)
            return False
        self._chunk_bytes, self._allocated_bytes = chunk, chunk * chunks
        return True

    def _set_chunk(self, chunk: int) -> None:
        number = ctypes.c_int(chunk)
        self._db.file_control("main", apsw.SQLITE_FCNTL_CHUNK_SIZE, ctypes.addressof(number))


def _chunks(length: int) -> tuple[int, int]:
    """The size of a chunk, in whole pages, and how many of them are at least `length` bytes."""
    chunks = -(-length // CHUNK_BYTES_MAX)
    return -(-length // (chunks * PAGE_BYTES)) * PAGE_BYTES, chunks
