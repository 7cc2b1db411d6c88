"""The interface of the stateful objects' log: commits, leases and durability.

Owns  the types of the log (object, lease, commit, alarm change) and their guarantees.
Not   segments and files, which are private to an implementation; what the bytes of a value mean; the past
      (`past`); which alarms are due (`alarms`).

Each object has positions of its own: 0 is empty, and every commit is the next number. Positions order
commits; times only help to find a position. An implementation is used from one thread; where it uses others
internally, callbacks still run on that thread.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

import msgspec

COMMIT_BYTES_MAX = 256 * 1024 * 1024  # one transaction's page images


class LogError(Exception):
    """The log cannot carry out the operation."""


class Fenced(LogError):
    """The lease is over: another holder has acquired the object since."""


class WrongOwner(LogError):
    """Another process owns the object. Nothing was done; whoever asked should look at a newer map of owners.

    `version` is that of the map by which this process refused.
    """

    def __init__(self, words: str, version: int = 0) -> None:
        super().__init__(words)
        self.version = version


class Unknown(LogError):
    """The object, or that part of its history, is not known to this log."""


class TooLarge(LogError):
    """What was asked for has more bytes than whoever asked can take."""


class NoSpace(LogError):
    """The disk is full. Nothing of the refused commit remains."""


class LogAway(LogError):
    """The log cannot be asked at the moment. Nothing was done, and later it may answer."""


class LogBroken(LogError):
    """I/O on the log failed. What is durable is known only after a restart."""


class LogDamaged(LogError):
    """An acknowledged record cannot be read. The message names the segment; nothing was changed."""


class LogLost(LogDamaged):
    """Acknowledged records are gone from the end of the log. Nothing was changed."""


Tail = dict[str, bytes | None]
"""Keys by their newest value; None: deleted."""


class ObjectRef(msgspec.Struct, frozen=True):
    """One object. `id` is 64 lower-case hexadecimal digits; `name` is None for ids made without one."""

    class_name: str
    id: str
    name: str | None = None


class CommitKind(IntEnum):
    PAGES = 1
    """The body is SQLite WAL frames. They contain the effect of every earlier commit of the object."""
    KEYS = 2
    """The body is a msgpack map of key to encoded value, or nil for a deleted key."""
    COPY = 3
    """As PAGES, of an object whose own database file is what makes it durable: for history only."""
    RESTORE = 4
    """The object is to be taken back at its next start. The body is the `Target`, or nil to forget that."""
    RESTORED = 5
    """A new session begins. Its pages and keys follow in the same group. The body is a `Target`: the
    session that begins, and the position whose state it has."""


class Commit(msgspec.Struct, frozen=True):
    """One transaction of one object, as it is logged."""

    kind: CommitKind
    body: bytes


class Unchanged(msgspec.Struct, frozen=True):
    """The commit leaves the alarm as it is."""


UNCHANGED: Final = Unchanged()
Alarm = Unchanged | int | None
"""An alarm change: UNCHANGED, a time in microseconds since the epoch, or None to delete it."""


class Target(msgspec.Struct, frozen=True, array_like=True):
    """A moment of an object: a position of one of its sessions."""

    session: int
    position: int


class Restored(msgspec.Struct, frozen=True, array_like=True):
    """Part of a commit that begins a session: the moment restored from, and how many commits complete the
    restore.

    States in between were never visible, so it is not possible to restore to one of them.
    """

    session: int
    position: int
    follows: int = 0  # older logs lack it: 1 when read from them


def own_path(path: str) -> str:
    """The path of the object's second database, next to `Lease.path`. It is durable by itself; the log never
    touches it.
    """
    return path.removesuffix(".sqlite") + ".own.sqlite"


class Progress(NamedTuple):
    """`groups` had a sync each, with `records` (commits, names, pins) in them; `waiting` had none yet."""

    groups: int
    records: int
    waiting: int


class CatalogueEntry(msgspec.Struct, frozen=True):
    """What the log knows of one object without opening it."""

    ref: ObjectRef
    head: int
    base: int
    alarm_us: int | None
    pending: Target | None = None
    """What it is to be taken back to before anybody uses it."""


R = TypeVar("R")
Told = Callable[[R | None, LogError | None], None]
"""What an answer comes back by, on the thread that asked: a result, or an error."""


class Group(Protocol):
    """The commits that become durable together."""

    @property
    def state(self) -> Literal["waiting", "durable", "refused"]: ...

    @property
    def error(self) -> LogError | None: ...

    def on_done(self, callback: Callable[[LogError | None], None]) -> None:
        """Call back once, with None when durable; immediately when that is already known."""
        ...


class Lease(Protocol):
    """The right to write to one object, until it is released or the object is acquired again.

    `path` is where the object's database file is, the base, which may lag behind `head`. Without `has_file`
    no commit ever had pages, and a file at that path is a leftover. `tail` has the key records that the base
    does not contain yet (None for a deleted key). `session` counts restores; `pending` is the moment to
    restore before the object is used; `life` is the generation of new bookmarks. Writes update `head`,
    `alarm_us`, `session` and `pending`.
    """

    ref: ObjectRef
    path: str
    has_file: bool
    head: int
    alarm_us: int | None
    tail: dict[str, bytes | None]
    session: int
    pending: Target | None
    life: int

    def append(self, commits: list[Commit], alarm: Alarm, *, upkeep: bool = False) -> Group:
        """Append commits after `head`, atomically.

        They are durable when the group says so, some time after the next `Log.flush`. `upkeep` commits only
        move acknowledged data, and are still accepted when there is no space.
        Raises Fenced, NoSpace, LogBroken: nothing was appended.
        """
        ...

    def pin(self, position: int) -> Group | None:
        """Pin a position that is handed out: it is kept until it is older than the window of the past.

        None when the last pin was the same. Raises Fenced, NoSpace, LogBroken.
        """
        ...

    def put_base(self, position: int) -> None:
        """The database file now contains every commit up to `position`. All of them must be durable."""
        ...

    def release(self, tail: dict[str, bytes | None], *, rebuild: bool = False) -> None:
        """Release the lease, with the key records that the base lacks.

        `rebuild`: the file may contain refused commits and must be rebuilt from the log.
        """
        ...


class Catalogue(Protocol):
    """What the log knows of objects without opening them."""

    def find(self, ref: ObjectRef, done: Told[CatalogueEntry]) -> None:
        """The state of one object in the log; neither result nor error when it was never written."""
        ...

    def catalogue(self, after: tuple[str, str], limit: int, done: Told[list[CatalogueEntry]]) -> None:
        """The first objects after that class and id, in this order; fewer than `limit` only at the end."""
        ...

    def has(self, ref: ObjectRef) -> bool:
        """Whether the object was ever written, as far as this process knows without asking another one.

        Where the log is files of this process, that is the whole truth.
        """
        ...

    def has_any(self, class_name: str) -> bool:
        """The same of a class."""
        ...


class Log(Catalogue, Protocol):
    """Answers that may come from another machine are given to `done`: on this thread, at once or later."""

    def acquire(self, ref: ObjectRef, done: Told[Lease]) -> None:
        """Acquire an object; ends any earlier lease on it. An object that was never written starts at head 0.

        Its database file is then consistent; `tail` has to be applied to it. The lease is `done`'s: one that
        is not wanted any more has to be released. The error may be LogBroken, WrongOwner.
        """
        ...

    def may_answer(self) -> bool:
        """Whether what this process knows of its objects may be told now.

        To be asked when an answer or a message leaves: where objects have owners, another process may have
        become one since the call came in.
        """
        ...

    def flush(self, *, here: bool = False) -> None:
        """Start to make durable what was appended.

        `here`: the caller has no other work until then, so this thread may do it.
        """
        ...

    @property
    def is_quick(self) -> bool:
        """Whether this thread makes a group durable in less time than handing it to another one takes.

        Then `here` is best even when there is other work, and commits should be collected first, because this
        thread appends none during the sync. False where another machine does it.
        """
        ...

    def settle(self) -> None:
        """Wait, on this thread, until every group is decided."""
        ...

    def lagging(self, limit: int) -> list[ObjectRef]:
        """Objects whose base has to advance before the log can drop their commits."""
        ...

    def close(self) -> None:
        """Make everything durable and close. Idempotent."""
        ...
