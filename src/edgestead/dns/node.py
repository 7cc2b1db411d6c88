"""The records of one owner name as one bytes object; most answers are one slice of it.

Owns  the node format.
Not   names, zones, caches.

A node is one octet, `ready`, then for each RRset: number of records (2), octets of the records (4), and the
records as they go on the wire with the question's name as owner. `ready` is the number of records when the
node is a single RRset of 1 to 255 records that may be sent and needs no name compression, else 0. If it is
not 0, `node[READY:]` is the answer section, with its type and class at `node[KIND]`. An empty non-terminal is
b"". A mark of `model.served` is a record of class 0, which is reserved (RFC 6895 §3.2): no question has this
class, so none matches a mark. A node costs 40 + 7 + 16 octets for an A record, a fifth of what a dict of
RRset objects costs.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from edgestead.dns import wire
from edgestead.model.limits import RDATA_OCTETS_MAX
from edgestead.model.served import EXISTS, PENDING, ServedRRset

_RRSET: Final = struct.Struct("!HI")
READY: Final = 1 + _RRSET.size
KIND: Final = slice(READY + 2, READY + 6)
_RR_OWNER_OCTETS: Final = 2
TTL_SECONDS_MAX: Final = 2**31 - 1  # RFC 2181 §8
RECORDS_MAX: Final = 65_535  # the count in a message has 16 bits

_MARK_CLASS: Final = b"\0\0"
PENDING_KEY: Final = b"\0\1" + _MARK_CLASS
EXISTS_KEY: Final = b"\0\2" + _MARK_CLASS
_MARKS: Final = {PENDING: PENDING_KEY, EXISTS: EXISTS_KEY}


def pack(rrsets: Iterable[ServedRRset]) -> bytes:
    """The node of an owner. Raises ValueError for data that DNS cannot encode."""
    return join([pack_rrset(rrset) for rrset in rrsets if rrset.rdatas])


def join(parts: list[bytes]) -> bytes:
    """The node of packed RRsets."""
    if len(parts) != 1:
        return b"\0" + b"".join(parts) if parts else b""
    count, _ = _RRSET.unpack_from(parts[0])
    key = parts[0][_RRSET.size + _RR_OWNER_OCTETS :][:4]
    kind = int.from_bytes(key[:2], "big")
    ready = count if count < 256 and kind not in wire.COMPRESSIBLE and not is_mark(key) else 0
    return bytes((ready,)) + parts[0]


def pack_rrset(rrset: ServedRRset) -> bytes:
    """A node's part for one RRset. Raises ValueError as `pack`."""
    if rrset.is_mark:
        if rrset.type not in _MARKS:
            raise ValueError(f"a newer release's mark {rrset.type}: what its owner answers is not known here")
        record = struct.pack("!H4sIH", wire.QUESTION_OWNER, _MARKS[rrset.type], 0, 0)
        return _RRSET.pack(1, len(record)) + record
    if rrset.type in wire.META_TYPES or not 0 <= rrset.ttl_seconds <= TTL_SECONDS_MAX:
        raise ValueError(f"type {rrset.type} with TTL {rrset.ttl_seconds} cannot be served")
    if len(rrset.rdatas) > RECORDS_MAX:
        raise ValueError(f"{len(rrset.rdatas)} records of type {rrset.type}")
    rrs = records_of(rrset)
    return _RRSET.pack(len(rrset.rdatas), len(rrs)) + rrs


def records_of(rrset: ServedRRset) -> bytes:
    """The ready records of an RRset. Raises ValueError for rdata that cannot be written."""
    return b"".join([_record(rrset.type, rrset.ttl_seconds, rdata) for rdata in rrset.rdatas])


def _record(kind: int, ttl_seconds: int, rdata: bytes) -> bytes:
    if len(rdata) > RDATA_OCTETS_MAX:
        raise ValueError(f"rdata of {len(rdata)} octets")
    if kind in wire.COMPRESSIBLE:
        wire.check_names(kind, rdata)
    return wire.RR_HEAD.pack(wire.QUESTION_OWNER, kind, wire.IN, ttl_seconds, len(rdata)) + rdata


def parts(node: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(type and class, packed RRset) of each RRset, for `join`."""
    at, end = 1, len(node)
    while at < end:
        _, length = _RRSET.unpack_from(node, at)
        start, at = at, at + _RRSET.size + length
        yield node[start + _RRSET.size + 2 : start + _RRSET.size + 6], node[start:at]


def rrsets(node: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """(type and class, number of records, ready records) of each RRset."""
    at, end = 1, len(node)
    while at < end:
        count, length = _RRSET.unpack_from(node, at)
        at += _RRSET.size
        yield node[at + 2 : at + 6], count, node[at : at + length]
        at += length


def is_mark(key: bytes) -> bool:
    """Whether a type and class, as `rrsets` gives them, are a mark's: it is never sent."""
    return key.endswith(_MARK_CLASS)


def rrset(node: bytes, kind: bytes) -> tuple[int, bytes] | None:
    """The number of records and the ready records of one type (type and class as wire), or None."""
    for held, count, rrs in rrsets(node):
        if held == kind:
            return count, rrs
    return None
