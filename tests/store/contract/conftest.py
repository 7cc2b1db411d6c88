"""The implementations that each contract suite runs against."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.replica import ReplicaControlStore
from edgestead.store.kv import BlobStore
from edgestead.store.migrations import Migration
from edgestead.testing.disks import SimulatedDisk
from tests.store.contract import kv_stores, object_stores
from tests.support.memory_control import Database, MemoryControlStore
from tests.support.memory_log import MemoryControlLog, begin_log, lead, open_copy

SCHEMA = "CREATE TABLE notes (id text PRIMARY KEY, body text NOT NULL);"
NOTES = (Migration(1, "notes", SCHEMA),)


class SqliteStores:
    """Opens stores over one database; every one is closed at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "control.db"
        self.opened: list[SqliteControlStore] = []

    def open(self, **limits: Any) -> SqliteControlStore:
        self.opened.append(SqliteControlStore(self.path, NOTES, **limits))
        return self.opened[-1]

    def close(self) -> None:
        for store in self.opened:
            store.close()


class MemoryStores:
    """The same in memory."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(SCHEMA)
        self.opened: list[MemoryControlStore] = []

    def open(self, **limits: Any) -> MemoryControlStore:
        self.opened.append(MemoryControlStore(self._database, **limits))
        return self.opened[-1]

    def close(self) -> None:
        for store in self.opened:
            store.close()


class ReplicaStores:
    """Each opening is another node, which leads the one log."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, MemoryControlLog()
        begin_log(self._log, folder, NOTES)
        self.opened: list[ReplicaControlStore] = []

    def open(self, **limits: Any) -> ReplicaControlStore:
        number = len(self.opened) + 1
        store = open_copy(self._log, self._folder / f"copy-{number}.db", NOTES, **limits)
        self.opened.append(store)
        lead(store, self._log, number)
        return store

    def close(self) -> None:
        for store in self.opened:
            store.close()


Stores = SqliteStores | MemoryStores | ReplicaStores
FACTORIES: dict[str, Callable[[Path], Stores]] = {
    "sqlite": SqliteStores,
    "memory": MemoryStores,
    "replica": ReplicaStores,
}


@pytest.fixture(params=FACTORIES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    made = FACTORIES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(stores: Stores) -> SqliteControlStore | MemoryControlStore:
    return stores.open()


@pytest.fixture(params=[*object_stores.FACTORIES, *object_stores.ON_POSTGRES])
def objects(request: pytest.FixtureRequest) -> Iterator[object_stores.Stores]:
    disk = SimulatedDisk()
    with disk.vfs(f"contract-{id(disk)}") as vfs:
        made: object_stores.Stores
        if request.param in object_stores.FACTORIES:
            made = object_stores.FACTORIES[request.param](disk, vfs)
        else:
            dsn = request.getfixturevalue("postgres").emptied()
            made = object_stores.ON_POSTGRES[request.param](disk, vfs, dsn)
        yield made
        made.close()
    disk.wipe()


@pytest.fixture(params=kv_stores.NAMES)
def kv_folder(request: pytest.FixtureRequest) -> Iterator[kv_stores.KvStores]:
    with kv_stores.opened(request.param, request) as made:
        yield made


@pytest.fixture
def blobs(kv_folder: kv_stores.KvStores) -> BlobStore:
    return kv_folder.blobs()
