"""The live segments: the active one, a spare, and sealed ones until they are dropped.

Owns  rotation, the preallocated spare, recycling, retirement.
Not   which objects still need a segment: `local` gives the first generation whose records are needed.

A sealed segment is dropped in this order: every object with records in it is in its database file; files are
synced; objects are stored in the catalogue and the segment's row is deleted, in one durable transaction; only
then is its file reused. New commits need a spare: the rest of the active segment is reserved for moving
acknowledged data, so recovery from a full disk is always possible.
"""

import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import apsw

from edgestead.sqlite.objectlog.catalogue import Catalogue, ObjectRow, SegmentRow
from edgestead.sqlite.objectlog.format import BLOCK_BYTES
from edgestead.sqlite.objectlog.segments import Segment, prepare, try_room
from edgestead.store.files import Files
from edgestead.store.objectlog import NoSpace
from edgestead.store.runner import Runner

log = logging.getLogger(__name__)


class Upkeep:
    """The set of live segments. Used from the owner's thread."""

    def __init__(
        self,
        files: Files,
        folder: str,
        data_folder: str,
        catalogue: Catalogue,
        runner: Runner,
        *,
        segment_bytes: int,
        generation: int,
        sealed: list[SegmentRow],
        free: list[str],
        on_spare: Callable[[], None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        """`generation` is the last one used, `free` the slots whose files may be reused."""
        self.sealed: deque[SegmentRow] = deque(sealed)
        self.active: Segment | None = None
        self.spare: Segment | None = None
        self.full = False  # the last try to prepare a spare, or to find space, failed
        self._files = files
        self._folder = folder
        self._data_folder = data_folder
        self._catalogue = catalogue
        self._runner = runner
        self._segment_bytes = segment_bytes
        self._generation = generation
        self._free = list(free)
        self._slots = {row.slot for row in sealed} | set(free)
        self._on_spare = on_spare
        self._fatal = fatal
        self._preparing = self._looking = self._look_again = False

    @property
    def generation(self) -> int:
        """The earliest generation that the next group can be written to."""
        segment = self.active or self.spare
        return segment.generation if segment else self._generation

    def next_segment(self, length: int) -> Segment | None:
        """Seal the active segment and switch to the spare. None: not ready yet. Raises NoSpace."""
        if self.spare is None or not self.spare.fits(length):
            self._check_room()
            self.prepare_spare(length)
            if self.spare is None or not self.spare.fits(length):
                self._check_room()  # a runner without a thread has tried already
                return None
        if self.active is not None:
            self.active.file.close()
            self.sealed.append(self.active.row)
        self.active, self.spare = self.spare, None
        self.prepare_spare()
        return self.active

    def _check_room(self) -> None:
        """Raises NoSpace."""
        if self.full and not self._preparing:
            raise NoSpace("no space left for another segment of the object log")

    def prepare_spare(self, length: int = 0) -> None:
        """Start to prepare a spare that is large enough for a group of this length."""
        if self._preparing or (self.spare is not None and self.spare.fits(length)):
            return
        self._preparing = True
        self._generation += 1
        small, self.spare = self.spare, None  # too small for one huge group
        row = SegmentRow(
            self._generation, self._take_slot(length), max(self._segment_bytes, length + BLOCK_BYTES)
        )

        dropped: list[str] = []

        def job() -> Segment:
            if small is not None:
                self._catalogue.settle((), [small.generation])
                dropped.append(small.row.slot)
                small.file.close()
            return self._prepare(row)

        def done(made: Any, error: Exception | None) -> None:
            self._free += dropped  # also when there is no room for the large one
            if not dropped:
                self.spare = small
            self._prepared(row, made, error)

        self._runner.run(job, done)

    def _take_slot(self, length: int) -> str:
        if self._free and length + BLOCK_BYTES <= self._segment_bytes:
            return self._free.pop()
        number = 1
        while (slot := f"segment-{number:04d}.log") in self._slots:
            number += 1
        self._slots.add(slot)
        return slot

    def _prepare(self, row: SegmentRow) -> Segment:
        segment = prepare(self._files, self._folder, self._catalogue.folder_id, row)
        try:
            self._catalogue.add_segment(row)
        except Exception:
            segment.file.close()
            raise
        return segment

    def _prepared(self, row: SegmentRow, made: Any, error: Exception | None) -> None:
        self._preparing = False
        if error is None:
            self.spare, self.full = made, False
            if self._look_again:
                self._look_again = False
                self.look_for_space()
        elif isinstance(error, OSError | apsw.FullError):
            # The generation is never used again; its slot may be, since the catalogue does not have it.
            log.error("no new segment for the object log: %s", error)
            self.full = True
            self._free.insert(0, row.slot)  # behind those that have a file
        else:
            self._fatal(error)
            return
        self._on_spare()

    def look_for_space(self) -> None:
        """Check for free space, and refuse commits until there is some.

        A preallocated spare does not show that there is space for databases, and what was begun before shows
        nothing about now: a look whose write succeeded while the disk filled would hide that it is full.
        """
        if self.spare is None or self._looking:
            self._look_again = True
            self.prepare_spare()
        else:
            self._looking = True
            self._runner.run(lambda: try_room(self._files, self._folder), self._looked)

    def _looked(self, result: Any, error: Exception | None) -> None:
        self._looking = False
        if isinstance(error, OSError):
            log.error("no room beside the object log: %s", error)
            self.full = True
        elif error is not None:
            self._fatal(error)
            return
        if self._look_again:
            self._look_again = False
            self.look_for_space()
        elif error is None:
            self.full = False
            self._on_spare()

    def retire(self, needed_from: int, objects: list[ObjectRow], then: Callable[[bool], None]) -> None:
        """Start to drop sealed segments before generation `needed_from`.

        `objects` are stored first; all of their state must already be durable in the log.
        """
        gone = [row for row in self.sealed if row.generation < needed_from]

        def job() -> None:
            self._files.sync_tree(self._data_folder)
            self._catalogue.settle(objects, [row.generation for row in gone])
            for row in gone:
                if row.bytes_total != self._segment_bytes:
                    with contextlib.suppress(OSError):
                        self._files.remove(f"{self._folder}/{row.slot}")

        self._runner.run(job, lambda _, error: self._retired(gone, error, then))

    def _retired(self, gone: list[SegmentRow], error: Exception | None, then: Callable[[bool], None]) -> None:
        if isinstance(error, apsw.FullError):
            log.error("the object log's catalogue has no space: %s", error)
            then(False)
            return
        if error is not None:
            # It is unknown which writes to databases are on disk: only a restart finds out.
            self._fatal(error)
            return
        for row in gone:
            self.sealed.remove(row)
            if row.bytes_total == self._segment_bytes:
                self._free.append(row.slot)
            else:
                self._slots.discard(row.slot)
        then(True)
        if self.spare is None:
            self.prepare_spare()

    def close(self) -> None:
        """Close the segments' files."""
        for segment in (self.active, self.spare):
            if segment is not None:
                segment.file.close()
        self.active = self.spare = None
