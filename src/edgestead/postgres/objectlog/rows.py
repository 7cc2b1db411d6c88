"""Commits of objects as rows: their bytes, and the statement that appends a group of them.

Owns  how a body and an alarm are stored; the arrays of a group; the fenced statement.
Not   when a group is written (`committer`); what becomes of older rows (`bases`).

    kind      the commit's, and PACKED where the body is compressed
    alarm_us  null: unchanged; NO_ALARM: deleted; otherwise the time

The statement holds its process's row of `incarnations` FOR KEY SHARE: where that row is gone nothing is
written, and whoever deletes it waits for appends in flight.
"""

import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from edgestead.store.objectlog import UNCHANGED, Alarm, CommitKind

NO_ALARM: Final = -(2**63)
PACKED: Final = 64  # beside the kind
PACK_BYTES_MIN: Final = 512  # of a body, below which packing saves nothing
_SAMPLE_BYTES: Final = 256  # of a body: when these do not become shorter, neither will the rest
_LEVEL: Final = 1

ME = "me AS (SELECT number FROM incarnations WHERE number = %b FOR KEY SHARE)"
LOGGED = (
    "INSERT INTO object_log "
    "(number, position, incarnation, kind, session, generation, time_us, alarm_us, body) "
    "SELECT g.number, g.position, me.number, g.kind, g.session, g.generation, g.time_us, g.alarm_us, g.body "
    "FROM me, unnest(%b::bigint[], %b::bigint[], %b::smallint[], %b::integer[], %b::integer[], %b::bigint[], "
    "%b::bigint[], %b::bytea[]) AS g(number, position, kind, session, generation, time_us, alarm_us, body)"
)
NAMED = (
    "INSERT INTO objects (number, slot, class, id, name, alarm_us, session, pending) "
    "SELECT g.number, g.slot, g.class, g.id, g.name, g.alarm_us, g.session, g.pending FROM me, "
    "unnest(%b::bigint[], %b::integer[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bigint[], %b::integer[], "
    "%b::bytea[]) AS g(number, slot, class, id, name, alarm_us, session, pending)"
)
CHANGED = (
    "UPDATE objects o SET alarm_us = g.alarm_us, session = g.session, pending = g.pending FROM me, "
    "unnest(%b::bigint[], %b::bigint[], %b::integer[], %b::bytea[]) AS g(number, alarm_us, session, pending) "
    "WHERE o.number = g.number"
)
PINNED = (
    "INSERT INTO object_pins (number, position, time_us) SELECT g.number, g.position, g.time_us FROM me, "
    "unnest(%b::bigint[], %b::bigint[], %b::bigint[]) AS g(number, position, time_us) "
    "ON CONFLICT (number, position) DO UPDATE SET time_us = excluded.time_us"
)


class LogRow(NamedTuple):
    """One commit. `body` is as it was given: it is packed on the thread that writes."""

    number: int
    position: int
    kind: int
    session: int
    generation: int
    time_us: int
    alarm: Alarm
    body: bytes


class ObjectRow(NamedTuple):
    """What `objects` says of one object, apart from its base. `name` is None where it has none."""

    number: int
    slot: int
    class_name: bytes
    id: bytes
    name: bytes | None
    alarm_us: int | None
    session: int
    pending: bytes | None


class PinRow(NamedTuple):
    number: int
    position: int
    time_us: int


def pack_body(body: bytes) -> tuple[int, bytes]:
    """(PACKED or 0, what is stored)."""
    if len(body) < PACK_BYTES_MIN or not _may_shrink(body):
        return 0, body
    packed = zlib.compress(body, _LEVEL)
    return (PACKED, packed) if len(packed) < len(body) * 7 // 8 else (0, body)


def _may_shrink(body: bytes) -> bool:
    """By two samples: random bytes would cost as much as a whole page to find out."""
    middle = len(body) // 2
    sample = body[middle - _SAMPLE_BYTES // 2 : middle + _SAMPLE_BYTES // 2] + body[-_SAMPLE_BYTES:]
    return len(zlib.compress(sample, _LEVEL)) < len(sample) * 7 // 8


def unpack_body(kind: int, body: bytes) -> tuple[CommitKind, bytes]:
    """The commit of a row. Raises zlib.error."""
    if kind & PACKED:
        return CommitKind(kind & ~PACKED), zlib.decompress(body)
    return CommitKind(kind), bytes(body)


def pack_alarm(alarm: Alarm) -> int | None:
    if alarm is UNCHANGED:
        return None
    assert alarm is None or isinstance(alarm, int)
    return NO_ALARM if alarm is None else alarm


def unpack_alarm(alarm_us: int | None) -> Alarm:
    return UNCHANGED if alarm_us is None else None if alarm_us == NO_ALARM else alarm_us


@cache
def statement(*, named: bool, changed: bool, pinned: bool) -> str:
    """The statement of a group; it gives one row, none when the process's own row is gone."""
    parts = [ME]
    parts += [f"named AS ({NAMED})"] if named else []
    parts += [f"changed AS ({CHANGED})"] if changed else []
    parts += [f"pinned AS ({PINNED})"] if pinned else []
    return f"WITH {', '.join(parts)}, logged AS ({LOGGED}) SELECT number FROM me"


def parameters(
    incarnation: int,
    rows: Sequence[LogRow],
    named: Sequence[ObjectRow],
    changed: Sequence[ObjectRow],
    pinned: Sequence[PinRow],
) -> list[Any]:
    """What belongs to `statement`. Rows are in the order of their objects: nobody waits in a circle."""
    found: list[Any] = [incarnation]
    if named:
        found += [list(column) for column in zip(*named, strict=True)]
    if changed:
        columns = list(zip(*changed, strict=True))
        found += [list(columns[number]) for number in (0, 5, 6, 7)]
    if pinned:
        found += [list(column) for column in zip(*pinned, strict=True)]
    numbers, positions, kinds, sessions, generations, times, alarms, bodies = [], [], [], [], [], [], [], []
    for row in sorted(rows, key=_order):
        packed, body = pack_body(row.body)
        numbers.append(row.number)
        positions.append(row.position)
        kinds.append(row.kind | packed)
        sessions.append(row.session)
        generations.append(row.generation)
        times.append(row.time_us)
        alarms.append(pack_alarm(row.alarm))
        bodies.append(body)
    return [*found, numbers, positions, kinds, sessions, generations, times, alarms, bodies]


def _order(row: LogRow) -> tuple[int, int]:
    return row[0], row[1]
