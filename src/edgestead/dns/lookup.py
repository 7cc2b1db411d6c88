"""The algorithm of RFC 1034 §4.3.2 over all zones: the answer for a name and a type.

Owns  aliases, DNAME (RFC 6672), wildcards, referrals with glue, denials, minimal ANY, DS at the parent's
      side; in a signed zone the signatures and proofs for who wants them (RFC 4035 §3.1).
Not   packets, EDNS, sizes (`answer`); taking changes (`table`); the records of proofs (`signed`).

Outcomes are computed on demand and cached until the next change. An outcome depends on the question only by
the offset of the name at which it was found, so one referral is used for every name below its cut and one
wildcard for every name it covers, per offset. With proofs it also depends on the gap between two names of the
zone in which the question's name is: every name of one gap has the same.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from edgestead.dns import node, wire
from edgestead.dns.kept import Kept
from edgestead.dns.outcome import (
    AA,
    NOERROR,
    NOT_A_ZONE,
    NOT_ALLOWED,
    NOT_READY,
    NXDOMAIN,
    SERVFAIL,
    YXDOMAIN,
    Outcome,
)
from edgestead.dns.own import NONE, OwnNames
from edgestead.dns.signed import NSEC_KEY, RRSIG_KEY, Chain, HashedChain, Records, asked, find
from edgestead.dns.zone import DNAME_KEY, WILDCARD, Zone, redirects
from edgestead.model.limits import NAME_OCTETS_MAX

ALIASES_MAX: Final = 16  # CNAMEs in a chain; a loop ends where it closes
_DENIALS_PER_ZONE_MAX: Final = 32
_QUESTION_AT: Final = 12
_APEX: Final = b""
_TYPE_AND_CLASS_OCTETS: Final = 4


def _kind(number: int) -> bytes:
    return number.to_bytes(2, "big") + wire.IN.to_bytes(2, "big")


_CNAME: Final = _kind(wire.CNAME)
_NS: Final = _kind(wire.NS)
_DS: Final = _kind(wire.DS)
_ANY: Final = _kind(wire.ANY)
_SOA: Final = _kind(wire.SOA)
_AXFR: Final = _kind(wire.AXFR)
_IXFR: Final = _kind(wire.IXFR)
_TRANSFERS: Final = (_AXFR, _IXFR)
PLAIN: Final = frozenset(map(_kind, range(1, 256))) - {_ANY, _DS, _AXFR, _IXFR}
"""Types, with class IN, whose questions need nothing but the zone; other types may be as plain, or not."""
_REFERRAL: Final = b""
_ADDRESSES: Final = (_kind(wire.A), _kind(wire.AAAA))
_WAIT_FOR_ADDRESSES: Final = (*_ADDRESSES, node.PENDING_KEY)
_UNKNOWN_YET: Final = Outcome(SERVFAIL)
_LOST: Final = Outcome(SERVFAIL, extended_error=NOT_READY)

Key = (
    bytes | tuple[bytes, bytes, int] | tuple[bytes, bytes, int, bytes] | tuple[int, bytes, tuple[bytes, ...]]
)
"""Name and type, in a signed zone with a mark of whether it has signatures; or an encloser or cut with a
type, or none, its offset in the question, and the gap of the question's name; or that of the apex with the
apex and the owners of the proofs.
"""
_PLAIN, _SECURE = b"\0", b"\1"


class View:
    """All served zones by apex, and the outcomes computed from them. A change replaces the view.

    `own` are names that are answered where none of these zones contains them.
    """

    __slots__ = ("outcomes", "own", "zones")

    def __init__(self, zones: dict[bytes, Zone], own: OwnNames = NONE) -> None:
        self.zones = zones
        self.own = own
        self.outcomes: Kept[Key, Outcome] = Kept()

    def zone_of(self, name: bytes) -> Zone | None:
        """The zone with the longest apex at or above a valid, lower-case name."""
        zones, above = self.zones, name
        while (found := zones.get(above)) is None and len(above) > 1:
            above = wire.parent(above)
        return self.own.get(name) if found is None else found


def lookup(view: View, zone: Zone, name: bytes, kind: bytes, secure: bool = False) -> Outcome:
    """The outcome of a valid, lower-case `name` of `zone` and a type (with class IN, as wire); `secure`: with
    signatures and proofs, where the zone is signed.
    """
    if kind in _TRANSFERS and name not in view.zones:
        return NOT_A_ZONE
    if kind == _AXFR:
        return NOT_ALLOWED
    if kind == _IXFR:
        kind = _SOA  # over UDP our serial is the answer; the client gets the rest over TCP (RFC 1995 §4)
    if kind == _DS:
        zone = _parent_side(view, zone, name)
    if not zone.names:
        return _LOST
    secure = secure and zone.signed
    at = len(name) - len(zone.apex)
    relative = name[:at]
    held = zone.names.get(relative)
    cut = _cut(zone, relative, kind)
    if cut is not None:
        return _beyond(view, zone, name, cut, kind, secure)
    if held is None and kind == _DS and name in view.zones:
        held = b""  # the name exists: as the apex of another zone of ours
    if held is None:
        return missing(view, zone, name, at, kind, secure)
    return _at_node(view, zone, name, held, kind, secure)


def missing(view: View, zone: Zone, name: bytes, at: int, kind: bytes, secure: bool = False) -> Outcome:
    """The outcome of a name that does not exist in the zone with its apex at offset `at`, for a plain type.
    `secure` only for a signed zone.

    The fastest path of this room, because floods of random names use it.
    """
    names = zone.names
    if not names:
        return _LOST
    encloser = name[name[0] + 1 : at]
    while encloser not in names:
        encloser = encloser[encloser[0] + 1 :]
    if zone.cuts and (cut := zone.cut_above(encloser)) is not None:
        return _beyond(view, zone, name, cut, kind, secure)
    if encloser in zone.wildcards:
        return _at_wildcard(view, zone, name, encloser, kind, secure)
    if secure:
        return _denied(view, zone, at, NXDOMAIN, _chain(zone).absent(name[:at], encloser))
    return (zone.denials.get(at) or denials(zone, at))[0]


def _cut(zone: Zone, relative: bytes, kind: bytes) -> bytes | None:
    """The delegation or DNAME that covers the name, if any. None for DS at a delegation, which belongs to the
    parent, and for the name of a DNAME itself (RFC 6672 §2.3).
    """
    cut = zone.cut_above(relative) if zone.cuts else None
    if cut == relative and (kind == _DS or redirects(zone.names[relative])):
        return None
    return cut


def _beyond(view: View, zone: Zone, name: bytes, cut: bytes, kind: bytes, secure: bool) -> Outcome:
    """What is said of a name where the zone's own end: who has it, or which name it is looked up as."""
    if not redirects(zone.names[cut]):
        return _referral(view, zone, cut, _QUESTION_AT + len(name) - len(cut + zone.apex), secure)
    # Not kept: there are as many as names that somebody can think of.
    return _Chain(view, _tail(name, _QUESTION_AT), name, cut + zone.apex, kind, secure).redirect(zone, cut)


