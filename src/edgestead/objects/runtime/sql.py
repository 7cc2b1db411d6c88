"""The SQL API of an object's storage: `sql.exec` and its cursor.

Owns  running a query text, errors in words, rows as mappings or lists, the row counters.
Not   what may be touched (`guard`); when it is committed (`engine`).

Source: spec "Object storage API", "SQL API".
"""

import contextlib
from typing import Any, NoReturn

import apsw

from edgestead.objects import limits
from edgestead.objects.errors import SqlError
from edgestead.objects.runtime.columns import Columns, Row, columns
from edgestead.objects.runtime.database import CRITICAL, Database
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.statements import Statement, split

_TOO_LARGE = f"out of memory, or a statement of more than {limits.SQL_OPS_MAX} operations"
_NO_ROW = columns(())  # of a statement without a row, until somebody asks
_splits: dict[str, tuple[tuple[Statement, ...], Statement]] = {}  # all but the last one, and the last


class SqlStorage:
    """`ctx.storage.sql`."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def exec(self, query: str, *bindings: Any) -> "Cursor":
        """Run one or more statements now; bindings and cursor belong to the last one.

        Bindings are None, bool (as 0 or 1), int of 64 bits, float, str, bytes.
        Raises SqlError: refused by SQLite, not allowed, or no statement; earlier statements of the text
        stay done unless the transaction is rolled back. TypeError for a binding of another type.
        """
        before, statement = _splits.get(query) or _remember(query)
        if before:
            for earlier in before:
                self._run(earlier, ()).close()
        return self._run(statement, bindings)

    def _run(self, statement: Statement, bindings: tuple[Any, ...]) -> "Cursor":
        engine = self._engine
        if not statement.writes:
            database = engine.database
            if database is None or engine.broken is not None:
                database = engine.open()
            return Cursor(engine, database, statement, bindings)
        database = engine.begin_sql()
        if not statement.rows_only:
            database.columns.clear()  # what those of a remembered statement are called may change
            if statement.word == "ALTER":
                return self._alter(database, statement, bindings)
        return self._write(database, statement, bindings)

    def _write(self, database: Database, statement: Statement, bindings: tuple[Any, ...]) -> "Cursor":
        total_changes = database.total_changes
        before = total_changes()
        cursor = Cursor(self._engine, database, statement, bindings)
        if not statement.silent:
            cursor.read_on()  # SQLite counts when the statement is over
        cursor.rows_written = total_changes() - before
        return cursor

    def _alter(self, database: Database, statement: Statement, bindings: tuple[Any, ...]) -> "Cursor":
        """SQLite does not ask about the name that a table is renamed to, so it is looked at afterwards."""
        database.save(0)
        try:
            cursor = self._write(database, statement, bindings)
            hidden = database.hidden_names()
            if hidden:
                raise SqlError(f"access to {hidden[0]} is prohibited", "SQLITE_AUTH")
        except SqlError:
            if database.in_transaction:
                database.roll_back_to(0)
            raise
        database.release(0)
        return cursor

    @property
    def database_size(self) -> int:
        """Bytes in use: pages that hold something."""
        return self._engine.size_bytes()

    databaseSize = database_size


def _remember(query: str) -> tuple[tuple[Statement, ...], Statement]:
    if not isinstance(query, str):
        raise TypeError(f"exec() takes SQL text, not {type(query).__name__}")
    if len(_splits) >= limits.SPLITS_MAX:
        _splits.clear()
    *before, last = split(query)
    found = _splits[query] = (tuple(before), last)
    return found


def _refuse(engine: Engine, database: Database, error: Exception) -> NoReturn:
    """Turn what went wrong into words; reset the object when storage itself failed."""
    if isinstance(error, apsw.NoMemError) and not database.has_lost:
        raise SqlError(_TOO_LARGE, "SQLITE_NOMEM") from None
    if isinstance(error, CRITICAL):
        raise engine.fail("a SQL statement failed", error) from error
    if isinstance(error, apsw.BindingsError):
        raise SqlError("Wrong number of parameter bindings for SQL query.") from None
    if isinstance(error, apsw.InterruptError):
        seconds = limits.STATEMENT_SECONDS_MAX
        raise SqlError(f"SQL statement ran longer than {seconds:g} s", "SQLITE_INTERRUPT") from None
    if isinstance(error, UnicodeDecodeError):
        raise SqlError("a text of the result is not UTF-8: cast it to a blob", "SQLITE_MISMATCH") from None
    if not isinstance(error, apsw.Error):
        raise SqlError(f"a parameter cannot be bound: {error}", "SQLITE_MISMATCH") from None
    number = getattr(error, "result", apsw.SQLITE_ERROR)
    code = apsw.mapping_result_codes.get(number & 0xFF, "SQLITE_ERROR")
    raise SqlError(database.guard.take_refusal() or str(error), str(code)) from None


class Cursor:
    """The rows of one statement: as mappings, or as lists through `raw()`; both share one position.

    `rows_read` counts the rows that were taken so far, and `rows_written` the rows that the statement
    inserted, changed or deleted (index entries are not counted): lower bounds of what the reference bills.
    """

    __slots__ = (
        "__weakref__",
        "_bindings",
        "_columns",
        "_database",
        "_engine",
        "_left",
        "_refusal",
        "_rows",
        "_statement",
        "rows_read",
        "rows_written",
    )

    def __init__(
        self, engine: Engine, database: Database, statement: Statement, bindings: tuple[Any, ...]
    ) -> None:
        """Run a statement, which must be the user's. Raises as `exec` does."""
        self._engine, self._database, self._statement = engine, database, statement
        self._bindings = bindings
        self.rows_read = self.rows_written = 0
        self._refusal: SqlError | None = None  # of whoever asks for more rows
        self._left: list[tuple[Any, ...]] | None = None
        self._columns = _NO_ROW
        rows, database.spare = database.spare, None
        if rows is None:
            rows = database.connection.cursor()
        self._rows: apsw.Cursor = rows
        database.deadline = 0.0
        try:
            rows.execute(statement.text, bindings)
        except (apsw.Error, OverflowError, UnicodeEncodeError) as error:
            _refuse(engine, database, error)
        if statement.silent:
            self._left, database.spare = [], rows
        else:
            self._columns = database.columns.get(statement.text) or self._remember_columns(rows)
            before, database.latest = database.latest, self
            if before is not None and before.is_open:
                database.note_open(before)

    def _remember_columns(self, rows: apsw.Cursor) -> Columns:
        try:
            found = columns(tuple(column[0] for column in rows.description))
        except apsw.ExecutionCompleteError:
            return _NO_ROW
        if len(self._database.columns) < limits.SPLITS_MAX:
            self._database.columns[self._statement.text] = found
        return found

    # rows

    def _take(self) -> tuple[Any, ...] | None:
        if self._left is not None:
            if not self._left:
                self._check()
                return None
            row = self._left.pop()
        else:
            self._database.deadline = 0.0
            try:
                row = next(self._rows)
            except StopIteration:
                self._left = []
                return None
            except (apsw.Error, UnicodeDecodeError) as error:
                self.close()
                _refuse(self._engine, self._database, error)
        self.rows_read += 1
        return row

    def _take_all(self) -> list[tuple[Any, ...]]:
        rows = self._left
        if rows is None:
            rows = self._fetch()
        else:
            self._check()
            rows.reverse()
        self._left = []
        self.rows_read += len(rows)
        return rows

    def _fetch(self) -> list[tuple[Any, ...]]:
        database = self._database
        database.deadline = 0.0
        try:
            rows = self._rows.fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            self.close()
            _refuse(self._engine, database, error)
        database.spare = self._rows  # nobody asks it anything any more
        if database.latest is self:
            database.latest = None
        return rows

    @property
    def is_open(self) -> bool:
        """Whether SQLite still has the statement."""
        return self._left is None

    def read_on(self) -> None:
        """Read what is left into memory (last row first), so that SQLite has no open statement."""
        if self._left is None:
            self._left = self._fetch()[::-1]

    def settle(self) -> None:
        """The same for others than its reader, who is told what that met. Raises StorageBroken."""
        try:
            self.read_on()
        except SqlError as error:
            self._refusal = error

    def close(self) -> None:
        """Give no more rows."""
        if self._left is None:
            self._rows.close(True)  # whatever the statement has to say
        self._left = []

    def cancel(self) -> None:
        """Whoever asks for more rows gets an error: they were deleted, which is not the same as their end."""
        self.close()
        self._refusal = SqlError(
            "The query was cancelled: delete_all() has deleted its tables", "SQLITE_ABORT"
        )

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    # the public face

    @property
    def column_names(self) -> list[str]:
        """The columns' names, in the order of raw rows; empty for a statement that gives no rows."""
        if self._columns is _NO_ROW:
            self._columns = self._describe()
        return list(self._columns.names)

    def _describe(self) -> Columns:
        names: list[str] = []

        def look(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
            names.extend(column[0] for column in cursor.get_description())
            return False

        cursor = self._database.connection.cursor()
        cursor.exec_trace = look
        with contextlib.suppress(apsw.Error):  # our own "do not run it", or a schema that has changed since
            cursor.execute(self._statement.text, self._bindings)
        return columns(tuple(names))

    def next(self) -> dict[str, Any]:
        """`{"done": False, "value": row}`, or `{"done": True}` behind the last row."""
        row = self._take()
        return {"done": True} if row is None else {"done": False, "value": self._columns.mapping(row)}

    def to_list(self) -> list[Row]:
        """The rows that are left. Of columns with one name the last one wins."""
        return list(map(self._columns.mapping, self._take_all()))

    def one(self) -> Row:
        """The row, if exactly one is left. Raises SqlError otherwise."""
        return self._columns.mapping(self._only())

    def _only(self) -> tuple[Any, ...]:
        rows = self._take_all()
        if len(rows) == 1:
            return rows[0]
        count = "multiple" if rows else "no"
        raise SqlError(f"Expected exactly one result from SQL query, but got {count} results.")

    def raw(self) -> "RawCursor":
        """The same rows as lists of values."""
        return RawCursor(self)

    def __iter__(self) -> "Cursor":
        return self

    def __next__(self) -> Row:
        row = self._take()
        if row is None:
            raise StopIteration
        return self._columns.mapping(row)

    toArray = to_array = to_list
    columnNames = column_names

    @property
    def rowsRead(self) -> int:
        return self.rows_read

    @property
    def rowsWritten(self) -> int:
        return self.rows_written


class RawCursor:
    """The rows of a cursor as lists of values; both consume the same rows."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def next(self) -> dict[str, Any]:
        """`{"done": False, "value": [values]}`, or `{"done": True}` behind the last row."""
        row = self._cursor._take()
        return {"done": True} if row is None else {"done": False, "value": list(row)}

    def to_list(self) -> list[list[Any]]:
        """The rows that are left."""
        return [list(row) for row in self._cursor._take_all()]

    def one(self) -> list[Any]:
        """The row, if exactly one is left. Raises SqlError otherwise."""
        return list(self._cursor._only())

    @property
    def column_names(self) -> list[str]:
        return self._cursor.column_names

    def __iter__(self) -> "RawCursor":
        return self

    def __next__(self) -> list[Any]:
        row = self._cursor._take()
        if row is None:
            raise StopIteration
        return list(row)

    toArray = to_array = to_list
    columnNames = column_names
