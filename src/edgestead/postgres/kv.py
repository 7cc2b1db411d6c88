"""The key-value store of a cluster: rows in PostgreSQL, read and written by every control node.

Owns  statements of the key-value rows; groups of writes; what is tried again when the database fails over.
Not   parts of large values (`postgres.blobs`); what may be stored (`model.kv`).

One thread of a node writes. What is queued meanwhile becomes a group: its puts are one statement, and so are
its deletions, as long as no key is in both; each is a transaction by itself. Keys are sorted, so that two
nodes do not wait for one another in a circle. The last commit of a key wins.

    Away (nothing written)     tried again for HOLD_SECONDS, then Unavailable
    Unknown (perhaps written)  Unavailable at once: written twice, it could undo what another wrote in between
    the process's row is gone  NotLeader: nothing was written

Each write holds the row that its process had when it was asked for (`postgres.incarnations`): a process that
stood still since, while another one took its place, lands nothing.

A namespace is a number in `kv_spaces`, as on SQLite; `octets` is its size once a quota needs it. A namespace
with a size is locked by each of its puts.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

import psycopg

from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.kv import SpaceQuota
from edgestead.model.seldom import Seldom
from edgestead.postgres.blobs import PostgresBlobs, is_elsewhere
from edgestead.postgres.connection import Away, Link, Misconfigured, Row, Trouble
from edgestead.postgres.incarnations import HELD
from edgestead.postgres.kv_reads import Ask, Reads
from edgestead.postgres.pool import Pool
from edgestead.store.control import Committed
from edgestead.store.controllog import NotLeader
from edgestead.store.kv import (
    BLOB_GRACE_SECONDS,
    Allowance,
    Blob,
    BlobStore,
    Bodies,
    Entry,
    Page,
    Pair,
    Soon,
    Value,
)
from edgestead.store.kv_values import BlobValue, InlineValue, page_of, range_of

WRITES_QUEUED_MAX = 4_096  # above it a write is refused instead of waiting for seconds
GROUP_WRITES_MAX = 256  # calls whose keys are in one statement
GROUP_BYTES_MAX = 4 << 20  # of one statement; a longer write is several in one transaction
HOLD_SECONDS = 5.0  # a write waits for a failover so long
RETRY_SECONDS = 0.1
REOPENS_MAX = 8  # of a value that is replaced while it is read; each try sees a newer row
DEADLOCKS_MAX = 5  # in a row, of one group
SLICE_MS_MAX = 10_000  # from one statement of a long put to the next; others wait for its namespace
SWEEP_ROWS = 500
DROPPED_GRACE_SECONDS = 3_600  # a put that had read the number of a dropped namespace is over by then
KNOWN_MAX = 16_384  # namespaces whose row is known to be there; all are forgotten at once

LIVE = (
    "FROM kv_entries e JOIN kv_spaces s ON s.number = e.space WHERE s.id = %s AND e.key = %b "
    "AND (e.expires_at_s IS NULL OR e.expires_at_s > %b)"
)
SELECT_VALUE = f"SELECT expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value {LIVE}"
SELECT_ENTRY = f"SELECT expires_at_s, metadata {LIVE}"
SELECT_PAGE = (
    "SELECT key, expires_at_s, metadata FROM kv_entries "
    "WHERE space = (SELECT number FROM kv_spaces WHERE id = %s) AND key >= %b AND key < %b "
    "AND (expires_at_s IS NULL OR expires_at_s > %b) ORDER BY key LIMIT %b"
)
SELECT_SPACES = "SELECT id FROM kv_spaces ORDER BY id"
ROW_OCTETS = (
    "octet_length({0}.key) + coalesce(octet_length({0}.metadata), 0) "
    "+ coalesce({0}.blob_bytes, octet_length({0}.value))"
)
E_OCTETS = ROW_OCTETS.format("e")

ADD_SPACES = "INSERT INTO kv_spaces (id) SELECT unnest(%b::text[]) ON CONFLICT (id) DO NOTHING"
COUNTED_SPACES = "SELECT id FROM kv_spaces WHERE id = ANY(%b::text[]) AND octets IS NOT NULL"
LOCK_SPACES = "SELECT id, number, octets FROM kv_spaces WHERE id = ANY(%b::text[]) ORDER BY id FOR UPDATE"
COUNT_OCTETS = f"SELECT coalesce(sum({E_OCTETS}), 0)::bigint FROM kv_entries e WHERE space = %b"
SET_OCTETS = "UPDATE kv_spaces SET octets = %b WHERE number = %b"
END_PUT = f"WITH {HELD} UPDATE kv_spaces SET octets = %b WHERE number = %b AND EXISTS (SELECT 1 FROM me)"
HELD_OCTETS = (
    f"SELECT coalesce(sum({E_OCTETS}), 0)::bigint FROM kv_entries e JOIN kv_spaces s ON s.number = e.space "
    "WHERE s.id = %s AND e.key = ANY(%b::bytea[])"
)
# Nothing is written unless every row finds its namespace, without a size (the last parameters): a namespace
# may have been dropped, or counted, by another node.
UPSERT = (
    f"WITH {HELD}, "
    "given AS MATERIALIZED (SELECT s.number AS space, g.key, g.expires_at_s, g.metadata, g.blob_id, "
    "g.blob_bytes, g.blob_sha256, g.value FROM unnest(%b::text[], %b::bytea[], %b::bigint[], %b::bytea[], "
    "%b::text[], %b::bigint[], %b::bytea[], %b::bytea[]) "
    "AS g(id, key, expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value) "
    "JOIN kv_spaces s ON s.id = g.id AND (s.octets IS NULL OR %b)), "
    "whole AS (SELECT 1 FROM given HAVING count(*) = %b AND EXISTS (SELECT 1 FROM me)), "
    "replaced AS (DELETE FROM kv_blobs b WHERE EXISTS (SELECT 1 FROM whole) AND (b.id = ANY(%b::text[]) "
    "OR b.id IN (SELECT e.blob_id FROM kv_entries e JOIN given g ON g.space = e.space AND g.key = e.key "
    "WHERE e.blob_id IS NOT NULL))) "
    "INSERT INTO kv_entries (space, key, expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value) "
    "SELECT given.* FROM given WHERE EXISTS (SELECT 1 FROM whole) ORDER BY space, key "
    "ON CONFLICT (space, key) DO UPDATE SET "
    "expires_at_s = excluded.expires_at_s, metadata = excluded.metadata, blob_id = excluded.blob_id, "
    "blob_bytes = excluded.blob_bytes, blob_sha256 = excluded.blob_sha256, value = excluded.value"
)
# What every deletion takes along: the blobs of its rows, and their octets of counted namespaces.
_TAKING_ALONG = (
    "blobs AS (DELETE FROM kv_blobs b USING gone WHERE b.id = gone.blob_id), "
    "less AS (SELECT space, sum(octets)::bigint AS octets FROM gone GROUP BY space), "
    "counted AS (UPDATE kv_spaces s SET octets = s.octets - less.octets FROM less "
    "WHERE s.number = less.space AND s.octets IS NOT NULL) "
)
DELETE_KEYS = (
    f"WITH {HELD}, given AS MATERIALIZED (SELECT s.number AS space, g.id, g.key "
    "FROM unnest(%b::text[], %b::bytea[]) AS g(id, key) JOIN kv_spaces s ON s.id = g.id), "
    "locked AS MATERIALIZED (SELECT e.space, e.key FROM kv_entries e JOIN given g ON g.space = e.space "
    "AND g.key = e.key WHERE EXISTS (SELECT 1 FROM me) ORDER BY e.space, e.key FOR UPDATE OF e), "
    "gone AS (DELETE FROM kv_entries e USING locked l, given g WHERE e.space = l.space AND e.key = l.key "
    "AND g.space = l.space AND g.key = l.key "
    f"RETURNING g.id, e.space, e.key, e.blob_id, {E_OCTETS} AS octets), "
    f"{_TAKING_ALONG} SELECT gone.id, gone.key FROM me LEFT JOIN gone ON true"
)
DELETE_EXPIRED = (
    "WITH old AS MATERIALIZED (SELECT space, key FROM kv_entries WHERE expires_at_s <= %b "
    "ORDER BY space, key LIMIT %b FOR UPDATE SKIP LOCKED), "
    "gone AS (DELETE FROM kv_entries e USING old WHERE e.space = old.space AND e.key = old.key "
    f"RETURNING e.space, e.key, e.blob_id, {E_OCTETS} AS octets), {_TAKING_ALONG} SELECT 1 FROM gone"
)
DELETE_OF_DROPPED = (
    "WITH old AS MATERIALIZED (SELECT e.space, e.key FROM kv_entries e "
    "JOIN kv_dropped d ON d.number = e.space LIMIT %b FOR UPDATE OF e SKIP LOCKED), "
    "gone AS (DELETE FROM kv_entries e USING old WHERE e.space = old.space AND e.key = old.key "
    f"RETURNING e.space, e.key, e.blob_id, {E_OCTETS} AS octets), {_TAKING_ALONG} SELECT 1 FROM gone"
)
DROP_SPACE = (
    f"WITH {HELD}, "
    "gone AS (DELETE FROM kv_spaces WHERE id = %s AND EXISTS (SELECT 1 FROM me) RETURNING number), "
    "kept AS (INSERT INTO kv_dropped (number, dropped_s) SELECT number, %b FROM gone) SELECT 1 FROM me"
)
FORGET_DROPPED = (
    "DELETE FROM kv_dropped d WHERE dropped_s < %b "
    "AND NOT EXISTS (SELECT 1 FROM kv_entries e WHERE e.space = d.number)"
)
DELETE_STRAYS = (
    "DELETE FROM kv_blobs b WHERE b.id IN (SELECT id FROM kv_blobs WHERE written_s < %b LIMIT %b) "
    "AND NOT EXISTS (SELECT 1 FROM kv_entries e WHERE e.blob_id = b.id)"
)

log = logging.getLogger(__name__)


class _Job:
    """One queued write, and its result until its group is over. `place` is the number of the row it holds."""

    def __init__(self, place: int | None) -> None:
        self.place = place
        self.future: Future[Committed] = Future()
        self.value = 0
        self.error: BaseException | None = None

    @property
    def can_repeat(self) -> bool:
        return True

    def settle(self) -> None:
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(Committed(self.value, 0))


class _Put(_Job):
    def __init__(self, place: int | None, namespace: str, pairs: Iterable[Pair]) -> None:
        super().__init__(place)
        self.namespace = namespace
        self.rest = iter(pairs)  # what is not in `first`
        self.first: list[Pair] = []
        self.is_whole = False
        self.reads = 0
        self.blobs: list[str] = []  # of its pairs

    @property
    def can_repeat(self) -> bool:
        """Whether all that was read of it is still here."""
        return self.reads < 2

    def read(self) -> list[Pair]:
        """The next pairs, up to GROUP_BYTES_MAX of them. Raises what the caller's iterator raises."""
        self.reads += 1
        taken, length = [], 0
        for pair in self.rest:
            taken.append(pair)
            if isinstance(pair.content, Blob):
                self.blobs.append(pair.content.id)
            else:
                length += len(pair.content)
            length += len(pair.key) + len(pair.metadata or b"")
            if length >= GROUP_BYTES_MAX:
                return taken
        self.is_whole = True
        return taken


