"""Openers of the objects' storage: each keeps what is durable from one `open` to the next."""

import errno
import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from edgestead.store.objectlog import UNCHANGED, Alarm, Commit, CommitKind, Group, Lease, LogError, ObjectRef
from edgestead.store.objects import ObjectStore
from edgestead.store.pages import PAGE_BYTES, frames_of
from edgestead.testing.disks import SimulatedDisk
from tests.objects.logs import Logs
from tests.support.memory_objects import Disk, MemoryLog


def ref(name: str = "one", class_name: str = "Counter") -> ObjectRef:
    return ObjectRef(class_name, name.encode().hex().rjust(64, "0"), name)


def keys(**changes: bytes | None) -> Commit:
    return Commit(CommitKind.KEYS, msgspec.msgpack.encode(changes))


def pages(*images: bytes, total: int = 0) -> Commit:
    """The first pages of a database, each filled with one byte."""
    image = b"".join(one * PAGE_BYTES for one in images)
    numbers = list(range(1, len(images) + 1))
    return Commit(CommitKind.PAGES, frames_of(image, numbers, total or len(images)))


def put(store: ObjectStore, lease: Lease, *commits: Commit, alarm: Alarm = UNCHANGED) -> Group:
    """Append, flush, and give the decided group back."""
    group = lease.append(list(commits), alarm)
    store.log.flush()
    store.log.settle()
    return group


def asked(store: ObjectStore, begin: Any) -> Any:
    """The answer to a question. Raises the error that comes instead."""
    told: list[tuple[Any, LogError | None]] = []
    begin(lambda result, error: told.append((result, error)))
    store.log.settle()
    ((result, error),) = told
    if error is not None:
        raise error
    return result


class LocalStores:
    """On local files of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, vfs: str) -> None:
        self._logs = Logs(disk, vfs)
        self.files = disk

    def open(self) -> ObjectStore:
        return self._logs.open().store

    def kill(self) -> None:
        """The process is gone without a word."""
        self._logs.killed()

    def fill(self, store: ObjectStore) -> None:
        """From now on there is no room, and that is known."""
        self.files.space_bytes = 0
        store.room.look()

    def refuse_next(self) -> None:
        """The next group finds that there is no room."""
        self.files.space_bytes = 0
        self.files.fails_on = lambda operation, path: operation == "write" and "segment-" in path
        self.files.operations, self.files.fail_at, self.files.fail_errno = 0, 1, errno.ENOSPC

    def make_room(self, store: ObjectStore) -> None:
        self.files.space_bytes = None
        store.room.look()

    def set_time(self, time_us: int) -> None:
        self._logs.clock = itertools.count(time_us, 1_000)

    def close(self) -> None:
        self._logs.abandon()


class MemoryStores:
    """In memory; databases' files on the same simulated disk."""

    def __init__(self, disk: SimulatedDisk, vfs: str) -> None:
        self.files, self._disk = disk, Disk()
        self._clock = itertools.count(1_000_000, 1_000)

    def open(self) -> ObjectStore:
        return MemoryLog(self._disk, self.files, "/objects/data", lambda: next(self._clock)).store

    def kill(self) -> None: ...

    def fill(self, store: ObjectStore) -> None:
        self._disk.is_full = True
        store.room.look()

    def refuse_next(self) -> None:
        self._disk.is_full = True

    def make_room(self, store: ObjectStore) -> None:
        self._disk.is_full = False
        store.room.look()

    def set_time(self, time_us: int) -> None:
        self._clock = itertools.count(time_us, 1_000)

    def close(self) -> None: ...


Stores = LocalStores | MemoryStores
FACTORIES: dict[str, Callable[[SimulatedDisk, str], Stores]] = {"local": LocalStores, "memory": MemoryStores}


def image_of(stores: Stores, lease: Lease) -> bytes:
    """What is in the file of an object's database."""
    if not stores.files.exists(lease.path):
        return b""
    file = stores.files.open(lease.path)
    try:
        return file.read(file.size(), 0)
    finally:
        file.close()
