"""The log's metadata that is needed before reading a segment, in one small SQLite database.

Owns  the table of live segments, the table of objects (head, base, alarm), the folder's identity.
Not   commits that are still in live segments: those are newer than these tables.

A segment is live from the moment its prepared header is durable until everything in it is in database files
and in this catalogue. Because of its row, a missing or damaged segment is an error.
"""

import threading
from collections.abc import Iterable, Iterator
from typing import Any, Self

import apsw
import msgspec

from edgestead.sqlite.objectlog import schema
from edgestead.store.migrations import Doing, Migration, quiet
from edgestead.store.objectlog import CatalogueEntry, LogDamaged, ObjectRef, Tail, Target

_CATALOGUE = """
CREATE TABLE folder (id BLOB NOT NULL, made_us INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE TABLE segments (generation INTEGER PRIMARY KEY, slot TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL);
CREATE TABLE objects (
  number INTEGER PRIMARY KEY, class TEXT NOT NULL, id TEXT NOT NULL, name TEXT,
  head INTEGER NOT NULL, base INTEGER NOT NULL, has_file INTEGER NOT NULL, alarm_us INTEGER,
  UNIQUE (class, id)
) STRICT;
CREATE INDEX objects_alarm ON objects (alarm_us) WHERE alarm_us IS NOT NULL;
"""
_LIVES = """
ALTER TABLE folder ADD COLUMN life INTEGER NOT NULL DEFAULT 0;
ALTER TABLE folder ADD COLUMN life_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE folder ADD COLUMN life_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE folder ADD COLUMN device INTEGER;
ALTER TABLE folder ADD COLUMN inode INTEGER;
ALTER TABLE objects ADD COLUMN session INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN target_session INTEGER;
ALTER TABLE objects ADD COLUMN target_position INTEGER;
"""
PART = "objects"
MIGRATIONS = (
    Migration(1, "folder, segments, objects", _CATALOGUE),
    Migration(2, "lives of the folder, sessions of objects", _LIVES),
    Migration(3, "for which life there is a mark", "ALTER TABLE folder ADD COLUMN marked INTEGER;"),
)
# A checkpoint after each commit: the write-ahead log is then written from its beginning each time, so its
# size once grown (`RESERVE_BYTES`, with as much free in the database) is reserved for retiring on a full
# disk.
_ALONE = "PRAGMA locking_mode=EXCLUSIVE"
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1")
WAY_OUT = "; nothing was changed: without it nobody knows what is in the log. Bring back a backup"
RESERVE_BYTES = 256 * 1024
_IDENTITY = "life, life_before, life_since, device, inode"
_COLUMNS = "number, class, id, name, head, base, has_file, alarm_us, session, target_session, target_position"
_UPSERT = f"""
INSERT INTO objects ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET
  head = excluded.head, base = excluded.base, has_file = excluded.has_file, alarm_us = excluded.alarm_us,
  session = excluded.session, target_session = excluded.target_session,
  target_position = excluded.target_position
"""


def steps_of(names: set[str]) -> int:
    """How many migrations a file has had that is older than their numbering."""
    return ("folder" in names) + ("folder.life" in names)


class SegmentRow(msgspec.Struct, frozen=True):
    generation: int
    slot: str
    bytes_total: int


class ObjectRow(msgspec.Struct, frozen=True):
    """One object. `has_file`: a commit once had pages, so there is a database file."""

    number: int
    ref: ObjectRef
    head: int
    base: int
    has_file: bool
    alarm_us: int | None
    session: int = 0
    pending: Target | None = None


class Tracked(msgspec.Struct):
    """One object in memory: its row, updated by commits. `tail`: keys that its database lacks."""

    number: int
    ref: ObjectRef
    head: int
    base: int
    has_file: bool
    alarm_us: int | None
    session: int = 0
    pending: Target | None = None
    tail: Tail = msgspec.field(default_factory=dict)

    @classmethod
    def of_row(cls, row: ObjectRow) -> Self:
        return cls(*msgspec.structs.astuple(row))

    def row(self) -> ObjectRow:
        return ObjectRow(
            self.number,
            self.ref,
            self.head,
            self.base,
            self.has_file,
            self.alarm_us,
            self.session,
            self.pending,
        )


