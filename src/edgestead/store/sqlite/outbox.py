"""The outbox and the feed's state: the tables behind the change feed.

Owns  their SQL and migrations; handing out sequences; trimming the tail.
Asks  nobody.
Tells `store.sqlite.writer` (appending) and `store.sqlite.feed` (reading).
Not   transactions; other processes.
"""

from collections.abc import Callable
from typing import Any

from edgestead.model.errors import BadRequest
from edgestead.store.changes import (
    DOC_BYTES_MAX,
    KIND_DROP_SCOPE,
    TAIL_BYTES_MAX,
    TAIL_ROWS_MAX,
    Change,
    change_bytes,
    is_log,
)
from edgestead.store.control import Group
from edgestead.store.migrations import Migration

TRIM_ROWS = 64  # the oldest rows go this many at a time, when all of them lie beyond the tail

MIGRATIONS = (
    Migration(
        1,
        "feed",
        # `bytes_upto` counts the feed's bytes up to and including the row, so that the tail's size is a
        # subtraction and nobody has to add it up.
        """
        CREATE TABLE feed_identity (feed_id text PRIMARY KEY);
        CREATE TABLE outbox (
          sequence integer PRIMARY KEY,
          scope text NOT NULL,
          kind text NOT NULL,
          key text NOT NULL,
          doc blob,
          first text NOT NULL,
          bytes_upto integer NOT NULL
        );
        CREATE TABLE feed_state (
          scope text NOT NULL,
          kind text NOT NULL,
          key text NOT NULL,
          sequence integer NOT NULL,
          doc blob NOT NULL,
          PRIMARY KEY (scope, kind, key)
        );
        """,
    ),
    Migration(
        2,
        "lives of the feed",
        """
        DROP TABLE feed_identity;
        CREATE TABLE feed_lives (
          number integer PRIMARY KEY,
          feed_id text NOT NULL,
          head integer NOT NULL
        );
        """,
    ),
)

LIST_LIVES = "SELECT number, feed_id, head FROM feed_lives ORDER BY number"
INSERT_LIFE = "INSERT INTO feed_lives (number, feed_id, head) VALUES (?, ?, ?)"
DELETE_LIVES_UPTO = "DELETE FROM feed_lives WHERE number <= ?"
SELECT_NEWEST = "SELECT sequence, bytes_upto FROM outbox ORDER BY sequence DESC LIMIT 1"
INSERT_CHANGE = (
    "INSERT INTO outbox (sequence, scope, kind, key, doc, first, bytes_upto) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
UPSERT_STATE = (
    "INSERT INTO feed_state (scope, kind, key, sequence, doc) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (scope, kind, key) DO UPDATE SET sequence = excluded.sequence, doc = excluded.doc"
)
SELECT_STATE = "SELECT doc FROM feed_state WHERE scope = ? AND kind = ? AND key = ?"
DELETE_STATE = "DELETE FROM feed_state WHERE scope = ? AND kind = ? AND key = ?"
DELETE_STATE_OF_SCOPE = "DELETE FROM feed_state WHERE scope = ?"
SELECT_TRIM_CANDIDATE = "SELECT sequence, bytes_upto FROM outbox ORDER BY sequence LIMIT 1 OFFSET ?"
DELETE_CHANGES_UPTO = "DELETE FROM outbox WHERE sequence <= ?"

Execute = Callable[..., Any]


class Outbox:
    """Appends changes inside the writer's transaction.

    Sequences are handed out here and taken back when their savepoint or transaction is undone, so that the
    committed ones are dense. `appended` holds the open transaction's changes.
    """

    def __init__(
        self, execute: Execute, *, tail_rows_max: int = TAIL_ROWS_MAX, tail_bytes_max: int = TAIL_BYTES_MAX
    ) -> None:
        self._execute = execute
        self._tail_rows_max = tail_rows_max
        self._tail_bytes_max = tail_bytes_max
        newest: tuple[int, int] | None = execute(SELECT_NEWEST).fetchone()
        self.head, self._bytes = newest or (0, 0)
        self.appended: list[Change] = []
        self._committed = self.mark()

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, first: Group) -> int:
        if not scope or kind == KIND_DROP_SCOPE:
            raise ValueError("a change needs a scope and a kind")
        if doc is None:
            if is_log(kind):
                raise ValueError("a log's document cannot be taken back")
            sequence = self._append(scope, kind, key, None, first)
            self._execute(DELETE_STATE, (scope, kind, key))
            return sequence
        if len(doc) > DOC_BYTES_MAX:
            raise BadRequest(reason=f"What {kind} {key} would serve is larger than {DOC_BYTES_MAX} bytes.")
        sequence = self._append(scope, kind, key, doc, first)
        if not is_log(kind):
            self._execute(UPSERT_STATE, (scope, kind, key, sequence, doc))
        return sequence

    def newest(self, scope: str, kind: str, key: str) -> bytes | None:
        found: tuple[bytes] | None = self._execute(SELECT_STATE, (scope, kind, key)).fetchone()
        return found[0] if found else None

    def drop_scope(self, scope: str, first: Group) -> int:
        if not scope:
            raise ValueError("a change needs a scope")
        sequence = self._append(scope, KIND_DROP_SCOPE, "", None, first)
        self._execute(DELETE_STATE_OF_SCOPE, (scope,))
        return sequence

    def _append(self, scope: str, kind: str, key: str, doc: bytes | None, first: Group) -> int:
        change = Change(self.head + 1, scope, kind, key, doc, first)
        bytes_upto = self._bytes + change_bytes(change)
        self._execute(INSERT_CHANGE, (change.sequence, scope, kind, key, doc, first, bytes_upto))
        self.head, self._bytes = change.sequence, bytes_upto
        self.appended.append(change)
        return change.sequence

    def mark(self) -> tuple[int, int, int]:
        """Where a savepoint begins, for `rewind`."""
        return self.head, self._bytes, len(self.appended)

    def rewind(self, mark: tuple[int, int, int]) -> None:
        self.head, self._bytes, count = mark
        del self.appended[count:]

    def committed(self) -> list[Change]:
        """The transaction is durable: returns its changes and begins the next one."""
        changes, self.appended = self.appended, []
        self._committed = self.mark()
        return changes

    def undone(self) -> None:
        """The whole transaction is gone."""
        self.rewind(self._committed)

    def trim(self) -> None:
        """Delete the oldest changes beyond the tail. Called before a commit that appended some."""
        while oldest := self._execute(SELECT_TRIM_CANDIDATE, (TRIM_ROWS - 1,)).fetchone():
            sequence, bytes_upto = oldest
            rows_after, bytes_after = self.head - sequence, self._bytes - bytes_upto
            if rows_after < self._tail_rows_max and bytes_after < self._tail_bytes_max:
                return
            if sequence >= self.head:
                return  # the head stays: it is where the next sequence comes from
            self._execute(DELETE_CHANGES_UPTO, (sequence,))


class NoOutbox(Outbox):
    """For a database without a feed, so that it can share the writer: nothing can be emitted."""

    def __init__(self) -> None:
        self.head = self._bytes = 0
        self.appended = []
        self._committed = self.mark()

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, first: Group) -> int:
        raise TypeError("this database has no feed")

    def drop_scope(self, scope: str, first: Group) -> int:
        raise TypeError("this database has no feed")

    def newest(self, scope: str, kind: str, key: str) -> bytes | None:
        raise TypeError("this database has no feed")
