"""The control data's store on SQLite.

Owns  `control.db`: its change feed, and the name of each opening.
Not   tables other than the feed's; opening a database file (`database`).
"""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from edgestead.sqlite.database import Database
from edgestead.sqlite.feed import Life, SqliteFeed
from edgestead.sqlite.outbox import DELETE_LIVES_UPTO, INSERT_LIFE, LIST_LIVES, MIGRATIONS, Outbox
from edgestead.sqlite.writer import Listener
from edgestead.store.changes import LIVES_MAX, TAIL_BYTES_MAX, TAIL_ROWS_MAX
from edgestead.store.control import Committed, Reader, Row, Transaction
from edgestead.store.migrations import Doing, Migration, quiet

T = TypeVar("T")


class SqliteControlStore:
    """One database file, one writer thread, a read-only connection per reading thread.

    Cost    a read of one row about 10 µs; a write its share of its group's fdatasync.
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
        ahead: bool = False,
        synced: bool = True,
        is_copy: bool = False,
        vfs: str | None = None,
        doing: Doing = quiet,
    ) -> None:
        """Open, create or upgrade the database; the caller has the folder's lock.

        `migrations` are those of `tables`, run after the store's own. Raises as `Database`.
        """
        lives: list[Life] = []
        self.database = Database(
            path,
            {"store": MIGRATIONS, "tables": migrations},
            name="control-writer",
            outbox=partial(Outbox, tail_rows_max=tail_rows_max, tail_bytes_max=tail_bytes_max),
            prepare=lambda db, outbox: lives.extend(begin_life(db, new_feed_id(), outbox.head)),
            ahead=ahead,
            synced=synced,
            is_copy=is_copy,
            vfs=vfs,
            doing=doing,
        )
        self._readers, self._writer = self.database.readers, self.database.writer
        self.feed = SqliteFeed(self, lives)

    def write(self, fn: Callable[[Transaction], T]) -> Future[Committed]:
        return self._writer.write(fn)

    def on_commit(self, listener: Listener) -> None:
        self._writer.on_commit(listener)

    def on_group(self, listener: Listener) -> None:
        self._writer.on_group(listener)

    def off_group(self, listener: Listener) -> None:
        self._writer.off_group(listener)

    @property
    def waiting(self) -> int:
        """Writes that are queued and not started."""
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
        self.database.close()


def begin_life(db: apsw.Connection, feed_id: str, head: int) -> list[Life]:
    """Give this opening its name; returns all openings of this history, this one last."""
    lives: list[Row] = db.execute(LIST_LIVES).fetchall()
    number = lives[-1][0] + 1 if lives else 1
    with db:
        db.execute(INSERT_LIFE, (number, feed_id, head)).fetchall()
        db.execute(DELETE_LIVES_UPTO, (number - LIVES_MAX,)).fetchall()
    return lives_of(db)


def lives_of(db: apsw.Connection) -> list[Life]:
    return [Life(feed_id, head) for _, feed_id, head in db.execute(LIST_LIVES)]
