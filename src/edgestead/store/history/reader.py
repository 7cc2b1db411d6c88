"""Earlier states, positions and moments of an object, read from history.

Owns  folding a snapshot and the blocks after it into a state; finding positions by time; snapshots.
Not   writing blocks (`archive`); bringing an object to a state (`restoring`).
"""

import struct
import zlib
from collections.abc import Iterator

import apsw
import msgspec

from edgestead.store.history.blocks import PAGE_KINDS, PastEntry, apply_pages, page_numbers, unpack_block
from edgestead.store.history.rows import BlockRow, Book, SnapshotRow
from edgestead.store.objectlog import (
    UNCHANGED,
    CommitKind,
    LogDamaged,
    Restored,
    Tail,
    Target,
    TooLarge,
    Unknown,
)
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.past import END_OF_SESSION, LoggedPosition, ObjectState

# A new snapshot is taken when reading from the last one costs this much more than reading a new one.
SNAPSHOT_PAGES = 8  # page images for each page of the database …
SNAPSHOT_PAGES_LEAST = 2_048  # … and this many in any case
SNAPSHOT_RAW_LEAST = 8 * 1024 * 1024  # bytes of blocks before compression
_LATEST = 2**63 - 1


class Damaged(Unknown):
    """What is kept is not what was written."""


DAMAGES = (
    Damaged,
    LogDamaged,
    zlib.error,
    struct.error,
    msgspec.DecodeError,
    ValueError,
    apsw.CorruptError,
    apsw.NotADBError,
)


class _Rest(msgspec.Struct, array_like=True):
    """The parts of a snapshot other than its pages."""

    tail: Tail
    alarm_us: int | None


class Begun(msgspec.Struct, frozen=True):
    """The object whose past begins, and when."""

    number: int
    time_us: int
    generation: int
    session: int


