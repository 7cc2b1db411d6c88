"""Upgrading a database of the log, `catalogue.db` or `history.db`, to this program's schema.

Owns  files older than the numbering of migrations: which ones they have had.
Not   the migrations themselves.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from edgestead.sqlite.migrate import CREATE_SCHEMA, HAS_SCHEMA, INSERT_APPLIED, applied, migrate
from edgestead.store.migrations import Doing, Migration, SchemaError, pending, quiet
from edgestead.store.objectlog import LogError
from edgestead.store.pages import FORMAT_VERSIONS

Unnumbered = Callable[[set[str]], int]
"""How many steps a file without numbers has been through, from the names of its tables and their columns
(`table`, `table.column`)."""


def bring_up(
    db: apsw.Connection,
    path: str,
    part: str,
    steps: Sequence[Migration],
    unnumbered: Unnumbered,
    doing: Doing = quiet,
) -> None:
    """Apply what is missing, after copying a non-empty file to one next to it.

    `doing` is called as long as that makes progress. Raises LogError, naming the file, when a newer program
    upgraded it or a migration fails; OSError or apsw.Error when the copy cannot be made. Then nothing was
    changed.
    """
    try:
        _number(db, part, steps, unnumbered)
        migrate(db, Path(path), {part: steps}, doing)
    except SchemaError as error:
        raise LogError(f"{path}: {error}") from error


def check(
    db: apsw.Connection, path: str, part: str, steps: Sequence[Migration], unnumbered: Unnumbered
) -> int:
    """How many migrations are missing. Changes nothing. Raises LogError when a newer program upgraded it."""
    if not db.execute(HAS_SCHEMA).fetchall():
        return len(steps) - unnumbered(_names(db))
    try:
        return len(pending({part: steps}, applied(db)))
    except SchemaError as error:
        raise LogError(f"{path}: {error}") from error


def to_read(
    db: apsw.Connection, path: str, part: str, steps: Sequence[Migration], unnumbered: Unnumbered
) -> apsw.Connection:
    """For an integrity check, which changes no file: the connection, or an older file upgraded in memory.

    Raises LogError when a newer program has been here, apsw.Error.
    """
    left = check(db, path, part, steps, unnumbered)
    if not left:
        return db
    image = bytearray(db.serialize("main") or b"")
    db.close()
    copy = apsw.Connection(":memory:")
    if image:
        image[FORMAT_VERSIONS] = b"\x01\x01"  # one in memory has no write-ahead log
        copy.deserialize("main", bytes(image))
    for step in steps[-left:]:
        copy.execute(step.sql).fetchall()
    return copy


def _number(db: apsw.Connection, part: str, steps: Sequence[Migration], unnumbered: Unnumbered) -> None:
    """Record the migrations of a file that has no record of them; apply all of them to a new file.

    In one transaction: a new file with only the first one applied would look like an older file.
    """
    if db.execute(HAS_SCHEMA).fetchall():
        return
    done = unnumbered(_names(db))
    with db:
        db.execute(CREATE_SCHEMA).fetchall()
        for step in steps if not done else steps[:done]:
            if not done:
                db.execute(step.sql).fetchall()
            db.execute(INSERT_APPLIED, (part, step.number, step.name, step.checksum)).fetchall()


def _names(db: apsw.Connection) -> set[str]:
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = [
        f"{table}.{row[1]}"
        for table in tables
        for row in db.execute(f"PRAGMA table_info({table})").fetchall()
    ]
    return {*tables, *columns}
