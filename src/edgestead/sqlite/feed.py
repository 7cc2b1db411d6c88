"""Reading the change feed from SQLite.

Owns  resuming from the tail and scanning the newest documents, each in one snapshot.
Not   appending (`sqlite.outbox`); sockets.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from edgestead.sqlite.outbox import SELECT_NEWEST
from edgestead.store.changes import KIND_DROP_SCOPE, SLICE_ROWS_MAX, Change, change_bytes, is_log
from edgestead.store.control import ControlStore, Reader

SELECT_OLDEST = "SELECT sequence FROM outbox ORDER BY sequence LIMIT 1"
LIST_TAIL = (
    "SELECT sequence, scope, kind, key, doc, first FROM outbox WHERE sequence > ? ORDER BY sequence LIMIT ?"
)
LIST_STATE = (
    "SELECT sequence, scope, kind, key, doc FROM feed_state "
    "WHERE (scope, kind, key) > (?, ?, ?) ORDER BY scope, kind, key LIMIT ?"
)
# Scans the whole tail, which is bounded: an index would cost every write.
LIST_LOGS = (
    "SELECT sequence, scope, kind, key, doc FROM outbox "
    "WHERE sequence > ? AND kind >= 'log:' AND kind < 'log;' ORDER BY sequence LIMIT ?"
)
LIST_DROPS = "SELECT scope, max(sequence) FROM outbox WHERE kind = ? GROUP BY scope"


class Life(NamedTuple):
    """One opening of the database: its name, and the head at that moment."""

    feed_id: str
    head: int


class SqliteFeed:
    """The `ChangeFeed` of one control database. The last of `lives` is the current opening."""

    def __init__(self, store: ControlStore, lives: Sequence[Life]) -> None:
        self._store = store
        self.live_on(lives)

    def live_on(self, lives: Sequence[Life]) -> None:
        """There may be a further opening, by another process of a cluster."""
        # An earlier opening ends at the head of the next one's beginning.
        self._ends = {life.feed_id: after.head for life, after in pairwise(lives)}
        self._feed_id = lives[-1].feed_id

    @property
    def feed_id(self) -> str:
        return self._feed_id

    def includes(self, feed_id: str, sequence: int) -> bool:
        end = self.head() if feed_id == self._feed_id else self._ends.get(feed_id)
        return end is not None and 0 <= sequence <= end

    def head(self) -> int:
        return self._store.read(_head)

    def tail(self, after: int, bytes_max: int) -> list[Change] | None:
        return self._store.read(lambda reader: _tail(reader, after, bytes_max))

    def snapshot(self, kinds: frozenset[str], sink: Callable[[Sequence[Change]], None]) -> int:
        return self._store.read(lambda reader: _scan(reader, kinds, sink))


def _head(reader: Reader) -> int:
    newest = reader.row(SELECT_NEWEST)
    return newest[0] if newest else 0


def _tail(reader: Reader, after: int, bytes_max: int) -> list[Change] | None:
    head = _head(reader)
    if after == head:
        return []
    oldest = reader.row(SELECT_OLDEST)
    if oldest is None or not oldest[0] - 1 <= after < head:
        return None
    changes: list[Change] = []
    size = 0
    while slice_ := reader.rows(LIST_TAIL, (after, SLICE_ROWS_MAX)):
        for row in slice_:
            change = Change(*row)
            size += change_bytes(change)
            if changes and size > bytes_max:
                return changes
            changes.append(change)
        after = changes[-1].sequence
    return changes


def _scan(reader: Reader, kinds: frozenset[str], sink: Callable[[Sequence[Change]], None]) -> int:
    head = _head(reader)
    place = ("", "", "")
    while slice_ := reader.rows(LIST_STATE, (*place, SLICE_ROWS_MAX)):
        place = slice_[-1][1:4]
        sink([Change(*row) for row in slice_ if not kinds or row[2] in kinds])
    if not kinds or any(map(is_log, kinds)):
        _scan_logs(reader, kinds, sink)
    return head


def _scan_logs(reader: Reader, kinds: frozenset[str], sink: Callable[[Sequence[Change]], None]) -> None:
    dropped: dict[str, int] = dict(reader.rows(LIST_DROPS, (KIND_DROP_SCOPE,)))
    after = 0
    while slice_ := reader.rows(LIST_LOGS, (after, SLICE_ROWS_MAX)):
        after = slice_[-1][0]
        changes = [Change(*row) for row in slice_ if not kinds or row[2] in kinds]
        sink([change for change in changes if change.sequence > dropped.get(change.scope, 0)])
