"""What a zone serves: its records and settings, rendered as RRsets.

Owns  the automatic SOA and NS, the rule of one TTL, what proxied names answer, what is stored and not served.
Not   reading or writing rows; answering queries. Pure.

Stored, and not served here:
  NS at the apex        unless the zone has several providers: the zone's own name servers stand there
  a flattened CNAME     its target's addresses stand in its place (`usecases.serving.flattening`)
  beside a plain CNAME  every other type (RFC 2181 §10.1)
  DS without NS         a DS belongs to a delegation (RFC 4035 §2.4)

A name that has records and serves none of them exists all the same: EXISTS is what it serves then.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

import msgspec

from edgestead.model import dnssec, names
from edgestead.model.limits import TTL_SECONDS_AUTO
from edgestead.model.records import TYPES
from edgestead.model.served import EXISTS, ServedName, ServedRRset, ServedZone, mark
from edgestead.tables.records import Neighbour
from edgestead.usecases.serving import keyset

SOA_TTL_SECONDS = 3_600
SOA_REFRESH_SECONDS = 10_000
SOA_RETRY_SECONDS = 2_400
SOA_EXPIRE_SECONDS = 604_800
SOA_MINIMUM_SECONDS = 1_800  # how long "no such name" may be remembered
NS_TTL_SECONDS = 86_400

ADDRESS_TYPES = frozenset(("A", "AAAA", "CNAME"))
_ALPN, _IPV4HINT, _IPV6HINT = 1, 4, 6  # SvcParamKeys, RFC 9460 §14.3.2
DNSKEY = TYPES["DNSKEY"].number
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
    """What a zone's DNS settings change in what it serves (`usecases.serving.facts`).

    `servers` are its name servers, most important first; none means the server's own.
    `multi_provider` serves NS records at the apex beside them. `flatten_all` flattens every CNAME, `alpn` are
    the protocols that HTTPS records of proxied names offer, the best one first; none means no such records.
    `dns_only` serves proxied records as they are written, `ipv6` lets proxied names have AAAA records.
    `signing` is the state of a zone that is or becomes signed (`usecases.serving.signing`), `keys` what the
    apex serves of its keys. A `transferred` zone has the name servers that its records say; a
    `presigned` one has its primary's signatures besides (`usecases.serving.presigned`). One with a `digest`
    has a ZONEMD record (`usecases.serving.digests`).
    """

    servers: tuple[bytes, ...] = ()
    soa: Soa = Soa()
    ns_ttl: int = NS_TTL_SECONDS
    multi_provider: bool = False
    flatten_all: bool = False
    alpn: tuple[bytes, ...] = ()
    dns_only: bool = False
    ipv6: bool = True
    signing: str = ""
    keys: tuple[ServedRRset, ...] = ()
    transferred: bool = False
    presigned: bool = False
    digest: bool = False


PLAIN = ZoneFacts()


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record's settings, as they are sent and as its row has them; None is what nobody set."""

    flatten_cname: bool | None = None
    ipv4_only: bool | None = None
    ipv6_only: bool | None = None


read_settings = msgspec.json.Decoder(Settings).decode


def is_proxied(records: Iterable[Neighbour]) -> bool:
    """One proxied address record makes the whole name proxied."""
    for record in records:  # a third of the time of `any`, which every change of a name asks three times
        if record.proxied:
            return True
    return False


def is_at_edge(records: Iterable[Neighbour], facts: ZoneFacts) -> bool:
    """Whether DNS answers a name with the edge's addresses."""
    return not facts.dns_only and is_proxied(records)


