"""What an object has stored, now or at a moment of its past, for people who look.

Owns  keys and tables as text of bounded length, what differs between two moments, databases of the past.
Not   which moments there are (`operations`); SQL of operators (`sql`).

A moment of the past is put together in memory, read on another thread, and dropped: nothing of the object
changes, and it goes on meanwhile.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import apsw

from edgestead.objects.errors import DataCloneError, ObjectError
from edgestead.objects.operate import sql
from edgestead.objects.operate.operations import LOOK_BYTES_MAX, Stored
from edgestead.objects.operate.shapes import (
    Changes,
    Contents,
    KeyChange,
    Rows,
    StoredKey,
    StoredTable,
    TableChange,
)
from edgestead.objects.runtime.database import KV_TABLE, LIMITS
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.guard import Guard, is_hidden
from edgestead.objects.runtime.storage import key_range
from edgestead.objects.values.codec import decode
from edgestead.store.pages import FORMAT_VERSIONS
from edgestead.store.past import ObjectState

VALUE_CHARACTERS_MAX = 2_000  # of a value as text
KEYS_DIFFERENT_MAX = 200  # of one answer
TABLES_MAX = 100  # that are looked at
ROWS_SHOWN_MAX = 20  # of a table that changed, on each side
ROWS_COUNTED_MAX = 1_000  # the same: beyond it the count stops
COMPARE_SECONDS_MAX = 4.0  # of two databases
_CHECK_OPS = 10_000  # of SQLite's machine between two looks at the clock
_COUNTED_BYTES_MAX = 16 * 1024 * 1024  # of a live database whose rows are counted while its object waits
_TABLES = (
    "SELECT name FROM pragma_table_list WHERE schema = ? AND type = 'table' "
    f"AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name LIMIT {TABLES_MAX}"
)


class Page(NamedTuple):
    """Which keys are asked for."""

    prefix: str
    after: str
    limit: int


class PastDatabase:
    """A database of the past in memory; with an earlier one where two are compared. For one thread."""

    def __init__(self, state: ObjectState, earlier: ObjectState | None = None) -> None:
        """Raises ObjectError: it is too large; apsw.Error."""
        self.connection = apsw.Connection(":memory:")
        self.guard = Guard()
        self._until = 0.0
        try:
            self._fill("main", state)
            if earlier is not None:
                self.connection.execute("ATTACH ':memory:' AS earlier").fetchall()
                self._fill("earlier", earlier)
            self.connection.execute("PRAGMA trusted_schema = OFF").fetchall()
            for limit, value in LIMITS.items():
                self.connection.limit(limit, value)
            self.connection.execute("PRAGMA query_only = ON").fetchall()
            self.connection.set_progress_handler(lambda: time.monotonic() > self._until, _CHECK_OPS)
        except BaseException:
            self.close()
            raise

    def _fill(self, schema: str, state: ObjectState) -> None:
        if len(state.image) > LOOK_BYTES_MAX:
            raise ObjectError(
                f"The object had {len(state.image)} bytes then; up to {LOOK_BYTES_MAX} can be looked at."
            )
        if state.image:
            state.image[FORMAT_VERSIONS] = b"\x01\x01"  # one in memory has no write-ahead log
            self.connection.deserialize(schema, bytes(state.image))
            state.image = bytearray()
        table = f"{schema}.{KV_TABLE}"
        with self.connection:
            self._run(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
            for key, value in state.tail.items():
                self._run(f"DELETE FROM {table} WHERE key = ?", key)
                if value is not None:
                    self._run(f"INSERT INTO {table} VALUES (?, ?)", key, value)

    def _run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    @contextmanager
    def limited(self, seconds_max: float) -> Iterator[None]:
        """What runs in the block has so long together."""
        self._until = time.monotonic() + seconds_max
        yield

    @contextmanager
    def reading(self, seconds_max: float) -> Iterator[None]:
        """The same for statements of users: they may read tables and nothing else."""
        self.guard.sets_pragmas = False
        self.connection.authorizer = self.guard
        with self.limited(seconds_max):
            yield

    def keys(self, page: Page) -> dict[str, bytes]:
        """One more than the page has, if there are more."""
        start, end = key_range(page.prefix, page.after)
        below = "" if end is None else "AND key < ?"
        query = f"SELECT key, value FROM {KV_TABLE} WHERE key >= ? {below} ORDER BY key LIMIT ?"
        return dict(self._run(query, start, *(() if end is None else (end,)), page.limit + 1))

    def changed_keys(self) -> list[tuple[str, bytes | None, bytes | None]]:
        """(key, before, after) of those that differ."""
        return self._run(
            f"SELECT key, b.value, a.value FROM main.{KV_TABLE} a FULL JOIN earlier.{KV_TABLE} b USING (key) "
            "WHERE a.value IS NOT b.value ORDER BY key LIMIT ?",
            KEYS_DIFFERENT_MAX + 1,
        )

    def tables(self, schema: str = "main") -> dict[str, list[str]]:
        """The object's own tables with their columns."""
        names = [name for (name,) in self._run(_TABLES, schema) if not is_hidden(name)]
        return {
            name: [
                column for (column,) in self._run("SELECT name FROM pragma_table_info(?, ?)", name, schema)
            ]
            for name in names
        }

    def count(self, table: str, schema: str = "main") -> int:
        return int(self._run(f"SELECT count(*) FROM {schema}.{quoted(table)}")[0][0])

    def only_in(self, schema: str, other: str, table: str) -> list[tuple[Any, ...]]:
        """Rows of a table in one database that the other does not have."""
        name = quoted(table)
        query = f"SELECT * FROM {schema}.{name} EXCEPT SELECT * FROM {other}.{name} LIMIT {ROWS_COUNTED_MAX}"
        return self._run(query)

    def close(self) -> None:
        self.connection.close()


