"""`durability = "sqlite"`: an object whose own database is what makes its commits durable.

Owns  when such an object's database is made, its commits, its alarm, what the log is told of it.
Not   waiting for the shared log: each commit costs the loop an fsync of its own, and nothing else.

The database knows the position and the session of its last commit. When a process ended between a commit and
the log's word of it, the next life tells the log of all pages at once. The file stands beside the one that
the log would keep (`.own.sqlite`), so that the log's recovery never touches it. The log is an index here: it
may know an alarm that was never committed, never the other way. So a set alarm goes to the log first and a
deleted one last, and when they differ the database is right.
"""

import logging
from contextlib import suppress
from typing import Literal

import apsw
import msgspec

from edgestead.objects.errors import ObjectReset, SqlError
from edgestead.objects.runtime.database import Database
from edgestead.objects.runtime.engine import Engine
from edgestead.store.files import Files
from edgestead.store.objectlog import (
    UNCHANGED,
    Alarm,
    Commit,
    CommitKind,
    Fenced,
    Lease,
    LogError,
    NoSpace,
    Restored,
    Unchanged,
    own_path,
)
from edgestead.store.pages import PAGE_BYTES, frames_of
from edgestead.store.past import ObjectState

log = logging.getLogger(__name__)
PAGES_AT_ONCE = 4_096  # of a whole database, in one commit

_NOTHING = Commit(CommitKind.KEYS, b"\x80")  # an empty map: the log has to say that there is an object


def open_own(lease: Lease, files: Files, vfs: str) -> Database:
    """Open the database, or make it durably. Raises apsw.Error, OSError."""
    path = own_path(lease.path)
    fresh = not files.exists(path)
    database = Database(path, files, fresh=fresh, vfs=vfs, synced=True)
    if fresh:
        folder = path.rpartition("/")[0]
        for _ in range(4):  # its own folder, the class's, the data folder, and what that is in
            files.sync_folder(folder)
            folder = folder.rpartition("/")[0]
    return database


def mixed(lease: Lease, files: Files, durability: Literal["log", "sqlite"]) -> str | None:
    """Why an object cannot be opened with this durability: it was written with the other one."""
    other = (
        files.exists(own_path(lease.path)) if durability == "log" else (lease.has_file or bool(lease.tail))
    )
    if not other:
        return None
    was = "sqlite" if durability == "log" else "log"
    return f'The object was written with durability = "{was}"; a class with objects cannot change it.'


def durability_of(
    lease: Lease, files: Files, otherwise: Literal["log", "sqlite"]
) -> Literal["log", "sqlite"]:
    """Which one an object was written with, whatever its class says; `otherwise` if it has nothing yet."""
    if files.exists(own_path(lease.path)):
        return "sqlite"
    return "log" if lease.has_file or lease.tail else otherwise