class PastReader:
    """Reads one history."""

    def __init__(self, history: Book) -> None:
        self._history = history
        self.found_faults = False  # by an examination

    # positions

    def find(self, number: int, target: Target, generation: int) -> LoggedPosition:
        """The commit of a bookmark: it must have existed in that generation. Raises Unknown."""
        if target.position == END_OF_SESSION:
            return self._end_of(number, target.session)
        if target.position == 0:
            return self._beginning(number)
        for row in self._history.blocks(number, target.position - 1, target.position):
            for entry in unpack_block(self._history.body(row)):
                if entry.position == target.position:
                    if row.generation > generation or row.session != target.session:
                        raise Unknown("the bookmark names a commit of another history")
                    return _located(row, entry)
        snapshot = self._history.snapshot(number, target.position)
        if snapshot is not None and snapshot.position == target.position:
            if snapshot.generation <= generation and snapshot.session == target.session:
                return _of_snapshot(snapshot)
        raise Unknown("the bookmark names no commit that is kept")

    def at_time(self, number: int, time_us: int) -> LoggedPosition:
        """The last commit at or before a time. Raises Unknown when it is no longer kept."""
        row = self._history.block_at(number, time_us, _LATEST)
        if row is not None:
            found = None
            for entry in unpack_block(self._history.body(row)):
                if entry.time_us > time_us:
                    break
                found = entry
            if found is not None:
                return _located(row, found)
        snapshot = self._history.snapshot_before(number, time_us)
        if snapshot is not None:
            return _of_snapshot(snapshot)
        return self._beginning(number)

    def _beginning(self, number: int) -> LoggedPosition:
        """Before the first commit: nothing was stored."""
        first = next(iter(self._history.blocks(number, 0, 1)), None)
        if first is None or first.first != 1:
            raise Unknown("nothing that old is kept")
        return LoggedPosition(0, first.generation, first.session, first.first_us)

    def _end_of(self, number: int, session: int) -> LoggedPosition:
        rows = [row for row in self._history.blocks(number, 0, _LATEST) if row.session == session]
        if rows:
            *_, last = unpack_block(self._history.body(rows[-1]))
            return _located(rows[-1], last)
        snapshot = self._history.snapshot(number, _LATEST)
        if snapshot is not None and snapshot.session == session:
            return _of_snapshot(snapshot)
        if session == 0:
            return self._beginning(number)
        raise Unknown("the bookmark names a session of which nothing is kept")

    def entries(self, number: int, after: int, upto: int) -> Iterator[tuple[BlockRow, PastEntry]]:
        """The commits with after < position <= upto, in order, with their blocks."""
        for row in self._history.blocks(number, after, upto):
            for entry in unpack_block(self._history.body(row)):
                if after < entry.position <= upto:
                    yield row, entry

    def positions(self, number: int, after: int, upto: int) -> list[LoggedPosition]:
        """The same as an iterator. Raises Unknown when the first of them are no longer kept."""
        found = [_located(row, entry) for row, entry in self.entries(number, after, upto)]
        if not found and after < upto:
            raise Unknown("nothing that old is kept")
        return found

    def restoring(self, number: int, session: int) -> range:
        """The commits of an incomplete restore at the beginning of a session; `stop` is the one that
        completed it.

        An empty range at 0 when the session began without a restore, or before the oldest commit that is
        kept.
        """
        row = self._history.first_block(number, session)
        if row is not None:
            first = next(unpack_block(self._history.body(row)))
            if first.kind == CommitKind.RESTORED:
                begun = msgspec.msgpack.decode(first.body, type=Restored)
                return range(first.position, first.position + begun.follows)
        return range(0)

    def moments(self, number: int, since_us: int, until_us: int, limit: int) -> list[LoggedPosition]:
        """The commits between two times, newest first, except those of an incomplete restore."""
        pins = self._history.pins(number)
        found: list[LoggedPosition] = []
        restoring: dict[int, range] = {}
        before = _LATEST
        while len(found) < limit:
            row = self._history.block_at(number, until_us, before)
            if row is None or row.last_us < since_us:
                break
            before = row.first
            if row.session not in restoring:
                restoring[row.session] = self.restoring(number, row.session)
            on_the_way = restoring[row.session]
            for entry in reversed(list(unpack_block(self._history.body(row)))):
                if not since_us <= entry.time_us <= until_us or len(found) == limit:
                    continue
                made = _located(row, entry)
                if entry.position in on_the_way:
                    _add_stored(found, on_the_way.stop, made.stored)
                    continue
                kind = CommitKind.RESTORED if entry.position == on_the_way.stop else entry.kind
                found.append(msgspec.structs.replace(made, kind=kind, pinned=entry.position in pins))
        return found

    def last_session(self, number: int) -> int:
        """The session of the last commit that is kept; 0 when none is."""
        block, snapshot = self._history.last_block(number), self._history.snapshot(number, _LATEST)
        return max(block.session if block else 0, snapshot.session if snapshot else 0)

    # states

    def state(self, number: int, position: int, *, bytes_max: int | None = None) -> ObjectState:
        """The whole state after a commit. Raises Unknown when a part of it is no longer kept; TooLarge."""
        state = self._begin(number, position, bytes_max)
        for row, entry in self.entries(number, state.position, position):
            # The first commits may have been merged into a later one: its block begins where they did.
            if state.position or row.first == 1 or _stands_alone(entry):
                apply(state, entry)
                _check_size(len(state.image), bytes_max)
        if state.position != position:
            raise Unknown("the commit is not kept any more")
        return state

    def _begin(self, number: int, position: int, bytes_max: int | None) -> ObjectState:
        snapshot = self._history.snapshot(number, position)
        if snapshot is None:
            return ObjectState(0, bytearray(), {}, None)
        _check_size(snapshot.total * PAGE_BYTES, bytes_max)
        rest = msgspec.msgpack.decode(snapshot.rest, type=_Rest)
        image = self._history.image(snapshot)
        if len(image) != snapshot.total * PAGE_BYTES:
            raise Damaged(f"the snapshot at {snapshot.position} is damaged")
        return ObjectState(snapshot.position, image, rest.tail, rest.alarm_us)

    def check_all(self) -> list[str]:
        """The faults that SQLite finds in the history database. Reads the whole file: call it once for many
        objects.
        """
        wrong = [f"history: {words}" for words in self._history.check()]
        self.found_faults = self.found_faults or bool(wrong)
        return wrong

    def check(self, number: int, head: int) -> list[str]:
        """Read everything that is kept of an object; returns the faults, as text."""
        wrong: list[str] = []
        try:
            expected: int | None = None
            for row in self._history.blocks(number, 0, _LATEST):
                if expected is not None and row.first != expected:
                    wrong.append(f"commits {expected} to {row.first - 1} are missing")
                expected = row.last + 1
                *_, last = unpack_block(self._history.body(row))
                if last.position != row.last:
                    wrong.append(f"the block up to {row.last} ends at {last.position}")
            if head:
                self.state(number, head)
        except (Unknown, ValueError, zlib.error, struct.error, msgspec.DecodeError, apsw.Error) as error:
            wrong.append(f"what is kept of the past cannot be read: {error}")
        self.found_faults = self.found_faults or bool(wrong)
        return wrong

    # snapshots

    def reading_costs_too_much(self, number: int, position: int) -> bool:
        """Whether a state there would take much longer to read than a snapshot of it."""
        snapshot = self._history.snapshot(number, position)
        pages, raw = self._history.cost_behind(number, snapshot.position if snapshot else 0)
        total = snapshot.total if snapshot else 0
        least = SNAPSHOT_PAGES_LEAST + SNAPSHOT_PAGES * total
        return pages > least or raw > SNAPSHOT_RAW_LEAST + least * PAGE_BYTES

    def begin_with(self, found: Begun, state: ObjectState) -> None:
        """Store the state with which the past of an object begins; earlier states are unknown."""
        rest = msgspec.msgpack.encode(_Rest(state.tail, state.alarm_us))
        total = len(state.image) // PAGE_BYTES
        made = SnapshotRow(
            found.number,
            state.position,
            found.time_us,
            found.generation,
            found.session,
            total,
            len(rest),
            rest,
        )
        self._history.add_snapshot(made, state.image)

    def make_snapshot(self, number: int, position: int) -> None:
        """Store a snapshot of the state after a commit. Raises Unknown."""
        state = self.state(number, position)
        row, entry = next(iter(self.entries(number, position - 1, position)))
        self.begin_with(Begun(number, entry.time_us, row.generation, row.session), state)