def _parent_side(view: View, zone: Zone, name: bytes) -> Zone:
    """DS of an apex belongs to the zone above it, when that is here too (RFC 4035 §3.1.4.1)."""
    if name != zone.apex or len(name) == 1:
        return zone
    return view.zone_of(wire.parent(name)) or zone


def denials(zone: Zone, at: int) -> tuple[Outcome, Outcome, Outcome]:
    """NXDOMAIN, NODATA of an existing name, NODATA of a wildcard; `at` is the apex's offset in the name."""
    found = zone.denials.get(at)
    if found is None:
        tail = _tail(zone.apex, _QUESTION_AT + at)
        tail.add(zone.apex, zone.soa_denial)
        soa, counts = bytes(tail), (0, 1, 0)
        found = (
            Outcome(AA | NXDOMAIN, soa, counts),
            Outcome(AA, soa, counts, steady=True),
            Outcome(AA, soa, counts),
        )
        if len(zone.denials) >= _DENIALS_PER_ZONE_MAX:
            zone.denials.clear()
        zone.denials[at] = found
    return found


def _tail(suffix: bytes, offset: int) -> wire.Tail:
    """An empty tail behind a question whose name has `suffix` at `offset` of the message."""
    tail = wire.Tail(offset + len(suffix) + _TYPE_AND_CLASS_OCTETS)
    tail.offer(suffix, offset)
    return tail