def live(engine: Engine, page: Page) -> Contents:
    """What is stored now: a page of keys, all tables."""
    engine.commit()
    start, end = key_range(page.prefix, page.after)
    keys = engine.range(start, end, page.limit + 1, reverse=False)
    tables: list[StoredTable] = []
    if engine.has_file:
        database = engine.open()
        names = database.table_names()[:TABLES_MAX]
        counts = database.size_bytes() <= _COUNTED_BYTES_MAX
        tables = [StoredTable(name, database.count(quoted(name)) if counts else None) for name in names]
    return _contents(keys, page, tables, _milliseconds(engine.alarm_us), None)


def kept(moment: Stored, page: Page) -> Contents:
    """What was stored at a moment. Not to be called on a loop. Raises ObjectError."""
    alarm = _milliseconds(moment.state.alarm_us)
    try:
        with closing(PastDatabase(moment.state)) as database, database.limited(COMPARE_SECONDS_MAX):
            tables = [StoredTable(name, database.count(name)) for name in database.tables()]
            return _contents(database.keys(page), page, tables, alarm, moment)
    except apsw.Error as error:
        raise ObjectError(f"What was stored then cannot be read: {error}") from None


def _contents(
    keys: dict[str, bytes], page: Page, tables: list[StoredTable], alarm: int | None, moment: Stored | None
) -> Contents:
    first = list(keys.items())[: page.limit]
    return Contents(
        bookmark=None if moment is None else moment.bookmark,
        time_us=None if moment is None else moment.time_us,
        alarm=alarm,
        keys=[StoredKey(key, len(octets), text_of(octets)) for key, octets in first],
        more=len(keys) > page.limit,
        tables=tables,
    )


def read_sql(stored: Stored, query: str, bindings: Sequence[Any]) -> Rows:
    """A query that writes nothing, about a moment. Not to be called on a loop. Raises SqlError."""
    try:
        with closing(PastDatabase(stored.state)) as database:
            return sql.read_from(database, query, bindings)
    except apsw.Error as error:
        raise ObjectError(f"What was stored then cannot be read: {error}") from None


def changes(before: Stored, after: Stored) -> Changes:
    """What differs between two moments. Not to be called on a loop. Raises ObjectError."""
    alarms = (_milliseconds(before.state.alarm_us), _milliseconds(after.state.alarm_us))
    try:
        with (
            closing(PastDatabase(after.state, before.state)) as database,
            database.limited(COMPARE_SECONDS_MAX),
        ):
            keys = database.changed_keys()
            tables = list(_table_changes(database))
    except apsw.Error as error:
        raise ObjectError(f"The two moments cannot be compared: {error}") from None
    return Changes(
        since=before.bookmark,
        until=after.bookmark,
        alarm_before=alarms[0],
        alarm_after=alarms[1],
        keys=[KeyChange(key, _text(old), _text(new)) for key, old, new in keys[:KEYS_DIFFERENT_MAX]],
        more=len(keys) > KEYS_DIFFERENT_MAX,
        tables=tables,
    )


def _table_changes(database: PastDatabase) -> Iterator[TableChange]:
    before, after = database.tables("earlier"), database.tables("main")
    for name in sorted(before.keys() | after.keys()):
        gone: list[tuple[Any, ...]] = []
        came: list[tuple[Any, ...]] = []
        is_same = before.get(name) == after.get(name)
        if is_same:
            gone = database.only_in("earlier", "main", name)
            came = database.only_in("main", "earlier", name)
        if gone or came or not is_same:
            yield TableChange(
                name=name,
                rows_before=database.count(name, "earlier") if name in before else None,
                rows_after=database.count(name, "main") if name in after else None,
                columns=after.get(name) or before[name],
                gone=_rows(gone),
                gone_count=len(gone),
                came=_rows(came),
                came_count=len(came),
            )


def _rows(found: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[_cell(value) for value in row] for row in found[:ROWS_SHOWN_MAX]]


def _cell(value: Any) -> Any:
    if isinstance(value, str | bytes) and len(value) > VALUE_CHARACTERS_MAX:
        value = value[:VALUE_CHARACTERS_MAX]
    return sql.shown(value)


def text_of(octets: bytes) -> str:
    """A stored value as Python writes it, cut after VALUE_CHARACTERS_MAX."""
    try:
        text = repr(decode(octets))
    except (DataCloneError, RecursionError):
        return "a value that cannot be read"
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[:VALUE_CHARACTERS_MAX] + "…"


def _text(octets: bytes | None) -> str | None:
    return None if octets is None else text_of(octets)


def quoted(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _milliseconds(alarm_us: int | None) -> int | None:
    return None if alarm_us is None else alarm_us // 1_000
