"""The algorithm of RFC 1034 §4.3.2 over all zones: the answer for a name and a type.

Owns  aliases, wildcards, referrals with glue, denials, minimal ANY, DS at the parent's side.
Not   packets, EDNS, sizes (`answer`); taking changes (`table`).

Outcomes are computed on demand and cached until the next change. An outcome depends on the question only by
the offset of the name at which it was found, so one referral is used for every name below its cut and one
wildcard for every name it covers, per offset.
"""

import math
from collections.abc import Iterable
from itertools import chain
from typing import Final

from edgestead.dns import node, wire
from edgestead.dns.kept import Kept
from edgestead.dns.outcome import AA, NOERROR, NOT_A_ZONE, NOT_ALLOWED, NXDOMAIN, SERVFAIL, Outcome
from edgestead.dns.own import NONE, OwnNames
from edgestead.dns.zone import WILDCARD, Zone

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

Key = bytes | tuple[bytes, bytes, int]
"""Name and type; or an encloser or cut with a type, or none, and its offset in the question."""


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


def lookup(view: View, zone: Zone, name: bytes, kind: bytes) -> Outcome:
    """The outcome of a valid, lower-case `name` of `zone` and a type (with class IN, as wire)."""
    if kind in _TRANSFERS and name not in view.zones:
        return NOT_A_ZONE
    if kind == _AXFR:
        return NOT_ALLOWED
    if kind == _IXFR:
        kind = _SOA  # over UDP our serial is the answer; the client gets the rest over TCP (RFC 1995 §4)
    if kind == _DS:
        zone = _parent_side(view, zone, name)
    at = len(name) - len(zone.apex)
    relative = name[:at]
    held = zone.names.get(relative)
    cut = _cut(zone, relative, kind)
    if cut is not None:
        return _referral(view, zone, cut, _QUESTION_AT + at - len(cut))
    if held is None and kind == _DS and name in view.zones:
        held = b""  # the name exists: as the apex of another zone of ours
    if held is None:
        return missing(view, zone, name, at, kind)
    return _at_node(view, zone, name, held, kind)


def missing(view: View, zone: Zone, name: bytes, at: int, kind: bytes) -> Outcome:
    """The outcome of a name that does not exist in the zone with its apex at offset `at`, for a plain type.

    The fastest path of this room, because floods of random names use it.
    """
    names = zone.names
    encloser = name[name[0] + 1 : at]
    while encloser not in names:
        encloser = encloser[encloser[0] + 1 :]
    if encloser and zone.cuts and (cut := zone.cut_above(encloser)) is not None:
        return _referral(view, zone, cut, _QUESTION_AT + at - len(cut))
    if encloser in zone.wildcards:
        return _at_wildcard(view, zone, name, encloser, kind)
    return (zone.denials.get(at) or denials(zone, at))[0]


def _cut(zone: Zone, relative: bytes, kind: bytes) -> bytes | None:
    """The delegation that covers the name, if any. None for DS at the cut: it belongs to the parent."""
    cut = zone.cut_above(relative) if zone.cuts else None
    return None if cut == relative and kind == _DS else cut


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


def _at_node(view: View, zone: Zone, name: bytes, held: bytes, kind: bytes) -> Outcome:
    """The answer of a name that exists."""
    key = name + kind
    kept = view.outcomes.get(key)
    if kept is not None:
        return kept
    outcome, _ = _build(view, zone, name, name, held, kind)
    view.outcomes.keep(key, outcome, len(outcome.tail))
    return outcome


def _at_wildcard(view: View, zone: Zone, name: bytes, encloser: bytes, kind: bytes) -> Outcome:
    """The answer that the wildcard below `encloser` gives for `name`."""
    suffix = encloser + zone.apex
    key = (suffix, kind, len(name) - len(suffix))
    kept = view.outcomes.get(key)
    if kept is not None:
        return kept
    held = zone.names[WILDCARD + encloser]
    outcome, reusable = _build(view, zone, name, suffix, held, kind)
    if reusable:
        view.outcomes.keep(key, outcome, len(outcome.tail))
    return outcome


