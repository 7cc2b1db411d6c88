"""One change of a zone: any number of records and settings, in one transaction, to one new serial.

Owns  the rules between records of one name, the writing of rows, what the feed hears.
Asks  `services.serving` to render, `services.record_view` for bodies, `tables`.
Tells the change feed and the zone's history (`services.zone_log`), in the same transaction.
Not   what a single record may hold (`services.record_draft`); who may change it.

Every use case that changes records or settings goes through here: rules, serial, feed and history are alike
for one record, for many, for a setting and for an undo. What cannot be rendered raises before the commit.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from edgestead.model import names, served
from edgestead.model.call import Call
from edgestead.model.record_errors import ContentRefused, RecordRefused
from edgestead.model.records import fold
from edgestead.model.zone_errors import (
    AddressHost,
    AliasHost,
    ContentsTooLong,
    DelegatedHost,
    IdenticalRecord,
    OtherHost,
    RecordExists,
    RecordQuota,
    TypeNotOffered,
)
from edgestead.services import edge_feed, flattening, limits, record_view, serving, soa_record, zone_facts
from edgestead.services.aliases import check_no_loop
from edgestead.services.dnssec import admits_dnskey
from edgestead.services.journal import Journaled
from edgestead.services.platform import Platform
from edgestead.services.record_draft import Draft, apex_of
from edgestead.services.record_filters import split_tag
from edgestead.services.zone_log import EDIT, PAUSED, Origin, ZoneLog, own_value
from edgestead.store.control import Group, Transaction
from edgestead.tables import record_notes, records, settings, zones
from edgestead.tables.records import Neighbour, RecordRow
from edgestead.tables.zones import ZoneRow


class _Rule(NamedTuple):
    """A record of one of `new` may not join a name that has one of `there`."""

    new: frozenset[str]
    there: frozenset[str]
    refusal: type[RecordRefused]
    at_apex: bool


_CNAME, _NS, _SOA = frozenset(("CNAME",)), frozenset(("NS",)), frozenset(("SOA",))
_ADDRESSES = frozenset(("A", "AAAA"))

_encode = msgspec.json.Encoder().encode
_decode_tags = msgspec.json.Decoder(list[str]).decode

# Contract "Errors": these are the documented conflicts. Other types beside a CNAME are stored, not served.
_RULES = (
    _Rule(_CNAME, serving.ADDRESS_TYPES, AddressHost, True),
    _Rule(_ADDRESSES, _CNAME, AliasHost, True),
    _Rule(_NS, serving.ADDRESS_TYPES, OtherHost, False),
    _Rule(serving.ADDRESS_TYPES, _NS, DelegatedHost, False),
    _Rule(_SOA, _SOA, RecordExists, True),
)


class _Name:
    """One owner name under change: its records as they are now, and what it was before."""

    __slots__ = ("owner", "records", "text", "was_alias", "was_proxied")

    def __init__(self, text: str, owner: bytes, found: list[Neighbour]) -> None:
        self.text = text
        self.owner = owner
        self.records = found
        self.was_alias = flattening.has_alias(found)
        self.was_proxied = serving.is_proxied(found)

    def remove(self, record_id: str) -> None:
        self.records = [record for record in self.records if record.id != record_id]


class ZoneEdit:
    """A change in the making. Call `finish` once, after the last record and setting."""

    def __init__(
        self, call: Call, tx: Transaction, platform: Platform, zone: ZoneRow, origin: Origin = EDIT
    ) -> None:
        self._log = ZoneLog()
        self._origin = origin
        self._call = call
        self._tx = tx
        self._platform = platform
        self._renderer = platform.renderer
        self._zone = zone
        self._apex = apex_of(zone)
        self._facts = zone_facts.facts_of(tx, zone)
        self._names: dict[str, _Name] = {}
        self._changed: dict[str, _Name] = {}
        self._again: list[str] = []
        self._count = zone.record_count
        self._serial: int | None = None
        self._wrote = False
        self._wrote_settings = False
        self._wrote_own = False

    def create(self, draft: Draft) -> RecordRow:
        """Raises RecordRefused's children: a rule between records, a quota."""
        return self.bring_back(draft, self._platform.new_id(), self._call.now_us)

    def bring_back(self, draft: Draft, record_id: str, created_us: int) -> RecordRow:
        """A record that was there before, with its identity and birth. Raises RecordRefused's children."""
        if self._count >= limits.RECORDS_PER_ZONE_MAX:
            raise RecordQuota(type=draft.type, records_max=limits.RECORDS_PER_ZONE_MAX)
        name = self._join(draft, None)
        row = self._row(draft, record_id, created_us, self._call.now_us, None)
        records.insert(self._tx, row)
        record_notes.insert(self._tx, row.id, row.zone_id, _notes(row))
        if draft.type == "SOA":
            self.put_setting(soa_record.SETTING, soa_record.setting_of(draft))
        self._log.record(None, row)
        self._wrote = True
        name.records.append(_neighbour(row))
        self._count += 1
        self._changed[row.name] = name
        return row

    def replace(self, old: RecordRow, draft: Draft) -> RecordRow:
        """The record with new contents and its old identity; the very same row when nothing differs.

        Raises RecordRefused's children.
        """
        if _same(old, draft):
            return old
        before, name = self._at(old.name), self._join(draft, old)
        row = self._row(draft, old.id, old.created_us, self._call.now_us, old)
        records.update(self._tx, row)
        if (row.comment, row.tags) != (old.comment, old.tags):
            record_notes.delete(self._tx, row.id)
            record_notes.insert(self._tx, row.id, row.zone_id, _notes(row))
        if draft.type == "SOA":
            self.put_setting(soa_record.SETTING, soa_record.setting_of(draft))
        self._log.record(old, row)
        self._wrote = True
        before.remove(old.id)
        name.records.append(_neighbour(row))
        if not _serves_same(old, draft):
            self._changed[row.name] = name
            self._changed[old.name] = before
        return row

    def delete(self, old: RecordRow) -> None:
        name = self._at(old.name)
        records.delete(self._tx, old.id)
        if old.type == "SOA":
            self.clear_setting(soa_record.SETTING)
        self._log.record(old, None)
        self._wrote = True
        name.remove(old.id)
        self._count -= 1
        self._changed[old.name] = name

    def put_setting(self, id_: str, value: Any, *, again: bool = False) -> None:
        """Store a checked value. One that is there already keeps its date, unless it counts `again`."""
        text = _encode(value).decode()
        stored = settings.one(self._tx, self._zone.id, id_)
        if stored is not None and stored.value == text and not again:
            return
        settings.put(self._tx, self._zone.id, id_, text, self._call.now_us)
        self._log.setting(id_, stored and stored.value.encode(), text.encode())
        self._wrote = self._wrote_settings = True

    def clear_setting(self, id_: str) -> None:
        """Return a setting to its default."""
        stored = settings.one(self._tx, self._zone.id, id_)
        if stored is not None:
            settings.delete(self._tx, self._zone.id, id_)
            self._log.setting(id_, stored.value.encode(), None)
            self._wrote = self._wrote_settings = True

    def put_own(self, id_: str, value: bool | str) -> None:
        """Store PAUSED or PLAN, which stand in the zone's own row."""
        before, after = own_value(self._zone, id_), _encode(value)
        if after == before:
            return
        if id_ == PAUSED:
            self._zone = self._zone._replace(paused=int(value))
        else:
            self._zone = self._zone._replace(plan=str(value))
        zones.set_own(
            self._tx,
            self._zone.id,
            paused=bool(self._zone.paused),
            plan=self._zone.plan,
            modified_us=self._call.now_us,
        )
        self._log.setting(id_, before, after)
        self._wrote = self._wrote_own = True

    def take_facts(self) -> None:
        """Read again what settings say; the apex, or the names, that hang on what changed are served anew."""
        before, facts = self._facts, zone_facts.facts_of(self._tx, self._zone)
        if facts != before:
            if (facts.flatten_all, facts.alpn) != (before.flatten_all, before.alpn):
                self._again += flattening.next_names(self._tx, self._zone.id, "")
            if facts._replace(flatten_all=before.flatten_all, alpn=before.alpn) != before:
                self._changed[self._zone.name] = self._at(self._zone.name, self._apex)
            self._facts = facts
            self._wrote = True
            self._follow_soa()

    def _follow_soa(self) -> None:
        """Keep the record that is a view of the SOA's setting like it."""
        name = self._at(self._zone.name, self._apex)
        for found in name.records:
            old = records.record(self._tx, self._zone.id, found.id) if found.type == "SOA" else None
            if old is not None:
                zone = self._renderer.zone(self._apex, 0, self._facts)
                draft = soa_record.following(old, self._apex, zone)
                if not _same(old, draft):
                    row = self._row(draft, old.id, old.created_us, self._call.now_us, old)
                    records.update(self._tx, row)
                    self._log.record(old, row)

    def refresh(self, found: Iterable[str]) -> None:
        """Render names again whose records stay: what they answer with may have changed."""
        self._again += found
        self._wrote = True
        if self._zone.name in self._again:
            self._follow_soa()

    def begin_again(self, serial: int) -> None:
        """Serve the zone as it is under a serial that no change leads to: who follows it fetches it whole."""
        self._serial = serial
        self._wrote = True

    def finish(self) -> int | None:
        """Render each changed name, tell the feed, and give the zone its new serial last.

        A change that DNS does not see, of a comment say, makes no serial and tells the feed nothing.
        Returns the change's number in the zone's history, None when nothing changed.
        """
        if self._wrote_settings:
            self.take_facts()
        if not self._wrote:
            return None
        zone_id, serial = self._zone.id, self._zone.serial
        elsewhere = self._find_hanging()
        journaled = Journaled()
        for name in self._changed.values():
            self._emit(name, journaled)
        renewed = [
            self._renew(self._at(text), journaled) for text in self._again if text not in self._changed
        ]
        if self._changed or any(renewed) or self._serial is not None:
            serial = serving.next_serial(serial) if self._serial is None else self._serial
            self._emit_serial(serial, journaled)
            zones.set_after_change(self._tx, zone_id, serial, self._count)
        elif not self._again:
            zones.set_after_change(self._tx, zone_id, serial, self._count)
        if self._wrote_settings or self._wrote_own:
            edge_feed.tell_zone(self._tx, self._zone)
        for other, found in elsewhere.items():
            self._refresh_elsewhere(other, found)
        return self._log.write(self._call, self._tx, zone_id, self._origin)

    def _emit_serial(self, serial: int, journaled: Journaled) -> None:
        """The journal's row, then the SOA: last, because from then on the zone counts as whole."""
        zone_id, after = self._zone.id, self._renderer.zone(self._apex, serial, self._facts)
        before = self._tx.newest(zone_id, served.KIND_ZONE, "")
        if before is not None and self._serial is None:
            row = journaled.row(served.decode_zone(before), after)
            self._tx.emit(zone_id, served.KIND_JOURNAL, f"{serial:08x}", row)
        self._tx.emit(zone_id, served.KIND_ZONE, "", served.encode(after))

    def _find_hanging(self) -> dict[str, list[str]]:
        """Flattened names that hang on a changed one: ours are rendered again, those of other zones returned.

        More than HANGING_MAX would hold the writer up; their zones are noted for the upkeep.
        """
        changed = flattening.with_ancestors(self._changed, self._zone.name)
        found = flattening.dependents(self._tx, changed, limits.HANGING_MAX)
        if found is None:
            flattening.refresh_later(self._tx, changed)
            return {}
        by_zone: dict[str, list[str]] = {}
        for zone_id, name in found:
            by_zone.setdefault(zone_id, []).append(name)
        self._again += by_zone.pop(self._zone.id, ())
        return by_zone

    def _refresh_elsewhere(self, zone_id: str, found: Iterable[str]) -> None:
        zone = zones.zone(self._tx, zone_id)
        if zone is not None:
            edit = ZoneEdit(self._call, self._tx, self._platform, zone)
            edit.refresh(found)
            edit.finish()

    def _rendered(self, name: _Name) -> served.ServedName:
        alias = flattening.alias_of(
            name.records, at_apex=name.owner == self._apex, flatten_all=self._facts.flatten_all
        )
        flat = None if alias is None else flattening.chase(self._tx, self._renderer, alias)
        if name.was_alias or flat is not None:
            flattening.settle(self._tx, self._zone.id, name.text, flat, self._call.now_us)
        rrsets = None if flat is None else flat.served
        return self._renderer.name(self._apex, name.owner, name.records, self._facts, rrsets)

    def _renew(self, name: _Name, journaled: Journaled) -> bool:
        """Emit a name whose records stay, if it serves something else than before."""
        rendered = self._rendered(name)
        before = self._tx.newest(self._zone.id, served.KIND_NAME, name.owner.hex())
        if (served.decode_name(before).rrsets if before else ()) == rendered.rrsets:
            return False
        self._emit(name, journaled, rendered)
        return True

    def _emit(self, name: _Name, journaled: Journaled, ready: served.ServedName | None = None) -> None:
        rendered = ready or self._rendered(name)
        document = served.encode(rendered) if rendered.rrsets else None
        before = self._tx.newest(self._zone.id, served.KIND_NAME, name.owner.hex())
        journaled.take(name.owner, served.decode_name(before).rrsets if before else (), rendered.rrsets)
        is_proxied = serving.is_proxied(name.records)
        first: Group = ""
        if is_proxied != name.was_proxied:
            first = "edge" if is_proxied else "dns"
        # Of the two rows the group that goes first gets its own first: the second one opens the gate.
        if is_proxied:
            edge_feed.tell_name(self._tx, self._zone.id, name.owner, name.records)
        self._tx.emit(self._zone.id, served.KIND_NAME, name.owner.hex(), document, first=first)
        if name.was_proxied and not is_proxied:
            edge_feed.tell_name(self._tx, self._zone.id, name.owner, name.records)

    def _at(self, text: str, owner: bytes | None = None) -> _Name:
        """A name as it is in this transaction; ask before its rows change, so that `was_proxied` is right."""
        name = self._names.get(text)
        if name is None:
            found = records.at_name(self._tx, self._zone.id, text)
            name = self._names[text] = _Name(text, owner or names.wire_from_text(text), found)
        return name

    def _join(self, draft: Draft, old: RecordRow | None) -> _Name:
        """The name that the draft comes to, once every rule there holds."""
        name = self._at(draft.name, draft.owner)
        others = [record for record in name.records if old is None or record.id != old.id]
        _check_duplicate(draft, others)
        is_new = old is None or old.rdata != draft.rdata
        if draft.type == "DNSKEY" and is_new and not admits_dnskey(self._tx, self._zone.id):
            reason = "the zone is not signed by several providers (dnssec_multi_signer)"
            raise TypeNotOffered(type="DNSKEY", field="type", reason=reason)
        _check_types(draft, others, name.owner == self._apex)
        _check_sizes(draft, others)
        if draft.type == "CNAME":
            check_no_loop(self._tx, draft.owner, draft.rdata, old and old.id)
        return name

    def _row(
        self, draft: Draft, record_id: str, created_us: int, modified_us: int, old: RecordRow | None
    ) -> RecordRow:
        row = RecordRow(
            id=record_id,
            zone_id=self._zone.id,
            name=draft.name,
            type=draft.type,
            rdata=draft.rdata,
            ttl=draft.ttl,
            proxied=draft.proxied,
            priority=draft.priority,
            content=draft.content,
            content_folded=draft.content_folded,
            data=draft.data,
            settings=draft.settings,
            comment=draft.comment,
            tags=draft.tags,
            created_us=created_us,
            modified_us=modified_us,
            comment_modified_us=_since(
                draft.comment, old and old.comment, old and old.comment_modified_us, modified_us
            ),
            tags_modified_us=_since(
                draft.tags if draft.tags != "[]" else None,
                old and old.tags,
                old and old.tags_modified_us,
                modified_us,
            ),
            body=b"",
        )
        return row._replace(body=record_view.render(row))


