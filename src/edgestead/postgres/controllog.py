"""The control log as rows of PostgreSQL.

Owns  the fenced append, reading, bases and their parts, and what is deleted.
Not   what an entry holds (`sqlite.logged`).
"""

import hashlib
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import psycopg

from edgestead.model.refusals import Unavailable
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.postgres.connection import Unknown as LinkUnknown
from edgestead.postgres.incarnations import IDLE_MS_MAX
from edgestead.store.controllog import (
    CHAIN_BYTES,
    PART_BYTES,
    READ_BYTES_MAX,
    Base,
    Diverged,
    Entry,
    Fenced,
    Position,
    Unknown,
)

APPEND_SECONDS: Final = 5.0  # until a write is answered with 503; the database may need longer for a failover
READ_ROWS_MAX: Final = 4_096  # entries of one answer of the database

APPEND = (
    "WITH me AS (SELECT number FROM incarnations WHERE number = %b FOR KEY SHARE) "
    "INSERT INTO control_log (sequence, incarnation, kind, feed_upto, chain, made_us, body) "
    "SELECT g.sequence, number, %b::smallint, %b::bigint, %b::bytea, %b::bigint, %b::bytea "
    "FROM me, (VALUES (%b::bigint)) AS g (sequence) WHERE g.sequence = 1 "
    "OR EXISTS (SELECT 1 FROM control_log l WHERE l.sequence = g.sequence - 1)"
)
INSERT_PART = "INSERT INTO control_parts (sequence, part, body) VALUES (%b, %b, %b)"
LIST_SIZES = (
    "SELECT l.sequence, octet_length(l.body) + coalesce((SELECT sum(octet_length(p.body)) "
    "FROM control_parts p WHERE p.sequence = l.sequence), 0)::bigint FROM control_log l "
    "WHERE l.sequence > %b ORDER BY l.sequence LIMIT %b"
)
LIST_ENTRIES = (
    "SELECT sequence, kind::int, feed_upto, chain, made_us, body FROM control_log "
    "WHERE sequence > %b AND sequence <= %b ORDER BY sequence"
)
LIST_PARTS = "SELECT body FROM control_parts WHERE sequence = %b ORDER BY part"
NEWEST_BASE = "SELECT sequence, chain, sha256, parts FROM control_bases ORDER BY sequence DESC LIMIT 1"
SELECT_CHAIN = "SELECT chain FROM control_log WHERE sequence = %b"
SELECT_BASE = "SELECT 1 FROM control_bases WHERE sequence = %b"
READ_BASE_PART = "SELECT body FROM base_parts WHERE sequence = %b AND part = %b"
INSERT_BASE_PART = "INSERT INTO base_parts (sequence, part, body) VALUES (%b, %b, %b)"
INSERT_BASE = "INSERT INTO control_bases (sequence, chain, parts, sha256) VALUES (%b, %b, %b, %b)"
SINCE_BASE = (
    "WITH base AS (SELECT coalesce(max(sequence), 0) AS sequence FROM control_bases) "
    "SELECT (coalesce(sum(octet_length(l.body)), 0) + coalesce((SELECT sum(octet_length(p.body)) "
    "FROM control_parts p, base WHERE p.sequence > base.sequence), 0))::bigint, min(l.made_us) "
    "FROM control_log l, base WHERE l.sequence > base.sequence"
)
KEPT_BASE = "SELECT sequence FROM control_bases ORDER BY sequence DESC OFFSET 1 LIMIT 1"
TRIM = (
    "DELETE FROM control_parts WHERE sequence <= %b",
    "DELETE FROM control_log WHERE sequence <= %b",
    "DELETE FROM base_parts WHERE sequence < %b",
    "DELETE FROM control_bases WHERE sequence < %b",
)


