"""One zone's names, and the questions that RFC 1034 §4.3.2 asks of them.

Owns  the names, the empty non-terminals, the cuts, the SOA.
Asks  `node` and `wire`.
Tells `lookup` what stands at, above and around a name.
Not   which zone a question belongs to (`table`); building answers (`lookup`).

Names are relative (see `wire`). Two dicts hold everything: a name's node, and how many children a name with
children has; so a change touches the name and, when it appears or goes, the non-terminals above it. Nothing
that depends on two names is stored: aliases, wildcards and referrals are worked out when they are asked for.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from edgestead.dns import node, wire
from edgestead.dns.outcome import Outcome
from edgestead.model.served import ServedRRset, ServedZone

Head = tuple[Any, ...]
Frozen = tuple[Head, dict[bytes, bytes], dict[bytes, int]]
"""A zone as plain values that `marshal` takes: its own facts, its names, how many children they have."""

WILDCARD: Final = b"\x01*"
_APEX: Final = b""


class Zone:
    """The served content of one zone. Changed by one thread at a time.

    `names`, `cuts` and `wildcards` (the names above an asterisk) are public for the loops that cannot afford
    a call; `denials` is `lookup`'s: its ways to say no, by the apex's place in the question. `settled` says
    that no name has changed since the SOA did, which comes last in every change: all of this is one serial.
    """

    __slots__ = (
        "_apex_rrsets",
        "_children",
        "_soa",
        "apex",
        "cuts",
        "denials",
        "names",
        "settled",
        "soa_denial",
        "wildcards",
    )

    def __init__(self, apex: bytes) -> None:
        self.apex = apex
        self.names: dict[bytes, bytes] = {_APEX: b""}
        self.cuts: set[bytes] = set()
        self.wildcards: set[bytes] = set()
        self.denials: dict[int, tuple[Outcome, Outcome, Outcome]] = {}
        self.settled = False
        self.soa_denial = b""
        self._soa: ServedRRset | None = None
        self._apex_rrsets: tuple[ServedRRset, ...] = ()
        self._children: dict[bytes, int] = {}

    @property
    def complete(self) -> bool:
        """A zone is served from the moment it has its SOA."""
        return self._soa is not None

    @property
    def soa_rdata(self) -> bytes:
        """Of a complete zone."""
        assert self._soa is not None
        return self._soa.rdatas[0]

    def relative(self, owner: bytes) -> bytes:
        """The name without the apex. Raises ValueError when the owner is outside the zone or no name."""
        if wire.read_name(owner, 0) != len(owner):
            raise ValueError("octets after the name")
        relative = wire.below(owner, self.apex)
        if relative is None:
            raise ValueError("the name is outside its zone")
        return relative

    def set_soa(self, served: ServedZone) -> None:
        """Take the zone's own facts. Raises ValueError for rdata that is no SOA."""
        ttl_seconds, rdata = served.soa_ttl_seconds, served.soa_rdata
        self._soa = ServedRRset(wire.SOA, ttl_seconds, (rdata,))
        minimum_seconds = int.from_bytes(rdata[-4:], "big")
        denial = ServedRRset(wire.SOA, min(ttl_seconds, minimum_seconds), (rdata,))  # RFC 2308 §3
        self.soa_denial = node.pack((denial,))[node.READY :]
        self.denials = {}
        self.settled = True
        self._pack_apex()

    def set_apex(self, rrsets: tuple[ServedRRset, ...]) -> None:
        """Take the apex's RRsets other than SOA."""
        self._apex_rrsets = rrsets
        self.settled = False
        self._pack_apex()

    def _pack_apex(self) -> None:
        soa = (self._soa,) if self._soa else ()
        self.names[_APEX] = node.pack((*soa, *self._apex_rrsets))

    def put(self, name: bytes, packed: bytes, *, cut: bool) -> None:
        """Set what a name below the apex serves; b"" takes the name away."""
        self.settled = False
        if cut:
            self.cuts.add(name)
        else:
            self.cuts.discard(name)
        if packed or name in self._children:
            self._ensure(name)
            self.names[name] = packed
        else:
            self._remove(name)

    def _ensure(self, name: bytes) -> None:
        """Make the name and the empty non-terminals above it exist (RFC 4592 §2.2.2)."""
        while name not in self.names:
            self.names[name] = b""
            if name.startswith(WILDCARD):
                self.wildcards.add(name[len(WILDCARD) :])
            name = wire.parent(name)
            self._children[name] = self._children.get(name, 0) + 1

    def _remove(self, name: bytes) -> None:
        """Take the name away, and the empty non-terminals that were there only for it."""
        while self.names.pop(name, None) is not None:
            if name.startswith(WILDCARD):
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
        """What stands here now, for `thaw`; later changes do not reach it. Costs a copy of the references."""
        soa = self._soa and (self._soa.ttl_seconds, self._soa.rdatas[0])
        rrsets = tuple((rrset.type, rrset.ttl_seconds, rrset.rdatas) for rrset in self._apex_rrsets)
        head = (self.apex, soa, rrsets, self.settled, tuple(self.cuts), tuple(self.wildcards))
        return head, self.names.copy(), self._children.copy()

    def thaw(self, head: "Head") -> None:
        """Begin to be, as a new zone, what was frozen; `thaw_names` has to follow."""
        _, soa, rrsets, settled, cuts, wildcards = head
        self._apex_rrsets = tuple(ServedRRset(*rrset) for rrset in rrsets)
        if soa is not None:
            self.set_soa(ServedZone(self.apex, *soa))
        self.cuts, self.wildcards = set(cuts), set(wildcards)
        self.settled = settled

    def thaw_names(self, names: dict[bytes, bytes], children: dict[bytes, int]) -> None:
        self.names.update(names)
        self._children.update(children)

    def cut_above(self, name: bytes) -> bytes | None:
        """The highest delegation at or above a name: below it this zone has no authority."""
        cut, cuts = None, self.cuts
        while name:
            if name in cuts:
                cut = name
            name = name[name[0] + 1 :]
        return cut

    def encloser(self, name: bytes) -> bytes:
        """The closest existing name above a name that does not exist (RFC 4592 §3.3.1)."""
        names = self.names
        name = name[name[0] + 1 :]
        while name not in names:
            name = name[name[0] + 1 :]
        return name


def pieces(
    frozen: Frozen, names_max: int
) -> Iterator[tuple[Head | None, dict[bytes, bytes], dict[bytes, int]]]:
    """A frozen zone in pieces of so many names; the head comes with the first."""
    head: Head | None = frozen[0]
    names, children = iter(frozen[1].items()), iter(frozen[2].items())
    while (some := dict(islice(names, names_max))) or head is not None:
        yield head, some, dict(islice(children, names_max))
        head = None


def is_cut(rrsets: tuple[ServedRRset, ...]) -> bool:
    """Whether a name below the apex with these RRsets is delegated."""
    return any(rrset.type == wire.NS and rrset.rdatas for rrset in rrsets)


def check_soa(served: ServedZone) -> None:
    """Raises ValueError for a zone whose apex is no name or whose SOA is none."""
    if wire.read_name(served.apex, 0) != len(served.apex):
        raise ValueError("octets after the apex")
    node.pack((ServedRRset(wire.SOA, served.soa_ttl_seconds, (served.soa_rdata,)),))
