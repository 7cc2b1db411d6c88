"""Everything that validating resolvers may have in their caches of one zone, at every moment.

A resolver validates what it got at one time with a DNSKEY RRset of another time and a DS RRset of a third
one, each as old as its TTL allows, from a secondary as late as its SOA allows. So of each of the three a
history is kept, and every combination of versions that may be alive has to hold: a DS leads to a DNSKEY that
signs the DNSKEYs, and each signature of the zone comes from a DNSKEY.
"""

from functools import lru_cache
from typing import NamedTuple

import dns.dnssec
import dns.name

from edgestead.dns import node, wire
from edgestead.dns.signed import find, parts
from edgestead.model import dnssec

SECOND_US = 1_000_000
TTL_SECONDS_MAX = 86_400  # of records, and of a DS
PARENT_LAG_SECONDS = 3_600
KEYS_TTL_SECONDS = 3_600
ZONE_LAG_SECONDS = 10_000 + 2_400  # refresh and retry of a zone's default SOA
UNSIGNED = 0
DNSKEY_KEY = dnssec.DNSKEY.to_bytes(2, "big") + b"\0\x01"
NAMES_KEPT = 4_096  # whose signatures are read once: most of a zone's stay from one look to the next


class Bogus(AssertionError):
    """A resolver may have what does not validate."""


class Keys(NamedTuple):
    """A DNSKEY RRset: the DS of each key that signs it, and the tags of all."""

    anchors: frozenset[bytes]
    tags: frozenset[int]


class Version:
    """What was served from one time on, until the next version."""

    def __init__(self, what):
        self.what = what
        self.end_us = None


class History:
    def __init__(self, seconds):
        self._us = seconds * SECOND_US
        self._versions = []

    def is_now(self, what, now_us):
        if self._versions and self._versions[-1].what == what:
            return
        if self._versions:
            self._versions[-1].end_us = now_us
        self._versions.append(Version(what))

    def alive(self, now_us):
        """What a cache may have."""
        self._versions = [
            one for one in self._versions if one.end_us is None or now_us - one.end_us <= self._us
        ]
        return [one.what for one in self._versions]

    @property
    def newest(self):
        return self._versions[-1].what


class Caches:
    """Of the zone `apex` of a Signed world. `look` after each thing that happened."""

    def __init__(self, signed, apex):
        self._signed = signed
        self._apex = dns.name.from_text(apex)
        self._wire = self._apex.to_wire()
        self.ds = History(TTL_SECONDS_MAX + PARENT_LAG_SECONDS)
        self.keys = History(KEYS_TTL_SECONDS + ZONE_LAG_SECONDS)
        self.tags = History(TTL_SECONDS_MAX + ZONE_LAG_SECONDS)
        self._valid = {}
        self.parent_has(frozenset())

    def parent_has(self, ds):
        self.ds.is_now(ds, self._signed.now_us)

    def look(self):
        """Take what is served now, and judge all that caches may have. Raises Bogus."""
        now_us = self._signed.now_us
        zone = self._signed.table.view.zones[self._wire]
        if zone.signed:
            self.keys.is_now(self._served_keys(zone), now_us)
            self.tags.is_now(self._tags(zone, now_us), now_us)
        else:
            self.keys.is_now(Keys(frozenset(), frozenset()), now_us)
            self.tags.is_now(frozenset((UNSIGNED,)), now_us)
        for ds in self.ds.alive(now_us):
            if ds:
                for keys in self.alive_keys(now_us):
                    self._check(ds, keys, now_us)

    def alive_keys(self, now_us):
        return self.keys.alive(now_us)

    def alive_tags(self, now_us):
        return self.tags.alive(now_us)

    def _check(self, ds, keys, now_us):
        if not ds & keys.anchors:
            raise Bogus("a DS leads to no DNSKEY that signs the DNSKEYs")
        for tags in self.alive_tags(now_us):
            if not tags <= keys.tags:
                raise Bogus(f"signatures of {sorted(tags - keys.tags)} come from no DNSKEY")

    def _served_keys(self, zone):
        """The DNSKEY RRset, its signatures verified; as long as these records stay, so do they."""
        held = node.rrset(zone.names[b""], DNSKEY_KEY), find(zone.signatures.entries[b""], DNSKEY_KEY)
        if held not in self._valid:
            answer = self._signed.asker()(self._apex, "DNSKEY", want_dnssec=True, payload=4096).answer
            self._valid = {held: self._verified(*answer)}
        return self._valid[held]

    def _verified(self, keys, signatures):
        now, known = self._signed.now_us // SECOND_US, {self._apex: keys}
        for signature in signatures:
            dns.dnssec.validate_rrsig(keys, signature, known, now=now)
        by_tag = {dns.dnssec.key_id(key): key for key in keys}
        if len(by_tag) != len(keys):
            raise Bogus("two keys have one tag")
        signers = {signature.key_tag for signature in signatures}
        anchors = frozenset(dnssec.ds(self._wire, by_tag[tag].to_wire()) for tag in signers)
        return Keys(anchors, frozenset(by_tag))

    def _tags(self, zone, now_us):
        """The keys that the zone's signatures are of; those of the keys' own RRsets apart."""
        soa = next(wire.records(zone.signatures.soa[1]))[2]
        end, tags = dnssec.expiration(soa), {dnssec.tag_of_rrsig(soa)}
        for entry in zone.signatures.entries.values():
            end_here, tags_here = _of_name(entry)
            end = min(end, end_here)
            tags |= tags_here
        if end * SECOND_US < now_us + TTL_SECONDS_MAX * SECOND_US:
            raise Bogus("a signature ends while it is cached")
        return frozenset(tags)


@lru_cache(NAMES_KEPT)
def _of_name(entry):
    """When the first signature of a name ends, and the keys that they are of; those of keys' RRsets apart."""
    signatures = [
        (int.from_bytes(key[:2], "big"), rdata)
        for key, _, records in parts(entry)
        for kind, _, rdata in wire.records(records)
        if kind == dnssec.RRSIG
    ]
    end = min(dnssec.expiration(rdata) for _, rdata in signatures)
    tags = {dnssec.tag_of_rrsig(rdata) for kind, rdata in signatures if kind not in dnssec.OF_KEYS}
    return end, frozenset(tags)
