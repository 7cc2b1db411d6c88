"""DNSSEC of a zone: what is asked for, as it is stored. No zone is signed yet.

Owns  the shape; what may be changed.
Not   keys and signatures: there are none in this release.
"""

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.refusals.setting import DnssecIsDisabled, DnssecStatusRefused, SigningNotBuilt
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving.facts import DNSSEC, StoredDnssec, stored_dnssec

DISABLED = "disabled"


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


def show(reader: Reader, zone_id: str) -> DnssecView:
    """Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    found = settings.one(reader, zone_id, DNSSEC)
    stored = stored_dnssec(reader, zone_id)
    return DnssecView(
        modified_on=six_digits(found.modified_us) if found else None,
        dnssec_multi_signer=stored.multi_signer,
        dnssec_presigned=stored.presigned,
        dnssec_use_nsec3=stored.use_nsec3,
    )


def patch(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: DnssecBody) -> DnssecView:
    """Store the switches. Raises ZoneNotFound, SigningNotBuilt, DnssecIsDisabled, DnssecStatusRefused."""
    zone = zone_of(tx, zone_id)
    if body.status == "active":
        raise SigningNotBuilt(pointer="/status")
    if body.status not in (None, DISABLED):
        raise DnssecStatusRefused(status=names.shown(body.status or ""), pointer="/status")
    sent = (body.dnssec_multi_signer, body.dnssec_presigned, body.dnssec_use_nsec3)
    if sent == (None, None, None):
        if body.status == DISABLED:
            raise DnssecIsDisabled(pointer="/status")
        return show(tx, zone_id)
    merged = (
        new if new is not None else old
        for new, old in zip(sent, _members(stored_dnssec(tx, zone_id)), strict=True)
    )
    edit = ZoneEdit(call, tx, platform, zone.id)
    edit.settings.put(DNSSEC, StoredDnssec(*merged))
    edit.finish()
    return show(tx, zone_id)


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> str:
    """Forget the switches; there are no keys. Raises ZoneNotFound."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    edit.settings.clear(DNSSEC)
    edit.finish()
    return ""


def _members(stored: StoredDnssec) -> tuple[bool, bool, bool]:
    return stored.multi_signer, stored.presigned, stored.use_nsec3