class OwnEngine(Engine):
    """An engine whose every commit is SQLite's own."""

    def adopt(self, files: Files) -> None:
        """Begin a life: the database says what it is. Raises OSError, LogError."""
        self._has_file = files.exists(own_path(self.lease.path))
        if not self._has_file:
            return
        try:
            self.database = self._open_database(self.lease)
            state = self.database.own_state()
        except apsw.Error as error:
            raise LogError(f"the object's own database cannot be read: {error}") from error
        alarm_us, position, session = state or (self.lease.alarm_us, None, None)
        if position is None or position > self.lease.head or (session or 0) > self.lease.session:
            self._log_whole(max(session or 0, self.lease.session))
        if alarm_us != self.lease.alarm_us:
            self._tell(alarm_us)
        self.alarm_us = self.lease.alarm_us

    def _log_whole(self, session: int, alarm: Alarm = UNCHANGED) -> None:
        """The log lacks commits that a process could not tell it any more: tell it of all pages at once."""
        commits = []
        image = self.open().image()
        total = len(image) // PAGE_BYTES
        for first in range(1, total + 1, PAGES_AT_ONCE):
            pages = list(range(first, min(first + PAGES_AT_ONCE, total + 1)))
            commits.append(Commit(CommitKind.COPY, frames_of(image, pages, total)))
        if session > self.lease.session:
            begins = Restored(session, 0, len(commits))
            commits.insert(0, Commit(CommitKind.RESTORED, msgspec.msgpack.encode(begins)))
        try:
            group = self.lease.append(commits, alarm)
        except NoSpace as error:  # it can be read all the same
            log.error("%s/%s: its past has a gap: %s", self.lease.ref.class_name, self.lease.ref.id, error)
            return
        self._appended(group, confirmed=False)

    async def take_back(self, state: ObjectState) -> None:
        """Become what the object was: the database first, then the log, which `adopt` would catch up."""
        session = self.lease.session + 1
        self.open().become(state.image, (state.alarm_us, self.lease.head + 1, session))
        self._log_whole(session, state.alarm_us)
        self._tell(state.alarm_us)

    def erase(self) -> None:
        self.commit()  # an alarm that was just set stays
        super().erase()
        if self.broken is None:
            self.stir()
            try:
                self.open().begin(0)
                frames = self._stamped(self.open()).commit()
            except (apsw.Error, OSError, SqlError) as error:
                raise self.fail("it was erased, and what it is could not be noted", error) from error
            self._append(Commit(CommitKind.PAGES, frames))

    def _stamped(self, database: Database) -> Database:
        """The database, with what the coming commit is in its transaction."""
        alarm_us = self._firing if self._firing is not None else self.alarm_us
        database.set_own_state(alarm_us, self.lease.head + 1, self.lease.session)
        return database

    def commit(self, *, flush: bool = False, upkeep: bool = False) -> None:
        if self._levels or self.broken is not None:
            return
        alarm = self._alarm_change
        try:
            if self._room.is_full and (self.changes or self._writes_sql() or alarm is not UNCHANGED):
                # now: once the database has it, it would remain although the log refuses it
                raise NoSpace("no space left for the object log")
            if isinstance(alarm, int):
                self._tell(alarm)
            elif not self.lease.head and (self.changes or self._writes_sql() or alarm is None):
                self._tell(UNCHANGED)
        except LogError as error:
            self.fail("a write failed", error)
            return
        super().commit(flush=flush, upkeep=upkeep)

    def _writes_sql(self) -> bool:
        database = self.database
        return database is not None and database.in_transaction and database.has_written

    def _tell(self, alarm: Alarm) -> None:
        """Have the log know, durably."""
        group = self.lease.append([_NOTHING], alarm)
        self._last = group
        group.on_done(self._told)
        self._log.flush(here=True)
        if group.state == "waiting":  # others' commits are in flight: they go along
            self._log.settle()
        if group.error is not None:
            raise group.error

    def _told(self, error: LogError | None) -> None:
        if error is not None:
            self.fail("a write failed", error)

    def _make_commit(self, flush: bool) -> Commit | None:
        if self.changes or not isinstance(self._alarm_change, Unchanged) or self._writes_sql():
            database = self.open()
            if not database.in_transaction:
                database.begin(0)
            self._stamped(database)
        return super()._make_commit(flush)

    def _append(self, commit: Commit, *, upkeep: bool = False) -> None:
        """The commit is durable already; the log has it for the past. A deleted alarm leaves the index."""
        alarm, self._alarm_change = self._alarm_change, UNCHANGED
        try:
            copy = Commit(CommitKind.COPY, commit.body)
            self._appended(self.lease.append([copy], UNCHANGED), confirmed=False)
            if alarm is None:
                self._tell(None)
        except LogError as error:
            self.fail("a write failed", error)
            return
        self._confirmed = False
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(None)

    def checkpoint(self) -> bool:
        """There is nothing in the log that the database lacks."""
        self.commit()
        if self._levels or self.broken is not None:
            return False
        self.lease.put_base(self.lease.head)
        return True

    def close(self) -> None:
        if self.broken is None:
            self.broken = ObjectReset("The object is not in memory any more.")
        if self.database is not None:
            self.database.close()
            self.database = None
        with suppress(Fenced):  # somebody else has the object by now
            self.lease.put_base(self.lease.head)
            self.lease.release({})
