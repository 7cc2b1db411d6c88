"""One object's SQLite database: its connection, its transactions, its pages.

Owns  how the file is opened, the hidden key-value table, savepoints, reading the pages of a commit.
Not   when to commit and when to checkpoint (`engine`); durability (the object log).

Nothing here is synced, unless asked for: the object log is. So the write-ahead log holds commits only until
they are in the database file, and one that was left behind is never read. A `synced` database is the other
way round: its write-ahead log is what makes a commit durable, and is read when it is opened again.
"""

import secrets
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import apsw

from edgestead.objects import limits
from edgestead.objects.errors import SqlError
from edgestead.objects.runtime.columns import Columns
from edgestead.objects.runtime.guard import HIDDEN_PREFIX, Guard, is_hidden
from edgestead.store.files import File, Files
from edgestead.store.pages import FORMAT_VERSIONS, FRAME_HEADER_BYTES, PAGE_BYTES

FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
_RELAXED_BYTES = 3 * PAGE_BYTES  # of a page cache with one page
WAL_HEADER_BYTES = 32  # SQLite file format §4.1

# In the text of every statement of ours, so that no user text equals it (see `guard`).
_MARK = f"/*{secrets.token_hex(8)}*/"
KV_TABLE = f"{HIDDEN_PREFIX}kv"
_CACHE_NONE, _CACHE = (f"{_MARK} PRAGMA cache_size = {size}" for size in (2, -limits.PAGE_CACHE_KIB_MAX))
_CREATE = f"{_MARK} CREATE TABLE IF NOT EXISTS {KV_TABLE} (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
_HAS = f"{_MARK} SELECT 1 FROM sqlite_schema WHERE name = '{KV_TABLE}'"
_PUT = f"{_MARK} INSERT INTO {KV_TABLE} VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_DELETE = f"{_MARK} DELETE FROM {KV_TABLE} WHERE key = ?"
_GET = f"{_MARK} SELECT value FROM {KV_TABLE} WHERE key = ?"
_BEGIN, _COMMIT, _ROLLBACK = (f"{_MARK} {word}" for word in ("BEGIN", "COMMIT", "ROLLBACK"))
OWN_TABLE = f"{HIDDEN_PREFIX}own"
_HAS_OWN = f"{_MARK} SELECT 1 FROM sqlite_schema WHERE name = '{OWN_TABLE}'"
_OWN_COLUMNS = ("alarm_us", "position", "session")
_CREATE_OWN = f"{_MARK} CREATE TABLE IF NOT EXISTS {OWN_TABLE} (id INTEGER PRIMARY KEY, alarm_us INTEGER)"
_OWN_INFO = f"{_MARK} SELECT name FROM pragma_table_info('{OWN_TABLE}')"
_ADD_OWN = f"{_MARK} ALTER TABLE {OWN_TABLE} ADD COLUMN "
_SET_OWN = f"{_MARK} INSERT OR REPLACE INTO {OWN_TABLE} (id, alarm_us, position, session) VALUES (1, ?, ?, ?)"
_GET_OWN = f"{_MARK} SELECT alarm_us, position, session FROM {OWN_TABLE}"
_HIDDEN_NAMES = (
    f"{_MARK} SELECT name FROM sqlite_schema "
    f"WHERE substr(lower(name), 1, {len(HIDDEN_PREFIX)}) = '{HIDDEN_PREFIX}' "
    f"AND name NOT IN ('{KV_TABLE}', '{OWN_TABLE}')"
)
_TABLES = (
    f"{_MARK} SELECT name FROM sqlite_schema "
    "WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name LIMIT 1000"
)
_ONLY_READ, _WRITE_AGAIN = (f"{_MARK} PRAGMA query_only = {word}" for word in ("ON", "OFF"))
_SIZE = (
    f"{_MARK} SELECT (p.page_count - f.freelist_count) * s.page_size "
    "FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s"
)

LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: limits.SQL_STRING_BYTES_MAX,
    apsw.SQLITE_LIMIT_SQL_LENGTH: limits.SQL_BYTES_MAX,
    apsw.SQLITE_LIMIT_COLUMN: limits.SQL_COLUMNS_MAX,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: limits.SQL_EXPRESSION_DEPTH_MAX,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: limits.SQL_COMPOUND_MAX,
    apsw.SQLITE_LIMIT_VDBE_OP: limits.SQL_OPS_MAX,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: limits.SQL_ARGUMENTS_MAX,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: limits.SQL_LIKE_BYTES_MAX,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: limits.SQL_VARIABLES_MAX,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: limits.SQL_TRIGGER_DEPTH_MAX,
}
_PRAGMAS = (
    # First: no shared memory file, no lock calls, and other programs get SQLITE_BUSY.
    "locking_mode = EXCLUSIVE",
    "synchronous = {synchronous}",  # before WAL mode: a new file would be synced on its way there
    "journal_mode = WAL",
    "foreign_keys = ON",
    "trusted_schema = OFF",
    f"max_page_count = {limits.DATABASE_PAGES_MAX}",
)
CRITICAL = (apsw.FullError, apsw.IOError, apsw.NoMemError, apsw.CorruptError, apsw.NotADBError)
"""After these SQLite has rolled back by itself, or cannot go on."""
NO_SPACE = (apsw.FullError, apsw.CantOpenError)
"""These may mean that the disk is full: or that the object is as large as it may be."""


class OpenCursor(Protocol):
    @property
    def is_open(self) -> bool:
        """Whether SQLite still has the statement."""
        ...

    def settle(self) -> None:
        """Read what is left into memory, so that SQLite has no open statement. Raises StorageBroken."""
        ...

    def close(self) -> None:
        """Give no more rows."""
        ...

    def cancel(self) -> None:
        """Give no more rows, and an error to whoever asks for them."""
        ...


