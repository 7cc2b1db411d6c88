"""The interface of the stateful objects' log: what a commit is, and what durable means.

Owns  the nouns of the log (object, lease, commit, alarm change) and their promises.
Asks  nobody: `store.sqlite.objectlog` implements it on local files, later `store.postgres`.
Tells `objects`, which writes commits and waits for them.
Not   segments, frames and files, which are private to an implementation; what the bytes of a value mean.

Each object has positions of its own: 0 is empty, and every commit is the next number. Positions order
commits; times only help to find a position. An implementation is used from one thread; where it uses others,
callbacks still come on that thread.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

import msgspec

PAGE_BYTES = 4_096
FRAME_HEADER_BYTES = 24  # SQLite file format §4.1: before each page image of a write-ahead log
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


END_OF_SESSION = 2**63 - 1
"""The position of a target that means the last one of its session, wherever that ends."""


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


class ObjectState(msgspec.Struct):
    """Everything an object was: its database file, the keys logged since, its alarm."""

    position: int
    image: bytearray
    tail: dict[str, bytes | None]
    alarm_us: int | None


class LoggedPosition(msgspec.Struct, frozen=True):
    """One commit of the past: where it is, when it was written, what it changed in the alarm.

    `stored` is about what history keeps for it, in bytes. `pinned`: it was handed out.
    """

    position: int
    generation: int
    session: int
    time_us: int
    kind: int = CommitKind.KEYS
    alarm: Alarm = UNCHANGED
    stored: int = 0
    pinned: bool = False


class Lease(msgspec.Struct):
    """The right to append to one object, until it is released or somebody acquires it again.

    `path` is where the object's database file is, the base, which may lag behind `head`. Without
    `has_file` no commit ever brought pages, and what may stand there is debris. `tail` holds key records
    that the base does not contain yet (None for a deleted key). `session` counts restores; `pending` is
    what the object is to be taken back to before anybody uses it.
    """

    ref: ObjectRef
    number: int
    epoch: int
    path: str
    has_file: bool
    head: int
    alarm_us: int | None
    tail: dict[str, bytes | None]
    session: int = 0
    pending: Target | None = None


class CatalogueEntry(msgspec.Struct, frozen=True):
    """What the log knows of one object without opening it."""

    ref: ObjectRef
    head: int
    base: int
    alarm_us: int | None


R = TypeVar("R")
Told = Callable[[R | None, LogError | None], None]


class Group(Protocol):
    """The commits that become durable together."""

    @property
    def state(self) -> Literal["waiting", "durable", "refused"]: ...

    @property
    def error(self) -> LogError | None: ...

    def on_done(self, callback: Callable[[LogError | None], None]) -> None:
        """Call back once, with None when durable; at once when that is already known."""
        ...


class Progress(NamedTuple):
    """`groups` had a sync each, with `records` (commits, names, pins) in them; `waiting` had none yet."""

    groups: int
    records: int
    waiting: int


class ObjectLog(Protocol):
    def acquire(self, ref: ObjectRef) -> Lease:
        """Hold an object. Ends any earlier lease on it. An object that was never written starts at head 0.

        Its database file then is a consistent state, to which `tail` has to be added.
        Raises LogBroken.
        """
        ...

    def append(
        self, lease: Lease, head: int, commits: list[Commit], alarm: Alarm, *, upkeep: bool = False
    ) -> Group:
        """Append commits after `head`, atomically, and move `lease.head`.

        The group becomes durable after the next `flush`. `upkeep` commits only move acknowledged data, and
        are still taken when the disk is full.
        Raises Fenced (also when `head` is not the lease's), NoSpace, LogBroken: nothing was appended.
        """
        ...

    def flush(self, *, inline: bool = False) -> None:
        """Begin to write what was appended.

        `inline` does it at once, on this thread, when nothing is in flight.
        """
        ...

    @property
    def syncs_quickly(self) -> bool:
        """Whether the latest groups took less time to sync than to hand to another thread and back."""
        ...

    def settle(self) -> None:
        """Wait, on this thread, until every group is decided."""
        ...

    def put_base(self, lease: Lease, position: int) -> None:
        """The database file now contains every commit up to `position`. All of them must be durable."""
        ...

    def release(self, lease: Lease, tail: dict[str, bytes | None], *, rebuild: bool = False) -> None:
        """Give the lease back, with the key records that the base lacks.

        `rebuild` says that the file may hold refused commits, and is to be made anew from the log.
        """
        ...

    def pin(self, lease: Lease, position: int) -> Group | None:
        """Keep a position, which is handed out, for as long as the past goes back.

        What comes back becomes durable after the next `flush`; None when the last pin was the same.
        Raises Fenced, NoSpace, LogBroken.
        """
        ...

    def read(self, ref: ObjectRef, after: int, upto: int) -> list[LoggedPosition]:
        """The commits that are kept with after < position <= upto, in order. Raises Unknown, LogError."""
        ...

    def position_at(self, ref: ObjectRef, time_us: int) -> int:
        """The last position written at or before a time. Raises Unknown when that is not kept any more."""
        ...

    # The same without holding up this thread: `done(result, error)` comes back on it.

    def locate(self, ref: ObjectRef, target: Target, generation: int, done: Told[LoggedPosition]) -> None:
        """The commit that a bookmark means. The error may be Unknown."""
        ...

    def locate_time(self, ref: ObjectRef, time_us: int, done: Told[LoggedPosition]) -> None:
        """The last commit at or before a time. The error may be Unknown."""
        ...

    def moments(
        self, ref: ObjectRef, since_us: int, until_us: int, limit: int, done: Told[list[LoggedPosition]]
    ) -> None:
        """The commits between two times, newest first."""
        ...

    def recall(
        self, ref: ObjectRef, target: Target, generation: int, done: Told[tuple[LoggedPosition, ObjectState]]
    ) -> None:
        """Everything that the object was after a commit. The error may be Unknown."""
        ...

    def check_past(self, ref: ObjectRef, done: Told[list[str]]) -> None:
        """What is wrong with what is kept of an object's past; empty when nothing is."""
        ...

    def pending(self, ref: ObjectRef) -> Target | None:
        """What an object is to be taken back to before anybody uses it."""
        ...

    def restore(self, lease: Lease, state: ObjectState, done: Callable[[LogError | None], None]) -> None:
        """Begin a session in which the object is in this state; nobody may have its database open.

        Raises Fenced, NoSpace, LogBroken, LogError when it would change too much.
        """
        ...

    @property
    def life(self) -> int:
        """The generation of bookmarks that are handed out now."""
        ...

    @property
    def progress(self) -> Progress:
        """What was made durable since the start, and what waits."""
        ...

    @property
    def history_bytes(self) -> int:
        """What the past of all objects takes."""
        ...

    def catalogue(self, after: tuple[str, str] = ("", "")) -> Iterator[CatalogueEntry]:
        """Every object behind that class and id, in this order."""
        ...

    def find(self, ref: ObjectRef) -> CatalogueEntry | None:
        """What is known of one object; None when it was never written."""
        ...

    on_alarm: Callable[[int], None]
    """Called with the time of each alarm that is set, when it is appended."""

    def due_alarms(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        """The earliest alarms at or before a time, with their times."""
        ...

    def take_alarms(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        """The same, each only once: until it is set again, or given back."""
        ...

    def give_back(self, ref: ObjectRef) -> None:
        """A taken alarm that was neither set again nor deleted may be taken again."""
        ...

    def next_alarm_us(self) -> int | None:
        """The earliest alarm of all that are not taken."""
        ...

    def tend(self) -> None:
        """Do what had to wait: look for space again, shorten the log. To be called every second or so."""
        ...

    def look_for_space(self) -> None:
        """Something met a full disk. Find out whether there is room; without any `read_only` becomes true."""
        ...

    def holding_back(self, limit: int) -> list[ObjectRef]:
        """Objects whose base must move before the log can be shortened."""
        ...

    @property
    def read_only(self) -> bool:
        """True while there is no space for new commits."""
        ...

    def close(self) -> None:
        """Make everything durable and end. Idempotent."""
        ...
