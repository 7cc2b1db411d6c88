"""Bases: the whole of an object at one position, so that opening reads few rows; rows that become the past.

Owns  how a base is made of the one before and the rows behind it; folding these rows into blocks of history;
      which chunks no base needs any more.
Not   when there is another one (`log`); what history keeps (`store.history.thinning`).

A base is a row of `object_bases` and the newest version of each chunk of 256 pages up to its position, so
only chunks that changed are written. It is made of what the database has, never of a file: its owner goes on
writing meanwhile. Bases are the snapshots of history; one that a later reader does not need goes.

A slot may go to another process while this one is at it, so that two are at one object: the oldest row of
its log, which each base takes away, is locked before anything is read. Appends do not meet that.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import psycopg

from edgestead.postgres.connection import IDLE_LIMIT, Link
from edgestead.postgres.incarnations import IDLE_MS_MAX
from edgestead.postgres.objectlog import opening
from edgestead.postgres.objectlog.opening import CHUNK_BYTES, CHUNK_PAGES, Rest
from edgestead.postgres.objectlog.rows import unpack_alarm, unpack_body
from edgestead.store.history.blocks import Images, PastEntry, pack_block, pack_frames, page_count
from edgestead.store.history.reader import SNAPSHOT_PAGES_LEAST, SNAPSHOT_RAW_LEAST
from edgestead.store.objectlog import CommitKind, Fenced
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.past import ObjectState

BLOCK_RAW_BYTES: Final = 4 * 1024 * 1024  # of one block before compression
STEP_MS_MAX: Final = 60_000  # from one statement of upkeep to the next: it may pack much in between
_LEVEL: Final = 1

ME = (
    f"SELECT number, set_config('{IDLE_LIMIT}', '{IDLE_MS_MAX}', true) FROM incarnations "
    "WHERE number = %b FOR KEY SHARE"
)
LOCK = "SELECT position FROM object_log WHERE number = %b ORDER BY position LIMIT 1 FOR UPDATE NOWAIT"
SELECT_BASE = "SELECT base FROM objects WHERE number = %b"
ROWS = (
    "SELECT position, kind::int, session, generation, time_us, alarm_us, body FROM object_log "
    "WHERE number = %b ORDER BY position"
)
PUT_BASE = (
    "INSERT INTO object_bases (number, position, time_us, generation, session, pages, rest) "
    "VALUES (%b, %b, %b, %b, %b, %b, %b) ON CONFLICT DO NOTHING"
)
PUT_CHUNK = (
    "INSERT INTO object_chunks (number, chunk, position, body) VALUES (%b, %b, %b, %b) ON CONFLICT DO NOTHING"
)
SET_BASE = (
    "UPDATE objects SET base = %b WHERE number = %b "
    f"RETURNING set_config('{IDLE_LIMIT}', '{IDLE_MS_MAX}', true)"
)
PUT_BLOCK = (
    "INSERT INTO object_past "
    "(number, first, last, first_us, last_us, generation, session, thinned, pages, raw, body) "
    "VALUES (%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)"
)
FOLDED = "DELETE FROM object_log WHERE number = %b AND position <= %b"
BASES = "SELECT position FROM object_bases WHERE number = %b ORDER BY position DESC LIMIT 3"
COST = (
    "SELECT coalesce(sum(pages), 0)::bigint, coalesce(sum(raw), 0)::bigint FROM object_past "
    "WHERE number = %b AND last > %b"
)
HAS_BEGINNING = "SELECT 1 FROM object_past WHERE number = %b AND first = 1"
DROP_BASE = "DELETE FROM object_bases WHERE number = %b AND position = %b"
# A version of a chunk is needed by bases from its position on, up to the chunk's next version.
DROP_CHUNKS = (
    "WITH versions AS (SELECT chunk, position, lead(position) OVER (PARTITION BY chunk ORDER BY position) "
    "AS next FROM object_chunks WHERE number = %b) "
    "DELETE FROM object_chunks c USING versions v WHERE c.number = %b AND c.chunk = v.chunk "
    "AND c.position = v.position AND v.next IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object_bases b "
    "WHERE b.number = %b AND b.position >= v.position AND b.position < v.next)"
)


def make(link: Link, incarnation: int, number: int) -> int | None:
    """Make a base of everything that is durable of an object; its position, None when nothing is behind it,
    or another process is at it.

    In one transaction. Raises Fenced, as `Link.rows`.
    """
    try:
        with fenced(link, incarnation):
            return None if link.row(LOCK, (number,)) is None else _make(link, number)
    except psycopg.errors.LockNotAvailable:
        return None


def _make(link: Link, number: int) -> int | None:
    row = link.row(SELECT_BASE, (number,))
    rows = [] if row is None else link.rows(ROWS, (number,))
    if row is None or not rows or rows[-1][0] <= row[0]:
        return None
    state, _ = opening.state_at(link, number, row[0])
    images = _images_of(state)
    touched = _fold(link, number, rows, state, images)
    _, _, session, generation, time_us, _, _ = rows[-1]
    put(link, number, (time_us, generation, session), state, touched)
    link.run(FOLDED, (number, state.position))
    _drop_unneeded(link, number)
    link.run(SET_BASE, (state.position, number))  # late: a commit that sets an alarm waits for it
    return state.position


@contextmanager
def fenced(link: Link, incarnation: int) -> Iterator[None]:
    """A transaction that commits only while this process's row is there. Raises Fenced.

    The row is held by its last statement: until then who takes the process's place does not wait for it.
    """
    with link.transaction(idle_ms_max=STEP_MS_MAX):
        yield
        if link.row(ME, (incarnation,)) is None:
            raise Fenced(f"incarnation {incarnation} is gone")


def put(
    link: Link, number: int, at: tuple[int, int, int], state: ObjectState, touched: set[int] | None = None
) -> int:
    """Store a state as a base: chunks that were touched, or all. Gives its stored size."""
    time_us, generation, session = at
    total = len(state.image) // PAGE_BYTES
    rest = msgspec.msgpack.encode(Rest(state.tail, state.alarm_us))
    stored = len(rest)
    chunks = range(-(-total // CHUNK_PAGES))
    for chunk in chunks if touched is None else sorted(touched & set(chunks)):
        body = zlib.compress(state.image[chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES], _LEVEL)
        stored += len(body)
        link.run(PUT_CHUNK, (number, chunk, state.position, body))
    link.run(PUT_BASE, (number, state.position, time_us, generation, session, total, rest))
    return stored


def _images_of(state: ObjectState) -> Images:
    """What the pages were before the first row: differences from them are short."""
    total = len(state.image) // PAGE_BYTES
    image = bytes(state.image)
    return Images(
        total, {page + 1: image[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] for page in range(total)}
    )


def _fold(
    link: Link, number: int, rows: list[tuple[Any, ...]], state: ObjectState, images: Images
) -> set[int]:
    """Move a state on by rows, which become blocks of history; gives the chunks that changed."""
    touched: set[int] = set()
    block: list[PastEntry] = []
    place, pages, size = (0, 0), 0, 0

    def end_block() -> None:
        nonlocal block, pages, size
        if block:
            body, raw = pack_block(block)
            first, last = block[0], block[-1]
            put_block(link, number, first.position, last, first.time_us, place, pages, raw, body)
        block, pages, size = [], 0, 0

    for position, kind, session, generation, time_us, alarm_us, body in rows:
        commit, octets = unpack_body(kind, bytes(body))
        if (generation, session) != place or commit is CommitKind.RESTORED or size >= BLOCK_RAW_BYTES:
            end_block()
            place = (generation, session)
        before = len(state.image)
        opening.apply_row(state, position, kind, alarm_us, body)
        if commit in (CommitKind.PAGES, CommitKind.COPY):
            touched |= _chunks_of(octets, before, len(state.image))
            octets = pack_frames(octets, images)
            pages += page_count(octets)
        block.append(PastEntry(position, time_us, commit, unpack_alarm(alarm_us), octets))
        size += len(octets) + 32
    end_block()
    return touched


def put_block(
    link: Link,
    number: int,
    first: int,
    last: PastEntry,
    first_us: int,
    place: tuple[int, int],
    pages: int,
    raw: int,
    body: bytes,
) -> None:
    """`place` is (generation, session)."""
    values = (number, first, last.position, first_us, last.time_us, *place, False, pages, raw, body)
    link.run(PUT_BLOCK, values)


def _chunks_of(frames: bytes, before: int, after: int) -> set[int]:
    """The chunks that a commit of pages changes: those of its pages, and of where the file grew or ended."""
    step = PAGE_BYTES + 24
    found = {
        (int.from_bytes(frames[offset : offset + 4], "big") - 1) // CHUNK_PAGES
        for offset in range(0, len(frames), step)
    }
    if before != after:
        found.update(range(min(before, after) // CHUNK_BYTES, -(-max(before, after) // CHUNK_BYTES)))
    return found


def _drop_unneeded(link: Link, number: int) -> None:
    """The base before the newest goes, if reading from the one before it does not cost too much."""
    bases = [position for (position,) in link.rows(BASES, (number,))]
    if len(bases) < 2:
        return
    oldest = bases[2] if len(bases) > 2 else 0
    if not oldest and link.row(HAS_BEGINNING, (number,)) is None:
        return  # what is older than the base before has expired: the past is read from there
    ((pages, raw),) = link.rows(COST, (number, oldest))
    if pages <= SNAPSHOT_PAGES_LEAST and raw <= SNAPSHOT_RAW_LEAST:
        link.run(DROP_BASE, (number, bases[1]))
        drop_chunks(link, number)


def drop_chunks(link: Link, number: int) -> None:
    """Delete what no base needs any more."""
    link.run(DROP_CHUNKS, (number, number, number))
