"""What signing adds to a zone: signatures, and the chain of records that say which names exist.

Owns  the states of a signed zone; which RRsets are signed; when a signature is renewed; the chain of NSEC
      records.
Not   keys at rest (`usecases.serving.keys`), what each of several does (`usecases.serving.keyset`); who moves
      a zone from state to state (`usecases.zone.signing`); answering (`dns`).

    state      API               a change of the zone signs    served besides       left when
    listing    pending           nothing, keeps the chain      nothing              every name is in the chain
    signing    pending           names                         –                    every name is signed
    signed     pending           names, SOA                    DNSKEY               no cache has other answers
    offered    pending           names, SOA                    DNSKEY, CDS          the parent has the DS
    active     active            names, SOA                    DNSKEY, CDS          (stays)
    leaving    pending-disabled  names, SOA                    DNSKEY, CDS: delete  no cache has a DS
    unsigning  disabled          nothing, takes away           nothing              no name is in the chain

A zone counts as signed for DNS processes when its SOA is: with the change that leads to `signed`, in which
the apex gets its DNSKEY. Until then the signatures that are there are not given out. How long caches have
what was served before is in `usecases.zone.waits`.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from edgestead.model import dnssec, names, served
from edgestead.model.served import PENDING, ServedRRset, ServedZone
from edgestead.store.control import Reader, Transaction
from edgestead.tables import records, signing
from edgestead.usecases.serving import keyset
from edgestead.usecases.serving.keys import Seal, SigningKey

SETTING: Final = "zone.signing"
LISTING, SIGNING, SIGNED, OFFERED = "listing", "signing", "signed", "offered"
ACTIVE, LEAVING, UNSIGNING = "active", "leaving", "unsigning"
NAMES_ARE_SIGNED: Final = frozenset((SIGNING, SIGNED, OFFERED, ACTIVE, LEAVING))
IS_SERVED: Final = frozenset((SIGNED, OFFERED, ACTIVE, LEAVING))
"""States in which DNS answers with signatures."""

VALID_SECONDS: Final = 30 * 86_400  # of a signature; longer than any SOA's expire, 28 days at most
RENEW_SECONDS: Final = 16 * 86_400  # before it ends: a secondary that lost us still expires the zone first,
# as long as its `expire` is not longer than this (default 7 days)
JITTER_SECONDS: Final = 5 * 86_400  # signatures of one hour do not all end in one hour
ROUND_SECONDS: Final = 3_600  # signatures that are due within one such time are made together: each round is
# a new serial, after which caches begin again, secondaries fetch, and a large zone's digest is made again
SKEW_SECONDS: Final = 3_600  # a resolver's clock may be behind ours
_US: Final = 1_000_000
_A, _AAAA = 1, 28


class Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of one zone, as its setting has it. Times are Unix microseconds.

    `part` is what is listed now and `after` the last of it (`usecases.zone.signing`). `ds_us` is when the
    parent's DS was last seen, `gone_us` since when it has had none, `others_us` since when it has had DS
    records of which none is ours. `signed_us` is since when answers have had signatures, 0 where no cache has
    others. `retry_us` is when the next state is tried again that failed.
    """

    state: str
    since_us: int
    part: str = ""
    after: str = ""
    ds_us: int | None = None
    gone_us: int | None = None
    others_us: int | None = None
    signed_us: int = 0
    retry_us: int = 0

    @property
    def is_bogus(self) -> bool:
        """Whether the DS records of the parent lead to no key of the zone."""
        return self.others_us is not None and self.state in (SIGNED, OFFERED)


read_stored = msgspec.json.Decoder(Stored).decode
_encode_stored = msgspec.json.Encoder().encode


def stored_text(stored: Stored) -> str:
    return _encode_stored(stored).decode()


def without_signatures(rrsets: Iterable[ServedRRset]) -> tuple[ServedRRset, ...]:
    return tuple(rrset for rrset in rrsets if rrset.type not in dnssec.SYNTHESISED)


def is_cut(rrsets: Iterable[ServedRRset]) -> bool:
    """Whether a name below the apex that serves this is delegated."""
    return any(rrset.type == dnssec.NS for rrset in rrsets)


