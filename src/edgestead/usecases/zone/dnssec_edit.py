"""Changing what is stored of a zone's DNSSEC.

Owns  what may be asked for.
Not   keys and signatures: there are none in this release.
"""

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.refusals.setting import DnssecIsDisabled, DnssecStatusRefused, SigningNotBuilt
from edgestead.store.control import Transaction
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import dnssec
from edgestead.usecases.zone.dnssec import DISABLED, DNSSEC, DnssecBody, DnssecView
from edgestead.usecases.zone.edit import ZoneEdit


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
        return dnssec.show(tx, zone_id)
    merged = (
        new if new is not None else old
        for new, old in zip(sent, _members(dnssec.stored(tx, zone_id)), strict=True)
    )
    edit = ZoneEdit(call, tx, platform, zone.id)
    edit.settings.put(DNSSEC, dnssec.StoredDnssec(*merged))
    edit.finish()
    return dnssec.show(tx, zone_id)


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> str:
    """Forget the switches; there are no keys. Raises ZoneNotFound."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    edit.settings.clear(DNSSEC)
    edit.finish()
    return ""


def _members(stored: dnssec.StoredDnssec) -> tuple[bool, bool, bool]:
    return stored.multi_signer, stored.presigned, stored.use_nsec3
