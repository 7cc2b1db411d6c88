"""One change of a zone: any number of records and settings, in one transaction, to one new serial.

Owns  the order of a change: rows, documents of the feed, names elsewhere that hang on it, history.
Not   what a record or a setting may hold; who may change it.

Every use case that changes records or settings goes through here: rules, serial, feed and history are alike
for one record, for many, for a setting and for an undo. What cannot be rendered raises before the commit.
docs/design/0030-a-records-write.md counts the statements of a plain record's write.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from edgestead.model import dnssec, served, zonemd
from edgestead.model import names as owner_names
from edgestead.model.call import Call
from edgestead.model.records import TYPES
from edgestead.model.served import ServedRRset, ServedZone
from edgestead.model.zonemd import ZONEMD
from edgestead.store.control import Transaction
from edgestead.tables import certificates, zones
from edgestead.tables import records as record_rows
from edgestead.tables import signing as signing_rows
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.change.log import EDIT, Origin, ZoneLog
from edgestead.usecases.change.records import RecordsEdit
from edgestead.usecases.change.settings import SettingsEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import (
    bootstrapping,
    digests,
    edge_feed,
    flattening,
    proofs,
    rendering,
    serials,
)
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving.presigned import Presigned
from edgestead.usecases.serving.publish import Document, Name, Publication
from edgestead.usecases.serving.signing import (
    IS_SERVED,
    LISTING,
    NAMES_ARE_SIGNED,
    UNSIGNING,
    Owner,
    ZoneSigning,
    is_cut,
    signer_of,
)

DNAME: Final = TYPES["DNAME"].number


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
        self._names_octets: bytes | None = None
        self._signalled_by: list[bytes] = []
        self._is_delegated_anew = False
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

    @property
    def has_digest(self) -> bool:
        """Whether the zone is to have a digest of itself."""
        return self._facts.digest

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

    def take_digest(self, names_octets: bytes) -> None:
        """Serve the zone with its digest, under a further serial; `names_octets` as `digests.of_names` reads
        them of the zone as it is.
        """
        self._names_octets = names_octets
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
        if self._is_delegated_anew:
            above = zone_facts.signed_above(self._tx, self.zone.name)
            if above is not None:
                self._refresh_elsewhere(above, (self.zone.name,))
        if self._signalled_by:
            signals = bootstrapping.places(self._tx, self._renderer, self.zone, self._signalled_by)
            for other, found in signals.items():
                self._refresh_elsewhere(other, found)
        return self._log.write(self._call, self._tx, self._zone_id, self._last_sequence + 1, self._origin)

    def _publish(self) -> int:
        """Emit what the names serve now, and if that is anything new, the next serial; returns the serial."""
        changed = self.records.changed
        again = [self.records.at(text) for text in dict.fromkeys(self._again) if text not in changed]
        brings_digest = self._names_octets is not None  # of no octets where all records are the apex's
        if not (changed or again or self._sign_again or brings_digest) and self._serial is None:
            return self.zone.serial
        if self._facts.digest and self.zone.name not in {*changed, *self._again}:
            again.append(self.records.at(self.zone.name, self._apex))
        signing = self._signing()
        publication = Publication(self._renderer, self._apex, self._facts, signing)
        names = [*changed.values(), *again]
        if signing is not None:
            names.sort(key=lambda name: len(name.owner))  # a delegation before names that it hides
        zone_before, *befores = self._newest(names)
        is_new = bool(changed) or brings_digest or self._serial is not None
        hidden: list[Document] = []
        owners = [
            self._rendered(publication, signing, name, before)
            for name, before in zip(names, befores, strict=True)
        ]
        below = [] if signing is None else self._of_others_below(names, owners)
        names += below
        owners += [
            self._rendered(publication, signing, name, before)
            for name, before in zip(below, self._newest(below)[1:] if below else (), strict=True)
        ]
        others = self._sign_others(signing, owners)
        apex = None
        for name, one in zip(names, owners, strict=True):
            if self._facts.digest and one.owner == self._apex:
                apex = name, one
                is_new = is_new or self._is_new_apex(publication, one)
                continue
            documents = publication.name(name, one, changed=changed.get(name.text) is name)
            self._emit(documents)
            is_new = is_new or bool(documents)
        is_hidden = self._facts.signing not in IS_SERVED and not self._facts.presigned
        for one in others:
            documents = publication.signatures(one)
            self._emit(documents)
            if documents and is_hidden and zone_before is not None:
                hidden = [Document(served.KIND_ZONE, "", zone_before)]
            is_new = is_new or bool(documents and not is_hidden)
        if not is_new or self._is_part:
            self._emit(hidden)  # nobody sees these signatures yet; the zone's document stays the last one
            return self.zone.serial
        follows = self._serial is None or self._follows
        serial = serials.next_serial(self.zone.serial) if self._serial is None else self._serial
        is_lost = zone_before is not None and not self._finds and served.decode_zone(zone_before).lost
        zone = publication.soa(serial, lost=is_lost)
        if apex is not None:
            self._emit(publication.served_apex(*apex, self._digested(publication, apex[1], zone)))
        self._emit(publication.zone(zone, zone_before if follows else None))
        return serial

    def _is_new_apex(self, publication: Publication, one: Owner) -> bool:
        """Whether the apex, which has to be published with each digest, is another besides that."""
        old = [rrset for rrset in one.before if rrset.type == ZONEMD]
        plain = tuple(sorted([*one.plain, *old], key=lambda rrset: rrset.type))
        return publication.apex(one, plain).plain != one.before

    def _digested(self, publication: Publication, one: Owner, zone: ServedZone) -> tuple[ServedRRset, ...]:
        """What the apex serves with this zone's digest, or without one for now."""
        octets = self._names_octets
        if octets is None and self.records.count <= digests.AT_ONCE_RECORDS_MAX:
            octets = digests.of_names(self._tx, self._zone_id, zone)
        if octets is None:
            digests.put_off(self._tx, self._zone_id, self._call.now_us)
            return publication.apex(one, one.plain).plain
        digests.forget(self._tx, self._zone_id)
        base = publication.apex(one, digests.with_digest(one.plain, zone)).plain
        digest = zonemd.made((digests.of_apex(zone, base), octets))
        plain = digests.with_digest(one.plain, zone, digest)
        return publication.apex(one._replace(before=base), plain).plain

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

    def _rendered(
        self, publication: Publication, signing: ZoneSigning | None, name: Name, before: bytes | None
    ) -> Owner:
        one = publication.render(name, self._flat(name), before)
        if one.owner == self._apex:
            self._is_delegated_anew = _delegating(one.before) != _delegating(one.plain)
            if bootstrapping.differs(one.before, one.plain):
                self._signalled_by += bootstrapping.servers((*one.before, *one.plain))
        if signing is None or self._facts.presigned:
            return self._with_proofs(name, one)
        one = self._with_signals(signing, name, self._with_proofs(name, self._delegated(signing, name, one)))
        signing.note(one)
        return one

    def _with_signals(self, signing: ZoneSigning, name: Name, one: Owner) -> Owner:
        """With what a zone of ours tells its parent here, in the zone of its name server.

        An alias or a delegation that somebody wrote here wins (RFC 2181 §10.1): no CDS is beside one.
        """
        if not bootstrapping.is_name(name.text):
            return one
        there = {rrset.type for rrset in one.plain}
        if there & {dnssec.CNAME, dnssec.NS} or signing.is_hidden(one.owner):
            return one
        said = bootstrapping.said(self._tx, self._renderer, self._zone_id, name.text)
        added = [rrset for rrset in said if rrset.type not in there]
        return one._replace(plain=(*one.plain, *added))

    def _of_others_below(self, names: Sequence[Name], owners: Sequence[Owner]) -> list[Name]:
        """Delegations and signals of other zones that a delegation hides now, or does no more: they have no
        records to find.
        """
        found: list[str] = []
        for name, one in zip(names, owners, strict=True):
            is_hiding = one.owner != self._apex and is_cut(one.plain)
            if one.owner == self._apex or is_cut(one.before) == is_hiding:
                continue
            if is_hiding:
                place = dnssec.place(one.owner[: len(one.owner) - len(self._apex)])
                below = signing_rows.between(self._tx, self._zone_id, *dnssec.places_below(place))
                texts = [owner_names.text_from_wire(dnssec.relative_of(each) + self._apex) for each in below]
                ours = frozenset(zones.names_below(self._tx, name.text)) if texts else ()
                found += [text for text in texts if bootstrapping.is_name(text) or text in ours]
                continue
            found += zone_facts.children(self._tx, name.text)
            if self._may_have_servers(name):
                texts = bootstrapping.below(self._tx, self._renderer, self.zone)
                found += [text for text in texts if text.endswith(f".{name.text}")]
        known = {name.text for name in names}
        return [self.records.at(text) for text in dict.fromkeys(found) if text not in known]

    def _may_have_servers(self, name: Name) -> bool:
        """Whether a name server may be called like this name, or one below it: what looks them up is slow."""
        if name.records or "_signal" in name.text.split("."):
            return True
        return bool(record_rows.names_below(self._tx, self._zone_id, name.text))

    def _with_proofs(self, name: Name, one: Owner) -> Owner:
        """With what an authority asks to see there. No other name costs a statement."""
        if self._facts.presigned or not proofs.is_name(name.text):
            return one
        values = certificates.proofs_at(self._tx, self._zone_id, name.text)
        return one._replace(plain=proofs.beside(one.plain, values)) if values else one

    def _delegated(self, signing: ZoneSigning, name: Name, one: Owner) -> Owner:
        """With the delegation of a zone of ours that begins at a name of this signed one.

        Aliases do not stand beside one (RFC 2181 §10.1, RFC 6672 §2.4), and nobody could be led by them: the
        zone below answers for its own name.
        """
        if one.owner == self._apex or is_cut(one.plain):
            return one
        added = zone_facts.delegation(self._tx, self._renderer, name.text)
        if not added or signing.is_hidden(one.owner):
            return one
        others = [rrset for rrset in one.plain if rrset.type not in (dnssec.CNAME, DNAME)]
        return one._replace(plain=(*others, *added))

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


def _delegating(rrsets: Iterable[ServedRRset]) -> list[ServedRRset]:
    """What of an apex the zone above has, as NS and DS."""
    return [rrset for rrset in rrsets if rrset.type in (dnssec.NS, dnssec.CDS)]


def _nsec_ttl(facts: rendering.ZoneFacts) -> int:
    """RFC 9077 §3."""
    return min(facts.soa.ttl, facts.soa.minimum)


def _of_names(facts: rendering.ZoneFacts) -> dict[str, Any]:
    """The facts that change what proxied names and aliases serve; all others change the apex."""
    return {name: getattr(facts, name) for name in ("flatten_all", "alpn", "dns_only", "ipv6")}
