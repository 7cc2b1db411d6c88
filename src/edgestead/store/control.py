"""The interface of the control data's store.

Owns  the interface of a transaction, and what a commit guarantees.
Not   what the rows mean; HTTP; DNS.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from edgestead.store.changes import Change

T = TypeVar("T")
Row = tuple[Any, ...]
Group = Literal["", "dns", "edge"]


class Committed(msgspec.Struct, frozen=True):
    """A write that is durable. `sequence` is its last feed sequence, 0 when it emitted nothing; `after` is
    the last one before its first.
    """

    value: Any
    sequence: int
    after: int = 0


class Answered(msgspec.Struct, frozen=True, array_like=True):
    """A request that a commit was for. The answer is b"" where it is not kept (`store.answered`)."""

    request: str
    answer: bytes = b""


class Reader(Protocol):
    """A consistent view. SQL is portable (SQLite and PostgreSQL), with `?` for parameters."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]: ...

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        ...

    def documents(self, scope: str, kind: str) -> Iterator[tuple[str, bytes]]:
        """The newest document of each key of a kind, in no order; of a transaction including its own changes.

        Must be read to its end before anything else is done with this view.
        """
        ...


class Transaction(Reader, Protocol):
    """One serializable transaction. An exception from the function undoes all of it."""

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Change rows; returns how many."""
        ...

    def run_each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run the statement for each row as it is produced. The iterator must not use this transaction."""
        ...

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, *, first: Group = "") -> int:
        """Append one change to the feed, in this transaction. `doc` None means that the key is gone.

        `first` names the group that must have applied the change before it is sent to the other.
        A kind that begins with `changes.LOG_PREFIX` is a log: the document is sent, kept as long as it is in
        the tail, replaces no other document, and cannot be None.
        Returns its sequence. Raises BadRequest when the document is larger than DOC_BYTES_MAX,
        ValueError for an empty `scope` or `kind`: these are reserved for the feed.
        """
        ...

    def answered(self, request: Answered) -> None:
        """Let the log of a cluster say for which request this commit was."""
        ...

    def touches(self, scope: str) -> bool:
        """Whether this commit has changes of a scope so far: of this transaction, or of functions that ran
        before it in the same group. Cost: a look-up in a set.
        """
        ...

    def newest(self, scope: str, kind: str, key: str) -> bytes | None:
        """The newest document, including this transaction's own changes; None when the key is gone."""
        ...

    def newest_of(self, scope: str, keys: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """As `newest`, of several pairs of kind and key, with one statement for many of them."""
        ...

    def drop_scope(self, scope: str, *, first: Group = "") -> int:
        """Append one change that forgets every key of a scope. Returns its sequence."""
        ...


class ControlStore(Protocol):
    @property
    def groups(self) -> int:
        """A version number that changes before a write settles. A cache filled after reading it is valid, for
        every caller whose write was answered, until the number changes.
        """
        ...

    def read(self, fn: Callable[[Reader], T]) -> T:
        """Run a pure, synchronous function on one snapshot, on the calling thread.

        Raises Unavailable when the store is closed or cannot be read, and whatever `fn` raises.
        """
        ...

    def read_one(self, fn: Callable[[Reader], T]) -> T:
        """As `read`, for a function that runs one statement. Each statement has its own snapshot, which is
        cheaper.
        """
        ...

    def write(self, fn: Callable[[Transaction], T]) -> Future[Committed]:
        """Queue a pure, synchronous function for the writer thread.

        The future resolves after the commit is durable, or with the function's own exception (its changes are
        rolled back, the others of its group are not), or with Unavailable when the group could not be
        committed: then none of its changes exist. Raises Unavailable when the queue is full or closed.
        """
        ...

    def on_commit(self, listener: Callable[[Sequence[Change]], None]) -> None:
        """Call `listener` on the writer thread after each commit that emitted something, with its changes,
        before any of its futures settles. So its effects are visible to every caller of this commit and to
        every function that runs afterwards. It must not raise, block, or read the store.
        """
        ...

    def on_group(self, listener: Callable[[Sequence[Change]], None]) -> None:
        """Call `listener` once per group, on the writer thread, after all its futures are settled.

        It gets the changes that the group committed, in order; none when it emitted nothing or failed.
        It must not block; it is meant for one cheap wake-up of an event loop.
        """
        ...

    def off_group(self, listener: Callable[[Sequence[Change]], None]) -> None:
        """Call it no more, but for a group that is told of just now, and keep nothing of it."""
        ...

    def close(self) -> None:
        """Finish the queue, then close. Idempotent."""
        ...
