"""Certificate packs: the certificates that authorities issue for a zone, as the API shows and orders them.

Owns  the shapes; which hosts may be ordered; whether a zone gets a certificate by itself.
Not   the steps of an order (`usecases.certificate.orders`).
"""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.names import InvalidName
from edgestead.model.refusals.certificate import (
    NoAuthority,
    OrderRefused,
    PackNotFound,
    TooManyCertificates,
)
from edgestead.model.settings import ACME_VALIDATION
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import certificates, settings, zones
from edgestead.tables.certificates import CertificateRow
from edgestead.usecases.certificate import orders, states
from edgestead.usecases.certificate.orders import OFF, SETTING
from edgestead.usecases.certificate.reading import HOSTS_MAX
from edgestead.usecases.certificate.states import read_progress
from edgestead.usecases.limits import PACKS_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import certificates as served
from edgestead.usecases.serving import proofs
from edgestead.usecases.serving.certificates import ADVANCED, CUSTOM, UNIVERSAL, read_hosts

_DAY_US: Final = 86_400_000_000
_STATUS: Final = {
    states.WANTED: "initializing",
    states.ORDERED: "pending_validation",
    states.PROVING: "pending_validation",
    states.READY: "pending_issuance",
    states.ISSUED: "active",
    states.FAILED: "validation_timed_out",
}
_AUTHORITIES: Final = {  # as clients call them, by the end of the directory's host
    "letsencrypt.org": "lets_encrypt",
    "pki.goog": "google",
    "ssl.com": "ssl_com",
}


class UniversalBody(msgspec.Struct, frozen=True):
    enabled: bool | None = None


class UniversalView(msgspec.Struct, frozen=True):
    enabled: bool


class PackBody(msgspec.Struct, frozen=True):
    """An order. The authority and the days are the server's choice; others that are asked for are refused."""

    hosts: list[str] | None = None
    type: str | None = None
    validation_method: str | None = None
    validity_days: int | None = None
    certificate_authority: str | None = None
    cloudflare_branding: bool | None = None


