"""Key-values in memory: what `KvStore` and `BlobStore` promise, written as plainly as it goes.

Owns  `MemoryKvStore` and `MemoryBlobs`; a `Folder` of both outlives them.
"""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.kv import BadCursor, SpaceQuota
from edgestead.store.control import Committed
from edgestead.store.kv import BLOB_GRACE_SECONDS, CHUNK_BYTES, Allowance, Blob, Damaged, Entry, Page, Pair


class Folder:
    """What is durable."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.spaces: dict[str, dict[str, Pair]] = {}
        self.dropped: list[dict[str, Pair]] = []
        self.blobs: dict[str, tuple[bytes, float]] = {}


class MemoryBlobs:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def create(self) -> "MemoryBlobWriter":
        return MemoryBlobWriter(self._folder)

    def open(self, blob: Blob) -> "MemoryBlobReader":
        if blob.id not in self._folder.blobs:
            raise FileNotFoundError(blob.id)
        content, _ = self._folder.blobs[blob.id]
        if len(content) != blob.length:
            raise Damaged("another length")
        return MemoryBlobReader(content, blob.sha256)

    def remove(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            self._folder.blobs.pop(id_, None)

    def idle_ids(self, before_s: float) -> Iterator[str]:
        return iter([id_ for id_, (_, written_s) in self._folder.blobs.items() if written_s < before_s])


class MemoryBlobWriter:
    def __init__(self, folder: Folder) -> None:
        self._folder, self._id = folder, secrets.token_hex(16)
        self.write(b"")

    def write(self, chunk: bytes) -> None:
        before, _ = self._folder.blobs.get(self._id, (b"", 0.0))
        self._folder.blobs[self._id] = (before + chunk, time.time())

    def finish(self) -> Blob:
        content, _ = self._folder.blobs[self._id]
        return Blob(self._id, len(content), hashlib.sha256(content).digest())

    def discard(self) -> None:
        self._folder.blobs.pop(self._id, None)


class MemoryBlobReader:
    def __init__(self, content: bytes, sha256: bytes) -> None:
        self._content, self._sha256 = content, sha256

    def __iter__(self) -> Iterator[bytes]:
        right = hashlib.sha256(self._content).digest() == self._sha256
        for start in range(0, len(self._content), CHUNK_BYTES):
            if start + CHUNK_BYTES >= len(self._content) and not right:
                raise Damaged("other bytes")
            yield self._content[start : start + CHUNK_BYTES]

    def close(self) -> None: ...


class MemoryValue:
    def __init__(self, entry: Entry, length: int, content: Iterable[bytes], *, is_inline: bool) -> None:
        self.entry, self.length, self.is_inline, self._content = entry, length, is_inline, content

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._content)

    def read(self) -> bytes:
        return b"".join(self._content)

    def close(self) -> None: ...

    def __enter__(self) -> "MemoryValue":
        return self

    def __exit__(self, *error: object) -> None: ...


class MemoryKvStore:
    """A write is done when it is asked for."""

    soon = None

    def __init__(self, folder: Folder, allowance: Callable[[str], Allowance] = lambda _: Allowance()) -> None:
        self._folder, self.blobs, self._closed = folder, MemoryBlobs(folder), False
        self._allowance = allowance

    def _space(self, namespace: str, now_s: int) -> dict[str, Pair]:
        """The live pairs."""
        if self._closed:
            raise Unavailable()
        with self._folder.lock:
            held = self._folder.spaces.get(namespace, {})
            return {key: pair for key, pair in held.items() if not is_over(pair, now_s)}

    def get(self, namespace: str, key: str, now_s: int) -> MemoryValue | None:
        while (pair := self._space(namespace, now_s).get(key)) is not None:
            if isinstance(pair.content, bytes):
                return MemoryValue(entry_of(pair), len(pair.content), [pair.content], is_inline=True)
            with suppress(FileNotFoundError):  # replaced since
                reader = self.blobs.open(pair.content)
                return MemoryValue(entry_of(pair), pair.content.length, reader, is_inline=False)
        return None

    def entry(self, namespace: str, key: str, now_s: int) -> Entry | None:
        pair = self._space(namespace, now_s).get(key)
        return None if pair is None else entry_of(pair)

    def page(self, namespace: str, *, now_s: int, limit: int, prefix: str = "", cursor: str = "") -> Page:
        behind = decode_cursor(cursor)
        found = sorted(
            (pair for key, pair in self._space(namespace, now_s).items() if key.startswith(prefix)),
            key=lambda pair: pair.key.encode(),
        )
        rest = [entry_of(pair) for pair in found if behind is None or pair.key.encode() > behind]
        more = encode_cursor(rest[limit - 1].key) if len(rest) > limit else ""
        return Page(tuple(rest[:limit]), more)

    def put(self, namespace: str, pairs: Iterable[Pair]) -> Future[Committed]:
        added: list[Pair] = []

        def work() -> int:
            try:
                added.extend(pairs)
            except BaseException:
                self.blobs.remove(blob_ids(added))
                raise
            space = self._folder.spaces.setdefault(namespace, {})
            self._check_quota(namespace, space | {pair.key: pair for pair in added}, added)
            for pair in added:
                self.blobs.remove(blob_ids(filter(None, [space.pop(pair.key, None)])))
                space[pair.key] = pair
            return len(added)

        return self._write(work)

    def _check_quota(self, namespace: str, after: dict[str, Pair], added: list[Pair]) -> None:
        spaces, allowed = self._folder.spaces, self._allowance(namespace)
        used, then = octets_of(spaces[namespace].values()), octets_of(after.values())
        others = sum(
            octets_of(spaces[one].values()) for one in allowed.siblings if one in spaces and one != namespace
        )
        for holder, limit, beside in (
            ("namespace", allowed.namespace_bytes, 0),
            ("account", allowed.account_bytes, others),
        ):
            if 0 < limit < beside + then and then > used:
                self.blobs.remove(blob_ids(added))
                raise SpaceQuota(holder=holder, used_bytes=beside + used, limit_bytes=limit)

    def delete(self, namespace: str, keys: Iterable[str]) -> Future[Committed]:
        def work() -> int:
            space = self._folder.spaces.get(namespace, {})
            gone = [pair for key in list(keys) if (pair := space.pop(key, None)) is not None]
            self.blobs.remove(blob_ids(gone))
            return len(gone)

        return self._write(work)

    def drop(self, namespace: str) -> Future[Committed]:
        def work() -> None:
            if namespace in self._folder.spaces:
                self._folder.dropped.append(self._folder.spaces.pop(namespace))

        return self._write(work)

    def _write(self, work: Any) -> Future[Committed]:
        if self._closed:
            raise Unavailable()
        future: Future[Committed] = Future()
        with self._folder.lock:
            try:
                future.set_result(Committed(work(), 0))
            except Exception as error:
                future.set_exception(error)
        return future

    def namespaces(self) -> list[str]:
        return sorted(self._folder.spaces)

    def sweep(self, now_s: int) -> int:
        with self._folder.lock:
            gone = [pair for dropped in self._folder.dropped for pair in dropped.values()]
            self._folder.dropped.clear()
            for space in self._folder.spaces.values():
                over = [key for key, pair in space.items() if is_over(pair, now_s)]
                gone += [space.pop(key) for key in over]
            self.blobs.remove(blob_ids(gone))
            if gone:
                return len(gone)
            named = {id_ for space in self._folder.spaces.values() for id_ in blob_ids(space.values())}
            strays = [id_ for id_ in self.blobs.idle_ids(now_s - BLOB_GRACE_SECONDS) if id_ not in named]
            self.blobs.remove(strays)
            return len(strays)

    def close(self) -> None:
        self._closed = True


def is_over(pair: Pair, now_s: int) -> bool:
    return pair.expires_at_s is not None and pair.expires_at_s <= now_s


def entry_of(pair: Pair) -> Entry:
    return Entry(pair.key, pair.expires_at_s, pair.metadata)


def blob_ids(pairs: Iterable[Pair]) -> list[str]:
    return [pair.content.id for pair in pairs if isinstance(pair.content, Blob)]


def octets_of(pairs: Iterable[Pair]) -> int:
    return sum(
        len(pair.key.encode())
        + len(pair.metadata or b"")
        + (len(pair.content) if isinstance(pair.content, bytes) else pair.content.length)
        for pair in pairs
    )


def encode_cursor(key: str) -> str:
    return "k" + key.encode().hex()


def decode_cursor(cursor: str) -> bytes | None:
    if not cursor:
        return None
    try:
        key = bytes.fromhex(cursor[1:])
    except ValueError:
        raise BadCursor from None
    if cursor[0] != "k":
        raise BadCursor
    return key
