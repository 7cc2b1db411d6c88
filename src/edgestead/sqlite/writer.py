"""The one thread that writes: groups of functions, one commit each.

Owns  the queue, the group, its savepoints, and settling the futures after the commit.
Not   reading; what the functions do.

While a commit waits for the disk, the queue fills: the slower the disk, the larger the next group; there is
no timer.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import apsw

from edgestead.model.refusals import Unavailable
from edgestead.model.seldom import Seldom
from edgestead.sqlite.ahead import NoAhead
from edgestead.sqlite.committer import NoLog
from edgestead.sqlite.connection import STORAGE_ERRORS, is_full, unavailable
from edgestead.sqlite.outbox import Outbox
from edgestead.sqlite.transaction import SqliteTransaction
from edgestead.sqlite.witness import COUNT_COMMITS, SELECT_COMMITS, TOUCH, Noted, Witness
from edgestead.store.changes import Change
from edgestead.store.control import Committed, Transaction
from edgestead.store.controllog import NotLeader, Unknown

WRITES_QUEUED_MAX = 4_096  # above it a write is refused instead of waiting for seconds
GROUP_WRITES_MAX = 256  # functions per commit
GROUP_MS_MAX = 20  # of running functions; then the group commits, so that its first one is not late

log = logging.getLogger(__name__)

Write = Callable[[Transaction], Any]
Between = Callable[[], Sequence[Change]]
Listener = Callable[[Sequence[Change]], None]


class _Job:
    """One queued function and its result, which is withheld until the group is durable."""

    __slots__ = ("error", "fn", "future", "result")

    def __init__(self, fn: Write) -> None:
        self.fn = fn
        self.future: Future[Committed] = Future()
        self.result: Committed | None = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class _Aside:
    """Something between two groups that runs no transaction of a caller, and says what it committed."""

    __slots__ = ("fn", "future")

    def __init__(self, fn: Between) -> None:
        self.fn = fn
        self.future: Future[None] = Future()


class Writer:
    def __init__(
        self,
        db: apsw.Connection,
        outbox: Outbox,
        witness: Witness,
        ahead: NoAhead,
        log_: NoLog,
        *,
        name: str = "control-writer",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._outbox = outbox
        self._witness = witness
        self._ahead = ahead
        self._log = log_
        self._changes = db.total_changes()  # of rows, at the last commit: a group without any is not counted
        self._commits = _number(db, SELECT_COMMITS)
        self._monotonic = monotonic
        self._failures = Seldom(now=monotonic)  # on a full disk each of many writes fails
        self.groups = 0  # that are over: it grows after the commit and before any caller is answered
        self._listeners: tuple[Listener, ...] = ()
        self._commit_listeners: tuple[Listener, ...] = ()
        self._queue: SimpleQueue[_Job | _Aside | None] = SimpleQueue()
        self._aside: _Aside | None = None  # it runs when the group before it is over
        self._closing = False
        self._lost = False
        self.trouble = ""  # why the last group could not be committed; "" when it could
        self._door = threading.Lock()  # nothing may be queued after the None that ends the queue
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def write(self, fn: Write) -> Future[Committed]:
        job = _Job(fn)
        with self._door:
            if self._closing or self._lost or self._queue.qsize() >= WRITES_QUEUED_MAX:
                raise Unavailable()
            self._queue.put(job)
        return job.future

    def between(self, fn: Between) -> Future[None]:
        """Run `fn` on the writer's thread after the writes that are queued, outside of their transactions.

        It returns the changes of the feed that it committed. Raises Unavailable when closed.
        """
        aside = _Aside(fn)
        with self._door:
            if self._closing:
                raise Unavailable()
            self._queue.put(aside)
        return aside.future

    @property
    def waiting(self) -> int:
        """Writes that are queued and not begun."""
        return self._queue.qsize()

    def on_group(self, listener: Listener) -> None:
        self._listeners += (listener,)

    def off_group(self, listener: Listener) -> None:
        self._listeners = tuple(one for one in self._listeners if one != listener)

    def on_commit(self, listener: Listener) -> None:
        self._commit_listeners += (listener,)

    def probe(self) -> None:
        """Write to the disk without changing anything; `trouble` has the result. Blocks."""
        with suppress(Unavailable):
            self.write(lambda tx: tx.run(TOUCH)).result()

    def let_journal_grow(self, grow: bool) -> None:
        """Set whether the journal may take disk space, from the next commits on. Blocks."""

        def change() -> Sequence[Change]:
            self._ahead.let_journal_grow(grow)
            return ()

        with suppress(Unavailable, apsw.Error):
            self.between(change).result()  # no write: one that follows has a journal, too

    def lose(self) -> None:
        """Acknowledge nothing more, including queued writes: the file was removed or replaced."""
        self._lost = True

    def close(self) -> None:
        with self._door:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        deferred: list[_Job] = []
        open_ = True
        while open_ or deferred:
            jobs = deferred
            if open_ and self._aside is None:
                open_ = self._drain_into(jobs)
            deferred = self._run_group(jobs) if jobs else []
            if self._aside is not None and not deferred:
                aside, self._aside = self._aside, None
                self._run_aside(aside)

    def _drain_into(self, jobs: list[_Job]) -> bool:
        """Wait for a first job, then take all that are queued; False once the queue has ended."""
        try:
            while len(jobs) < GROUP_WRITES_MAX:
                job = self._queue.get(block=not jobs)
                if job is None:
                    return False
                if isinstance(job, _Aside):
                    self._aside = job
                    return True
                if job.future.set_running_or_notify_cancel():
                    jobs.append(job)
        except Empty:
            pass
        return True

    def _run_group(self, jobs: list[_Job]) -> list[_Job]:
        """Run and commit what fits into GROUP_MS_MAX; returns the rest."""
        done = jobs
        changes: Sequence[Change] = ()
        try:
            count = self._run_functions(jobs)
            done = jobs[:count]
            changes = self._commit()
        except NotLeader as error:
            # An append that failed ended the office: who commits nothing of its own has no trouble with that.
            self.trouble = ""
            self._undo()
            for job in done:
                job.error = error
        except BaseException as error:
            # A function may have raised because of another one's change that is undone now: all run again.
            if times := self._failures.happened():
                log.error(
                    "a group of writes could not be committed: %r (%d since the last line)", error, times
                )
            self.trouble = unavailable(error).message if is_full(error) else str(error)
            has_landed = self._undo()
            for job in done:
                if has_landed:
                    job.error = Unknown()
                else:
                    job.error = error if isinstance(error, Unavailable) else unavailable(error)
        else:
            self.trouble = ""
        if changes:
            self._tell(self._commit_listeners, changes)
        self.groups += 1
        for job in done:
            job.settle()
        self._tell(self._listeners, changes)
        self._ahead.keep()
        return jobs[len(done) :]

    def _run_aside(self, aside: _Aside) -> None:
        if not aside.future.set_running_or_notify_cancel():
            return  # its caller is gone before it began
        try:
            changes = aside.fn()
        except BaseException as error:
            self._undo()
            aside.future.set_exception(error)
            return
        self._changes = self._db.total_changes()
        with suppress(apsw.Error):  # of the disk: what was committed is told all the same
            self._commits = _number(self._db, SELECT_COMMITS)
        self._witness.note(Noted(self._commits, self._outbox.head))
        if changes:
            self._tell(self._commit_listeners, changes)
        self.groups += 1
        aside.future.set_result(None)
        self._tell(self._listeners, changes)
        self._ahead.keep()

    def _run_functions(self, jobs: list[_Job]) -> int:
        deadline = self._monotonic() + GROUP_MS_MAX / 1000
        self._log.begin()
        self._db.execute("BEGIN IMMEDIATE")
        if len(jobs) == 1:
            self._run_alone(jobs[0])
            return 1
        for count, job in enumerate(jobs, 1):
            self._run_one(job)
            if self._monotonic() >= deadline:
                return count
        return len(jobs)

    def _run_alone(self, job: _Job) -> None:
        """Run the only function of a group: it needs no savepoint."""
        after, transaction = self._outbox.head, SqliteTransaction(self._db, self._outbox)
        try:
            job.result = Committed(job.fn(transaction), transaction.sequence, after)
        except BaseException as error:
            if not self._db.in_transaction:  # a full disk may undo everything by itself
                raise
            self._undo()
            job.error = unavailable(error) if isinstance(error, STORAGE_ERRORS) else error
        finally:
            transaction.end()

    def _run_one(self, job: _Job) -> None:
        """Run one function in a savepoint. Raises only when the whole transaction is lost."""
        execute, outbox = self._db.execute, self._outbox
        mark = outbox.mark()
        transaction = SqliteTransaction(self._db, outbox)
        execute("SAVEPOINT one")
        try:
            value = job.fn(transaction)
            execute("RELEASE one")
            job.result = Committed(value, transaction.sequence, mark[0])
        except BaseException as error:
            if not self._db.in_transaction:  # a full disk may undo everything by itself
                raise
            execute("ROLLBACK TO one")
            execute("RELEASE one")
            outbox.rewind(mark)
            job.error = unavailable(error) if isinstance(error, STORAGE_ERRORS) else error
        finally:
            transaction.end()

    def _commit(self) -> Sequence[Change]:
        if self._lost:
            raise ConnectionError("the database is no longer where it was")
        if not self._db.in_transaction:  # its only function was undone
            return ()
        self._outbox.write_down()
        commits = self._count_commit()
        if commits is not None:
            self._ahead.check()
            self._log.append(self._outbox.head)
        self._db.execute("COMMIT")
        self._log.committed()
        if commits is not None:
            self._commits = commits  # not earlier: with one that is undone the witness would accuse the disk
            self._witness.note(Noted(commits, self._outbox.head))
        return self._outbox.committed()

    def _count_commit(self) -> int | None:
        """The count with this commit, which is not counted when it emitted. None for a commit without
        changes, which does not reach the disk.
        """
        if self._db.total_changes() == self._changes:
            return None
        commits = self._commits if self._outbox.appended else _number(self._db, COUNT_COMMITS)
        self._changes = self._db.total_changes()
        return commits

    def _undo(self) -> bool:
        """Returns whether what is undone here is in the log of a cluster, and comes back from there."""
        self._outbox.undone()
        has_landed = self._log.undone()
        if self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except apsw.Error:
                log.exception("a failed group could not be rolled back")
        return has_landed

    def _tell(self, listeners: tuple[Listener, ...], changes: Sequence[Change]) -> None:
        for listener in listeners:
            try:
                listener(changes)
            except Exception:
                log.exception("a listener of the control store failed")


def _number(db: apsw.Connection, sql: str) -> int:
    ((number,),) = db.execute(sql).fetchall()
    assert isinstance(number, int)
    return number
