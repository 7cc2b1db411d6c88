"""What a DNS process starts from, and what it leaves for the next one.

Owns  which files there are, when they are written, when they are taken.
Not   whether the feed goes on from there: control decides, and nothing is answered before.

Every DNS process reads the files, only `dns-tcp` writes them: copying the references takes some milliseconds,
which queries over UDP would notice. A file says where in the feed it stands, so a process that starts from it
is like one that has lost its connection: it gets what it lacks, and then the word to serve.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeVar

from edgestead.dns import table as tables
from edgestead.dns import warm
from edgestead.dns.journal import Journal
from edgestead.dns.keyring import Keyring, Row
from edgestead.dns.table import Table
from edgestead.dns.warm import Label, Refused
from edgestead.feed.follower import Position

SERVED, JOURNAL, KEYS = "served", "journal", "keys"
PAUSE_SECONDS = 30.0  # between two writings; the feed's tail covers what changes meanwhile
PAUSE_FACTOR = 50  # and so many times as long as the last one took
ROWS_PER_PART = 1024

RowT = TypeVar("RowT")
log = logging.getLogger("edgestead.server")


def load_table(table: Table, folder_fd: int) -> Label | None:
    """Fill a new table; returns the file's label, None when there is no good file."""
    loaded = Table()
    try:
        label, parts = warm.read(folder_fd, SERVED, list[tables.Piece])
        loaded.thaw(parts)
    except warm.Missing:  # as at every first start, whose log is the first that somebody sees of the server
        log.debug("no warm start: there is no file dns/%s", SERVED)
        return None
    except Refused as refusal:
        log.info("no warm start: file dns/%s: %s", SERVED, refusal)
        return None
    except (LookupError, ValueError) as error:  # well-formed, and no zones: not what `dns-tcp` writes
        log.warning("no warm start: file dns/%s holds no zones: %r", SERVED, error)
        return None
    table.take_over(loaded)
    log.info("warm start: %d zones as of change %d", table.zones, label.sequence)
    return label


def position_of(label: Label | None) -> Position | None:
    return None if label is None else Position(label.feed_id, label.sequence)


def load_keys(keyring: Keyring, folder_fd: int, position: Position | None) -> Position | None:
    """Fill a new keyring, still sealed on disk, with what belongs to a position.

    Returns the position; None when the keys of then are not there, and all has to come from control.
    """
    try:
        label, parts = warm.read(folder_fd, KEYS, list[Row])
        if position is None or (label.feed_id, label.sequence) != position:
            return None
        for rows in parts:
            keyring.restore(rows)
        return position
    except Refused as refusal:
        log.log(
            logging.DEBUG if position is None else logging.INFO, "no keys: file dns/%s: %s", KEYS, refusal
        )
        return None


def load_journal(journal: Journal, folder_fd: int, position: Position) -> None:
    """Fill a new journal with what belongs to a position; nothing when there is no such file."""
    try:
        label, parts = warm.read(folder_fd, JOURNAL, list[tuple[str, bytes]])
        if (label.feed_id, label.sequence) == position:
            for rows in parts:
                journal.restore(rows)
    except Refused as refusal:
        log.info("no journal: file dns/%s: %s", JOURNAL, refusal)


def write(
    folder_fd: int,
    run: str,
    position: Position,
    frozen: tables.FrozenTable,
    rows: list[tuple[str, bytes]],
    keys: list[Row],
) -> None:
    """Replace the files. Blocks. Raises OSError."""
    label = Label(position.feed_id, position.sequence, run)
    warm.write(folder_fd, KEYS, label, _in_parts(keys))
    warm.write(folder_fd, JOURNAL, label, _in_parts(rows))
    warm.write(folder_fd, SERVED, label, tables.parts(frozen))


def _in_parts(rows: Iterable[RowT]) -> Iterator[list[RowT]]:
    left = iter(rows)
    while part := list(islice(left, ROWS_PER_PART)):
        yield part


class Keeper:
    """Keeps the files of one process fresh. `run` and `write` are for the loop that applies changes."""

    def __init__(
        self,
        folder_fd: int,
        run: str,
        table: Table,
        journal: Journal,
        keyring: Keyring,
        started_at: Position | None,
    ) -> None:
        """`run` names this run of the server, `started_at` where its own file stands, if there is one."""
        self._folder_fd = folder_fd
        self._run = run
        self._table = table
        self._journal = journal
        self._keyring = keyring
        self._written = started_at
        self._took_seconds = 0.0
        self._door = threading.Lock()  # a writing whose task was cancelled goes on in its thread

    async def run(self, position_of_now: Callable[[], Position], control_went: asyncio.Event) -> None:
        """Write now and then until cancelled; at once when there was no file of this run to start from, and
        when control goes away: others may have to start without it (`server.dns.alone`).
        """
        if self._written is None:
            await self.write(position_of_now())
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(PAUSE_SECONDS, PAUSE_FACTOR * self._took_seconds)):
                    await control_went.wait()
            control_went.clear()
            await self.write(position_of_now())

    async def write(self, position: Position) -> None:
        """Write what is served now, unless the files say it already. A disk that fails is logged."""
        if position == self._written or position.sequence < 0:
            return
        began = time.monotonic()
        # The table may be a part of a message ahead of the position: what is applied again changes nothing.
        frozen, rows, keys = self._table.freeze(), self._journal.rows(), self._keyring.rows()
        try:
            await asyncio.to_thread(self._write, position, frozen, rows, keys)
            self._written = position
        except OSError as error:
            log.warning("the files for warm starts could not be written: %s", error)
        self._took_seconds = time.monotonic() - began

    def _write(
        self,
        position: Position,
        frozen: tables.FrozenTable,
        rows: list[tuple[str, bytes]],
        keys: list[Row],
    ) -> None:
        with self._door:
            write(self._folder_fd, self._run, position, frozen, rows, keys)
