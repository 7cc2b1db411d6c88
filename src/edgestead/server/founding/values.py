"""Key-values from one store into another, through the interface that both have.

Owns  the order, and that a copy is compared with what was read.
Not   which stores.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from edgestead.store.kv import Entry, Incoming, KvStore, Pair

PAGE_KEYS = 1_000
BATCH_BYTES_MAX = 4 << 20  # of values, in one transaction


class Copied(NamedTuple):
    namespaces: int
    keys: int
    octets: int


class NotEqual(Exception):
    """What was written is not what was read."""


def copy(
    source: KvStore,
    target: KvStore,
    now_s: int,
    advance: Callable[[int, int], None] = lambda octets, keys: None,
) -> Copied:
    """Copy every namespace with its live keys. `advance` gets the octets and keys since its last call.

    Raises NotEqual, Unavailable, Damaged.
    """
    namespaces = source.namespaces()
    keys = octets = 0
    for namespace in namespaces:
        copied = 0
        for entries in _pages(source, namespace, now_s):
            for batch, length in _batches(source, target, namespace, entries, now_s):
                target.put(namespace, batch).result()
                copied += len(batch)
                octets += length
                advance(length, len(batch))
        found = sum(map(len, _pages(target, namespace, now_s)))
        if found != copied:
            raise NotEqual(f"namespace {namespace} has {found} keys, and {copied} were copied")
        keys += copied
    return Copied(len(namespaces), keys, octets)


def _pages(store: KvStore, namespace: str, now_s: int) -> Iterator[tuple[Entry, ...]]:
    cursor = ""
    while True:
        page = store.page(namespace, now_s=now_s, limit=PAGE_KEYS, cursor=cursor)
        yield page.entries
        cursor = page.cursor
        if not cursor:
            return


def _batches(
    source: KvStore, target: KvStore, namespace: str, entries: tuple[Entry, ...], now_s: int
) -> Iterator[tuple[list[Pair], int]]:
    batch: list[Pair] = []
    length = 0
    for entry in entries:
        value = source.get(namespace, entry.key, now_s)
        if value is None:
            continue  # deleted since the page was read
        incoming = Incoming(target.blobs)
        with value:
            for chunk in value:
                incoming.write(chunk)
            length += value.length
        batch.append(Pair(entry.key, incoming.finish(), value.entry.expires_at_s, value.entry.metadata))
        if length >= BATCH_BYTES_MAX:
            yield batch, length
            batch, length = [], 0
    if batch:
        yield batch, length
