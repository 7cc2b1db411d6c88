"""Whether what an object has stored is whole.

Owns  looking at each page, index, row and key of a copy.
Asks  SQLite's own checks; the value codec.
Tells `operate`.
Not   mending anything; records of log and history, which the object log checks.
"""

import itertools
from collections.abc import Iterator

import apsw
import msgspec

from edgestead.objects.database import KV_TABLE
from edgestead.objects.values import decode

PROBLEMS_MAX = 100  # found problems that are told


class Verdict(msgspec.Struct, frozen=True):
    """What was looked at, and what is wrong with it, in words."""

    pages: int
    keys: int
    problems: list[str]


def check_database(path: str) -> Verdict:
    """Every page, index, constraint and key of a database that nobody writes. Not to be called on a loop."""
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    pages = keys = 0
    problems: list[str] = []
    try:
        pages = _one(database, "PRAGMA page_count")
        problems += _sqlite_problems(database)
        if _one(database, f"SELECT count(*) FROM sqlite_schema WHERE name = '{KV_TABLE}'"):
            for key, value in database.execute(f"SELECT key, value FROM {KV_TABLE}"):
                keys += 1
                problems += _value_problems(key, value)
    except apsw.Error as error:
        problems.append(f"the database cannot be read: {error}")
    finally:
        database.close()
    return Verdict(pages, keys, problems[:PROBLEMS_MAX])


def _one(database: apsw.Connection, query: str) -> int:
    value = database.execute(query).fetchall()[0][0]
    assert isinstance(value, int)
    return value


def _sqlite_problems(database: apsw.Connection) -> Iterator[str]:
    for (words,) in database.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})"):
        if words != "ok":
            yield str(words)
    violated = database.execute("PRAGMA foreign_key_check")
    for table, row, parent, _ in itertools.islice(violated, PROBLEMS_MAX):
        yield f"row {row} of {table} refers to a row of {parent} that is not there"


def _value_problems(key: object, value: object) -> Iterator[str]:
    if not isinstance(key, str) or not isinstance(value, bytes):
        yield f"key {key!r} is stored as {type(key).__name__} and {type(value).__name__}"
        return
    try:
        decode(value)
    except Exception as error:  # whatever bytes that are no value make the codec raise
        yield f"the value of key {key!r} cannot be read: {error!r}"