class _Delete(_Job):
    def __init__(self, place: int | None, namespace: str, keys: Iterable[str]) -> None:
        super().__init__(place)
        self.namespace, self.keys = namespace, keys


class _Call(_Job):
    """Anything else: it runs alone."""

    def __init__(self, place: int | None, fn: Callable[[Link], int]) -> None:
        super().__init__(place)
        self.fn = fn


class _Run:
    """Jobs of a group that are written by two statements: the puts, and the deletions of other keys. They all
    hold the row of the first one's `place`.
    """

    def __init__(self, place: int | None) -> None:
        self.place = place
        self.puts: list[_Put] = []
        self.deletes: list[_Delete] = []
        self.pairs: dict[tuple[str, bytes], Pair] = {}
        self.overtaken: list[str] = []  # blobs of pairs that another pair of the run replaces
        self.deleted: dict[tuple[str, bytes], _Delete] = {}
        self.length = 0
        self.was_refused = False  # its puts, all of them: nothing was written

    def add_put(self, job: _Put) -> bool:
        """False when it has to come after what is here."""
        keyed = [((job.namespace, pair.key.encode()), pair) for pair in job.first]
        length = sum(len(p.content) if isinstance(p.content, bytes) else 0 for p in job.first)
        if any(key in self.deleted for key, _ in keyed) or (
            self.puts and self.length + length > GROUP_BYTES_MAX
        ):
            return False
        self.puts.append(job)
        self.length += length
        for key, pair in keyed:
            before = self.pairs.get(key)
            if before is not None and isinstance(before.content, Blob):
                self.overtaken.append(before.content.id)
            self.pairs[key] = pair
        job.value = len(keyed)
        return True

    def add_delete(self, job: _Delete, keys: list[bytes]) -> bool:
        keyed = [(job.namespace, key) for key in keys]
        if any(key in self.pairs for key in keyed):
            return False
        self.deletes.append(job)
        for key in keyed:
            self.deleted.setdefault(key, job)
        return True


