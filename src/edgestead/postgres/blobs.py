"""Large values of a cluster: parts of 1 MiB in PostgreSQL, or objects of a store elsewhere, by random ids.

Owns  the parts; when a blob counts as durable; the age of those that no row names.
Not   which are still needed: that is in the rows, which delete what they replace in their own transaction.

Each part is a transaction of its own, so that a slow upload holds none open. A reader copies the parts into a
file without a name first: it holds neither a transaction open nor a value of 25 MiB in memory.

An id says where its bytes are. Those elsewhere have a row of `kv_blobs` before they are put:

    row of kv_blobs  →  bytes durable elsewhere  →  the value's row commits
    row of kv_blobs deleted, by whatever deletes it  →  id in kv_removed  →  the sweep removes the bytes

so there is always a row that knows of them, and nobody has to list the other store.
"""

import hashlib
import logging
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from edgestead.model.refusals import Unavailable
from edgestead.postgres.connection import Misconfigured, Trouble
from edgestead.postgres.pool import Pool
from edgestead.store.kv import CHUNK_BYTES, Blob, BlobWriter, Bodies, Damaged

PART_BYTES = 1 << 20
ELSEWHERE = "s3."  # how ids begin whose bytes are in `Bodies`; the trigger of the schema knows it, too
ID_BYTES = 16
IN_MEMORY_BYTES = PART_BYTES  # of a value that is read; a larger one goes to a file
IDS_PER_READ = 1_000
IDS_PER_SWEEP = 500  # a request each: DELETE of many at once is what stores do most differently

INSERT_BLOB = "INSERT INTO kv_blobs (id, written_s) VALUES (%s, %b)"
INSERT_PART = (
    "WITH written AS (UPDATE kv_blobs SET written_s = %b WHERE id = %s RETURNING id) "
    "INSERT INTO kv_parts (blob_id, part, body) SELECT id, %b, %b FROM written"
)
SELECT_PART = "SELECT body FROM kv_parts WHERE blob_id = %s AND part = %b"
HAS_BLOB = "SELECT 1 FROM kv_blobs WHERE id = %s"
DELETE_BLOBS = "DELETE FROM kv_blobs WHERE id = ANY(%b::text[])"
SELECT_IDLE = "SELECT id FROM kv_blobs WHERE written_s < %b AND id > %s ORDER BY id LIMIT %b"
SELECT_REMOVED = "SELECT id FROM kv_removed LIMIT %b"
FORGET_REMOVED = "DELETE FROM kv_removed WHERE id = ANY(%b::text[])"
FAR_S = 1 << 53

log = logging.getLogger(__name__)


def is_elsewhere(blob_id: str) -> bool:
    return blob_id.startswith(ELSEWHERE)


