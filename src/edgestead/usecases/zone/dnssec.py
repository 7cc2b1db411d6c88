"""DNSSEC of a zone: what is asked for, as it is stored. No zone is signed yet.

Owns  the shape.
Not   changing it (`usecases.zone.dnssec_edit`); keys and signatures: there are none in this release.
"""

import msgspec

from edgestead.model.times import six_digits
from edgestead.store.control import Reader
from edgestead.tables import settings
from edgestead.usecases.lookup import zone_of

DNSSEC = "zone.dnssec"
DISABLED = "disabled"


class StoredDnssec(msgspec.Struct, frozen=True):
    multi_signer: bool = False
    presigned: bool = False
    use_nsec3: bool = False


class DnssecBody(msgspec.Struct, frozen=True):
    status: str | None = None
    dnssec_multi_signer: bool | None = None
    dnssec_presigned: bool | None = None
    dnssec_use_nsec3: bool | None = None


class DnssecView(msgspec.Struct, frozen=True, kw_only=True):
    """Contract "DNSSEC". Everything about keys is null while a zone is not signed."""

    status: str = DISABLED
    flags: None = None
    algorithm: None = None
    key_type: None = None
    digest_type: None = None
    digest_algorithm: None = None
    digest: None = None
    ds: None = None
    key_tag: None = None
    public_key: None = None
    modified_on: str | None
    dnssec_multi_signer: bool
    dnssec_presigned: bool
    dnssec_use_nsec3: bool


_read = msgspec.json.Decoder(StoredDnssec).decode


def show(reader: Reader, zone_id: str) -> DnssecView:
    """Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    found = settings.one(reader, zone_id, DNSSEC)
    stored = _read(found.value) if found else StoredDnssec()
    return DnssecView(
        modified_on=six_digits(found.modified_us) if found else None,
        dnssec_multi_signer=stored.multi_signer,
        dnssec_presigned=stored.presigned,
        dnssec_use_nsec3=stored.use_nsec3,
    )


def admits_dnskey(reader: Reader, zone_id: str) -> bool:
    """Contract: DNSKEY records may be added only with multi-signer on."""
    return stored(reader, zone_id).multi_signer


def stored(reader: Reader, zone_id: str) -> StoredDnssec:
    found = settings.one(reader, zone_id, DNSSEC)
    return _read(found.value) if found else StoredDnssec()