class Renderer:
    """Renders the zones of one server; the parts that all zones share are rendered once."""

    def __init__(self, nameservers: Sequence[str], edge_addresses: Sequence[str]) -> None:
        """Raises InvalidName, ValueError: a name server or edge address that is none."""
        self._servers = tuple(names.wire_from_text(server) for server in nameservers)
        self._rname = _rname(self._servers)
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

    def is_own_server(self, host: bytes) -> bool:
        """Whether this is a name server of the server itself, not of an account or zone."""
        return host in self._servers

    def rname(self, facts: ZoneFacts) -> bytes:
        """The mailbox of a zone that names none: of whoever runs its first name server."""
        return _rname(facts.servers) if facts.servers else self._rname

    def name_servers(self, facts: ZoneFacts) -> ServedRRset:
        """A zone's own name servers."""
        return self._apex_ns(facts, ())

    def _servers_of(self, facts: ZoneFacts) -> tuple[bytes, ...]:
        return facts.servers or self._servers

    def name(
        self,
        apex: bytes,
        owner: bytes,
        records: Sequence[Neighbour],
        facts: ZoneFacts = PLAIN,
        flat: Sequence[ServedRRset] | None = None,
    ) -> ServedName:
        """Everything that one owner serves; no RRset when there is no such name.

        `flat` stands in the place of a CNAME that is flattened; None: there is none, or it is served itself.
        """
        by_type: dict[str, list[Neighbour]] = {}
        for record in records:
            by_type.setdefault(record.type, []).append(record)
        by_type.pop("SOA", None)  # served with the zone, from the setting that the record is a view of
        at_apex = owner == apex
        has_own = at_apex and not facts.transferred
        rrsets = [self._apex_ns(facts, by_type.pop("NS", ()))] if has_own else []
        if is_at_edge(records, facts):
            rrsets += self._at_the_edge(records, facts, by_type)
            for type_ in ADDRESS_TYPES:
                by_type.pop(type_, None)
        elif flat is not None:
            del by_type["CNAME"]
            rrsets += flat
        elif "CNAME" in by_type:
            by_type = {"CNAME": by_type["CNAME"]}
        if "NS" not in by_type:
            by_type.pop("DS", None)
        rrsets += [_rrset(type_, members) for type_, members in by_type.items()]
        if at_apex and facts.keys:
            rrsets = _with_keys(apex, rrsets, facts.keys)
        if records and not rrsets:
            rrsets = [mark(EXISTS)]
        return ServedName(apex, owner, tuple(sorted(rrsets, key=_number)))

    def _apex_ns(self, facts: ZoneFacts, records: Sequence[Neighbour]) -> ServedRRset:
        """The zone's name servers; with several providers, those that NS records name too."""
        servers = set(self._servers_of(facts))
        if not facts.multi_provider or not records:
            return ServedRRset(_NS, facts.ns_ttl, tuple(sorted(servers)))
        others = _rrset("NS", records)
        ttl_seconds = min(facts.ns_ttl, others.ttl_seconds)  # RFC 2181 §5.2
        return ServedRRset(_NS, ttl_seconds, tuple(sorted(servers.union(others.rdatas))))

    def _at_the_edge(
        self, records: Sequence[Neighbour], facts: ZoneFacts, by_type: Mapping[str, object]
    ) -> list[ServedRRset]:
        """What a proxied name answers; an HTTPS record that somebody wrote wins over the one made here."""
        edge = self.edge_rrsets(records, facts)
        if edge and facts.alpn and "HTTPS" not in by_type:
            return [*edge, _https(facts.alpn, edge)]
        return edge

    def edge_rrsets(self, records: Sequence[Neighbour], facts: ZoneFacts) -> list[ServedRRset]:
        """The edge's addresses, of one family when a record or the zone asks for that."""
        edge = [rrset for rrset in self._edge if facts.ipv6 or rrset.type == _A]
        settings = [read_settings(record.settings) for record in records if record.proxied]
        if any(one.ipv4_only for one in settings):
            return [rrset for rrset in edge if rrset.type == _A]
        if any(one.ipv6_only for one in settings):
            return [rrset for rrset in edge if rrset.type == _AAAA]
        return edge


def _rname(servers: Sequence[bytes]) -> bytes:
    return names.wire_from_labels([b"hostmaster", *names.labels(names.parent(servers[0]))])


def _https(alpn: Sequence[bytes], edge: Sequence[ServedRRset]) -> ServedRRset:
    """The edge itself, in ServiceMode, with its protocols and addresses (RFC 9460 §7.1.1, §7.3)."""
    hints = {_A: _IPV4HINT, _AAAA: _IPV6HINT}
    parameters = {_ALPN: b"".join([bytes((len(one),)) + one for one in alpn])}
    parameters |= {hints[rrset.type]: b"".join(rrset.rdatas) for rrset in edge}
    rdata = (1).to_bytes(2, "big") + names.ROOT
    for key, value in sorted(parameters.items()):
        rdata += key.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value
    return ServedRRset(TYPES["HTTPS"].number, TTL_SECONDS_AUTO, (rdata,))


def rrsets_of(records: Iterable[Neighbour]) -> list[ServedRRset]:
    """Records of one name as they stand, by type."""
    by_type: dict[str, list[Neighbour]] = {}
    for record in records:
        by_type.setdefault(record.type, []).append(record)
    return [_rrset(type_, members) for type_, members in by_type.items()]


def _with_keys(apex: bytes, rrsets: Sequence[ServedRRset], keys: Sequence[ServedRRset]) -> list[ServedRRset]:
    """Our DNSKEY beside those of other signers of the zone (RFC 8901), whose entry points we ask the parent
    to hold as well: else it would drop them for ours. None of another algorithm: every one that is there has
    to sign every record (RFC 4035 §2.2), and we sign with one.
    """
    merged = {rrset.type: rrset for rrset in rrsets}
    others: tuple[bytes, ...] = ()
    if DNSKEY in merged:
        others = tuple(filter(dnssec.is_like_ours, merged[DNSKEY].rdatas))
        merged[DNSKEY] = ServedRRset(DNSKEY, merged[DNSKEY].ttl_seconds, others)
    for rrset in keyset.with_others(apex, keys, others):
        other = merged.get(rrset.type, rrset) if rrset.type == DNSKEY else rrset
        ttl_seconds = min(rrset.ttl_seconds, other.ttl_seconds)
        rdatas = tuple(sorted({*rrset.rdatas, *other.rdatas}))
        merged[rrset.type] = ServedRRset(rrset.type, ttl_seconds, rdatas)
    return list(merged.values())


def _rrset(type_: str, members: Sequence[Neighbour]) -> ServedRRset:
    """RFC 2181 §5.2: one TTL, the shortest that was asked for. Sorted: equal zones are equal bytes."""
    ttl_seconds = min(TTL_SECONDS_AUTO if member.ttl == 1 else member.ttl for member in members)
    return ServedRRset(TYPES[type_].number, ttl_seconds, tuple(sorted({member.rdata for member in members})))


def _number(rrset: ServedRRset) -> int:
    return rrset.type
