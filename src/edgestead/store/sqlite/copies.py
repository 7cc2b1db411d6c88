"""Copies of databases that somebody is writing, and whether a database is whole.

Owns  the copy of a database as it was at one moment; SQLite's own examination.
Asks  apsw.
Tells `server.backup` and `server.verifying`.
Not   what the rows mean; files beside a database.
"""

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from edgestead.store.sqlite.connection import open_reader, pragma, sync_folder

STEP_PAGES = 1_024  # copied between two looks at the progress
FAULTS_MAX = 20  # told of one database

Advance = Callable[[int], None]
"""Told the bytes that were copied since the last call."""


def copy_database(source: Path, target: Path, advance: Advance) -> None:
    """Copy a database as it is now, while others write it; durable when it returns.

    It reads in one transaction, so no writer waits for it and no later commit is in it. `target` must not
    exist. Raises apsw.Error, OSError.
    """
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    theirs, ours = open_reader(source), apsw.Connection(os.fspath(target))
    try:
        page_bytes = int(str(theirs.pragma("page_size")))
        # The transaction keeps every step at the same moment: without it a commit between two would start
        # the copy anew, for ever under load.
        theirs.execute("BEGIN")
        theirs.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        pragma(ours, "synchronous", "FULL")
        with ours.backup("main", theirs, "main") as backup:
            while not backup.done:
                left = backup.remaining or backup.page_count
                backup.step(STEP_PAGES)
                advance(max(0, left - backup.remaining) * page_bytes)
        pragma(ours, "journal_mode", "DELETE")  # one file, and no -wal that somebody forgets
    finally:
        ours.close()
        theirs.close()
    sync_folder(target.parent)


def faults(path: Path) -> list[str]:
    """What SQLite finds wrong with a database that anybody may have open; at most FAULTS_MAX."""
    try:
        db = open_reader(path)
    except (apsw.Error, OSError) as error:
        return [f"it cannot be opened: {error}"]
    try:
        return faults_of(db)
    finally:
        db.close()


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
