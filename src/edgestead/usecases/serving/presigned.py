"""The signed side of a zone that was transferred as its primary signed it.

Owns  which types of records are carried beside the others; what a name serves of them.
Not   taking them from a transfer (`usecases.zone.secondary`); proving with them (`dns.signed`).

Nothing is signed here, so what such a zone serves has to be what its primary serves: no name is proxied or
flattened, nothing is added, and the serial is the primary's.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from edgestead.model import dnssec, names
from edgestead.model.served import ServedRRset, ServedZone
from edgestead.model.zonemd import ZONEMD
from edgestead.tables import carried
from edgestead.tables.carried import CarriedRow
from edgestead.usecases.serving.signing import Owner, ZoneSigning

SIGNED: Final = frozenset((dnssec.RRSIG, dnssec.NSEC, dnssec.NSEC3, dnssec.NSEC3PARAM))
"""A zone with any of these is signed."""
CARRIED: Final = SIGNED | {dnssec.CDS, dnssec.CDNSKEY, ZONEMD}
"""Types without a form of ours, which nobody writes but those who sign."""
ITERATIONS_MAX: Final = 50  # RFC 9276 §3.2: more are work for every denial, and resolvers refuse them


def row_of(zone_id: str, name: str, type_: int, ttl: int, rdata: bytes) -> CarriedRow:
    ends = dnssec.expiration(rdata) if type_ == dnssec.RRSIG else 0
    return CarriedRow(zone_id, name, type_, rdata, ttl, ends)


class Presigned(ZoneSigning):
    """In the place of signing: what was carried is served."""

    def settle(self, changed: Iterable[Owner]) -> list[Owner]:
        return []

    def sign(self, one: Owner) -> tuple[ServedRRset, ...]:
        found: dict[tuple[int, int], list[bytes]] = {}
        for row in self._rows(one.owner):
            if row.type != dnssec.RRSIG or dnssec.covered(row.rdata) != dnssec.SOA:
                found.setdefault((row.type, row.ttl), []).append(row.rdata)
        rrsets = [ServedRRset(type_, ttl, tuple(sorted(rdatas))) for (type_, ttl), rdatas in found.items()]
        return tuple(sorted([*one.plain, *rrsets], key=lambda rrset: rrset.type))

    def zone(self, zone: ServedZone) -> ServedZone:
        rrsigs = [
            row.rdata
            for row in self._rows(zone.apex)
            if row.type == dnssec.RRSIG and dnssec.covered(row.rdata) == dnssec.SOA
        ]
        return msgspec.structs.replace(zone, soa_rrsigs=tuple(sorted(rrsigs)))

    def _rows(self, owner: bytes) -> list[CarriedRow]:
        return carried.at_name(self._tx, self._zone_id, names.text_from_wire(owner))
