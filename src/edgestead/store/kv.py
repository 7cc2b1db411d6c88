"""The interfaces of the key-value data: rows in `KvStore`, large values in `BlobStore`.

Owns  what a stored value is, what a page of a listing guarantees, and when a write counts as done.
Not   which keys, values and times are allowed (`model.kv`); who may call; HTTP.

Keys are compared as their UTF-8 bytes. A value up to `INLINE_BYTES_MAX` is in its row, a larger one in one
blob that the row names with length and SHA-256. This order keeps both consistent:

    write    blob's bytes durable  →  row commits  →  the replaced blob is removed
    delete   row's deletion commits  →  blob is removed
    sweep    blobs that no row names and that are unchanged for `BLOB_GRACE_SECONDS` are removed

so a row never names a missing blob, and after a crash there is at worst a stray blob, which the sweep
removes.
"""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import IO, NamedTuple, Protocol, Self

import msgspec

from edgestead.model.refusals import Unavailable
from edgestead.store.control import Committed

INLINE_BYTES_MAX = 262_144  # design "Storage": measured, above this a separate file is faster
BLOB_GRACE_SECONDS = 3_600  # an upload that is still running must not be taken for a stray blob
CHUNK_BYTES = 262_144  # one read or write of a streamed value


class Damaged(Exception):
    """Bytes on the disk differ from what was written: wrong length or SHA-256."""


class Blob(msgspec.Struct, frozen=True, array_like=True):
    """A durable large value outside its row. `id` is random and never reused."""

    id: str
    length: int
    sha256: bytes


class Entry(msgspec.Struct, frozen=True):
    """One key of a listing. `metadata` is compact JSON as UTF-8."""

    key: str
    expires_at_s: int | None = None
    metadata: bytes | None = None


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """One write. It replaces value, expiry and metadata together."""

    key: str
    content: bytes | Blob
    expires_at_s: int | None = None
    metadata: bytes | None = None


class Page(msgspec.Struct, frozen=True):
    """A part of a listing. `cursor` continues behind its last key and is empty at the end."""

    entries: tuple[Entry, ...]
    cursor: str


