"""The use case of importing a zone file: all of it, or nothing.

Owns  which records of a file a zone takes, the rehearsal of all, the portions in which they are written.
Not   HTTP; threads: `give_way` lets others pass while a long file is read.

A file is read and rehearsed against a snapshot of the zone first, record by record through the very rules of
a write, and is refused with every line that cannot be read or breaks one, up to a limit. Then it is written
in portions of a few milliseconds, so that the writes of others pass between; all of them are one change of
the zone's history. Should a portion meet what somebody else wrote since the rehearsal, the import is taken
back, but for records that somebody has changed by then.

Skipped without a word: SOA and NS of the zone itself, which this server makes (where a zone has several
providers, the NS records of the others are taken), and records that are there already, so that a file can be
imported again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from edgestead.changes import NEWEST
from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.names import InvalidValue
from edgestead.model.records import TYPES
from edgestead.model.refusals.record import (
    IdenticalRecord,
    LineRefused,
    LineUnreadable,
    NameRefused,
    RecordRefused,
    TagRefused,
    ZoneFileTooLarge,
)
from edgestead.model.zonefile import Entry, read, read_notes
from edgestead.store.control import Answered, Group, Reader, Row, Transaction
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.log import Origin
from edgestead.usecases.change.neighbours import Draft, above_records
from edgestead.usecases.limits import IMPORTED_RECORDS_MAX, REFUSALS_ANSWERED_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import draft as record_draft
from edgestead.usecases.record.draft import RecordBody
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving.aliases import check_no_loop
from edgestead.usecases.serving.facts import apex_of
from edgestead.usecases.serving.rendering import Settings
from edgestead.usecases.zone import restore

PORTION_RECORDS_MAX = 16  # written in one transaction: about 2 ms of the writer's time
COMING_SHOWN_MAX = 500  # records of an answer that says what an import would add
RECORDS_BETWEEN_REST = 8  # read before others may pass: under 1 ms


class Imported(msgspec.Struct, frozen=True):
    """Contract "Routes", POST /import."""

    recs_added: int
    total_records_parsed: int


class Coming(msgspec.Struct, frozen=True):
    """A record that an import would add."""

    name: str
    type: str
    content: str
    ttl: int
    proxied: bool


class Rehearsed(Imported, frozen=True):
    """What an import would do; `records` are the first of what it would add."""

    records: list[Coming]


class Plan(NamedTuple):
    """A file that was rehearsed: its new records, those of one name together, and how many it has in all."""

    drafts: list[Draft]
    parsed: int

    def rehearsed(self) -> Rehearsed:
        first = self.drafts[:COMING_SHOWN_MAX]
        coming = [Coming(one.name, one.type, one.content, one.ttl, bool(one.proxied)) for one in first]
        return Rehearsed(len(self.drafts), self.parsed, coming)

    def portions(self) -> Iterator[Sequence[Draft]]:
        for start in range(0, len(self.drafts), PORTION_RECORDS_MAX):
            yield self.drafts[start : start + PORTION_RECORDS_MAX]


class Added(NamedTuple):
    """What one portion did. `sequence` is the import's change, None while nothing was added."""

    records: int
    sequence: int | None


def plan(
    call: Call,
    reader: Reader,
    platform: Platform,
    zone_id: str,
    octets: bytes,
    proxied: bool,
    give_way: Callable[[], None],
) -> Plan:
    """Read and rehearse a file. `proxied` holds for records that can be and whose line does not say.

    Raises ZoneNotFound, LineUnreadable, LineRefused, ZoneFileTooLarge.
    """
    zone = zone_of(reader, zone_id)
    rehearsal = _Rehearsal(call, reader, platform, zone, proxied)
    later: list[Entry] = []  # DS, which need the NS records of their name; DNAME, which nothing may be below
    with suppress(_Enough):
        text = _text(octets, rehearsal.refuse)
        for number, entry in enumerate(read(text, apex_of(zone), give_way, rehearsal.refuse)):
            if number % RECORDS_BETWEEN_REST == 0:
                give_way()
            if number >= IMPORTED_RECORDS_MAX:
                raise ZoneFileTooLarge(limit=IMPORTED_RECORDS_MAX, what="records")
            if entry.type in ("DS", "DNAME"):
                later.append(entry)
            else:
                rehearsal.take(entry)
        for entry in later:
            rehearsal.take(entry)
    return rehearsal.plan()


