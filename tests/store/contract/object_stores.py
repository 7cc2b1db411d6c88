"""Openers of the objects' storage: each keeps what is durable from one `open` to the next."""

import errno
import itertools
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import msgspec
import psycopg

from edgestead.cluster.placement import SLOTS
from edgestead.postgres.connection import Away, Link
from edgestead.postgres.objectlog.log import BASE_BYTES, PostgresObjectLog
from edgestead.store.objectlog import (
    UNCHANGED,
    Alarm,
    CatalogueEntry,
    Commit,
    CommitKind,
    Group,
    Lease,
    LogError,
    ObjectRef,
)
from edgestead.store.objects import ObjectStore
from edgestead.store.pages import PAGE_BYTES, frames_of
from edgestead.store.runner import InlineRunner
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


def acquired(store: ObjectStore, of: ObjectRef) -> Lease:
    """The lease of an object."""
    lease: Lease = asked(store, lambda done: store.log.acquire(of, done))
    return lease


def found(store: ObjectStore, of: ObjectRef) -> CatalogueEntry | None:
    """What the log has of an object."""
    entry: CatalogueEntry | None = asked(store, lambda done: store.log.find(of, done))
    return entry


def listed(store: ObjectStore, after: tuple[str, str] = ("", "")) -> list[CatalogueEntry]:
    """The catalogue, by pages of two."""
    page: list[CatalogueEntry] = asked(store, partial(store.log.catalogue, after, 2))
    if len(page) < 2:
        return page
    return page + listed(store, (page[-1].ref.class_name, page[-1].ref.id))


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


class Full(Link):
    """A connection to a database without room, while `is_full`."""

    is_full = False

    def _execute(self, statement: str, parameters: Any, **options: Any) -> Any:  # type: ignore[override]
        if Full.is_full and ("INSERT" in statement or "UPDATE" in statement):
            raise Away("no space left on device") from psycopg.errors.DiskFull("no space left on device")
        return super()._execute(statement, parameters, **options)


class Place:
    """One process of a cluster, which owns every slot."""

    def __init__(self, dsn: str, number: int) -> None:
        self.number = number
        with closing(Link(dsn)) as link:
            link.run("DELETE FROM incarnations")
            link.run(
                "INSERT INTO incarnations (number, node, kind, address, renewed) "
                "VALUES (%b, 'a', 'objects', '', 0)",
                (number,),
            )

    def owns(self, slot: int) -> bool:
        return True

    def may_answer(self) -> bool:
        return True


class PostgresStores:
    """In a cluster's database, each opening by another process; databases' files on a simulated disk."""

    def __init__(self, disk: SimulatedDisk, vfs: str, dsn: str, base_bytes: int = BASE_BYTES) -> None:
        self.files, self._dsn, self._base_bytes = disk, dsn, base_bytes
        self._clock = itertools.count(1_000_000, 1_000)
        self.opened: list[PostgresObjectLog] = []
        self.fatal: list[BaseException] = []
        Full.is_full = False

    def open(self) -> ObjectStore:
        log = PostgresObjectLog(
            self._dsn,
            "/objects/data",
            owner=Place(self._dsn, len(self.opened) + 1),
            files=self.files,
            writer=InlineRunner(),
            reader=InlineRunner(),
            upkeep=InlineRunner(),
            now_us=lambda: next(self._clock),
            fatal=self.fatal.append,
            base_bytes=self._base_bytes,
            link=Full,
        )
        self.opened.append(log)
        log.gained(range(SLOTS))
        return log.store

    def kill(self) -> None:
        self.opened[-1].abandon()

    def fill(self, store: ObjectStore) -> None:
        Full.is_full = True
        store.room.look()

    def refuse_next(self) -> None:
        Full.is_full = True

    def make_room(self, store: ObjectStore) -> None:
        Full.is_full = False
        store.room.look()

    def set_time(self, time_us: int) -> None:
        self._clock = itertools.count(time_us, 1_000)

    def close(self) -> None:
        for log in self.opened:
            log.abandon()


def based_often(disk: SimulatedDisk, vfs: str, dsn: str) -> PostgresStores:
    """The same with another base after each group."""
    return PostgresStores(disk, vfs, dsn, base_bytes=-1)


Stores = LocalStores | MemoryStores | PostgresStores
FACTORIES: dict[str, Callable[[SimulatedDisk, str], Stores]] = {"local": LocalStores, "memory": MemoryStores}
ON_POSTGRES = {"postgres": PostgresStores, "postgres-bases": based_often}


def image_of(stores: Stores, lease: Lease) -> bytes:
    """What is in the file of an object's database."""
    if not stores.files.exists(lease.path):
        return b""
    file = stores.files.open(lease.path)
    try:
        return file.read(file.size(), 0)
    finally:
        file.close()