class Value(Protocol):
    """A value that is being read: iterate it once, then close it.

    It stays readable while others replace or delete the key. The last chunk of a blob is returned only after
    its length and SHA-256 were verified; otherwise iteration raises Damaged.
    """

    entry: Entry
    length: int
    is_inline: bool  # in memory already

    def __iter__(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

    def read(self) -> bytes:
        """All of it."""
        ...


class Allowance(NamedTuple):
    """The quota of a namespace, and of it and its `siblings` together; 0 is no limit.

    Octets of keys, values and metadata, those of expired keys too until they are swept.
    """

    namespace_bytes: int = 0
    account_bytes: int = 0
    siblings: tuple[str, ...] = ()


class BlobReader(Protocol):
    """The bytes of one blob, once. Iteration raises Damaged instead of its last chunk when they differ."""

    def __iter__(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class BlobWriter(Protocol):
    """Each step raises Unavailable when storage fails."""

    def write(self, chunk: bytes) -> None: ...

    def finish(self) -> Blob:
        """Return when the bytes and the name are durable. Cost: two fsyncs."""
        ...

    def discard(self) -> None:
        """Remove the blob. Idempotent; allowed after finish() when no row will name the blob."""
        ...


class BlobStore(Protocol):
    def create(self) -> BlobWriter: ...

    def open(self, blob: Blob) -> BlobReader:
        """The open blob stays readable even when it is removed. Raises FileNotFoundError, Damaged."""
        ...

    def remove(self, ids: Iterable[str]) -> None:
        """Remove those that exist."""
        ...

    def idle_ids(self, before_s: float) -> Iterator[str]:
        """Blobs that were not written to since then."""
        ...


class Bodies(Protocol):
    """Where a store keeps the bytes of its blobs when not beside their rows: an object store.

    Every method blocks, and raises Unavailable. No id is put twice with other bytes.
    """

    def put(self, id_: str, content: IO[bytes], length: int, sha256: bytes) -> None:
        """Durable when it returns. When it raises, the bytes may be there, now or a little later."""
        ...

    def read(self, id_: str) -> Iterator[bytes]:
        """Its bytes in pieces. Raises FileNotFoundError."""
        ...

    def remove(self, ids: Iterable[str]) -> None:
        """Remove those that exist. When it raises, some may be there still."""
        ...

    def close(self) -> None:
        """Idempotent."""
        ...


class Incoming:
    """A value of unknown length that is being received: kept in memory up to the limit of a row, then in a
    blob.

    Each step raises Unavailable when storage fails; then discard() it.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self.length = 0
        self._blobs = blobs
        self._small: list[bytes] = []
        self._blob: BlobWriter | None = None
        self._step = threading.Lock()  # a caller that is cancelled discards while a thread still writes
        self._is_over = False

    def write(self, chunk: bytes) -> None:
        with self._step:
            self._check()
            self.length += len(chunk)
            if self._blob is None and self.length > INLINE_BYTES_MAX:
                self._blob = self._blobs.create()
                for earlier in self._small:
                    self._blob.write(earlier)
                self._small.clear()
            if self._blob is None:
                self._small.append(chunk)
            else:
                self._blob.write(chunk)

    def finish(self) -> bytes | Blob:
        """The content of a `Pair`. A blob is durable when this returns; call it off the event loop."""
        with self._step:
            self._check()
            return b"".join(self._small) if self._blob is None else self._blob.finish()

    def discard(self) -> None:
        """Remove what was written. Call it when no put follows. Waits for a step that another thread makes;
        there is no later one.
        """
        with self._step:
            self._is_over = True
            self._small.clear()
            if self._blob is not None:
                self._blob.discard()

    def _check(self) -> None:
        if self._is_over:
            raise Unavailable()


class Soon(Protocol):
    """Reads of a store that waits for another machine: made together with others, without waiting here."""

    def get(self, namespace: str, key: str, now_s: int) -> Future[Value | None]:
        """As `KvStore.get`. Raises Unavailable when closed."""
        ...


class KvStore(Protocol):
    """A namespace is created by its first write; an unknown one is empty.

    Reads run on the calling thread and see every write whose future has resolved. The code that opened a
    store closes it.
    """

    blobs: BlobStore
    """Where its large values go."""

    soon: Soon | None
    """None where a read waits for no other machine, and an event loop may make it."""

    def get(self, namespace: str, key: str, now_s: int) -> Value | None:
        """The value with its entry; None when absent or expired (`expires_at_s` ≤ `now_s`)."""
        ...

    def entry(self, namespace: str, key: str, now_s: int) -> Entry | None:
        """The entry without its value."""
        ...

    def page(self, namespace: str, *, now_s: int, limit: int, prefix: str = "", cursor: str = "") -> Page:
        """Up to `limit` live entries in byte order behind `cursor`.

        Reading all pages returns a key that existed the whole time exactly once, whatever is written
        meanwhile. Raises BadCursor.
        """
        ...

    def put(self, namespace: str, pairs: Iterable[Pair]) -> Future[Committed]:
        """Write all pairs in one transaction; the last pair of a key wins. The value is their number.

        The iterable is read on the writer's thread, one pair at a time. When it raises, nothing is
        written, the blobs of the pairs read so far are removed and the future carries the exception. The same
        happens with SpaceQuota, when the namespace would grow beyond its `Allowance`. Raises Unavailable when
        the queue is full; the caller then still owns the pairs' blobs.
        """
        ...

    def delete(self, namespace: str, keys: Iterable[str]) -> Future[Committed]:
        """Delete all keys in one transaction. The value is how many rows there were.

        Writes are made in their order: when this one is done, of no key too, all before it are.
        """
        ...

    def drop(self, namespace: str) -> Future[Committed]:
        """Empty the namespace at once; `sweep` frees the space."""
        ...

    def namespaces(self) -> list[str]:
        """The namespaces that have or had a key, to find those that control no longer has."""
        ...

    def sweep(self, now_s: int) -> int:
        """Remove some garbage; blocks, returns how many items. Zero: nothing is left.

        First expired rows and those of dropped namespaces, in slices so small that writes are not delayed;
        then, occasionally, the blobs that no row names and that are unchanged for `BLOB_GRACE_SECONDS`.
        """
        ...
