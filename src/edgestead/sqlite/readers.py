"""Read-only connections to one database, one for each thread that reads.

Owns  opening them on first use, one snapshot per read, closing them all.
Not   what is read.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import apsw

from edgestead.model.refusals import Unavailable
from edgestead.sqlite.connection import STORAGE_ERRORS, open_reader, unavailable
from edgestead.sqlite.transaction import SqliteReader
from edgestead.store.control import Reader, Row

T = TypeVar("T")


class Readers:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._mine = threading.local()
        self._all: WeakSet[apsw.Connection] = WeakSet()
        self._closed = False

    def read(self, fn: Callable[[Reader], T]) -> T:
        """Run `fn` on one snapshot, on the calling thread. A nested read uses the outer one's.

        Raises Unavailable when closed or when storage fails, and whatever `fn` raises.
        """
        db, reader = self._connection()
        try:
            if db.in_transaction:
                return fn(reader)
            db.execute("BEGIN")
            try:
                return fn(reader)
            finally:
                _end(db)
        except STORAGE_ERRORS as error:
            raise unavailable(error) from error

    def read_one(self, fn: Callable[[Reader], T]) -> T:
        """As `read`, but every statement of `fn` sees its own snapshot (unless inside another read)."""
        _, reader = self._connection()
        try:
            return fn(reader)
        except STORAGE_ERRORS as error:
            raise unavailable(error) from error

    def rows(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """The rows of one statement, which is its own snapshot.

        Without the BEGIN and COMMIT of `read` it makes a third of the calls into SQLite, and each call may
        have to wait for the GIL while another thread is busy. Raises Unavailable.
        """
        _, reader = self._connection()
        try:
            return reader.rows(sql, parameters)
        except STORAGE_ERRORS as error:
            raise unavailable(error) from error

    def close(self) -> None:
        """Idempotent. Later reads raise Unavailable."""
        self._closed = True
        for reader in list(self._all):
            with suppress(apsw.ThreadingViolationError):  # it is reading right now and closes with its thread
                reader.close()

    def _connection(self) -> tuple[apsw.Connection, SqliteReader]:
        if self._closed:
            raise Unavailable()
        try:
            return self._mine.connection  # type: ignore[no-any-return]
        except AttributeError:
            self._mine.connection = opened = self._connect()
            return opened

    def _connect(self) -> tuple[apsw.Connection, SqliteReader]:
        try:
            db = open_reader(self._path)
        except STORAGE_ERRORS as error:
            raise unavailable(error) from error
        self._all.add(db)
        return db, SqliteReader(db)


def _end(db: apsw.Connection) -> None:
    """End a transaction, unless SQLite has: it does where the disk fails."""
    if db.in_transaction:
        db.execute("COMMIT")