def _chain(zone: Zone) -> Chain | HashedChain:
    assert zone.signatures is not None
    return zone.signatures.chain


def _no_data(zone: Zone, relative: bytes, source: bytes) -> tuple[bytes, ...]:
    """The owners of the records that say that a name has not the type; `source` answers for it."""
    if source == relative:
        return _chain(zone).has_none(relative)
    return _chain(zone).wildcard_has_none(relative, source[len(WILDCARD) :])


def _denied(view: View, zone: Zone, at: int, rcode: int, owners: tuple[bytes, ...]) -> Outcome:
    """A signed denial; `owners` are those of its NSEC records."""
    key = (at << 4 | rcode, zone.apex, owners)
    kept = view.outcomes.get(key)
    if kept is None:
        tail = _tail(zone.apex, _QUESTION_AT + at)
        ns = _add_denial(tail, zone, owners)
        kept = Outcome(AA | rcode, bytes(tail), (0, ns, 0))
        view.outcomes.keep(key, kept, len(kept.tail))
    return kept


def _add_denial(tail: wire.Tail, zone: Zone, owners: Iterable[bytes]) -> int:
    """The SOA with the TTL of denials, and NSEC records, all of them signed; returns how many records."""
    assert zone.signatures is not None
    ns = tail.add(zone.apex, zone.soa_denial)
    ns += tail.add(zone.apex, zone.signatures.soa_denial[1])
    return ns + _add_proofs(tail, zone, owners)


def _add_proofs(tail: wire.Tail, zone: Zone, owners: Iterable[bytes]) -> int:
    """What proves it, as far as it is there: between two parts of a transfer a record may not be."""
    assert zone.signatures is not None
    entries, key = zone.signatures.entries, zone.signatures.chain.key
    return sum(tail.add(owner + zone.apex, find(entries.get(owner, b""), key)[1]) for owner in owners)


def _at_node(view: View, zone: Zone, name: bytes, held: bytes, kind: bytes, secure: bool) -> Outcome:
    """The answer of a name that exists."""
    key = name + kind
    if zone.signed:
        key += _SECURE if secure else _PLAIN
    kept = view.outcomes.get(key)
    if kept is not None:
        return kept
    outcome, _ = _build(view, zone, name, name, held, kind, secure)
    view.outcomes.keep(key, outcome, len(outcome.tail))
    return outcome


def _at_wildcard(view: View, zone: Zone, name: bytes, encloser: bytes, kind: bytes, secure: bool) -> Outcome:
    """The answer that the wildcard below `encloser` gives for `name`."""
    suffix = encloser + zone.apex
    key: Key = (suffix, kind, len(name) - len(suffix))
    if secure:
        key = (*key, *_chain(zone).expanded(name[: len(name) - len(zone.apex)], encloser))
    kept = view.outcomes.get(key)
    if kept is not None:
        return kept
    held = zone.names[WILDCARD + encloser]
    outcome, reusable = _build(view, zone, name, suffix, held, kind, secure)
    if reusable:
        view.outcomes.keep(key, outcome, len(outcome.tail))
    return outcome