class _Enough(Exception):
    """As many lines were refused as an answer names: the rest of the file, which may be long, is not read."""


def add(
    call: Call,
    tx: Transaction,
    platform: Platform,
    zone_id: str,
    drafts: Sequence[Draft],
    sequence: int | None,
) -> Added:
    """Write one portion; `sequence` is what the portion before it returned.

    Raises ZoneNotFound; RecordRefused's children: the zone changed since the rehearsal.
    """
    edit = ZoneEdit(call, tx, platform, zone_id, Origin("import", sequence=sequence))
    added = 0
    for draft in drafts:
        try:
            edit.records.create(draft)
            added += 1
        except IdenticalRecord:
            continue
    return Added(added, edit.finish() or sequence)


def take_back(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, sequence: int
) -> tuple[str, ...]:
    """Undo what portions have written. Returns what there is to say of it: what somebody changed stays."""
    left = restore.undo_unchanged(call, tx, platform, zone_id, sequence)
    if not left:
        return ()
    more = f" and {len(left) - REFUSALS_ANSWERED_MAX} more" if len(left) > REFUSALS_ANSWERED_MAX else ""
    named = ", ".join(left[:REFUSALS_ANSWERED_MAX])
    return (f"Changed by others since it was added, and not taken back: {named}{more}.",)


class _Rehearsal:
    """Every record of a file through the rules of a write, and nothing written."""

    def __init__(self, call: Call, reader: Reader, platform: Platform, zone: ZoneRow, proxied: bool) -> None:
        # Older dates take other members, which a zone file does not have.
        self._call = msgspec.structs.replace(call, as_of=NEWEST)
        self._platform = platform
        self._zone = zone
        self._apex = apex_of(zone)
        self._proxied = proxied
        facts = zone_facts.facts_of(reader, zone)
        self._takes_apex_ns = facts.multi_provider
        self._servers = frozenset(platform.renderer.name_servers(facts).rdatas)
        self._reader = reader
        self._edit = ZoneEdit(call, _WritesNothing(reader), platform, zone.id)
        self._aliases: dict[bytes, bytes] = {}  # of the file: the snapshot does not have them
        self._above: set[bytes] = set()  # names that the file has others below
        self._drafts: list[Draft] = []
        self._refusals: dict[int, LineRefused | LineUnreadable] = {}  # by line
        self._parsed = 0

    def take(self, entry: Entry) -> None:
        if entry.owner == self._apex and self._is_the_servers(entry):
            return
        self._parsed += 1
        try:
            draft = self._draft(entry)
            if draft.type == "CNAME":
                check_no_loop(self._reader, draft.owner, draft.rdata, None, self._aliases)
            if draft.type == "DNAME" and draft.owner in self._above:
                raise above_records(draft)
            self._edit.records.create(draft)
            self._drafts.append(draft)
            self._above.update(_ancestors(draft.owner, self._apex))
            if draft.type == "CNAME":
                self._aliases[draft.owner] = draft.rdata
        except IdenticalRecord:
            return
        except RecordRefused as refusal:
            self.refuse(_refused(entry, refusal))

    def refuse(self, refusal: LineRefused | LineUnreadable) -> None:
        """Note what is wrong with a line; the first thing is enough of it. Raises _Enough."""
        self._refusals.setdefault(int(refusal.facts["line"]), refusal)
        if len(self._refusals) >= REFUSALS_ANSWERED_MAX:
            raise _Enough

    def _is_the_servers(self, entry: Entry) -> bool:
        """Whether the server makes such a record at the apex: SOA; NS, but for those of other providers."""
        if entry.type == "NS" and self._takes_apex_ns:
            return names.wire_from_text(entry.content) in self._servers
        return entry.type in ("SOA", "NS")

    def plan(self) -> Plan:
        """Raises LineRefused or LineUnreadable, whichever line comes first, with all others."""
        if self._refusals:
            first, *others = (refusal for _, refusal in sorted(self._refusals.items()))
            first.also = tuple(others)
            raise first
        self._drafts.sort(key=_in_order)
        return Plan(self._drafts, self._parsed)

    def _draft(self, entry: Entry) -> Draft:
        """Raises RecordRefused's children."""
        row, zone = TYPES[entry.type], self._zone
        if not names.is_at_or_below(entry.owner, self._apex):
            raise NameRefused(type=row.name, field="name", reason=f"it is not in the zone {zone.name}")
        if row.name == "SOA":
            raise NameRefused(type=row.name, field="name", reason="a zone has one SOA record, at its apex")
        try:
            notes = read_notes(entry.comment)
        except InvalidValue as error:
            raise TagRefused(type=row.name, reason=error.reason) from None
        said = notes.settings
        body = RecordBody(
            type=row.name,
            name=names.text_from_wire(entry.owner),
            content=entry.content,
            priority=entry.priority,
            ttl=entry.ttl,
            proxied=said.get("proxied", self._proxied and row.proxiable),
            comment=notes.comment,
            tags=list(notes.tags),
            settings=Settings(said.get("flatten-cname"), said.get("ipv4-only"), said.get("ipv6-only")),
        )
        return record_draft.draft(self._call, zone, self._platform, body)


