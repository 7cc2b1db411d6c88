"""Objects carried from one store into another, each with its alarm, its position and its whole past.

Owns  what is carried of an object; the order; that all of them arrived.
Not   the stores' ends: `sqlite.objectlog.carrying`, `postgres.objectlog.carrying`.

One object is read and written at a time, its databases in pieces: a move needs little memory, however many
objects there are and however large. A folder that is left is at rest meanwhile. A cluster that is left may be
written to: each object is carried as it is at one moment, not all at the same one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from edgestead.store.history.rows import BlockRow, SnapshotRow
from edgestead.store.objectlog import LogError, ObjectRef, Tail, Target
from edgestead.store.pages import PAGE_BYTES

PIECE_BYTES: Final = 1024 * 1024  # of a database; the last one of it may be shorter

Pieces = Iterable[bytes]


class Carried(NamedTuple):
    """One object at its newest position. To be used while it is open, each part once.

    `time_us` and `generation` are those of its newest commit. `image` is its database, `tail` the keys that
    this lacks. A snapshot's row comes with its own database.
    """

    ref: ObjectRef
    head: int
    alarm_us: int | None
    session: int
    pending: Target | None
    time_us: int
    generation: int
    tail: Tail
    pages: int
    image: Pieces
    blocks: Iterable[tuple[BlockRow, bytes]]
    snapshots: Iterable[tuple[SnapshotRow, Pieces]]
    pins: Mapping[int, int]


class Leaving(Protocol):
    """The end of a move that is only read."""

    def objects(self) -> Iterator[AbstractContextManager[Carried | None]]:
        """Each is open while it is carried; None is one that is gone."""
        ...


class Arriving(Protocol):
    """The end of a move that has no objects yet."""

    def put(self, one: Carried) -> None:
        """Store one. Nothing needs to be durable before `finish`."""
        ...

    def pause(self) -> None:
        """Do what takes long: no object is open, so nobody is kept waiting."""
        ...

    def finish(self) -> int:
        """Make everything durable; gives how many objects there are."""
        ...


def carry(source: Leaving, target: Arriving, advance: Callable[[int, int], None]) -> int:
    """Carry every object; gives how many. `advance` gets octets and objects since its last call.

    Raises LogError when not all have arrived, and what the ends raise: then the target is worth nothing.
    """
    count = 0
    for opened in source.objects():
        with opened as one:
            if one is None:
                continue
            target.put(one._replace(image=_counted(one, advance)))
        target.pause()
        count += 1
        advance(0, 1)
    if (arrived := target.finish()) != count:
        raise LogError(f"{arrived} objects have arrived, and {count} were carried")
    return count


def _counted(one: Carried, advance: Callable[[int, int], None]) -> Iterator[bytes]:
    total = 0
    for piece in one.image:
        total += len(piece)
        advance(len(piece), 0)
        yield piece
    if total != one.pages * PAGE_BYTES:
        raise LogError(f"the database of {one.ref.class_name}/{one.ref.id} is not whole")
