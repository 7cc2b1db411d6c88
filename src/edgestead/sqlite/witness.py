"""How far a database was acknowledged, in a second file, so that a lost journal is detected.

Owns  `NAME.witness`, and the row in the database that counts commits without a change of the feed.
Not   which writes are lost, or getting them back.

SQLite reads a write-ahead log up to the first damaged frame and ignores the rest: acknowledged commits are
lost without an error. So after each commit, before it is acknowledged, the witness records how far the
database is: the newest sequence of its feed, and the count of its other commits, which is a row of the
database. A database that is behind its witness has lost commits.

Writes do not wait until the witness is on the disk: the kernel keeps what a killed process wrote. A power cut
may lose some; then the witness is behind the database, which is no error. `flush` limits how far. Two slots
are written alternately, each with a checksum, so after a crash during a write the other one is valid. A
mapped page would be cheaper, but ends the process (SIGBUS) when the file system is full.
"""

import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from edgestead.sqlite.connection import sync_folder
from edgestead.store.migrations import Migration

SUFFIX: Final = ".witness"
PAGE_BYTES: Final = 4_096
_PLACES: Final = (0, 2_048)
_RECORD: Final = struct.Struct("<8sQQ")
_CHECKSUM: Final = struct.Struct("<I")
_MAGIC: Final = b"witness1"

COUNT_COMMITS: Final = "UPDATE commits SET number = number + 1 RETURNING number"
SELECT_COMMITS: Final = "SELECT number FROM commits"
SELECT_HEAD: Final = "SELECT ifnull(max(sequence), 0) FROM outbox"
TOUCH: Final = "UPDATE commits SET number = number"


def migration(number: int) -> Migration:
    return Migration(
        number,
        "count of commits",
        """
        CREATE TABLE commits (number integer NOT NULL);
        INSERT INTO commits (number) VALUES (0);
        """,
    )


class WritesLost(Exception):
    """A database ends before what was acknowledged. The message is for the operator, and says what to do."""


class Noted(NamedTuple):
    """The count of commits, and the newest sequence of the change feed (0 where there is none).

    A commit that emits moves the sequence, and is not counted: that would change one more page.
    """

    commits: int
    sequence: int


class Witness:
    """The witness of one database, created (0600) where there is none. Without `synced` it waits for no disk.

    Raises OSError.
    """

    def __init__(self, database: Path, *, synced: bool = True) -> None:
        path = path_of(database)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(self._descriptor).st_size < PAGE_BYTES:
                if os.geteuid() == 0:  # root's command on the folder of another user's server
                    owner = path.parent.stat()
                    os.fchown(self._descriptor, owner.st_uid, owner.st_gid)
                os.pwrite(self._descriptor, bytes(PAGE_BYTES), 0)  # no hole: later writes need no new space
                os.fsync(self._descriptor)
                sync_folder(path.parent)
        except OSError:
            os.close(self._descriptor)
            raise
        page = os.pread(self._descriptor, PAGE_BYTES, 0)
        places = [_record_at(page, place) for place in _PLACES]
        self._turn = int(places[1] > places[0])  # the place of the newest
        self._synced, self._is_flushed = synced, True

    def note(self, noted: Noted) -> None:
        """Only from one thread. Cost: 2 µs.

        If it cannot be written it is cleared: with a witness that lags, DNS processes would take an older
        change for the newest.
        """
        self._turn ^= 1
        self._is_flushed = False
        record = _RECORD.pack(_MAGIC, *noted)
        record += _CHECKSUM.pack(zlib.crc32(record))
        try:
            os.pwrite(self._descriptor, record, _PLACES[self._turn])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)

    def flush(self) -> None:
        """Sync it if something was noted. Blocks; after an error the next flush tries again."""
        if self._synced and not self._is_flushed:
            self._is_flushed = True  # first: what is noted meanwhile may be too late for this sync
            try:
                os.fdatasync(self._descriptor)
            except OSError:
                self._is_flushed = False

    def close(self) -> None:
        if self._descriptor >= 0:
            self.flush()
            os.close(self._descriptor)
            self._descriptor = -1


def path_of(database: Path) -> Path:
    return database.with_name(database.name + SUFFIX)


def read(page: bytes) -> Noted:
    """The newest entry of a page; zeros without any."""
    return max((_record_at(page, place) for place in _PLACES), default=Noted(0, 0))


def read_file(database: Path) -> Noted:
    """The same of the file beside a database; zeros where there is none. Raises OSError."""
    try:
        return read(path_of(database).read_bytes()[:PAGE_BYTES])
    except FileNotFoundError:
        return Noted(0, 0)


def check(database: Path, noted: Noted, db: apsw.Connection) -> None:
    """Compare what was noted with the count in the database. Raises WritesLost, apsw.Error."""
    for unit, acknowledged, select in (
        ("change", noted.sequence, SELECT_HEAD),
        ("commit", noted.commits, SELECT_COMMITS),
    ):
        end = _number(db, select) if acknowledged else 0
        lost = acknowledged - end
        if lost > 0:
            raise WritesLost(
                f"{database} ends at {unit} {end}, and {acknowledged} were acknowledged: {lost} "
                f"{'is' if lost == 1 else 'are'} lost, by a damaged disk or an older copy of the file. "
                f"Restore a backup, or, to go on without them, move {path_of(database)} away"
            )


def _number(db: apsw.Connection, select: str) -> int:
    ((number,),) = db.execute(select).fetchall()
    assert isinstance(number, int)
    return number


def _record_at(page: bytes, place: int) -> Noted:
    record = page[place : place + _RECORD.size]
    checksum = page[place + _RECORD.size : place + _RECORD.size + _CHECKSUM.size]
    if len(checksum) < _CHECKSUM.size or _CHECKSUM.unpack(checksum) != (zlib.crc32(record),):
        return Noted(0, 0)
    magic, commits, sequence = _RECORD.unpack(record)
    return Noted(commits, sequence) if magic == _MAGIC else Noted(0, 0)
