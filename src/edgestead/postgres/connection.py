"""One connection to the cluster's database, and what is known when a statement fails.

Owns  opening it on the primary, the checks of its settings, deadlines, and how failures are told apart.
Not   tables (`postgres.schema`); when something is tried again.

    what happened                                     raised          written?
    not reached; refused; lost before COMMIT was sent Away            no
    lost after the statement or COMMIT was sent       Unknown         perhaps
    the wait for the standby was cut short            Unknown         here, perhaps nowhere else
    the server's settings would lose writes           Misconfigured   no
    any other error of a statement                    psycopg.Error   no

A statement is never cancelled and has no time limit on the server: a cancelled wait for the standby reports
success for a commit that only the primary has (documented in PostgreSQL's *synchronous_commit*). A deadline
closes the socket instead, and the outcome is Unknown.
"""

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import psycopg

Parameters = Sequence[Any]
Row = tuple[Any, ...]

CONNECT_SECONDS_MAX = 3  # for each host of the DSN; libpq knows whole seconds, at least 2
DEADLINE_SECONDS = 30.0  # of a statement; above the 4–25 s of a failover
VERSION_MIN = 140_000  # target_session_attrs=primary and what the schema uses
ONE_STATE: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ"
IDLE_LIMIT: Final = "idle_in_transaction_session_timeout"  # PostgreSQL's; between statements alone
LOSING: Final = ("off", "local")  # values of synchronous_commit with which an acknowledged write can be lost
_SETTINGS = (
    "SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), "
    "current_setting('server_encoding'), current_setting('server_version_num')::int"
)
# Errors by which a server ends a session (admin_shutdown, crash_shutdown …), perhaps after a local commit.
_ENDS_SESSION = "57P"
# Errors after which nothing was written and another try may succeed: resources, operator, read-only.
_AWAY = ("08", "53", "57", "58", "25006")
_SUCCESS_BUT = "01000"  # the WARNING of a commit whose wait for the standby was cut short


class Trouble(Exception):
    """The database could not do it; trying again may help."""


class Away(Trouble):
    """The database was not reached or refused: nothing was written."""


class Unknown(Trouble):
    """The answer never came: the statement may have been executed, or may still be."""


class Misconfigured(Exception):
    """The database's settings cannot keep what a cluster promises. The message is for the operator."""


class Watch:
    """Ends what is overdue, of all connections of the process, on one thread that runs while any is armed."""

    TICK_SECONDS = 0.1

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._due_s: dict[Link, float] = {}
        self._armed = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self, link: "Link", seconds: float) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pg-deadline", daemon=True)
                thread.start()
                self._thread = thread  # only now: one that could not be started is tried again
            self._due_s[link] = self._clock() + seconds
        self._armed.set()

    def disarm(self, link: "Link") -> None:
        with self._lock:
            self._due_s.pop(link, None)

    def _run(self) -> None:
        while True:
            self._armed.wait()
            time.sleep(self.TICK_SECONDS)
            with self._lock:  # held while cutting, so that a socket is never of the next statement
                now_s = self._clock()
                for link in [link for link, due_s in self._due_s.items() if due_s <= now_s]:
                    del self._due_s[link]
                    link.cut()
                if not self._due_s:
                    self._armed.clear()


WATCH = Watch()


class Copies(NamedTuple):
    """How many machines have what was acknowledged, as far as the primary's settings say."""

    standby_names: str

    @property
    def is_one(self) -> bool:
        return not self.standby_names


