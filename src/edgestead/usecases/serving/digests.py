"""The digest of a zone that is served (RFC 8976): a ZONEMD record at its apex, for whoever fetches the zone.

Owns  which records are digested, as they are in the feed; when a digest is made at once; what waits for one.
Not   the form (`model.zonemd`); who makes what waits (`usecases.zone.digests`).

    zone                                a change of it              later
    up to AT_ONCE_RECORDS_MAX records   comes with its digest       –
    larger                              comes without, sets `due`   when it was quiet for QUIET_SECONDS:
                                                                    a further serial, with its digest

The apex is the first name of the digest and has the serial, so nothing of it can be kept from one change to
the next: it costs the whole zone each time. A digest of another serial would be worse than none.
"""

from collections.abc import Iterator
from typing import Final

from edgestead.model import dnssec, served, zonemd
from edgestead.model.served import ServedRRset, ServedZone
from edgestead.model.zonemd import ZONEMD
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.usecases.serving import serials
from edgestead.usecases.serving.signing import without_signatures

SETTING: Final = "zone.digest_due"
AT_ONCE_RECORDS_MAX: Final = 500  # 2 ms of the writer's time; 4 of a signed zone
QUIET_SECONDS: Final = 5
OCTETS_MAX: Final = 256 << 20  # of a zone's records: they are in memory for a moment
_US: Final = 1_000_000


def without_digest(rrsets: tuple[ServedRRset, ...]) -> tuple[ServedRRset, ...]:
    return tuple(rrset for rrset in rrsets if rrset.type != ZONEMD)


def with_digest(
    rrsets: tuple[ServedRRset, ...], zone: ServedZone, octets: bytes = bytes(zonemd.MADE_OCTETS)
) -> tuple[ServedRRset, ...]:
    """The apex's RRsets with a ZONEMD record of this serial; without `octets` the place of one."""
    rdata = zonemd.rdata(serials.of_soa(zone.soa_rdata), octets)
    added = ServedRRset(ZONEMD, zone.soa_ttl_seconds, (rdata,))
    return tuple(sorted([*without_digest(rrsets), added], key=lambda rrset: rrset.type))


def of_apex(zone: ServedZone, rrsets: tuple[ServedRRset, ...]) -> bytes:
    """What the digest begins with."""
    soa = (dnssec.SOA, zone.soa_ttl_seconds, (zone.soa_rdata,))
    rrsigs = (dnssec.RRSIG, zone.soa_ttl_seconds, zone.soa_rrsigs)
    own = [_uncovered(rrset) for rrset in _shown(rrsets, is_signed=bool(zone.soa_rrsigs))]
    return zonemd.name_octets(zone.apex, [soa, rrsigs, *own])


def of_names(reader: Reader, zone_id: str, zone: ServedZone) -> bytes | None:
    """What it goes on with: all other names. None where that is more than OCTETS_MAX."""
    found, left = [], OCTETS_MAX
    for place, octets in _names(reader, zone_id, zone):
        found.append((place, octets))
        left -= len(octets)
        if left < 0:
            return None
    found.sort()
    return b"".join([octets for _, octets in found])


def _names(reader: Reader, zone_id: str, zone: ServedZone) -> Iterator[tuple[bytes, bytes]]:
    end, is_signed = len(zone.apex), bool(zone.soa_rrsigs)
    for _, document in reader.documents(zone_id, served.KIND_NAME):
        name = served.decode_name(document)
        if name.owner != zone.apex:
            rrsets = [(one.type, one.ttl_seconds, one.rdatas) for one in _shown(name.rrsets, is_signed)]
            place = dnssec.place(name.owner[: len(name.owner) - end])
            yield place, zonemd.name_octets(name.owner, rrsets)


def _shown(rrsets: tuple[ServedRRset, ...], is_signed: bool) -> list[ServedRRset]:
    """What a transfer has of a name: signatures only where the zone is served signed."""
    return [rrset for rrset in (rrsets if is_signed else without_signatures(rrsets)) if not rrset.is_mark]


def _uncovered(rrset: ServedRRset) -> tuple[int, int, tuple[bytes, ...]]:
    """RFC 8976 §3.3.1: without ZONEMD, and without its signature."""
    if rrset.type == ZONEMD:
        return ZONEMD, rrset.ttl_seconds, ()
    if rrset.type != dnssec.RRSIG:
        return rrset.type, rrset.ttl_seconds, rrset.rdatas
    rdatas = tuple(rdata for rdata in rrset.rdatas if dnssec.covered(rdata) != ZONEMD)
    return rrset.type, rrset.ttl_seconds, rdatas


def put_off(tx: Transaction, zone_id: str, now_us: int, seconds: int = QUIET_SECONDS) -> None:
    """A change came without its digest, or making one failed."""
    settings.put(tx, zone_id, SETTING, str(now_us + seconds * _US), now_us)


def forget(tx: Transaction, zone_id: str) -> None:
    settings.delete(tx, zone_id, SETTING)


def due(reader: Reader, now_us: int) -> list[str]:
    """Zones that were quiet for long enough."""
    return [zone_id for zone_id, value in settings.scopes(reader, SETTING) if int(value) <= now_us]
