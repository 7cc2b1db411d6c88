"""Objects of a cluster's database, carried into another store and out of one.

Owns  reading each object in one transaction; writing many with few statements.
Not   who has their slots: nobody, until a process that starts takes them.

An object that arrives is a base at its position. Its past are the blocks and snapshots that it had: their
format is that of one machine, and a snapshot is a base.
"""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import msgspec

from edgestead.cluster.placement import slot_of
from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog import opening
from edgestead.postgres.objectlog.book import SNAPSHOT, PostgresBook
from edgestead.postgres.objectlog.opening import CHUNK_BYTES, CHUNK_PAGES, Found, Rest
from edgestead.postgres.objectlog.rows import unpack_body
from edgestead.store.carrying import PIECE_BYTES, Carried, Pieces
from edgestead.store.history.rows import SnapshotRow
from edgestead.store.objectlog import CommitKind, LogError, ObjectRef, Tail
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES

assert CHUNK_BYTES == PIECE_BYTES

PAGE_OBJECTS: Final = 200
BATCH_ROWS: Final = 2_000
BATCH_BYTES: Final = 4 * 1024 * 1024  # of bodies, in one transaction
_LEVEL: Final = 1
_LATEST: Final = 2**63 - 1
_FRAME_BYTES: Final = FRAME_HEADER_BYTES + PAGE_BYTES

CHUNK = (
    "SELECT body FROM object_chunks WHERE number = %b AND chunk = %b AND position <= %b "
    "ORDER BY position DESC LIMIT 1"
)
SNAPSHOTS = f"SELECT {SNAPSHOT} FROM object_bases WHERE number = %b ORDER BY position"

OBJECTS = (
    "INSERT INTO objects (number, slot, class, id, name, alarm_us, session, pending, base) "
    "SELECT * FROM unnest(%b::bigint[], %b::integer[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bigint[], "
    "%b::integer[], %b::bytea[], %b::bigint[])"
)
BASES = (
    "INSERT INTO object_bases (number, position, time_us, generation, session, pages, rest) "
    "SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::integer[], %b::integer[], "
    "%b::integer[], %b::bytea[])"
)
CHUNKS = (
    "INSERT INTO object_chunks (number, chunk, position, body) "
    "SELECT * FROM unnest(%b::bigint[], %b::integer[], %b::bigint[], %b::bytea[])"
)
BLOCKS = (
    "INSERT INTO object_past "
    "(number, first, last, first_us, last_us, generation, session, thinned, pages, raw, body) "
    "SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], "
    "%b::integer[], %b::integer[], %b::boolean[], %b::integer[], %b::integer[], %b::bytea[])"
)
PINS = (
    "INSERT INTO object_pins (number, position, time_us) "
    "SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[])"
)
NUMBERED = "SELECT setval(pg_get_serial_sequence('objects', 'number'), %b)"
# A class's region moves its objects' slots only where the class is known (`postgres.regions`).
CLASSES = (
    "INSERT INTO object_classes (class, region) SELECT DISTINCT class, '' FROM objects ON CONFLICT DO NOTHING"
)
COUNT = "SELECT count(*) FROM objects"