class Link:
    """One connection, opened by its first statement and again after it was lost. For one thread at a time.

    The DSN may name several hosts; the one that is the primary is used. Without `synced` a commit does not
    wait for a disk or a standby: for what may be older after a failover. Statements have `%s` for texts and
    `%b` for bytes, numbers and lists, which are then sent in binary: as text, batches of 4 KB were 2.3 to
    2.6 times slower. Results are binary.
    """

    def __init__(
        self,
        dsn: str,
        *,
        deadline_s: float = DEADLINE_SECONDS,
        synced: bool = True,
        name: str = "edgestead",
        watch: Watch = WATCH,
    ) -> None:
        self.dsn, self._deadline_s, self._synced, self._name, self._watch = (
            dsn,
            deadline_s,
            synced,
            name,
            watch,
        )
        self._connection: psycopg.Connection[Row] | None = None
        self._in_transaction = False
        self._was_cut_short = False
        self.copies = Copies("")

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        """Raises Away, Unknown, Misconfigured, psycopg.Error."""
        return self._execute(statement, parameters).fetchall()

    def row(self, statement: str, parameters: Parameters = ()) -> Row | None:
        return self._execute(statement, parameters).fetchone()

    def run(self, statement: str, parameters: Parameters = ()) -> int:
        """How many rows it changed."""
        return self._execute(statement, parameters).rowcount

    def script(self, statements: str) -> None:
        """Several statements at once, without parameters."""
        self._execute(statements, (), binary=False)

    @contextmanager
    def transaction(self, *, idle_ms_max: int = 0, one_state: bool = False) -> Iterator[None]:
        """All or nothing. A loss inside of it raises Away, one at its COMMIT Unknown.

        With `one_state` all of its statements see what its first one saw.
        The server undoes it when it waits so long for the next statement (0: for ever): what others wait for
        is not held by a process that stands still, or by a machine that is off. It never ends a COMMIT.
        """
        begin = ONE_STATE if one_state else "BEGIN"
        try:
            if idle_ms_max:
                self.script(f"{begin}; SET LOCAL {IDLE_LIMIT} = {idle_ms_max}")
            else:
                self._execute(begin, ())
        except Unknown as error:
            raise Away(str(error)) from error  # it has written nothing, whether it began or not
        self._in_transaction = True
        try:
            yield
        except BaseException:
            self._in_transaction = False
            self._roll_back()
            raise
        self._in_transaction = False
        done = self._execute("COMMIT", (), opens=False)
        if done.statusmessage != "COMMIT":  # an error inside was swallowed: PostgreSQL rolled it back
            raise Away(f"the transaction ended with {done.statusmessage}")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Inside of a transaction: an exception undoes what was done in it, and is raised."""
        self._execute("SAVEPOINT part", ())
        try:
            yield
        except BaseException:
            if self._connection is not None:
                self._execute("ROLLBACK TO SAVEPOINT part", ())
            raise
        self._execute("RELEASE SAVEPOINT part", ())

    def close(self) -> None:
        """Idempotent; the next statement would open it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def open(self) -> None:
        """Connect now, and not with the next statement. Between transactions. Raises Away, Misconfigured."""
        self._forget_if_ended()
        if self._connection is None:
            self._connection = self._open()

    def _forget_if_ended(self) -> None:
        if self._connection is not None and _has_ended(self._connection):
            self.close()

    def cut(self) -> None:
        """Close the socket under another thread's statement, which raises Unknown or Away."""
        connection = self._connection
        if connection is None:
            return
        with suppress(OSError, psycopg.Error):  # it is closed already
            with socket.socket(fileno=os.dup(connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)

    def _execute(
        self, statement: str, parameters: Parameters, *, binary: bool = True, opens: bool = True
    ) -> psycopg.Cursor[Row]:
        """A COMMIT `opens` no connection: on another one it would succeed, and commit nothing."""
        if not self._in_transaction:
            self._forget_if_ended()  # while it was idle: nothing of this statement is lost with it
        if self._connection is None:
            if self._in_transaction or not opens:
                raise Away("the connection was lost inside of the transaction")
            self._connection = self._open()
        cursor = self._connection.cursor(binary=binary)
        self._was_cut_short = False
        self._watch.arm(self, self._deadline_s)
        try:
            cursor.execute(statement.encode(), parameters or None)
        except psycopg.Error as error:
            self._watch.disarm(self)
            raise self._sorted(error) from error
        self._watch.disarm(self)
        if self._was_cut_short:
            raise Unknown("the wait for the standby was cut short: only the primary is known to have it")
        return cursor

    def _sorted(self, error: psycopg.Error) -> Exception:
        """The exception of the table above; forgets a connection that is of no more use."""
        state = error.sqlstate or ""
        connection = self._connection
        assert connection is not None
        is_lost = connection.closed or not state or state.startswith(_ENDS_SESSION)
        if is_lost or state.startswith(_AWAY):
            self.close()
        if is_lost:
            return (Away if self._in_transaction else Unknown)(_words(error))
        return Away(_words(error)) if state.startswith(_AWAY) else error

    def _roll_back(self) -> None:
        if self._connection is None:
            return
        with suppress(Trouble, psycopg.Error):  # a lost connection has rolled back, too
            self._execute("ROLLBACK", ())

    def _open(self) -> psycopg.Connection[Row]:
        """Raises Away, Misconfigured."""
        try:
            connection = psycopg.connect(
                self.dsn,
                autocommit=True,
                prepare_threshold=None,  # a pooler may hand each transaction to another session
                connect_timeout=CONNECT_SECONDS_MAX,
                target_session_attrs="primary",
                application_name=self._name,
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
            )
        except psycopg.Error as error:
            raise Away(_words(error)) from error
        connection.add_notice_handler(self._notice)
        self._connection = connection
        try:
            self._watch.arm(self, self._deadline_s)
            found = connection.execute(_SETTINGS).fetchone()
            assert found is not None
            self.copies = Copies(_checked(*found))
            if not self._synced:
                connection.execute("SET synchronous_commit = off")
        except psycopg.Error as error:
            self.close()
            raise Away(_words(error)) from error
        except BaseException:  # its settings are not known to be good
            self.close()
            raise
        finally:
            self._watch.disarm(self)
        return connection

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.sqlstate == _SUCCESS_BUT and diagnostic.severity_nonlocalized == "WARNING":
            self._was_cut_short = True


def _has_ended(connection: psycopg.Connection[Row]) -> bool:
    """Whether a connection that waits for nothing was closed by the other end, or has its last words."""
    return connection.closed or _is_readable(connection.fileno())


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()  # select() would refuse a descriptor above 1,023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _checked(commit: str, standby_names: str, encoding: str, version: int) -> str:
    if commit in LOSING:
        raise Misconfigured(
            f"synchronous_commit is {commit}: what is acknowledged could be lost. Set it to on, for this "
            "database or its user (ALTER DATABASE … SET synchronous_commit = on)."
        )
    if encoding != "UTF8":
        raise Misconfigured(
            f"the database's encoding is {encoding}. Create one with UTF8: "
            "CREATE DATABASE edge ENCODING 'UTF8' TEMPLATE template0."
        )
    if version < VERSION_MIN:
        raise Misconfigured(f"PostgreSQL {version // 10_000} is too old: 14 is the oldest that works.")
    return standby_names


def _words(error: psycopg.Error) -> str:
    """One line, without the statement or its parameters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
