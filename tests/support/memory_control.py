"""Control data in memory: what `ControlStore` and `ChangeFeed` promise, written as plainly as it goes.

Owns  `MemoryControlStore` and its feed over a `Database` that outlives them.
Not   SQL: an SQLite database in memory runs it, and each read has a copy of the last committed one.
"""

import itertools
import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn

import apsw

from edgestead.model.refusals import BadRequest, Unavailable
from edgestead.store.changes import (
    DOC_BYTES_MAX,
    KIND_DROP_SCOPE,
    LIVES_MAX,
    SLICE_ROWS_MAX,
    TAIL_BYTES_MAX,
    TAIL_ROWS_MAX,
    Change,
    change_bytes,
    is_log,
)
from edgestead.store.control import Committed

Listener = Callable[[Sequence[Change]], None]


class Database:
    """What is committed: the rows, every change there ever was, and the head at each opening."""

    def __init__(self, schema: str) -> None:
        db = apsw.Connection(":memory:")
        db.execute(schema).fetchall()
        self.image = db.serialize("main")
        self.changes: list[Change] = []
        self.lives: list[tuple[str, int]] = []

    def connect(self, *, only_read: bool = False) -> apsw.Connection:
        db = apsw.Connection(":memory:")
        db.deserialize("main", self.image)
        db.execute(f"PRAGMA query_only = {int(only_read)}").fetchall()
        return db


class MemoryReader:
    def __init__(self, db: apsw.Connection, changes: list[Change]) -> None:
        self._execute, self._changes = db.execute, changes

    def documents(self, scope: str, kind: str) -> Iterator[tuple[str, bytes]]:
        for (of, what, key), change in documents(self._changes).items():
            if (of, what) == (scope, kind) and change.doc is not None:
                yield key, change.doc

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        return self._execute(sql, parameters).fetchone()


class MemoryTransaction(MemoryReader):
    """`changes` are all that there are, those of this transaction's group the last: from `begun` on."""

    def __init__(self, db: apsw.Connection, changes: list[Change], begun: int) -> None:
        super().__init__(db, changes)
        self._db, self._begun, self.sequence = db, begun, 0

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        self._execute(sql, parameters).fetchall()
        return self._db.changes()

    def run_each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self.run(sql, row)

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, *, first: Any = "") -> int:
        if not scope or not kind:
            raise ValueError("a change needs a scope and a kind")
        if doc is None and is_log(kind):
            raise ValueError("a log's document cannot be taken back")
        if doc is not None and len(doc) > DOC_BYTES_MAX:
            raise BadRequest(reason="the document is too large")
        return self._append(scope, kind, key, doc, first)

    def drop_scope(self, scope: str, *, first: Any = "") -> int:
        if not scope:
            raise ValueError("a change needs a scope")
        return self._append(scope, KIND_DROP_SCOPE, "", None, first)

    def _append(self, *change: Any) -> int:
        self.sequence = len(self._changes) + 1
        self._changes.append(Change(self.sequence, *change))
        return self.sequence

    def answered(self, request: Any) -> None: ...

    def touches(self, scope: str) -> bool:
        return any(change.scope == scope for change in self._changes[self._begun :])

    def newest(self, scope: str, kind: str, key: str) -> bytes | None:
        found = documents(self._changes).get((scope, kind, key))
        return None if found is None else found.doc

    def end(self) -> None:
        self.run = self.run_each = self.row = self.rows = ended  # type: ignore[method-assign]
        self.emit = self.drop_scope = self.newest = self.touches = ended  # type: ignore[method-assign]


