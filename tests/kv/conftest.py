"""The implementations that the key-value contract suites run against: a second one is one more row."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgestead.store.kv import BlobStore, KvStore
from edgestead.store.sqlite.blobs import FileBlobs
from edgestead.store.sqlite.kv import BLOBS_NAME, SqliteKvStore


class SqliteKvStores:
    """Opens stores over one folder; every one is closed at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[SqliteKvStore] = []

    def open(self) -> SqliteKvStore:
        self.opened.append(SqliteKvStore(self.folder))
        return self.opened[-1]

    def blobs(self) -> BlobStore:
        return FileBlobs(self.folder / BLOBS_NAME)

    def close(self) -> None:
        for store in self.opened:
            store.close()


FACTORIES = {"sqlite": SqliteKvStores}


@pytest.fixture(params=FACTORIES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteKvStores]:
    made = FACTORIES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(stores: SqliteKvStores) -> KvStore:
    return stores.open()


@pytest.fixture
def blobs(stores: SqliteKvStores) -> BlobStore:
    return stores.blobs()
