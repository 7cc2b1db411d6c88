"""What a function sees of the database while it runs.

Owns  `Reader` and `Transaction` over one apsw connection.
Not   when a transaction begins and ends.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import apsw

from edgestead.sqlite.outbox import Outbox
from edgestead.store.control import Answered, Group, Row

LIST_DOCUMENTS = (
    "SELECT key, doc FROM feed_state WHERE scope = ? AND kind = ? AND key >= ? ORDER BY key LIMIT ?"
)
DOCUMENTS_AT_ONCE = 1_000  # of the feed, read by one statement


class SqliteReader:
    __slots__ = ("_execute",)

    def __init__(self, db: apsw.Connection) -> None:
        self._execute: Callable[..., apsw.Cursor] = db.execute

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        found: Row | None = self._execute(sql, parameters).fetchone()
        return found

    def documents(self, scope: str, kind: str) -> Iterator[tuple[str, bytes]]:
        start = ""
        while found := self.rows(LIST_DOCUMENTS, (scope, kind, start, DOCUMENTS_AT_ONCE)):
            yield from found
            start = found[-1][0] + "\0"


class SqliteTransaction(SqliteReader):
    """The view of one write; unusable after its function has returned."""

    __slots__ = (
        "_answered",
        "_changes",
        "_drop_scope",
        "_emit",
        "_execute_each",
        "_newest_of",
        "_own",
        "_touches",
        "sequence",
    )

    def __init__(self, db: apsw.Connection, outbox: Outbox) -> None:
        super().__init__(db)
        self._changes = db.changes
        self._execute_each = db.executemany
        self._emit = outbox.emit
        self._drop_scope = outbox.drop_scope
        self._newest_of = outbox.newest_of
        self._own = outbox.own
        self._touches = outbox.touches
        self._answered = outbox.requests.append
        self.sequence = 0

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        self._execute(sql, parameters).fetchall()
        return self._changes()

    def run_each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._execute_each(sql, rows).fetchall()

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, *, first: Group = "") -> int:
        self.sequence = self._emit(scope, kind, key, doc, first)
        return self.sequence

    def drop_scope(self, scope: str, *, first: Group = "") -> int:
        self.sequence = self._drop_scope(scope, first)
        return self.sequence

    def answered(self, request: Answered) -> None:
        self._answered(request)

    def touches(self, scope: str) -> bool:
        return self._touches(scope)

    def newest(self, scope: str, kind: str, key: str) -> bytes | None:
        return self._newest_of(scope, ((kind, key),))[0]

    def newest_of(self, scope: str, keys: Sequence[tuple[str, str]]) -> list[bytes | None]:
        return self._newest_of(scope, keys)

    def documents(self, scope: str, kind: str) -> Iterator[tuple[str, bytes]]:
        is_dropped, own = self._own(scope, kind)
        yield from ((key, doc) for key, doc in own.items() if doc is not None)
        if not is_dropped:
            yield from (one for one in super().documents(scope, kind) if one[0] not in own)

    def end(self) -> None:
        """A leaked reference can no longer write into another transaction."""
        self._execute = self._execute_each = self._changes = _ended
        self._emit = self._drop_scope = self._newest_of = self._own = self._touches = _ended
        self._answered = _ended


def _ended(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("a transaction was used after its function had returned")