def ended(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("used after its function had returned")


def documents(changes: Iterable[Change]) -> dict[tuple[str, str, str], Change]:
    """The newest of each key, logs apart."""
    newest: dict[tuple[str, str, str], Change] = {}
    for change in changes:
        key = (change.scope, change.kind, change.key)
        if change.drops_scope:
            newest = {one: kept for one, kept in newest.items() if one[0] != change.scope}
        elif change.doc is None:
            newest.pop(key, None)
        elif not is_log(change.kind):
            newest[key] = change
    return newest


class Job:
    def __init__(self, fn: Callable[[MemoryTransaction], Any]) -> None:
        self.fn, self.future = fn, Future[Committed]()
        self.settle: Callable[[], None] = lambda: None


class MemoryControlStore:
    def __init__(
        self, database: Database, *, tail_rows_max: int = TAIL_ROWS_MAX, tail_bytes_max: int = TAIL_BYTES_MAX
    ) -> None:
        self._database = database
        database.lives.append((secrets.token_hex(16), len(database.changes)))
        self.feed = MemoryFeed(database, tail_rows_max, tail_bytes_max)
        self.groups, self._closed = 0, False
        self._commit_listeners: list[Listener] = []
        self._group_listeners: list[Listener] = []
        self._mine = threading.local()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def read(self, fn: Callable[[MemoryReader], Any]) -> Any:
        """A read inside a read sees the outer one's snapshot."""
        if self._closed:
            raise Unavailable()
        outer = getattr(self._mine, "reader", None)
        self._mine.reader = outer or MemoryReader(
            self._database.connect(only_read=True), list(self._database.changes)
        )
        try:
            return fn(self._mine.reader)
        except apsw.ReadOnlyError as error:
            raise Unavailable() from error
        finally:
            self._mine.reader = outer

    read_one = read

    def write(self, fn: Callable[[MemoryTransaction], Any]) -> Future[Committed]:
        if self._closed:
            raise Unavailable()
        job = Job(fn)
        self._jobs.put(job)
        return job.future

    def on_commit(self, listener: Listener) -> None:
        self._commit_listeners.append(listener)

    def on_group(self, listener: Listener) -> None:
        self._group_listeners.append(listener)

    def off_group(self, listener: Listener) -> None:
        self._group_listeners = [one for one in self._group_listeners if one != listener]

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        open_ = True
        while open_:
            group = [self._jobs.get()]
            while not self._jobs.empty():
                group.append(self._jobs.get())
            open_ = group[-1] is not None
            jobs = [job for job in group if job and job.future.set_running_or_notify_cancel()]
            if jobs:
                self._run(jobs)

    def _run(self, jobs: list[Job]) -> None:
        database = self._database
        db, changes = database.connect(), list(database.changes)
        for job in jobs:
            self._run_one(job, db, changes, len(database.changes))
        made = changes[len(database.changes) :]
        database.image, database.changes = db.serialize("main"), changes
        if made:
            tell(self._commit_listeners, made)
        self.groups += 1
        for job in jobs:
            job.settle()
        tell(self._group_listeners, made)

    @staticmethod
    def _run_one(job: Job, db: apsw.Connection, changes: list[Change], begun: int) -> None:
        before, count = db.serialize("main"), len(changes)
        transaction = MemoryTransaction(db, changes, begun)
        try:
            value = job.fn(transaction)
        except BaseException as error:
            db.deserialize("main", before)
            del changes[count:]
            job.settle = lambda error=error: job.future.set_exception(error)  # type: ignore[misc]
        else:
            committed = Committed(value, transaction.sequence, count)
            job.settle = lambda: job.future.set_result(committed)
        finally:
            transaction.end()


def tell(listeners: list[Listener], changes: Sequence[Change]) -> None:
    for listener in listeners:
        try:
            listener(changes)
        except Exception:  # its own fault, and nobody else's
            continue


class MemoryFeed:
    """Has every change, and tells only those that a tail of its limits would keep."""

    def __init__(self, database: Database, rows_max: int, bytes_max: int) -> None:
        self._database, self._rows_max, self._bytes_max = database, rows_max, bytes_max
        self._lives = database.lives[-LIVES_MAX:]
        self.feed_id = self._lives[-1][0]

    def includes(self, feed_id: str, sequence: int) -> bool:
        ends = {name: head for (name, _), (_, head) in itertools.pairwise(self._lives)}
        end = self.head() if feed_id == self.feed_id else ends.get(feed_id, -1)
        return 0 <= sequence <= end

    def head(self) -> int:
        return len(self._database.changes)

    def _kept(self) -> list[Change]:
        kept: list[Change] = []
        size = 0
        for change in reversed(self._database.changes):
            if kept and (len(kept) >= self._rows_max or size >= self._bytes_max):
                break
            kept.insert(0, change)
            size += change_bytes(change)
        return kept

    def tail(self, after: int, bytes_max: int) -> list[Change] | None:
        kept, head = self._kept(), self.head()
        if after == head:
            return []
        if not kept or not kept[0].sequence - 1 <= after < head:
            return None
        found: list[Change] = []
        size = 0
        for change in kept[after - kept[0].sequence + 1 :]:
            size += change_bytes(change)
            if found and size > bytes_max:
                break
            found.append(change)
        return found

    def snapshot(self, kinds: frozenset[str], sink: Listener) -> int:
        changes = list(self._database.changes)
        newest = [one for _, one in sorted(documents(changes).items())]
        drops = {one.scope: one.sequence for one in changes if one.drops_scope}
        logs = [one for one in self._kept() if is_log(one.kind) and one.sequence > drops.get(one.scope, 0)]
        found = [
            Change(one.sequence, one.scope, one.kind, one.key, one.doc)
            for one in (*newest, *logs)
            if not kinds or one.kind in kinds
        ]
        for start in range(0, len(found), SLICE_ROWS_MAX):
            sink(found[start : start + SLICE_ROWS_MAX])
        return len(changes)