class Database:
    """An open database; made anew when it is `fresh`. Raises apsw.Error, OSError."""

    def __init__(
        self,
        path: str,
        files: Files,
        *,
        fresh: bool,
        vfs: str = "",
        clock: Callable[[], float] = time.monotonic,
        synced: bool = False,
    ) -> None:
        files.make_folder(path.rpartition("/")[0])
        for suffix in () if synced else ("-wal", "-shm", "-journal", *([""] if fresh else ())):
            files.remove(path + suffix)
        self._synced = synced
        self._clock = clock
        self.deadline = 0.0  # of a user's statement; set to 0 before each of its steps
        self._files, self.path = files, path
        self._wal: File | None = None
        self._has_own = False
        self._frames = self._read = 0  # frames in the write-ahead log, and how many of them were read out
        self._cursors: weakref.WeakSet[OpenCursor] | None = None
        self.latest: OpenCursor | None = None  # nearly all are read to the end before the next one is opened
        self.columns: dict[str, Columns] = {}  # by statement, until the schema changes
        self.guard = Guard()
        self.connection = apsw.Connection(path, vfs=vfs or None, statementcachesize=32)
        self.total_changes = self.connection.total_changes
        self._own = self.connection.cursor()
        self._began = False  # a transaction
        self.spare: apsw.Cursor | None = None  # for the next user statement: a new one costs 0.3 µs
        try:
            self._configure()
            if not synced:
                self._wal = files.open(path + "-wal", create=True)
            self.has_table = self._begin_cache()
            if synced and not fresh:
                # what a process left there counts, and is moved so that the frames to come can be counted
                self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except BaseException:
            self.close()
            raise

    def _configure(self) -> None:
        connection = self.connection
        for pragma in _PRAGMAS:
            words = pragma.format(synchronous="FULL" if self._synced else "OFF")
            self._run_once(f"{_MARK} PRAGMA {words}")
        connection.wal_autocheckpoint(0)
        # Closing must not copy unacknowledged commits into the database file.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.set_wal_hook(self._committed)
        connection.authorizer = self.guard
        for limit, value in LIMITS.items():
            connection.limit(limit, value)
        connection.set_progress_handler(self._is_late, limits.STATEMENT_CHECK_OPS)

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        # apsw runs statements lazily: a cursor that is not drained may not have run
        self.guard.trusted = True
        try:
            return self.connection.execute(sql, values).fetchall()
        finally:
            self.guard.trusted = False

    def _do(self, sql: str) -> None:
        """Run a statement of ours that gives no rows."""
        self.guard.trusted = True
        try:
            self._own.execute(sql)
        finally:
            self.guard.trusted = False

    def _run_once(self, sql: str) -> list[tuple[Any, ...]]:
        """As `_run`, for a statement that is not worth 3 KiB of memory."""
        self.guard.trusted = True
        try:
            return self.connection.execute(sql, can_cache=False).fetchall()
        finally:
            self.guard.trusted = False

    def _begin_cache(self) -> bool:
        """Put the first page into an empty page cache. Gives whether the hidden table exists.

        With its first page a cache takes room for twenty, 87 KiB, unless it is to hold fewer than three.
        """
        self._run_once(_CACHE_NONE)
        self.connection.release_memory()
        found = bool(self._run_once(_HAS))
        self._run_once(_CACHE)
        return found

    def relax(self) -> bool:
        """Give back what is only remembered, and stay open. False when that is nothing."""
        remembered, _ = self.connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)
        if remembered < _RELAXED_BYTES or self.in_transaction:
            return False
        self._begin_cache()
        return True

    def _run_for_each(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self.guard.trusted = True
        try:
            self._own.executemany(sql, rows).fetchall()
        finally:
            self.guard.trusted = False

    def _committed(self, connection: object, name: str, frames: int) -> int:
        self._frames = frames
        return apsw.SQLITE_OK

    def _is_late(self) -> bool:
        """SQLite asks this every so many steps: a user's statement that runs away is interrupted."""
        if self.guard.trusted:
            return False
        if not self.deadline:
            self.deadline = self._clock() + limits.STATEMENT_SECONDS_MAX
        return self._clock() > self.deadline

    @contextmanager
    def reading(self, seconds_max: float) -> Iterator[None]:
        """Until the block ends users' statements cannot write or set pragmas, and have so long together."""
        self._run_once(_ONLY_READ)
        self.guard.sets_pragmas, self.deadline = False, self._clock() + seconds_max
        try:
            yield
        finally:
            self.guard.sets_pragmas = True
            self._run_once(_WRITE_AGAIN)

    def note_open(self, cursor: OpenCursor) -> None:
        """A cursor that is not the `latest` has rows left: it must be settled before a checkpoint."""
        if self._cursors is None:
            self._cursors = weakref.WeakSet()
        self._cursors.add(cursor)

    def cursors(self) -> list[OpenCursor]:
        """The users' cursors that still exist and are not read to the end."""
        latest, self.latest = self.latest, None
        others, self._cursors = self._cursors or (), None
        return [cursor for cursor in (latest, *others) if cursor is not None and cursor.is_open]

    # transactions

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    @property
    def has_lost(self) -> bool:
        """Whether SQLite has rolled the transaction back by itself."""
        return self._began and not self.connection.in_transaction

    @property
    def has_written(self) -> bool:
        return self.connection.txn_state("main") == apsw.SQLITE_TXN_WRITE

    def begin(self, depth: int) -> None:
        """Begin a transaction, already `depth` savepoints deep: nothing ran before."""
        self._do(_BEGIN)
        self._began = True
        if not self.has_table:  # before any savepoint; with the first write, so that nobody sees it by chance
            self._run_once(_CREATE)
            self.has_table = True
        for level in range(1, depth + 1):
            self.save(level)

    def save(self, level: int) -> None:
        self._do(f"{_MARK} SAVEPOINT level_{level}")

    def release(self, level: int) -> None:
        self._do(f"{_MARK} RELEASE level_{level}")

    def roll_back_to(self, level: int) -> None:
        self.columns.clear()
        self._do(f"{_MARK} ROLLBACK TO level_{level}")
        self._do(f"{_MARK} RELEASE level_{level}")

    def roll_back(self) -> None:
        self.columns.clear()
        if self.connection.in_transaction:
            self._do(_ROLLBACK)
        self._began = False
        self.has_table = bool(self._run_once(_HAS))

    def commit(self) -> bytes:
        """Commit, and give the transaction's WAL frames; empty when it changed nothing."""
        self._do(_COMMIT)
        self._began = False
        if self._frames < self._read:
            raise SqlError("the write-ahead log was reset by somebody else", "SQLITE_PROTOCOL")
        count = self._frames - self._read
        if not count:
            return b""
        if self._wal is None:  # of a synced database: SQLite itself has to make the file
            self._wal = self._files.open(self.path + "-wal")
        offset = WAL_HEADER_BYTES + self._read * FRAME_BYTES
        frames = self._wal.read(count * FRAME_BYTES, offset)
        if len(frames) != count * FRAME_BYTES:
            raise SqlError("the write-ahead log is shorter than its commits", "SQLITE_IOERR_SHORT_READ")
        self._read = self._frames
        if self._synced and self._frames >= limits.CHECKPOINT_FRAMES:
            with suppress(*NO_SPACE):  # the commit is durable: the next one tries again
                self.checkpoint()
        return frames

    @property
    def frames(self) -> int:
        """Pages that wait for a checkpoint."""
        return self._frames

    def checkpoint(self) -> None:
        """Copy all commits into the database file. Every one of them must be durable in the log."""
        for cursor in self.cursors():
            cursor.settle()
        if self._frames != self._read:
            raise SqlError("the database holds commits that were not logged", "SQLITE_MISUSE")
        if self._frames:
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._frames = self._read = 0

    def erase(self) -> bytes:
        """Make the database empty, in one transaction; gives its frames. No transaction may be open."""
        self.connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
        self.connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 1)  # VACUUM works in a database of its own
        try:
            self._run_once(f"{_MARK} VACUUM")
        finally:
            self.connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
            self.connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
        self.has_table = self._has_own = False
        self.columns.clear()
        self._do(_BEGIN)
        return self.commit()

    # the hidden table

    def put(self, changes: Mapping[str, bytes | None]) -> None:
        """Store keys, and delete those whose value is None."""
        kept = [(key, value) for key, value in changes.items() if value is not None]
        self._run_for_each(_PUT, kept)
        gone = [(key,) for key, value in changes.items() if value is None]
        if gone:
            self._run_for_each(_DELETE, gone)

    def get(self, key: str) -> bytes | None:
        if not self.has_table:
            return None
        for (value,) in self._run(_GET, (key,)):
            assert isinstance(value, bytes)
            return value
        return None

    def range(
        self, start: str, end: str | None, limit: int | None, *, reverse: bool
    ) -> list[tuple[str, bytes]]:
        """Keys with start <= key < end, in UTF-8 order."""
        if not self.has_table:
            return []
        below = "" if end is None else "AND key < ?2"
        order = "DESC" if reverse else "ASC"
        rows = f"SELECT key, value FROM {KV_TABLE} WHERE key >= ?1 {below} ORDER BY key {order} LIMIT ?"
        values = (start, *(() if end is None else (end,)), -1 if limit is None else limit)
        return [(key, value) for key, value in self._run(f"{_MARK} {rows}", values)]

    # what an object that is durable by itself knows of itself

    def own_state(self) -> tuple[int | None, int | None, int | None] | None:
        """(alarm, position, session) of the last commit; None when the database says nothing of them."""
        if not self._run_once(_HAS_OWN):
            return None
        self._prepare_own()
        rows = self._run(_GET_OWN)
        return rows[0] if rows else None

    def set_own_state(self, alarm_us: int | None, position: int, session: int) -> None:
        """Put into the transaction what its commit will be."""
        if not self._has_own:
            self._run_once(_CREATE_OWN)
            self._prepare_own()
        self._run(_SET_OWN, (alarm_us, position, session))

    def _prepare_own(self) -> None:
        """Add the columns that earlier versions did not have."""
        there = {name for (name,) in self._run_once(_OWN_INFO)}
        for column in _OWN_COLUMNS:
            if column not in there:
                self._run_once(f"{_ADD_OWN}{column} INTEGER")
        self._has_own = True

    def image(self) -> bytes:
        """The whole database, as committed."""
        return bytes(self.connection.serialize("main"))

    def become(self, image: bytes | bytearray, own: tuple[int | None, int, int]) -> None:
        """Take over another database's contents, with this state of our own, in one durable transaction."""
        source = apsw.Connection(":memory:")
        try:
            if image:
                plain = bytearray(image)
                plain[FORMAT_VERSIONS] = b"\x01\x01"  # one in memory has no write-ahead log
                source.deserialize("main", bytes(plain))
            for statement in (f"DROP TABLE IF EXISTS {OWN_TABLE}", _CREATE_OWN):
                source.execute(statement).fetchall()
            for column in _OWN_COLUMNS[1:]:
                source.execute(f"{_ADD_OWN}{column} INTEGER").fetchall()
            source.execute(_SET_OWN, own).fetchall()
            with self.connection.backup("main", source, "main") as backup:
                backup.step(-1)
        finally:
            source.close()
        self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._frames = self._read = 0
        self.columns.clear()
        self.has_table = bool(self._run_once(_HAS))

    # facts

    def check(self) -> list[str]:
        """What is wrong with pages, tables and indexes; empty when nothing is."""
        found = [str(row[0]) for row in self._run(f"{_MARK} PRAGMA integrity_check(100)")]
        return [] if found == ["ok"] else found

    def size_bytes(self) -> int:
        return int(self._run_once(_SIZE)[0][0])

    def table_names(self) -> list[str]:
        """Users' tables, the first thousand by name."""
        return [name for (name,) in self._run_once(_TABLES) if not is_hidden(name)]

    def count(self, quoted_table: str) -> int:
        """The rows of a table, by its name as a statement has it."""
        return int(self._run_once(f"{_MARK} SELECT count(*) FROM {quoted_table}")[0][0])

    def hidden_names(self) -> list[str]:
        """Names that only a rename can have made: SQLite does not ask the authorizer about its target."""
        return [name for (name,) in self._run_once(_HIDDEN_NAMES)]

    def close(self) -> None:
        """Close; commits that are not checkpointed are left to the log."""
        if self._wal is not None:
            self._wal.close()
        self.connection.close()
