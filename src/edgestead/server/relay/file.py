"""What a relay keeps of one group's documents, so that its machine answers without any control node.

Owns  the file of a group, where it stands, and the file aside while a snapshot comes in.
Not   what documents mean; who may have them (control sends to a node what its processes serve, nothing else).

The file is a copy: one that cannot be opened, or lost something in a power cut, is thrown away.
"""

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from edgestead.feed.follower import Position
from edgestead.model.refusals import Unavailable
from edgestead.server import stores
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.witness import SUFFIX
from edgestead.store.changes import Change
from edgestead.store.control import Committed, Reader, Transaction

SELECT: Final = "SELECT feed_id, sequence, leased_s, kinds FROM relay WHERE one = 1"
UPSERT: Final = (
    "INSERT INTO relay (one, feed_id, sequence, leased_s, kinds) VALUES (1, ?, ?, ?, ?) "
    "ON CONFLICT (one) DO UPDATE SET feed_id = excluded.feed_id, sequence = excluded.sequence"
)
NOTE_LEASE: Final = "UPDATE relay SET leased_s = ? WHERE one = 1"
_SUFFIXES: Final = ("", "-wal", "-shm", SUFFIX)

log = logging.getLogger("edgestead.server")


class RelayFile:
    """Made and used on one loop, but for what blocks, which says so: that may still be under way when it is
    closed, and its end is waited for.
    """

    def __init__(
        self, folder: Path, group: str, now_s: float | None = None, *, kinds: Iterable[str] = ()
    ) -> None:
        """`kinds` are what is asked of control. Blocks. Raises `stores.CANNOT_OPEN`: there is no space for a
        new one, for example.
        """
        self._kinds = " ".join(sorted(kinds))
        self._path = folder / f"relay-{group}.db"
        self._aside_path = folder / f"relay-{group}.new.db"
        self._aside: SqliteControlStore | None = None
        self._loads: list[Future[Committed]] = []
        self._door = threading.Lock()  # of the files that are put in place of others
        self._closed = False
        self._now_s = time.time if now_s is None else lambda: now_s
        remove(self._aside_path)
        try:
            self.store = stores.open_relay(self._path)
        except stores.CANNOT_OPEN as error:
            log.warning("%s is made again from a control node: %s", self._path.name, error)
            remove(self._path)
            self.store = stores.open_relay(self._path)

    @property
    def position(self) -> Position | None:
        """Where the file stands in control's feed; None before the first snapshot.

        One with other kinds, which another release made, is of no feed: it can be answered from until a
        snapshot is there, and nothing can be added to it.
        """
        row = self.store.read(_row)
        if row is None:
            return None
        return Position(row[0] if row[3] == self._kinds else "", row[1])

    @property
    def seconds_since_lease(self) -> float:
        row = self.store.read(_row)
        return 0.0 if row is None else max(0.0, self._now_s() - row[2])

    def note_lease(self) -> None:
        """The node has a lease now."""
        now_s = int(self._now_s())
        self.store.write(lambda tx: tx.run(NOTE_LEASE, (now_s,)))

    def keep(self, changes: Sequence[Change], position: Position) -> "Future[Committed]":
        return self.store.write(partial(_keep, changes, position, self._kinds, int(self._now_s())))

    @property
    def head(self) -> int:
        """Blocks for some microseconds."""
        return self.store.feed.head()

    def begin(self) -> None:
        """Blocks: begin a new file aside, and drop one that did not come to its end. Raises Unavailable when
        this is closed.
        """
        with self._alone():
            self._drop_aside()
            self._aside = stores.open_relay(self._aside_path)

    def load(self, changes: Sequence[Change]) -> "Future[Committed]":
        assert self._aside is not None
        future = self._aside.write(partial(_keep, changes, None, "", 0))
        self._loads.append(future)
        return future

    def swap(self, position: Position) -> None:
        """Blocks until the file aside is whole and in place. The store is another one afterwards.

        Raises what a write raises; then the old file is as it was. Unavailable when this is closed.
        """
        with self._alone():
            self._put_in_place(position)

    def _put_in_place(self, position: Position) -> None:
        assert self._aside is not None
        for future in self._loads:
            future.result()
        self._aside.write(partial(_keep, (), position, self._kinds, int(self._now_s()))).result()
        self._aside.close()
        self.store.close()
        for suffix in _SUFFIXES:  # closed databases have no journal; the witness is the new file's own
            _with(self._path, suffix).unlink(missing_ok=True)
        for suffix in reversed(_SUFFIXES):  # the database itself last: without it the others say nothing
            if _with(self._aside_path, suffix).exists():
                os.replace(_with(self._aside_path, suffix), _with(self._path, suffix))
        self._aside, self._loads = None, []
        self.store = stores.open_relay(self._path)

    def _drop_aside(self) -> None:
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        self._loads = []
        remove(self._aside_path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._door:
            if self._closed:
                raise Unavailable()
            yield

    def close(self) -> None:
        """Blocks. A new file that is on its way into place comes there first."""
        with self._door:
            self._closed = True
            self._drop_aside()
            self.store.close()


def remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        _with(path, suffix).unlink(missing_ok=True)


def _with(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _row(reader: Reader) -> tuple[str, int, int, str] | None:
    row = reader.row(SELECT)
    return None if row is None else (row[0], row[1], row[2], row[3])


def _keep(
    changes: Sequence[Change], position: Position | None, kinds: str, now_s: int, tx: Transaction
) -> None:
    """The order between groups was kept by control: here there is one group."""
    for change in changes:
        if change.drops_scope:
            tx.drop_scope(change.scope)
        else:
            tx.emit(change.scope, change.kind, change.key, change.doc)
    if position is not None:
        tx.run(UPSERT, (*position, now_s, kinds))
