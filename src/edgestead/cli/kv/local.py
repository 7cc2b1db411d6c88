"""One namespace in the project's folder, without a server.

Owns  the local store's folder: its lock, and sweeping it in passing.
Not   options, output. Imported only for `--local`.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from edgestead.cli.failure import Failed
from edgestead.cli.kv.namespace_target import ItemRefused, Write
from edgestead.model import kv as rules
from edgestead.model.kvbulk import keys_of, pairs_of
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.kv import BulkItemInvalid, KeyInvalid, KeyNotFound
from edgestead.server import stores
from edgestead.store.kv import CHUNK_BYTES, Damaged, Incoming, KvStore, Pair

LOCK_SECONDS_MAX = 10  # other commands in the same project take turns
LOCK_POLL_SECONDS = 0.02
PAGE_KEYS = 1_000

Now = Callable[[], int]


@contextmanager
def open_local(
    folder: Path, namespace_id: str, *, now: Now = lambda: int(time.time())
) -> Iterator["LocalNamespace"]:
    """The namespace in a folder, made when missing. Raises Failed when a server or a command holds it."""
    with _failing(folder):
        id_ = rules.check_namespace_id(namespace_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder):
            store = stores.open_kv(folder)
            try:
                yield LocalNamespace(store, id_, now)
            finally:
                store.close()


@contextmanager
def _failing(folder: Path) -> Iterator[None]:
    try:
        yield
    except EdgeError as error:
        cause = [f"{error.__cause__}"] if error.__cause__ is not None else []
        raise Failed(f"{error.message} [code: {error.code}]", *cause) from None
    except (Damaged, *stores.FAULTS) as error:
        raise Failed(f"The local store {folder} cannot be used: {error}") from None


@contextmanager
def _telling_items() -> Iterator[None]:
    try:
        yield
    except BulkItemInvalid as error:
        raise ItemRefused(error.facts["index"], [error.facts["reason"]]) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder as a server would: one process at a time writes data."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS_MAX
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "another process"
                raise Failed(
                    f"The local store {folder} is in use by process {holder}.",
                    "If that is a server, leave out --local.",
                )
            time.sleep(LOCK_POLL_SECONDS)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class LocalNamespace:
    """A `Namespace` in the local store. It takes what the server takes by the specification."""

    def __init__(self, store: KvStore, id_: str, now: Now) -> None:
        self.id = id_
        self._store = store
        self._now = now

    def another(self) -> nullcontext["LocalNamespace"]:
        return nullcontext(self)

    def get(self, key: str) -> Iterator[bytes]:
        found = self._store.get(self.id, rules.check_key(key, blanks=False), self._now())
        if found is None:
            raise KeyNotFound
        with found:
            yield from found

    def put(self, key: str, content: Path | bytes, write: Write) -> None:
        rules.check_key(key, blanks=False)
        expires_at_s = rules.expires_at_s(
            ttl_seconds=write.ttl_seconds, expiration_s=write.expiration_s, now_s=self._now()
        )
        metadata = None if write.metadata is None else rules.compact_metadata(write.metadata)
        incoming = Incoming(self._store.blobs)
        try:
            for chunk in [content] if isinstance(content, bytes) else _file_chunks(content):
                incoming.write(chunk)
                rules.check_value_length(incoming.length)
            pair = Pair(key, incoming.finish(), expires_at_s, metadata)
        except BaseException:
            incoming.discard()
            raise
        self._store.put(self.id, [pair]).result()
        self._sweep()

    def delete(self, key: str) -> None:
        self._store.delete(self.id, [rules.check_key(key, blanks=False)]).result()
        self._sweep()

    def entries(self, prefix: str) -> Iterator[dict[str, Any]]:
        now_s, cursor = self._now(), ""
        while True:
            page = self._store.page(self.id, now_s=now_s, limit=PAGE_KEYS, prefix=prefix, cursor=cursor)
            for entry in page.entries:
                metadata = None if entry.metadata is None else json.loads(entry.metadata)
                yield {"name": entry.key, "expiration": entry.expires_at_s, "metadata": metadata}
            cursor = page.cursor
            if not cursor:
                return

    def put_batch(self, items: list[bytes]) -> list[str]:
        with _telling_items():
            self._store.put(self.id, self._pairs(items)).result()
        self._sweep()
        return []

    def delete_batch(self, items: list[bytes]) -> list[str]:
        with _telling_items():
            self._store.delete(self.id, list(keys_of(items, blanks=False))).result()
        self._sweep()
        return []

    def get_batch(self, keys: list[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for index, key in enumerate(keys):
            try:
                rules.check_key(key, blanks=False)
            except KeyInvalid as error:
                raise ItemRefused(index, [error.message]) from None
            found = self._store.get(self.id, key, self._now())
            if found is None:
                values[key] = None
            else:
                with found:
                    values[key] = found.read().decode("utf-8", "replace")
        return values

    def _pairs(self, items: list[bytes]) -> Iterator[Pair]:
        """Checked and stored away one by one, so that one value is in memory."""
        for pair in pairs_of(items, now_s=self._now(), blanks=False):
            incoming = Incoming(self._store.blobs)
            incoming.write(pair.content)
            yield Pair(pair.key, incoming.finish(), pair.expires_at_s, pair.metadata)

    def _sweep(self) -> None:
        """One slice of what has expired, or what a crash left: nobody else does it in this folder."""
        self._store.sweep(self._now())


def _file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
