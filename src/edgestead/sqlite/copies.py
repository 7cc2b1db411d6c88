"""Copies of databases that somebody is writing, of files, and whether a database is whole.

Owns  the copy of a database as it was at one moment; how a file is copied; SQLite's own examination.
Not   what the rows mean; which files there are beside a database.
"""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from edgestead.sqlite.connection import open_examiner, open_reader, pragma, sync_folder

CHUNK_BYTES = 1 << 20  # of a file, held at a time
HOLE_BYTES = 1 << 16  # zeros that take no room in a copy: shorter ones are not worth an extent of their own
STEP_PAGES = 1_024  # copied between two looks at the progress
_ZEROS = bytes(HOLE_BYTES)
FAULTS_MAX = 20  # told of one database

Advance = Callable[[int], None]
"""Told the bytes that were copied since the last call."""


def copy_database(source: Path, target: Path, advance: Advance) -> None:
    """Copy a database as it is now, while others write it; durable when it returns.

    It reads in one transaction, so no writer waits for it and no later commit is in it. `target` must not
    exist. Raises apsw.Error, OSError.
    """
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(open_reader(source)) as theirs, closing(apsw.Connection(os.fspath(target))) as ours:
        page_bytes = int(str(theirs.pragma("page_size")))
        # The transaction keeps every step at the same moment: without it a commit between two would start
        # the copy anew, for ever under load.
        theirs.execute("BEGIN")
        theirs.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        pragma(ours, "synchronous", "FULL")
        with ours.backup("main", theirs, "main") as backup:
            pages = 0
            while not backup.done:
                backup.step(STEP_PAGES)
                before, pages = pages, backup.page_count - backup.remaining
                advance((pages - before) * page_bytes)
        pragma(ours, "journal_mode", "DELETE")  # one file, and no -wal that somebody forgets
    sync_folder(target.parent)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file into a new one (0600), durable when it returns; the caller makes the name durable.

    Where it has zeros the copy has holes: what a log made ready ahead of time takes no room in a backup.
    Raises OSError; FileNotFoundError for a source that is not there, with no target made.
    """
    with source.open("rb", buffering=0) as theirs, open(target, "xb", 0, opener=_private) as ours:
        length = 0
        while chunk := theirs.read(CHUNK_BYTES):
            for start in range(0, len(chunk), HOLE_BYTES):
                piece = chunk[start : start + HOLE_BYTES]
                if piece != _ZEROS[: len(piece)]:
                    _write_all(ours.fileno(), memoryview(piece), length + start)
            length += len(chunk)
        ours.truncate(length)
        os.fsync(ours.fileno())


def _write_all(descriptor: int, piece: memoryview, offset: int) -> None:
    while piece:
        done = os.pwrite(descriptor, piece, offset)
        piece, offset = piece[done:], offset + done


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def faults(path: Path) -> list[str]:
    """What SQLite finds wrong with a database that anybody may have open; at most FAULTS_MAX."""
    try:
        db = open_examiner(path)
    except (apsw.Error, OSError) as error:
        return [f"it cannot be opened: {error}"]
    with closing(db):
        return faults_of(db)


def faults_of(db: apsw.Connection) -> list[str]:
    """What SQLite finds wrong with pages, indexes, constraints and references; at most FAULTS_MAX."""
    try:
        found = [str(text) for (text,) in db.execute(f"PRAGMA integrity_check({FAULTS_MAX})") if text != "ok"]
        found += [
            f"row {row} of {table} refers to a row of {parent} that is not there"
            for table, row, parent, _ in db.execute("PRAGMA foreign_key_check")
        ]
    except apsw.Error as error:
        found = [str(error)]
    return found[:FAULTS_MAX]