def _check_size(size_bytes: int, bytes_max: int | None) -> None:
    """Raises TooLarge."""
    if bytes_max is not None and size_bytes > bytes_max:
        raise TooLarge(f"the object had {size_bytes} bytes then, or before; up to {bytes_max} are read")


def _stands_alone(entry: PastEntry) -> bool:
    """Whether a commit needs nothing before it: it has every page."""
    if entry.kind not in PAGE_KINDS:
        return False
    total, numbers = page_numbers(entry.body)
    return len(numbers) == total


def apply(state: ObjectState, entry: PastEntry) -> None:
    """Move a state on by one commit."""
    state.position = entry.position
    if entry.alarm is not UNCHANGED:
        assert entry.alarm is None or isinstance(entry.alarm, int)
        state.alarm_us = entry.alarm
    if entry.kind in PAGE_KINDS:
        apply_pages(entry.body, state.image)
        state.tail.clear()
    elif entry.kind == CommitKind.RESTORED:
        state.tail.clear()
    elif entry.kind == CommitKind.KEYS:
        state.tail.update(msgspec.msgpack.decode(entry.body, type=Tail))


def _add_stored(found: list[LoggedPosition], position: int, stored: int) -> None:
    """Commits of an incomplete restore count as part of it."""
    if found and found[-1].position == position:
        found[-1] = msgspec.structs.replace(found[-1], stored=found[-1].stored + stored)


def _located(row: BlockRow, entry: PastEntry) -> LoggedPosition:
    stored = len(entry.body) * row.stored // max(1, row.raw)
    return LoggedPosition(
        entry.position, row.generation, row.session, entry.time_us, entry.kind, entry.alarm, stored
    )


def _of_snapshot(row: SnapshotRow) -> LoggedPosition:
    return LoggedPosition(row.position, row.generation, row.session, row.time_us)
