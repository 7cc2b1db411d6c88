"""A copy of an object's database as a JSON document that programs of any kind read.

Owns  the document's form, and that of values which JSON has not.
Not   the copy. Imports apsw and the value codec: only for exports that end in .json.

    {"class": "Booking", "name": "friday", "alarm": null,
     "keys": {"seats": 12, "booked": {"$set": ["1A"]}},
     "schema": ["CREATE TABLE guest (name TEXT)"],
     "tables": {"guest": {"columns": ["name"], "rows": [["ann"]]}}}

What JSON has not is an object with one member: `$bytes` (Base64), `$tuple`, `$set`, `$frozenset`, `$dict`
(pairs, where a key is no text or begins with $), `$datetime`, `$date`, `$float` (nan, inf), `$pattern` and
`$error` (name and arguments). A value that contains itself, or is nested deeper than DEPTH_MAX, is `$stored`:
its bytes in the database, in Base64. Each key and each row is one line.
"""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import apsw

from edgestead.cli.target import Json
from edgestead.objects.errors import DataCloneError
from edgestead.objects.runtime.database import KV_TABLE
from edgestead.objects.runtime.guard import is_hidden
from edgestead.objects.values.codec import decode

DEPTH_MAX = 100  # as of what the API answers
_OF_ITS_OWN = (
    "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'table' DESC, rowid"
)
_SEVERAL: dict[type, str] = {tuple: "$tuple", set: "$set", frozenset: "$frozenset"}


class _NotATree(Exception):
    """The value contains itself, or is too deep."""


def document(database: Path, info: Json) -> Iterator[bytes]:
    """The document in parts; `info` is what the server says of the object.

    Raises DataCloneError, apsw.Error.
    """
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        schema = [row for row in connection.execute(_OF_ITS_OWN) if not is_hidden(row[0])]
        head = {name: info.get(name) for name in ("class", "name", "alarm")}
        yield _text(head)[:-1] + b',\n"keys": {'
        yield from _lines(_keys(connection))
        yield b'},\n"schema": [' + b",\n  ".join([b"", *(_text(sql) for _, _, sql in schema)])[1:] + b"],\n"
        yield b'"tables": {'
        tables = [name for name, kind, _ in schema if kind == "table"]
        for number, name in enumerate(tables):
            yield (b"," if number else b"") + b"\n" + _text(name) + b": "
            yield from _table(connection, name)
        yield b"}}\n"


def _keys(connection: apsw.Connection) -> Iterator[bytes]:
    known = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (KV_TABLE,)).fetchall()
    rows = connection.execute(f"SELECT key, value FROM {KV_TABLE} ORDER BY key") if known else ()
    for key, stored in rows:
        yield _text(key) + b": " + _text(_value(stored))


def _table(connection: apsw.Connection, name: str) -> Iterator[bytes]:
    quoted = '"' + name.replace('"', '""') + '"'
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted})")]
    yield b'{"columns": ' + _text(columns) + b', "rows": ['
    yield from _lines(
        _text([plain(cell) for cell in row]) for row in connection.execute(f"SELECT * FROM {quoted}")
    )
    yield b"]}"


def _lines(items: Iterable[bytes]) -> Iterator[bytes]:
    for number, item in enumerate(items):
        yield (b"," if number else b"") + b"\n  " + item


def _text(value: Any) -> bytes:
    """Half of a surrogate pair becomes the escape that JSON has for it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _value(stored: bytes) -> Any:
    try:
        return plain(decode(stored))
    except _NotATree:
        return {"$stored": b64encode(stored).decode()}


def plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """A value in what JSON has. Raises _NotATree."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, date):
        return {"$datetime" if isinstance(value, datetime) else "$date": value.isoformat()}
    if isinstance(value, re.Pattern):
        return {"$pattern": [plain(value.pattern), value.flags]}
    if id(value) in above or len(above) >= DEPTH_MAX:
        raise _NotATree
    inside = (*above, id(value))
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: plain(one, inside) for key, one in value.items()}
        return {"$dict": [[plain(key, inside), plain(one, inside)] for key, one in value.items()]}
    if isinstance(value, list):
        return [plain(one, inside) for one in value]
    if isinstance(value, BaseException):
        return {"$error": [type(value).__name__, *(plain(one, inside) for one in value.args)]}
    if kind := _SEVERAL.get(type(value)):
        return {kind: [plain(one, inside) for one in value]}
    raise DataCloneError(f"{type(value).__name__} is no value that is stored")
