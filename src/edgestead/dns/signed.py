"""The signatures of one zone, and the records that prove what does not exist.

Owns  the format of a name's signatures, the names in canonical order, which record covers a name.
Not   when a proof belongs into an answer (`lookup`); making signatures: they come with the feed.

An entry has all signatures of one name: for each covered type its type and class (4 octets), the number of
records (2), their octets (4), and the records as they go on the wire. The entry of NSEC or NSEC3 is that
record itself with its signatures. In a zone that we sign a name has an entry exactly if it is in the chain of
NSEC records. One that came signed may have a chain of NSEC3 records, whose owners are no names of the zone.
"""

import struct
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Final

from edgestead.dns import wire
from edgestead.model import dnssec
from edgestead.model.dnssec import NSEC, NSEC3, RRSIG, SYNTHESISED, Nsec3Params
from edgestead.model.served import ServedRRset

_PART: Final = struct.Struct("!4sHI")
_CLASS_IN: Final = b"\0\x01"
_APEX: Final = b""
_WILDCARD: Final = b"\x01*"
NSEC_KEY: Final = NSEC.to_bytes(2, "big") + _CLASS_IN
NSEC3_KEY: Final = NSEC3.to_bytes(2, "big") + _CLASS_IN
RRSIG_KEY: Final = RRSIG.to_bytes(2, "big") + _CLASS_IN

_LINKS: Final = frozenset((NSEC, NSEC3))

Records = tuple[int, bytes]
"""How many records, and the ready records."""
NONE: Final[Records] = (0, b"")


def split(
    rrsets: tuple[ServedRRset, ...],
) -> tuple[tuple[ServedRRset, ...], tuple[ServedRRset, ...]]:
    """A name's own RRsets, and those that signing added."""
    added = tuple(rrset for rrset in rrsets if rrset.type in SYNTHESISED)
    if not added:
        return rrsets, ()
    return tuple(rrset for rrset in rrsets if rrset.type not in SYNTHESISED), added


def pack(added: Iterable[ServedRRset]) -> bytes:
    """The entry of a name. Raises ValueError for a record of a chain that is no single signed one."""
    by_type: dict[int, list[bytes]] = {}
    links: dict[int, list[bytes]] = {}
    for rrset in added:
        for rdata in rrset.rdatas:
            if rrset.type in _LINKS:
                links.setdefault(rrset.type, []).append(_record(rrset.type, rrset.ttl_seconds, rdata))
            else:
                covered = dnssec.covered(rdata)
                by_type.setdefault(covered, []).append(_record(RRSIG, rrset.ttl_seconds, rdata))
    for type_, records in links.items():
        if len(records) != 1 or type_ not in by_type:
            raise ValueError("a record of a chain is not the only one, or not signed")
        by_type[type_] = records + by_type[type_]
    return b"".join([_part(type_, records) for type_, records in by_type.items()])


def soa_records(rrsigs: Iterable[bytes], ttl_seconds: int) -> Records:
    """The SOA's signatures as records with this TTL, which may be below the signed one (RFC 4035 §5.3.3)."""
    records = [_record(RRSIG, ttl_seconds, rdata) for rdata in rrsigs]
    return len(records), b"".join(records)


def find(entry: bytes, key: bytes) -> Records:
    """The signatures of one type (type and class as wire); of NSEC with the record itself."""
    for held, count, records in parts(entry):
        if held == key:
            return count, records
    return NONE


