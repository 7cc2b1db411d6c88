"""The control data of one node of a cluster: a copy of the control log that is written to where it leads.

Owns  opening a copy, whose writes go through the log; loading one from a base.
Not   changesets and entries (`logged`); who leads.
"""

import hashlib
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import apsw

from edgestead.model.refusals import Unavailable
from edgestead.sqlite.connection import open_reader, pragma, sync_folder
from edgestead.sqlite.control import SqliteControlStore, begin_life, lives_of
from edgestead.sqlite.database import Database
from edgestead.sqlite.feed import SqliteFeed
from edgestead.sqlite.logged import Logged, position_of
from edgestead.sqlite.outbox import MIGRATIONS, Outbox
from edgestead.sqlite.witness import path_of
from edgestead.store.answered import Answers
from edgestead.store.changes import TAIL_BYTES_MAX, TAIL_ROWS_MAX, Change
from edgestead.store.control import Reader
from edgestead.store.controllog import PART_BYTES, Base, ControlLog, Diverged, Entry, Position, holds
from edgestead.store.migrations import Migration

BUSY_SECONDS_MAX = 60  # for a copy of the database to be made while it is written to
_SUFFIXES = ("", "-wal", "-shm")


class ReplicaControlStore(SqliteControlStore):
    """A `ControlStore` that accepts writes while `leads`. `load` has made its file.

    Local commits are not synced: what a power cut takes from the file is in the log.
    """

    def __init__(
        self,
        path: Path,
        log: ControlLog,
        migrations: Sequence[Migration] = (),
        *,
        on_lost: Callable[[str], None] = lambda reason: None,
        on_append: Callable[[Entry], None] = lambda entry: None,
        new_feed_id: Callable[[], str] = lambda: secrets.token_hex(16),
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        tail_rows_max: int = TAIL_ROWS_MAX,
        tail_bytes_max: int = TAIL_BYTES_MAX,
        ahead: bool = False,
    ) -> None:
        """Raises as `Database`; SchemaError when this program is older than the log."""
        parts = {"store": MIGRATIONS, "tables": migrations}
        self._new_feed_id = new_feed_id
        made: list[Logged] = []

        def committer(db: apsw.Connection, outbox: Outbox) -> Logged:
            pragma(db, "synchronous", "NORMAL")
            made.append(
                Logged(db, outbox, log, parts=parts, now_us=now_us, on_lost=on_lost, on_append=on_append)
            )
            self._db, self._outbox = db, outbox
            return made[0]

        self.database = Database(
            path,
            parts,
            name="control-writer",
            outbox=partial(Outbox, tail_rows_max=tail_rows_max, tail_bytes_max=tail_bytes_max),
            ahead=ahead,
            committer=committer,
        )
        self._logged = made[0]
        self._readers, self._writer = self.database.readers, self.database.writer
        self.feed = SqliteFeed(self, lives_of(self._db))

    @property
    def position(self) -> Position:
        """How far this copy is in the log."""
        return self._logged.position

    @property
    def answers(self) -> Answers:
        """Of the requests that this node passed on, as the log has them."""
        return self._logged.answers

    @property
    def incarnation(self) -> int | None:
        """The number by which entries are appended. It changes on the writer's thread, between groups."""
        return self._logged.incarnation

    @property
    def leads(self) -> bool:
        return self._logged.leads

    @property
    def lacks_migrations(self) -> bool:
        """The log's schema is older than this program's: nothing may be read until a leader migrated it."""
        return bool(self._logged.lacking)

    def apply(self, entries: Sequence[Entry]) -> Future[None]:
        """Apply what others appended. The future fails with Diverged, SchemaError, or an error of SQLite."""
        return self._writer.between(lambda: self._renewed(self._logged.apply(entries)))

    def take_office(self, incarnation: int) -> Future[None]:
        """Accept writes. The future fails with NotLeader, Unknown, Unavailable, SchemaError or
        Diverged.
        """
        return self._writer.between(lambda: self._renewed(self._begin_office(incarnation)))

    def resign(self) -> Future[None]:
        """Accept no more writes; the future settles when those that are queued are decided."""

        def resign() -> Sequence[Change]:
            self._logged.resign()
            return ()

        return self._writer.between(resign)

    def read_between(self, fn: Callable[[Reader], None]) -> Future[None]:
        """Run `fn` where nothing is applied or committed meanwhile: its listeners miss nothing."""

        def read() -> Sequence[Change]:
            self.read(fn)
            return ()

        return self._writer.between(read)

    def _begin_office(self, incarnation: int) -> Sequence[Change]:
        return self._logged.take_office(
            incarnation, lambda: _insert_life(self._db, self._new_feed_id(), self._outbox.head)
        )

    def _renewed(self, changes: Sequence[Change]) -> Sequence[Change]:
        lives = lives_of(self._db)
        if lives[-1].feed_id != self.feed.feed_id:
            self.feed.live_on(lives)
        return changes


