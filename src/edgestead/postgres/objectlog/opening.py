"""Reading what the database has of one object.

Owns  the statements that find an object, its base, and the rows behind it; chunks as an image.
Not   leases and caches (`log`); making bases (`bases`).

An object is its newest base, the newest version of each chunk up to it, and the rows behind it in order.
"""

import zlib
from typing import Any, Final, NamedTuple

import msgspec

from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog.rows import unpack_alarm, unpack_body
from edgestead.store.history.restoring import apply_frames
from edgestead.store.objectlog import CatalogueEntry, CommitKind, LogDamaged, ObjectRef, Tail, Target
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.past import ObjectState

CHUNK_PAGES: Final = 256
CHUNK_BYTES: Final = CHUNK_PAGES * PAGE_BYTES

OBJECT = "o.number, o.class, o.id, o.name, o.alarm_us, o.session, o.pending, o.base"
HEAD = "greatest(o.base, (SELECT max(l.position) FROM object_log l WHERE l.number = o.number))"
FIND = f"SELECT {OBJECT}, {HEAD} FROM objects o WHERE o.class = %b AND o.id = %b"
PAGE = (
    f"SELECT {OBJECT}, {HEAD} FROM objects o WHERE (o.class, o.id) > (%b::bytea, %b::bytea) "
    "ORDER BY o.class, o.id LIMIT %b"
)
BASE = "SELECT pages, rest, time_us FROM object_bases WHERE number = %b AND position = %b"
CHUNKS = (
    "SELECT DISTINCT ON (chunk) chunk, body FROM object_chunks WHERE number = %b AND position <= %b "
    "ORDER BY chunk, position DESC"
)
ROWS = (
    "SELECT position, kind::int, session, generation, time_us, alarm_us, body FROM object_log "
    "WHERE number = %b AND position > %b ORDER BY position"
)

_unpack_target = msgspec.msgpack.Decoder(Target | None).decode
_unpack_tail = msgspec.msgpack.Decoder(Tail).decode


class Rest(msgspec.Struct, array_like=True):
    """What a base has beside pages."""

    tail: Tail
    alarm_us: int | None


class Found(NamedTuple):
    """An object's row, and its head."""

    number: int
    ref: ObjectRef
    alarm_us: int | None
    session: int
    pending: Target | None
    base: int
    head: int

    @property
    def entry(self) -> CatalogueEntry:
        return CatalogueEntry(self.ref, self.head, self.base, self.alarm_us, self.pending)


class Opened(NamedTuple):
    """The whole of an object. `octets` are those of the rows behind its base."""

    found: Found
    state: ObjectState
    has_file: bool
    time_us: int
    octets: int


def keys_of(class_name: str, object_id: str) -> tuple[bytes, bytes]:
    """Class and id as they are stored: their order is that of the texts."""
    return class_name.encode("utf-8", "surrogatepass"), object_id.encode("utf-8", "surrogatepass")


def find(link: Link, ref: ObjectRef) -> Found | None:
    """Raises as `Link.rows`."""
    row = link.row(FIND, keys_of(ref.class_name, ref.id))
    return None if row is None else _found(*row)


def page(link: Link, after: tuple[str, str], limit: int) -> list[Found]:
    """The first objects behind a class and id. Raises as `Link.rows`."""
    return [_found(*row) for row in link.rows(PAGE, (*keys_of(*after), limit))]


def _found(
    number: int,
    class_name: bytes,
    object_id: bytes,
    name: bytes | None,
    alarm_us: int | None,
    session: int,
    pending: bytes | None,
    base: int,
    head: int | None,
) -> Found:
    ref = ref_of(class_name, object_id, name)
    target = None if pending is None else _unpack_target(bytes(pending))
    return Found(number, ref, alarm_us, session, target, base, head or base)


def ref_of(class_name: bytes, object_id: bytes, name: bytes | None) -> ObjectRef:
    texts = [
        None if one is None else bytes(one).decode("utf-8", "surrogatepass")
        for one in (class_name, object_id, name)
    ]
    return ObjectRef(*texts)  # type: ignore[arg-type]


def read(link: Link, ref: ObjectRef) -> Opened | None:
    """An object as it is; None when it was never written. Raises LogDamaged, as `Link.rows`.

    In one state: upkeep that makes a base meanwhile takes the rows behind the one before away.
    """
    with link.transaction(one_state=True):
        found = find(link, ref)
        return None if found is None else _read(link, found)


def _read(link: Link, found: Found) -> Opened:
    state, time_us = state_at(link, found.number, found.base)
    has_file, octets = bool(state.image), 0
    for position, kind, _, _, row_us, alarm_us, body in link.rows(ROWS, (found.number, found.base)):
        time_us = row_us
        octets += len(body)
        has_file |= apply_row(state, position, kind, alarm_us, body) is CommitKind.PAGES
    return Opened(found._replace(head=state.position), state, has_file, time_us, octets)


def state_at(link: Link, number: int, base: int) -> tuple[ObjectState, int]:
    """The state of a base, 0 being that of a new object, and its time. Raises LogDamaged, as `Link.rows`."""
    if not base:
        return ObjectState(0, bytearray(), {}, None), 0
    row = link.row(BASE, (number, base))
    if row is None:
        raise LogDamaged(f"the base {base} of the object number {number} is not in the database")
    pages, rest, time_us = row
    kept = msgspec.msgpack.decode(bytes(rest), type=Rest)
    return ObjectState(base, image_of(link, number, base, pages), kept.tail, kept.alarm_us), int(time_us)


def image_of(link: Link, number: int, base: int, pages: int) -> bytearray:
    """The database file of a base."""
    image = bytearray(pages * PAGE_BYTES)
    for chunk, body in link.rows(CHUNKS, (number, base)):
        start = chunk * CHUNK_BYTES
        piece = zlib.decompress(body)[: max(0, len(image) - start)]
        image[start : start + len(piece)] = piece
    return image


def apply_row(state: ObjectState, position: int, kind: int, alarm_us: int | None, body: Any) -> CommitKind:
    """Move a state on by one row."""
    commit, octets = unpack_body(kind, bytes(body))
    state.position = position
    alarm = unpack_alarm(alarm_us)
    if alarm is None or isinstance(alarm, int):
        state.alarm_us = alarm
    if commit in (CommitKind.PAGES, CommitKind.COPY):
        apply_frames(octets, state.image)
        state.tail.clear()
    elif commit is CommitKind.RESTORED:
        state.tail.clear()
    elif commit is CommitKind.KEYS:
        state.tail.update(_unpack_tail(octets))
    return commit