def _neighbour(row: RecordRow) -> Neighbour:
    return Neighbour(row.id, row.type, row.rdata, row.ttl, row.proxied, row.settings, row.comment, row.tags)


def _notes(row: RecordRow) -> list[tuple[str, str]]:
    """What filters find of the comment and the tags."""
    notes = {split_tag(tag): None for tag in _decode_tags(row.tags)} if row.tags != "[]" else {}
    if row.comment is not None:
        notes[record_notes.COMMENT, fold(row.comment)] = None
    return list(notes)


def _since(now: str | None, before: str | None, since_us: int | None, modified_us: int) -> int | None:
    """When a comment or the tags got their present value; None when there is none."""
    if now is None:
        return None
    return since_us if now == before else modified_us


def _same(old: RecordRow, draft: Draft) -> bool:
    """Whether nothing that an answer shows would change."""
    return (
        _serves_same(old, draft)
        and old.content == draft.content
        and old.data == draft.data
        and old.comment == draft.comment
        and old.tags == draft.tags
    )


def _serves_same(old: RecordRow, draft: Draft) -> bool:
    return (old.name, old.rdata, old.ttl, old.proxied, old.settings) == (
        draft.name,
        draft.rdata,
        draft.ttl,
        draft.proxied,
        draft.settings,
    )