class PackCertificate(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    hosts: list[str]
    issuer: str
    signature: str
    status: str
    bundle_method: str
    zone_id: str
    uploaded_on: str
    modified_on: str
    expires_on: str
    priority: int


class PackError(msgspec.Struct, frozen=True):
    message: str


class PackView(msgspec.Struct, frozen=True, kw_only=True):
    """`certificates` is empty until there is one. `validation_errors` are the authority's words."""

    id: str
    type: str
    hosts: list[str]
    status: str
    validation_method: str
    validity_days: int
    certificate_authority: str
    created_on: str
    primary_certificate: str | None
    certificates: list[PackCertificate]
    validation_errors: list[PackError]
    cloudflare_branding: bool


class Quota(msgspec.Struct, frozen=True):
    allocated: int
    used: int


class QuotaView(msgspec.Struct, frozen=True):
    """Of certificates that are ordered; the zone's own does not count."""

    advanced: Quota


def show_universal(reader: Reader, zone_id: str) -> UniversalView:
    """Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    found = settings.one(reader, zone_id, SETTING)
    return UniversalView(enabled=found is None or found.value != OFF)


def patch_universal(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, body: UniversalBody
) -> UniversalView:
    """Whether a zone gets a certificate by itself. Without, the one that it has goes.

    Raises ZoneNotFound, OrderRefused.
    """
    zone_of(tx, zone_id)
    if body.enabled is None:
        raise OrderRefused(reason="enabled is true or false", pointer="/enabled")
    settings.put(tx, zone_id, SETTING, "true" if body.enabled else OFF, call.now_us)
    if not body.enabled:
        for row in certificates.of_kind(tx, zone_id, UNIVERSAL):
            orders.remove(call, tx, platform, row)
    return UniversalView(enabled=body.enabled)


def listed(reader: Reader, zone_id: str, limit: int, offset: int, *, every: bool) -> Listed:
    """The newest first; without `every` only those that are served. Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    rows = [row for row in certificates.of_zone(reader, zone_id) if row.kind != CUSTOM]
    found = [view(row) for row in rows if every or row.chain]
    return Listed(found[offset : offset + limit], len(found))


def show(reader: Reader, zone_id: str, pack_id: str) -> PackView:
    """Raises ZoneNotFound, PackNotFound."""
    zone_of(reader, zone_id)
    return view(_find(reader, zone_id, pack_id))


def quota(reader: Reader, zone_id: str) -> QuotaView:
    """Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    return QuotaView(advanced=Quota(PACKS_MAX, len(certificates.of_kind(reader, zone_id, ADVANCED))))


def order(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: PackBody) -> PackView:
    """Raises ZoneNotFound, NoAuthority, OrderRefused, TooManyCertificates."""
    zone = zone_of(tx, zone_id)
    if not platform.orders_certificates:
        raise NoAuthority
    if body.type not in (None, ADVANCED):
        raise OrderRefused(reason=f"type is {ADVANCED}", pointer="/type")
    method = orders.method_of(tx, zone_id)
    if body.validation_method not in (None, method):
        raise OrderRefused(
            reason=f"validation_method is {method}, as the zone's {ACME_VALIDATION} says",
            pointer="/validation_method",
        )
    hosts = _hosts(tx, zone.name, body.hosts or [])
    if method != proofs.TXT and any(host.startswith("*.") for host in hosts):
        raise OrderRefused(reason=f"no wildcard can be proved by {method}", pointer="/hosts")
    if len(certificates.of_kind(tx, zone_id, ADVANCED)) >= PACKS_MAX:
        raise TooManyCertificates(certificates_max=PACKS_MAX)
    return view(orders.add(call, tx, platform, zone_id, ADVANCED, hosts))


def renew(call: Call, tx: Transaction, platform: Platform, zone_id: str, pack_id: str) -> PackView:
    """Order anew at once; what is served goes on until then. One that is under way goes on.

    Raises ZoneNotFound, PackNotFound, NoAuthority.
    """
    zone_of(tx, zone_id)
    row = _find(tx, zone_id, pack_id)
    if not platform.orders_certificates:
        raise NoAuthority
    if row.state not in states.UNDER_WAY:
        orders.again(call, tx, row)
    return view(_find(tx, zone_id, pack_id))


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str, pack_id: str) -> None:
    """Raises ZoneNotFound, PackNotFound; OrderRefused: the zone's own, which would come again."""
    zone_of(tx, zone_id)
    row = _find(tx, zone_id, pack_id)
    if row.kind == UNIVERSAL:
        raise OrderRefused(reason="the zone's own certificate goes with ssl/universal/settings")
    orders.remove(call, tx, platform, row)


def view(row: CertificateRow) -> PackView:
    progress, hosts = read_progress(row.body), list(read_hosts(row.hosts))
    status = _STATUS["issued"] if row.chain else _STATUS[row.state]
    found = []
    if row.chain:
        found.append(
            PackCertificate(
                id=row.id,
                hosts=hosts,
                issuer=progress.issuer,
                signature=progress.signature,
                status=status,
                bundle_method="ubiquitous",
                zone_id=row.zone_id,
                uploaded_on=six_digits(row.starts_us),
                modified_on=six_digits(row.modified_us),
                expires_on=six_digits(row.ends_us),
                priority=0,
            )
        )
    return PackView(
        id=row.id,
        type=row.kind,
        hosts=hosts,
        status=status,
        validation_method=progress.method,
        validity_days=round((row.ends_us - row.starts_us) / _DAY_US) if row.chain else 0,
        certificate_authority=_authority(progress.directory),
        created_on=six_digits(row.created_us),
        primary_certificate=row.id if row.chain else None,
        certificates=found,
        validation_errors=[PackError(progress.error)] if progress.error else [],
        cloudflare_branding=False,
    )


def _authority(directory: str) -> str:
    host = urlsplit(directory).hostname or ""
    return next((name for end, name in _AUTHORITIES.items() if host.endswith(end)), host)


def _find(reader: Reader, zone_id: str, pack_id: str) -> CertificateRow:
    """Raises PackNotFound."""
    row = certificates.one(reader, zone_id, pack_id)
    if row is None or row.kind == CUSTOM:
        raise PackNotFound(id=pack_id)
    return row


def _hosts(reader: Reader, apex: str, wanted: list[str]) -> tuple[str, ...]:
    """Names of this zone, each once. Raises OrderRefused."""
    if not 0 < len(wanted) <= HOSTS_MAX:
        raise OrderRefused(reason=f"hosts are 1 to {HOSTS_MAX} names", pointer="/hosts")
    found: dict[str, None] = {}
    below = zones.names_below(reader, apex)
    for host in wanted:
        bare = host.removeprefix("*.")
        try:
            name = names.text_from_wire(names.wire_from_text(bare)).lower().rstrip(".")
        except InvalidName:
            raise OrderRefused(reason=f"{names.shown(host)} is no name", pointer="/hosts") from None
        is_ours = served.is_within(name, apex) and not any(served.is_within(name, one) for one in below)
        if "*" in name or not is_ours:
            raise OrderRefused(reason=f"{names.shown(host)} is no name of {apex}", pointer="/hosts")
        found[f"*.{name}" if host.startswith("*.") else name] = None
    return tuple(found)