class PostgresBlobs:
    """A `BlobStore`. Safe to use from any thread. `spool_dir` is where values wait while they are read, and
    before they are put elsewhere: to `bodies`, which this closes; None keeps new values in the database.
    """

    def __init__(
        self,
        dsn: str,
        *,
        spool_dir: str | None = None,
        bodies: Bodies | None = None,
        random_id: Callable[[], str] = lambda: secrets.token_hex(ID_BYTES),
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._pool = Pool(dsn, "edgestead kv values")
        self._spool_dir, self._bodies = spool_dir, bodies
        self._random_id, self._now_s = random_id, now_s

    def create(self) -> BlobWriter:
        if self._bodies is None:
            return PostgresBlobWriter(self._pool, self._random_id(), self._now_s)
        id_ = ELSEWHERE + self._random_id()
        return ElsewhereWriter(self._pool, self._bodies, id_, self._now_s, self._spool_dir)

    def open(self, blob: Blob) -> "SpooledReader":
        """Raises Unavailable, and as a `BlobStore`."""
        if not is_elsewhere(blob.id):
            return SpooledReader(self._parts(blob), blob, self._spool_dir)
        if self._bodies is None:
            log.error("a value is in an object store, and this node's settings name none: `cluster.s3`")
            raise Unavailable()
        if not self._pool.rows(HAS_BLOB, (blob.id,)):  # its bytes go with the next sweep
            raise FileNotFoundError(blob.id)
        return SpooledReader(self._bodies.read(blob.id), blob, self._spool_dir)

    def remove(self, ids: Iterable[str]) -> None:
        if gone := list(ids):
            with suppress(Unavailable):  # the sweep will try again
                self._pool.read(lambda link: link.run(DELETE_BLOBS, (gone,)))  # made twice it is the same

    def idle_ids(self, before_s: float) -> Iterator[str]:
        after = ""
        while True:
            rows = self._pool.rows(SELECT_IDLE, (int(min(before_s, FAR_S)), after, IDS_PER_READ))
            ids = [id_ for (id_,) in rows]
            yield from ids
            if len(ids) < IDS_PER_READ:
                return
            after = ids[-1]

    def sweep_elsewhere(self) -> int:
        """Remove some bytes whose blobs are gone, and say of how many; blocks. Raises Unavailable."""
        if self._bodies is None:
            return 0
        ids = [id_ for (id_,) in self._pool.rows(SELECT_REMOVED, (IDS_PER_SWEEP,))]
        if ids:
            self._bodies.remove(ids)
            self._pool.read(lambda link: link.run(FORGET_REMOVED, (ids,)))  # made twice it is the same
        return len(ids)

    def close(self) -> None:
        self._pool.close()
        if self._bodies is not None:
            self._bodies.close()

    def _parts(self, blob: Blob) -> Iterator[bytes]:
        """Raises FileNotFoundError, also when the blob was removed between two parts."""
        part = length = 0
        while True:
            rows = self._pool.rows(SELECT_PART, (blob.id, part))
            if not rows:
                if (not part or length < blob.length) and not self._pool.rows(HAS_BLOB, (blob.id,)):
                    raise FileNotFoundError(blob.id)
                return
            yield rows[0][0]
            part, length = part + 1, length + len(rows[0][0])


class PostgresBlobWriter:
    def __init__(self, pool: Pool, id_: str, now_s: Callable[[], float]) -> None:
        self._pool, self._id, self._now_s = pool, id_, now_s
        self._sha256 = hashlib.sha256()
        self._length = self._part = self._waiting_bytes = 0
        self._waiting: list[bytes] = []
        self._run(INSERT_BLOB, (id_, int(now_s())))

    def write(self, chunk: bytes) -> None:
        self._sha256.update(chunk)
        self._length += len(chunk)
        self._waiting.append(chunk)
        self._waiting_bytes += len(chunk)
        while self._waiting_bytes >= PART_BYTES:
            self._send()

    def finish(self) -> Blob:
        if self._waiting_bytes:
            self._send()
        return Blob(self._id, self._length, self._sha256.digest())

    def discard(self) -> None:
        with suppress(Unavailable):
            self._run(DELETE_BLOBS, ([self._id],))

    def _send(self) -> None:
        content = b"".join(self._waiting)
        part, rest = content[:PART_BYTES], content[PART_BYTES:]
        self._waiting, self._waiting_bytes = [rest] if rest else [], len(rest)
        if self._run(INSERT_PART, (int(self._now_s()), self._id, self._part, part)) != 1:
            raise Unavailable()  # it stood still for so long that it was swept
        self._part += 1

    def _run(self, statement: str, values: tuple[object, ...]) -> int:
        return _run_once(self._pool, statement, values)


class ElsewhereWriter:
    """What is written waits in a file without a name: it is put in one request, of a length that is known."""

    def __init__(
        self, pool: Pool, bodies: Bodies, id_: str, now_s: Callable[[], float], spool_dir: str | None
    ) -> None:
        self._pool, self._bodies, self._id, self._now_s = pool, bodies, id_, now_s
        self._sha256 = hashlib.sha256()
        self._length = 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES, dir=spool_dir)

    def write(self, chunk: bytes) -> None:
        self._sha256.update(chunk)
        self._length += len(chunk)
        with _disk():
            self._file.write(chunk)

    def finish(self) -> Blob:
        digest = self._sha256.digest()
        # Its age counts from here; a request ends long before that of what no row names.
        _run_once(self._pool, INSERT_BLOB, (self._id, int(self._now_s())))
        with _disk():
            self._file.seek(0)
        self._bodies.put(self._id, self._file, self._length, digest)
        self._file.close()
        return Blob(self._id, self._length, digest)

    def discard(self) -> None:
        self._file.close()
        with suppress(Unavailable):
            _run_once(self._pool, DELETE_BLOBS, ([self._id],))


def _run_once(pool: Pool, statement: str, values: tuple[object, ...]) -> int:
    """A part that landed without an answer would be there twice. Raises Unavailable."""
    link = pool.take()
    try:
        return link.run(statement, values)
    except (Trouble, Misconfigured) as error:
        raise Unavailable() from error
    finally:
        pool.give_back(link)


@contextmanager
def _disk() -> Iterator[None]:
    """Raises Unavailable when this machine's disk is full or fails."""
    try:
        yield
    except OSError as error:
        raise Unavailable() from error


class SpooledReader:
    """A `BlobReader` of a copy that it makes. Raises Damaged, and what `parts` raises."""

    def __init__(self, parts: Iterator[bytes], blob: Blob, folder: str | None) -> None:
        self._blob = blob
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES, dir=folder)
        try:
            length = 0
            for part in parts:
                length += len(part)
                if length > blob.length:
                    break
                self._file.write(part)
            if length != blob.length:
                raise Damaged(f"blob {blob.id} has {length} bytes or more, its row says {blob.length}")
        except BaseException:
            self._file.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        sha256 = hashlib.sha256()
        left = self._blob.length
        self._file.seek(0)
        while left:
            chunk = self._file.read(min(CHUNK_BYTES, left))
            sha256.update(chunk)
            left -= len(chunk)
            if not chunk or (not left and sha256.digest() != self._blob.sha256):
                raise Damaged(f"blob {self._blob.id} does not have the bytes that were written")
            yield chunk

    def close(self) -> None:
        self._file.close()
