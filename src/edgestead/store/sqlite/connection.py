"""Opening a SQLite database the way the platform wants it.

Owns  the settings of a connection, and which of SQLite's errors mean that storage itself failed.
Asks  apsw: its SQLite is current, the standard library's may be years old.
Tells `store.sqlite`'s other modules.
Not   schemas, queries.
"""

import os
from pathlib import Path

import apsw

from edgestead.model.errors import Unavailable

BUSY_MS_MAX = 5_000  # for an operator's sqlite3 shell or backup that holds the file
STATEMENTS_CACHED_MAX = 512  # prepared statements per connection
CACHE_KIB = 32_768  # pages kept per connection
CHECKPOINT_PAGES = 4_000  # of the WAL, 16 MiB: a checkpoint every few thousand small commits
WAL_BYTES_KEPT_MAX = 64 << 20  # a WAL that a long reader made larger is cut back to this

# Not the caller's fault and not about the statement: try again, or look at the disk.
STORAGE_ERRORS: tuple[type[apsw.Error], ...] = (
    apsw.FullError,
    apsw.IOError,
    apsw.NoMemError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.ProtocolError,
    apsw.ConnectionClosedError,
)


def open_writer(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    """Open for reading and writing; make the file (0600) and its folder entry durable when it is new.

    A commit is durable when it returns: WAL with synchronous=FULL. `vfs` is a seam for tests that let
    the disk fail. Raises OSError, apsw.Error.
    """
    _create(path)
    db = apsw.Connection(
        os.fspath(path),
        flags=apsw.SQLITE_OPEN_READWRITE,
        vfs=vfs,
        statementcachesize=STATEMENTS_CACHED_MAX,
    )
    db.set_busy_timeout(BUSY_MS_MAX)
    pragma(db, "journal_mode", "WAL")
    pragma(db, "synchronous", "FULL")
    pragma(db, "foreign_keys", "ON")
    pragma(db, "wal_autocheckpoint", CHECKPOINT_PAGES)
    pragma(db, "journal_size_limit", WAL_BYTES_KEPT_MAX)
    _harden(db)
    return db


def open_reader(path: Path) -> apsw.Connection:
    """Open for reading only; the database must have been made by `open_writer`."""
    db = apsw.Connection(
        os.fspath(path), flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=STATEMENTS_CACHED_MAX
    )
    db.set_busy_timeout(BUSY_MS_MAX)
    _harden(db)
    return db


def pragma(db: apsw.Connection, name: str, value: str | int) -> None:
    db.execute(f"PRAGMA {name} = {value}").fetchall()  # a cursor that is not drained may not have run


def unavailable(error: BaseException) -> Unavailable:
    """What a caller hears when storage failed; the cause stays attached for the log."""
    refusal = Unavailable()
    refusal.__cause__ = error
    return refusal


def sync_folder(folder: Path) -> None:
    """Make a new or renamed entry of the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _create(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    sync_folder(path.parent)


def _harden(db: apsw.Connection) -> None:
    pragma(db, "cache_size", -CACHE_KIB)
    for option in (apsw.SQLITE_DBCONFIG_DQS_DML, apsw.SQLITE_DBCONFIG_DQS_DDL):
        db.config(option, 0)  # "x" is a name, as in PostgreSQL, never a string
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