def _build(
    view: View, zone: Zone, name: bytes, suffix: bytes, held: bytes, kind: bytes
) -> tuple[Outcome, bool]:
    """The outcome of `name` from a node, and whether every name with `suffix` at the same offset has the
    same.

    `suffix` is the whole name, or the encloser of the wildcard that matches it.
    """
    exact = suffix == name
    if kind == _ANY and held:
        # One RRset is enough, the smallest is best (RFC 8482 §4.1); a mark only if there is no other.
        kind = min(node.rrsets(held), key=_octets)[0]
    tail = _tail(suffix, _QUESTION_AT + len(name) - len(suffix))
    found = None if node.is_mark(kind) else node.rrset(held, kind)
    if found is None and kind in _WAIT_FOR_ADDRESSES and node.rrset(held, node.PENDING_KEY):
        return _UNKNOWN_YET, True
    if found is not None:
        return _direct(view, zone, tail, found, kind, exact=exact), True
    if kind != _ANY and node.rrset(held, _CNAME) is not None:
        aliases = _Chain(view, tail, name, suffix, kind)
        return aliases.follow(zone, held), aliases.reusable
    return denials(zone, len(name) - len(zone.apex))[1 if exact else 2], True


def _octets(rrset: tuple[bytes, int, bytes]) -> float:
    return math.inf if node.is_mark(rrset[0]) else len(rrset[2])


class _Chain:
    """Following aliases over our zones until something else is found (RFC 1034 §3.6.2).

    At most ALIASES_MAX; a loop ends where it closes. The rcode is the last name's (RFC 6604 §2.1).
    `reusable` becomes false when an alias leads back below the wildcard: where such a loop closes depends on
    the first labels of the question.
    """

    def __init__(self, view: View, tail: wire.Tail, name: bytes, suffix: bytes, kind: bytes) -> None:
        self._view, self._tail, self._kind = view, tail, kind
        self._exact = suffix == name
        self._suffix = suffix
        self._seen = {name}
        self._an = 0
        self.reusable = True

    def follow(self, zone: Zone, held: bytes) -> Outcome:
        owner: bytes | None = None
        for _ in range(ALIASES_MAX):
            rrs = (node.rrset(held, _CNAME) or (0, b""))[1]
            self._an += self._tail.add(owner, rrs)
            owner = next(wire.records(rrs))[2].lower()
            found = self._view.zone_of(owner)
            if not self._exact and wire.below(owner, self._suffix) is not None:
                self.reusable = False
            if owner in self._seen or found is None:
                break
            self._seen.add(owner)
            zone = found if self._kind != _DS else _parent_side(self._view, found, owner)
            relative = owner[: len(owner) - len(zone.apex)]
            cut = _cut(zone, relative, self._kind)
            if cut is not None:
                return self._delegated(zone, cut)
            step = self._node(zone, relative)
            if step is None:
                return self._denied(zone, NXDOMAIN)
            answer = node.rrset(step, self._kind)
            if answer is not None:
                return self._found(zone, owner, answer[1])
            if self._kind in _ADDRESSES and node.rrset(step, node.PENDING_KEY) is not None:
                break
            if node.rrset(step, _CNAME) is None:
                return self._denied(zone, NOERROR)
            held = step
        return Outcome(AA, bytes(self._tail), (self._an, 0, 0), steady=self._exact)

    def _found(self, zone: Zone, owner: bytes, rrs: bytes) -> Outcome:
        self._an += self._tail.add(owner, rrs)
        glue = _glue(self._view, zone, _APEX, rrs) if self._kind == _NS else ()
        return self._with_glue(0, glue)

    def _with_glue(self, ns: int, glue: Iterable["Glue"]) -> Outcome:
        """The answer with addresses that may be left out."""
        shorter = Outcome(AA, bytes(self._tail), (self._an, ns, 0), steady=self._exact)
        ar = sum(self._tail.add(*address) for address in chain(*glue))
        if not ar:
            return shorter
        return Outcome(AA, bytes(self._tail), (self._an, ns, ar), steady=self._exact, shorter=shorter)

    def _node(self, zone: Zone, relative: bytes) -> bytes | None:
        held = zone.names.get(relative)
        if held is None and self._kind == _DS and relative + zone.apex in self._view.zones:
            return b""
        if held is None:
            held = zone.names.get(WILDCARD + zone.encloser(relative))
        return held

    def _denied(self, zone: Zone, rcode: int) -> Outcome:
        self._tail.add(zone.apex, zone.soa_denial)
        steady = self._exact and rcode == NOERROR
        return Outcome(AA | rcode, bytes(self._tail), (self._an, 1, 0), steady=steady)

    def _delegated(self, zone: Zone, cut: bytes) -> Outcome:
        rrs = _delegation(zone, cut)
        ns = self._tail.add(cut + zone.apex, rrs)
        return self._with_glue(ns, _glue(self._view, zone, cut, rrs))


