"""The outbox and the feed's state: the tables behind the change feed.

Owns  their SQL and migrations; handing out sequences; trimming the tail.
Not   transactions; other processes.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import apsw
import msgspec

from edgestead.model.refusals import BadRequest
from edgestead.sqlite.witness import migration
from edgestead.store.changes import (
    DOC_BYTES_MAX,
    KIND_DROP_SCOPE,
    TAIL_BYTES_MAX,
    TAIL_ROWS_MAX,
    Change,
    change_bytes,
    is_log,
)
from edgestead.store.control import Answered, Group
from edgestead.store.migrations import Migration

KEYS_AT_ONCE = 16  # documents that one statement reads
TRIM_ROWS = 64  # the oldest rows go this many at a time, when all of them lie beyond the tail

MIGRATIONS = (
    Migration(
        1,
        "feed",
        # `bytes_upto` counts the feed's bytes up to and including the row, so that the tail's size is one
        # subtraction instead of a sum.
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
    migration(3),
    Migration(
        4,
        "place in the log of a cluster",
        """
        CREATE TABLE control_position (
          one integer PRIMARY KEY,
          sequence integer NOT NULL,
          chain blob NOT NULL
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
SELECT_STATE = "SELECT kind, key, doc FROM feed_state WHERE scope = ? AND kind = ? AND key = ?"
DELETE_STATE = "DELETE FROM feed_state WHERE scope = ? AND kind = ? AND key = ?"
DELETE_STATE_OF_SCOPE = "DELETE FROM feed_state WHERE scope = ?"
SELECT_TRIM_CANDIDATE = "SELECT sequence, bytes_upto FROM outbox ORDER BY sequence LIMIT 1 OFFSET ?"
DELETE_CHANGES_UPTO = "DELETE FROM outbox WHERE sequence <= ?"

Execute = Callable[..., Any]
Key = tuple[str, str, str]  # scope, kind, key


@cache
def _select_states(count: int) -> str:
    """The SQL for this many keys: a union of look-ups, each of which takes a third of one statement's
    time.
    """
    return " UNION ALL ".join([SELECT_STATE] * count)


class Outbox:
    """Collects the changes of the writer's transaction, and writes all of them at its end.

    Sequences are handed out at once and taken back when their savepoint or transaction is undone, so that the
    committed ones are dense. The rows wait for `write_down`: a group of writes then costs a few statements
    instead of five each, and of a document that several of them replace, a zone's serial say, only the last
    one goes into `feed_state`. `appended` holds the open transaction's changes.
    """

    def __init__(
        self,
        db: apsw.Connection,
        *,
        tail_rows_max: int = TAIL_ROWS_MAX,
        tail_bytes_max: int = TAIL_BYTES_MAX,
    ) -> None:
        self._execute: Execute = db.execute
        self._execute_each: Execute = db.executemany
        self._tail_rows_max = tail_rows_max
        self._tail_bytes_max = tail_bytes_max
        self.reload()

    def reload(self) -> None:
        """Continue from what the database holds: something else has changed it."""
        self._candidate: tuple[int, int] | None = None
        newest: tuple[int, int] | None = self._execute(SELECT_NEWEST).fetchone()
        self.head, self._bytes = newest or (0, 0)
        self._begin()

    def _begin(self) -> None:
        self.appended: list[Change] = []
        self.requests: list[Answered] = []  # of the open transaction
        self._committed = self.mark()
        self._newest: dict[Key, Change] = {}  # of the open transaction, where it has changed a key
        self._dropped: set[str] = set()  # scopes whose committed documents are all gone
        self._touched: set[str] = set()

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, first: Group) -> int:
        if not scope or kind == KIND_DROP_SCOPE:
            raise ValueError("a change needs a scope and a kind")
        if doc is None and is_log(kind):
            raise ValueError("a log's document cannot be taken back")
        if doc is not None and len(doc) > DOC_BYTES_MAX:
            raise BadRequest(reason=f"What {kind} {key} would serve is larger than {DOC_BYTES_MAX} bytes.")
        return self._append(Change(self.head + 1, scope, kind, key, doc, first))

    def newest_of(self, scope: str, keys: Sequence[tuple[str, str]]) -> list[bytes | None]:
        found = {key: one.doc for key in keys if (one := self._newest.get((scope, *key))) is not None}
        asked = [] if scope in self._dropped else [key for key in keys if key not in found]
        for first in range(0, len(asked), KEYS_AT_ONCE):
            some = asked[first : first + KEYS_AT_ONCE]
            parameters = [text for kind, key in some for text in (scope, kind, key)]
            for kind, key, doc in self._execute(_select_states(len(some)), parameters).fetchall():
                found[kind, key] = doc
        return [found.get(key) for key in keys]

    def own(self, scope: str, kind: str) -> tuple[bool, dict[str, bytes | None]]:
        """What the open transaction says of a scope: whether older documents are gone; those of a kind by
        key.
        """
        found = {key[2]: one.doc for key, one in self._newest.items() if key[:2] == (scope, kind)}
        return scope in self._dropped, found

    def drop_scope(self, scope: str, first: Group) -> int:
        if not scope:
            raise ValueError("a change needs a scope")
        return self._append(Change(self.head + 1, scope, KIND_DROP_SCOPE, "", None, first))

    def _append(self, change: Change) -> int:
        self.head, self._bytes = change.sequence, self._bytes + change_bytes(change)
        self.appended.append(change)
        self._note(change)
        return change.sequence

    def touches(self, scope: str) -> bool:
        """Whether the open transaction has changes of a scope."""
        return scope in self._touched

    def _note(self, change: Change) -> None:
        self._touched.add(change.scope)
        if change.drops_scope:
            self._dropped.add(change.scope)
            self._newest = {key: one for key, one in self._newest.items() if key[0] != change.scope}
        elif not is_log(change.kind):
            self._newest[change.scope, change.kind, change.key] = change

    def mark(self) -> tuple[int, int, int, int]:
        """Where a savepoint begins, for `rewind`."""
        return self.head, self._bytes, len(self.appended), len(self.requests)

    def rewind(self, mark: tuple[int, int, int, int]) -> None:
        self.head, self._bytes, count, requests = mark
        del self.requests[requests:]
        if count < len(self.appended):
            del self.appended[count:]
            self._newest, self._dropped, self._touched = {}, set(), set()
            for change in self.appended:
                self._note(change)

    def write_down(self) -> None:
        """The rows of everything that was appended. Called once, before the commit."""
        if not self.appended:
            return
        bytes_upto, rows = self._committed[1], []
        for change in self.appended:
            bytes_upto += change_bytes(change)
            rows.append((*msgspec.structs.astuple(change), bytes_upto))
        self._execute_each(INSERT_CHANGE, rows).fetchall()
        for scope in self._dropped:
            self._execute(DELETE_STATE_OF_SCOPE, (scope,)).fetchall()
        kept = [(*key, one.sequence, one.doc) for key, one in self._newest.items() if one.doc is not None]
        gone = [key for key, one in self._newest.items() if one.doc is None]
        if kept:
            self._execute_each(UPSERT_STATE, kept).fetchall()
        if gone:
            self._execute_each(DELETE_STATE, gone).fetchall()
        self._trim()

    def committed(self) -> list[Change]:
        """The transaction is durable: returns its changes and begins the next one."""
        changes = self.appended
        self._begin()
        return changes

    def undone(self) -> None:
        """The whole transaction is gone."""
        self.head, self._bytes, *_ = self._committed
        self._candidate = None  # rows that were deleted are there again
        self._begin()

    def _trim(self) -> None:
        """Delete the oldest changes beyond the tail."""
        while oldest := self._trim_candidate():
            sequence, bytes_upto = oldest
            rows_after, bytes_after = self.head - sequence, self._bytes - bytes_upto
            if rows_after < self._tail_rows_max and bytes_after < self._tail_bytes_max:
                return
            if sequence >= self.head:
                return  # the head stays: the next sequence is counted from it
            self._execute(DELETE_CHANGES_UPTO, (sequence,))
            self._candidate = None

    def _trim_candidate(self) -> tuple[int, int] | None:
        """The newest of the TRIM_ROWS oldest rows, None while there are fewer. New rows are added at the
        other end.
        """
        if self._candidate is None:
            self._candidate = self._execute(SELECT_TRIM_CANDIDATE, (TRIM_ROWS - 1,)).fetchone()
        return self._candidate


class NoOutbox(Outbox):
    """For a database without a feed, so that it can use the same writer: nothing can be emitted."""

    def __init__(self) -> None:
        self.head = self._bytes = 0
        self._begin()

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, first: Group) -> int:
        raise TypeError("this database has no feed")

    def drop_scope(self, scope: str, first: Group) -> int:
        raise TypeError("this database has no feed")

    def newest_of(self, scope: str, keys: Sequence[tuple[str, str]]) -> list[bytes | None]:
        raise TypeError("this database has no feed")
