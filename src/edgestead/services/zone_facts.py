"""What a zone's DNS settings mean for what it serves.

Owns  reading the stored settings of one zone into `serving.ZoneFacts`; serving them anew after a change.
Asks  `tables.settings`, `tables.custom_nameservers`.
Tells `services.zone_edit`, which renders with the facts, and whoever shows name servers.
Not   whether a value is allowed (`services.dns_settings`).

A zone without stored settings, which most are, costs one look into an index.
"""

from collections.abc import Sequence

import msgspec

from edgestead.model import names
from edgestead.services.serving import PLAIN, Soa, ZoneFacts
from edgestead.store.control import Reader
from edgestead.tables import custom_nameservers, settings
from edgestead.tables.zones import ZoneRow

FAMILY = "dns"
VANITY = "zone.vanity_name_servers"
CUSTOM_ACCOUNT = "custom.account"
CUSTOM_ZONE = "custom.zone"
STANDARD = "edge.standard"
PROTOCOLS = {"http2": b"h2", "http3": b"h3"}
"""Zone settings to ALPN protocol names (RFC 9113 §3.2, RFC 9114 §3.1)."""


class Nameservers(msgspec.Struct, frozen=True):
    """Which set of name servers. The sets of an account are numbered 1 to 5."""

    type: str = STANDARD
    ns_set: int = 1


class StoredSoa(msgspec.Struct, frozen=True):
    """Contract "DNS settings", `soa`. Times are seconds; a null name is the server's choice."""

    mname: str | None = None
    rname: str | None = None
    refresh: int = Soa().refresh
    retry: int = Soa().retry
    expire: int = Soa().expire
    min_ttl: int = Soa().minimum
    ttl: int = Soa().ttl


read_nameservers = msgspec.json.Decoder(Nameservers).decode
read_soa = msgspec.json.Decoder(StoredSoa).decode
_read_number = msgspec.json.Decoder(int).decode
_read_flag = msgspec.json.Decoder(bool).decode
_read_names = msgspec.json.Decoder(tuple[str, ...]).decode


def facts_of(reader: Reader, zone: ZoneRow) -> ZoneFacts:
    """The facts as they are in this transaction or snapshot."""
    stored = settings.family(reader, zone.id, FAMILY)
    alpn = _alpn(reader, zone.id)
    facts = PLAIN._replace(alpn=alpn) if alpn else PLAIN
    if not stored:
        return facts
    servers: Sequence[str] = ()
    if "nameservers" in stored:
        servers = server_names(reader, zone, read_nameservers(stored["nameservers"].value))
        facts = facts._replace(servers=tuple(map(names.wire_from_text, servers)))
    if "soa" in stored:
        facts = facts._replace(soa=_soa(read_soa(stored["soa"].value)))
    if "ns_ttl" in stored:
        facts = facts._replace(ns_ttl=_read_number(stored["ns_ttl"].value))
    if "multi_provider" in stored:
        facts = facts._replace(multi_provider=_read_flag(stored["multi_provider"].value))
    if "flatten_all_cnames" in stored:
        facts = facts._replace(flatten_all=_read_flag(stored["flatten_all_cnames"].value))
    return facts


def _alpn(reader: Reader, zone_id: str) -> tuple[bytes, ...]:
    """Spec "Content rules" 5: HTTP/3 before HTTP/2, as far as the zone has them on."""
    on = settings.values_of(reader, zone_id, *PROTOCOLS)
    return tuple(PROTOCOLS[id_] for id_ in sorted(on, reverse=True) if on[id_] == '"on"')


def server_names(reader: Reader, zone: ZoneRow, wanted: Nameservers) -> tuple[str, ...]:
    """The names of a custom set; none where the server's own stand (also where a set has no member)."""
    if wanted.type == CUSTOM_ACCOUNT:
        return custom_nameservers.names_of_set(reader, zone.account_id, wanted.ns_set)
    return vanity_names(reader, zone.id) if wanted.type == CUSTOM_ZONE else ()


def vanity_names(reader: Reader, zone_id: str) -> tuple[str, ...]:
    """The zone's own custom name servers."""
    stored = settings.one(reader, zone_id, VANITY)
    return _read_names(stored.value) if stored else ()


def _soa(stored: StoredSoa) -> Soa:
    return Soa(
        mname=names.wire_from_text(stored.mname) if stored.mname else None,
        rname=names.wire_from_text(stored.rname) if stored.rname else None,
        refresh=stored.refresh,
        retry=stored.retry,
        expire=stored.expire,
        minimum=stored.min_ttl,
        ttl=stored.ttl,
    )
