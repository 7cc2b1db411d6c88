"""The interface of the objects' past: reading and restoring earlier states.

Owns  moments of an object: naming one, finding one by time, the state at one.
Not   bookmarks as text; when a restore is allowed. Positions and commits are defined in `objectlog`.

Callbacks run on the calling thread, later or immediately.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from edgestead.store.objectlog import UNCHANGED, Alarm, CommitKind, Lease, LogError, ObjectRef, Target, Told

END_OF_SESSION = 2**63 - 1
"""The position of a target that means the last one of its session, wherever that ends."""


class ObjectState(msgspec.Struct):
    """The whole state of an object: its database file, the keys logged since, its alarm."""

    position: int
    image: bytearray
    tail: dict[str, bytes | None]
    alarm_us: int | None


class LoggedPosition(msgspec.Struct, frozen=True):
    """One commit of the past: where it is, when it was written, what it changed in the alarm.

    `stored` is about how many bytes history uses for it. `pinned`: it was handed out as a bookmark.
    """

    position: int
    generation: int
    session: int
    time_us: int
    kind: int = CommitKind.KEYS
    alarm: Alarm = UNCHANGED
    stored: int = 0
    pinned: bool = False


class Past(Protocol):
    def locate(self, ref: ObjectRef, target: Target, generation: int, done: Told[LoggedPosition]) -> None:
        """The commit that a bookmark of a generation identifies. The error may be Unknown."""
        ...

    def position_at(self, ref: ObjectRef, time_us: int, done: Told[LoggedPosition]) -> None:
        """The last commit at or before a time. The error may be Unknown."""
        ...

    def moments(
        self, ref: ObjectRef, since_us: int, until_us: int, limit: int, done: Told[list[LoggedPosition]]
    ) -> None:
        """The commits between two times, newest first."""
        ...

    def recall(
        self,
        ref: ObjectRef,
        target: Target,
        generation: int,
        done: Told[tuple[LoggedPosition, ObjectState]],
        *,
        bytes_max: int | None = None,
    ) -> None:
        """The whole state of the object after a commit. The error may be Unknown; TooLarge, where its
        database had more bytes then, or before, where reading begins.
        """
        ...

    def restore(self, lease: Lease, state: ObjectState, done: Callable[[LogError | None], None]) -> None:
        """Begin a session in which the object has this state; its database must not be open anywhere.

        Raises Fenced, NoSpace, LogBroken, LogError when it would change too much.
        """
        ...

    def check(self, refs: Sequence[ObjectRef], done: Told[list[list[str]]]) -> None:
        """The faults in each object's past; empty without any."""
        ...

    def check_all(self, done: Told[list[str]]) -> None:
        """The faults in the records of the log and in the history database as a whole."""
        ...
