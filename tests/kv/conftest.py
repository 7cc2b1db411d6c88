"""The implementations that the key-value contract suites run against: a second one is one more row."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgestead.model.call import Profile
from edgestead.store.kv import BlobStore, KvStore
from edgestead.store.sqlite.blobs import FileBlobs
from edgestead.store.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.testing.api import LocalApi

from .api import NAMESPACES, Namespace


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


@pytest.fixture
def profile() -> Profile:
    """A test that asks the other profile overrides this."""
    return Profile.SPEC


@pytest.fixture
def api(tmp_path: Path, profile: Profile) -> Iterator[LocalApi]:
    made = LocalApi(tmp_path, profile=profile)
    yield made
    made.close()


@pytest.fixture
def namespace(api: LocalApi) -> Namespace:
    return Namespace(api, api.post(NAMESPACES, {"title": "things"}).result["id"])
