"""The use case of exporting a zone as a zone file.

Owns  what a file says of a zone and of each record.
Not   HTTP; threads: `give_way` lets others pass.

Any name server reads the file. Imported again it makes the same records: what a line of a zone file cannot
say, proxy status, comment, tags and settings, stands in the line's comment (`model.zonefile.notes`).
"""

from collections.abc import Callable, Iterator

import msgspec

from edgestead.model import names
from edgestead.model.call import Call, Profile
from edgestead.model.records import from_wire
from edgestead.model.times import six_digits
from edgestead.model.zonefile import Notes, write_line
from edgestead.store.control import Reader
from edgestead.tables import records
from edgestead.tables.records import StoredRecord
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving.facts import apex_of, facts_of
from edgestead.usecases.serving.rendering import Settings, ZoneFacts

ROWS_READ_MAX = 256  # at a time; then others may pass: about 5 ms
_settings = msgspec.json.Decoder(Settings).decode
_tags = msgspec.json.Decoder(list[str]).decode
_PROXIABLE = ("A", "AAAA", "CNAME")


def export(
    call: Call, reader: Reader, platform: Platform, zone_id: str, give_way: Callable[[], None]
) -> bytes:
    """The whole zone, as UTF-8. Raises ZoneNotFound."""
    zone = zone_of(reader, zone_id)
    portions = ["".join(_head(call, platform, zone, facts_of(reader, zone))).encode()]
    last: StoredRecord | None = None
    while rows := records.stored(reader, zone_id, last, ROWS_READ_MAX):
        portions.append("".join([_line(row, call.profile) for row in rows if row.type != "SOA"]).encode())
        last = rows[-1]
        give_way()
    return b"".join(portions)


def _head(call: Call, platform: Platform, zone: ZoneRow, facts: ZoneFacts) -> Iterator[str]:
    """Where the file comes from, and what the server itself adds to a zone: an import skips it."""
    apex = apex_of(zone)
    served = platform.renderer.zone(apex, zone.serial, facts)
    yield f"; zone {zone.name}, {zone.record_count} records, exported on {six_digits(call.now_us)}\n"
    yield f"$ORIGIN {names.absolute_text(apex)}\n"
    yield write_line(apex, served.soa_ttl_seconds, from_wire("SOA", served.soa_rdata), Notes(), call.profile)
    servers = platform.renderer.name_servers(facts)
    for rdata in servers.rdatas:
        yield write_line(apex, servers.ttl_seconds, from_wire("NS", rdata), Notes(), call.profile)


def _line(row: StoredRecord, profile: Profile) -> str:
    settings = _settings(row.settings)
    stored = {
        "proxied": bool(row.proxied) if row.type in _PROXIABLE else None,
        "flatten-cname": settings.flatten_cname,
        "ipv4-only": settings.ipv4_only,
        "ipv6-only": settings.ipv6_only,
    }
    said = {name: value for name, value in stored.items() if value is not None}
    notes = Notes(row.comment, tuple(_tags(row.tags)), said)
    return write_line(names.wire_from_text(row.name), row.ttl, from_wire(row.type, row.rdata), notes, profile)
