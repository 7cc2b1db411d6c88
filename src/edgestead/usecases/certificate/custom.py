"""Certificates that are uploaded with their keys.

Owns  the shape, what may be uploaded to a zone, when the edge is told.
Not   reading them (`usecases.certificate.reading`); TLS.
"""

from typing import Any

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.refusals.certificate import (
    CertificateExists,
    CertificateNotFound,
    CertificateUnreadable,
    HostsElsewhere,
    KeyRefused,
    PriorityRefused,
    TooManyCertificates,
)
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import certificates
from edgestead.tables.certificates import NEVER, CertificateRow
from edgestead.usecases.certificate.reading import Checked, checked
from edgestead.usecases.limits import CUSTOM_CERTIFICATES_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import certificates as served
from edgestead.usecases.serving.certificates import CUSTOM, LEGACY, SNI, read_hosts

BUNDLE_METHODS = ("ubiquitous", "optimal", "force")
TYPES = (LEGACY, SNI)
PRIORITY_MAX = 1_000_000  # of an uploaded certificate: the higher one is served
ISSUED = "issued"
_encode = msgspec.json.Encoder().encode


class CustomBody(msgspec.Struct, frozen=True):
    """`certificate` is PEM, the chain behind it; `private_key` is PEM without a password."""

    certificate: str | None = None
    private_key: str | None = None
    bundle_method: str | None = None
    type: str | None = None
    geo_restrictions: dict[str, Any] | None = None
    policy: str | None = None


class PlaceBody(msgspec.Struct, frozen=True):
    """A certificate and its priority, from 0 to 1,000,000: the higher goes first."""

    id: str = ""
    priority: int = 0


class PlacesBody(msgspec.Struct, frozen=True):
    """The certificates that get a priority; others keep theirs."""

    certificates: list[PlaceBody] | None = None


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a row has in its body. Type and priority say which is served (`usecases.serving.certificates`)."""

    issuer: str = ""
    signature: str = ""
    bundle_method: str = BUNDLE_METHODS[0]
    type: str = TYPES[0]
    priority: int = 0


class CustomView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
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


_read_shown = msgspec.json.Decoder(Shown).decode


class Upload(msgspec.Struct, frozen=True):
    """A body that was read, before the writer is asked for anything."""

    pair: Checked | None
    bundle_method: str | None
    type: str | None


def read(body: CustomBody, now_us: int, *, whole: bool = True) -> Upload:
    """`whole`: certificate and key must be there. Raises what `reading.checked` does."""
    if body.bundle_method not in (None, *BUNDLE_METHODS):
        reason = f"bundle_method is one of {', '.join(BUNDLE_METHODS)}"
        raise CertificateUnreadable(reason=reason, pointer="/bundle_method")
    if body.type not in (None, *TYPES):
        raise CertificateUnreadable(reason=f"type is one of {', '.join(TYPES)}", pointer="/type")
    if not whole and body.certificate is None and body.private_key is None:
        return Upload(None, body.bundle_method, body.type)
    if body.certificate is None:
        raise CertificateUnreadable(reason="there is none", pointer="/certificate")
    if body.private_key is None:
        raise KeyRefused(pointer="/private_key")
    return Upload(checked(body.certificate, body.private_key, now_us), body.bundle_method, body.type)


def create(call: Call, tx: Transaction, platform: Platform, zone_id: str, upload: Upload) -> CustomView:
    """Raises ZoneNotFound, HostsElsewhere, CertificateExists, TooManyCertificates."""
    zone = zone_of(tx, zone_id)
    pair = upload.pair
    assert pair is not None
    _check_hosts(pair, zone.name)
    there = certificates.of_kind(tx, zone_id, CUSTOM)
    _check_new(pair, there)
    if len(there) >= CUSTOM_CERTIFICATES_MAX:
        raise TooManyCertificates(certificates_max=CUSTOM_CERTIFICATES_MAX)
    empty = CertificateRow(
        platform.new_id(), zone_id, CUSTOM, "[]", ISSUED, NEVER, "{}", "", b"", b"", 0, 0, call.now_us, 0
    )
    row = _with(call, platform, empty, upload)
    certificates.insert(tx, row)
    served.changed(tx, call.now_us)
    return view(row)


def replace(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, certificate_id: str, upload: Upload
) -> CustomView:
    """Raises ZoneNotFound, CertificateNotFound, HostsElsewhere, CertificateExists."""
    zone = zone_of(tx, zone_id)
    row = find(tx, zone_id, certificate_id)
    if upload.pair is not None:
        _check_hosts(upload.pair, zone.name)
        _check_new(
            upload.pair, [one for one in certificates.of_kind(tx, zone_id, CUSTOM) if one.id != row.id]
        )
    row = _with(call, platform, row, upload)
    certificates.update(tx, row)
    served.changed(tx, call.now_us)
    return view(row)


def prioritize(call: Call, tx: Transaction, zone_id: str, body: PlacesBody) -> list[CustomView]:
    """Returns all of the zone's, the newest first.

    Raises ZoneNotFound, CertificateNotFound, PriorityRefused.
    """
    zone_of(tx, zone_id)
    if not body.certificates:
        raise PriorityRefused(reason="there is no certificate", pointer="/certificates")
    there = {row.id: row for row in certificates.of_kind(tx, zone_id, CUSTOM)}
    for index, place in enumerate(body.certificates):
        pointer = f"/certificates/{index}"
        if place.id not in there:
            raise CertificateNotFound(id=names.shown(place.id), pointer=f"{pointer}/id")
        if not 0 <= place.priority <= PRIORITY_MAX:
            raise PriorityRefused(reason=f"it is 0 to {PRIORITY_MAX}", pointer=f"{pointer}/priority")
        row = there[place.id]
        shown = msgspec.structs.replace(_read_shown(row.body), priority=place.priority)
        there[row.id] = row._replace(body=_encode(shown).decode(), modified_us=call.now_us)
    for certificate_id in {place.id for place in body.certificates}:
        certificates.update(tx, there[certificate_id])
    served.changed(tx, call.now_us)
    return [view(row) for row in there.values()]


def delete(call: Call, tx: Transaction, zone_id: str, certificate_id: str) -> None:
    """Raises ZoneNotFound, CertificateNotFound."""
    zone_of(tx, zone_id)
    certificates.delete(tx, find(tx, zone_id, certificate_id).id)
    served.changed(tx, call.now_us)


def show(reader: Reader, zone_id: str, certificate_id: str) -> CustomView:
    """Raises ZoneNotFound, CertificateNotFound."""
    zone_of(reader, zone_id)
    return view(find(reader, zone_id, certificate_id))


def listed(reader: Reader, zone_id: str, limit: int, offset: int) -> Listed:
    """The newest first. Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    found = [view(row) for row in certificates.of_kind(reader, zone_id, CUSTOM)]
    return Listed(found[offset : offset + limit], len(found))