def _insert_life(db: apsw.Connection, feed_id: str, head: int) -> None:
    begin_life(db, feed_id, head)  # its transaction is a savepoint of ours


def load(path: Path, log: ControlLog) -> bool:
    """Make the file of a copy, unless its position is in the log; returns whether it was made.

    Raises Unavailable, OSError, apsw.Error; Diverged when the log has no base.
    """
    if path.exists() and _continues(path, log):
        return False
    discard(path)
    base = log.newest_base()
    if base is None:
        raise Diverged("the cluster's database has no copy of the control data: run `edgecli cluster init`")
    partial_ = path.with_name(f"{path.name}.loading")
    _remove(partial_)
    try:
        _bring(log, base, partial_)
        os.rename(partial_, path)
    except BaseException:
        _remove(partial_)
        raise
    sync_folder(path.parent)
    return True


def _bring(log: ControlLog, base: Base, target: Path) -> None:
    digest = hashlib.sha256()
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        for part in log.read_base(base):
            digest.update(part)
            file.write(zlib.decompress(part))
        file.flush()
        os.fsync(file.fileno())
    if digest.digest() != base.sha256:
        raise Unavailable()
    _set_position(target, base)


def _remove(partial_: Path) -> None:
    """With the journal of a process that was killed: SQLite would play it back into whatever comes next."""
    for suffix in ("", "-journal"):
        Path(f"{partial_}{suffix}").unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Remove the files of a copy that cannot go on."""
    for one in (*(Path(f"{path}{suffix}") for suffix in _SUFFIXES), path_of(path)):
        one.unlink(missing_ok=True)


@contextmanager
def copy_parts(path: Path) -> Iterator[tuple[Position, Iterator[bytes]]]:
    """The parts of a base out of a database that may be in use, and its position. Meanwhile a copy is there.

    Raises OSError, apsw.Error.
    """
    partial_ = path.with_name(f"{path.name}.base")
    _remove(partial_)
    try:
        yield _copy(path, partial_), _parts(partial_)
    finally:
        _remove(partial_)


def _copy(path: Path, target: Path) -> Position:
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(open_reader(path)) as source, closing(apsw.Connection(os.fspath(target))) as copy:
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(-1)
        pragma(copy, "journal_mode", "DELETE")
        return position_of(copy)


def _parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while content := file.read(PART_BYTES):
            yield zlib.compress(content, 1)


def digest_of(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _continues(path: Path, log: ControlLog) -> bool:
    """Whether a file's last entry is the log's, or its base's."""
    try:
        db = open_reader(path)
        try:
            position = position_of(db)
        finally:
            db.close()
    except apsw.Error:
        return False
    return bool(position.chain) and holds(log, position)


def _set_position(path: Path, base: Base) -> None:
    db = apsw.Connection(os.fspath(path))
    try:
        position = position_of(db)
        if position != base.position:
            db.execute(
                "INSERT INTO control_position (one, sequence, chain) VALUES (1, ?, ?) "
                "ON CONFLICT (one) DO UPDATE SET sequence = excluded.sequence, chain = excluded.chain",
                base.position,
            ).fetchall()
    finally:
        db.close()