def _build(
    view: View, zone: Zone, name: bytes, suffix: bytes, held: bytes, kind: bytes, secure: bool
) -> tuple[Outcome, bool]:
    """The outcome of `name` from a node, and whether every name with `suffix` at the same offset has the
    same, in a signed zone if it is in the same gap.

    `suffix` is the whole name, or the encloser of the wildcard that matches it.
    """
    exact = suffix == name
    relative = name[: len(name) - len(zone.apex)]
    source = relative if exact else WILDCARD + suffix[: len(suffix) - len(zone.apex)]
    if kind == _ANY and held:
        # One RRset is enough, the smallest is best (RFC 8482 §4.1); a mark only if there is no other.
        kind = min(node.rrsets(held), key=_octets)[0]
    tail = _tail(suffix, _QUESTION_AT + len(name) - len(suffix))
    found = None if node.is_mark(kind) else node.rrset(held, kind)
    if found is None and kind in _WAIT_FOR_ADDRESSES and node.rrset(held, node.PENDING_KEY):
        return _UNKNOWN_YET, True
    if found is None and kind in (NSEC_KEY, RRSIG_KEY) and zone.signed and zone.signatures is not None:
        records = asked(zone.signatures.entries.get(source, b""), kind)
        found = records if records[0] else None
    if found is not None:
        match = _Match(zone, relative, source, secure)
        return _direct(view, match, tail, found, kind), True
    if kind != _ANY and node.rrset(held, _CNAME) is not None:
        aliases = _Chain(view, tail, name, suffix, kind, secure)
        return aliases.follow(zone, source, held), aliases.reusable
    if secure:
        owners = _no_data(zone, relative, source)
        return _denied(view, zone, len(relative), NOERROR, owners), True
    return denials(zone, len(name) - len(zone.apex))[1 if exact else 2], True


class _Match(NamedTuple):
    """Which name answers for `relative`: itself, or a wildcard."""

    zone: Zone
    relative: bytes
    source: bytes
    secure: bool

    @property
    def exact(self) -> bool:
        return self.relative == self.source

    def signatures(self, kind: bytes) -> Records:
        if not self.secure or self.zone.signatures is None:
            return 0, b""
        return (0, b"") if kind == RRSIG_KEY else self.zone.signatures.of(self.source, kind)

    def proofs(self) -> tuple[bytes, ...]:
        """The owners of the NSEC records that say that only the wildcard answers (RFC 4035 §3.1.3.3)."""
        if not self.secure or self.exact:
            return ()
        return _chain(self.zone).expanded(self.relative, self.source[len(WILDCARD) :])


def _octets(rrset: tuple[bytes, int, bytes]) -> float:
    return math.inf if node.is_mark(rrset[0]) else len(rrset[2])


