"""The signatures of one zone, and the records that prove what does not exist.

Owns  the format of a name's signatures, the names in canonical order, which record covers a name.
Not   when a proof belongs into an answer (`lookup`); making signatures: they come with the feed.

An entry has all signatures of one name: for each covered type its type and class (4 octets), the number of
records (2), their octets (4), and the records as they go on the wire. The entry of NSEC is the NSEC record
itself with its signatures. A name has an entry exactly if it is in the chain of NSEC records.
"""

import struct
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Final

from edgestead.dns import wire
from edgestead.model import dnssec
from edgestead.model.dnssec import NSEC, RRSIG, SYNTHESISED
from edgestead.model.served import ServedRRset

_PART: Final = struct.Struct("!4sHI")
_CLASS_IN: Final = b"\0\x01"
NSEC_KEY: Final = NSEC.to_bytes(2, "big") + _CLASS_IN
RRSIG_KEY: Final = RRSIG.to_bytes(2, "big") + _CLASS_IN

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
    """The entry of a name. Raises ValueError for signatures without a record that says what there is."""
    by_type: dict[int, list[bytes]] = {}
    nsecs = []
    for rrset in added:
        for rdata in rrset.rdatas:
            if rrset.type == NSEC:
                nsecs.append(_record(NSEC, rrset.ttl_seconds, rdata))
            else:
                covered = dnssec.covered(rdata)
                by_type.setdefault(covered, []).append(_record(RRSIG, rrset.ttl_seconds, rdata))
    if not by_type and not nsecs:
        return b""
    if len(nsecs) != 1 or NSEC not in by_type:
        raise ValueError("signatures without one signed NSEC record")
    by_type[NSEC] = nsecs + by_type[NSEC]
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


class Signatures:
    """Changed by one thread at a time, as its zone."""

    __slots__ = ("_chain", "_in_order", "entries", "soa", "soa_denial")

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.soa: Records = NONE
        self.soa_denial: Records = NONE
        self._chain: list[bytes] = []
        self._in_order = False

    def put(self, name: bytes, entry: bytes) -> None:
        """Set the entry of a relative name; b"" takes it out of the chain."""
        if entry:
            if name not in self.entries:
                self._add(dnssec.place(name))
            self.entries[name] = entry
        elif self.entries.pop(name, None) is not None:
            self.settle()
            place = dnssec.place(name)
            del self._chain[bisect_right(self._chain, place) - 1]

    def _add(self, place: bytes) -> None:
        if self._in_order:
            insort(self._chain, place)
        else:
            self._chain.append(place)

    def load(self, entries: dict[bytes, bytes]) -> None:
        """Add entries of new names; `settle` has to follow."""
        self.entries.update(entries)
        self._chain += map(dnssec.place, entries)
        self._in_order = False

    def settle(self) -> None:
        """Have the chain in order. Until the first time names are only collected: a zone that is loaded
        would else be sorted name by name.
        """
        if not self._in_order:
            self._chain.sort()
            self._in_order = True

    def covering(self, name: bytes) -> bytes:
        """The name whose NSEC record covers a relative name that has none: the last one before it."""
        return dnssec.relative_of(self._chain[bisect_right(self._chain, dnssec.place(name)) - 1])

    def of(self, name: bytes, key: bytes) -> Records:
        """The signatures of a name's RRset."""
        if key == wire.SOA_KEY:
            return self.soa
        count, records = find(self.entries.get(name, b""), key)
        if key == NSEC_KEY and count:
            length = wire.RR_HEAD.unpack_from(records)[4]
            return count - 1, records[wire.RR_HEAD.size + length :]
        return count, records


def _record(kind: int, ttl_seconds: int, rdata: bytes) -> bytes:
    return wire.RR_HEAD.pack(wire.QUESTION_OWNER, kind, wire.IN, ttl_seconds, len(rdata)) + rdata


def _part(type_: int, records: list[bytes]) -> bytes:
    joined = b"".join(records)
    return _PART.pack(type_.to_bytes(2, "big") + _CLASS_IN, len(records), len(joined)) + joined
