"""What a zone's DNS settings mean for what it serves.

Owns  reading the stored settings of one zone into `serving.ZoneFacts`.
Not   whether a value is allowed.

One statement reads the zone and all of these settings, whether it has any or not.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import msgspec

from edgestead.model import dnssec, names, served
from edgestead.model.refusals.zone import ZoneNotFound
from edgestead.model.served import ServedRRset
from edgestead.model.settings import CUSTOM_ACCOUNT, CUSTOM_ZONE, STANDARD
from edgestead.store.control import Reader, Transaction
from edgestead.tables import custom_nameservers, settings, signing, zones
from edgestead.tables.zones import Editable, SettingsWanted, ZoneRow
from edgestead.usecases.serving import keyset
from edgestead.usecases.serving.keyset import CSK, LAYOUTS, ZSK, ZSK_DAYS
from edgestead.usecases.serving.rendering import PLAIN, Renderer, Soa, ZoneFacts
from edgestead.usecases.serving.signing import ACTIVE, IS_SERVED, LEAVING, OFFERED, SETTING, read_stored

APEXES_KEPT_MAX = 1024  # zones whose names were read lately
DNSSEC = "zone.dnssec"
FAMILY = "dns"
SECONDARY = "secondary"  # the type of a zone that is transferred from elsewhere
OVERRIDES = f"{FAMILY}.secondary_overrides"
ENFORCE_DNS_ONLY = f"{FAMILY}.enforce_dns_only"
"""Of an account: every zone of it serves proxied records as they are written."""
IPV6 = "ipv6"
VANITY = "zone.vanity_name_servers"
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


class StoredDnssec(msgspec.Struct, frozen=True):
    """Contract "DNSSEC": DNSKEY records may be added only with `multi_signer`.

    `layout` is which keys the zone has (`keyset.LAYOUTS`). A key that has signed for its days is replaced;
    0 days: only when somebody asks. `ksk_days` is also a CSK's. With `zonemd` the zone has a digest of
    itself.
    """

    multi_signer: bool = False
    presigned: bool = False
    use_nsec3: bool = False
    zonemd: bool = False
    layout: str = CSK
    ksk_days: int = 0
    zsk_days: int = ZSK_DAYS

    @property
    def roles(self) -> tuple[str, ...]:
        return LAYOUTS[self.layout]

    def days(self, role: str) -> int:
        """How long a key of this role signs, 0 for ever.

        For ever in a zone that others sign, too: they need each new key before it signs (RFC 8901 §6).
        """
        if self.multi_signer:
            return 0
        return self.zsk_days if role == ZSK else self.ksk_days


_SWITCHED_OFF = StoredDnssec()
_read_dnssec = msgspec.json.Decoder(StoredDnssec).decode
read_nameservers = msgspec.json.Decoder(Nameservers).decode
read_soa = msgspec.json.Decoder(StoredSoa).decode
_WANTED = SettingsWanted(
    ENFORCE_DNS_ONLY, f"{FAMILY}.", f"{FAMILY}/", ("http2", "http3", IPV6, SETTING, DNSSEC)
)
_NAMESERVERS = f"{FAMILY}.nameservers"
_DNS_ONLY = '"dns_only"'
_read_number = msgspec.json.Decoder(int).decode
_read_flag = msgspec.json.Decoder(bool).decode
_read_names = msgspec.json.Decoder(tuple[str, ...]).decode


@lru_cache(APEXES_KEPT_MAX)
def _apex(name: str) -> bytes:
    return names.wire_from_text(name)


def apex_of(zone: ZoneRow) -> bytes:
    """A zone's name in wire form."""
    return _apex(zone.name)


def editable(reader: Reader, zone_id: str) -> Editable:
    """A zone with what `facts_in` needs. Raises ZoneNotFound."""
    found = zones.editable(reader, zone_id, _WANTED)
    if found is None:
        raise ZoneNotFound
    return found


def facts_of(reader: Reader, zone: ZoneRow) -> ZoneFacts:
    """The facts as they are in this transaction or snapshot. Raises ZoneNotFound."""
    return facts_in(reader, editable(reader, zone.id))


