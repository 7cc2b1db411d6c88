"""An operator's SQL on an object's database, beside the object's own.

Owns  that a query which may only read cannot write; how many rows an answer holds; rows as JSON.
Not   permissions.

What the object may not touch an operator may not either: the hidden tables are not documented, and change.
"""

import base64
import binascii
import math
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import apsw

from edgestead.objects.errors import SqlError
from edgestead.objects.operate.shapes import Rows
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.guard import Guard
from edgestead.objects.runtime.sql import SqlStorage
from edgestead.objects.runtime.statements import Statement, split

ROWS_MAX = 10_000  # of one answer
ROWS_BYTES_MAX = 8 * 1024 * 1024  # text and blobs of one answer
SECONDS_MAX = 4.0  # one query: nothing else of the process runs meanwhile
_NO_TEXT = "a text is not UTF-8: cast it to a blob"
_NUMBERS = {math.inf: "Infinity", -math.inf: "-Infinity"}


class Readable(Protocol):
    """A database of now or of the past."""

    connection: apsw.Connection
    guard: Guard

    def reading(self, seconds_max: float) -> AbstractContextManager[None]: ...


def read(engine: Engine, query: str, bindings: Sequence[Any]) -> Rows:
    """Run a query that writes nothing. Raises SqlError, also for one that would."""
    split(query)
    engine.commit()
    return read_from(engine.open(), query, bindings)


def read_from(database: Readable, query: str, bindings: Sequence[Any]) -> Rows:
    """The same of any database."""
    statements, values = split(query), _values(bindings)
    columns: list[str] = []
    with database.reading(SECONDS_MAX):
        try:
            for statement in statements[:-1]:
                _run(database, statement, (), []).fetchall()
            cursor = _run(database, statements[-1], values, columns)
            rows, truncated = _take(cursor)
            cursor.close()
        except (apsw.Error, OverflowError, UnicodeError) as error:
            raise _words(database, error) from None
    return Rows(columns, rows, 0, truncated)


def _run(database: Readable, statement: Statement, values: Sequence[Any], columns: list[str]) -> apsw.Cursor:
    cursor = database.connection.cursor()

    def describe(running: apsw.Cursor, sql: str, given: object) -> bool:
        columns.extend(column[0] for column in running.get_description())
        return True

    cursor.exec_trace = describe
    # Not from the cache: what the object prepared there was authorised for the object.
    return cursor.execute(statement.text, values, can_cache=False)


def _words(database: Readable, error: Exception) -> SqlError:
    if isinstance(error, apsw.ReadOnlyError):
        return SqlError("this query would write, and is only allowed to read", "SQLITE_READONLY")
    if isinstance(error, apsw.InterruptError):
        return SqlError(f"the query ran longer than {SECONDS_MAX:g} s", "SQLITE_INTERRUPT")
    if isinstance(error, UnicodeError):
        return SqlError(_NO_TEXT, "SQLITE_MISMATCH")
    if isinstance(error, apsw.BindingsError):
        return SqlError("Wrong number of parameter bindings for SQL query.")
    number = getattr(error, "result", apsw.SQLITE_ERROR)
    code = apsw.mapping_result_codes.get(number & 0xFF, "SQLITE_ERROR")
    return SqlError(database.guard.take_refusal() or str(error), str(code))


def write(engine: Engine, query: str, bindings: Sequence[Any]) -> Rows:
    """Run a query as one transaction: all of it or nothing. Raises SqlError."""
    statements, values = split(query), _values(bindings)
    if any(statement.word == "PRAGMA" for statement in statements):
        raise SqlError("pragmas are for queries that only read", "SQLITE_AUTH")
    engine.begin(apart=True)
    try:
        rows = _write(SqlStorage(engine), statements, values)
    except BaseException:
        if engine.broken is None:
            engine.end(commit=False)
        raise
    engine.end(commit=True)
    return rows


def _write(sql: SqlStorage, statements: Sequence[Statement], values: Sequence[Any]) -> Rows:
    until = time.monotonic() + SECONDS_MAX
    for statement in statements[:-1]:
        sql.exec(statement.text).to_list()
        if time.monotonic() > until:
            raise SqlError(f"the query ran longer than {SECONDS_MAX:g} s", "SQLITE_INTERRUPT")
    cursor = sql.exec(statements[-1].text, *values)
    rows, truncated = _take(cursor.raw())
    written = cursor.rows_written
    cursor.close()
    return Rows(cursor.column_names, rows, written, truncated)


def _take(found: Iterable[Sequence[Any]]) -> tuple[list[list[Any]], bool]:
    """As many rows as an answer holds, and whether there are more."""
    rows: list[list[Any]] = []
    left_bytes = ROWS_BYTES_MAX
    for row in found:
        left_bytes -= sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) == ROWS_MAX or left_bytes < 0:
            return rows, True
        rows.append([shown(value) for value in row])
    return rows, False


def shown(value: Any) -> Any:
    """A value of a row as JSON has it."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and math.isinf(value):
        return {"real": _NUMBERS[value]}
    return value


def _values(bindings: Sequence[Any]) -> list[Any]:
    """Bindings from JSON: null, boolean, number, string, or `{"base64": "…"}`. Raises SqlError."""
    return [_value(binding) for binding in bindings]


def _value(binding: Any) -> Any:
    if isinstance(binding, dict) and binding.keys() == {"base64"} and isinstance(binding["base64"], str):
        try:
            return base64.b64decode(binding["base64"], validate=True)
        except binascii.Error as error:
            raise SqlError(f"a parameter is no base64: {error}", "SQLITE_MISMATCH") from None
    if isinstance(binding, dict | list):
        raise SqlError('a parameter is null, a number, a string, or {"base64": …}', "SQLITE_MISMATCH")
    return binding
