"""Whether what an object has stored is whole.

Owns  looking at each page, index, row and key of a copy, and at each record that the log still holds.
Asks  SQLite's own checks; the value codec.
Tells `operate`.
Not   mending anything; the history of the past.
"""

import itertools
from collections.abc import Iterable, Iterator

import apsw
import msgspec

from edgestead.objects.database import KV_TABLE
from edgestead.objects.values import decode
from edgestead.store.objectlog import FRAME_HEADER_BYTES, PAGE_BYTES, CommitKind, LoggedCommit

PROBLEMS_MAX = 100  # found problems that are told
_FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
_read_keys = msgspec.msgpack.Decoder(dict[str, bytes | None]).decode


class Verdict(msgspec.Struct, frozen=True):
    """What was looked at, and what is wrong with it, in words."""

    pages: int
    keys: int
    commits: int
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
    return Verdict(pages, keys, 0, problems[:PROBLEMS_MAX])


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


def check_commits(commits: Iterable[LoggedCommit]) -> tuple[int, list[str]]:
    """How many commits were read, and what is wrong with them. Raises LogError when one cannot be read."""
    count = 0
    problems: list[str] = []
    for logged in commits:
        count += 1
        problems += (f"commit {logged.position}: {words}" for words in _commit_problems(logged))
    return count, problems[:PROBLEMS_MAX]


def _commit_problems(logged: LoggedCommit) -> Iterator[str]:
    body = logged.commit.body
    if logged.commit.kind is CommitKind.PAGES:
        if len(body) % _FRAME_BYTES:
            yield f"{len(body)} bytes are no whole number of pages"
        return
    try:
        changes = _read_keys(body)
    except msgspec.DecodeError as error:
        yield f"its keys cannot be read: {error}"
        return
    for key, value in changes.items():
        if value is not None:
            yield from _value_problems(key, value)