class PostgresKvStore:
    """A `KvStore`. `allowance` is called for each put, on the writer's thread; None is no quota.

    `place` is the number of the row that a write asked for now has to hold, called on its caller's thread;
    None where no other process can take this one's place. Nothing is opened before its first use. `spool_dir`
    as in `PostgresBlobs`.
    """

    def __init__(
        self,
        dsn: str,
        *,
        spool_dir: str | None = None,
        bodies: Bodies | None = None,
        allowance: Callable[[str], Allowance] | None = None,
        place: Callable[[], int | None] = lambda: None,
        now_s: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowance, self._place, self._now_s, self._monotonic = allowance, place, now_s, monotonic
        self._parts = PostgresBlobs(dsn, spool_dir=spool_dir, bodies=bodies, now_s=now_s)
        self.blobs: BlobStore = self._parts
        self._pool = Pool(dsn, "edgestead kv reads")
        self._reads = Reads(self._pool, self._opened, is_elsewhere)
        self.soon: Soon | None = self._reads
        self._link = Link(dsn, name="edgestead kv writes")
        self._known: set[str] = set()
        self.trouble = ""  # why the last group could not be written; "" when it could
        self._failures = Seldom(now=monotonic)
        self._away_since_s: float | None = None
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._door = threading.Lock()  # nothing may be queued after the None that ends the queue
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="kv-writer", daemon=True)
        self._thread.start()

    # Reads

    def get(self, namespace: str, key: str, now_s: int) -> Value | None:
        return self._reads.get(namespace, key, now_s).result()

    def _opened(self, pool: Pool, ask: Ask, row: Row | None) -> Value | None:
        """The value of a row that was read with others."""
        for _ in range(REOPENS_MAX):
            if row is None:
                return None
            expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value = row
            entry = Entry(ask.key, expires_at_s, metadata)
            if blob_id is None:
                return InlineValue(entry, value)
            blob = Blob(blob_id, blob_bytes, blob_sha256)
            try:
                return BlobValue(entry, blob.length, self.blobs.open(blob))
            except FileNotFoundError:  # replaced or deleted since the row was read
                rows = pool.rows(SELECT_VALUE, (ask.namespace, ask.key.encode(), ask.now_s))
                row = rows[0] if rows else None
        raise Unavailable()

    def entry(self, namespace: str, key: str, now_s: int) -> Entry | None:
        rows = self._pool.rows(SELECT_ENTRY, (namespace, key.encode(), now_s))
        return Entry(key, *rows[0]) if rows else None

    def page(self, namespace: str, *, now_s: int, limit: int, prefix: str = "", cursor: str = "") -> Page:
        first, behind = range_of(prefix, cursor)
        values = (namespace, first, behind, now_s, limit + 1)
        rows: list[Any] = self._pool.rows(SELECT_PAGE, values)
        return page_of(rows, limit)

    def namespaces(self) -> list[str]:
        return [id_ for (id_,) in self._pool.rows(SELECT_SPACES)]

    # Writes

    def put(self, namespace: str, pairs: Iterable[Pair]) -> Future[Committed]:
        return self._queued(_Put(self._place(), namespace, pairs))

    def delete(self, namespace: str, keys: Iterable[str]) -> Future[Committed]:
        return self._queued(_Delete(self._place(), namespace, keys))

    def drop(self, namespace: str) -> Future[Committed]:
        place = self._place()

        def drop(link: Link) -> int:
            self._known.discard(namespace)
            if not link.rows(DROP_SPACE, (place, place, namespace, int(self._now_s()))):
                raise NotLeader
            return 0

        return self._queued(_Call(place, drop))

    def sweep(self, now_s: int) -> int:
        """Raises Unavailable."""
        removed: int = self._queued(_Call(None, lambda link: _sweep(link, now_s))).result().value
        if not removed:
            self._parts.sweep_elsewhere()  # on the caller's thread: no write waits for it
        return removed

    def sweep_elsewhere(self) -> int:
        """Once more: how many values' bytes left the object store. Raises Unavailable."""
        return self._parts.sweep_elsewhere()

    def close(self) -> None:
        """Finish the queue, then close. Idempotent."""
        with self._door:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join()
        self._link.close()
        self._reads.close()
        self._pool.close()
        self._parts.close()

    def _queued(self, job: _Job) -> Future[Committed]:
        with self._door:
            if self._closing or self._queue.qsize() >= WRITES_QUEUED_MAX:
                raise Unavailable()
            self._queue.put(job)
        return job.future

    # The writer's thread

    def _work(self) -> None:
        open_ = True
        while open_:
            jobs: list[_Job] = []
            open_ = self._drain_into(jobs)
            try:
                self._write(jobs)
            except BaseException as error:  # a fault of this module must not end the thread
                log.exception("a group of key-value writes failed")
                for job in jobs:
                    job.error = job.error or error
            for job in jobs:
                job.settle()

    def _drain_into(self, jobs: list[_Job]) -> bool:
        """Wait for a first job, then take all that are queued; False once the queue has ended."""
        try:
            while len(jobs) < GROUP_WRITES_MAX:
                job = self._queue.get(block=not jobs)
                if job is None:
                    return False
                if job.future.set_running_or_notify_cancel():
                    jobs.append(job)
        except Empty:
            pass
        return True

    def _write(self, jobs: list[_Job]) -> None:
        run = _Run(None)
        for job in jobs:
            if job.place != run.place or not self._joins(run, job):
                self._write_run(run)
                run = _Run(job.place)
                if not self._joins(run, job):
                    self._alone(job)
        self._write_run(run)

    def _joins(self, run: _Run, job: _Job) -> bool:
        """Whether a job needs nothing more than to be written with the run; also when it has failed."""
        try:
            if isinstance(job, _Put):
                if not job.first and not job.is_whole:
                    job.first = job.read()
                return job.is_whole and self._allowance is None and run.add_put(job)
            if isinstance(job, _Delete):
                job.keys = list(job.keys)
                return run.add_delete(job, [key.encode() for key in job.keys])
        except BaseException as error:  # of the caller's iterator
            self._failed(job, error)
            return True
        return False

    def _alone(self, job: _Job) -> None:
        assert not isinstance(job, _Delete)
        if isinstance(job, _Put):
            self._try([job], lambda link: self._put_counted(link, job))
        else:
            assert isinstance(job, _Call)
            self._try([job], job.fn)

    def _write_run(self, run: _Run) -> None:
        if run.puts:
            self._try(run.puts, lambda link: self._put_all(link, run))
            for job in run.puts if run.was_refused else ():
                self._alone(job)
        if run.deletes:
            self._try(run.deletes, lambda link: _delete_all(link, run))

    def _try(self, jobs: Sequence[_Job], fn: Callable[[Link], int | None]) -> None:
        """Run `fn`, again while nothing was written; then the jobs have failed, or their values."""
        deadlocks = 0
        while True:
            try:
                value = fn(self._link)
            except Away as error:
                if self._holds() and all(job.can_repeat for job in jobs):
                    time.sleep(RETRY_SECONDS)
                    continue
                return self._unavailable(jobs, error)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
                deadlocks += 1
                if deadlocks < DEADLOCKS_MAX and all(job.can_repeat for job in jobs):
                    continue
                return self._unavailable(jobs, error)
            except (Trouble, Misconfigured, psycopg.Error) as error:
                return self._unavailable(jobs, error)
            except BaseException as error:  # of a caller's iterator, or SpaceQuota
                for job in jobs:
                    self._failed(job, error)
                return
            self.trouble, self._away_since_s = "", None
            if value is not None:
                for job in jobs:
                    job.value = value
            return

    def _holds(self) -> bool:
        """Whether a write still waits for a database that is away."""
        now_s = self._monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        return now_s - self._away_since_s < HOLD_SECONDS and not self._closing

    def _unavailable(self, jobs: Iterable[_Job], error: Exception) -> None:
        self.trouble = str(error) or type(error).__name__
        if times := self._failures.happened():
            log.error("key-values could not be written: %r (%d since the last line)", error, times)
        for job in jobs:
            job.error = Unavailable()
            job.error.__cause__ = error

    def _failed(self, job: _Job, error: BaseException) -> None:
        """Nothing of it was written, for sure: its blobs go."""
        job.error = error
        if isinstance(job, _Put):
            self.blobs.remove(job.blobs)

    def _put_all(self, link: Link, run: _Run) -> None:
        self._add_spaces(link, {namespace for namespace, _ in run.pairs})
        if not run.pairs or _upsert(link, run.place, run.pairs, run.overtaken, is_counted=False):
            return
        # The row is gone, or a namespace was dropped, or is counted because of a quota that another node has:
        # each put by itself, with an outcome of its own.
        self._known.clear()
        run.was_refused = True

    def _add_spaces(self, link: Link, namespaces: set[str]) -> None:
        new = sorted(namespaces - self._known)
        if new:
            link.run(ADD_SPACES, (new,))
            if len(self._known) > KNOWN_MAX:
                self._known.clear()
            self._known.update(new)

    def _put_counted(self, link: Link, job: _Put) -> int:
        """One put of any length, in a transaction that keeps the size of its namespace."""
        allowed = self._allowance(job.namespace) if self._allowance is not None else Allowance()
        count = added = 0
        link.run(ADD_SPACES, ([job.namespace],))
        with link.transaction(idle_ms_max=SLICE_MS_MAX):
            together = {job.namespace, *(allowed.siblings if allowed.account_bytes else ())}
            spaces = {id_: (n, octets) for id_, n, octets in link.rows(LOCK_SPACES, (sorted(together),))}
            if job.namespace not in spaces:
                raise Away("the namespace was dropped meanwhile")
            is_counted = self._allowance is not None or spaces[job.namespace][1] is not None
            sizes = {id_: _counted(link, *space) for id_, space in spaces.items()} if is_counted else {}
            for pairs in _slices(job):
                count += len(pairs)
                keyed = {(job.namespace, pair.key.encode()): pair for pair in pairs}
                kept = {pair.content.id for pair in keyed.values() if isinstance(pair.content, Blob)}
                overtaken = [
                    pair.content.id
                    for pair in pairs
                    if isinstance(pair.content, Blob) and pair.content.id not in kept
                ]
                if is_counted:
                    ((held,),) = link.rows(HELD_OCTETS, (job.namespace, [key for _, key in keyed]))
                    added += sum(map(_octets_of, keyed.values())) - held
                _upsert(link, None, keyed, overtaken, is_counted=True)
            if is_counted:
                _check_quota(allowed, sizes, job.namespace, added)
            octets = sizes[job.namespace] + added if is_counted else None
            if link.run(END_PUT, (job.place, job.place, octets, spaces[job.namespace][0])) != 1:
                raise NotLeader
        return count


