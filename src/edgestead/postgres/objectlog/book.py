"""History's rows in the cluster's database, as `store.history` wants to see them.

Owns  the statements; rows of the log that are no blocks yet, shown as blocks.
Not   what is read out of them (`store.history.reader`) or kept (`store.history.thinning`).
"""

from collections.abc import Iterable
from typing import Any, Final, Self

import msgspec

from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog import bases, opening
from edgestead.postgres.objectlog.rows import unpack_alarm, unpack_body
from edgestead.store.history.blocks import Images, PastEntry, pack_block, pack_frames, page_count
from edgestead.store.history.rows import BlockRow, SnapshotRow
from edgestead.store.objectlog import CommitKind, LogError
from edgestead.store.past import ObjectState

BLOCK: Final = (
    "number, first, last, first_us, last_us, generation, session, thinned, pages, raw, octet_length(body)"
)
SNAPSHOT: Final = "number, position, time_us, generation, session, pages, octet_length(rest), rest"
OF_SLOTS: Final = "number IN (SELECT number FROM objects WHERE slot = ANY (%b::integer[]))"

REMOVE_SNAPSHOTS = (
    "DELETE FROM object_bases WHERE number = %b"
    " AND position < least(%b, (SELECT base FROM objects WHERE number = %b))"
)


