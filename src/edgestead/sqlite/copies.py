"""Copies of databases in use and of files, and SQLite's integrity check.

Owns  the copy of a database as of one moment; how a file is copied; SQLite's integrity check.
Not   what the rows mean; which other files belong to a database.
"""

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from edgestead.sqlite.connection import open_examiner, open_reader, pragma, sync_folder

CHUNK_BYTES = 1 << 20  # of a file, in memory at a time
HOLE_BYTES = 1 << 16  # zeros that become a hole in a copy: a shorter hole is not worth a separate extent
STEP_PAGES = 1_024  # copied between two reports of the progress
_ZEROS = bytes(HOLE_BYTES)
FAULTS_MAX = 20  # reported of one database

Advance = Callable[[int], None]
"""Told the bytes that were copied since the last call."""


def copy_database(source: Path, target: Path, advance: Advance) -> None:
    """Copy a database as it is now, while others write it; durable when it returns.

    It reads in one transaction, so no writer waits for it and it contains no later commit. `target` must not
    exist. Raises apsw.Error, OSError.
    """
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(open_reader(source)) as theirs, closing(apsw.Connection(os.fspath(target))) as ours:
        page_bytes = int(str(theirs.pragma("page_size")))
        # The transaction gives every step the same snapshot: without it a commit between two steps would
        # restart the copy, which would never end under load.
        theirs.execute("BEGIN")
        theirs.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        pragma(ours, "synchronous", "FULL")
        with ours.backup("main", theirs, "main") as backup:
            pages = 0
            while not backup.done:
                backup.step(STEP_PAGES)
                before, pages = pages, backup.page_count - backup.remaining
                advance((pages - before) * page_bytes)
        pragma(ours, "journal_mode", "DELETE")  # one file, without a -wal that could be forgotten
    sync_folder(target.parent)


def copy_file(source: Path, target: Path, upto: int | None = None) -> None:
    """Copy a file into a new one (0600), durable when it returns; the caller makes the name durable.

    The copy has the file's length. From byte `upto` on it has zeros: what is appended while the file is read
    would be in the copy in parts. Zeros become holes: the preallocated part of a log takes no space.
    Raises OSError; FileNotFoundError for a missing source, without creating the target.
    """
    with source.open("rb", buffering=0) as theirs, open(target, "xb", 0, opener=_private) as ours:
        end = sys.maxsize if upto is None else upto
        offset = 0
        while chunk := theirs.read(min(CHUNK_BYTES, end - offset)):
            for start in range(0, len(chunk), HOLE_BYTES):
                piece = chunk[start : start + HOLE_BYTES]
                if piece != _ZEROS[: len(piece)]:
                    _write_all(ours.fileno(), memoryview(piece), offset + start)
            offset += len(chunk)
        ours.truncate(offset if upto is None else os.fstat(theirs.fileno()).st_size)
        os.fsync(ours.fileno())


def _write_all(descriptor: int, piece: memoryview, offset: int) -> None:
    while piece:
        done = os.pwrite(descriptor, piece, offset)
        piece, offset = piece[done:], offset + done


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def faults(path: Path) -> list[str]:
    """The faults that SQLite finds in a database that may be in use; at most FAULTS_MAX."""
    try:
        db = open_examiner(path)
    except (apsw.Error, OSError) as error:
        return [f"it cannot be opened: {error}"]
    with closing(db):
        return faults_of(db)


def faults_of(db: apsw.Connection) -> list[str]:
    """The faults that SQLite finds in pages, indexes, constraints and references; at most FAULTS_MAX."""
    try:
        found = [str(text) for (text,) in db.execute(f"PRAGMA integrity_check({FAULTS_MAX})") if text != "ok"]
        found += [
            f"row {row} of {table} refers to a row of {parent} that is not there"
            for table, row, parent, _ in db.execute("PRAGMA foreign_key_check")
        ]
    except apsw.Error as error:
        found = [str(error)]
    return found[:FAULTS_MAX]
