"""The history of every object of a folder, in one SQLite database: `log/history.db`.

Owns  the tables: blocks of commits, snapshots, pins, the log's cursor; their size in bytes.
Not   what is in a block (`blocks`); objects' names (`catalogue`).

A block holds commits of one session of one object that follow one another. A snapshot is the whole state
after one commit, so that reading need not begin at the first. `generation` is that of bookmarks when the
commits were made.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from typing import Any

import apsw
import msgspec

from edgestead.sqlite.objectlog import schema
from edgestead.store.history.blocks import squeeze, unsqueeze
from edgestead.store.history.rows import BlockRow, SnapshotRow
from edgestead.store.migrations import Doing, Migration, quiet

_HISTORY = """
CREATE TABLE cursor (segment INTEGER NOT NULL, offset INTEGER NOT NULL, time_us INTEGER NOT NULL);
INSERT INTO cursor VALUES (0, 0, 0);
CREATE TABLE blocks (
  number INTEGER NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL,
  first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,
  generation INTEGER NOT NULL, session INTEGER NOT NULL,
  thinned INTEGER NOT NULL, pages INTEGER NOT NULL, raw INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX blocks_order ON blocks (number, last);
CREATE INDEX blocks_age ON blocks (last_us) WHERE NOT thinned;
CREATE TABLE snapshots (
  number INTEGER NOT NULL, position INTEGER NOT NULL, time_us INTEGER NOT NULL,
  generation INTEGER NOT NULL, session INTEGER NOT NULL,
  total INTEGER NOT NULL, bytes INTEGER NOT NULL, rest BLOB NOT NULL,
  PRIMARY KEY (number, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE pieces (
  number INTEGER NOT NULL, position INTEGER NOT NULL, piece INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX pieces_order ON pieces (number, position, piece);
CREATE TABLE pins (
  number INTEGER NOT NULL, position INTEGER NOT NULL, time_us INTEGER NOT NULL,
  PRIMARY KEY (number, position)
) STRICT, WITHOUT ROWID;
"""
PART = "history"
MIGRATIONS = (
    Migration(1, "blocks, snapshots, pins", _HISTORY),
    Migration(2, "whether the past has begun", "CREATE TABLE begun (time_us INTEGER NOT NULL);"),
)
_ALONE = "PRAGMA locking_mode=EXCLUSIVE"
_PRAGMAS = (
    "auto_vacuum=INCREMENTAL",  # before anything is written
    "journal_mode=WAL",
    "synchronous=FULL",
    "cache_size=-4096",
    # After each commit the write-ahead log is written from its beginning again, so its size once grown, with
    # as much free in the database (`RESERVE_BYTES`), is reserved for following the log on a full disk.
    "wal_autocheckpoint=1",
)
RESERVE_BYTES = 1024 * 1024
_PAGE_BYTES = 4_096
_BLOCK = "number, first, last, first_us, last_us, generation, session, thinned, pages, raw, length(body)"
PIECE_BYTES = 1024 * 1024  # of a snapshot, compressed together
VACUUM_PAGES = 256  # returned to the file system at a time


def steps_of(names: set[str]) -> int:
    """Of the migrations, in a file from before they were numbered."""
    return ("cursor" in names) + ("begun" in names)


def has_any(path: str) -> bool:
    """Whether there is a history, complete or not. Changes no file."""
    try:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.CantOpenError:
        return False
    with closing(db), suppress(apsw.Error):
        return bool(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall())
    return True


def check_schema(path: str) -> None:
    """Raises LogError for a history that a newer program upgraded; apsw.Error for another kind of file."""
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as db:
        schema.check(db, path, PART, MIGRATIONS, steps_of)


class Cursor(msgspec.Struct, frozen=True):
    """How far history has followed the log: a segment's generation, and the offset of its next record."""

    segment: int
    offset: int
    time_us: int


class History:
    """The database, for one thread. Use `with history:` for several changes in one commit."""

    def __init__(self, path: str, vfs: str = "", doing: Doing = quiet) -> None:
        """Upgrade to this program's schema; `doing` is called as long as that makes progress.

        Raises LogError for a newer one, OSError, apsw.Error.
        """
        self._db = apsw.Connection(path, vfs=vfs or None)
        try:
            self._run(_ALONE)
            schema.check(self._db, path, PART, MIGRATIONS, steps_of)  # some pragmas change the file
            for pragma in _PRAGMAS:
                self._run(f"PRAGMA {pragma}")
            schema.bring_up(self._db, path, PART, MIGRATIONS, steps_of, doing)
            with self._db:
                if not self._run("SELECT 1 FROM sqlite_schema WHERE name = 'reserve'"):
                    self._run("CREATE TABLE reserve (room BLOB)")
                    self._run("INSERT INTO reserve VALUES (zeroblob(?))", (RESERVE_BYTES,))
                    self._run("DELETE FROM reserve")
        except BaseException:
            self._db.close()
            raise

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, values).fetchall()

    def __enter__(self) -> "History":
        self._db.__enter__()
        return self

    def __exit__(self, *exception: Any) -> bool | None:
        return self._db.__exit__(*exception)

    @property
    def has_begun(self) -> bool:
        """Whether objects that are older than history have been added."""
        return bool(self._run("SELECT 1 FROM begun"))

    def begin(self, time_us: int) -> None:
        self._run("INSERT INTO begun VALUES (?)", (time_us,))

    # the cursor

    def cursor(self) -> Cursor:
        return Cursor(*self._run("SELECT segment, offset, time_us FROM cursor")[0])

    def set_cursor(self, cursor: Cursor) -> None:
        values = (cursor.segment, cursor.offset, cursor.time_us)
        self._run("UPDATE cursor SET segment = ?, offset = ?, time_us = ?", values)

    # blocks

    def add_block(self, row: BlockRow, body: bytes) -> None:
        values = (row.number, row.last, row.first, row.first_us, row.last_us, row.generation, row.session)
        rest = (int(row.thinned), row.pages, row.raw, body)
        self._run("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values + rest)

    def blocks(self, number: int, after: int, upto: int) -> list[BlockRow]:
        """Blocks with commits behind `after` that begin at or before `upto`, in order."""
        query = f"SELECT {_BLOCK} FROM blocks WHERE number = ? AND last > ? AND first <= ? ORDER BY last"
        return [_block(row) for row in self._run(query, (number, after, upto))]

    def block_at(self, number: int, time_us: int, before: int) -> BlockRow | None:
        """The newest block that ends before a position and begins at or before a time."""
        query = (
            f"SELECT {_BLOCK} FROM blocks WHERE number = ? AND first_us <= ? AND last < ? "
            "ORDER BY last DESC LIMIT 1"
        )
        rows = self._run(query, (number, time_us, before))
        return _block(rows[0]) if rows else None

    def last_block(self, number: int) -> BlockRow | None:
        query = f"SELECT {_BLOCK} FROM blocks WHERE number = ? ORDER BY last DESC LIMIT 1"
        rows = self._run(query, (number,))
        return _block(rows[0]) if rows else None

    def oldest_block(self, number: int) -> BlockRow | None:
        query = f"SELECT {_BLOCK} FROM blocks WHERE number = ? ORDER BY last LIMIT 1"
        rows = self._run(query, (number,))
        return _block(rows[0]) if rows else None

    def first_block(self, number: int, session: int) -> BlockRow | None:
        """The first block of a session that is kept."""
        query = f"SELECT {_BLOCK} FROM blocks WHERE number = ? AND session = ? ORDER BY last LIMIT 1"
        rows = self._run(query, (number, session))
        return _block(rows[0]) if rows else None

    def block_before(self, number: int, position: int) -> BlockRow | None:
        """The block that ends before a position."""
        query = f"SELECT {_BLOCK} FROM blocks WHERE number = ? AND last < ? ORDER BY last DESC LIMIT 1"
        rows = self._run(query, (number, position))
        return _block(rows[0]) if rows else None

    def body(self, row: BlockRow) -> bytes:
        rows = self._run("SELECT body FROM blocks WHERE number = ? AND last = ?", (row.number, row.last))
        return bytes(rows[0][0])

    def cost_behind(self, number: int, position: int) -> tuple[int, int]:
        """(page images, bytes before compression) of the blocks behind a position."""
        query = "SELECT ifnull(sum(pages), 0), ifnull(sum(raw), 0) FROM blocks WHERE number = ? AND last > ?"
        pages, raw = self._run(query, (number, position))[0]
        return pages, raw

    def remove_blocks(self, number: int, upto: int) -> None:
        """Forget the commits up to a position: whole blocks only."""
        self._run("DELETE FROM blocks WHERE number = ? AND last <= ?", (number, upto))

    def remove_block(self, row: BlockRow) -> None:
        self._run("DELETE FROM blocks WHERE number = ? AND last = ?", (row.number, row.last))

    def keep_as_it_is(self, rows: Iterable[BlockRow]) -> None:
        """Call blocks thinned that cannot be."""
        for row in rows:
            self._run("UPDATE blocks SET thinned = 1 WHERE number = ? AND last = ?", (row.number, row.last))

    def unthinned(self, before_us: int) -> BlockRow | None:
        """The oldest block that ended before a time and was not thinned."""
        query = f"SELECT {_BLOCK} FROM blocks WHERE NOT thinned AND last_us < ? ORDER BY last_us LIMIT 1"
        rows = self._run(query, (before_us,))
        return _block(rows[0]) if rows else None

    # snapshots

    def add_snapshot(self, row: SnapshotRow, image: bytes | bytearray) -> int:
        """Store a state; returns its stored size."""
        with memoryview(image) as view:
            starts = range(0, len(view), PIECE_BYTES)
            return self.add_pieces(row, (view[start : start + PIECE_BYTES] for start in starts))

    def add_pieces(self, row: SnapshotRow, pieces: Iterable[bytes | memoryview]) -> int:
        """The same of a database in pieces of PIECE_BYTES."""
        stored = len(row.rest)
        for piece, part in enumerate(pieces):
            body = squeeze(part)
            stored += len(body)
            self._run("INSERT INTO pieces VALUES (?, ?, ?, ?)", (row.number, row.position, piece, body))
        values = (row.number, row.position, row.time_us, row.generation, row.session, row.total)
        self._run("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, stored, row.rest))
        return stored

    def snapshot(self, number: int, upto: int) -> SnapshotRow | None:
        """The newest snapshot at or before a position."""
        query = "SELECT * FROM snapshots WHERE number = ? AND position <= ? ORDER BY position DESC LIMIT 1"
        rows = self._run(query, (number, upto))
        return SnapshotRow(*rows[0]) if rows else None

    def snapshot_positions(self, number: int) -> set[int]:
        rows = self._run("SELECT position FROM snapshots WHERE number = ?", (number,))
        return {position for (position,) in rows}

    def snapshot_before(self, number: int, time_us: int) -> SnapshotRow | None:
        """The newest snapshot made of a state at or before a time."""
        query = "SELECT * FROM snapshots WHERE number = ? AND time_us <= ? ORDER BY position DESC LIMIT 1"
        rows = self._run(query, (number, time_us))
        return SnapshotRow(*rows[0]) if rows else None

    def image(self, row: SnapshotRow) -> bytearray:
        """The database file of a snapshot."""
        image = bytearray()
        for piece in self.pieces(row):
            image += piece
        return image

    def pieces(self, row: SnapshotRow) -> Iterator[bytes]:
        """The same in pieces."""
        query = "SELECT body FROM pieces WHERE number = ? AND position = ? ORDER BY piece"
        for (body,) in self._db.execute(query, (row.number, row.position)):
            yield unsqueeze(body)

    def remove_snapshots(self, number: int, before: int) -> None:
        """Forget the snapshots before a position."""
        for table in ("pieces", "snapshots"):
            self._run(f"DELETE FROM {table} WHERE number = ? AND position < ?", (number, before))

    # pins

    def pin(self, number: int, position: int, time_us: int) -> None:
        self._run("INSERT OR REPLACE INTO pins VALUES (?, ?, ?)", (number, position, time_us))

    def pins(self, number: int) -> dict[int, int]:
        """position → the last time it was handed out."""
        return dict(self._run("SELECT position, time_us FROM pins WHERE number = ?", (number,)))

    def remove_pins(self, before_us: int) -> None:
        self._run("DELETE FROM pins WHERE time_us < ?", (before_us,))

    # all of it

    def numbers(self, after: int, limit: int) -> list[int]:
        """The objects that have a past, in order, behind a number."""
        query = "SELECT DISTINCT number FROM blocks WHERE number > ? ORDER BY number LIMIT ?"
        return [number for (number,) in self._run(query, (after, limit))]

    def largest(self) -> int | None:
        """The object with the largest blocks in total."""
        rows = self._run("SELECT number FROM blocks GROUP BY number ORDER BY sum(length(body)) DESC LIMIT 1")
        return int(rows[0][0]) if rows else None

    def total_bytes(self) -> int:
        """The used part of the database file."""
        query = (
            "SELECT (p.page_count - f.freelist_count) * s.page_size "
            "FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s"
        )
        return int(self._run(query)[0][0])

    def trim(self) -> None:
        """Return some free pages to the file system, except the reserve."""
        free = int(self._run("PRAGMA freelist_count")[0][0])
        if free > RESERVE_BYTES // _PAGE_BYTES + VACUUM_PAGES:
            self._run(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")

    def check(self) -> list[str]:
        """The faults that SQLite finds in the database; empty without any."""
        found = [str(row[0]) for row in self._run("PRAGMA quick_check(10)")]
        return [] if found == ["ok"] else found

    def copy_from(self, path: str, numbers: list[tuple[int, int]], doing: Doing = quiet) -> None:
        """Copy the history of objects of another, closed folder: (number there, number here)."""
        self._run("ATTACH ? AS there", (path,))
        try:
            with self._db:
                for count, (old, new) in enumerate(numbers):
                    doing(f"the past of {count:,} of {len(numbers):,} objects is copied")
                    for table in ("blocks", "snapshots", "pieces", "pins"):
                        columns = [row[1] for row in self._run(f"PRAGMA table_info({table})")][1:]
                        names = ", ".join(columns)
                        self._run(
                            f"INSERT INTO main.{table} (number, {names}) "
                            f"SELECT ?, {names} FROM there.{table} WHERE number = ?",
                            (new, old),
                        )
        finally:
            self._run("DETACH there")

    def copy(self, path: str) -> None:
        """A new file with everything. Raises apsw.Error."""
        self._run("VACUUM INTO ?", (path,))

    def close(self) -> None:
        self._db.close()


def _block(values: tuple[Any, ...]) -> BlockRow:
    number, first, last, first_us, last_us, generation, session, thinned, pages, raw, stored = values
    return BlockRow(
        number, first, last, first_us, last_us, generation, session, bool(thinned), pages, raw, stored
    )
