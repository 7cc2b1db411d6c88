"""Bringing a SQLite database to this program's schema.

Owns  the `schema` table, one transaction per migration, the backup before an upgrade.
Not   the scripts.

A crash at any moment leaves whole migrations only; the next start continues after them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from edgestead.sqlite.connection import pragma, sync_folder
from edgestead.store.migrations import Applied, Doing, Migration, MigrationFailed, Parts, pending, quiet

BACKUPS_KEPT = 3  # newest; one is a whole copy of the database
STEPS_TOLD = 10_000  # of SQLite's machine, between two calls of `doing`: a millisecond, without the disk

CREATE_SCHEMA = """CREATE TABLE IF NOT EXISTS schema (
  part text NOT NULL, number integer NOT NULL, name text NOT NULL, checksum text NOT NULL,
  PRIMARY KEY (part, number))"""
HAS_SCHEMA = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema'"
LIST_APPLIED = "SELECT part, number, checksum FROM schema"
INSERT_APPLIED = "INSERT INTO schema (part, number, name, checksum) VALUES (?, ?, ?, ?)"


def migrate(db: apsw.Connection, path: Path, parts: Parts, doing: Doing = quiet) -> Path | None:
    """Apply what is missing; returns the backup made before an upgrade, None when none was needed.

    The caller is the only writer (it has the folder's lock).
    Raises SchemaError and its children; OSError or apsw.Error when the backup cannot be made: then
    nothing was changed.
    """
    done = applied(db)
    steps = pending(parts, done)
    if not steps:
        return None
    with _telling(db, doing, f"copying {path.name} before its upgrade"):
        backup = _back_up(db, path, done) if done else None
    db.execute(CREATE_SCHEMA).fetchall()
    pragma(db, "foreign_keys", "OFF")  # rebuilding a table that others refer to; checked before each commit
    try:
        for part, step in steps:
            with _telling(db, doing, f"upgrading {path.name}: {part}/{step.number} ({step.name})"):
                _apply(db, part, step)
    finally:
        pragma(db, "foreign_keys", "ON")
    return backup


@contextmanager
def _telling(db: apsw.Connection, doing: Doing, words: str) -> Iterator[None]:
    """Call `doing` as long as statements make progress: one may take minutes with a large database."""

    def told() -> bool:
        doing(words)
        return False  # or the statement would be interrupted

    db.set_progress_handler(told, STEPS_TOLD)
    try:
        yield
    finally:
        db.set_progress_handler(None)


def applied(db: apsw.Connection) -> Applied:
    """The migrations that were applied to a database."""
    if db.execute(HAS_SCHEMA).fetchone() is None:
        return {}
    return {(part, number): checksum for part, number, checksum in db.execute(LIST_APPLIED)}


def _apply(db: apsw.Connection, part: str, step: Migration) -> None:
    try:
        with db:  # a transaction, undone by any exception
            db.execute(step.sql).fetchall()
            broken = db.execute("PRAGMA foreign_key_check").fetchall()
            if broken:
                raise MigrationFailed(
                    f"migration {part}/{step.number} ({step.name}) leaves rows of "
                    f"{broken[0][0]} that refer to nothing"
                )
            db.execute(INSERT_APPLIED, (part, step.number, step.name, step.checksum)).fetchall()
    except apsw.Error as error:
        raise MigrationFailed(f"migration {part}/{step.number} ({step.name}) failed: {error}") from error


def _back_up(db: apsw.Connection, path: Path, done: Applied) -> Path:
    """Copy the database next to itself, named after the schema it holds."""
    newest = {part: max(n for p, n in done if p == part) for part, _ in sorted(done)}
    state = "-".join(f"{part}{number}" for part, number in newest.items())
    backup = path.with_name(f"{path.name}.before-upgrade-{state}")
    partial = path.with_name(f"{path.name}.backup-partial")
    partial.unlink(missing_ok=True)
    # VACUUM INTO accepts an empty file, and one that exists already keeps these permissions.
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        db.execute("VACUUM INTO ?", (os.fspath(partial),)).fetchall()
        os.fsync(descriptor)
        os.rename(partial, backup)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    _forget_old_backups(path)
    sync_folder(path.parent)
    return backup


def _forget_old_backups(path: Path) -> None:
    backups = sorted(path.parent.glob(f"{path.name}.before-upgrade-*"), key=lambda b: b.stat().st_mtime_ns)
    for old in backups[:-BACKUPS_KEPT]:
        old.unlink()
