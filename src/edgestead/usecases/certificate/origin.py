"""Certificates for origins, signed by an authority of this server's own, which the edge trusts at `strict`.

Owns  the shapes, which names a caller gets one for, the authority, revoking.
Not   X.509 (`usecases.certificate.signing`); checking an origin's certificate (`edge.http.origin_tls`).

No browser trusts them: they are for the way between the edge and an origin. The origin makes its key and
sends a request for it (PKCS #10), so that the key never leaves it.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.names import InvalidName
from edgestead.model.refusals.certificate import (
    CertificateNotFound,
    OriginRequestRefused,
    TooManyCertificates,
)
from edgestead.model.refusals.setting import KeysSealed
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import origin_certificates as rows
from edgestead.tables import zones
from edgestead.tables.origin_certificates import OriginRow
from edgestead.usecases.access.authorise import Identity, permits, zone_target
from edgestead.usecases.certificate import signing
from edgestead.usecases.certificate.reading import HOSTS_MAX
from edgestead.usecases.limits import ORIGIN_CERTIFICATES_MAX, ORIGIN_REVOKED_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import certificates as served
from edgestead.usecases.serving.certificates import read_hosts

READ, WRITE = "SSL and Certificates Read", "SSL and Certificates Write"
REQUEST_TYPES: Final = ("origin-rsa", "origin-ecc")
VALIDITY_DAYS: Final = (7, 30, 90, 365, 730, 1_095, 5_475)  # those that clients know
_SEALED_FOR = "origin authority"
_DAY_US = 86_400_000_000
_encode = msgspec.json.Encoder().encode


class OriginBody(msgspec.Struct, frozen=True):
    """`csr` is PEM; `hostnames` are what the certificate is for, whatever the request names."""

    csr: str | None = None
    hostnames: list[str] | None = None
    request_type: str | None = None
    requested_validity: int | None = None


class OriginView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    certificate: str
    csr: str
    expires_on: str
    hostnames: list[str]
    request_type: str
    requested_validity: int


class RevokedView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    revoked_at: str


class Wish(msgspec.Struct, frozen=True):
    """A body that was read, before the writer is asked for anything."""

    request: signing.Request
    hosts: tuple[str, ...]
    request_type: str
    validity_days: int


def read(body: OriginBody) -> Wish:
    """Raises OriginRequestRefused."""
    days = VALIDITY_DAYS[-1] if body.requested_validity is None else body.requested_validity
    if days not in VALIDITY_DAYS:
        raise _refused(
            f"requested_validity is one of {', '.join(map(str, VALIDITY_DAYS))} days", "requested_validity"
        )
    request = signing.read_request(body.csr or "")
    wanted = body.request_type or request.type
    if wanted not in REQUEST_TYPES:
        raise _refused(f"request_type is one of {', '.join(REQUEST_TYPES)}", "request_type")
    if wanted != request.type:
        raise _refused(f"the key is one of {request.type}", "request_type")
    return Wish(request, _hosts(body.hostnames or ()), wanted, days)


def create(call: Call, tx: Transaction, platform: Platform, identity: Identity, wish: Wish) -> OriginView:
    """Raises OriginRequestRefused: a name is of no zone that the caller may do this in, or they are of
    several zones; TooManyCertificates.
    """
    zone_id = _zone_of(tx, identity, wish.hosts)
    if rows.count(tx, zone_id) >= ORIGIN_CERTIFICATES_MAX:
        raise TooManyCertificates(certificates_max=ORIGIN_CERTIFICATES_MAX)
    _check_room(call, tx, zone_id)
    authority = _authority(call, tx, platform)
    signed = authority.sign(wish.request, wish.hosts, call.now_us, wish.validity_days)
    row = OriginRow(
        id=platform.new_id(),
        zone_id=zone_id,
        serial=signed.serial,
        hosts=_encode(wish.hosts).decode(),
        request_type=wish.request_type,
        validity_days=wish.validity_days,
        csr=wish.request.pem,
        certificate=signed.pem,
        created_us=call.now_us,
        ends_us=signed.ends_us,
        revoked_us=0,
    )
    rows.insert(tx, row)
    return view(row)


def _check_room(call: Call, tx: Transaction, zone_id: str) -> None:
    """Each one can be revoked, and all that were are told to the edge: a list that is full would forget some,
    which would be trusted again. Raises OriginRequestRefused.
    """
    rows.forget_ended(tx, call.now_us)
    if rows.count_revoked(tx, zone_id, call.now_us) >= ORIGIN_REVOKED_MAX:
        raise _refused(
            f"the zone has {ORIGIN_REVOKED_MAX} that were revoked and have not ended;"
            " those of a shorter requested_validity end sooner",
            "hostnames",
        )
    if rows.count_all(tx) >= served.REVOKED_MAX:
        raise _refused(
            f"this server has signed {served.REVOKED_MAX} that have not ended, and keeps no more", "hostnames"
        )


def listed(reader: Reader, identity: Identity, zone_id: str | None, limit: int, offset: int) -> Listed:
    """Those of a zone that are not revoked, the newest first.

    Raises OriginRequestRefused without a zone; ZoneNotFound, also for one that the caller may not see.
    """
    if zone_id is None:
        raise _refused("the query names no zone_id", "zone_id")
    zone_of(reader, zone_id if _may(reader, identity, READ, zone_id) else "")
    found = rows.of_zone(reader, zone_id, limit, offset)
    return Listed([view(row) for row in found], rows.count(reader, zone_id))


def show(reader: Reader, identity: Identity, certificate_id: str) -> OriginView:
    """Raises CertificateNotFound."""
    return view(_find(reader, identity, READ, certificate_id))


def revoke(call: Call, tx: Transaction, identity: Identity, certificate_id: str) -> RevokedView:
    """No edge process takes it any more within some seconds. Raises CertificateNotFound."""
    row = _find(tx, identity, WRITE, certificate_id)
    rows.forget_ended(tx, call.now_us)
    rows.revoke(tx, row.id, call.now_us)
    served.changed(tx, call.now_us)
    return RevokedView(id=row.id, revoked_at=six_digits(call.now_us))


def view(row: OriginRow) -> OriginView:
    return OriginView(
        id=row.id,
        certificate=row.certificate,
        csr=row.csr,
        expires_on=six_digits(row.ends_us),
        hostnames=list(read_hosts(row.hosts)),
        request_type=row.request_type,
        requested_validity=row.validity_days,
    )


def _find(reader: Reader, identity: Identity, group: str, certificate_id: str) -> OriginRow:
    """Raises CertificateNotFound: also for one that is not the caller's."""
    row = rows.one(reader, certificate_id)
    if row is None or row.revoked_us or not _may(reader, identity, group, row.zone_id):
        raise CertificateNotFound(id=certificate_id)
    return row


