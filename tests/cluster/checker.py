"""Whether a history of writes and reads, by many clients at many nodes, keeps what a cluster promises.

Owns  the history, and deciding it.
Not   making it.

Writes add unique names to a set, reads return the whole set. The promise: a read has every name that was
acknowledged before it began, whatever node it asks; every read is what the set was after some write, so that
of two reads one contains the other; reads at one node never go back; nothing is read that was not written. A
write that is not acknowledged yet may be read at one node and, later, not yet at another. One whose outcome
is unknown may be in the set or not.
"""

import threading
import time
from itertools import pairwise
from typing import NamedTuple


class Write(NamedTuple):
    name: str
    began: float
    ended: float
    is_acknowledged: bool


class Read(NamedTuple):
    node: str
    began: float
    ended: float
    names: frozenset[str]


class History:
    """What clients note, from many threads."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.reads: list[Read] = []
        self._lock = threading.Lock()

    def wrote(self, name: str, began: float, is_acknowledged: bool) -> None:
        with self._lock:
            self.writes.append(Write(name, began, time.monotonic(), is_acknowledged))

    def saw(self, node: str, began: float, names: frozenset[str]) -> None:
        with self._lock:
            self.reads.append(Read(node, began, time.monotonic(), names))

    @property
    def acknowledged(self) -> set[str]:
        return {write.name for write in self.writes if write.is_acknowledged}


def faults(writes: list[Write], reads: list[Read]) -> list[str]:
    """What breaks the promise; nothing when all is well."""
    return [*_stale(writes, reads), *_from_nowhere(writes, reads), *_going_back(reads), *_torn(reads)]


def _stale(writes: list[Write], reads: list[Read]) -> list[str]:
    found = []
    by_end = sorted((write for write in writes if write.is_acknowledged), key=lambda write: write.ended)
    acknowledged: set[str] = set()
    place = 0
    for read in sorted(reads, key=lambda read: read.began):
        while place < len(by_end) and by_end[place].ended < read.began:
            acknowledged.add(by_end[place].name)
            place += 1
        if missing := acknowledged - read.names:
            found.append(f"a read at {read.node} lacks {sorted(missing)[:3]}, acknowledged before it")
    return found


def _from_nowhere(writes: list[Write], reads: list[Read]) -> list[str]:
    began = {write.name: write.began for write in writes}
    return [
        f"a read at {read.node} has {early[:3]}, written after it or never"
        for read in reads
        if (early := sorted(name for name in read.names if began.get(name, float("inf")) > read.ended))
    ]


def _going_back(reads: list[Read]) -> list[str]:
    """Each node has one reader, which reads one time after the other."""
    found = []
    for node in {read.node for read in reads}:
        own = sorted((read for read in reads if read.node == node), key=lambda read: read.began)
        found += [
            f"a read at {node} lacks {sorted(gone)[:3]}, read there before it"
            for before, after in pairwise(own)
            if (gone := before.names - after.names)
        ]
    return found


def _torn(reads: list[Read]) -> list[str]:
    ordered = sorted(reads, key=lambda read: len(read.names))
    return [
        f"a read at {less.node} has {sorted(only)[:3]}, which a larger one at {more.node} lacks"
        for less, more in pairwise(ordered)
        if (only := less.names - more.names)
    ]