def facts_in(reader: Reader, found: Editable) -> ZoneFacts:
    """Only custom name servers are looked for, where a setting names a set of them."""
    said, dns_only = found.settings, _is_on(found.of_account)
    is_secondary = found.zone.type == SECONDARY
    if not (said or dns_only or is_secondary):
        return PLAIN
    dns_only = dns_only or (is_secondary and said.get(OVERRIDES) != "true")
    facts = PLAIN._replace(alpn=_alpn(said), dns_only=dns_only, ipv6=said.get(IPV6) != '"off"')
    switches = _read_dnssec(said[DNSSEC]) if DNSSEC in said else _SWITCHED_OFF
    presigned = is_secondary and switches.presigned
    digest = switches.zonemd and not is_secondary
    facts = facts._replace(transferred=is_secondary, presigned=presigned, digest=digest)
    for id_, value in said.items():
        if id_ in _READ:
            facts = _READ[id_](facts, value)
    if _NAMESERVERS in said:
        servers = server_names(reader, found.zone, read_nameservers(said[_NAMESERVERS]))
        facts = facts._replace(servers=tuple(map(names.wire_from_text, servers)))
    if SETTING in said:
        state = read_stored(said[SETTING]).state
        keys = _keys(reader, apex_of(found.zone), found.zone.id, state)
        facts = facts._replace(signing=state, keys=keys)
    return facts._replace(dns_only=True, flatten_all=False) if presigned else facts


def _keys(reader: Reader, apex: bytes, zone_id: str, state: str) -> tuple[ServedRRset, ...]:
    """What the apex serves of the zone's keys in a state."""
    if state not in IS_SERVED:
        return ()
    rows = signing.keys(reader, zone_id)
    keys = (keyset.dnskeys(rows),)
    if state in (OFFERED, ACTIVE):
        return keys + keyset.wanted_at_parent(apex, rows)
    return keys + keyset.GONE_AT_PARENT if state == LEAVING else keys


_READ: Mapping[str, Callable[[ZoneFacts, str], ZoneFacts]] = {
    f"{FAMILY}.soa": lambda facts, value: facts._replace(soa=_soa(read_soa(value))),
    f"{FAMILY}.ns_ttl": lambda facts, value: facts._replace(ns_ttl=_read_number(value)),
    f"{FAMILY}.multi_provider": lambda facts, value: facts._replace(multi_provider=_read_flag(value)),
    f"{FAMILY}.flatten_all_cnames": lambda facts, value: facts._replace(flatten_all=_read_flag(value)),
    f"{FAMILY}.zone_mode": lambda facts, value: facts._replace(dns_only=facts.dns_only or value == _DNS_ONLY),
}


def _alpn(said: Mapping[str, str]) -> tuple[bytes, ...]:
    """Spec "Content rules" 5: HTTP/3 before HTTP/2, as far as the zone has them on."""
    return tuple(PROTOCOLS[id_] for id_ in sorted(PROTOCOLS, reverse=True) if said.get(id_) == '"on"')


def _is_on(value: str | None) -> bool:
    return value is not None and _read_flag(value)


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


def children(reader: Reader, name: str) -> list[str]:
    """The apexes of our zones that lie below a name and not below each other."""
    below = dict.fromkeys(zones.names_below(reader, name))
    return [found for found in below if not any(above in below for above in _names_above(found))]


def _names_above(name: str) -> Iterator[str]:
    while "." in name:
        name = name.partition(".")[2]
        yield name


def signed_above(reader: Reader, name: str) -> str | None:
    """The id of the zone of ours that a name would be delegated in, when it is signed."""
    while "." in name:
        name = name.partition(".")[2]
        zone_id = zones.id_by_name(reader, name)
        if zone_id is not None:
            return zone_id if settings.one(reader, zone_id, SETTING) else None
    return None


def delegation(tx: Transaction, renderer: Renderer, name: str) -> tuple[ServedRRset, ...]:
    """What a signed zone serves for a zone of ours that begins at `name`; nothing where none does.

    Without it the zone would deny a name that we answer: a validating resolver believes the denial. Its DS
    are what the zone asks for with its CDS, those of other signers among them.
    """
    zone_id = zones.id_by_name(tx, name)
    if zone_id is None:
        return ()
    facts = facts_in(tx, editable(tx, zone_id))
    rrsets = (renderer.name_servers(facts),)
    if facts.signing not in (OFFERED, ACTIVE):
        return rrsets
    document = tx.newest(zone_id, served.KIND_NAME, names.wire_from_text(name).hex())
    apex = served.decode_name(document).rrsets if document else ()
    wanted = [ServedRRset(dnssec.DS, one.ttl_seconds, one.rdatas) for one in apex if one.type == dnssec.CDS]
    return (*rrsets, *wanted)


def has_overrides(reader: Reader, zone_id: str) -> bool:
    """Whether names of a secondary zone may be proxied."""
    found = settings.one(reader, zone_id, OVERRIDES)
    return found is not None and _read_flag(found.value)


def stored_dnssec(reader: Reader, zone_id: str) -> StoredDnssec:
    found = settings.one(reader, zone_id, DNSSEC)
    return _read_dnssec(found.value) if found else StoredDnssec()
