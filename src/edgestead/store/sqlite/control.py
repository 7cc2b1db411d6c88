"""The control data's store on SQLite.

Owns  opening `control.db` (migrations, identity), closing.
Asks  `writer` to write, `readers` to read, `migrate` for the schema.
Tells `services` by `read` and `write`, the publisher by `feed`.
Not   which tables there are beyond the feed's own.
"""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from edgestead.store.changes import LIVES_MAX, TAIL_BYTES_MAX, TAIL_ROWS_MAX
from edgestead.store.control import Committed, Reader, Row, Transaction
from edgestead.store.migrations import Migration
from edgestead.store.sqlite.connection import open_writer
from edgestead.store.sqlite.feed import Life, SqliteFeed
from edgestead.store.sqlite.migrate import migrate
from edgestead.store.sqlite.outbox import DELETE_LIVES_UPTO, INSERT_LIFE, LIST_LIVES, MIGRATIONS, Outbox
from edgestead.store.sqlite.readers import Readers
from edgestead.store.sqlite.writer import Listener, Writer

T = TypeVar("T")


class SqliteControlStore:
    """One database file, one writer thread, a read-only connection per reading thread.

    Cost    a read of one row about 10 µs; a write one share of its group's fdatasync.
    Limits  the writer's: WRITES_QUEUED_MAX, GROUP_WRITES_MAX, GROUP_MS_MAX; the feed's: `store.changes`.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Migration] = (),
        *,
        new_feed_id: Callable[[], str] = lambda: secrets.token_hex(16),
        tail_rows_max: int = TAIL_ROWS_MAX,
        tail_bytes_max: int = TAIL_BYTES_MAX,
        vfs: str | None = None,
    ) -> None:
        """Open, making or upgrading the database; the caller holds the folder's lock.

        `migrations` are those of `tables`, run after the store's own.
        Raises SchemaError and its children, OSError, apsw.Error.
        """
        self._path = path
        self._db = open_writer(path, vfs=vfs)
        try:
            self.backup = migrate(self._db, path, {"store": MIGRATIONS, "tables": migrations})
            outbox = Outbox(self._db.execute, tail_rows_max=tail_rows_max, tail_bytes_max=tail_bytes_max)
            self.feed = SqliteFeed(self, self._begin_life(new_feed_id(), outbox.head))
        except BaseException:
            self._db.close()
            raise
        self._readers = Readers(path)
        self._writer = Writer(self._db, outbox)

    def _begin_life(self, feed_id: str, head: int) -> list[Life]:
        """Give this opening its name; returns the ones that led here, itself the last."""
        lives: list[Row] = self._db.execute(LIST_LIVES).fetchall()
        lives.append((lives[-1][0] + 1 if lives else 1, feed_id, head))
        with self._db:
            self._db.execute(INSERT_LIFE, lives[-1]).fetchall()
            self._db.execute(DELETE_LIVES_UPTO, (lives[-1][0] - LIVES_MAX,)).fetchall()
        return [Life(feed_id, head) for _, feed_id, head in lives[-LIVES_MAX:]]

    def write(self, fn: Callable[[Transaction], T]) -> Future[Committed]:
        return self._writer.write(fn)

    def on_group(self, listener: Listener) -> None:
        self._writer.on_group(listener)

    @property
    def waiting(self) -> int:
        """Writes that are queued and not begun."""
        return self._writer.waiting

    @property
    def groups(self) -> int:
        return self._writer.groups

    def read_one(self, fn: Callable[[Reader], T]) -> T:
        return self._readers.read_one(fn)

    def read(self, fn: Callable[[Reader], T]) -> T:
        """As the interface says. A read inside a read sees the outer one's snapshot."""
        return self._readers.read(fn)

    def close(self) -> None:
        """Finish the queue, then close. Idempotent. Reads end with Unavailable from now on."""
        self._writer.close()
        self._readers.close()
        self._db.close()