def find(reader: Reader, zone_id: str, certificate_id: str) -> CertificateRow:
    """Raises CertificateNotFound."""
    row = certificates.one(reader, zone_id, certificate_id)
    if row is None or row.kind != CUSTOM:
        raise CertificateNotFound(id=certificate_id)
    return row


def view(row: CertificateRow) -> CustomView:
    shown = _read_shown(row.body)
    return CustomView(
        id=row.id,
        type=shown.type,
        hosts=list(read_hosts(row.hosts)),
        issuer=shown.issuer,
        signature=shown.signature,
        status="active",
        bundle_method=shown.bundle_method,
        zone_id=row.zone_id,
        uploaded_on=six_digits(row.created_us),
        modified_on=six_digits(row.modified_us),
        expires_on=six_digits(row.ends_us),
        priority=shown.priority,
    )


def _with(call: Call, platform: Platform, row: CertificateRow, upload: Upload) -> CertificateRow:
    shown, pair = _read_shown(row.body), upload.pair
    shown = msgspec.structs.replace(
        shown,
        bundle_method=upload.bundle_method or shown.bundle_method,
        type=upload.type or shown.type,
        issuer=pair.facts.issuer if pair else shown.issuer,
        signature=pair.facts.signature if pair else shown.signature,
    )
    row = row._replace(body=_encode(shown).decode(), modified_us=call.now_us)
    if pair is None:
        return row
    return row._replace(
        hosts=_encode(pair.facts.hosts).decode(),
        chain=pair.chain,
        sealed=platform.seal.wrap(row.zone_id, pair.key),
        starts_us=pair.facts.starts_us,
        ends_us=pair.facts.ends_us,
    )


def _check_hosts(pair: Checked, apex: str) -> None:
    """Raises HostsElsewhere."""
    if not any(served.is_within(host, apex) for host in pair.facts.hosts):
        raise HostsElsewhere(zone=apex, pointer="/certificate")


def _check_new(pair: Checked, there: list[CertificateRow]) -> None:
    """Raises CertificateExists."""
    for row in there:
        if row.chain == pair.chain:
            raise CertificateExists(id=row.id, pointer="/certificate")