def _slices(job: _Put) -> Iterator[list[Pair]]:
    yield job.first
    while not job.is_whole:
        yield job.read()


def _upsert(
    link: Link,
    place: int | None,
    keyed: dict[tuple[str, bytes], Pair],
    overtaken: list[str],
    *,
    is_counted: bool,
) -> bool:
    """Whether all were written; none are otherwise."""
    if not keyed:
        return True
    order = sorted(keyed)
    rows = [_columns(keyed[key]) for key in order]
    columns = [list(column) for column in zip(*rows, strict=True)]
    ids, keys = [namespace for namespace, _ in order], [key for _, key in order]
    changed = link.run(UPSERT, (place, place, ids, keys, *columns, is_counted, len(order), overtaken))
    return changed == len(order)


def _columns(pair: Pair) -> tuple[object, ...]:
    content = pair.content
    if isinstance(content, Blob):
        return pair.expires_at_s, pair.metadata, content.id, content.length, content.sha256, None
    return pair.expires_at_s, pair.metadata, None, None, None, content


def _delete_all(link: Link, run: _Run) -> None:
    counts: Counter[_Delete] = Counter()
    order = sorted(run.deleted)
    if order:
        values = (run.place, run.place, [namespace for namespace, _ in order], [key for _, key in order])
        if not (rows := link.rows(DELETE_KEYS, values)):
            raise NotLeader
        for namespace, key in rows:
            if key is not None:
                counts[run.deleted[namespace, key]] += 1
    for job in run.deletes:
        job.value = counts[job]


