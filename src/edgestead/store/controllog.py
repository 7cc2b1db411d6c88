"""The log of control data in a cluster: what each commit changed, durable before the commit itself.

Owns  entries and bases, the chain over entries, and the interface of a log.
Not   which process may append (`cluster.office`); what a changeset is made of (`sqlite.logged`).

One process appends; every control node applies the entries in order to its own database. An entry's `chain`
depends on all entries before it, so a copy that has applied another entry than the log now has is detected.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

import msgspec

from edgestead.model.refusals import Unavailable

ENTRY_BYTES_MAX: Final = 64 << 20  # of a body: a larger write is refused
PART_BYTES: Final = 1 << 20  # of a base, and of an entry that is stored in several rows
READ_BYTES_MAX: Final = 8 << 20  # of the entries that one read returns
CHAIN_BYTES: Final = 16


class Kind(IntEnum):
    CHANGES = 1  # a changeset, compressed
    SCHEMA = 2  # a migration: its SQL, compressed
    ANSWERED = 3  # a changeset, and the requests that other nodes passed on for it; compressed


class Position(NamedTuple):
    """How far a copy is. (0, b"") is an empty database."""

    sequence: int
    chain: bytes


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One commit. `feed_upto` is the feed's newest sequence after it; `made_us` only informs."""

    sequence: int
    kind: int
    feed_upto: int
    chain: bytes
    made_us: int
    body: bytes

    @property
    def position(self) -> Position:
        return Position(self.sequence, self.chain)


class Base(NamedTuple):
    """A whole database, up to an entry. `sha256` is of all parts together."""

    position: Position
    sha256: bytes
    parts: int


class NotLeader(Unavailable):
    """This process may not write now. Nothing was written."""

    wording = "No control node leads the cluster at the moment. Nothing was written. Try again."


class Fenced(Exception):
    """Another process owns what this one wanted to append to. Nothing was appended."""


class Unknown(Unavailable):
    """The connection to the database ended during an append: it may have landed."""

    wording = (
        "The service lost its database during this write: it may have been written. "
        "Read it back before you send it again."
    )


class Diverged(Exception):
    """The log does not continue this copy: it has to be loaded again from a base."""


class ControlLog(Protocol):
    """Of one cluster. Calls block, and may be made from several threads."""

    def append(self, incarnation: int, entry: Entry) -> None:
        """Durable, on every machine that has to have it, when it returns.

        Raises Fenced, also where the log ends before its predecessor; Unknown; Unavailable when the database
        could not be reached: nothing was appended.
        """
        ...

    def read(self, after: int, bytes_max: int = READ_BYTES_MAX) -> list[Entry] | None:
        """The entries that follow, at least one if there is any; None when they were deleted already.

        Raises Unavailable.
        """
        ...

    def chain(self, sequence: int) -> bytes | None:
        """That of one entry; None where there is none. Raises Unavailable."""
        ...

    def newest_base(self) -> Base | None:
        """Raises Unavailable."""
        ...

    def read_base(self, base: Base) -> Iterator[bytes]:
        """Its parts. Raises Unavailable."""
        ...

    def put_base(self, position: Position, parts: Iterable[bytes]) -> None:
        """Store a base, whole or not at all. One that is there already stays.

        Raises Diverged when it is of a copy that is not the log's; Unavailable.
        """
        ...

    def since_base(self) -> tuple[int, int | None]:
        """Bytes of the entries after the newest base, and when the first of them was appended.

        Raises Unavailable.
        """
        ...

    def trim(self) -> None:
        """Delete what lies before the last but one base. Raises Unavailable."""
        ...


def chained(before: bytes, sequence: int, kind: int, body: bytes) -> bytes:
    """The chain of an entry, from the one before it."""
    digest = blake2b(before, digest_size=CHAIN_BYTES)
    digest.update(b"%d %d " % (sequence, kind))
    digest.update(body)
    return digest.digest()


def holds(log: ControlLog, position: Position) -> bool:
    """Whether a position is one of the log's: that of an entry, or of its newest base. Raises Unavailable."""
    chain = log.chain(position.sequence)
    if chain is not None:
        return chain == position.chain
    base = log.newest_base()
    return base is not None and base.position == position


def check_chain(position: Position, entries: Sequence[Entry]) -> Position:
    """Where a copy is that applies the entries. Raises Diverged."""
    for entry in entries:
        if entry.sequence != position.sequence + 1:
            raise Diverged(f"entry {entry.sequence} of the control log comes after {position.sequence}")
        if entry.chain != chained(position.chain, entry.sequence, entry.kind, entry.body):
            raise Diverged(f"entry {entry.sequence} of the control log does not continue this copy")
        position = entry.position
    return position
