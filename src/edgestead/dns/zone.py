"""One zone's names, and the look-ups of RFC 1034 §4.3.2 in them.

Owns  the names, the empty non-terminals, the cuts, the SOA.
Not   which zone a question belongs to (`table`); building answers (`lookup`).

Names are relative (see `wire`). Two dicts: the node of each name, and the number of children of each name
with children. So a change updates the name and, when it is added or removed, the non-terminals above it.
Nothing that depends on two names is stored: aliases, wildcards and referrals are computed by each look-up.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, cast

from edgestead.dns import node, wire
from edgestead.dns.outcome import Outcome
from edgestead.dns.signed import NONE, Records, Signatures, soa_records
from edgestead.model.dnssec import NSEC3PARAM, Nsec3Params, nsec3_params
from edgestead.model.served import ServedRRset, ServedZone

_Names = tuple[bytes, ...]
Head = tuple[bytes, bytes, bool, _Names, _Names, tuple[Records, Records], bool, bool, _Names]
Frozen = tuple[Head, dict[bytes, bytes], dict[bytes, int], dict[bytes, bytes]]
"""A zone as plain values that `dns.warm` takes: its own facts, its names, how many children they have, their
signatures.
"""

WILDCARD: Final = b"\x01*"
NSEC3PARAM_KEY: Final = NSEC3PARAM.to_bytes(2, "big") + wire.IN.to_bytes(2, "big")
DNAME_KEY: Final = wire.DNAME.to_bytes(2, "big") + wire.IN.to_bytes(2, "big")
_ENDS: Final = (wire.NS, wire.DNAME)
_APEX: Final = b""
_NONE: Final = cast("set[bytes]", frozenset())  # a set costs 200 octets, and most zones need neither


class Zone:
    """The served content of one zone. Changed by one thread at a time.

    `names`, `cuts` (with NS below the apex, or DNAME) and `wildcards` (the names above an asterisk) are
    public for loops in which a call is too expensive; `denials` belongs to `lookup`: its negative outcomes,
    by the offset of the apex in the question.
    `settled`: no name has changed since the SOA, which is the last document of every change, so the zone has
    one consistent serial. `signatures` is None for a zone without any, `signed` whether they are given out:
    from the moment the SOA has its own, which comes when all others are there. `front` is what queries find
    of a private zone, or of a `lost` one, which has no name at all; None for every other.
    """

    __slots__ = (
        "_children",
        "_spoiled",
        "apex",
        "cuts",
        "denials",
        "front",
        "lost",
        "names",
        "settled",
        "signatures",
        "signed",
        "soa_denial",
        "wildcards",
    )

    def __init__(self, apex: bytes) -> None:
        self.apex = apex
        self.names: dict[bytes, bytes] = {_APEX: b""}
        self.cuts = _NONE
        self.wildcards = _NONE
        self.denials: dict[int, tuple[Outcome, Outcome, Outcome]] = {}
        self.settled = False
        self.soa_denial = b""
        self.signatures: Signatures | None = None
        self.signed = False
        self.front: Zone | None = None
        self.lost = False
        self._children: dict[bytes, int] = {}
        self._spoiled = _NONE

    @property
    def answering(self) -> "Zone":
        """What queries find of it."""
        return self.front or self

    @property
    def complete(self) -> bool:
        """A zone is served from the moment it has its SOA."""
        return bool(self.soa_denial)

    @property
    def soa_rdata(self) -> bytes:
        """Of a complete zone."""
        return self.soa_denial[wire.RR_HEAD.size :]

    def relative(self, owner: bytes) -> bytes:
        """The name without the apex. Raises ValueError when the owner is outside the zone or not a valid
        name.
        """
        if wire.read_name(owner, 0) != len(owner):
            raise ValueError("octets after the name")
        relative = wire.below(owner, self.apex)
        if relative is None:
            raise ValueError("the name is outside its zone")
        return relative

    def set_soa(self, served: ServedZone) -> None:
        """Apply the "zone" document. Raises ValueError for an invalid SOA."""
        ttl_seconds, rdata = served.soa_ttl_seconds, served.soa_rdata
        denial_seconds = min(ttl_seconds, int.from_bytes(rdata[-4:], "big"))  # RFC 2308 §3
        denial = ServedRRset(wire.SOA, denial_seconds, (rdata,))
        self.soa_denial = node.pack((denial,))[node.READY :]
        self.denials = {}
        self.settled = True
        soa = [node.pack_rrset(ServedRRset(wire.SOA, ttl_seconds, (rdata,)))]
        self.names[_APEX] = node.join(soa + self._apex_parts()[1])
        signatures = self.signatures
        self.signed = bool(served.soa_rrsigs) and signatures is not None and bool(signatures.entries)
        if signatures is not None:
            signatures.settle(self._nsec3_params())
            signatures.soa = soa_records(served.soa_rrsigs, ttl_seconds)
            signatures.soa_denial = soa_records(served.soa_rrsigs, denial_seconds)
            if not signatures.entries:
                self.signatures = None
        self._show_front(served.private, served.fails or bool(self._spoiled))

    def shows_unsigned(self, served: ServedZone) -> bool:
        """Whether it has this document already, and by that gives no signatures out."""
        if self.signed or served.soa_rrsigs or self.front is not None or served.private or served.fails:
            return False
        soa = node.pack_rrset(ServedRRset(wire.SOA, served.soa_ttl_seconds, (served.soa_rdata,)))
        return self._apex_parts()[0] == [soa]

    @property
    def is_spoiled(self) -> bool:
        return bool(self._spoiled)

    def spoil(self, owner: bytes) -> None:
        """A name that cannot be served: nothing of the zone is, for what it would say is not true."""
        self._spoiled = self._spoiled or set()
        self._spoiled.add(owner)
        self._show_front(is_private=False, is_lost=True)

    def mend(self, owner: bytes) -> None:
        """The name can be served; the zone is from its next document on."""
        if self._spoiled:
            self._spoiled.discard(owner)

    def _show_front(self, is_private: bool, is_lost: bool) -> None:
        """A zone of the apex alone, or of nothing. The same object for as long as there is one."""
        self.lost = is_lost
        if not (is_private or is_lost):
            self.front = None
            return
        self.front = self.front or Zone(self.apex)
        self.front.names = {} if is_lost else {_APEX: self.names[_APEX]}
        self.front.soa_denial, self.front.denials, self.front.settled = self.soa_denial, {}, not is_lost

    def set_apex(self, rrsets: tuple[ServedRRset, ...], entry: bytes = b"") -> None:
        """Set the apex's RRsets other than SOA. `entry` as in `put`."""
        self.settled = False
        self._put_signatures(_APEX, entry)
        self._mark_cut(_APEX, any(rrset.type == wire.DNAME and rrset.rdatas for rrset in rrsets))
        others = [node.pack_rrset(rrset) for rrset in rrsets if rrset.rdatas]
        self.names[_APEX] = node.join(self._apex_parts()[0] + others)

    def _apex_parts(self) -> tuple[list[bytes], list[bytes]]:
        """The packed SOA, if there is one, and the other packed RRsets of the apex."""
        parts = list(node.parts(self.names[_APEX]))
        soa = [part for kind, part in parts if kind == wire.SOA_KEY]
        return soa, [part for kind, part in parts if kind != wire.SOA_KEY]

    def _put_signatures(self, name: bytes, entry: bytes) -> None:
        if self.signatures is None:
            if not entry:
                return
            self.signatures = Signatures(self.apex)
        self.signatures.put(name, entry)

    def _nsec3_params(self) -> Nsec3Params | None:
        """Of the chain that the zone says is whole (RFC 5155 §4)."""
        found = node.rrset(self.names[_APEX], NSEC3PARAM_KEY)
        return nsec3_params(next(wire.records(found[1]))[2]) if found else None

    def put(self, name: bytes, packed: bytes, *, cut: bool, entry: bytes = b"") -> None:
        """Set the node of a name below the apex; b"" removes the name. `entry` are its signatures as
        `signed.pack` makes them.
        """
        self.settled = False
        if entry or self.signatures is not None:
            self._put_signatures(name, entry)
        self._mark_cut(name, cut)
        if packed or name in self._children:
            self._ensure(name)
            self.names[name] = packed
        else:
            self._remove(name)

    def _mark_cut(self, name: bytes, cut: bool) -> None:
        if cut:
            self.cuts = self.cuts or set()
            self.cuts.add(name)
        elif self.cuts:
            self.cuts.discard(name)

    def _ensure(self, name: bytes) -> None:
        """Add the name and the empty non-terminals above it (RFC 4592 §2.2.2)."""
        while name not in self.names:
            self.names[name] = b""
            if name.startswith(WILDCARD):
                self.wildcards = self.wildcards or set()
                self.wildcards.add(name[len(WILDCARD) :])
            name = wire.parent(name)
            self._children[name] = self._children.get(name, 0) + 1

    def _remove(self, name: bytes) -> None:
        """Remove the name, and the empty non-terminals that existed only because of it."""
        while self.names.pop(name, None) is not None:
            if name.startswith(WILDCARD) and self.wildcards:
                self.wildcards.discard(name[len(WILDCARD) :])
            name = wire.parent(name)
            left = self._children[name] - 1
            if left:
                self._children[name] = left
                return
            del self._children[name]
            if name == _APEX or self.names[name]:
                return

    def freeze(self) -> "Frozen":
        """The present content, for `thaw`, independent of later changes. Costs a copy of the references."""
        signatures = self.signatures or Signatures(self.apex)
        soa = (signatures.soa, signatures.soa_denial) if self.signed else (NONE, NONE)
        cuts, wildcards = tuple(self.cuts), tuple(self.wildcards)
        head = (self.apex, self.soa_denial, self.settled, cuts, wildcards, soa)
        return (
            (*head, self.front is not None and not self.lost, self.lost, tuple(self._spoiled)),
            self.names.copy(),
            self._children.copy(),
            signatures.entries.copy(),
        )

    def thaw(self, head: "Head") -> None:
        """Start to load a frozen zone into this new one; `thaw_names` has to follow."""
        _, self.soa_denial, self.settled, cuts, wildcards, soa, is_private, self.lost, spoiled = head
        self.cuts, self.wildcards = set(cuts) or _NONE, set(wildcards) or _NONE
        self._spoiled = set(spoiled) or _NONE
        self.signed = bool(soa[0][0])
        self.front = Zone(self.apex) if is_private or self.lost else None
        if self.signed:
            self.signatures = Signatures(self.apex)
            self.signatures.soa, self.signatures.soa_denial = soa

    def thaw_names(
        self, names: dict[bytes, bytes], children: dict[bytes, int], entries: dict[bytes, bytes]
    ) -> None:
        self.names.update(names)
        self._children.update(children)
        if entries:
            self.signatures = self.signatures or Signatures(self.apex)
            self.signatures.load(entries)

    def thawed(self) -> None:
        """After the last names."""
        if self.signatures is not None:
            self.signatures.settle(self._nsec3_params())
        self._show_front(self.front is not None, self.lost)

    def cut_above(self, name: bytes) -> bytes | None:
        """The highest delegation or DNAME at or above a name: below it this zone has no names."""
        cut, cuts = None, self.cuts
        while name:
            if name in cuts:
                cut = name
            name = name[name[0] + 1 :]
        return _APEX if _APEX in cuts else cut

    def encloser(self, name: bytes) -> bytes:
        """The closest existing name above a name that does not exist (RFC 4592 §3.3.1)."""
        names = self.names
        name = name[name[0] + 1 :]
        while name not in names:
            name = name[name[0] + 1 :]
        return name


