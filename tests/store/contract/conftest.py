"""The implementations that the contract suite runs against: a second one is one more row of FACTORIES."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgestead.store.migrations import Migration
from edgestead.store.sqlite.control import SqliteControlStore

NOTES = (Migration(1, "notes", "CREATE TABLE notes (id text PRIMARY KEY, body text NOT NULL);"),)


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


FACTORIES = {"sqlite": SqliteStores}


@pytest.fixture(params=FACTORIES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStores]:
    made = FACTORIES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(stores: SqliteStores) -> SqliteControlStore:
    return stores.open()