def parts(entry: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    at, end = 0, len(entry)
    while at < end:
        key, count, length = _PART.unpack_from(entry, at)
        at += _PART.size
        yield key, count, entry[at : at + length]
        at += length


def asked(entry: bytes, key: bytes) -> Records:
    """The answer to a question for NSEC or RRSIG itself, without signatures of the former."""
    wanted = NSEC if key == NSEC_KEY else RRSIG
    found = [
        _record(kind, ttl_seconds, rdata)
        for _, _, records in parts(entry)
        for kind, ttl_seconds, rdata in wire.records(records)
        if kind == wanted
    ]
    return len(found), b"".join(found)


class Chain:
    """The names with an NSEC record, in canonical order, and which of them prove what of relative names."""

    __slots__ = ("_in_order", "_places")
    key: Final = NSEC_KEY

    def __init__(self) -> None:
        self._places: list[bytes] = []
        self._in_order = False

    def __len__(self) -> int:
        return len(self._places)

    def add(self, name: bytes) -> None:
        """Until the first `settle` names are only collected: a zone that is loaded would else be sorted name
        by name.
        """
        place = dnssec.place(name)
        if self._in_order:
            insort(self._places, place)
        else:
            self._places.append(place)

    def remove(self, name: bytes) -> None:
        self.settle()
        del self._places[bisect_right(self._places, dnssec.place(name)) - 1]

    def load(self, names: Iterable[bytes]) -> None:
        """New names; `settle` has to follow."""
        self._places += map(dnssec.place, names)
        self._in_order = False

    def settle(self) -> None:
        if not self._in_order:
            self._places.sort()
            self._in_order = True

    def covering(self, name: bytes) -> bytes:
        """The name whose NSEC record covers a relative name that has none: the last one before it.

        Between two parts of a transfer there may be none: then the apex, which proves nothing.
        """
        if not self._places:
            return _APEX
        return dnssec.relative_of(self._places[bisect_right(self._places, dnssec.place(name)) - 1])

    def absent(self, name: bytes, encloser: bytes) -> tuple[bytes, ...]:
        """The owners of the records that deny a name, and the wildcard below its closest encloser."""
        return tuple(dict.fromkeys((self.covering(name), self.covering(_WILDCARD + encloser))))

    def expanded(self, name: bytes, encloser: bytes) -> tuple[bytes, ...]:
        """That a name is not there itself, so that the wildcard below `encloser` answers."""
        return (self.covering(name),)

    def wildcard_has_none(self, name: bytes, encloser: bytes) -> tuple[bytes, ...]:
        """That a name is not there, and the wildcard which answers has not the type."""
        return tuple(dict.fromkeys((self.covering(name), *self.has_none(_WILDCARD + encloser))))

    def has_none(self, name: bytes) -> tuple[bytes, ...]:
        """That a name which exists has not the type: an empty non-terminal has no record itself."""
        return (self.covering(name),)


class HashedChain:
    """The same of NSEC3 records (RFC 5155 §7.2): labels are hashes, and in order as such.

    A name that exists may have no record (opt-out, §6): then the closest one above it that has proves that.
    """

    __slots__ = ("_apex", "_in_order", "_labels", "_params")
    key: Final = NSEC3_KEY

    def __init__(self, apex: bytes, params: Nsec3Params) -> None:
        self._apex = apex
        self._params = params
        self._labels: list[bytes] = []
        self._in_order = False

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, name: bytes) -> None:
        if self._in_order:
            insort(self._labels, name)
        else:
            self._labels.append(name)

    def remove(self, name: bytes) -> None:
        self.settle()
        del self._labels[bisect_right(self._labels, name) - 1]

    def settle(self) -> None:
        if not self._in_order:
            self._labels.sort()
            self._in_order = True

    def _hashed(self, name: bytes) -> bytes:
        return dnssec.nsec3_label(name + self._apex, self._params)

    def _has(self, label: bytes) -> bool:
        at = bisect_right(self._labels, label)
        return at > 0 and self._labels[at - 1] == label

    def _covering(self, name: bytes) -> bytes:
        """The first hash is covered by the last record: index -1."""
        if not self._labels:
            return _APEX
        return self._labels[bisect_right(self._labels, self._hashed(name)) - 1]

    def _enclosed(self, name: bytes, encloser: bytes) -> tuple[bytes, bytes, bytes]:
        """The closest provable encloser of a name that does not exist, at or above one that does; its label;
        and the record over the next closer name (RFC 5155 §7.2.1).
        """
        label = self._hashed(encloser)
        while encloser and not self._has(label):
            encloser = encloser[encloser[0] + 1 :]
            label = self._hashed(encloser)
        closer = name
        while (above := closer[closer[0] + 1 :]) != encloser:
            closer = above
        return encloser, label, self._covering(closer)

    def absent(self, name: bytes, encloser: bytes) -> tuple[bytes, ...]:
        encloser, label, closer = self._enclosed(name, encloser)
        return tuple(dict.fromkeys((label, closer, self._covering(_WILDCARD + encloser))))

    def expanded(self, name: bytes, encloser: bytes) -> tuple[bytes, ...]:
        return (self._enclosed(name, encloser)[2],)

    def wildcard_has_none(self, name: bytes, encloser: bytes) -> tuple[bytes, ...]:
        _, label, closer = self._enclosed(name, encloser)
        wildcard = self._hashed(_WILDCARD + encloser)
        if not self._has(wildcard):  # an empty non-terminal that opt-out leaves out
            wildcard = self._covering(_WILDCARD + encloser)
        return tuple(dict.fromkeys((label, closer, wildcard)))

    def has_none(self, name: bytes) -> tuple[bytes, ...]:
        label = self._hashed(name)
        if not name or self._has(label):
            return (label,)
        _, label, closer = self._enclosed(name, name[name[0] + 1 :])
        return tuple(dict.fromkeys((label, closer)))


