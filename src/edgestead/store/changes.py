"""The change feed's noun and the interface of its source.

Owns  `Change`, its limits, and the interface of a feed.
Not   what a document means; sockets.

One dense sequence per database; a scope only filters. The newest document per (scope, kind, key) is kept
forever, the changes themselves only in a bounded tail: a consumer that is further behind starts from a
snapshot. A kind that begins with LOG_PREFIX is a log: its documents are independent, none replaces another,
and each is kept as long as it is in the tail.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

DOC_BYTES_MAX = 1 << 20  # of one document; a frame of the wire holds several
TAIL_ROWS_MAX = 65_536  # of the tail that a restarted control resumes consumers from
TAIL_BYTES_MAX = 32 << 20  # of the feed that is kept in memory; a consumer further behind reads the database
LIVES_MAX = 64  # openings of the database that are remembered
SLICE_ROWS_MAX = 512  # rows that a snapshot hands over at a time

KIND_DROP_SCOPE = ""  # of a change that forgets every key of its scope
LOG_PREFIX = "log:"


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One step of the feed. `doc` None means that the key is gone.

    `first` is "edge" or "dns" when that group has to apply the change before it is sent to the other.
    """

    sequence: int
    scope: str
    kind: str
    key: str
    doc: bytes | None
    first: Literal["", "dns", "edge"] = ""

    @property
    def drops_scope(self) -> bool:
        return self.kind == KIND_DROP_SCOPE


def is_log(kind: str) -> bool:
    return kind.startswith(LOG_PREFIX)


def change_bytes(change: Change) -> int:
    """The size of a change in every limit: its texts and document, and 16 for the rest."""
    return 16 + len(change.scope) + len(change.kind) + len(change.key) + len(change.doc or b"")


class ChangeFeed(Protocol):
    @property
    def feed_id(self) -> str:
        """Random, made at each opening of the database, so that it names one history.

        A database restored from a copy hands out some sequences a second time, for other changes. So a
        sequence identifies a change only together with this name.
        """
        ...

    def includes(self, feed_id: str, sequence: int) -> bool:
        """Whether everything that that opening had committed up to a sequence is part of this history.

        Also False for openings older than the last LIVES_MAX.
        """
        ...

    def head(self) -> int:
        """The last committed sequence, 0 for an empty feed."""
        ...

    def tail(self, after: int, bytes_max: int) -> list[Change] | None:
        """The changes that follow `after`, dense and in order, at least one and up to `bytes_max` of them.

        An empty list at the head. None when the feed cannot resume there: the next change is no longer
        kept, or `after` lies beyond the head.
        """
        ...

    def snapshot(self, kinds: frozenset[str], sink: Callable[[Sequence[Change]], None]) -> int:
        """Hand the newest document of every key to `sink`, in slices; returns the sequence of this state.

        `kinds` empty means all. Ordered by scope, kind and key in byte order; each change carries the
        sequence that wrote it. The logs that are still in the tail follow, in the order of their sequences,
        without those of scopes dropped since. Blocks during the whole scan: call it on a separate thread.
        """
        ...