class _Chain:
    """Following aliases over our zones until something else is found (RFC 1034 §3.6.2).

    At most ALIASES_MAX; a loop ends where it closes. The rcode is the last name's (RFC 6604 §2.1).
    `reusable` becomes false when an alias leads back below the wildcard: where such a loop closes depends on
    the first labels of the question. `secure` adds the signatures of every signed zone on the way.
    """

    def __init__(
        self, view: View, tail: wire.Tail, name: bytes, suffix: bytes, kind: bytes, secure: bool
    ) -> None:
        self._secure = secure
        self._name = name
        self._proofs: dict[tuple[bytes, bytes], Zone] = {}
        self._view, self._tail, self._kind = view, tail, kind
        self._exact = suffix == name
        self._suffix = suffix
        self._seen = {name}
        self._redirected: set[bytes] = set()
        self._an = 0
        self.reusable = True

    def follow(self, zone: Zone, source: bytes, held: bytes) -> Outcome:
        """From the question's name, which is an alias."""
        return self._go_on(self._alias(zone, None, source, held))

    def redirect(self, zone: Zone, cut: bytes) -> Outcome:
        """From the question's name, which is below a DNAME."""
        target = self._substitute(zone, None, cut)
        if target is None:
            return self._too_long()
        if self._kind in (_CNAME, _ANY):
            return Outcome(AA, bytes(self._tail), (self._an, 0, 0))
        return self._go_on(target)

    def _alias(self, zone: Zone, owner: bytes | None, source: bytes, held: bytes) -> bytes:
        """Add a CNAME; returns its target."""
        rrs = (node.rrset(held, _CNAME) or (0, b""))[1]
        self._add(zone, owner, source, _CNAME, rrs)
        return next(wire.records(rrs))[2].lower()

    def _substitute(self, zone: Zone, owner: bytes | None, cut: bytes) -> bytes | None:
        """Add a DNAME and the CNAME that follows from it, which nobody signs (RFC 6672 §3.1, §5.3.1).

        Returns the target; None when that is longer than a name may be.
        """
        rrs = (node.rrset(zone.names[cut], DNAME_KEY) or (0, b""))[1]
        above = cut + zone.apex
        if above not in self._redirected:
            self._redirected.add(above)
            self._add(zone, above, cut, DNAME_KEY, rrs)
        _, ttl_seconds, to = next(wire.records(rrs))
        name = owner or self._name
        target = name[: len(name) - len(above)] + to.lower()
        if len(target) > NAME_OCTETS_MAX:
            return None
        alias = wire.RR_HEAD.pack(wire.QUESTION_OWNER, wire.CNAME, wire.IN, ttl_seconds, len(target)) + target
        self._an += self._tail.add(owner, alias)
        return target

    def _too_long(self) -> Outcome:
        ns = self._prove()  # before the octets are taken
        return Outcome(AA | YXDOMAIN, bytes(self._tail), (self._an, ns, 0))

    def _go_on(self, owner: bytes) -> Outcome:
        for left in reversed(range(ALIASES_MAX)):
            found = self._view.zone_of(owner)
            if not self._exact and wire.below(owner, self._suffix) is not None:
                self.reusable = False
            if owner in self._seen or found is None or not found.names:
                break
            self._seen.add(owner)
            zone = found if self._kind != _DS else _parent_side(self._view, found, owner)
            if not zone.names:
                break
            relative = owner[: len(owner) - len(zone.apex)]
            cut = _cut(zone, relative, self._kind)
            if cut is not None and redirects(zone.names[cut]):
                if not left:
                    break
                target = self._substitute(zone, owner, cut)
                if target is None:
                    return self._too_long()
                owner = target
                continue
            if cut is not None:
                return self._delegated(zone, cut)
            source = self._source(zone, relative)
            step = self._node(zone, relative, source)
            if step is None or not self._is_alias(step):
                return self._ended(zone, owner, relative, source, step)
            if left:
                owner = self._alias(zone, owner, source, step)
        return self._so_far()

    def _is_alias(self, held: bytes) -> bool:
        waits = self._kind in _ADDRESSES and node.rrset(held, node.PENDING_KEY) is not None
        return not waits and node.rrset(held, self._kind) is None and node.rrset(held, _CNAME) is not None

    def _ended(self, zone: Zone, owner: bytes, relative: bytes, source: bytes, held: bytes | None) -> Outcome:
        """The answer with what the last name has; None is a name that does not exist."""
        if held is None:
            return self._denied(zone, NXDOMAIN, relative, source)
        answer = node.rrset(held, self._kind)
        if answer is not None:
            return self._found(zone, owner, source, answer[1])
        if self._kind in _ADDRESSES and node.rrset(held, node.PENDING_KEY) is not None:
            return self._so_far()
        return self._denied(zone, NOERROR, relative, source)

    def _so_far(self) -> Outcome:
        ns = self._prove()
        return Outcome(AA, bytes(self._tail), (self._an, ns, 0), steady=self._exact)

    def _add(self, zone: Zone, owner: bytes | None, source: bytes, kind: bytes, rrs: bytes) -> None:
        """One RRset of the answer; None is the question's name. Its proofs come behind all answers."""
        self._an += self._tail.add(owner, rrs)
        if self._secure and zone.signed:
            name = owner or self._name
            match = _Match(zone, name[: len(name) - len(zone.apex)], source, secure=True)
            self._an += self._tail.add(owner, match.signatures(kind)[1])
            self._proofs.update({(zone.apex, owner): zone for owner in match.proofs()})

    def _prove(self) -> int:
        return sum(_add_proofs(self._tail, zone, (owner,)) for (_, owner), zone in self._proofs.items())

    def _found(self, zone: Zone, owner: bytes, source: bytes, rrs: bytes) -> Outcome:
        self._add(zone, owner, source, self._kind, rrs)
        return self._with_glue(zone, _APEX, rrs if self._kind == _NS else b"")

    def _with_glue(self, zone: Zone, cut: bytes, ns_rrs: bytes, ns: int = 0) -> Outcome:
        """The answer with addresses that may be left out."""
        more = _glue(self._view, zone, cut, ns_rrs, self._secure and zone.signed)
        counts = self._an, ns + self._prove(), 0
        return _with_more(AA, self._tail, counts, more, steady=self._exact)

    def _source(self, zone: Zone, relative: bytes) -> bytes:
        """The name that answers for one: itself, or the wildcard that would."""
        is_here = relative in zone.names or self._is_child(zone, relative)
        return relative if is_here else WILDCARD + zone.encloser(relative)

    def _node(self, zone: Zone, relative: bytes, source: bytes) -> bytes | None:
        """None where nothing answers: also for a name that is itself the asterisk that could have."""
        return zone.names.get(source, b"" if self._is_child(zone, relative) else None)

    def _is_child(self, zone: Zone, relative: bytes) -> bool:
        """Whether the question is for the DS of a zone of ours, whose name its parent need not have."""
        return self._kind == _DS and relative + zone.apex in self._view.zones

    def _denied(self, zone: Zone, rcode: int, relative: bytes, source: bytes) -> Outcome:
        steady = self._exact and rcode == NOERROR
        if not (self._secure and zone.signed):
            ns = self._tail.add(zone.apex, zone.soa_denial) + self._prove()
            return Outcome(AA | rcode, bytes(self._tail), (self._an, ns, 0), steady=steady)
        if rcode == NXDOMAIN:
            owners = _chain(zone).absent(relative, source[len(WILDCARD) :])
        else:
            owners = _no_data(zone, relative, source)
        self._proofs.update({(zone.apex, owner): zone for owner in owners})
        ns = _add_denial(self._tail, zone, ()) + self._prove()
        return Outcome(AA | rcode, bytes(self._tail), (self._an, ns, 0), steady=steady)

    def _delegated(self, zone: Zone, cut: bytes) -> Outcome:
        rrs = _delegation(zone, cut)
        ns = self._tail.add(cut + zone.apex, rrs)
        if self._secure and zone.signed:
            ds = _add_ds(self._tail, zone, cut, cut + zone.apex)
            if not ds:  # the same NSEC may prove that a wildcard led here
                self._proofs.update({(zone.apex, owner): zone for owner in _chain(zone).has_none(cut)})
            ns += ds
        return self._with_glue(zone, cut, rrs, ns)