def _check_duplicate(draft: Draft, others: Iterable[Neighbour]) -> None:
    """Raises IdenticalRecord, RecordExists."""
    identity = _identity(draft.type, draft.rdata)
    for other in others:
        if other.type == draft.type and _identity(other.type, other.rdata) == identity:
            same = (draft.ttl, draft.proxied, draft.settings, draft.comment, draft.tags) == other[3:]
            raise (IdenticalRecord if same else RecordExists)(type=draft.type)


def _identity(type_: str, rdata: bytes) -> bytes:
    """What makes two records of a name the same: rdata; for TXT the text, however it is cut into strings."""
    if type_ != "TXT":
        return rdata
    return b"".join(_strings(rdata))


def _strings(rdata: bytes) -> Iterable[bytes]:
    position = 0
    while position < len(rdata):
        end = position + 1 + rdata[position]
        yield rdata[position + 1 : end]
        position = end


def _check_types(draft: Draft, others: Iterable[Neighbour], at_apex: bool) -> None:
    """Raises AddressHost, AliasHost, OtherHost, DelegatedHost; ContentRefused: DS without a delegation."""
    there = {other.type for other in others}
    for rule in _RULES:
        if draft.type in rule.new and (rule.at_apex or not at_apex) and there & rule.there:
            raise rule.refusal(type=draft.type, field="name")
    if draft.type == "DS" and "NS" not in there:
        raise ContentRefused(type="DS", field="name", reason="NS records of that name must exist first")


def _check_sizes(draft: Draft, others: Iterable[Neighbour]) -> None:
    """Raises ContentsTooLong: more than one DNS message can carry, or more text than a name may have."""
    same_type = [other.rdata for other in others if other.type == draft.type]
    octets = sum(map(len, same_type)) + len(draft.rdata)
    octets_max = limits.RRSET_OCTETS_MAX - limits.RECORD_HEAD_OCTETS * (len(same_type) + 1)
    if draft.type == "TXT":
        octets_max = min(octets_max, limits.TXT_OCTETS_PER_NAME_MAX)
    if octets > octets_max:
        raise ContentsTooLong(type=draft.type, field="content", octets=octets, octets_max=octets_max)
