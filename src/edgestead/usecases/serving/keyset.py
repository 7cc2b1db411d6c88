"""The keys of a signed zone: their roles, the phases of a key's life, and what the apex serves of them.

Owns  which key signs what in which phase; DNSKEY, CDS and CDNSKEY as they are served.
Not   who moves a key from phase to phase, and when (`usecases.zone.rolls`); keys at rest (`.keys`).

    role  signs the keys  signs the zone        layout   roles
    csk   yes             yes                   csk      csk
    ksk   yes             –                     ksk-zsk  ksk, zsk
    zsk   –               yes

    phase      in DNSKEY   signs the keys   signs the zone   in CDS   left when
    published  yes         yes              –                –        every cache that has DNSKEYs has it
    active     yes         yes              yes              yes      a key that does the same becomes active
    retiring   yes         yes              –                –        no signature of it is left [zone], and
                                                                      the parent has its successor's DS [keys]
    retired    yes         yes              –                –        no cache has one of it [zone], and no
                                                                      cache a DS RRset without its successor
                                                                      [keys]

A column says what a key of a role with that right does; [zone] and [keys] are waited for by keys with that
right, both by a CSK. So a ZSK rolls by pre-publication (RFC 7583 §3.2.1), a KSK as double-KSK (§3.3.1): there
is no moment at which a DS that somebody may have cached leads to no DNSKEY that signs, or a signature that
somebody may have cached comes from no DNSKEY that is served. Exactly one active key signs the zone, exactly
one is wanted at the parent: published keys that would leave a right without an active key go instead.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from edgestead.model import dnssec
from edgestead.model.served import ServedRRset
from edgestead.tables.signing import KeyRow

CSK, KSK, ZSK = "csk", "ksk", "zsk"
LAYOUTS: Final = {CSK: (CSK,), "ksk-zsk": (KSK, ZSK)}
PUBLISHED, ACTIVE, RETIRING, RETIRED = "published", "active", "retiring", "retired"
FLAGS: Final = {CSK: dnssec.FLAGS_SEP, KSK: dnssec.FLAGS_SEP, ZSK: dnssec.FLAGS_ZSK}

TTL_SECONDS: Final = 3_600  # of DNSKEY, CDS and CDNSKEY
ZSK_DAYS: Final = 90  # nobody has to do anything for it

_ENTRY_POINT: Final = dnssec.FLAGS_SEP.to_bytes(2, "big")
_KEYS: Final = frozenset((CSK, KSK))
_ZONE: Final = frozenset((CSK, ZSK))


def has_keys_right(role: str) -> bool:
    """Whether keys of this role sign the keys, and the parent has their DS."""
    return role in _KEYS


def has_zone_right(role: str) -> bool:
    return role in _ZONE


def overlap(role: str, other: str) -> bool:
    """Whether two roles have a right in common: one key succeeds the other."""
    return any(role in right and other in right for right in (_KEYS, _ZONE))


def do_all_of(roles: Collection[str], others: Collection[str]) -> bool:
    """Whether `roles` have together every right that `others` have."""
    return all(any(role in right for role in roles) for right in (_KEYS, _ZONE) if right.intersection(others))


def signs_keys(row: KeyRow) -> bool:
    return row.role in _KEYS


def signs_zone(row: KeyRow) -> bool:
    return row.role in _ZONE and row.phase == ACTIVE


def is_wanted_at_parent(row: KeyRow) -> bool:
    return row.role in _KEYS and row.phase == ACTIVE


def dnskey(row: KeyRow) -> bytes:
    """Its RDATA."""
    return dnssec.dnskey(row.flags, row.public)


def tag(row: KeyRow) -> int:
    return dnssec.key_tag(dnskey(row))


def ds(apex: bytes, row: KeyRow) -> bytes:
    return dnssec.ds(apex, dnskey(row))


def digests(apex: bytes, rows: Iterable[KeyRow]) -> tuple[bytes, ...]:
    """The DS records that the parent should have."""
    return tuple(sorted(ds(apex, row) for row in rows if is_wanted_at_parent(row)))


def dnskeys(rows: Iterable[KeyRow]) -> ServedRRset:
    return ServedRRset(dnssec.DNSKEY, TTL_SECONDS, tuple(sorted(map(dnskey, rows))))


def wanted_at_parent(apex: bytes, rows: Sequence[KeyRow]) -> tuple[ServedRRset, ...]:
    """RFC 7344: what the parent is asked to hold."""
    keys = tuple(sorted(dnskey(row) for row in rows if is_wanted_at_parent(row)))
    return _children(digests(apex, rows), keys)


def _children(cds: tuple[bytes, ...], cdnskey: tuple[bytes, ...]) -> tuple[ServedRRset, ...]:
    return (
        ServedRRset(dnssec.CDS, TTL_SECONDS, cds),
        ServedRRset(dnssec.CDNSKEY, TTL_SECONDS, cdnskey),
    )


GONE_AT_PARENT: Final = _children((dnssec.CDS_DELETE,), (dnssec.CDNSKEY_DELETE,))
"""RFC 8078 §4: the parent is asked to remove every DS."""


def with_others(apex: bytes, keys: Iterable[ServedRRset], others: Iterable[bytes]) -> tuple[ServedRRset, ...]:
    """`keys` with the entry points among `others`, DNSKEYs of other signers, wanted at the parent too.

    A request to remove every DS stays as it is.
    """
    points = [rdata for rdata in others if rdata.startswith(_ENTRY_POINT)]
    added = {
        dnssec.CDS: [dnssec.ds(apex, rdata) for rdata in points],
        dnssec.CDNSKEY: points,
    }
    return tuple(
        rrset
        if rrset in GONE_AT_PARENT or rrset.type not in added
        else ServedRRset(rrset.type, rrset.ttl_seconds, tuple(sorted({*rrset.rdatas, *added[rrset.type]})))
        for rrset in keys
    )