class Signer:
    """Signs RRsets at one moment: `dnssec.OF_KEYS` of the apex with `for_keys`, all others with `key`."""

    def __init__(
        self,
        apex: bytes,
        key: SigningKey,
        for_keys: Sequence[SigningKey],
        nsec_ttl_seconds: int,
        now_us: int,
    ) -> None:
        self.tag = key.tag
        self._apex = apex
        self._for_zone = (key,)
        self._for_keys = for_keys
        self._nsec_ttl_seconds = nsec_ttl_seconds
        self._now_seconds = now_us // _US

    def name(
        self, owner: bytes, plain: Sequence[ServedRRset], before: Sequence[ServedRRset], next_owner: bytes
    ) -> tuple[ServedRRset, ...]:
        """A name of the chain with everything that signing adds; signatures of `before` that still do stay.

        `plain` is without signatures, `before` the name as it was served. The apex of a zone that is served
        signed has its SOA besides.
        """
        at_apex = owner == self._apex
        cut = not at_apex and is_cut(plain)
        real = [rrset for rrset in plain if not rrset.is_mark]
        types = [rrset.type for rrset in real]
        if at_apex:
            types.append(dnssec.SOA)
        if any(rrset.type == PENDING for rrset in plain):
            types += [type_ for type_ in (_A, _AAAA) if type_ not in types]  # unknown is not denied
        rdata = dnssec.nsec(next_owner, dnssec.types_at(types, cut=cut))
        nsec = ServedRRset(dnssec.NSEC, self._nsec_ttl_seconds, (rdata,))
        signed = [rrset for rrset in real if not cut or rrset.type == dnssec.DS]
        signatures = self._signatures(owner, [*signed, nsec], before)
        return tuple(sorted([*plain, nsec, *signatures], key=lambda rrset: rrset.type))

    def zone(self, zone: ServedZone) -> ServedZone:
        soa = ServedRRset(dnssec.SOA, zone.soa_ttl_seconds, (zone.soa_rdata,))
        return msgspec.structs.replace(zone, soa_rrsigs=self._sign(zone.apex, soa))

    def renew_us(self, rrsets: Iterable[ServedRRset]) -> int:
        """When the first of these signatures is to be made again: with others of its round."""
        ends = [
            dnssec.expiration(rdata)
            for rrset in rrsets
            if rrset.type == dnssec.RRSIG
            for rdata in rrset.rdatas
        ]
        return -((RENEW_SECONDS - min(ends)) // ROUND_SECONDS) * ROUND_SECONDS * _US

    def _signatures(
        self, owner: bytes, rrsets: Iterable[ServedRRset], before: Sequence[ServedRRset]
    ) -> list[ServedRRset]:
        """The RRSIGs of RRsets, by their TTL: RFC 4035 §2.2 has it agree with the covered RRset's."""
        kept = self._kept(owner, before)
        by_ttl: dict[int, list[bytes]] = {}
        for rrset in rrsets:
            by_ttl.setdefault(rrset.ttl_seconds, []).extend(kept.get(rrset) or self._sign(owner, rrset))
        return [
            ServedRRset(dnssec.RRSIG, ttl_seconds, tuple(sorted(rdatas)))
            for ttl_seconds, rdatas in by_ttl.items()
        ]

    def _kept(self, owner: bytes, before: Sequence[ServedRRset]) -> Mapping[ServedRRset, Sequence[bytes]]:
        """RRsets as they were, with their signatures, where these are of our keys and last long enough."""
        found: dict[int, list[bytes]] = {}
        ends = self._now_seconds + RENEW_SECONDS
        for rrset in before:
            if rrset.type == dnssec.RRSIG:
                for rdata in rrset.rdatas:
                    if dnssec.expiration(rdata) > ends:
                        found.setdefault(dnssec.covered(rdata), []).append(rdata)
        return {
            rrset: found[rrset.type]
            for rrset in before
            if rrset.type in found
            and sorted(map(dnssec.tag_of_rrsig, found[rrset.type])) == self._tags(owner, rrset.type)
            and all(dnssec.original_ttl(rdata) == rrset.ttl_seconds for rdata in found[rrset.type])
        }

    def _keys(self, owner: bytes, type_: int) -> Sequence[SigningKey]:
        is_of_keys = type_ in dnssec.OF_KEYS and owner == self._apex
        return self._for_keys if is_of_keys else self._for_zone

    def _tags(self, owner: bytes, type_: int) -> list[int]:
        return sorted([key.tag for key in self._keys(owner, type_)])

    def _sign(self, owner: bytes, rrset: ServedRRset) -> tuple[bytes, ...]:
        now, ttl_seconds = self._now_seconds, rrset.ttl_seconds
        end = now + VALID_SECONDS - zlib.crc32(owner) % JITTER_SECONDS
        found = []
        for key in self._keys(owner, rrset.type):
            head = dnssec.rrsig_head(
                owner, rrset.type, ttl_seconds, now - SKEW_SECONDS, end, key.tag, self._apex
            )
            octets = dnssec.to_sign(head, owner, rrset.type, ttl_seconds, rrset.rdatas)
            found.append(head + key.sign(octets))
        return tuple(sorted(found))


class Owner(NamedTuple):
    """A name under change: what it was served with, signatures included, and what its records say now."""

    owner: bytes
    before: tuple[ServedRRset, ...]
    plain: tuple[ServedRRset, ...]


class ZoneSigning:
    """The signed side of one change of a zone. `settle` once with every changed name, then `sign` each.

    Before that `is_hidden` tells of names what the zone serves, and those changed ones that it was told of.

    `signer` is None while nothing is signed.
    """

    def __init__(self, tx: Transaction, zone_id: str, apex: bytes, signer: Signer | None) -> None:
        self._tx = tx
        self._zone_id = zone_id
        self._apex = apex
        self._signer = signer
        self._plain: dict[bytes, tuple[ServedRRset, ...]] = {}

    def note(self, one: Owner) -> None:
        """Take what a changed name serves."""
        self._plain[one.owner] = one.plain

    def is_hidden(self, owner: bytes) -> bool:
        """Whether a delegation above hides a name."""
        above = names.parent(owner)
        while above != self._apex:
            if is_cut(self._plain_of(above)):
                return True
            above = names.parent(above)
        return False

    def settle(self, changed: Iterable[Owner]) -> list[Owner]:
        """Bring the chain up to date. Returns other names that have to be signed again: those before a name
        that came or went, and those below a delegation that did.
        """
        owners = list(changed)
        self._plain.update({one.owner: one.plain for one in owners})
        others: dict[bytes, None] = {}
        wanted = {one.owner: bool(one.plain) for one in owners}
        for one in owners:
            if one.owner != self._apex and is_cut(one.before) != is_cut(one.plain):
                below = self._below(one.owner)
                others.update(dict.fromkeys(below))
                wanted.update({owner: bool(self._plain_of(owner)) for owner in below})
        moved = [self._place(owner) for owner, is_wanted in wanted.items() if self._move(owner, is_wanted)]
        if self._signer is not None:
            for place in moved:
                others[self.owner_at(signing.before(self._tx, self._zone_id, place))] = None
        known = {one.owner for one in owners}
        return self.again(owner for owner in others if owner not in known)

    def sign(self, one: Owner) -> tuple[ServedRRset, ...]:
        """What a name serves. Notes when its signatures are to be renewed."""
        if self._signer is None:
            return one.plain
        place = self._place(one.owner)
        behind = signing.behind(self._tx, self._zone_id, place)
        if behind is None:
            return one.plain
        rrsets = self._signer.name(one.owner, one.plain, one.before, self.owner_at(behind))
        renew_us = self._signer.renew_us(rrsets)
        signing.put_name(self._tx, self._zone_id, place, renew_us, self._signer.tag)
        return rrsets

    def zone(self, zone: ServedZone) -> ServedZone:
        return zone if self._signer is None else self._signer.zone(zone)

    def again(self, owners: Iterable[bytes]) -> list[Owner]:
        """Names whose signatures have to be made again, as they are served."""
        wanted = list(owners)
        keys = [(served.KIND_NAME, owner.hex()) for owner in wanted]
        documents = self._tx.newest_of(self._zone_id, keys)
        return list(map(self._as_served, wanted, documents))

    def owner_at(self, place: bytes) -> bytes:
        return dnssec.relative_of(place) + self._apex

    def _place(self, owner: bytes) -> bytes:
        return dnssec.place(owner[: len(owner) - len(self._apex)])

    def _move(self, owner: bytes, is_wanted: bool) -> bool:
        """Put a name into the chain or take it out; returns whether that changed the chain."""
        place = self._place(owner)
        if owner == self._apex or (is_wanted and not self.is_hidden(owner)):
            return signing.add_name(self._tx, self._zone_id, place)
        return signing.remove_name(self._tx, self._zone_id, place)

    def _below(self, owner: bytes) -> list[bytes]:
        """The names below one that have records."""
        found = records.names_below(self._tx, self._zone_id, names.text_from_wire(owner))
        return [names.wire_from_text(name) for name in found]

    def _plain_of(self, owner: bytes) -> tuple[ServedRRset, ...]:
        if owner in self._plain:
            return self._plain[owner]
        (one,) = self.again((owner,))
        return one.plain

    def _as_served(self, owner: bytes, document: bytes | None) -> Owner:
        before = served.decode_name(document).rrsets if document else ()
        if owner not in self._plain:
            self._plain[owner] = without_signatures(before)
        return Owner(owner, before, self._plain[owner])


def signer_of(
    reader: Reader, seal: Seal, zone_id: str, apex: bytes, nsec_ttl_seconds: int, now_us: int
) -> Signer:
    """Raises KeysSealed."""
    rows = signing.keys(reader, zone_id)
    (key,) = seal.open_all([row for row in rows if keyset.signs_zone(row)])
    for_keys = seal.open_all([row for row in rows if keyset.signs_keys(row)])
    return Signer(apex, key, for_keys, nsec_ttl_seconds, now_us)
