"""The implementations that each contract suite runs against."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.kv import BlobStore
from edgestead.store.migrations import Migration
from edgestead.testing.disks import SimulatedDisk
from tests.store.contract import kv_stores, object_stores
from tests.support.memory_control import Database, MemoryControlStore

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


Stores = SqliteStores | MemoryStores
FACTORIES: dict[str, Callable[[Path], Stores]] = {"sqlite": SqliteStores, "memory": MemoryStores}


@pytest.fixture(params=FACTORIES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    made = FACTORIES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(stores: Stores) -> SqliteControlStore | MemoryControlStore:
    return stores.open()


@pytest.fixture(params=object_stores.FACTORIES)
def objects(request: pytest.FixtureRequest) -> Iterator[object_stores.Stores]:
    disk = SimulatedDisk()
    with disk.vfs(f"contract-{id(disk)}") as vfs:
        made = object_stores.FACTORIES[request.param](disk, vfs)
        yield made
        made.close()
    disk.wipe()


@pytest.fixture(params=kv_stores.FACTORIES)
def kv_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[kv_stores.KvStores]:
    made = kv_stores.FACTORIES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def blobs(kv_folder: kv_stores.KvStores) -> BlobStore:
    return kv_folder.blobs()