class Identity(msgspec.Struct, frozen=True):
    """Where the folder was when it was last opened, and `life`, the generation of its bookmarks.

    `life` is valid for records in segments after `life_since`, `life_before` up to there.
    """

    life: int
    life_before: int
    life_since: int
    device: int | None
    inode: int | None

    def life_of(self, segment: int) -> int:
        """The generation in which a segment's records were written."""
        return self.life if segment > self.life_since else self.life_before


class Catalogue:
    """Used by the owner's thread and the upkeep thread; one lock keeps them apart."""

    def __init__(
        self,
        path: str,
        vfs: str,
        folder_id: bytes | None,
        made_us: int = 0,
        *,
        only_read: bool = False,
        doing: Doing = quiet,
    ) -> None:
        """Open, or create with the given identity (None: only open), and upgrade to this program's schema.

        `only_read` changes nothing: an older file is upgraded in memory. `doing` is called as long as an
        upgrade makes progress. Raises LogDamaged when there is none, or no database, LogError for a newer
        schema, OSError, apsw.Error.
        """
        self._lock = threading.Lock()
        flags = apsw.SQLITE_OPEN_READONLY if only_read else apsw.SQLITE_OPEN_READWRITE
        if folder_id is not None:
            flags |= apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(path, flags=flags, vfs=vfs or None)
        except apsw.CantOpenError as error:
            raise LogDamaged(f"{path} is missing, or cannot be opened{WAY_OUT}") from error
        try:
            if only_read:
                self._db = schema.to_read(self._db, path, PART, MIGRATIONS, steps_of)
            else:
                self._prepare(path, folder_id, made_us, doing)
            self.folder_id = self._read_id(path)
        except BaseException as error:
            self._db.close()
            if isinstance(error, apsw.CorruptError | apsw.NotADBError):
                raise LogDamaged(f"{path}: {error}{WAY_OUT}") from error
            raise

    def _prepare(self, path: str, folder_id: bytes | None, made_us: int, doing: Doing) -> None:
        self._run(_ALONE)
        if folder_id is None and not self._run("SELECT 1 FROM sqlite_schema WHERE name = 'folder'"):
            raise LogDamaged(f"{path} is empty{WAY_OUT}")
        for pragma in _PRAGMAS:
            self._run(f"PRAGMA {pragma}")
        schema.bring_up(self._db, path, PART, MIGRATIONS, steps_of, doing)
        with self._db:
            if folder_id is not None and not self._run("SELECT 1 FROM folder"):
                self._run(
                    "INSERT INTO folder (id, made_us, generation) VALUES (?, ?, 0)", (folder_id, made_us)
                )
                self._run("CREATE TABLE reserve (room BLOB)")
                self._run("INSERT INTO reserve VALUES (zeroblob(?))", (RESERVE_BYTES,))
                self._run("DELETE FROM reserve")

    def _read_id(self, path: str) -> bytes:
        rows = self._run("SELECT id FROM folder")
        if not rows:
            raise LogDamaged(f"{path} is empty{WAY_OUT}")
        return bytes(rows[0][0])

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        # apsw runs statements lazily: a statement may not have run until its cursor is drained
        return self._db.execute(sql, values).fetchall()

    def identity(self) -> Identity:
        with self._lock:
            return Identity(*self._run(f"SELECT {_IDENTITY} FROM folder")[0])

    def set_identity(self, identity: Identity) -> None:
        """Durable when it returns."""
        with self._lock, self._db:
            values = msgspec.structs.astuple(identity)
            self._run(f"UPDATE folder SET ({_IDENTITY}) = (?, ?, ?, ?, ?)", values)

    @property
    def marked_life(self) -> int | None:
        """The folder's generation when its mark last existed; None when it never did."""
        with self._lock:
            found: int | None = self._run("SELECT marked FROM folder")[0][0]
        return found

    def note_mark(self, life: int) -> None:
        """Record that the mark of that generation is durable."""
        with self._lock, self._db:
            self._run("UPDATE folder SET marked = ?", (life,))

    def segments(self) -> list[SegmentRow]:
        with self._lock:
            rows = self._run("SELECT generation, slot, bytes FROM segments ORDER BY generation")
        return [SegmentRow(*row) for row in rows]

    def last_generation(self) -> int:
        """The last one ever used. It is never used again, or a recycled file's old records would replay."""
        with self._lock:
            return int(self._run("SELECT generation FROM folder")[0][0])

    def add_segment(self, row: SegmentRow) -> None:
        values = (row.generation, row.slot, row.bytes_total)
        with self._lock, self._db:
            self._run("INSERT OR REPLACE INTO segments VALUES (?, ?, ?)", values)
            self._run("UPDATE folder SET generation = ?", values[:1])

    def settle(self, objects: Iterable[ObjectRow], retired: Iterable[int]) -> None:
        """Store objects, and delete segments that are no longer needed, in one durable transaction."""
        with self._lock, self._db:
            self._db.executemany(_UPSERT, map(_values, objects)).fetchall()
            self._db.executemany("DELETE FROM segments WHERE generation = ?", zip(retired)).fetchall()

    def object(self, class_name: str, object_id: str) -> ObjectRow | None:
        query = f"SELECT {_COLUMNS} FROM objects WHERE class = ? AND id = ?"
        with self._lock:
            rows = self._run(query, (class_name, object_id))
        return _row(rows[0]) if rows else None

    def numbered(self, number: int) -> ObjectRow | None:
        with self._lock:
            rows = self._run(f"SELECT {_COLUMNS} FROM objects WHERE number = ?", (number,))
        return _row(rows[0]) if rows else None

    def last_number(self) -> int:
        with self._lock:
            return int(self._run("SELECT ifnull(max(number), 0) FROM objects")[0][0])

    def alarms(self) -> list[tuple[int, int]]:
        """(time, number) of every alarm."""
        with self._lock:
            rows = self._run("SELECT alarm_us, number FROM objects WHERE alarm_us IS NOT NULL")
        return [(time_us, number) for time_us, number in rows]

    def entries(self, after: tuple[str, str] = ("", "")) -> Iterator[CatalogueEntry]:
        """Every object behind that class and id, in this order."""
        for row in self.rows(after=after):
            yield CatalogueEntry(row.ref, row.head, row.base, row.alarm_us, row.pending)

    def rows(self, batch: int = 1_000, after: tuple[str, str] = ("", "")) -> Iterator[ObjectRow]:
        """The same with all columns; read in batches, so that the lock is never held for long."""
        query = f"SELECT {_COLUMNS} FROM objects WHERE (class, id) > (?, ?) ORDER BY class, id LIMIT {batch}"
        while True:
            with self._lock:
                rows = [_row(row) for row in self._run(query, after)]
            yield from rows
            if len(rows) < batch:
                return
            after = (rows[-1].ref.class_name, rows[-1].ref.id)

    @property
    def connection(self) -> apsw.Connection:
        """For an integrity check, while no other process uses it."""
        return self._db

    def copy(self, path: str) -> None:
        """A new file with all rows. Raises apsw.Error."""
        with self._lock:
            self._db.execute("VACUUM INTO ?", (path,)).fetchall()

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _values(row: ObjectRow) -> tuple[Any, ...]:
    ref, pending = row.ref, row.pending
    target = (None, None) if pending is None else (pending.session, pending.position)
    known = (row.number, ref.class_name, ref.id, ref.name, row.head, row.base, row.has_file, row.alarm_us)
    return (*known, row.session, *target)


def _row(values: tuple[Any, ...]) -> ObjectRow:
    number, class_name, object_id, name, head, base, has_file, alarm_us, session, *target = values
    ref = ObjectRef(class_name, object_id, name)
    pending = None if target[0] is None else Target(*target)
    return ObjectRow(number, ref, head, base, bool(has_file), alarm_us, session, pending)
