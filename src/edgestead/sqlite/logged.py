"""A control database as a copy of the control log: changesets from the leader's commits, into followers.

Owns  the session that records a commit, the copy's position, applying entries, taking office.
Not   who leads (`cluster.office`); where the log is (`store.controllog`).

    follows ──take_office──▶ leads ──refused, unknown, not committed──▶ follows

A changeset has the old values of the rows it changes, so that a copy which differs from the leader's is
detected when it is applied, and loaded again.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Final

import apsw
import msgspec

from edgestead.model.refusals import Unavailable
from edgestead.sqlite.committer import NoLog
from edgestead.sqlite.connection import pragma
from edgestead.sqlite.migrate import INSERT_APPLIED, applied
from edgestead.sqlite.outbox import Outbox
from edgestead.store.answered import Answers
from edgestead.store.changes import Change
from edgestead.store.control import Answered, Row
from edgestead.store.controllog import (
    ENTRY_BYTES_MAX,
    ControlLog,
    Diverged,
    Entry,
    Fenced,
    Kind,
    NotLeader,
    Position,
    Unknown,
    chained,
    check_chain,
    holds,
)
from edgestead.store.migrations import Migration, Parts, SchemaTooNew, pending

LOCAL_TABLES: Final = frozenset({"control_position", "commits"})  # of one copy, not of the log
COMPRESSION: Final = 1  # of zlib: a third of the bytes for a tenth of the commit's time

SELECT_POSITION = "SELECT sequence, chain FROM control_position"
SET_POSITION = (
    "INSERT INTO control_position (one, sequence, chain) VALUES (1, ?, ?) "
    "ON CONFLICT (one) DO UPDATE SET sequence = excluded.sequence, chain = excluded.chain"
)
LIST_CHANGES_AFTER = (
    "SELECT sequence, scope, kind, key, doc, first FROM outbox WHERE sequence > ? ORDER BY sequence"
)


class SchemaEntry(msgspec.Struct, frozen=True, array_like=True):
    """The body of a SCHEMA entry."""

    part: str
    number: int
    name: str
    sql: str


class AnsweredEntry(msgspec.Struct, frozen=True, array_like=True):
    """The body of an ANSWERED entry."""

    requests: tuple[Answered, ...]
    changeset: bytes


_KINDS: Final = frozenset(Kind)
_encode = msgspec.msgpack.Encoder().encode
_decode_answered = msgspec.msgpack.Decoder(AnsweredEntry).decode
_decode_schema = msgspec.msgpack.Decoder(SchemaEntry).decode


def position_of(db: apsw.Connection) -> Position:
    found = db.execute(SELECT_POSITION).fetchone()
    return Position(*found) if found else Position(0, b"")


class Logged(NoLog):
    """Of the writer's connection, and on its thread; `position` and `leads` may be read on any.

    `on_lost` is called with the reason when this process leads no more, `on_append` with each entry that it
    has appended and will commit.
    """

    def __init__(
        self,
        db: apsw.Connection,
        outbox: Outbox,
        log: ControlLog,
        *,
        parts: Parts,
        now_us: Callable[[], int],
        on_lost: Callable[[str], None],
        on_append: Callable[[Entry], None],
    ) -> None:
        self._db, self._outbox, self._control_log = db, outbox, log
        self._parts, self._now_us = parts, now_us
        self._on_lost, self._on_append = on_lost, on_append
        self._incarnation: int | None = None
        self._session: apsw.Session | None = None
        self._appended: Position | None = None
        self._checks_keys = True  # as `open_writer` leaves it
        self.position = position_of(db)
        self.answers = Answers()
        self.lacking = self._lacking()

    @property
    def incarnation(self) -> int | None:
        return self._incarnation

    @property
    def leads(self) -> bool:
        return self._incarnation is not None

    def resign(self) -> None:
        """Lead no more, from the next group on."""
        self._incarnation = None

    def _lacking(self) -> tuple[tuple[str, Migration], ...]:
        """The migrations that this program has and the log has not. Raises SchemaError."""
        return tuple(pending(self._parts, applied(self._db)))

    # A group of writes.

    def begin(self) -> None:
        if self._incarnation is None:
            raise NotLeader()
        self._session = session = apsw.Session(self._db, "main")
        session.table_filter(_is_logged)
        session.attach()

    def append(self, feed_upto: int) -> None:
        assert self._session is not None
        changeset = self._session.changeset()
        assert isinstance(changeset, bytes)
        if not changeset:
            return
        if requests := self._outbox.requests:
            content = _encode(AnsweredEntry(tuple(requests), changeset))
            self._append(Kind.ANSWERED, content, feed_upto)
        else:
            self._append(Kind.CHANGES, changeset, feed_upto)

    def _append(self, kind: Kind, content: bytes, feed_upto: int) -> None:
        if self._incarnation is None:
            raise NotLeader()
        body = zlib.compress(content, COMPRESSION)
        if len(body) > ENTRY_BYTES_MAX:
            raise Unavailable()
        sequence = self.position.sequence + 1
        chain = chained(self.position.chain, sequence, kind, body)
        self._db.execute(SET_POSITION, (sequence, chain)).fetchall()
        entry = Entry(sequence, kind, feed_upto, chain, self._now_us(), body)
        try:
            self._control_log.append(self._incarnation, entry)
        except Fenced as error:
            self._lose(f"another process leads: {error}")
            raise NotLeader() from error
        except Unknown:
            self._lose(f"it is unknown whether entry {sequence} of the control log was appended")
            raise
        self._appended = entry.position
        self._on_append(entry)

    def committed(self) -> None:
        self._end_session()
        if self._appended is not None:
            self.position, self._appended = self._appended, None

    def undone(self) -> bool:
        self._end_session()
        has_landed, self._appended = self._appended is not None, None
        if has_landed:
            self._lose("an entry of the control log could not be committed here")
        return has_landed

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _lose(self, reason: str) -> None:
        self._incarnation = None
        self._on_lost(reason)

    # Between groups.

    def take_office(self, incarnation: int, begin: Callable[[], None]) -> Sequence[Change]:
        """Lead, if all of the log is applied: migrate to this program's schema, and run `begin`, as entries.

        Raises NotLeader, Unknown, Unavailable, SchemaError, Diverged: then it does not lead.
        """
        if self._control_log.read(self.position.sequence, 1) != []:  # None: what follows is deleted already
            raise NotLeader()
        if not holds(self._control_log, self.position):  # nothing follows what a failover has lost, too
            raise Diverged(f"entry {self.position.sequence} of this copy is not in the control log")
        self._incarnation = incarnation
        try:
            if self.lacking:
                self._check_keys(False)  # a step may rebuild a table that others refer to
            while self.lacking:
                self._migrate(*self.lacking[0])
                self.lacking = self.lacking[1:]  # at once: the next one may fail, and this one is made
            self._check_keys(True)
            self.begin()
            self._in_transaction(begin)
        except BaseException:
            self._incarnation = None
            raise
        return ()

    def _check_keys(self, checks: bool) -> None:
        """Outside of a transaction. Followers check and cascade nothing: the leader did, and what a deletion
        took with it is in the changeset, too. The flag of `Changeset.apply` for this would have the whole
        schema read again, twice for each entry, and all statements prepared again.
        """
        if checks is not self._checks_keys:
            pragma(self._db, "foreign_keys", "ON" if checks else "OFF")
            self._checks_keys = checks

    def _in_transaction(self, fn: Callable[[], None]) -> None:
        self._db.execute("BEGIN IMMEDIATE").fetchall()
        fn()
        self.append(self._outbox.head)
        self._db.execute("COMMIT").fetchall()
        self.committed()

    def _migrate(self, part: str, step: Migration) -> None:
        content = _encode(SchemaEntry(part, step.number, step.name, step.sql))
        self._db.execute("BEGIN IMMEDIATE").fetchall()
        self._run_schema(part, step.number, step.name, step.sql)
        self._append(Kind.SCHEMA, content, self._outbox.head)
        self._db.execute("COMMIT").fetchall()
        self.committed()

    def _run_schema(self, part: str, number: int, name: str, sql: str) -> None:
        step = Migration(number, name, sql)
        self._db.execute(sql).fetchall()
        self._db.execute(INSERT_APPLIED, (part, number, name, step.checksum)).fetchall()

    def apply(self, entries: Sequence[Entry]) -> Sequence[Change]:
        """Apply what follows, in one transaction; returns the changes of the feed in it.

        Entries that are applied already are skipped. Raises Diverged: the copy has to be loaded again;
        SchemaError: this program is too old to go on.
        """
        entries = [entry for entry in entries if entry.sequence > self.position.sequence]
        if not entries:
            return ()
        if self._incarnation is not None:
            self._lose("another process appends to the control log")
        position = check_chain(self.position, entries)
        _check_kinds(entries)
        head = self._outbox.head
        self._check_keys(False)
        self._db.execute("BEGIN IMMEDIATE").fetchall()
        requests = [one for entry in entries for one in self._apply_one(entry)]
        self._db.execute(SET_POSITION, position).fetchall()
        rows: list[Row] = self._db.execute(LIST_CHANGES_AFTER, (head,)).fetchall()
        changes = [Change(*row) for row in rows]
        if changes and changes[0].sequence != head + 1:
            raise Diverged(f"changes {head + 1} to {changes[0].sequence - 1} of the feed are missing")
        lacking = self._lacking() if any(entry.kind == Kind.SCHEMA for entry in entries) else self.lacking
        self._db.execute("COMMIT").fetchall()
        self.lacking = lacking
        self.answers.landed(requests)
        self.position = position
        self._outbox.reload()
        return changes

    def _apply_one(self, entry: Entry) -> Sequence[Answered]:
        content = zlib.decompress(entry.body)
        if entry.kind == Kind.SCHEMA:
            schema = _decode_schema(content)
            self._run_schema(schema.part, schema.number, schema.name, schema.sql)
            return ()
        requests: Sequence[Answered] = ()
        if entry.kind == Kind.ANSWERED:
            requests, content = msgspec.structs.astuple(_decode_answered(content))
        misfits: list[str] = []

        def misfit(reason: int, change: apsw.TableChange) -> int:
            misfits.append(f"{change.op} of {change.name}, reason {reason}")
            return apsw.SQLITE_CHANGESET_ABORT

        try:
            apsw.Changeset.apply(
                content,
                self._db,
                filter=_is_logged,
                conflict=misfit,
                flags=apsw.SQLITE_CHANGESETAPPLY_NOSAVEPOINT,  # it is undone as a whole, with its entries
            )
        except apsw.AbortError as error:  # a row is not what the leader changed
            words = f"entry {entry.sequence} of the control log does not fit this copy: {misfits}"
            raise Diverged(words) from error
        return requests


def _check_kinds(entries: Sequence[Entry]) -> None:
    """Raises SchemaTooNew: nobody here knows what an entry of a newer release does."""
    for entry in entries:
        if entry.kind not in _KINDS:
            words = f"entry {entry.sequence} of the control log is of kind {entry.kind}"
            raise SchemaTooNew(f"{words}, which a newer program made: start the newer program")


def _is_logged(table: str) -> bool:
    return table not in LOCAL_TABLES
