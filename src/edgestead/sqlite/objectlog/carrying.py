"""Objects of logs on local files, carried into another store and out of one.

Owns  reading closed logs, making one that begins where the objects were.
Not   bringing a log's databases up to its head, which needs what runs objects: `bring_up` is a parameter.

A new log's databases are files from the start. Keys that a database lacks are appended as commits that change
nothing, from which `bring_up` makes pages: so the log holds no more at a first start than after any other.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import Final

import msgspec

from edgestead.sqlite.objectlog.catalogue import Catalogue, Identity, ObjectRow
from edgestead.sqlite.objectlog.distribution import begin, life_of, settled_rows
from edgestead.sqlite.objectlog.format import FOLDER_ID_BYTES
from edgestead.sqlite.objectlog.history import History
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.sqlite.objectlog.paths import (
    catalogue_path,
    data_path,
    history_path,
    keep_path,
    log_folder,
)
from edgestead.store.carrying import PIECE_BYTES, Carried
from edgestead.store.files import Files
from edgestead.store.history.rows import BlockRow, SnapshotRow
from edgestead.store.objectlog import UNCHANGED, Commit, CommitKind, Group, ObjectRef, Tail
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.runner import InlineRunner

BATCH_OBJECTS: Final = 1_000  # in one transaction
BATCH_BYTES: Final = 16 * 1024 * 1024  # of bodies, or of keys that databases lack
_LATEST: Final = 2**63 - 1


class LocalLeaving:
    """The objects of closed logs whose databases are at their heads. `now_us` is for those without a past."""

    def __init__(self, files: Files, folders: list[str], now_us: int) -> None:
        self._files, self._folders, self._now_us = files, folders, now_us
        self.life = life_of(folders)

    def objects(self) -> Iterator[AbstractContextManager[Carried]]:
        """Raises LogError, OSError, apsw.Error."""
        for folder in self._folders:
            with closing(History(history_path(folder))) as history:
                for row in settled_rows(folder):
                    yield nullcontext(self._carried(folder, history, row))

    def _carried(self, folder: str, history: History, row: ObjectRow) -> Carried:
        path = data_path(folder, row.ref)
        last, snapshot = history.last_block(row.number), history.snapshot(row.number, _LATEST)
        newest: BlockRow | SnapshotRow | None = last or snapshot
        time_us = last.last_us if last else snapshot.time_us if snapshot else self._now_us
        return Carried(
            row.ref,
            row.head,
            row.alarm_us,
            row.session,
            row.pending,
            time_us,
            newest.generation if newest else self.life,
            {},
            self._pages(path) if row.has_file else 0,
            self._image(path) if row.has_file else (),
            ((one, history.body(one)) for one in history.blocks(row.number, 0, _LATEST)),
            self._snapshots(history, row.number),
            history.pins(row.number),
        )

    def _pages(self, path: str) -> int:
        with closing(self._files.open(path)) as file:
            return file.size() // PAGE_BYTES

    def _image(self, path: str) -> Iterator[bytes]:
        with closing(self._files.open(path)) as file:
            for start in range(0, file.size(), PIECE_BYTES):
                yield file.read(PIECE_BYTES, start)

    @staticmethod
    def _snapshots(history: History, number: int) -> Iterator[tuple[SnapshotRow, Iterator[bytes]]]:
        for position in sorted(history.snapshot_positions(number)):
            row = history.snapshot(number, position)
            assert row is not None
            yield row, history.pieces(row)


class LocalArriving:
    """A new log in `folder`, whose bookmarks are of the generation `life`.

    `bring_up` brings the databases of the closed log up to its head.
    """

    def __init__(
        self,
        files: Files,
        folder: str,
        *,
        life: int,
        now_us: Callable[[], int],
        random: Callable[[int], bytes],
        bring_up: Callable[[], None],
    ) -> None:
        self._files, self._folder, self._now_us, self._random = files, folder, now_us, random
        self._life, self._bring_up = life, bring_up
        self._number = self._time_us = 0
        self._rows: list[ObjectRow] = []
        self._tails: list[tuple[ObjectRef, bytes]] = []
        self._octets = self._tail_octets = 0
        with closing(begin(files, folder, random(FOLDER_ID_BYTES), now_us())) as catalogue:
            catalogue.set_identity(Identity(life, life, 0, None, None))
        self._open = ExitStack()
        self._begin_batch(is_first=True)

    def _begin_batch(self, *, is_first: bool = False) -> None:
        self._catalogue = self._open.enter_context(closing(Catalogue(catalogue_path(self._folder), "", None)))
        self._history = self._open.enter_context(closing(History(history_path(self._folder))))
        self._open.enter_context(self._history)  # one transaction
        if is_first:
            self._history.begin(self._now_us())

    def put(self, one: Carried) -> None:
        """Raises OSError, apsw.Error, what the object's parts raise."""
        self._number += 1
        self._write_image(one)
        self._write_past(one)
        self._rows.append(
            ObjectRow(
                self._number,
                one.ref,
                one.head,
                one.head,
                one.pages > 0,
                one.alarm_us,
                one.session,
                one.pending,
            )
        )
        if one.tail:
            self._tails.append((one.ref, _keys_of(one.tail)))
            self._tail_octets += len(self._tails[-1][1])

    def pause(self) -> None:
        """Raises LogError, OSError, apsw.Error."""
        if len(self._rows) >= BATCH_OBJECTS or max(self._octets, self._tail_octets) >= BATCH_BYTES:
            self._end_batch(has_more=True)

    def _write_image(self, one: Carried) -> None:
        path = data_path(self._folder, one.ref)
        if one.pages:
            self._files.make_folder(path.rpartition("/")[0])
            with closing(self._files.open(path, create=True)) as file:
                for number, piece in enumerate(one.image):
                    file.write(piece, number * PIECE_BYTES)
        else:
            for _ in one.image:
                pass

    def _write_past(self, one: Carried) -> None:
        self._time_us = max(self._time_us, one.time_us)
        for block, body in one.blocks:
            self._history.add_block(msgspec.structs.replace(block, number=self._number), body)
            self._octets += len(body)
        for snapshot, pieces in one.snapshots:
            row = msgspec.structs.replace(snapshot, number=self._number)
            self._octets += self._history.add_pieces(row, pieces)
        for position, time_us in one.pins.items():
            self._history.pin(self._number, position, time_us)

    def _end_batch(self, *, has_more: bool) -> None:
        self._catalogue.settle(self._rows, ())
        cursor = self._history.cursor()  # no later commit has an earlier time
        time_us = max(cursor.time_us, self._time_us)
        self._history.set_cursor(msgspec.structs.replace(cursor, time_us=time_us))
        self._open.close()
        self._rows, self._octets = [], 0
        if self._tail_octets >= BATCH_BYTES or (self._tails and not has_more):
            self._append_tails()
            self._bring_up()
            self._tails, self._tail_octets = [], 0
        if has_more:
            self._begin_batch()

    def _append_tails(self) -> None:
        log = LocalObjectLog(
            self._folder,
            files=self._files,
            commits=InlineRunner(),
            upkeep=InlineRunner(),
            now_us=self._now_us,
            random=self._random,
            fatal=_fail,
        )
        groups: list[Group] = []
        try:
            for ref, keys in self._tails:
                lease = log.lease(ref)
                groups.append(lease.append([Commit(CommitKind.KEYS, keys)], UNCHANGED, upkeep=True))
                lease.release({})
            log.settle()
            for group in groups:
                if group.error is not None:
                    raise group.error
        finally:
            log.close()

    def finish(self) -> int:
        """Raises LogError, OSError, apsw.Error."""
        self._end_batch(has_more=False)
        count = sum(1 for _ in settled_rows(self._folder))
        with closing(Catalogue(catalogue_path(self._folder), "", None)) as catalogue:
            catalogue.set_identity(
                msgspec.structs.replace(catalogue.identity(), device=None, inode=None)
            )  # its first opening is that of no copy, wherever it is
        self._remove_rest()
        return count

    def _remove_rest(self) -> None:
        """No segment has anything that is not elsewhere."""
        folder = log_folder(self._folder)
        segments = [f"{folder}/{name}" for name in self._files.names(folder) if name.startswith("segment-")]
        for path in [*segments, f"{folder}/lock", keep_path(self._folder)]:
            self._files.remove(path)

    def abandon(self) -> None:
        """Close what is open; what there is is worth nothing. Idempotent."""
        self._open.close()


def _keys_of(tail: Tail) -> bytes:
    return msgspec.msgpack.encode(tail)


def _fail(error: BaseException) -> None:
    raise error