ZonePiece = tuple[Head | None, dict[bytes, bytes], dict[bytes, int], dict[bytes, bytes]]


def pieces(frozen: Frozen, names_max: int) -> Iterator[ZonePiece]:
    """A frozen zone in pieces of so many names; the head comes with the first."""
    head: Head | None = frozen[0]
    names, children, entries = iter(frozen[1].items()), iter(frozen[2].items()), iter(frozen[3].items())
    while (some := dict(islice(names, names_max))) or head is not None:
        yield head, some, dict(islice(children, names_max)), dict(islice(entries, names_max))
        head = None


def is_cut(rrsets: tuple[ServedRRset, ...]) -> bool:
    """Whether a name below the apex with these RRsets ends the zone's own names: delegated, or redirected."""
    return any(rrset.type in _ENDS and rrset.rdatas for rrset in rrsets)


def redirects(node_: bytes) -> bool:
    """Whether a node has a DNAME."""
    return node.rrset(node_, DNAME_KEY) is not None


def check_soa(served: ServedZone) -> None:
    """Raises ValueError for an invalid apex or SOA."""
    if wire.read_name(served.apex, 0) != len(served.apex):
        raise ValueError("octets after the apex")
    node.pack((ServedRRset(wire.SOA, served.soa_ttl_seconds, (served.soa_rdata,)),))
