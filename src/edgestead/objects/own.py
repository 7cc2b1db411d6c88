"""`durability = "sqlite"`: an object whose own database is what makes its commits durable.

Owns  when such an object's database is made, its commits, its alarm, what the log is told of it.
Asks  `engine` for everything that does not depend on who makes a commit durable; SQLite to sync.
Tells the object log that the object exists, and when its alarm is due.
Not   the shared log's groups: each commit costs the loop an fsync, and nothing else.

The file stands beside the one that the log would keep (`.own.sqlite`), so that the log's recovery never
touches it. The log is an index here: it may know an alarm that was never committed, never the other way. So
a set alarm goes to the log first and a deleted one last, and when they differ the database is right.
"""

from collections.abc import Callable
from typing import Literal

import apsw

from edgestead.objects.database import Database
from edgestead.objects.engine import Engine
from edgestead.objects.errors import ObjectReset
from edgestead.store.objectlog import UNCHANGED, Alarm, Commit, CommitKind, Lease, LogError, Unchanged
from edgestead.store.sqlite.objectlog.files import Files
from edgestead.store.sqlite.objectlog.local import own_path

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


def durability_of(lease: Lease, files: Files) -> Literal["log", "sqlite"]:
    """Which one an object was written with, its class unknown."""
    return "sqlite" if files.exists(own_path(lease.path)) else "log"


class _Durable:
    """What every commit's group is, once it is made."""

    state: Literal["durable"] = "durable"
    error = None

    def on_done(self, callback: Callable[[LogError | None], None]) -> None:
        callback(None)


_DURABLE = _Durable()


class OwnEngine(Engine):
    """An engine whose every commit is SQLite's own."""

    def adopt(self, files: Files) -> None:
        """Begin a life: the database says whether there is an alarm. Raises OSError, LogError."""
        self._has_file = files.exists(own_path(self.lease.path))
        if not self._has_file:
            return
        try:
            self.database = self._open_database(self.lease)
            known, alarm_us = self.database.own_alarm()
        except apsw.Error as error:
            raise LogError(f"the object's own database cannot be read: {error}") from error
        if known and alarm_us != self.lease.alarm_us:
            self._tell(alarm_us)
        self.alarm_us = self.lease.alarm_us

    def erase(self) -> None:
        self.commit()  # an alarm that was just set stays
        super().erase()

    def commit(self, *, flush: bool = False, upkeep: bool = False) -> None:
        if self._levels or self.broken is not None:
            return
        alarm = self._alarm_change
        try:
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
        group = self._log.append(self.lease, self.lease.head, [_NOTHING], alarm)
        self._last = group
        group.on_done(self._told)
        self._log.flush(inline=True)
        if group.state == "waiting":  # others' commits are in flight: they go along
            self._log.settle()
        if group.error is not None:
            raise group.error

    def _told(self, error: LogError | None) -> None:
        if error is not None:
            self.fail("a write failed", error)

    def _make_commit(self, flush: bool) -> Commit | None:
        if not isinstance(self._alarm_change, Unchanged):
            database = self.open()
            if not database.in_transaction:
                database.begin(0)
            database.set_own_alarm(self._alarm_change)
        return super()._make_commit(flush)

    def _append(self, commit: Commit, *, upkeep: bool = False) -> None:
        """The commit is durable already. A deleted alarm leaves the index now."""
        alarm, self._alarm_change = self._alarm_change, UNCHANGED
        if alarm is None:
            try:
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
        self._log.put_base(self.lease, self.lease.head)
        return True

    def close(self) -> None:
        if self.broken is None:
            self.broken = ObjectReset("The object is not in memory any more.")
        if self.database is not None:
            self.database.close()
            self.database = None
        self._log.put_base(self.lease, self.lease.head)
        self._log.release(self.lease, {})
