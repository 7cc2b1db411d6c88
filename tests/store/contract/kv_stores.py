"""Openers of key-value stores: each keeps what is durable from one `open` to the next."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from edgestead.postgres.blobs import PostgresBlobs
from edgestead.postgres.connection import Link
from edgestead.postgres.kv import PostgresKvStore
from edgestead.s3.bodies import Bucket
from edgestead.sqlite.blobs import FileBlobs
from edgestead.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.store.kv import BlobStore, Bodies
from tests.support import s3
from tests.support.memory_kv import Folder, MemoryBlobs, MemoryKvStore


class SqliteKvStores:
    """Opens stores over one folder; every one is closed at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[SqliteKvStore] = []

    def open(self, **quota: Any) -> SqliteKvStore:
        self.opened.append(SqliteKvStore(self.folder, **quota))
        return self.opened[-1]

    def blobs(self) -> BlobStore:
        return FileBlobs(self.folder / BLOBS_NAME)

    def damage(self, content: bytes) -> None:
        """The one blob that there is has other bytes from now on."""
        (file,) = (self.folder / BLOBS_NAME).iterdir()
        file.write_bytes(content)

    def close(self) -> None:
        for store in self.opened:
            store.close()


class MemoryKvStores:
    """The same in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = Folder()

    def open(self, **quota: Any) -> MemoryKvStore:
        return MemoryKvStore(self._folder, **quota)

    def blobs(self) -> BlobStore:
        return MemoryBlobs(self._folder)

    def damage(self, content: bytes) -> None:
        ((id_, (_, written_s)),) = self._folder.blobs.items()
        self._folder.blobs[id_] = (content, written_s)

    def close(self) -> None: ...


class PostgresKvStores:
    """Opens stores over one database; every one is closed at the end of the test."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.opened: list[PostgresKvStore] = []
        self._blobs = PostgresBlobs(dsn, bodies=self._bodies())

    def _bodies(self) -> Bodies | None:
        return None

    def open(self, **quota: Any) -> PostgresKvStore:
        self.opened.append(PostgresKvStore(self._dsn, bodies=self._bodies(), **quota))
        return self.opened[-1]

    def blobs(self) -> BlobStore:
        return self._blobs

    def damage(self, content: bytes) -> None:
        with closing(Link(self._dsn)) as link:
            assert link.run("UPDATE kv_parts SET body = %b", (content,)) == 1

    def close(self) -> None:
        for store in self.opened:
            store.close()
        self._blobs.close()


class S3KvStores(PostgresKvStores):
    """The same with large values in a bucket."""

    def __init__(self, dsn: str, bucket: Bucket) -> None:
        self.bucket = bucket
        super().__init__(dsn)

    def _bodies(self) -> Bodies:
        return s3.Shared(self.bucket)

    def damage(self, content: bytes) -> None:
        (key,) = s3.held(self.bucket)
        s3.client_of(self.bucket).put_object(Bucket=s3.name_of(self.bucket), Key=key, Body=content)


KvStores = SqliteKvStores | MemoryKvStores | PostgresKvStores
FACTORIES: dict[str, Callable[[Path], KvStores]] = {"sqlite": SqliteKvStores, "memory": MemoryKvStores}
NAMES = (*FACTORIES, "postgres", "s3")


@contextmanager
def opened(name: str, request: pytest.FixtureRequest) -> Iterator[KvStores]:
    """An opener by its name; servers are started by the first test that needs them."""
    if name == "postgres":
        made: KvStores = PostgresKvStores(request.getfixturevalue("postgres").emptied())
    elif name == "s3":
        made = S3KvStores(
            request.getfixturevalue("postgres").emptied(), request.getfixturevalue("s3").bucket("/large")
        )
    else:
        made = FACTORIES[name](request.getfixturevalue("tmp_path"))
    try:
        yield made
    finally:
        made.close()