class _WritesNothing:
    """A transaction that reads a snapshot."""

    def __init__(self, reader: Reader) -> None:
        self.rows: Callable[..., list[Row]] = reader.rows
        self.row: Callable[..., Row | None] = reader.row

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return 0

    def run_each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def emit(self, scope: str, kind: str, key: str, doc: bytes | None, *, first: Group = "") -> int:
        return 0

    def answered(self, request: Answered) -> None: ...

    def touches(self, scope: str) -> bool:
        return False

    def newest(self, scope: str, kind: str, key: str) -> bytes | None:
        return None

    def newest_of(self, scope: str, keys: Sequence[tuple[str, str]]) -> list[bytes | None]:
        return [None] * len(keys)

    def documents(self, scope: str, kind: str) -> Iterator[tuple[str, bytes]]:
        return iter(())

    def drop_scope(self, scope: str, *, first: Group = "") -> int:
        return 0


def _text(octets: bytes, refuse: Callable[[LineUnreadable], None]) -> str:
    """The file as text; `refuse` hears of each line that is none, which then has other characters in it."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return "\n".join(
            _line_of_text(number, line, refuse) for number, line in enumerate(octets.split(b"\n"), 1)
        )


def _line_of_text(number: int, line: bytes, refuse: Callable[[LineUnreadable], None]) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        refuse(LineUnreadable(line=number, reason="it is not UTF-8"))
        return line.decode(errors="replace")


def _refused(entry: Entry, cause: RecordRefused) -> LineRefused:
    cause.pointer = None  # there is no JSON body to point into
    return LineRefused(
        line=entry.line,
        type=entry.type,
        name=names.text_from_wire(entry.owner),
        reason=cause.message,
        chain=(cause,),
    )


def _ancestors(owner: bytes, apex: bytes) -> Iterator[bytes]:
    """The names above one, as far as the apex."""
    while owner != apex:
        owner = names.parent(owner)
        yield owner


def _in_order(draft: Draft) -> tuple[bytes, bool]:
    """Records of one name together, so that DNS hears of it once; DS behind the NS that it needs."""
    return draft.owner, draft.type == "DS"
