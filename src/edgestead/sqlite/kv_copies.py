"""A copy of the key-value store, including values in files, and its integrity check.

Owns  which files a copy needs, and what happens to values that are removed during the copy.
Not   control's namespaces: a copy may have values of some that control's copy does not have.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from edgestead.sqlite.connection import open_reader, sync_folder
from edgestead.sqlite.copies import Advance, copy_database, copy_file
from edgestead.sqlite.kv import BLOBS_NAME, DATABASE_NAME, HAS_BLOB

SELECT_BLOBS = "SELECT number, blob_id, blob_bytes, blob_sha256 FROM entries WHERE blob_id IS NOT NULL"
SELECT_BLOB_BYTES = "SELECT coalesce(sum(blob_bytes), 0) FROM entries"
# Its namespace is counted anew when a quota first needs that.
FORGET_OCTETS = "UPDATE spaces SET octets = NULL WHERE number = (SELECT space FROM entries WHERE number = ?)"
DELETE_ENTRY = "DELETE FROM entries WHERE number = ?"
SELECT_KEY = "SELECT s.id, e.key FROM entries e JOIN spaces s ON s.number = e.space WHERE e.number = ?"
SELECT_NEWEST = (
    "SELECT expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value FROM entries "
    "WHERE space = (SELECT number FROM spaces WHERE id = ?) AND key = ?"
)
REPLACE_ENTRY = (
    "UPDATE entries SET (expires_at_s, metadata, blob_id, blob_bytes, blob_sha256, value) = "
    "(?, ?, ?, ?, ?, ?) WHERE number = ?"
)

LOOKS_MAX = 8  # at a key that is replaced while it is copied


class _Blob(NamedTuple):
    number: int
    id: str
    length: int
    sha256: bytes


def copy_store(source: Path, target: Path, advance: Advance) -> None:
    """Copy the store of one folder into another, while others write it; durable when it returns.

    The database is copied first. A value in a file that is replaced before its file was copied is in the copy
    as it is a moment later, one that is deleted is not. Raises apsw.Error, OSError.
    """
    copy_database(source / DATABASE_NAME, target / DATABASE_NAME, advance)
    folder = target / BLOBS_NAME
    folder.mkdir(mode=0o700)
    gone = []
    for blob in _blobs(target / DATABASE_NAME):
        try:
            copy_file(source / BLOBS_NAME / blob.id, folder / blob.id)
        except FileNotFoundError:
            gone.append(blob.number)
        advance(blob.length)
    if gone:
        _look_again(source, target, gone)
    sync_folder(folder)


def _look_again(source: Path, target: Path, gone: list[int]) -> None:
    """Entries of the copy whose file was not there any more: as they are now."""
    with (
        closing(open_reader(source / DATABASE_NAME)) as theirs,
        closing(apsw.Connection(os.fspath(target / DATABASE_NAME))) as ours,
        ours,
    ):
        for number in gone:
            ours.execute(FORGET_OCTETS, (number,)).fetchall()
            key = ours.execute(SELECT_KEY, (number,)).fetchone()
            row = None if key is None else _copy_newest(theirs, key, source, target)
            if row is None:
                ours.execute(DELETE_ENTRY, (number,)).fetchall()
            else:
                ours.execute(REPLACE_ENTRY, (*row, number)).fetchall()


def _copy_newest(
    theirs: apsw.Connection, key: tuple[str, bytes], source: Path, target: Path
) -> tuple[Any, ...] | None:
    """The row of a key, with its file; None when there is none."""
    for _ in range(LOOKS_MAX):
        row: tuple[Any, ...] | None = theirs.execute(SELECT_NEWEST, key).fetchone()
        if row is None or row[2] is None:
            return row
        try:
            copy_file(source / BLOBS_NAME / row[2], target / BLOBS_NAME / row[2])
        except FileNotFoundError:
            continue  # replaced once more, or damage that is not for a copy to mend
        return row
    return None


def bytes_of_store(folder: Path) -> int:
    """The approximate size of a copy."""
    ((blobs,),) = _rows(folder / DATABASE_NAME, SELECT_BLOB_BYTES)
    return int(blobs) + (folder / DATABASE_NAME).stat().st_size


def blob_faults(folder: Path) -> Iterator[str]:
    """Values whose file is missing or damaged."""
    for blob in _blobs(folder / DATABASE_NAME):
        name = f"{BLOBS_NAME}/{blob.id}"
        try:
            if _digest(folder / name) != blob.sha256:
                yield f"{name} does not have the bytes that were written"
        except FileNotFoundError:
            if _is_needed(folder, blob):  # else it went while we looked
                yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read: {error.strerror}"


def _blobs(database: Path) -> list[_Blob]:
    return [_Blob(*row) for row in _rows(database, SELECT_BLOBS)]


def _is_needed(folder: Path, blob: _Blob) -> bool:
    return bool(_rows(folder / DATABASE_NAME, HAS_BLOB, blob.id))


def _rows(database: Path, query: str, *values: str) -> list[Any]:
    with closing(open_reader(database)) as db:
        return db.execute(query, values).fetchall()


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