class PostgresLeaving:
    """The objects of a database; others may write to them meanwhile."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._book = PostgresBook(link, 0)  # only read

    def objects(self) -> Iterator[AbstractContextManager[Carried | None]]:
        """Raises LogError, as `Link.rows`."""
        after = ("", "")
        while page := opening.page(self._link, after, PAGE_OBJECTS):
            for one in page:
                yield self._at_one_moment(one.ref)
            after = (page[-1].ref.class_name, page[-1].ref.id)

    @contextmanager
    def _at_one_moment(self, ref: ObjectRef) -> Iterator[Carried | None]:
        with self._link.transaction(one_state=True):
            found = opening.find(self._link, ref)
            self._book.forget()
            yield None if found is None else self._carried(found)

    def _carried(self, found: Found) -> Carried:
        number = found.number
        base = self._book.snapshot(number, found.base)
        if found.base and (base is None or base.position != found.base):
            raise LogError(f"the base of {found.ref.class_name}/{found.ref.id} is not in the database")
        newest = _Newest(base)
        for _, kind, _, generation, time_us, _, body in self._link.rows(opening.ROWS, (number, found.base)):
            newest.add(kind, generation, time_us, body)
        return Carried(
            found.ref,
            found.head,
            found.alarm_us,
            found.session,
            found.pending,
            newest.time_us,
            newest.generation,
            newest.tail,
            newest.pages,
            newest.image(lambda chunk: self._chunk(number, chunk, found.base)),
            ((row, self._book.body(row)) for row in self._book.blocks(number, 0, _LATEST)),
            self._snapshots(number),
            self._book.pins(number),
        )

    def _chunk(self, number: int, chunk: int, position: int) -> bytes:
        row = self._link.row(CHUNK, (number, chunk, position))
        return b"" if row is None else zlib.decompress(row[0])

    def _snapshots(self, number: int) -> Iterator[tuple[SnapshotRow, Pieces]]:
        for _, position, time_us, generation, session, total, stored, rest in self._link.rows(
            SNAPSHOTS, (number,)
        ):
            row = SnapshotRow(number, position, time_us, generation, session, total, stored, bytes(rest))
            chunks = range(-(-row.total // CHUNK_PAGES))
            yield (
                row,
                (_cut(self._chunk(number, chunk, row.position), row.total, chunk) for chunk in chunks),
            )


def _cut(piece: bytes, pages: int, chunk: int) -> bytes:
    """A chunk as long as it is in a database of so many pages."""
    length = min(CHUNK_BYTES, pages * PAGE_BYTES - chunk * CHUNK_BYTES)
    return piece[:length].ljust(length, b"\0")


class _Newest:
    """A base, moved on by the rows behind it: of its database only the pages that they change."""

    def __init__(self, base: SnapshotRow | None) -> None:
        self.time_us, self.generation = (0, 0) if base is None else (base.time_us, base.generation)
        self.pages = self._kept = 0 if base is None else base.total
        self.tail: Tail = {} if base is None else msgspec.msgpack.decode(base.rest, type=Rest).tail
        self._changed: dict[int, bytes] = {}

    def add(self, kind: int, generation: int, time_us: int, body: Any) -> None:
        commit, octets = unpack_body(kind, bytes(body))
        self.generation, self.time_us = generation, time_us
        if commit is CommitKind.KEYS:
            self.tail.update(msgspec.msgpack.decode(octets, type=Tail))
        elif commit is CommitKind.RESTORED:
            self.tail.clear()
        elif commit in (CommitKind.PAGES, CommitKind.COPY):
            self._add_frames(octets)
            self.tail.clear()

    def _add_frames(self, octets: bytes) -> None:
        for offset in range(0, len(octets), _FRAME_BYTES):
            page = int.from_bytes(octets[offset : offset + 4], "big")
            self._changed[page] = octets[offset + FRAME_HEADER_BYTES : offset + _FRAME_BYTES]
        last = len(octets) - _FRAME_BYTES
        self.pages = int.from_bytes(octets[last + 4 : last + 8], "big")
        if self.pages < self._kept:
            self._kept = self.pages  # what was cut off does not come back when the file grows again
        for page in [one for one in self._changed if one > self.pages]:
            del self._changed[page]

    def image(self, chunk_of: Any) -> Iterator[bytes]:
        """`chunk_of(chunk)` reads one of the base."""
        for chunk in range(-(-self.pages // CHUNK_PAGES)):
            first = chunk * CHUNK_PAGES
            kept = max(0, min(CHUNK_PAGES, self._kept - first)) * PAGE_BYTES
            piece = bytearray(chunk_of(chunk)[:kept] if kept else b"")
            length = min(CHUNK_PAGES, self.pages - first) * PAGE_BYTES
            piece = piece[:length].ljust(length, b"\0")
            for page in range(first + 1, first + 1 + length // PAGE_BYTES):
                if (changed := self._changed.get(page)) is not None:
                    start = (page - 1 - first) * PAGE_BYTES
                    piece[start : start + PAGE_BYTES] = changed
            yield bytes(piece)


class PostgresArriving:
    """A database without objects, on which no process has started."""

    def __init__(self, link: Link) -> None:
        self._link, self._number = link, 0
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._count = self._octets = 0

    def put(self, one: Carried) -> None:
        """Raises as `Link.rows`, what the object's parts raise."""
        self._number += 1
        number = self._number
        class_name, object_id = opening.keys_of(one.ref.class_name, one.ref.id)
        name = None if one.ref.name is None else one.ref.name.encode("utf-8", "surrogatepass")
        pending = None if one.pending is None else msgspec.msgpack.encode(one.pending)
        slot = slot_of(one.ref.id)
        facts = (number, slot, class_name, object_id, name, one.alarm_us, one.session, pending, one.head)
        self._add(OBJECTS, facts)
        rest = msgspec.msgpack.encode(Rest(one.tail, one.alarm_us))
        place = (one.time_us, one.generation, one.session)
        self._add(BASES, (number, one.head, *place, one.pages, rest), len(rest))
        self._add_chunks(one.head, one.image)
        for block, body in one.blocks:
            values = (block.first, block.last, block.first_us, block.last_us, block.generation, block.session)
            self._add(
                BLOCKS, (number, *values, block.thinned, block.pages, block.raw, bytes(body)), len(body)
            )
        for row, pieces in one.snapshots:
            if row.position != one.head:  # there the base is one
                place = (row.time_us, row.generation, row.session)
                self._add(BASES, (number, row.position, *place, row.total, row.rest), len(row.rest))
                self._add_chunks(row.position, pieces)
        for position, time_us in one.pins.items():
            self._add(PINS, (number, position, time_us))

    def pause(self) -> None:
        pass

    def _add_chunks(self, position: int, pieces: Iterable[bytes]) -> None:
        for chunk, piece in enumerate(pieces):
            body = zlib.compress(piece, _LEVEL)
            self._add(CHUNKS, (self._number, chunk, position, body), len(body))

    def _add(self, statement: str, values: tuple[Any, ...], octets: int = 0) -> None:
        self._rows.setdefault(statement, []).append(values)
        self._count += 1
        self._octets += octets
        if self._count >= BATCH_ROWS or self._octets >= BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        with self._link.transaction():
            for statement, rows in self._rows.items():
                self._link.run(statement, [list(column) for column in zip(*rows, strict=True)])
        self._rows, self._count, self._octets = {}, 0, 0

    def finish(self) -> int:
        """Raises as `Link.rows`."""
        self._flush()
        if self._number:
            self._link.rows(NUMBERED, (self._number,))
        self._link.run(CLASSES)
        ((count,),) = self._link.rows(COUNT)
        return int(count)
