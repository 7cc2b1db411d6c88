"""Thinning the past: merging commits between the moments that are kept, and dropping old ones.

Owns  the rules of keeping: the window, the spacing, the quota; merging commits.
Not   new commits (`archive`).

Of commits older than a day these stay: the last one of each ten seconds, the last one of each session, and
every one that was handed out as a bookmark. The others are merged into the next one that stays. Of what is
older than the window only one snapshot stays, so that the window's first moment can be read.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator

import apsw
import msgspec

from edgestead.store.history.blocks import (
    PAGE_KINDS,
    Images,
    PastEntry,
    pack_block,
    pack_pages,
    page_numbers,
)
from edgestead.store.history.reader import DAMAGES, PastReader, apply
from edgestead.store.history.rows import BlockRow, Book
from edgestead.store.objectlog import UNCHANGED, Alarm, CommitKind, Tail, Unknown
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.past import ObjectState

SECOND_US = 1_000_000
WINDOW_US = 30 * 24 * 3600 * SECOND_US  # spec "Limits": PITR window
RECENT_US = 24 * 3600 * SECOND_US  # of which every commit is kept
BLOCKS_AT_ONCE = 64
OBJECTS_AT_ONCE = 64
BLOCK_RAW_BYTES = 4 * 1024 * 1024
BYTES_MAX = 16 * 1024**3  # of the past that one process keeps (a setting)


class Keeping(msgspec.Struct, frozen=True):
    """The rules of keeping. `spacing_us` 0 keeps every commit; `bytes_max` 0 is no quota."""

    window_us: int = WINDOW_US
    recent_us: int = RECENT_US
    spacing_us: int = 10 * SECOND_US
    bytes_max: int = BYTES_MAX


class Thinning:
    """Thins one history."""

    def __init__(self, history: Book, keeping: Keeping) -> None:
        self._history, self._keeping = history, keeping
        self._past = PastReader(history)
        self._after = 0  # the last object that was checked
        self.found_faults = False  # what is damaged stays as it is

    def step(self, now_us: int) -> None:
        """Do a small part of the work, each step in one transaction."""
        if self._keeping.spacing_us:
            with self._history:
                self._thin(now_us - self._keeping.recent_us)
        with self._history:
            self._expire(now_us - self._keeping.window_us)
        if self._keeping.bytes_max and self._history.total_bytes() > self._keeping.bytes_max:
            with self._history:
                self._shrink()
        self._history.trim()

    # thinning

    def _thin(self, before_us: int) -> None:
        """Thin a run of blocks of the object that has waited longest."""
        oldest = self._history.unthinned(before_us)
        if oldest is None:
            return
        rows = self._history.blocks(oldest.number, oldest.first - 1, 2**63 - 1)

        def goes_along(row: BlockRow) -> bool:
            same = (row.session, row.generation) == (oldest.session, oldest.generation)
            return same and row.last_us < before_us

        # one by one: a clock that was set back may have left a newer time between older ones
        run = list(itertools.takewhile(goes_along, rows[:BLOCKS_AT_ONCE]))
        try:
            merged = list(self._merged(oldest.number, run, self._state_before(oldest)))
        except (Unknown, *DAMAGES) as error:
            # Unknown: older than history, so there is no image to compute differences from. Damaged: tried
            # again and again it would stand before the past of every other object.
            self._note(error)
            self._history.keep_as_it_is(run)
            return
        self._replace(run, merged)

    def _note(self, error: Exception) -> None:
        self.found_faults = self.found_faults or isinstance(error, DAMAGES)

    def _state_before(self, row: BlockRow) -> ObjectState:
        """The object's state before a block: after the last commit that is kept."""
        before = self._history.block_before(row.number, row.first)
        snapshot = self._history.snapshot(row.number, row.first - 1)
        position = max(before.last if before else 0, snapshot.position if snapshot else 0)
        if position != row.first - 1:
            raise Unknown("nothing that old is kept")
        return self._past.state(row.number, position)

    def _replace(self, old: list[BlockRow], new: list[tuple[BlockRow, bytes]]) -> None:
        for row in old:
            self._history.remove_block(row)
        for row, body in new:
            self._history.add_block(row, body)

    def _merged(
        self, number: int, run: list[BlockRow], state: ObjectState
    ) -> Iterator[tuple[BlockRow, bytes]]:
        """The blocks that replace `run`."""
        stays = self._stays(number, run)
        merging = _Merging(state)
        entries: list[PastEntry] = []
        first, size = run[0].first, 0
        for _, entry in self._past.entries(number, first - 1, run[-1].last):
            merging.add(entry)
            if stays(entry):
                for made in merging.take():
                    entries.append(made)
                    size += len(made.body)
            if size >= BLOCK_RAW_BYTES:
                yield _block(run[0], first, entries)
                first, entries, size = entries[-1].position + 1, [], 0
        if entries:
            yield _block(run[0], first, entries)

    def _stays(self, number: int, run: list[BlockRow]) -> Callable[[PastEntry], bool]:
        """Whether a commit of the run stays: the last of its ten seconds, or of the run, or pinned.

        Of a restore only the commit that completed it stays: the states before were never visible.
        """
        spacing_us, pins = self._keeping.spacing_us, self._history.pins(number)
        last_of: dict[int, int] = {}
        for _, entry in self._past.entries(number, run[0].first - 1, run[-1].last):
            last_of[entry.time_us // spacing_us] = entry.position
        kept = set(last_of.values()) | pins.keys()
        kept |= self._history.snapshot_positions(number)  # states are read from there on
        kept.add(self._past.restoring(number, run[0].session).stop)
        return lambda entry: entry.position in kept

    # expiry

    def _expire(self, before_us: int) -> None:
        self._history.remove_pins(before_us)
        numbers = self._history.numbers(self._after, OBJECTS_AT_ONCE)
        self._after = numbers[-1] if numbers else 0
        for number in numbers:
            self._expire_one(number, before_us)

    def _expire_one(self, number: int, before_us: int) -> None:
        """Make the state at the beginning of the window a snapshot, and delete everything before it."""
        oldest = self._history.oldest_block(number)
        if oldest is None or oldest.last_us >= before_us:
            return
        try:
            at = self._past.at_time(number, before_us)
        except (Unknown, *DAMAGES) as error:
            self._note(error)
            return
        ended = self._history.block_before(number, at.position + 1)  # a block is deleted as a whole
        if ended is not None:
            self._begin_at(number, ended.last)

    def _begin_at(self, number: int, position: int) -> None:
        """Forget everything of an object before a position, which ends a block."""
        snapshot = self._history.snapshot(number, position)
        if snapshot is None or snapshot.position != position:
            try:
                self._past.make_snapshot(number, position)
            except (Unknown, *DAMAGES) as error:
                self._note(error)
                return
        self._history.remove_blocks(number, position)
        self._history.remove_snapshots(number, position)

    def make_room(self) -> None:
        """The disk is full: delete the oldest half of the largest past."""
        with contextlib.suppress(apsw.FullError), self._history:
            self._shrink()

    def _shrink(self) -> None:
        """The quota: the object with the most loses the older half of its past."""
        number = self._history.largest()
        if number is None:
            return
        rows = self._history.blocks(number, 0, 2**63 - 1)
        half = sum(row.stored for row in rows) / 2
        for row in rows:
            half -= row.stored
            if half <= 0:
                self._begin_at(number, row.last)
                return


class _Merging:
    """Commits that are being merged. `state` is that of the last commit added."""

    def __init__(self, state: ObjectState) -> None:
        self._state = state
        self._reset()

    def _reset(self) -> None:
        self._intact = self._total = len(self._state.image) // PAGE_BYTES  # pages never cut off meanwhile
        self._before: dict[int, bytes | memoryview] = {}
        self._touched: set[int] = set()
        self._paged: PastEntry | None = None
        self._restored: PastEntry | None = None
        self._keys: Tail = {}
        self._alarm: Alarm = UNCHANGED
        self._alarm_at_pages: Alarm = UNCHANGED
        self._last: PastEntry | None = None

    def add(self, entry: PastEntry) -> None:
        if entry.kind in PAGE_KINDS:
            self._note_pages(entry)
            self._paged, self._keys = entry, {}
        elif entry.kind == CommitKind.KEYS:
            self._keys |= msgspec.msgpack.decode(entry.body, type=Tail)
        elif entry.kind == CommitKind.RESTORED:
            self._restored, self._keys = entry, {}
        if entry.alarm is not UNCHANGED:
            self._alarm = entry.alarm
        if entry is self._paged:
            self._alarm_at_pages = self._alarm  # the moment between the pages and the keys stays one
        apply(self._state, entry)
        self._last = entry

    def _note_pages(self, entry: PastEntry) -> None:
        """Remember what each page was before the first of these commits that changed it."""
        total, numbers = page_numbers(entry.body)
        for page in numbers:
            if page not in self._before and page <= self._intact:
                start = (page - 1) * PAGE_BYTES
                self._before[page] = bytes(self._state.image[start : start + PAGE_BYTES])
        self._touched.update(numbers)
        self._intact = min(self._intact, total)

    def take(self) -> list[PastEntry]:
        """The commits that bring a reader from the last one taken to here: of pages, of keys, or both."""
        last, made = self._last, []
        assert last is not None
        if self._restored is not None:
            made.append(self._restored)
        if self._paged is not None:
            body = self._pages_body()
            at = self._paged
            made.append(PastEntry(at.position, at.time_us, at.kind, self._alarm_at_pages, body))
        if not made or made[-1].position != last.position:
            keys = msgspec.msgpack.encode(self._keys)
            made.append(PastEntry(last.position, last.time_us, CommitKind.KEYS, UNCHANGED, keys))
        made[-1].alarm = self._alarm
        self._reset()
        return made

    def _pages_body(self) -> bytes:
        image = self._state.image
        total = len(image) // PAGE_BYTES
        pages: dict[int, bytes | memoryview] = {
            page: bytes(image[(page - 1) * PAGE_BYTES : page * PAGE_BYTES])
            for page in sorted(self._touched)
            if page <= total
        }
        return pack_pages(total, pages, Images(self._total, self._before))


def _block(like: BlockRow, first: int, entries: list[PastEntry]) -> tuple[BlockRow, bytes]:
    """A thinned block of the same session: of positions from `first` on, some of which it merged."""
    body, raw = pack_block(entries)
    pages = sum(len(page_numbers(one.body)[1]) for one in entries if one.kind in PAGE_KINDS)
    row = BlockRow(
        like.number,
        first,
        entries[-1].position,
        entries[0].time_us,
        entries[-1].time_us,
        like.generation,
        like.session,
        True,
        pages,
        raw,
        len(body),
    )
    return row, body
