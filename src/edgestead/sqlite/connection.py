"""Opening a SQLite database with the platform's settings.

Owns  the settings of a connection, and which of SQLite's errors mean that storage itself failed.
Not   schemas, queries.
"""

import os
from pathlib import Path

import apsw

from edgestead.model.refusals import NO_SPACE_ERRNOS, DiskFull, Unavailable

BUSY_MS_MAX = 5_000  # for an operator's sqlite3 shell or backup that has locked the file
STATEMENTS_CACHED_MAX = 512  # prepared statements per connection
CACHE_KIB = 32_768  # pages kept per connection
PAGE_BYTES = 4_096
CHECKPOINT_PAGES = 4_000  # of the WAL, 16 MiB: a checkpoint every few thousand small commits
WAL_BYTES_KEPT_MAX = 64 << 20  # a WAL that a long reader made larger is cut back to this
SPARING_PAGES = 256  # of the WAL while the disk is nearly full: the rest of its space is freed

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

    A commit is durable when it returns: WAL with synchronous=FULL. Tests pass a `vfs` that simulates failures
    of the disk. Raises OSError, apsw.Error.
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
    let_journal_grow(db, True)
    _harden(db)
    return db


def let_journal_grow(db: apsw.Connection, grow: bool) -> None:
    """Set whether the WAL may use the space that makes commits cheapest, or has to stay short."""
    pragma(db, "wal_autocheckpoint", CHECKPOINT_PAGES if grow else SPARING_PAGES)
    pragma(db, "journal_size_limit", WAL_BYTES_KEPT_MAX if grow else SPARING_PAGES * PAGE_BYTES)


def open_reader(path: Path) -> apsw.Connection:
    """Open for reading only; the database must have been created by `open_writer`."""
    db = apsw.Connection(
        os.fspath(path), flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=STATEMENTS_CACHED_MAX
    )
    db.set_busy_timeout(BUSY_MS_MAX)
    _harden(db)
    return db


def open_examiner(path: Path) -> apsw.Connection:
    """Open for an integrity check; neither the database nor its journals are changed.

    Not as a reader: SQLite does not read CHECK constraints from a schema that it cannot write, and then an
    integrity check skips them (measured with 3.54.1; attaching to another database or `immutable` does not
    help). A file without write permission is opened as a reader nevertheless, and so is one with a rollback
    journal, which SQLite would otherwise play back. Raises apsw.Error.
    """
    if os.path.exists(f"{path}-journal"):
        return open_reader(path)
    db = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    pragma(db, "query_only", "ON")
    db.set_busy_timeout(BUSY_MS_MAX)
    _harden(db)
    return db


def pragma(db: apsw.Connection, name: str, value: str | int) -> None:
    db.execute(f"PRAGMA {name} = {value}").fetchall()  # drained: it may not have run otherwise


def unavailable(error: BaseException) -> Unavailable:
    """The error that a caller gets when storage failed; the cause is attached, for the log."""
    refusal = DiskFull() if is_full(error) else Unavailable()
    refusal.__cause__ = error
    return refusal


def is_full(error: BaseException) -> bool:
    """Whether the disk, or the user's quota on it, is full."""
    if isinstance(error, OSError):
        return error.errno in NO_SPACE_ERRNOS
    return isinstance(error, apsw.FullError)


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
    # This SQLite is built with STAT4: it would prepare a statement again whenever another value is bound to a
    # parameter that may affect the plan. A look-up by two joins took 25 µs of which 22 were that.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