def _direct(
    view: View, zone: Zone, tail: wire.Tail, found: tuple[int, bytes], kind: bytes, *, exact: bool
) -> Outcome:
    """The RRset of the question; for our own NS also the addresses of their names."""
    an, rrs = found
    tail.add(None, rrs)
    shorter, ar = None, 0
    if kind == _NS:
        shorter = Outcome(AA, bytes(tail), (an, 0, 0), steady=exact)
        ar = sum(tail.add(*glue) for glue in chain(*_glue(view, zone, _APEX, rrs)))
    return Outcome(AA, bytes(tail), (an, 0, ar), steady=exact, shorter=shorter)


def _referral(view: View, zone: Zone, cut: bytes, offset: int) -> Outcome:
    """The cut's NS and the addresses that we have for them; AA is clear (RFC 1034 §4.3.2 3b)."""
    suffix = cut + zone.apex
    key = (suffix, _REFERRAL, offset)
    kept = view.outcomes.get(key)
    if kept is None:
        kept = _build_referral(view, zone, cut, suffix, offset)
        view.outcomes.keep(key, kept, len(kept.tail))
    return kept


def _build_referral(view: View, zone: Zone, cut: bytes, suffix: bytes, offset: int) -> Outcome:
    tail, rrs = _tail(suffix, offset), _delegation(zone, cut)
    ns = tail.add(suffix, rrs)
    inside, beside = _glue(view, zone, cut, rrs)
    needed = sum(tail.add(*glue) for glue in inside)
    shorter = Outcome(NOERROR, bytes(tail), (0, ns, needed)) if beside else None
    more = sum(tail.add(*glue) for glue in beside)
    return Outcome(NOERROR, bytes(tail), (0, ns, needed + more), shorter=shorter)


def _delegation(zone: Zone, cut: bytes) -> bytes:
    return (node.rrset(zone.names[cut], _NS) or (0, b""))[1]


Glue = list[tuple[bytes, bytes]]


def _glue(view: View, zone: Zone, cut: bytes, ns_rrs: bytes) -> tuple[Glue, Glue]:
    """Addresses of name servers, as (owner, ready records): those below the cut, which a resolver cannot do
    without (RFC 9471 §3.1), and those elsewhere in the zone (§3.2)."""
    inside: Glue = []
    beside: Glue = []
    for _, _, rdata in wire.records(ns_rrs):
        target = rdata.lower()
        relative = wire.below(target, zone.apex)
        if relative is None or view.zone_of(target) is not zone:
            continue  # outside our authority, or in another zone of ours
        held = _node_or_wildcard(zone, relative)
        found = [(target, rrset[1]) for kind in _ADDRESSES if held and (rrset := node.rrset(held, kind))]
        (inside if wire.below(relative, cut) is not None else beside).extend(found)
    return inside, beside


def _node_or_wildcard(zone: Zone, relative: bytes) -> bytes | None:
    """The node of a name, including glue below a cut; else the wildcard that covers it."""
    held = zone.names.get(relative)
    if held is None and zone.cut_above(relative) is None:
        held = zone.names.get(WILDCARD + zone.encloser(relative))
    return held
