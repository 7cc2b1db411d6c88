"""Openers of key-value stores: each keeps what is durable from one `open` to the next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgestead.sqlite.blobs import FileBlobs
from edgestead.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.store.kv import BlobStore
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


KvStores = SqliteKvStores | MemoryKvStores
FACTORIES: dict[str, Callable[[Path], KvStores]] = {"sqlite": SqliteKvStores, "memory": MemoryKvStores}
