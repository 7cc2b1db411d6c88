"""What a zone serves: its records and settings, rendered as RRsets.

Owns  the automatic SOA and NS, the rule of one TTL, what proxied names answer, what is stored and not served.
Asks  `model.records` for type numbers; rdata comes in ready.
Tells `services.zone_edit`, which puts the result into the feed.
Not   reading or writing rows; answering queries. Pure.

Stored, and not served here:
  NS at the apex        unless the zone has several providers: the zone's own name servers stand there
  CNAME at the apex     it shares its name with SOA and NS (RFC 2181 §10.1); it is served once it is flattened
  beside a plain CNAME  every other type (RFC 2181 §10.1)
  DS without NS         a DS belongs to a delegation (RFC 4035 §2.4)
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from edgestead.model import names
from edgestead.model.limits import TTL_SECONDS_AUTO
from edgestead.model.records import TYPES
from edgestead.model.served import ServedName, ServedRRset, ServedZone
from edgestead.services.record_view import read_settings
from edgestead.tables.records import Neighbour

SOA_TTL_SECONDS = 3_600
SOA_REFRESH_SECONDS = 10_000
SOA_RETRY_SECONDS = 2_400
SOA_EXPIRE_SECONDS = 604_800
SOA_MINIMUM_SECONDS = 1_800  # how long "no such name" may be remembered
NS_TTL_SECONDS = 86_400
SERIAL_END = 1 << 32

ADDRESS_TYPES = frozenset(("A", "AAAA", "CNAME"))
_A, _AAAA, _NS = TYPES["A"].number, TYPES["AAAA"].number, TYPES["NS"].number


class Soa(NamedTuple):
    """A zone's SOA but for its serial. None is the server's choice; times are seconds."""

    mname: bytes | None = None
    rname: bytes | None = None
    refresh: int = SOA_REFRESH_SECONDS
    retry: int = SOA_RETRY_SECONDS
    expire: int = SOA_EXPIRE_SECONDS
    minimum: int = SOA_MINIMUM_SECONDS
    ttl: int = SOA_TTL_SECONDS


class ZoneFacts(NamedTuple):
    """What a zone's DNS settings change in what it serves (`services.zone_facts`).

    `servers` are its name servers, most important first; none means the server's own.
    `multi_provider` serves NS records at the apex beside them.
    """

    servers: tuple[bytes, ...] = ()
    soa: Soa = Soa()
    ns_ttl: int = NS_TTL_SECONDS
    multi_provider: bool = False


PLAIN = ZoneFacts()


def next_serial(serial: int) -> int:
    """RFC 1982 §3.1: the number after the last is 0."""
    return (serial + 1) % SERIAL_END


def is_proxied(records: Iterable[Neighbour]) -> bool:
    """One proxied address record makes the whole name proxied."""
    return any(record.proxied for record in records)


class Renderer:
    """Renders the zones of one server; the parts that all zones share are rendered once."""

    def __init__(self, nameservers: Sequence[str], edge_addresses: Sequence[str]) -> None:
        """Raises InvalidName, ValueError: a name server or edge address that is none."""
        self._servers = tuple(names.wire_from_text(server) for server in nameservers)
        addresses = [ip_address(text) for text in edge_addresses]
        self._edge = tuple(
            ServedRRset(number, TTL_SECONDS_AUTO, rdatas)
            for number, version in ((_A, 4), (_AAAA, 6))
            if (rdatas := tuple(sorted(one.packed for one in addresses if one.version == version)))
        )

    def zone(self, apex: bytes, serial: int, facts: ZoneFacts = PLAIN) -> ServedZone:
        soa = facts.soa
        mname = soa.mname or self._servers_of(facts)[0]
        rname = soa.rname or self.rname(facts)
        numbers = (serial, soa.refresh, soa.retry, soa.expire, soa.minimum)
        timers = b"".join([number.to_bytes(4, "big") for number in numbers])
        return ServedZone(apex, soa.ttl, mname + rname + timers)

    def rname(self, facts: ZoneFacts) -> bytes:
        """The mailbox of a zone that names none: of whoever runs its first name server."""
        domain = names.parent(self._servers_of(facts)[0])
        return names.wire_from_labels([b"hostmaster", *names.labels(domain)])

    def _servers_of(self, facts: ZoneFacts) -> tuple[bytes, ...]:
        return facts.servers or self._servers

    def name(
        self, apex: bytes, owner: bytes, records: Sequence[Neighbour], facts: ZoneFacts = PLAIN
    ) -> ServedName:
        """Everything that one owner serves; no RRset when it serves nothing."""
        by_type: dict[str, list[Neighbour]] = {}
        for record in records:
            by_type.setdefault(record.type, []).append(record)
        by_type.pop("SOA", None)  # served with the zone, from the setting that the record is a view of
        at_apex = owner == apex
        rrsets = [self._apex_ns(facts, by_type.pop("NS", ()))] if at_apex else []
        if is_proxied(records):
            rrsets += self._edge_rrsets(records)
            for type_ in ADDRESS_TYPES:
                by_type.pop(type_, None)
        elif "CNAME" in by_type:
            by_type = _without_alias(by_type) if at_apex else {"CNAME": by_type["CNAME"]}
        if "NS" not in by_type:
            by_type.pop("DS", None)
        rrsets += [_rrset(type_, members) for type_, members in by_type.items()]
        return ServedName(apex, owner, tuple(sorted(rrsets, key=_number)))

    def _apex_ns(self, facts: ZoneFacts, records: Sequence[Neighbour]) -> ServedRRset:
        """The zone's name servers; with several providers, those that NS records name too."""
        servers = set(self._servers_of(facts))
        if not facts.multi_provider or not records:
            return ServedRRset(_NS, facts.ns_ttl, tuple(sorted(servers)))
        others = _rrset("NS", records)
        ttl_seconds = min(facts.ns_ttl, others.ttl_seconds)  # RFC 2181 §5.2
        return ServedRRset(_NS, ttl_seconds, tuple(sorted(servers.union(others.rdatas))))

    def _edge_rrsets(self, records: Sequence[Neighbour]) -> list[ServedRRset]:
        """The edge's addresses, of one family when a record asks for that."""
        settings = [read_settings(record.settings) for record in records if record.proxied]
        if any(one.ipv4_only for one in settings):
            return [rrset for rrset in self._edge if rrset.type == _A]
        if any(one.ipv6_only for one in settings):
            return [rrset for rrset in self._edge if rrset.type == _AAAA]
        return list(self._edge)


def _without_alias(by_type: Mapping[str, list[Neighbour]]) -> dict[str, list[Neighbour]]:
    return {type_: members for type_, members in by_type.items() if type_ != "CNAME"}


def _rrset(type_: str, members: Sequence[Neighbour]) -> ServedRRset:
    """RFC 2181 §5.2: one TTL, the shortest that was asked for. Sorted: equal zones are equal bytes."""
    ttl_seconds = min(TTL_SECONDS_AUTO if member.ttl == 1 else member.ttl for member in members)
    return ServedRRset(TYPES[type_].number, ttl_seconds, tuple(sorted({member.rdata for member in members})))


def _number(rrset: ServedRRset) -> int:
    return rrset.type
