"""One change of a zone: any number of records and settings, in one transaction, to one new serial.

Owns  the order of a change: rows, documents of the feed, names elsewhere that hang on it, history.
Not   what a record or a setting may hold; who may change it.

Every use case that changes records or settings goes through here: rules, serial, feed and history are alike
for one record, for many, for a setting and for an undo. What cannot be rendered raises before the commit.
docs/design/0030-a-records-write.md counts the statements of a plain record's write.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from edgestead.model import served
from edgestead.model.call import Call
from edgestead.model.served import ServedRRset
from edgestead.store.control import Transaction
from edgestead.tables import certificates, zones
from edgestead.tables import signing as signing_rows
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.change.log import EDIT, Origin, ZoneLog
from edgestead.usecases.change.records import RecordsEdit
from edgestead.usecases.change.settings import SettingsEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import edge_feed, flattening, proofs, rendering, serials
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving.presigned import Presigned
from edgestead.usecases.serving.publish import Document, Name, Publication
from edgestead.usecases.serving.signing import (
    LISTING,
    NAMES_ARE_SIGNED,
    UNSIGNING,
    Owner,
    ZoneSigning,
    is_cut,
    signer_of,
)


class ZoneEdit:
    """A change in the making, of its `records` and `settings`. Call `finish` once, after the last of them."""

    def __init__(
        self, call: Call, tx: Transaction, platform: Platform, zone_id: str, origin: Origin = EDIT
    ) -> None:
        """Raises ZoneNotFound."""
        found = zone_facts.editable(tx, zone_id)
        self._call = call
        self._tx = tx
        self._platform = platform
        self._renderer = platform.renderer
        self._zone_id = zone_id
        self._apex = zone_facts.apex_of(found.zone)
        self._origin = origin
        self._log = ZoneLog()
        self._last_sequence = found.last_sequence
        self._facts = zone_facts.facts_in(tx, found)
        self._again: list[str] = []
        self._sign_again: list[bytes] = []
        self._serial: int | None = None
        self._follows = False
        self._is_part = False
        self._finds = False
        self._wrote = False
        self.settings = SettingsEdit(call, tx, found.zone, self._log)
        self.records = RecordsEdit(call, tx, platform, self.settings, self._log, self._apex)

    @property
    def zone(self) -> ZoneRow:
        """The zone's row, with what this change has written of it."""
        return self.settings.zone

    def take_facts(self) -> None:
        """Read again what settings say; the apex, or the names, that hang on what changed are rendered."""
        found = zone_facts.editable(self._tx, self._zone_id)
        # Another edit of the same transaction may have given the zone a serial since this one began.
        self.settings.zone, self._last_sequence = found.zone, found.last_sequence
        before, facts = self._facts, zone_facts.facts_in(self._tx, found)
        if facts == before:
            return
        if _of_names(facts) != _of_names(before):
            self._again += flattening.next_names(self._tx, self._zone_id, "")
        if (facts.dns_only, facts.ipv6) != (before.dns_only, before.ipv6):
            flattening.refresh_others_below(self._tx, self.zone.name, self._zone_id)
        if facts.signing in NAMES_ARE_SIGNED and _nsec_ttl(facts) != _nsec_ttl(before):
            signing_rows.renew_all(self._tx, self._zone_id, self._call.now_us)
        if facts._replace(**_of_names(before)) != before:
            self.records.changed[self.zone.name] = self.records.at(self.zone.name, self._apex)
        self._facts = facts
        self._wrote = True
        self._follow_soa()

    def refresh(self, found: Iterable[str]) -> None:
        """Render names again whose records stay: what they answer with may have changed."""
        self._again += found
        self._wrote = True
        if self.zone.name in self._again:
            self._follow_soa()

    def sign_again(self, owners: Iterable[bytes]) -> None:
        """Make signatures again that are due, or take them away from a zone that loses its."""
        self._sign_again += owners
        self._wrote = True

    def begin_again(self, serial: int) -> None:
        """Serve the zone as it is under a serial that no change leads to: secondaries fetch it whole."""
        self._serial = serial
        self._wrote = True

    def take_transfer(self, serial: int, *, follows: bool) -> None:
        """Serve what was transferred under this serial, to which the change leads if it `follows`."""
        self.take_facts()
        self._serial, self._follows, self._finds = serial, follows, True
        self._wrote = True

    def publish_names_only(self) -> None:
        """This is a part of a transfer: DNS gets the SOA with the last one."""
        self._is_part = True

    def finish(self) -> int | None:
        """Tell the feed each changed name, and the zone's new serial last; write the history.

        A change that DNS does not see, of a comment say, makes no serial and tells the feed nothing.
        Returns the change's number in the zone's history, None when nothing changed.
        """
        if self.settings.wrote:
            self.take_facts()
        if not (self._wrote or self.records.wrote or self.settings.wrote or self.settings.wrote_own):
            return None
        elsewhere = self._find_hanging()
        serial = self._publish()
        if serial != self.zone.serial or not (self._again or self._sign_again):
            zones.set_after_change(self._tx, self._zone_id, serial, self.records.count)
        if self.settings.wrote or self.settings.wrote_own:
            edge_feed.tell_zone(self._tx, self.zone)
        for other, found in elsewhere.items():
            self._refresh_elsewhere(other, found)
        return self._log.write(self._call, self._tx, self._zone_id, self._last_sequence + 1, self._origin)

    def _publish(self) -> int:
        """Emit what the names serve now, and if that is anything new, the next serial; returns the serial."""
        changed = self.records.changed
        again = [self.records.at(text) for text in dict.fromkeys(self._again) if text not in changed]
        if not changed and not again and not self._sign_again and self._serial is None:
            return self.zone.serial
        signing = self._signing()
        publication = Publication(self._renderer, self._apex, self._facts, signing)
        names = [*changed.values(), *again]
        zone_before, *befores = self._newest(names)
        is_new = bool(changed) or self._serial is not None
        owners = [
            self._with_proofs(name, self._delegated(name, publication.render(name, self._flat(name), before)))
            for name, before in zip(names, befores, strict=True)
        ]
        others = self._sign_others(signing, owners)
        for name, one in zip(names, owners, strict=True):
            documents = publication.name(name, one, changed=changed.get(name.text) is name)
            self._emit(documents)
            is_new = is_new or bool(documents)
        for one in others:
            documents = publication.signatures(one)
            self._emit(documents)
            is_new = is_new or bool(documents)
        if not is_new or self._is_part:
            return self.zone.serial
        follows = self._serial is None or self._follows
        serial = serials.next_serial(self.zone.serial) if self._serial is None else self._serial
        is_lost = zone_before is not None and not self._finds and served.decode_zone(zone_before).lost
        self._emit(publication.zone(serial, zone_before if follows else None, lost=is_lost))
        return serial

    def _signing(self) -> ZoneSigning | None:
        """None for a zone without signatures, which includes one that is losing them."""
        facts = self._facts
        if facts.presigned:
            return Presigned(self._tx, self._zone_id, self._apex, None)
        if facts.signing not in (LISTING, *NAMES_ARE_SIGNED):
            return None
        signer = None
        if facts.signing in NAMES_ARE_SIGNED:
            signer = signer_of(
                self._tx, self._platform.seal, self._zone_id, self._apex, _nsec_ttl(facts), self._call.now_us
            )
        return ZoneSigning(self._tx, self._zone_id, self._apex, signer)

    def _with_proofs(self, name: Name, one: Owner) -> Owner:
        """With what an authority asks to see there. No other name costs a statement."""
        if self._facts.presigned or not proofs.is_name(name.text):
            return one
        values = certificates.proofs_at(self._tx, self._zone_id, name.text)
        return one._replace(plain=proofs.beside(one.plain, values)) if values else one

    def _delegated(self, name: Name, one: Owner) -> Owner:
        """With the delegation of a zone of ours that begins at a name of this signed one."""
        is_wanted = self._facts.signing not in ("", UNSIGNING) and one.owner != self._apex
        if not is_wanted or is_cut(one.plain):
            return one
        added = zone_facts.delegation(self._tx, self._renderer, name.text)
        return one._replace(plain=(*one.plain, *added)) if added else one

    def _sign_others(self, signing: ZoneSigning | None, owners: Sequence[Owner]) -> list[Owner]:
        """Names with the same records whose signatures change: of a zone that loses them, without."""
        if signing is None and not self._sign_again:
            return []
        signing = signing or ZoneSigning(self._tx, self._zone_id, self._apex, None)
        known = {one.owner for one in owners}
        others = signing.settle(owners) if self._facts.signing != UNSIGNING else []
        known.update(one.owner for one in others)
        return [*others, *signing.again(owner for owner in self._sign_again if owner not in known)]

    def _newest(self, names: Sequence[Name]) -> list[bytes | None]:
        """The feed's documents of the zone and of names; a name without records had none, the apex apart."""
        keys = [(served.KIND_ZONE, "")]
        keys += [(served.KIND_NAME, name.feed_key) for name in names if self._was_served(name)]
        found = iter(self._tx.newest_of(self._zone_id, keys))
        return [next(found), *(next(found) if self._was_served(name) else None for name in names)]

    def _was_served(self, name: Name) -> bool:
        is_there = not name.was_empty or name.owner == self._apex or proofs.is_name(name.text)
        return is_there or self._facts.presigned or bool(self._facts.signing) or name.carries

    def _emit(self, documents: Iterable[Document]) -> None:
        for one in documents:
            if one.if_new and self._tx.newest(self._zone_id, one.kind, one.key) == one.document:
                continue
            self._tx.emit(self._zone_id, one.kind, one.key, one.document, first=one.first)

    def _follow_soa(self) -> None:
        self.records.follow_soa(self._renderer.zone(self._apex, 0, self._facts))

    def _find_hanging(self) -> dict[str, list[str]]:
        """Flattened names that hang on a changed one: ours are rendered again, those of other zones returned.

        More than HANGING_MAX would hold the writer up; their zones are noted for the upkeep.
        """
        changed = flattening.with_ancestors(self.records.changed, self.zone.name)
        found = flattening.dependents(self._tx, changed, limits.HANGING_MAX)
        if found is None:
            flattening.refresh_later(self._tx, changed)
            return {}
        by_zone: dict[str, list[str]] = {}
        for zone_id, name in found:
            by_zone.setdefault(zone_id, []).append(name)
        self._again += by_zone.pop(self._zone_id, ())
        return by_zone

    def _refresh_elsewhere(self, zone_id: str, found: Iterable[str]) -> None:
        if zones.zone(self._tx, zone_id) is not None:
            edit = ZoneEdit(self._call, self._tx, self._platform, zone_id)
            edit.refresh(found)
            edit.finish()

    def _flat(self, name: Name) -> Sequence[ServedRRset] | None:
        """Store and return the records that replace a name's alias; None where none is flattened."""
        alias = flattening.alias_of(name.records, self._facts, at_apex=name.owner == self._apex)
        flat = None if alias is None else flattening.chase(self._tx, self._renderer, alias)
        if name.was_alias or flat is not None:
            flattening.settle(self._tx, self._zone_id, name.text, flat, self._call.now_us)
        return None if flat is None else flat.served


def _nsec_ttl(facts: rendering.ZoneFacts) -> int:
    """RFC 9077 §3."""
    return min(facts.soa.ttl, facts.soa.minimum)


def _of_names(facts: rendering.ZoneFacts) -> dict[str, Any]:
    """The facts that change what proxied names and aliases serve; all others change the apex."""
    return {name: getattr(facts, name) for name in ("flatten_all", "alpn", "dns_only", "ipv6")}
