"""DNSSEC of a zone: what is asked for, stored. No zone is signed yet.

Owns  the shape, and what may be stored.
Asks  `tables.settings`.
Tells `api`; whoever reads DNSKEY records, by `admits_dnskey`.
Not   keys and signatures: there are none in this release.
"""

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.setting_errors import DnssecIsDisabled, DnssecStatusRefused, SigningNotBuilt
from edgestead.model.times import six_digits
from edgestead.services.lookup import zone_of
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings

_DNSSEC = "zone.dnssec"
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
    found = settings.one(reader, zone_id, _DNSSEC)
    stored = _read(found.value) if found else StoredDnssec()
    return DnssecView(
        modified_on=six_digits(found.modified_us) if found else None,
        dnssec_multi_signer=stored.multi_signer,
        dnssec_presigned=stored.presigned,
        dnssec_use_nsec3=stored.use_nsec3,
    )


def patch(call: Call, tx: Transaction, zone_id: str, body: DnssecBody) -> DnssecView:
    """Store the switches. Raises ZoneNotFound, SigningNotBuilt, DnssecIsDisabled, DnssecStatusRefused."""
    zone_of(tx, zone_id)
    if body.status == "active":
        raise SigningNotBuilt(pointer="/status")
    if body.status not in (None, DISABLED):
        raise DnssecStatusRefused(status=names.shown(body.status or ""), pointer="/status")
    sent = (body.dnssec_multi_signer, body.dnssec_presigned, body.dnssec_use_nsec3)
    if sent == (None, None, None):
        if body.status == DISABLED:
            raise DnssecIsDisabled(pointer="/status")
        return show(tx, zone_id)
    stored = _stored(tx, zone_id)
    merged = (new if new is not None else old for new, old in zip(sent, _members(stored), strict=True))
    text = msgspec.json.encode(StoredDnssec(*merged)).decode()
    settings.put(tx, zone_id, _DNSSEC, text, call.now_us)
    return show(tx, zone_id)


def delete(tx: Transaction, zone_id: str) -> str:
    """Forget the switches; there are no keys. Raises ZoneNotFound."""
    zone_of(tx, zone_id)
    settings.delete(tx, zone_id, _DNSSEC)
    return ""


def admits_dnskey(reader: Reader, zone_id: str) -> bool:
    """Contract: DNSKEY records may be added only with multi-signer on."""
    return _stored(reader, zone_id).multi_signer


def _stored(reader: Reader, zone_id: str) -> StoredDnssec:
    found = settings.one(reader, zone_id, _DNSSEC)
    return _read(found.value) if found else StoredDnssec()


def _members(stored: StoredDnssec) -> tuple[bool, bool, bool]:
    return stored.multi_signer, stored.presigned, stored.use_nsec3
