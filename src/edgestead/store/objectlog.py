"""The interface of the stateful objects' log: what a commit is, and what durable means.

Owns  the nouns of the log (object, lease, commit, alarm change) and their promises.
Not   segments and files, which are private to an implementation; what the bytes of a value mean; the past
      (`past`); which alarms are due (`alarms`).

Each object has positions of its own: 0 is empty, and every commit is the next number. Positions order
commits; times only help to find a position. An implementation is used from one thread; where it uses others,
callbacks still come on that thread.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, Literal, Protocol, TypeVar

import msgspec

COMMIT_BYTES_MAX = 256 * 1024 * 1024  # one transaction's page images


class LogError(Exception):
    """The log cannot do what was asked."""


class Fenced(LogError):
    """The lease is over: another holder has acquired the object since."""


class Unknown(LogError):
    """The object, or that part of its history, is not known to this log."""


class NoSpace(LogError):
    """The disk is full. Nothing of the refused commit remains."""


class LogBroken(LogError):
    """The log's file failed. What is durable is known only after a new start."""


class LogDamaged(LogError):
    """An acknowledged record cannot be read. The message names the segment; nothing was changed."""


class LogLost(LogDamaged):
    """Acknowledged records are gone from the end of the log. Nothing was changed."""


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
    """What a commit says that begins a session: where it was taken from, and how many commits complete it.

    Between them the object was nothing that anybody saw, so these are no moments to go back to.
    """

    session: int
    position: int
    follows: int = 0  # as also read from what was logged before this was


def own_path(path: str) -> str:
    """Where an object has its database that is durable by itself, beside `Lease.path`: no log touches it."""
    return path.removesuffix(".sqlite") + ".own.sqlite"


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
        """Call back once, with None when durable; at once when that is already known."""
        ...


class Lease(Protocol):
    """The right to write to one object, until it is released or somebody else acquires the object.

    `path` is where the object's database file is, the base, which may lag behind `head`. Without
    `has_file` no commit ever brought pages, and what may stand there is debris. `tail` holds key records
    that the base does not contain yet (None for a deleted key). `session` counts restores; `pending` is
    what the object is to be taken back to before anybody uses it; `life` is the generation of bookmarks that
    are handed out now. What is written moves `head`, `alarm_us`, `session` and `pending` on.
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
        move acknowledged data, and are still taken when there is no room.
        Raises Fenced, NoSpace, LogBroken: nothing was appended.
        """
        ...

    def pin(self, position: int) -> Group | None:
        """Keep a position, which is handed out, for as long as the past goes back.

        None when the last pin was the same. Raises Fenced, NoSpace, LogBroken.
        """
        ...

    def put_base(self, position: int) -> None:
        """The database file now contains every commit up to `position`. All of them must be durable."""
        ...

    def release(self, tail: dict[str, bytes | None], *, rebuild: bool = False) -> None:
        """Give the lease back, with the key records that the base lacks.

        `rebuild` says that the file may hold refused commits, and is to be made again from the log.
        """
        ...


class Log(Protocol):
    def acquire(self, ref: ObjectRef) -> Lease:
        """Hold an object. Ends any earlier lease on it. An object that was never written starts at head 0.

        Its database file then is a consistent state, to which `tail` has to be added.
        Raises LogBroken.
        """
        ...

    def flush(self, *, here: bool = False) -> None:
        """Begin to make durable what was appended.

        `here`: the caller has nothing else to do until it is, so that this thread may do the work.
        """
        ...

    @property
    def is_quick(self) -> bool:
        """Whether this thread makes a group durable in less time than handing it to another one takes.

        Then `here` is best even when there is something else to do, and it pays to gather commits first,
        because nothing arrives meanwhile. False where another machine does it.
        """
        ...

    def settle(self) -> None:
        """Wait, on this thread, until every group is decided."""
        ...

    def find(self, ref: ObjectRef) -> CatalogueEntry | None:
        """What is known of one object; None when it was never written."""
        ...

    def catalogue(self, after: tuple[str, str] = ("", "")) -> Iterator[CatalogueEntry]:
        """Every object behind that class and id, in this order."""
        ...

    def lagging(self, limit: int) -> list[ObjectRef]:
        """Objects whose base is to move, so that the log need not keep their commits for it."""
        ...

    def close(self) -> None:
        """Make everything durable and end. Idempotent."""
        ...
