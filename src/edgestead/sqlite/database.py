"""One database file of a store: a thread that writes, connections that read, a witness.

Owns  the order of opening and closing; the methods by which the owning process watches and controls a store.
Not   what the tables are (`control`, `kv`); a group of writes (`writer`).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import apsw

from edgestead.sqlite.ahead import Ahead, NoAhead
from edgestead.sqlite.committer import NoLog
from edgestead.sqlite.connection import open_writer, pragma
from edgestead.sqlite.migrate import migrate
from edgestead.sqlite.outbox import NoOutbox, Outbox
from edgestead.sqlite.readers import Readers
from edgestead.sqlite.witness import Witness, check, read_file
from edgestead.sqlite.writer import Writer
from edgestead.store.migrations import Doing, Migration, quiet


class Database:
    """Create or upgrade, and open. `migrations` by part; `prepare` is the last step before writes are
    possible.

    `ahead` allocates blocks in advance, so that small commits succeed on a full disk: for the process that
    owns the file. Without `synced` a commit is not durable when it is acknowledged: for tests that wait for
    no disk. With `is_copy` a power cut may take the newest commits, which somebody else has. `doing` is
    called as long as an upgrade makes progress. With a `committer` the database is a copy of a log: what it
    lacks is there, so that it is neither upgraded nor compared with its witness.
    Raises SchemaError and its children, WritesLost, OSError, apsw.Error.
    """

    def __init__(
        self,
        path: Path,
        migrations: Mapping[str, Sequence[Migration]],
        *,
        name: str,
        outbox: Callable[[apsw.Connection], Outbox] = lambda db: NoOutbox(),
        prepare: Callable[[apsw.Connection, Outbox], None] = lambda db, outbox: None,
        ahead: bool = False,
        synced: bool = True,
        is_copy: bool = False,
        vfs: str | None = None,
        doing: Doing = quiet,
        committer: Callable[[apsw.Connection, Outbox], NoLog] | None = None,
    ) -> None:
        noted = read_file(path)
        self._db = open_writer(path, vfs=vfs)
        self._ahead = NoAhead(self._db)
        witness: Witness | None = None
        try:
            if not synced:
                pragma(self._db, "synchronous", "OFF")
            if ahead:
                self._ahead = Ahead(self._db, path)
            if committer is None:
                migrate(self._db, path, migrations, doing)
                check(path, noted, self._db)
            self._witness = witness = Witness(path, synced=synced)
            appended = outbox(self._db)
            prepare(self._db, appended)
            log = NoLog() if committer is None else committer(self._db, appended)
            if is_copy:
                pragma(self._db, "synchronous", "NORMAL")
            self._ahead.begin()
        except BaseException:
            self._db.close()
            self._ahead.close()
            if witness is not None:
                witness.close()
            raise
        self.readers = Readers(path)
        self.writer = Writer(self._db, appended, self._witness, self._ahead, log, name=name)

    @property
    def trouble(self) -> str:
        """Why the last group of writes could not be committed; "" when it could."""
        return self.writer.trouble

    @property
    def is_short(self) -> bool:
        """Whether the next small writes may need free blocks of the disk."""
        return self._ahead.is_short

    def probe(self) -> None:
        """Write without changing anything, to detect that the disk works again. Blocks; never raises."""
        self.writer.probe()

    def let_journal_grow(self, grow: bool) -> None:
        """Set whether the journal may take disk space, from the next commits on. Blocks; never raises."""
        self.writer.let_journal_grow(grow)

    def flush_witness(self) -> None:
        """Limit what a power cut can take from the witness. Blocks; never raises."""
        self._witness.flush()

    def lose(self) -> None:
        """The files are gone: every later write is refused with Unavailable."""
        self.writer.lose()

    def close(self) -> None:
        """Finish the queue, then close. Idempotent. Later reads raise Unavailable."""
        self.writer.close()
        self.readers.close()
        try:
            self._db.close()  # its last checkpoint may fail
        finally:
            self._ahead.close()
            self._witness.close()