def _direct(view: View, match: _Match, tail: wire.Tail, found: Records, kind: bytes) -> Outcome:
    """The RRset of the question; for our own NS also the addresses of their names."""
    zone, exact = match.zone, match.exact
    an, rrs = found
    tail.add(None, rrs)
    an += tail.add(None, match.signatures(kind)[1])
    ns = _add_proofs(tail, zone, match.proofs()) if match.secure else 0
    if kind != _NS:
        return Outcome(AA, bytes(tail), (an, ns, 0), steady=exact)
    more = _glue(view, zone, _APEX, rrs, match.secure)
    return _with_more(AA, tail, (an, ns, 0), more, steady=exact)


def _referral(view: View, zone: Zone, cut: bytes, offset: int, secure: bool) -> Outcome:
    """The cut's NS and the addresses that we have for them; AA is clear (RFC 1034 §4.3.2 3b)."""
    suffix = cut + zone.apex
    key = (suffix, _SECURE if secure else _REFERRAL, offset)
    kept = view.outcomes.get(key)
    if kept is None:
        kept = _build_referral(view, zone, cut, suffix, offset, secure)
        view.outcomes.keep(key, kept, len(kept.tail))
    return kept


def _add_child(tail: wire.Tail, zone: Zone, cut: bytes, owner: bytes) -> int:
    """The signed DS of a delegation, or the proof that there is none (RFC 4035 §3.1.4)."""
    return _add_ds(tail, zone, cut, owner) or _add_proofs(tail, zone, _chain(zone).has_none(cut))


