"""The certificates that the edge serves, of those that are stored.

Owns  which certificate a name gets; noticing that they are others than before.
Not   how certificates come and go (`usecases.certificate`); TLS.

Of several for one name an uploaded one goes first, then one that was ordered, then the zone's own. Among
those uploaded one of the type `legacy_custom` goes first, then the higher priority; among equals the newest.
A certificate speaks only for names of its own zone, whatever else stands in it: nobody gets at the visitors
of another zone by uploading one.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from edgestead.model.refusals.setting import KeysSealed
from edgestead.store.control import Reader, Transaction
from edgestead.tables import certificates, origin_certificates, settings, zones
from edgestead.tables.certificates import Served
from edgestead.usecases.serving import proofs
from edgestead.usecases.serving.keys import Seal
from edgestead.usecases.serving.proofs import Proof

UNIVERSAL, ADVANCED, CUSTOM = "universal", "advanced", "custom"
LEGACY, SNI = "legacy_custom", "sni_custom"  # types of uploaded ones
SERVED_MAX: Final = 20_000  # of the server, about 100 MB with their chains; the newest are served
PROOFS_MAX: Final = 10_000  # that the edge shows at a time: orders are taken one after the other
REVOKED_MAX: Final = 100_000  # serials of 40 characters that the edge is told, the latest; 5 MB
_ORDER: Mapping[str, int] = {CUSTOM: 0, ADVANCED: 1, UNIVERSAL: 2}
_SERVER = "server"  # a scope of settings that no zone, account or user has
_VERSION = "certificates.version"
read_hosts = msgspec.json.Decoder(tuple[str, ...]).decode


class _Rank(msgspec.Struct, frozen=True):
    """What the body of an uploaded one says of its place."""

    type: str = LEGACY
    priority: int = 0


_read_rank = msgspec.json.Decoder(_Rank).decode


class Pair(NamedTuple):
    """A certificate with its chain, and its key, both PEM. `names` are lower case, with their asterisk."""

    names: tuple[str, ...]
    chain: bytes
    key: bytes


def version(reader: Reader) -> int:
    """Another number after every change of what is served."""
    found = settings.one(reader, _SERVER, _VERSION)
    return int(found.value) if found else 0


def changed(tx: Transaction, now_us: int) -> None:
    settings.put(tx, _SERVER, _VERSION, str(version(tx) + 1), now_us)


def forget_zone(tx: Transaction, zone_id: str, now_us: int) -> None:
    had = certificates.forget_zone(tx, zone_id)
    if origin_certificates.revoke_zone(tx, zone_id, now_us) or had:
        changed(tx, now_us)


def proofs_at_edge(reader: Reader) -> list[Proof]:
    """What the edge shows to authorities."""
    rows = certificates.proofs_at_edge(reader, PROOFS_MAX)
    return [found for name, value in rows if (found := proofs.at_the_edge(name, value)) is not None]


class Origins(NamedTuple):
    """Who vouches for origins besides the system's authorities (PEM), and serials that count no more."""

    authority: str
    revoked: tuple[str, ...]


def of_origins(reader: Reader, now_us: int) -> Origins:
    found = origin_certificates.authorities(reader)
    if not found:
        return Origins("", ())
    authorities = "".join(certificate for certificate, _ in found)
    return Origins(authorities, tuple(origin_certificates.revoked(reader, now_us, REVOKED_MAX)))


def is_within(host: str, apex: str) -> bool:
    """Whether a name, or all names below one, are of a zone."""
    host = host.removeprefix("*.")
    return host == apex or host.endswith(f".{apex}")


def pairs(reader: Reader, seal: Seal) -> tuple[list[Pair], int]:
    """Every pair in the order in which names are looked for in them, each name in one of them; and how many
    cannot be opened.
    """
    rows = sorted(certificates.served(reader, SERVED_MAX), key=_place)
    apexes = {zone.name for zone in zones.every(reader)} if rows else set()
    taken: set[str] = set()
    found, closed = [], 0
    for row in rows:
        wanted = [host for host in read_hosts(row.hosts) if _zone_of(host, apexes) == row.zone_name]
        free = tuple(host for host in wanted if host not in taken)
        if not free:
            continue
        try:
            key = seal.unwrap(row.zone_id, row.sealed)
        except KeysSealed:
            closed += 1
            continue
        taken.update(free)
        found.append(Pair(free, row.chain.encode(), key))
    return found, closed


def _place(row: Served) -> tuple[int, bool, int]:
    rank = _read_rank(row.body) if row.kind == CUSTOM else _Rank()
    return _ORDER.get(row.kind, 0), rank.type == SNI, -rank.priority


def _zone_of(host: str, apexes: set[str]) -> str:
    """The zone of ours that a name stands in, the closest one; a wildcard in that of the names it is for."""
    return next((name for name in _upwards(host.removeprefix("*.")) if name in apexes), "")


def _upwards(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.partition(".")[2]