class PostgresBook:
    """A `Book`. `slots` are those whose objects are looked through; the past of any may be read.

    Rows of the log are read with the first question about an object, until `forget`: one question is asked in
    one transaction.
    """

    def __init__(self, link: Link, incarnation: int) -> None:
        self._link, self._incarnation = link, incarnation
        self.slots: list[int] = []
        self._logged: dict[int, list[tuple[BlockRow, bytes]]] = {}
        self._transaction: Any = None

    def forget(self) -> None:
        """What was read of the log may have changed."""
        self._logged.clear()

    def __enter__(self) -> Self:
        self.forget()
        self._transaction = bases.fenced(self._link, self._incarnation)
        self._transaction.__enter__()
        return self

    def __exit__(self, *exception: Any) -> bool | None:
        return bool(self._transaction.__exit__(*exception))

    # blocks

    def _log_blocks(self, number: int) -> list[tuple[BlockRow, bytes]]:
        """The rows of the log as blocks, one for each session."""
        found = self._logged.get(number)
        if found is None:
            found = self._logged[number] = list(_blocks_of(number, self._link.rows(bases.ROWS, (number,))))
        return found

    def _stored(self, where: str, order: str, values: tuple[Any, ...]) -> list[BlockRow]:
        return [
            BlockRow(*row)
            for row in self._link.rows(
                f"SELECT {BLOCK} FROM object_past WHERE {where} ORDER BY {order}", values
            )
        ]

    def blocks(self, number: int, after: int, upto: int) -> list[BlockRow]:
        stored = self._stored("number = %b AND last > %b AND first <= %b", "last", (number, after, upto))
        logged = [row for row, _ in self._log_blocks(number) if row.last > after and row.first <= upto]
        return stored + logged

    def block_at(self, number: int, time_us: int, before: int) -> BlockRow | None:
        for row, _ in reversed(self._log_blocks(number)):
            if row.first_us <= time_us and row.first < before:
                return row
        found = self._stored(
            "number = %b AND first_us <= %b AND first < %b", "last DESC LIMIT 1", (number, time_us, before)
        )
        return found[0] if found else None

    def oldest_block(self, number: int) -> BlockRow | None:
        return self._first("number = %b", "last LIMIT 1", (number,))

    def first_block(self, number: int, session: int) -> BlockRow | None:
        return self._first("number = %b AND session = %b", "last LIMIT 1", (number, session), session)

    def _first(
        self, where: str, order: str, values: tuple[Any, ...], session: int | None = None
    ) -> BlockRow | None:
        found = self._stored(where, order, values)
        logged = [row for row, _ in self._log_blocks(values[0]) if session in (None, row.session)]
        return (found + logged)[0] if found or logged else None

    def last_block(self, number: int) -> BlockRow | None:
        logged = self._log_blocks(number)
        found = [logged[-1][0]] if logged else self._stored("number = %b", "last DESC LIMIT 1", (number,))
        return found[0] if found else None

    def block_before(self, number: int, position: int) -> BlockRow | None:
        logged = [row for row, _ in self._log_blocks(number) if row.last < position]
        found = logged[-1:] or self._stored(
            "number = %b AND last < %b", "last DESC LIMIT 1", (number, position)
        )
        return found[0] if found else None

    def body(self, row: BlockRow) -> bytes:
        for logged, body in self._log_blocks(row.number):
            if logged.last == row.last:
                return body
        ((body,),) = self._link.rows(
            "SELECT body FROM object_past WHERE number = %b AND last = %b", (row.number, row.last)
        )
        return bytes(body)

    def cost_behind(self, number: int, position: int) -> tuple[int, int]:
        ((pages, raw),) = self._link.rows(bases.COST, (number, position))
        return int(pages), int(raw)

    def add_block(self, row: BlockRow, body: bytes) -> None:
        values = (row.number, row.first, row.last, row.first_us, row.last_us, row.generation, row.session)
        self._link.run(bases.PUT_BLOCK, (*values, row.thinned, row.pages, row.raw, body))

    def remove_blocks(self, number: int, upto: int) -> None:
        self._link.run("DELETE FROM object_past WHERE number = %b AND last <= %b", (number, upto))

    def remove_block(self, row: BlockRow) -> None:
        """Raises LogError when it is gone: what replaces it would be beside what another process made."""
        gone = self._link.run(
            "DELETE FROM object_past WHERE number = %b AND last = %b", (row.number, row.last)
        )
        if gone != 1:
            raise LogError(f"another process has thinned the past of the object number {row.number}")

    def keep_as_it_is(self, rows: Iterable[BlockRow]) -> None:
        for row in rows:
            self._link.run(
                "UPDATE object_past SET thinned = true WHERE number = %b AND last = %b",
                (row.number, row.last),
            )

    def unthinned(self, before_us: int) -> BlockRow | None:
        where = f"NOT thinned AND last_us < %b AND {OF_SLOTS}"
        found = self._stored(where, "last_us LIMIT 1", (before_us, self.slots))
        return found[0] if found else None

    # snapshots

    def add_snapshot(self, row: SnapshotRow, image: bytes | bytearray) -> int:
        rest = msgspec.msgpack.decode(row.rest, type=opening.Rest)
        state = ObjectState(row.position, bytearray(image), rest.tail, rest.alarm_us)
        return bases.put(self._link, row.number, (row.time_us, row.generation, row.session), state)

    def _snapshots(self, where: str, values: tuple[Any, ...]) -> SnapshotRow | None:
        statement = f"SELECT {SNAPSHOT} FROM object_bases WHERE {where} ORDER BY position DESC LIMIT 1"
        row = self._link.row(statement, values)
        if row is None:
            return None
        *facts, rest = row
        number, position, time_us, generation, session, pages, stored = facts
        return SnapshotRow(number, position, time_us, generation, session, pages, stored, bytes(rest))

    def snapshot(self, number: int, upto: int) -> SnapshotRow | None:
        return self._snapshots("number = %b AND position <= %b", (number, upto))

    def snapshot_positions(self, number: int) -> set[int]:
        rows = self._link.rows("SELECT position FROM object_bases WHERE number = %b", (number,))
        return {position for (position,) in rows}

    def snapshot_before(self, number: int, time_us: int) -> SnapshotRow | None:
        return self._snapshots("number = %b AND time_us <= %b", (number, time_us))

    def image(self, row: SnapshotRow) -> bytearray:
        return opening.image_of(self._link, row.number, row.position, row.total)

    def remove_snapshots(self, number: int, before: int) -> None:
        """Never the base from which the object is opened: all rows behind it may be older than its past."""
        self._link.run(REMOVE_SNAPSHOTS, (number, before, number))
        bases.drop_chunks(self._link, number)

    # pins

    def pins(self, number: int) -> dict[int, int]:
        return dict(self._link.rows("SELECT position, time_us FROM object_pins WHERE number = %b", (number,)))

    def remove_pins(self, before_us: int) -> None:
        self._link.run(f"DELETE FROM object_pins WHERE time_us < %b AND {OF_SLOTS}", (before_us, self.slots))

    # all of it

    def numbers(self, after: int, limit: int) -> list[int]:
        statement = (
            "SELECT o.number FROM objects o WHERE o.number > %b AND o.slot = ANY (%b::integer[]) AND EXISTS "
            "(SELECT 1 FROM object_past p WHERE p.number = o.number) ORDER BY o.number LIMIT %b"
        )
        return [number for (number,) in self._link.rows(statement, (after, self.slots, limit))]

    def largest(self) -> int | None:
        return None  # there is no quota: the disk is the database's

    def total_bytes(self) -> int:
        return 0

    def trim(self) -> None: ...

    def check(self) -> list[str]:
        return []  # PostgreSQL has checksums of its own


def _blocks_of(number: int, rows: list[tuple[Any, ...]]) -> Iterable[tuple[BlockRow, bytes]]:
    images, entries, place, pages = Images(), list[PastEntry](), (0, 0), 0
    for position, kind, session, generation, time_us, alarm_us, body in rows:
        commit, octets = unpack_body(kind, bytes(body))
        if entries and ((generation, session) != place or commit is CommitKind.RESTORED):
            yield _block(number, entries, place, pages)
            entries, pages = [], 0
        place = (generation, session)
        if commit in (CommitKind.PAGES, CommitKind.COPY):
            octets = pack_frames(octets, images)
            pages += page_count(octets)
        entries.append(PastEntry(position, time_us, commit, unpack_alarm(alarm_us), octets))
    if entries:
        yield _block(number, entries, place, pages)


def _block(
    number: int, entries: list[PastEntry], place: tuple[int, int], pages: int
) -> tuple[BlockRow, bytes]:
    body, raw = pack_block(entries)
    first, last = entries[0], entries[-1]
    return (
        BlockRow(
            number,
            first.position,
            last.position,
            first.time_us,
            last.time_us,
            *place,
            False,
            pages,
            raw,
            len(body),
        ),
        body,
    )
