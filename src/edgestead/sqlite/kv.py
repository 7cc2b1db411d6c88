"""The key-value store on SQLite: `kv.db` and the folder `kv-blobs` next to it.

Owns  tables and queries of the key-value rows; when a blob file may be removed.
Not   what may be stored (`model.kv`); which namespaces exist (`tables.namespaces`).

A namespace is a number in `spaces`. Dropping one deletes that row, so its data is gone at once, in one
small transaction; the sweep frees the rows later, a slice at a time.

A clock that is set forward while a value arrives may make its file a stray: then the put is refused.

`spaces.octets` is the size of a namespace, updated in the transaction of each change. It is NULL until a
quota first needs it, and all rows are counted once: without a quota it costs nothing.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain, islice
from pathlib import Path

from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.kv import SpaceQuota
from edgestead.sqlite.blobs import FileBlobs
from edgestead.sqlite.connection import unavailable
from edgestead.sqlite.database import Database
from edgestead.sqlite.witness import migration
from edgestead.store.control import Committed, Row, Transaction
from edgestead.store.kv import (
    BLOB_GRACE_SECONDS,
    Allowance,
    Blob,
    BlobStore,
    Entry,
    Page,
    Pair,
    Soon,
)
from edgestead.store.kv_values import BlobValue, InlineValue, page_of, range_of
from edgestead.store.migrations import Doing, Migration, quiet

DATABASE_NAME = "kv.db"
BLOBS_NAME = "kv-blobs"

SWEEP_ROWS = 500  # one slice: takes about as long as a small group of writes
SWEEP_BYTES = 4 << 20  # of values in one slice: freeing a long row touches each of its pages
SWEEP_BLOBS = 500  # looked up together
SWEEP_STRAYS = 16  # files removed at a time: no write passes meanwhile
BLOB_SWEEP_SECONDS = 3_600  # between two scans of their folder
REOPENS_MAX = 8  # a key that is replaced while it is read; each try sees a newer row

MIGRATIONS = (
    Migration(
        1,
        "entries",
        # Not WITHOUT ROWID: with values of a few KB inside, the key's tree would have four keys per page.
        # `value` is the last column so that a listing never reads past the metadata.
        """
        CREATE TABLE spaces (
          number integer PRIMARY KEY AUTOINCREMENT,
          id text NOT NULL UNIQUE
        );
        CREATE TABLE dropped_spaces (number integer PRIMARY KEY);
        CREATE TABLE entries (
          number integer PRIMARY KEY,
          space integer NOT NULL,
          key blob NOT NULL,
          expires_at_s integer,
          metadata blob,
          blob_id text,
          blob_bytes integer,
          blob_sha256 blob,
          value blob,
          CHECK ((blob_id IS NULL) <> (value IS NULL))
        );
        CREATE UNIQUE INDEX entries_by_key ON entries (space, key);
        CREATE INDEX entries_by_expiry ON entries (expires_at_s) WHERE expires_at_s IS NOT NULL;
        CREATE UNIQUE INDEX entries_by_blob ON entries (blob_id) WHERE blob_id IS NOT NULL;
        """,
    ),
    migration(2),
    Migration(3, "octets of a namespace", "ALTER TABLE spaces ADD COLUMN octets integer;"),
)

LIVE = (
    "FROM entries WHERE space = (SELECT number FROM spaces WHERE id = ?) AND key = ? "
    "AND (expires_at_s IS NULL OR expires_at_s > ?)"
)
SELECT_VALUE = f"SELECT expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value {LIVE}"
SELECT_ENTRY = f"SELECT expires_at_s, metadata {LIVE}"
SELECT_PAGE = (
    "SELECT key, expires_at_s, metadata FROM entries WHERE space = (SELECT number FROM spaces WHERE id = ?) "
    "AND key >= ? AND key < ? AND (expires_at_s IS NULL OR expires_at_s > ?) ORDER BY key LIMIT ?"
)
ROW_OCTETS = "length(key) + coalesce(length(metadata), 0) + coalesce(blob_bytes, length(value))"
SELECT_SPACE = "SELECT number, octets FROM spaces WHERE id = ?"
COUNT_OCTETS = f"SELECT coalesce(sum({ROW_OCTETS}), 0) FROM entries WHERE space = ?"
SET_OCTETS = "UPDATE spaces SET octets = ? WHERE number = ?"
TAKE_OCTETS = "UPDATE spaces SET octets = octets - ? WHERE number = ? AND octets IS NOT NULL"
# The second column: whether there is any blob. Usually not, and then pairs need no look-up of an old one.
HAS_ANY_BLOB = "EXISTS (SELECT 1 FROM entries WHERE blob_id IS NOT NULL)"
SELECT_SPACE_TO_WRITE = f"SELECT number, octets, {HAS_ANY_BLOB} FROM spaces WHERE id = ?"
INSERT_SPACE = f"INSERT INTO spaces (id) VALUES (?) RETURNING number, octets, {HAS_ANY_BLOB}"
SELECT_SPACES = "SELECT id FROM spaces ORDER BY id"
SELECT_REPLACED = f"SELECT blob_id, {ROW_OCTETS} FROM entries WHERE space = ? AND key = ?"
UPSERT = (
    "INSERT INTO entries (space, key, expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, key) DO UPDATE SET "
    "expires_at_s = excluded.expires_at_s, metadata = excluded.metadata, blob_id = excluded.blob_id, "
    "blob_bytes = excluded.blob_bytes, blob_sha256 = excluded.blob_sha256, value = excluded.value"
)
DELETE_KEY = "DELETE FROM entries WHERE space = ? AND key = ? RETURNING blob_id, 0"
DELETE_COUNTED = f"DELETE FROM entries WHERE space = ? AND key = ? RETURNING blob_id, {ROW_OCTETS}"
DELETE_SPACE = "DELETE FROM spaces WHERE id = ? RETURNING number"
INSERT_DROPPED = "INSERT INTO dropped_spaces (number) VALUES (?)"
SELECT_DROPPED = "SELECT number FROM dropped_spaces ORDER BY number LIMIT 1"
DELETE_DROPPED = "DELETE FROM dropped_spaces WHERE number = ?"
SELECT_EXPIRED = (
    f"SELECT number, length(value), space, {ROW_OCTETS} FROM entries WHERE expires_at_s <= ? LIMIT ?"
)
SELECT_OF_SPACE = "SELECT number, length(value), space, 0 FROM entries WHERE space = ? LIMIT ?"
DELETE_ROW = "DELETE FROM entries WHERE number = ? RETURNING blob_id"
SELECT_FREE = "SELECT freelist_count, page_size FROM pragma_freelist_count, pragma_page_size"
HAS_BLOB = "SELECT 1 FROM entries WHERE blob_id = ?"


class SqliteKvStore:
    """A `KvStore` in one folder: one writer thread, one read-only connection per reading thread.

    Several processes may open the same folder (`edgecli kv --local`); their writes wait for one another.
    `allowance` is called for each put, on the writer's thread; None is no quota.
    Raises on opening: SchemaError and its children, WritesLost, OSError, apsw.Error.
    """

    soon: Soon | None = None

    def __init__(
        self,
        folder: Path,
        *,
        blobs: BlobStore | None = None,
        ahead: bool = False,
        synced: bool = True,
        allowance: Callable[[str], Allowance] | None = None,
        doing: Doing = quiet,
    ) -> None:
        self._allowance = allowance
        self.blobs = blobs or FileBlobs(folder / BLOBS_NAME)
        self.database = Database(
            folder / DATABASE_NAME,
            {"kv": MIGRATIONS},
            name="kv-writer",
            ahead=ahead,
            synced=synced,
            doing=doing,
        )
        self._readers, self._writer = self.database.readers, self.database.writer
        self._blobs_swept_s = -math.inf

    def get(self, namespace: str, key: str, now_s: int) -> InlineValue | BlobValue | None:
        for _ in range(REOPENS_MAX):
            row = self._row(SELECT_VALUE, (namespace, key.encode(), now_s))
            if row is None:
                return None
            expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value = row
            entry = Entry(key, expires_at_s, metadata)
            if blob_id is None:
                return InlineValue(entry, value)
            blob = Blob(blob_id, blob_bytes, blob_sha256)
            try:
                return BlobValue(entry, blob.length, self.blobs.open(blob))
            except FileNotFoundError:
                continue  # replaced or deleted since the row was read
            except OSError as error:  # of the disk, or no descriptor is left
                raise unavailable(error) from error
        raise Unavailable()

    def entry(self, namespace: str, key: str, now_s: int) -> Entry | None:
        row = self._row(SELECT_ENTRY, (namespace, key.encode(), now_s))
        return None if row is None else Entry(key, *row)

    def page(self, namespace: str, *, now_s: int, limit: int, prefix: str = "", cursor: str = "") -> Page:
        first, behind = range_of(prefix, cursor)
        return page_of(self._rows(SELECT_PAGE, (namespace, first, behind, now_s, limit + 1)), limit)

    def put(self, namespace: str, pairs: Iterable[Pair]) -> Future[Committed]:
        return self._write(_Put(namespace, pairs, self.blobs, self._allowance))

    def delete(self, namespace: str, keys: Iterable[str]) -> Future[Committed]:
        return self._write(_Delete(namespace, keys))

    def drop(self, namespace: str) -> Future[Committed]:
        def drop(tx: Transaction) -> None:
            found = tx.row(DELETE_SPACE, (namespace,))
            if found is not None:
                tx.run(INSERT_DROPPED, found)

        return self._writer.write(drop)

    def namespaces(self) -> list[str]:
        return [id_ for (id_,) in self._rows(SELECT_SPACES, ())]

    def sweep(self, now_s: int) -> int:
        removed: int = self._write(_Sweep(now_s)).result().value
        if not removed and abs(now_s - self._blobs_swept_s) >= BLOB_SWEEP_SECONDS:
            removed, self._blobs_swept_s = self._sweep_blobs(now_s), now_s
        return removed

    def _sweep_blobs(self, now_s: int) -> int:
        # A file is looked up only when older than the grace time, so its row is committed or never will be;
        # unless the clock was set forward while it arrived.
        idle = self.blobs.idle_ids(now_s - BLOB_GRACE_SECONDS)
        removed = 0
        while ids := list(islice(idle, SWEEP_BLOBS)):
            strays = (id_ for id_ in ids if self._row(HAS_BLOB, (id_,)) is None)
            while some := list(islice(strays, SWEEP_STRAYS)):
                removed += self._remove_strays(some)
        return removed

    def _remove_strays(self, ids: list[str]) -> int:
        """Those that no row has got meanwhile. A put that comes now finds its file gone, and is refused."""

        def remove(tx: Transaction) -> int:
            strays = [id_ for id_ in ids if tx.row(HAS_BLOB, (id_,)) is None]
            self.blobs.remove(strays)
            return len(strays)

        count: int = self._writer.write(remove).result().value
        return count

    def free_bytes(self) -> int:
        """Free space inside the database: pages of deleted rows are not returned to the file system."""
        ((pages, page_bytes),) = self._rows(SELECT_FREE, ())
        assert isinstance(pages, int)
        assert isinstance(page_bytes, int)
        return pages * page_bytes

    def close(self) -> None:
        """Finish the queue, then close. Idempotent."""
        self.database.close()

    def _write(self, change: "_Change") -> Future[Committed]:
        future = self._writer.write(change)
        future.add_done_callback(lambda done: self.blobs.remove(change.unneeded(done)))
        return future

    def _row(self, sql: str, parameters: tuple[object, ...]) -> Row | None:
        rows = self._readers.rows(sql, parameters)
        return rows[0] if rows else None

    def _rows(self, sql: str, parameters: tuple[object, ...]) -> list[Row]:
        return self._readers.rows(sql, parameters)


class _Change(ABC):
    """One write and the blobs to remove after it: the replaced ones once it is durable, its own if it
    failed.
    """

    def __init__(self) -> None:
        self.added: list[str] = []
        self.replaced: list[str] = []

    def unneeded(self, done: Future[Committed]) -> list[str]:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, Unavailable):
            return []  # a failed fsync may still have committed: the sweep decides, by what the rows say
        return self.added if done.cancelled() or error else self.replaced

    @abstractmethod
    def __call__(self, tx: Transaction) -> int:
        """Returns how many rows it touched."""


class _Put(_Change):
    def __init__(
        self,
        namespace: str,
        pairs: Iterable[Pair],
        blobs: BlobStore,
        allowance: Callable[[str], Allowance] | None,
    ) -> None:
        super().__init__()
        self._namespace = namespace
        self._pairs = pairs
        self._blobs = blobs
        self._allowance = allowance
        self._blob_pair: tuple[Pair, ...] = ()  # the first one, when it was met
        self._count = self._added_octets = 0

    def __call__(self, tx: Transaction) -> int:
        of_namespace = (self._namespace,)
        found = tx.row(SELECT_SPACE_TO_WRITE, of_namespace) or tx.row(INSERT_SPACE, of_namespace)
        assert found is not None
        space, octets, may_replace_blob = found
        pairs = iter(self._pairs)
        is_counted = octets is not None or self._allowance is not None
        if not may_replace_blob and not is_counted:
            tx.run_each(UPSERT, self._rows_before_blob(space, pairs))
        if is_counted:
            octets = _octets(tx, space, octets)
        for pair in chain(self._blob_pair, pairs):
            self._put(tx, space, pair)
        if is_counted:
            tx.run(SET_OCTETS, (octets + self._added_octets, space))
            self._check_quota(tx, octets + self._added_octets)
        return self._count

    def _rows_before_blob(self, space: int, pairs: Iterator[Pair]) -> Iterator[tuple[object, ...]]:
        """Write rows without looking for old blobs, since there are none: up to the first pair that has
        one.
        """
        for pair in pairs:
            if isinstance(pair.content, Blob):
                self._blob_pair = (pair,)
                return
            self._count += 1
            yield space, pair.key.encode(), pair.expires_at_s, pair.metadata, None, None, None, pair.content

    def _put(self, tx: Transaction, space: int, pair: Pair) -> None:
        key, content = pair.key.encode(), pair.content
        columns: tuple[object, ...]
        if isinstance(content, Blob):
            self.added.append(content.id)
            self._check_is_there(content)
            columns, length = (content.id, content.length, content.sha256, None), content.length
        else:
            columns, length = (None, None, None, content), len(content)
        blob_id, replaced_octets = tx.row(SELECT_REPLACED, (space, key)) or (None, 0)
        if blob_id is not None:
            self.replaced.append(blob_id)
        tx.run(UPSERT, (space, key, pair.expires_at_s, pair.metadata, *columns))
        self._count += 1
        self._added_octets += len(key) + len(pair.metadata or b"") + length - replaced_octets

    def _check_is_there(self, blob: Blob) -> None:
        """A sweep may have taken it for a stray. Raises Unavailable."""
        try:
            self._blobs.open(blob).close()
        except OSError as error:
            raise unavailable(error) from error

    def _check_quota(self, tx: Transaction, octets: int) -> None:
        """A write that makes a namespace smaller is never refused. Raises SpaceQuota."""
        if self._allowance is None or self._added_octets <= 0:
            return
        allowed = self._allowance(self._namespace)
        if 0 < allowed.namespace_bytes < octets:
            used = octets - self._added_octets
            raise SpaceQuota(holder="namespace", used_bytes=used, limit_bytes=allowed.namespace_bytes)
        if not allowed.account_bytes:
            return
        found = (tx.row(SELECT_SPACE, (one,)) for one in allowed.siblings if one != self._namespace)
        together = octets + sum(_octets(tx, *space) for space in found if space is not None)
        if together > allowed.account_bytes:
            used = together - self._added_octets
            raise SpaceQuota(holder="account", used_bytes=used, limit_bytes=allowed.account_bytes)


class _Delete(_Change):
    def __init__(self, namespace: str, keys: Iterable[str]) -> None:
        super().__init__()
        self._namespace = namespace
        self._keys = keys

    def __call__(self, tx: Transaction) -> int:
        found = tx.row(SELECT_SPACE, (self._namespace,))
        if found is None:
            return 0
        space, octets = found
        sql = DELETE_KEY if octets is None else DELETE_COUNTED
        gone = [row for key in self._keys if (row := tx.row(sql, (space, key.encode()))) is not None]
        self.replaced += [blob_id for blob_id, _ in gone if blob_id is not None]
        if octets is not None:
            tx.run(TAKE_OCTETS, (sum(row_octets for _, row_octets in gone), space))
        return len(gone)


class _Sweep(_Change):
    def __init__(self, now_s: int) -> None:
        super().__init__()
        self._now_s = now_s

    def __call__(self, tx: Transaction) -> int:
        expired = _slice(tx.rows(SELECT_EXPIRED, (self._now_s, SWEEP_ROWS)))
        if expired:
            return self._delete(tx, expired)
        while dropped := tx.row(SELECT_DROPPED):
            rows = _slice(tx.rows(SELECT_OF_SPACE, (*dropped, SWEEP_ROWS)))
            if rows:
                return self._delete(tx, rows)
            tx.run(DELETE_DROPPED, dropped)
        return 0

    def _delete(self, tx: Transaction, rows: list[Row]) -> int:
        octets: Counter[int] = Counter()
        for number, _, space, row_octets in rows:
            gone = tx.row(DELETE_ROW, (number,))
            assert gone is not None
            octets[space] += row_octets
            if gone[0] is not None:
                self.replaced.append(gone[0])
        for space, less in octets.items():
            tx.run(TAKE_OCTETS, (less, space))
        return len(rows)


def _octets(tx: Transaction, space: int, kept: int | None) -> int:
    """The size of a namespace. The first time it is counted and stored: 0.3 µs a row."""
    if kept is not None:
        return kept
    found = tx.row(COUNT_OCTETS, (space,))
    assert found is not None
    octets: int = found[0]
    tx.run(SET_OCTETS, (octets, space))
    return octets


def _slice(rows: list[Row]) -> list[Row]:
    """At least one row, and then as many as SWEEP_BYTES allows."""
    taken: list[Row] = []
    bytes_ = 0
    for row in rows:
        bytes_ += row[1] or 0
        if taken and bytes_ > SWEEP_BYTES:
            break
        taken.append(row)
    return taken