def _may(reader: Reader, identity: Identity, group: str, zone_id: str) -> bool:
    return permits(identity, group, zone_target(reader, zone_id))


def _authority(call: Call, tx: Transaction, platform: Platform) -> signing.Authority:
    """The server's own, made with the first certificate, and again where a restore lost its seal: what an
    earlier one has signed is trusted still.
    """
    found = rows.authorities(tx)
    with suppress(KeysSealed):
        if found:
            return signing.Authority(found[0][0], platform.seal.unwrap(_SEALED_FOR, found[0][1]))
    made = signing.new_authority(call.now_us)
    sealed = platform.seal.wrap(_SEALED_FOR, made.key_pem)
    rows.add_authority(tx, call.now_us, made.certificate, sealed)
    served.changed(tx, call.now_us)
    return made


def _zone_of(reader: Reader, identity: Identity, hosts: Sequence[str]) -> str:
    """The id of the zone that all of the names are of, the closest one. Raises OriginRequestRefused."""
    found: set[str] = set()
    for host in hosts:
        zone_id = _closest(reader, host.removeprefix("*."))
        if zone_id is None or not _may(reader, identity, WRITE, zone_id):
            raise _refused(f"{host} is of no zone that you may do this in", "hostnames")
        found.add(zone_id)
    if len(found) != 1:
        raise _refused("the names are of several zones", "hostnames")
    return found.pop()


def _closest(reader: Reader, name: str) -> str | None:
    while name:
        zone_id = zones.id_by_name(reader, name)
        if zone_id is not None:
            return zone_id
        name = name.partition(".")[2]
    return None


def _hosts(wanted: Sequence[str]) -> tuple[str, ...]:
    """Lower case, each once. Raises OriginRequestRefused."""
    if not 0 < len(wanted) <= HOSTS_MAX:
        raise _refused(f"hostnames are 1 to {HOSTS_MAX} names", "hostnames")
    found: dict[str, None] = {}
    for host in wanted:
        bare = host.removeprefix("*.")
        try:
            name = names.text_from_wire(names.wire_from_text(bare)).lower().rstrip(".")
        except InvalidName:
            name = "*"
        if not name or "*" in name:
            raise _refused(f"{names.shown(host)} is no name", "hostnames")
        found[f"*.{name}" if host.startswith("*.") else name] = None
    return tuple(found)


def _refused(reason: str, member: str) -> OriginRequestRefused:
    return OriginRequestRefused(reason=reason, pointer=f"/{member}")
