"""The records of a zone under change: rows that come, change and go, and the names that they are at.

Owns  writing them, what filters find of them, which names change with them.
Not   what a record may hold, alone or beside others; what follows for DNS.
"""

import msgspec

from edgestead.model import dnssec, names
from edgestead.model.call import Call
from edgestead.model.records import fold
from edgestead.model.refusals.record import RecordNotFound, RecordQuota, TypeNotOffered
from edgestead.model.refusals.secondary import ZoneIsSecondary
from edgestead.model.served import ServedZone
from edgestead.store.control import Transaction
from edgestead.tables import carried, record_notes, records, settings
from edgestead.tables.carried import CarriedRow
from edgestead.tables.records import Neighbour, RecordRow
from edgestead.usecases.change import neighbours, overrides, soa, view
from edgestead.usecases.change.log import ZoneLog
from edgestead.usecases.change.neighbours import Draft
from edgestead.usecases.change.settings import SettingsEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving.aliases import check_no_loop
from edgestead.usecases.serving.facts import OVERRIDES, SECONDARY, stored_dnssec
from edgestead.usecases.serving.publish import Name
from edgestead.usecases.serving.rendering import ADDRESS_TYPES
from edgestead.usecases.serving.signing import SETTING as SIGNING

_decode_tags = msgspec.json.Decoder(list[str]).decode