def _sweep(link: Link, now_s: int) -> int:
    removed = len(link.rows(DELETE_EXPIRED, (now_s, SWEEP_ROWS)))
    removed = removed or len(link.rows(DELETE_OF_DROPPED, (SWEEP_ROWS,)))
    if not removed:
        link.run(FORGET_DROPPED, (now_s - DROPPED_GRACE_SECONDS,))
        removed = link.run(DELETE_STRAYS, (now_s - BLOB_GRACE_SECONDS, SWEEP_ROWS))
    return removed


def _counted(link: Link, number: int, octets: int | None) -> int:
    """The size of a locked namespace. The first time it is counted and stored."""
    if octets is None:
        ((octets,),) = link.rows(COUNT_OCTETS, (number,))
        link.run(SET_OCTETS, (octets, number))
    assert octets is not None
    return octets


def _octets_of(pair: Pair) -> int:
    content = pair.content
    length = content.length if isinstance(content, Blob) else len(content)
    return len(pair.key.encode()) + len(pair.metadata or b"") + length


def _check_quota(allowed: Allowance, sizes: dict[str, int], namespace: str, added: int) -> None:
    """A write that makes a namespace smaller is never refused. Raises SpaceQuota."""
    if added <= 0:
        return
    for holder, limit, used in (
        ("namespace", allowed.namespace_bytes, sizes[namespace]),
        ("account", allowed.account_bytes, sum(sizes.values())),
    ):
        if 0 < limit < used + added:
            raise SpaceQuota(holder=holder, used_bytes=used, limit_bytes=limit)
