"""One object's storage: keys in memory, SQLite behind them, one commit per turn.

Owns  the cache, the changes of the current transaction, nested transactions, the alarm, the lease.
Not   names, options and values of the public API (`storage`); gates (`gates`).

A commit is one of two kinds. Where SQL wrote, or too many keys wait, keys go into the same SQLite
transaction, and its pages are logged: they contain everything before them. Otherwise only the changed keys
are logged, and SQLite gets them later. So a database file is always behind or equal to the log.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Any, Literal

import apsw
import msgspec

from edgestead.model.refusals import NO_SPACE_ERRNOS
from edgestead.objects import limits
from edgestead.objects.errors import ObjectError, ObjectReset, SqlError, StorageBroken, TransactionError
from edgestead.objects.runtime.commits import Turns
from edgestead.objects.runtime.database import NO_SPACE, Database
from edgestead.store.objectlog import (
    UNCHANGED,
    Alarm,
    Commit,
    CommitKind,
    Fenced,
    Group,
    Lease,
    LogError,
    Target,
    Unchanged,
)
from edgestead.store.objects import ObjectStore

log = logging.getLogger(__name__)
Waiter = Callable[[Exception | None], None]
Logging = Literal["keys", "pages"]
_MISSING: Any = object()
_pack = msgspec.msgpack.Encoder().encode
_THREAD = (
    "Storage is used by the object's own thread only: give results back to the method, or call "
    "asyncio.run_coroutine_threadsafe()."
)
_FOREIGN_KEYS = (
    "Object was reset and rolled back to its last known good state because the application left the "
    "database in a state where constraints were violated"
)


class Level:
    """What a nested transaction would have to put back."""

    __slots__ = ("alarm", "changes", "confirmed", "known")

    def __init__(self, alarm: tuple[int | None, Alarm, int | None], *, confirmed: bool) -> None:
        self.alarm, self.confirmed = alarm, confirmed
        self.known: dict[str, bytes | None] = {}
        self.changes: dict[str, bytes | None] = {}


class Engine:
    """The storage of one live object.

    `open_database` opens its file; `logging` "pages" makes every commit a commit of pages. After
    `on_broken` was called, or `close`, every method raises.
    """

    def __init__(
        self,
        store: ObjectStore,
        lease: Lease,
        turns: Turns,
        *,
        open_database: Callable[[Lease], Database],
        on_broken: Callable[[ObjectReset], None],
        logging: Logging = "keys",
    ) -> None:
        self.lease = lease
        self._thread = get_ident()
        self.alarm_us = lease.alarm_us
        self.broken: ObjectReset | None = None
        self.database: Database | None = None
        self._log, self.past, self._room, self._turns = store.log, store.past, store.room, turns
        self._open_database, self._has_file = open_database, lease.has_file
        self._on_broken = on_broken
        self._pages_always = logging == "pages"
        self.known: dict[str, bytes | None] = dict(lease.tail)  # None: known to be absent
        self.changes: dict[str, bytes | None] = {}
        self.unflushed: dict[str, bytes | None] = dict(lease.tail)  # logged, not in SQLite
        self._uncached: set[str] = set()
        self._alarm_change: Alarm = UNCHANGED
        self._firing: int | None = None  # the alarm whose handler runs, while it is still the log's
        self._levels: list[Level] = []
        self._stirred = False  # the turn knows of the current changes
        self._confirmed = False  # some of them shut the output gate
        self._waiters: list[Waiter] = []  # for the commit to come
        self._rebuild = False  # the file may hold commits that the log does not
        self._last: Group | None = None
        self._last_confirmed: Group | None = None
        self._cached_bytes = self._unflushed_bytes = 0

    # keys

    def get(self, key: str, *, cache: bool = True) -> bytes | None:
        """The encoded value, or None."""
        value: bytes | None = self.known.get(key, _MISSING)
        if value is not _MISSING:
            return value
        if not self._has_file:
            self.check()
            return None
        value = self.open().get(key)
        if cache:
            self.known[key] = value
            self._cached_bytes += len(key) + (len(value) if value is not None else 0)
            self._trim()
        return value

    def put(self, key: str, value: bytes | None, confirmed: bool = True) -> None:
        """Store an encoded value, or delete with None."""
        if get_ident() != self._thread:
            self.check()
        if self._levels:
            self._remember(key)
        self.known[key] = self.changes[key] = value
        if confirmed:
            self._confirmed = True
        if not self._stirred:
            self.stir()

    def forget(self, key: str) -> None:
        """Do not keep a key in memory once it is written."""
        self._uncached.add(key)

    def range(self, start: str, end: str | None, limit: int | None, *, reverse: bool) -> dict[str, bytes]:
        """Pairs with start <= key < end, ordered by UTF-8 bytes (as code points are)."""
        self.check()
        overlay = {
            key: value
            for pairs in (self.unflushed, self.changes)
            for key, value in pairs.items()
            if start <= key and (end is None or key < end)
        }
        found: dict[str, bytes | None] = {}
        if self._has_file:
            more = None if limit is None else limit + len(overlay)
            found.update(self.open().range(start, end, more, reverse=reverse))
        if not overlay:
            return found  # type: ignore[return-value]
        found.update(overlay)
        pairs = [(key, value) for key in sorted(found, reverse=reverse) if (value := found[key]) is not None]
        return dict(pairs if limit is None else pairs[:limit])

    def erase(self) -> None:
        """Delete all keys and all tables, atomically. The alarm stays. Not inside a transaction.

        Raises StorageBroken: then the object is what it was, and is reset.
        """
        database = self.open()
        for cursor in database.cursors():
            cursor.cancel()
        try:
            database.roll_back()
            frames = database.erase()
        except (apsw.Error, OSError, SqlError) as error:
            self._rebuild = True  # the file may be empty, and the log is not
            raise self.fail("it could not be erased", error) from error
        self.changes.clear()
        self.unflushed.clear()
        self.known.clear()
        self._cached_bytes = self._unflushed_bytes = 0
        self._confirmed = True
        self._append(Commit(CommitKind.PAGES, frames))

    # the alarm

    def set_alarm(self, time_us: int | None, *, confirmed: bool = True) -> None:
        self.check()
        self.alarm_us = self._alarm_change = time_us
        self._firing = None
        if confirmed:
            self._confirmed = True
        if not self._stirred:
            self.stir()

    def begin_alarm(self, now_us: int) -> int | None:
        """The alarm that is due, whose handler begins: None when none is. The log keeps it until the end."""
        self.check()
        if self.alarm_us is None or self.alarm_us > now_us:
            return None
        self._firing, self.alarm_us = self.alarm_us, None
        return self._firing

    def end_alarm(self, then: int | None) -> None:
        """The handler has ended: set its retry, or delete it. One that was set meanwhile counts instead."""
        if self._firing is not None:
            self.set_alarm(then)

    # the past

    def settle_position(self) -> int:
        """Commit what was written so far, and keep that position. Raises TransactionError inside one."""
        self.check()
        if self._levels:
            raise TransactionError("A bookmark names what is committed: not inside a transaction.")
        self.commit()
        self.check()
        self.keep_position(self.lease.head)
        return self.lease.head

    def keep_position(self, position: int) -> None:
        """Have history keep a position, durably before any reply leaves. Raises StorageBroken."""
        self.check()
        try:
            group = self.lease.pin(position)
        except LogError as error:
            raise StorageBroken(f"The bookmark cannot be kept: {error}") from error
        if group is not None:
            self._appended(group, confirmed=True)

    def plan_restore(self, target: Target | None) -> None:
        """Be taken back to a moment at the next start, or not. Raises TransactionError inside one."""
        self.check()
        if self._levels:
            raise TransactionError("A restore cannot be arranged inside a transaction.")
        self.commit()
        self.check()
        self.log_only(Commit(CommitKind.RESTORE, _pack(target)))
        self.check()

    def log_only(self, commit: Commit) -> None:
        """Log what no database shows."""
        try:
            group = self.lease.append([commit], UNCHANGED)
        except LogError as error:
            self.break_off(StorageBroken(f"Object storage was reset because a write failed: {error}"))
            return
        self._appended(group, confirmed=True)

    def give_tail(self, tail: dict[str, bytes | None]) -> None:
        """The object was taken back: these are the keys that its database does not have."""
        self.unflushed, self.known = dict(tail), dict(tail)

    def distrust_file(self) -> None:
        """Have the next life's database made anew from the log."""
        self._rebuild = True

    def verify(self) -> list[str]:
        """What SQLite finds wrong with the database and its indexes; empty when nothing is."""
        self.check()
        if not self._has_file:
            return []
        return self.open().check()

    def _appended(self, group: Group, *, confirmed: bool) -> None:
        """Something of ours is in a group."""
        self._turns.appended()
        if group is not self._last:
            self._last = group
            group.on_done(self._done)
        if confirmed:
            self._last_confirmed = group

    # SQL

    def open(self) -> Database:
        """The database, opened when it is first needed."""
        self.check()
        if self.database is None:
            try:
                self.database = self._open_database(self.lease)
            except (apsw.Error, OSError) as error:
                raise self.fail("its database cannot be opened", error) from error
            self._has_file = True
        return self.database

    def begin_sql(self) -> Database:
        """The database inside a transaction, which the end of the turn commits."""
        if get_ident() != self._thread:
            self.check()
        database = self.database or self.open()
        if not database.connection.in_transaction:
            database.begin(len(self._levels))
        self._confirmed = True
        if not self._stirred:
            self.stir()
        return database

    @property
    def has_file(self) -> bool:
        """Whether there is a database."""
        return self._has_file

    def size_bytes(self) -> int:
        """Of the database. Outside a transaction, keys that were only in memory are in it first."""
        self.commit(flush=True)
        return self.open().size_bytes()

    # transactions

    @property
    def depth(self) -> int:
        """How many transactions are nested at the moment."""
        return len(self._levels)

    def begin(self, *, apart: bool = False) -> None:
        """Begin a transaction inside the current one.

        `apart`: an outermost one first commits what was written before it.
        """
        self.check()
        if apart and not self._levels:
            self.commit()
            self.check()
        if len(self._levels) >= limits.NESTED_MAX:
            raise TransactionError(f"Transactions are nested too deeply: more than {limits.NESTED_MAX}.")
        alarm = (self.alarm_us, self._alarm_change, self._firing)
        self._levels.append(Level(alarm, confirmed=self._confirmed))
        if self.database is not None and self.database.in_transaction:
            self.database.save(len(self._levels))

    def end(self, *, commit: bool) -> None:
        """End the innermost transaction, keeping its writes or not."""
        self.check()
        level = self._levels[-1]
        if self.database is not None and self.database.in_transaction:
            self._end_savepoint(self.database, commit=commit)
        self._levels.pop()
        if commit:
            self._merge(level)
        else:
            self._put_back(level)
        if not self._levels and self._stirred:
            self._turns.changed(self)

    def _end_savepoint(self, database: Database, *, commit: bool) -> None:
        """An object whose transaction cannot be ended would never commit again, so it is reset."""
        try:
            (database.release if commit else database.roll_back_to)(len(self._levels))
        except apsw.Error as error:
            self._rebuild = True
            raise self.fail("a transaction cannot be ended", error) from error

    def _remember(self, key: str) -> None:
        level = self._levels[-1]
        if key not in level.known:
            level.known[key] = self.known.get(key, _MISSING)
            level.changes[key] = self.changes.get(key, _MISSING)

    def _merge(self, level: Level) -> None:
        if self._levels:
            outer = self._levels[-1]
            outer.known = level.known | outer.known
            outer.changes = level.changes | outer.changes

    def _put_back(self, level: Level) -> None:
        self.alarm_us, self._alarm_change, self._firing = level.alarm
        self._confirmed = level.confirmed
        for now, before in ((self.known, level.known), (self.changes, level.changes)):
            for key, value in before.items():
                if value is _MISSING:
                    now.pop(key, None)
                else:
                    now[key] = value

    # commits

    def stir(self) -> None:
        """There are changes: have them committed at the end of the turn."""
        self.check()
        self._stirred = True
        if not self._levels:
            self._turns.changed(self)

    def commit(self, *, flush: bool = False, upkeep: bool = False) -> None:
        """Commit the current changes, unless a transaction is open. `flush` also moves keys to SQLite."""
        if self._levels or self.broken is not None:
            return
        self._stirred = False
        try:
            commit = self._make_commit(flush)
        except Exception as error:
            self._rebuild = True
            if isinstance(error, apsw.ConstraintError):
                self.break_off(ObjectReset(f"{_FOREIGN_KEYS}: {error}"))
            else:
                self.fail("a commit failed", error)
            return
        if commit is None:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                self._after(self._last_confirmed, waiter)
            self._confirmed = False
        else:
            self._append(commit, upkeep=upkeep)

    def _make_commit(self, flush: bool) -> Commit | None:
        database, changes = self.database, self.changes
        if database is not None and database.connection.in_transaction:
            if database.has_written:
                return self._commit_pages(database)
            database.commit()
        if flush and (changes or self.unflushed):
            return self._commit_pages(self.open())
        if not changes:
            return None if isinstance(self._alarm_change, Unchanged) else Commit(CommitKind.KEYS, _pack({}))
        if self._pages_always or self._is_full():
            return self._commit_pages(self.open())
        body = _pack(changes)
        self.unflushed.update(changes)
        self._unflushed_bytes += len(body)
        self._cached_bytes += len(body)
        self.changes = {}
        return Commit(CommitKind.KEYS, body)

    def _is_full(self) -> bool:
        return (
            len(self.unflushed) + len(self.changes) > limits.UNFLUSHED_KEYS_MAX
            or self._unflushed_bytes > limits.UNFLUSHED_BYTES_MAX
        )

    def _commit_pages(self, database: Database) -> Commit | None:
        """Commit the SQLite transaction together with every key that only memory has."""
        if not database.in_transaction:
            database.begin(0)
        if self.unflushed or self.changes:
            database.put(self.unflushed | self.changes)
        frames = database.commit()
        self._flushed()  # not earlier: a transaction that fails takes the keys back with it
        return Commit(CommitKind.PAGES, frames) if frames else None

    def _flushed(self) -> None:
        self._cached_bytes += sum(map(len, filter(None, self.changes.values())))
        self.unflushed, self.changes = {}, {}
        self._unflushed_bytes = 0
        for key in self._uncached:
            self.known.pop(key, None)
        self._uncached.clear()
        self._trim()

    def _trim(self) -> None:
        if self._cached_bytes > limits.CACHE_BYTES_MAX and not self._levels:
            self.known = self.unflushed | self.changes
            self._cached_bytes = self._unflushed_bytes

    def _append(self, commit: Commit, *, upkeep: bool = False) -> None:
        alarm, self._alarm_change = self._alarm_change, UNCHANGED
        try:
            group = self.lease.append([commit], alarm, upkeep=upkeep)
        except LogError as error:
            self._rebuild = True  # SQLite has the commit, and the log does not
            self.fail("a write failed", error)
            return
        self._appended(group, confirmed=self._confirmed)
        self._confirmed = False
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            group.on_done(waiter)

    def _done(self, error: LogError | None) -> None:
        """A group of ours is durable, or never will be."""
        if error is not None:
            self._rebuild = True
            self.fail("a write failed", error)
        elif self.database is not None and self.database.frames >= limits.CHECKPOINT_FRAMES:
            self.checkpoint()

    # waiting

    def when_confirmed(self, waiter: Waiter) -> None:
        """Call back when every confirmed write so far is durable: what the output gate waits for."""
        if self.broken is not None:
            waiter(self.broken)
        elif self._confirmed and self._stirred:
            self._waiters.append(waiter)
        else:
            self._after(self._last_confirmed, waiter)

    @property
    def is_confirmed(self) -> bool:
        """Whether `when_confirmed` would call back at once, without an error."""
        group = self._last_confirmed
        return (
            self.broken is None
            and not (self._confirmed and self._stirred)
            and (group is None or group.state == "durable")
        )

    def when_synced(self, waiter: Waiter) -> None:
        """Call back when every write so far is durable, confirmed or not. Commits them now."""
        self.check()
        self.commit()
        self._after(self._last, waiter)
        self._log.flush()

    @staticmethod
    def _after(group: Group | None, waiter: Waiter) -> None:
        if group is None:
            waiter(None)
        else:
            group.on_done(waiter)

    # the end of it

    def check(self) -> None:
        """Raise when this storage is over, or used by a thread that is not its own."""
        if self.broken is not None:
            raise self.broken
        if get_ident() != self._thread:
            raise ObjectError(_THREAD)

    def disown(self, error: ObjectReset) -> None:
        """In a forked process: refuse everything from now on, and tell nobody."""
        self.broken, self.database, self._thread = error, None, 0

    def fail(self, what: str, error: Exception) -> StorageBroken:
        """Reset the object because storage failed; gives what its callers see."""
        if isinstance(error, NO_SPACE) or getattr(error, "errno", None) in NO_SPACE_ERRNOS:
            self._room.look()
        broken = StorageBroken(f"Object storage was reset because {what}: {error}")
        self.break_off(broken)
        return broken

    def break_off(self, error: ObjectReset) -> None:
        """Forget what is not committed, and never do anything again."""
        if self.broken is not None:
            return
        self.broken = error
        self.known, self.changes = {}, {}
        self._levels.clear()
        self._stirred = False
        self._has_file = True  # so that a read of anything asks `check`
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(error)
        self._on_broken(error)

    def relax(self) -> bool:
        """Nothing happened for a while: keep the database open, and give back what it only remembers.

        False when that is nothing.
        """
        return self.database is not None and self.broken is None and self.database.relax()

    def checkpoint(self) -> bool:
        """Bring the database file to the log's head.

        False when the log is not that far yet, or the disk has no room: the log has what the file lacks, and
        this is tried again. May sync on this thread: under a steady stream of writes there is no moment at
        which all of them are durable, unless one is made.
        """
        if self._levels or self.broken is not None:
            return False
        self.commit(flush=True, upkeep=not self._stirred)
        if not self.is_settled:
            self._log.flush(here=True)
        if self.broken is not None or not self.is_settled or self.unflushed:
            return False
        if self.database is not None and not self._move_pages(self.database):
            return False
        self.lease.put_base(self.lease.head)
        return True

    def _move_pages(self, database: Database) -> bool:
        """From the write-ahead log to the database file."""
        try:
            database.checkpoint()
        except NO_SPACE as error:
            log.warning("%s stays behind its log: %s", database.path, error)
            self._room.look()
            return False
        except (apsw.Error, ObjectError) as error:
            self._rebuild = True
            self.fail("its database cannot be written", error)
            return False
        return True

    def when_decided(self, waiter: Waiter) -> None:
        """Call back when every group of ours is durable or refused."""
        self._after(self._last, waiter)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is uncommitted or undecided."""
        return not self._stirred and not self._levels and self.is_settled

    @property
    def is_settled(self) -> bool:
        """Whether every group of ours is decided."""
        return self._last is None or self._last.state != "waiting"

    def close(self) -> None:
        """Give lease and database back. Every group must be decided. Uncommitted changes are dropped."""
        if self.broken is None:
            self.broken = ObjectReset("The object is not in memory any more.")
        moved = not self.unflushed and not self._rebuild
        if self.database is not None:
            try:
                if not self._rebuild:
                    self.database.roll_back()
                    self.database.checkpoint()
            except (apsw.Error, OSError, ObjectError):
                self._rebuild, moved = True, False
            self.database.close()
            self.database = None
        with suppress(Fenced):  # somebody else has the object by now
            if moved:
                self.lease.put_base(self.lease.head)
            self.lease.release(self.unflushed, rebuild=self._rebuild)