class RecordsEdit:
    """`changed` are the names that may serve something else, by text; `count` is the zone's records."""

    def __init__(
        self,
        call: Call,
        tx: Transaction,
        platform: Platform,
        settings_edit: SettingsEdit,
        log: ZoneLog,
        apex: bytes,
    ) -> None:
        self.changed: dict[str, Name] = {}
        self.count = settings_edit.zone.record_count
        self.wrote = False
        self._call = call
        self._tx = tx
        self._new_id = platform.new_id
        self._records_max = platform.quotas.zone_records
        self._settings = settings_edit
        self._log = log
        self._zone_id = settings_edit.zone.id
        self._apex = apex
        self._names: dict[str, Name] = {}
        self._redirected: dict[str, bool] = {}  # of names that nothing was changed at

    def at(self, text: str, owner: bytes | None = None) -> Name:
        """A name as it is in this transaction; ask before its rows change, for what it was before."""
        name = self._names.get(text)
        if name is None:
            found = records.at_name(self._tx, self._zone_id, text)
            name = self._names[text] = Name(text, owner or names.wire_from_text(text), found)
        return name

    def find(self, record_id: str) -> RecordRow:
        """A record that is to be changed. Raises RecordNotFound.

        The first one comes with the others of its name, which are asked for next. Later ones come alone: a
        batch that names a thousand records of one name must not read all of them a thousand times.
        """
        if self._names:
            row = records.record(self._tx, self._zone_id, record_id)
        else:
            rows = records.beside(self._tx, self._zone_id, record_id)
            row = next((one for one in rows if one.id == record_id), None)
            if row is not None:
                owner = names.wire_from_text(row.name)
                self._names[row.name] = Name(row.name, owner, [_neighbour(one) for one in rows])
        if row is None:
            raise RecordNotFound
        return row

    def put_transferred(self, draft: Draft) -> None:
        """A record of a secondary zone. No rule of ours holds for it, and no history is kept of it."""
        name = self.at(draft.name, draft.owner)
        row = self._row(draft, self._new_id(), self._call.now_us, None)
        records.insert(self._tx, row)
        name.records.append(_neighbour(row))
        self.count += 1
        self.changed[row.name] = name
        self.wrote = True

    def drop_transferred(self, record_id: str, text: str) -> None:
        name = self.at(text)
        records.delete(self._tx, record_id)
        name.remove(record_id)
        self.count -= 1
        self.changed[text] = name
        self.wrote = True

    def carry(self, row: CarriedRow, *, owner: bytes | None = None, gone: bool = False) -> None:
        """A record of a secondary zone that is served and shown by no list: it comes, or goes."""
        name = self.at(row.name, owner)
        name.carries = True
        (carried.delete if gone else carried.insert)(self._tx, row)
        self.changed[row.name] = name
        self.wrote = True

    def _check_kept_here(self, what: str) -> None:
        """Raises ZoneIsSecondary."""
        zone = self._settings.zone
        if zone.type == SECONDARY:
            raise ZoneIsSecondary(name=zone.name, what=f"records are {what}")

    def create(self, draft: Draft) -> RecordRow:
        """Raises RecordRefused's children: a rule between records, a quota. Raises ZoneIsSecondary."""
        self._check_kept_here("added")
        neighbours.check_delegable(draft, None)
        return self.bring_back(draft, self._new_id(), self._call.now_us)

    def bring_back(self, draft: Draft, record_id: str, created_us: int) -> RecordRow:
        """A record that was there before, with its identity and birth: an asterisk that was delegated before
        that was refused is again. Raises RecordRefused's children."""
        self._check_kept_here("added")
        if self.count >= self._records_max:
            raise RecordQuota(type=draft.type, records_max=self._records_max)
        name = self._join(draft, None)
        row = self._row(draft, record_id, created_us, None)
        records.insert(self._tx, row)
        record_notes.insert(self._tx, row.id, row.zone_id, _notes(row))
        if draft.type == "SOA":
            self._settings.put(soa.SETTING, soa.setting_of(draft))
        self._took(None, row)
        name.records.append(_neighbour(row))
        self.count += 1
        self.changed[row.name] = name
        return row

    def replace(self, old: RecordRow, draft: Draft) -> RecordRow:
        """The record with new contents and its old identity; the very same row when nothing differs.

        Raises RecordRefused's children.
        """
        if self._settings.zone.type == SECONDARY:
            return self._override(old, draft)
        if _same(old, draft):
            return old
        neighbours.check_delegable(draft, old)
        before, name = self.at(old.name), self._join(draft, old)
        row = self._update(old, draft)
        if draft.type == "SOA":
            self._settings.put(soa.SETTING, soa.setting_of(draft))
        before.remove(old.id)
        name.records.append(_neighbour(row))
        if not _serves_same(old, draft):
            self.changed[row.name] = name
            self.changed[old.name] = before
        return row

    def _override(self, old: RecordRow, draft: Draft) -> RecordRow:
        """Proxy a transferred name, or end that: of all its addresses, and of those that transfers bring."""
        wanted = draft._replace(ttl=old.ttl, proxied=old.proxied)
        is_on = settings.one(self._tx, self._zone_id, OVERRIDES)
        if not _same(old, wanted) or is_on is None or is_on.value != "true":
            self._check_kept_here("changed")
        if draft.proxied == old.proxied:
            return old
        name = self.at(old.name)
        for one in list(name.records):
            row = records.record(self._tx, self._zone_id, one.id) if one.type in ADDRESS_TYPES else None
            if row is not None:
                name.remove(row.id)
                new = row._replace(proxied=draft.proxied, modified_us=self._call.now_us)
                new = new._replace(body=view.render(new))
                records.update(self._tx, new)
                self._took(row, new)
                name.records.append(_neighbour(new))
        self.changed[old.name] = name
        overrides.note(
            self._tx, self._zone_id, old.name, proxied=bool(draft.proxied), now_us=self._call.now_us
        )
        found = records.record(self._tx, self._zone_id, old.id)
        assert found is not None
        return found

    def delete(self, old: RecordRow) -> None:
        """Raises ZoneIsSecondary."""
        self._check_kept_here("deleted")
        name = self.at(old.name)
        records.delete(self._tx, old.id)
        if old.type == "SOA":
            self._settings.clear(soa.SETTING)
        self._took(old, None)
        name.remove(old.id)
        self.count -= 1
        self.changed[old.name] = name

    def follow_soa(self, zone: ServedZone) -> None:
        """Keep the record that is a view of the SOA's setting like what is served."""
        for found in self.at(self._settings.zone.name, self._apex).records:
            old = records.record(self._tx, self._zone_id, found.id) if found.type == "SOA" else None
            if old is not None:
                draft = soa.following(old, self._apex, zone)
                if not _same(old, draft):
                    self._update(old, draft)

    def _update(self, old: RecordRow, draft: Draft) -> RecordRow:
        row = self._row(draft, old.id, old.created_us, old)
        records.update(self._tx, row)
        if (row.comment, row.tags) != (old.comment, old.tags):
            record_notes.delete(self._tx, row.id)
            record_notes.insert(self._tx, row.id, row.zone_id, _notes(row))
        self._took(old, row)
        return row

    def _took(self, was: RecordRow | None, became: RecordRow | None) -> None:
        self._log.record(was, became)
        self.wrote = True

    def _join(self, draft: Draft, old: RecordRow | None) -> Name:
        """The name that the draft comes to, once every rule there holds."""
        name = self.at(draft.name, draft.owner)
        others = name.records if old is None else [one for one in name.records if one.id != old.id]
        neighbours.check(draft, old, others, at_apex=name.owner == self._apex)
        self._check_redirects(draft, old, others, name)
        is_new = old is None or old.rdata != draft.rdata
        if draft.type == "DNSKEY" and is_new:
            self._check_key(draft)
        if draft.type == "CNAME":
            check_no_loop(self._tx, draft.owner, draft.rdata, old and old.id)
        return name

    def _check_key(self, draft: Draft) -> None:
        """Raises TypeNotOffered: a key of another provider that cannot sign the zone with ours."""
        if not stored_dnssec(self._tx, self._zone_id).multi_signer:
            reason = "the zone is not signed by several providers (dnssec_multi_signer)"
        elif not dnssec.is_like_ours(draft.rdata) and settings.one(self._tx, self._zone_id, SIGNING):
            reason = (
                f"the zone is signed, and its providers have to sign it with one algorithm: a key has"
                f" protocol {dnssec.PROTOCOL} and algorithm {dnssec.ALGORITHM} ({dnssec.ALGORITHM_NAME})"
            )
        else:
            return
        raise TypeNotOffered(type="DNSKEY", field="type", reason=reason)

    def _check_redirects(
        self, draft: Draft, old: RecordRow | None, others: list[Neighbour], name: Name
    ) -> None:
        """Raises NameRefused: a DNAME and what it would hide (RFC 6672)."""
        neighbours.check_redirect(draft, others, at_apex=name.owner == self._apex)
        stays = old is not None and old.name == draft.name  # then nothing above it hides it
        above = self._apex if stays else name.owner
        while above != self._apex:
            above = names.parent(above)
            text = names.text_from_wire(above)
            if self._is_redirected(text):
                raise neighbours.below_redirect(draft, text)
        if draft.type == "DNAME" and records.is_above(self._tx, self._zone_id, draft.name):
            raise neighbours.above_records(draft)

    def _is_redirected(self, text: str) -> bool:
        """Whether a name has a DNAME. Few names have others below them: those are remembered."""
        known = self._names.get(text)
        if known is not None:
            return any(one.type == "DNAME" for one in known.records)
        if text not in self._redirected:
            self._redirected[text] = records.has_redirect(self._tx, self._zone_id, text)
        return self._redirected[text]

    def _row(self, draft: Draft, record_id: str, created_us: int, old: RecordRow | None) -> RecordRow:
        now_us = self._call.now_us
        tags = draft.tags if draft.tags != "[]" else None
        row = RecordRow(
            id=record_id,
            zone_id=self._zone_id,
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
            modified_us=now_us,
            comment_modified_us=_since(
                draft.comment, old and old.comment, old and old.comment_modified_us, now_us
            ),
            tags_modified_us=_since(tags, old and old.tags, old and old.tags_modified_us, now_us),
            body=b"",
        )
        return row._replace(body=view.render(row))


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


def split_tag(tag: str) -> tuple[str, str]:
    """A tag's name and value, folded; the value is empty when there is none."""
    name, _, value = tag.partition(":")
    return fold(name), fold(value)
