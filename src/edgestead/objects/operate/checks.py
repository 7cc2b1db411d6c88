"""Whether what an object has stored is whole.

Owns  looking at each page, index, row and key of a copy.
Not   mending anything; records of log and history, which the object log checks.
"""

import itertools
from collections.abc import Iterator

import apsw
import msgspec

from edgestead.objects.operate.shapes import Verdict
from edgestead.objects.runtime.database import KV_TABLE
from edgestead.objects.values.codec import decode
from edgestead.store.pages import FORMAT_VERSIONS

PROBLEMS_MAX = 100  # found problems that are told


class Image(msgspec.Struct, frozen=True):
    """A database's bytes, without those that its write-ahead log has, and the keys that it lacks."""

    pages: bytes
    tail: dict[str, bytes | None]


def check_image(image: Image) -> Verdict:
    """The same of a database in memory. Not to be called on a loop."""
    database = apsw.Connection(":memory:")
    if image.pages:
        pages = bytearray(image.pages)
        pages[FORMAT_VERSIONS] = b"\x01\x01"  # one in memory has no write-ahead log
        database.deserialize("main", bytes(pages))
    verdict = _check(database)
    kept = {key: value for key, value in image.tail.items() if value is not None}
    wrong = [problem for pair in kept.items() for problem in _value_problems(*pair)]
    return Verdict(verdict.pages, verdict.keys + len(kept), (verdict.problems + wrong)[:PROBLEMS_MAX])


def check_database(path: str) -> Verdict:
    """Every page, index, constraint and key of a copy that is ours alone. Not to be called on a loop.

    Opened for writing: SQLite passes over CHECK constraints in a database that it cannot write.
    """
    return _check(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE))


def _check(database: apsw.Connection) -> Verdict:
    """Closes it."""
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
