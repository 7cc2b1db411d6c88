"""Large values as files: one folder, one file per value, under a random name.

Owns  the folder; when a file counts as durable.
Not   which files are still needed: that is in the rows.

A name is never reused and nothing refers to a file before it is durable, so a file is written in place:
no temporary name, no rename. Files left behind by a crash are swept by age.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgestead.sqlite.connection import sync_folder, unavailable
from edgestead.store.kv import CHUNK_BYTES, Blob, Damaged

ID_BYTES = 16


def _random_id() -> str:
    return secrets.token_hex(ID_BYTES)


class FileBlobs:
    """A `BlobStore` in one folder, made when missing. Safe to use from any thread."""

    def __init__(self, folder: Path, *, random_id: Callable[[], str] = _random_id) -> None:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(folder.parent)
        self._folder = folder
        self._random_id = random_id

    def create(self) -> "FileBlobWriter":
        return FileBlobWriter(self._folder, self._random_id())

    def open(self, blob: Blob) -> "FileBlobReader":
        return FileBlobReader(self._folder / blob.id, blob)

    def remove(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            with suppress(OSError):  # gone already; or the disk fails, and the sweep will try again
                (self._folder / id_).unlink()

    def idle_ids(self, before_s: float) -> Iterator[str]:
        with os.scandir(self._folder) as files:
            for file in files:
                try:
                    idle = file.stat().st_mtime < before_s
                except FileNotFoundError:  # removed between the two looks
                    continue
                if idle:
                    yield file.name


@contextmanager
def _disk() -> Iterator[None]:
    """Turns the error of a full or failing disk into Unavailable, as the database does."""
    try:
        yield
    except OSError as error:
        raise unavailable(error) from error


class FileBlobWriter:
    """A `BlobWriter`. Each step raises Unavailable when the disk fails; then discard() it."""

    def __init__(self, folder: Path, id_: str) -> None:
        self._folder = folder
        self._id = id_
        self._sha256 = hashlib.sha256()
        self._length = 0
        self._file: int | None = None
        with _disk():
            self._file = os.open(folder / id_, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, chunk: bytes) -> None:
        assert self._file is not None, "the blob is finished"
        self._sha256.update(chunk)
        self._length += len(chunk)
        rest = memoryview(chunk)
        with _disk():
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def finish(self) -> Blob:
        assert self._file is not None, "the blob is finished"
        with _disk():
            os.fsync(self._file)
            self._close()
            # The name must be durable too, or the row would outlive its bytes.
            sync_folder(self._folder)
        return Blob(self._id, self._length, self._sha256.digest())

    def discard(self) -> None:
        self._close()
        with suppress(OSError):  # as in FileBlobs.remove
            (self._folder / self._id).unlink()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class FileBlobReader:
    def __init__(self, path: Path, blob: Blob) -> None:
        self._blob = blob
        self._file = path.open("rb", buffering=0)
        length = os.fstat(self._file.fileno()).st_size
        if length != blob.length:
            self._file.close()
            raise Damaged(f"blob {blob.id} is {length} bytes long, its row says {blob.length}")

    def __iter__(self) -> Iterator[bytes]:
        sha256 = hashlib.sha256()
        left = self._blob.length
        while left:
            chunk = self._file.read(min(CHUNK_BYTES, left))
            sha256.update(chunk)
            left -= len(chunk)
            if not chunk or (not left and sha256.digest() != self._blob.sha256):
                raise Damaged(f"blob {self._blob.id} does not have the bytes that were written")
            yield chunk

    def close(self) -> None:
        self._file.close()
