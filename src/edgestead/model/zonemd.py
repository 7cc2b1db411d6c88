"""Message digests of whole zones (RFC 8976): whether a zone is the one that its ZONEMD records were made of.

Owns  the digest of a zone, what its ZONEMD records say about it, and their RDATA.
Not   taking a transfer (`usecases.zone.secondary`); when a digest is made (`usecases.serving.digests`).

    ZONEMD records at the apex                                     verdict
    none, or none of a scheme and hash that are known (§4)         nobody can say: taken
    two of one scheme and hash (§2.1)                              these say nothing
    another serial than the SOA's                                  refused, unless another one fits
    another digest                                                 refused, unless another one fits
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from edgestead.model import dnssec

ZONEMD: Final = 63
SIMPLE: Final = 1  # the only scheme
HASHES: Final[dict[int, Callable[[], Any]]] = {1: hashlib.sha384, 2: hashlib.sha512}
MADE_HASH: Final = 1  # RFC 8976 §2.2.3: SHA-384, which every verifier has to know
MADE_OCTETS: Final = 48
_HEAD_OCTETS: Final = 6  # serial, scheme, hash
_KEPT_FOR_ONE: Final = 2  # seconds

Record = tuple[bytes, int, int, bytes]
"""Owner in lower case, type, TTL, RDATA; names uncompressed."""


def problem(
    apex: bytes, soa: Record, records: Collection[Record], of_one_second: Collection[Record] = ()
) -> str:
    """Why a zone is not what its ZONEMD records say, in words; "" where it is, or where nobody can say.

    `records` are all others. A TTL of one second may be kept as two: that is known of those `of_one_second`,
    and else tried of none and of all.
    """
    found = [rdata for owner, type_, _, rdata in records if type_ == ZONEMD and owner == apex]
    kinds = Counter(rdata[4:_HEAD_OCTETS] for rdata in found)
    usable = [rdata for rdata in found if _is_known(rdata) and kinds[rdata[4:_HEAD_OCTETS]] == 1]
    if not usable:
        return ""
    of_this = [rdata for rdata in usable if rdata[:4] == soa[3][-20:-16]]
    if not of_this:
        return "its ZONEMD record is of another serial"
    for rdata in of_this:
        ways = _ways(records, of_one_second)
        if any(digest(apex, [soa, *some], rdata[5]) == rdata[_HEAD_OCTETS:] for some in ways):
            return ""
    return "its ZONEMD record is of another content: it came incomplete, or was changed on its way"


def _is_known(rdata: bytes) -> bool:
    if len(rdata) < _HEAD_OCTETS or rdata[4] != SIMPLE or rdata[5] not in HASHES:
        return False
    return len(rdata) == _HEAD_OCTETS + int(HASHES[rdata[5]]().digest_size)


def _ways(records: Collection[Record], of_one_second: Collection[Record]) -> Iterator[Iterable[Record]]:
    known = frozenset(of_one_second)
    yield [(*one[:2], 1, one[3]) if one in known else one for one in records] if known else records
    if any(record[2] == _KEPT_FOR_ONE for record in records):
        yield [
            (owner, type_, 1 if ttl == _KEPT_FOR_ONE else ttl, rdata) for owner, type_, ttl, rdata in records
        ]


def rdata(serial: int, octets: bytes) -> bytes:
    """Of a ZONEMD record with a digest of `made`."""
    return serial.to_bytes(4, "big") + bytes((SIMPLE, MADE_HASH)) + octets


def made(parts: Iterable[bytes]) -> bytes:
    """The digest over the octets of a zone's names (`name_octets`), in canonical order of the names."""
    hashed = HASHES[MADE_HASH]()
    for part in parts:
        hashed.update(part)
    octets: bytes = hashed.digest()
    return octets


def name_octets(owner: bytes, rrsets: Iterable[tuple[int, int, Sequence[bytes]]]) -> bytes:
    """One name's records in canonical form and order; RRsets as type, TTL and RDATA, without a ZONEMD of the
    apex and its signature.
    """
    rows = sorted(
        {(type_, dnssec.folded(type_, one)): ttl for type_, ttl, found in rrsets for one in found}.items()
    )
    return b"".join([dnssec.record(owner, type_, ttl, one) for (type_, one), ttl in rows])


def digest(apex: bytes, records: Iterable[Record], hash_: int) -> bytes:
    """RFC 8976 §3.3: all records in canonical form and order, each once, without the ZONEMD records of the
    apex and their signatures.
    """
    end = len(apex)
    rows = []
    for owner, type_, ttl, rdata in records:
        covered = dnssec.covered(rdata) if type_ == dnssec.RRSIG else type_
        if owner != apex or covered != ZONEMD:
            place = dnssec.place(owner[: len(owner) - end])
            rows.append((place, type_, dnssec.folded(type_, rdata), owner, ttl))
    rows.sort()
    hashed = HASHES[hash_]()
    for _, same in groupby(rows, key=lambda row: row[:3]):
        _, type_, rdata, owner, ttl = next(same)
        hashed.update(dnssec.record(owner, type_, ttl, rdata))
    octets: bytes = hashed.digest()
    return octets