class PostgresControlLog:
    """A `ControlLog`. Appends have a connection of their own, and so has storing a base, which takes long,
    while who takes the office reads the log. Everything else shares another one.
    """

    def __init__(self, dsn: str, *, node: str = "", append_seconds: float = APPEND_SECONDS) -> None:
        self._appending = Link(dsn, deadline_s=append_seconds, name=f"edgestead {node} log")
        self._reading = Link(dsn, name=f"edgestead {node} reader")
        self._storing = Link(dsn, name=f"edgestead {node} bases")
        self._lock = threading.Lock()  # of the connection that reads
        self._store_lock = threading.Lock()
        self._append_lock = threading.Lock()

    def get_ready(self) -> None:
        """Connect for appends: who takes the office does not wait for it. Nothing when that cannot be."""
        with self._append_lock, suppress(Trouble, Misconfigured):
            self._appending.open()

    def append(self, incarnation: int, entry: Entry) -> None:
        with self._append_lock:
            self._append(incarnation, entry)

    def _append(self, incarnation: int, entry: Entry) -> None:
        link = self._appending
        inline = entry.body if len(entry.body) <= PART_BYTES else b""
        row = (
            incarnation,
            int(entry.kind),
            entry.feed_upto,
            entry.chain,
            entry.made_us,
            inline,
            entry.sequence,
        )
        try:
            if inline:
                appended = link.run(APPEND, row)
            else:
                with link.transaction(idle_ms_max=IDLE_MS_MAX):
                    for part, start in enumerate(range(0, len(entry.body), PART_BYTES)):
                        link.run(INSERT_PART, (entry.sequence, part, entry.body[start : start + PART_BYTES]))
                    if (appended := link.run(APPEND, row)) != 1:
                        raise _fenced(incarnation, entry)
        except LinkUnknown as error:
            raise Unknown() from error
        except psycopg.errors.UniqueViolation as error:
            raise Fenced(f"entry {entry.sequence} is there already") from error
        except (Trouble, Misconfigured, psycopg.Error) as error:
            raise Unavailable() from error
        if appended != 1:
            raise _fenced(incarnation, entry)

    def read(self, after: int, bytes_max: int = READ_BYTES_MAX) -> list[Entry] | None:
        with self._at_one_moment() as link:
            sizes = link.rows(LIST_SIZES, (after, READ_ROWS_MAX))
            if not sizes:
                newest = link.row(NEWEST_BASE)
                return None if newest is not None and newest[0] > after else []
            if sizes[0][0] != after + 1:
                return None
            upto = size = 0
            for sequence, octets in sizes:
                size += octets
                if upto and size > bytes_max:
                    break
                upto = sequence
            return self._entries(link, after, upto)

    def chain(self, sequence: int) -> bytes | None:
        with self._sorted() as link:
            found = link.row(SELECT_CHAIN, (sequence,))
        return None if found is None else bytes(found[0])

    def _entries(self, link: Link, after: int, upto: int) -> list[Entry]:
        found = []
        for sequence, kind, feed_upto, chain, made_us, body in link.rows(LIST_ENTRIES, (after, upto)):
            whole = bytes(body) or b"".join(part for (part,) in link.rows(LIST_PARTS, (sequence,)))
            found.append(Entry(sequence, kind, feed_upto, bytes(chain), made_us, whole))
        return found

    def newest_base(self) -> Base | None:
        with self._sorted() as link:
            found = link.row(NEWEST_BASE)
        if found is None:
            return None
        sequence, chain, sha256, parts = found
        return Base(Position(sequence, bytes(chain)), bytes(sha256), parts)

    def read_base(self, base: Base) -> Iterator[bytes]:
        for part in range(base.parts):
            with self._sorted() as link:
                found = link.row(READ_BASE_PART, (base.position.sequence, part))
            if found is None:  # a newer one has taken its place
                raise Unavailable()
            yield bytes(found[0])

    def put_base(self, position: Position, parts: Iterable[bytes]) -> None:
        with self._store_lock, _sorted(self._storing) as link:
            put_base(link, position, parts)

    def since_base(self) -> tuple[int, int | None]:
        with self._sorted() as link:
            ((octets, oldest_us),) = link.rows(SINCE_BASE)
        return int(octets), oldest_us

    def trim(self) -> None:
        with self._store_lock, _sorted(self._storing) as link, link.transaction():
            if (kept := link.row(KEPT_BASE)) is not None:
                for statement in TRIM:
                    link.run(statement, kept)

    def close(self) -> None:
        self._appending.close()
        self._storing.cut()  # a base that is being stored is not waited for
        for lock, link in ((self._lock, self._reading), (self._store_lock, self._storing)):
            with lock:
                link.close()

    @contextmanager
    def _sorted(self) -> Iterator[Link]:
        """The connection that reads."""
        with self._lock, _sorted(self._reading) as link:
            yield link

    @contextmanager
    def _at_one_moment(self) -> Iterator[Link]:
        """Entries that another node deletes meanwhile are not missing, and whole."""
        with self._sorted() as link, link.transaction(one_state=True):
            yield link


@contextmanager
def _sorted(link: Link) -> Iterator[Link]:
    """A connection, its errors as those of a store."""
    try:
        yield link
    except (Trouble, Misconfigured, psycopg.Error) as error:
        raise Unavailable() from error


def _fenced(incarnation: int, entry: Entry) -> Fenced:
    return Fenced(f"incarnation {incarnation} is gone, or the entry before {entry.sequence}")


def put_base(link: Link, position: Position, parts: Iterable[bytes]) -> None:
    """Raises Diverged, as `Link.rows`."""
    digest = hashlib.sha256()
    with link.transaction():
        if link.row(SELECT_BASE, (position.sequence,)) is not None:
            return
        number = -1
        for number, part in enumerate(parts):
            digest.update(part)
            link.run(INSERT_BASE_PART, (position.sequence, number, part))
        if position.sequence and link.row(SELECT_CHAIN, (position.sequence,)) != (position.chain,):
            raise Diverged(f"a base of entry {position.sequence} is not what the control log has there")
        link.run(INSERT_BASE, (position.sequence, position.chain, number + 1, digest.digest()))


def begin(link: Link, parts: Iterable[bytes]) -> Position:
    """The first base of a new cluster: the `parts` of an ordinary database (`sqlite.replica.copy_parts`).

    Its chain is like no other cluster's. Raises as `Link.rows`.
    """
    position = Position(0, secrets.token_bytes(CHAIN_BYTES))
    put_base(link, position, parts)
    return position
