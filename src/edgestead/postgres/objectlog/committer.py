"""Group commit over objects: what is appended while one group is written goes into the next one.

Owns  the waiting groups, the one in flight, times; which failure means what.
Not   leases (`log`); what a row holds (`rows`).

    the statement …                            its group is          and then
    gave its row                               durable
    found the process's own row gone           refused (Fenced)      the process ends
    met a row that is there already            refused (Fenced)      the process ends
    was sent, and no answer came               refused (LogBroken)   the process ends, and the next one reads
    found no room                              refused (NoSpace)
    could not be sent (Away)                   tried again for HOLD_SECONDS, then refused (LogAway)

With a refused group go all that wait: their positions follow on those that are refused. One group is in
flight at a time, so an object's commits arrive in order.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

import psycopg

from edgestead.postgres.connection import Away, Link, Misconfigured, Unknown
from edgestead.postgres.objectlog.rows import LogRow, ObjectRow, PinRow, parameters, statement
from edgestead.store.objectlog import Alarm, Fenced, LogAway, LogBroken, LogError, NoSpace
from edgestead.store.runner import Runner

GROUP_ROWS_MAX: Final = 1_024  # commits of one statement, which all wait for the last of them
GROUP_BYTES_MAX: Final = 8 * 1024 * 1024  # of bodies; a single larger one is a group of its own
HOLD_SECONDS: Final = 5.0  # a group waits for a failover so long
RETRY_SECONDS: Final = 0.1

Done = Callable[[LogError | None], None]


class Member(Protocol):
    """An object, as groups know it."""

    def landed(self, octets: int, alarm: Alarm) -> None:
        """So many bytes of rows are durable, with what they did to the alarm."""
        ...

    def was_refused(self) -> None:
        """Head, alarm and file may be ahead of the log."""
        ...


class Group:
    """The commits that become durable together."""

    __slots__ = ("alarms", "callbacks", "changed", "error", "named", "octets", "pinned", "rows", "state")

    def __init__(self) -> None:
        self.state: Literal["waiting", "durable", "refused"] = "waiting"
        self.error: LogError | None = None
        self.rows: list[LogRow] = []
        self.named: dict[int, ObjectRow] = {}
        self.changed: dict[int, ObjectRow] = {}
        self.pinned: dict[tuple[int, int], PinRow] = {}
        self.octets = 0
        self.alarms: dict[Member, tuple[int, Alarm]] = {}  # of each member: bytes, what its alarm became
        self.callbacks: list[Done] = []

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.pinned

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= GROUP_ROWS_MAX or self.octets >= GROUP_BYTES_MAX

    def on_done(self, callback: Done) -> None:
        if self.state == "waiting":
            self.callbacks.append(callback)
        else:
            callback(self.error)

    def decide(self, error: LogError | None) -> None:
        """Its members know; `tell` says it to who waits."""
        self.state, self.error = "durable" if error is None else "refused", error
        members, self.alarms = self.alarms, {}
        for member, (octets, alarm) in members.items():
            if error is None:
                member.landed(octets, alarm)
            else:
                member.was_refused()
        self.rows = []

    def tell(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(self.error)


class Committer:
    """`incarnation` is this process's number. `fatal` is called when only another process can go on.

    `full` is called when a group found no room. `pause` sleeps between two tries, on the runner's thread;
    `clock` gives seconds.
    """

    def __init__(
        self,
        link: Link,
        incarnation: int,
        runner: Runner,
        fatal: Callable[[BaseException], None],
        full: Callable[[], None],
        *,
        hold_seconds: float = HOLD_SECONDS,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.broken: LogError | None = None
        self.groups = self.records = 0  # written since the start
        self._waiting: deque[Group] = deque([Group()])
        self._in_flight: Group | None = None
        self._link, self._incarnation, self._runner = link, incarnation, runner
        self._fatal, self._full = fatal, full
        self._tries, self._pause = max(1, int(hold_seconds / RETRY_SECONDS)), pause
        self._hold_seconds, self._clock = hold_seconds, clock

    def group(self) -> Group:
        """The group for what is appended now."""
        if self._waiting[-1].is_full:
            self._waiting.append(Group())
        return self._waiting[-1]

    @property
    def is_idle(self) -> bool:
        """Nothing is in flight or waiting."""
        return self._in_flight is None and all(group.is_empty for group in self._waiting)

    @property
    def waiting(self) -> int:
        """How many commits are not durable yet."""
        groups = (*self._waiting, *((self._in_flight,) if self._in_flight else ()))
        return sum(len(group.rows) for group in groups)

    def flush(self) -> None:
        """Write the oldest waiting group, unless one is in flight (it follows then by itself)."""
        if self._in_flight is not None or self._waiting[0].is_empty or self.broken is not None:
            return
        group = self._in_flight = self._waiting.popleft()
        if not self._waiting:
            self._waiting.append(Group())
        self._runner.run(lambda: self._write(group), self._done)

    def when_decided(self, then: Done) -> None:
        """Call back when everything that was appended is durable or refused; at once when all of it is."""
        # The last one is empty, behind a full one, where nothing was appended to it after all.
        newest = next((one for one in reversed(self._waiting) if not one.is_empty), self._in_flight)
        if newest is None:
            then(None)
        else:
            newest.on_done(then)
            self.flush()

    def _write(self, group: Group) -> int:
        """On the runner's thread. Raises LogError."""
        asked = statement(named=bool(group.named), changed=bool(group.changed), pinned=bool(group.pinned))
        values = parameters(
            self._incarnation,
            group.rows,
            list(group.named.values()),
            list(group.changed.values()),
            list(group.pinned.values()),
        )
        until = self._clock() + self._hold_seconds  # a try takes seconds where nobody refuses it
        for left in reversed(range(self._tries)):
            try:
                written = self._link.row(asked, values)
            except Away as error:
                if is_full(error):
                    raise NoSpace("no space left in the cluster's database") from error
                if not left or self._clock() >= until:
                    raise LogAway(f"the cluster's database is away: {error}") from error
                self._pause(RETRY_SECONDS)
                continue
            except Unknown as error:
                raise LogBroken(f"whether commits were written is not known: {error}") from error
            except psycopg.errors.UniqueViolation as error:
                raise Fenced("another process has written where this one would have") from error
            except (Misconfigured, psycopg.Error) as error:
                raise LogError(f"the cluster's database refused commits: {error}") from error
            break
        if written is None:
            raise Fenced(f"incarnation {self._incarnation} is gone")
        return len(group.rows)

    def _done(self, count: Any, error: Exception | None) -> None:
        group, self._in_flight = self._in_flight, None
        assert group is not None
        if error is None:
            self.groups += 1
            self.records += count
            self._finish(None, group)
            self.flush()
            return
        reason = error if isinstance(error, LogError) else LogBroken(f"object log: {error}")
        is_over = isinstance(reason, Fenced | LogBroken)
        if is_over:
            self.broken = LogBroken(f"object log: {reason}")
        elif isinstance(reason, NoSpace):
            self._full()
        waiting, self._waiting = self._waiting, deque([Group()])  # first: who is told has the rest flushed
        self._finish(reason, group, *waiting)
        if is_over:
            self._fatal(reason)
        else:
            self.flush()

    def _finish(self, error: LogError | None, *groups: Group) -> None:
        for group in groups:
            group.decide(error)
        for group in groups:
            try:
                group.tell()
            except Exception as raised:  # an error in a callback: others of the group were not called
                self._fatal(raised)


def is_full(error: BaseException) -> bool:
    """Whether a failure of a statement says that the database's disk is full."""
    cause = error.__cause__
    return isinstance(cause, psycopg.errors.DiskFull)