class Signatures:
    """Changed by one thread at a time, as its zone. `chain` is what denials are proven from."""

    __slots__ = ("_apex", "_hashed", "_names", "chain", "entries", "soa", "soa_denial")

    def __init__(self, apex: bytes) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.soa: Records = NONE
        self.soa_denial: Records = NONE
        self._apex = apex
        self._names = Chain()
        self._hashed: dict[Nsec3Params, HashedChain] = {}
        self.chain: Chain | HashedChain = self._names

    def put(self, name: bytes, entry: bytes) -> None:
        """Set the entry of a relative name; b"" takes it out of its chain."""
        before = self._link(self.entries.get(name, b""))
        if entry:
            self.entries[name] = entry
        else:
            self.entries.pop(name, None)
        after = self._link(entry)
        if before is not after:
            if before is not None:
                before.remove(name)
            if after is not None:
                after.add(name)

    def _link(self, entry: bytes) -> Chain | HashedChain | None:
        """The chain that a name with this entry is in."""
        if find(entry, NSEC_KEY)[0]:
            return self._names
        count, records = find(entry, NSEC3_KEY)
        if not count:
            return None
        params = dnssec.nsec3_params(next(wire.records(records))[2])
        if params not in self._hashed:
            self._hashed[params] = HashedChain(self._apex, params)
        return self._hashed[params]

    def load(self, entries: dict[bytes, bytes]) -> None:
        """Add entries of new names; `settle` has to follow."""
        self.entries.update(entries)
        for name, entry in entries.items():
            chain = self._link(entry)
            if chain is not None:
                chain.add(name)

    def settle(self, params: Nsec3Params | None = None) -> None:
        """Have the chains in order, and choose: of several NSEC3 chains the one that NSEC3PARAM names."""
        self._names.settle()
        for chain in self._hashed.values():
            chain.settle()
        self._hashed = {held: chain for held, chain in self._hashed.items() if len(chain)}
        whole = list(self._hashed.values())
        named = self._hashed.get(params) if params is not None else None
        if len(self._names) or not whole:
            self.chain = self._names
        else:
            self.chain = whole[0] if named is None else named

    def of(self, name: bytes, key: bytes) -> Records:
        """The signatures of a name's RRset."""
        if key == wire.SOA_KEY:
            return self.soa
        count, records = find(self.entries.get(name, b""), key)
        if key in (NSEC_KEY, NSEC3_KEY) and count:
            length = wire.RR_HEAD.unpack_from(records)[4]
            return count - 1, records[wire.RR_HEAD.size + length :]
        return count, records


def _record(kind: int, ttl_seconds: int, rdata: bytes) -> bytes:
    return wire.RR_HEAD.pack(wire.QUESTION_OWNER, kind, wire.IN, ttl_seconds, len(rdata)) + rdata


def _part(type_: int, records: list[bytes]) -> bytes:
    joined = b"".join(records)
    return _PART.pack(type_.to_bytes(2, "big") + _CLASS_IN, len(records), len(joined)) + joined