def _add_ds(tail: wire.Tail, zone: Zone, cut: bytes, owner: bytes) -> int:
    """0 where the delegation has none."""
    assert zone.signatures is not None
    ds = node.rrset(zone.names[cut], _DS)
    return 0 if ds is None else tail.add(owner, ds[1]) + tail.add(owner, zone.signatures.of(cut, _DS)[1])


def _build_referral(view: View, zone: Zone, cut: bytes, suffix: bytes, offset: int, secure: bool) -> Outcome:
    tail, rrs = _tail(suffix, offset), _delegation(zone, cut)
    ns = tail.add(suffix, rrs)
    if secure:
        ns += _add_child(tail, zone, cut, suffix)
    inside, *more = _glue(view, zone, cut, rrs, secure)
    needed = sum(tail.add(*glue) for glue in inside)
    return _with_more(NOERROR, tail, (0, ns, needed), more)


def _with_more(
    flags: int,
    tail: wire.Tail,
    counts: tuple[int, int, int],
    more: Iterable["Glue"],
    *,
    steady: bool = False,
) -> Outcome:
    """With additional records; where they do not fit they are left out part by part, the last one first."""
    outcome = Outcome(flags, bytes(tail), counts, steady=steady)
    an, ns, ar = counts
    for part in more:
        if part:
            ar += sum(tail.add(*records) for records in part)
            outcome = Outcome(flags, bytes(tail), (an, ns, ar), steady=steady, shorter=outcome)
    return outcome


def _delegation(zone: Zone, cut: bytes) -> bytes:
    return (node.rrset(zone.names[cut], _NS) or (0, b""))[1]


Glue = list[tuple[bytes, bytes]]


def _glue(view: View, zone: Zone, cut: bytes, ns_rrs: bytes, secure: bool) -> tuple[Glue, Glue, Glue]:
    """Addresses of name servers, as (owner, ready records): those below the cut, which a resolver cannot do
    without (RFC 9471 §3.1), and those elsewhere in the zone (§3.2). `secure`: and the signatures of those
    that the zone answers for itself (RFC 4035 §3.1.1); what is below a cut has none.
    """
    inside: Glue = []
    beside: Glue = []
    signatures: Glue = []
    for _, _, rdata in wire.records(ns_rrs):
        target = rdata.lower()
        relative = wire.below(target, zone.apex)
        if relative is None or view.zone_of(target) is not zone:
            continue  # outside our authority, or in another zone of ours
        source = _node_or_wildcard(zone, relative)
        held = zone.names.get(source)
        found = [(target, rrset[1]) for kind in _ADDRESSES if held and (rrset := node.rrset(held, kind))]
        (inside if wire.below(relative, cut) is not None else beside).extend(found)
        if secure and found:
            assert zone.signatures is not None
            of = [zone.signatures.of(source, kind)[1] for kind in _ADDRESSES]
            signatures += [(target, records) for records in of if records]
    return inside, beside, signatures


def _node_or_wildcard(zone: Zone, relative: bytes) -> bytes:
    """The name that has a name's records: itself, glue below a cut too; else the wildcard that covers it."""
    if relative in zone.names or zone.cut_above(relative) is not None:
        return relative
    return WILDCARD + zone.encloser(relative)
