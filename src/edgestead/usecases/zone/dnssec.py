"""DNSSEC of a zone as the API shows and changes it.

Owns  the shape; which status a state of signing has; what may be changed.
Not   signing (`usecases.zone.signing`), keys and signatures.
"""

from typing import Final

import msgspec

from edgestead.model import dnssec, names
from edgestead.model.call import Call
from edgestead.model.refusals.secondary import ZoneIsSecondary
from edgestead.model.refusals.setting import (
    DnssecIsDisabled,
    DnssecKeysRefused,
    DnssecStatusRefused,
    PresignedRefused,
    RollRefused,
)
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import carried, settings
from edgestead.tables import signing as signing_rows
from edgestead.tables.signing import KeyRow
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts, keyset
from edgestead.usecases.serving.facts import DNSSEC, stored_dnssec
from edgestead.usecases.serving.keyset import LAYOUTS
from edgestead.usecases.serving.signing import (
    ACTIVE,
    IS_SERVED,
    LEAVING,
    LISTING,
    OFFERED,
    SIGNED,
    SIGNING,
    UNSIGNING,
    Stored,
)
from edgestead.usecases.zone import dnssec_advice, rolls, secondary, signing

DISABLED, PENDING, PENDING_DISABLED = "disabled", "pending", "pending-disabled"
STATUS: Final = {
    LISTING: PENDING,
    SIGNING: PENDING,
    SIGNED: PENDING,
    OFFERED: PENDING,
    ACTIVE: "active",
    LEAVING: PENDING_DISABLED,
    UNSIGNING: DISABLED,
}


DAYS_MAX: Final = 3_650  # that a key may sign before it is replaced


class DnssecBody(msgspec.Struct, frozen=True):
    """The last four are ours: which keys a zone has, after how many days of signing each is replaced, and
    whether the zone has a digest of itself (RFC 8976), signed or not.
    """

    status: str | None = None
    dnssec_multi_signer: bool | None = None
    dnssec_presigned: bool | None = None
    dnssec_use_nsec3: bool | None = None
    key_layout: str | None = None
    ksk_lifetime_days: int | None = None
    zsk_lifetime_days: int | None = None
    zonemd: bool | None = None


class RollBody(msgspec.Struct, frozen=True):
    """The role of the key that is to be replaced; none: every key."""

    role: str | None = None


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """One key. `ds` is null of a ZSK; `phase` as docs/how-to/dnssec.md tells them."""

    id: str
    role: str
    phase: str
    since: str
    flags: int
    key_tag: int
    algorithm: str
    public_key: str
    ds: str | None


class DnssecView(msgspec.Struct, frozen=True, kw_only=True):
    """Contract "DNSSEC". Everything about keys is null while the zone is not served signed.

    From `key_layout` on it is ours; `next` tells in words what is to be done, and by whom. `is_bogus` is
    whether the parent has DS records and none of the zone's keys.
    """

    status: str = DISABLED
    flags: int | None = None
    algorithm: str | None = None
    key_type: str | None = None
    digest_type: str | None = None
    digest_algorithm: str | None = None
    digest: str | None = None
    ds: str | None = None
    key_tag: int | None = None
    public_key: str | None = None
    modified_on: str | None
    dnssec_multi_signer: bool
    dnssec_presigned: bool
    dnssec_use_nsec3: bool
    key_layout: str
    ksk_lifetime_days: int
    zsk_lifetime_days: int
    zonemd: bool
    keys: tuple[KeyView, ...] = ()
    next: str = ""
    is_bogus: bool = False


def show(reader: Reader, zone_id: str) -> DnssecView:
    """Raises ZoneNotFound."""
    zone = zone_of(reader, zone_id)
    state = signing.stored_of(reader, zone_id)
    found = settings.one(reader, zone_id, DNSSEC)
    stored = stored_dnssec(reader, zone_id)
    modified_us = max(state.since_us if state else 0, found.modified_us if found else 0)
    view = DnssecView(
        modified_on=six_digits(modified_us) if modified_us else None,
        dnssec_multi_signer=stored.multi_signer,
        dnssec_presigned=stored.presigned,
        dnssec_use_nsec3=stored.use_nsec3,
        key_layout=stored.layout,
        ksk_lifetime_days=stored.ksk_days,
        zsk_lifetime_days=stored.zsk_days,
        zonemd=stored.zonemd,
        next=dnssec_advice.next_step(reader, zone, state),
        is_bogus=state is not None and state.is_bogus,
    )
    if state is not None:
        return _with_keys(reader, zone, view, state)
    if is_presigned(reader, zone):
        return _as_transferred(reader, zone, view)
    return view


def _as_transferred(reader: Reader, zone: ZoneRow, view: DnssecView) -> DnssecView:
    """Of a zone that is signed elsewhere: its keys are not ours to show."""
    ends = carried.first_end(reader, zone.id)
    if ends is None:
        return msgspec.structs.replace(view, status=PENDING, next=_UNSIGNED_YET)
    words = _AS_SIGNED.format(when=six_digits(ends * 1_000_000)[:16].replace("T", " "))
    return msgspec.structs.replace(view, status="active", next=words)


_UNSIGNED_YET: Final = "No signed zone was transferred yet; its primary signs it."
_AS_SIGNED: Final = (
    "The zone is served as its primary signed it, which also renews signatures and keys: the first one here"
    " ends at {when} UTC."
)


def list_zone_keys(reader: Reader, zone_id: str) -> tuple[KeyView, ...]:
    """Contract: the keys that sign zone data alone; none of a zone with one key. Raises ZoneNotFound."""
    return tuple(key for key in show(reader, zone_id).keys if key.role == keyset.ZSK)


def _with_keys(reader: Reader, zone: ZoneRow, view: DnssecView, state: Stored) -> DnssecView:
    view = msgspec.structs.replace(view, status=STATUS[state.state])
    if state.state not in IS_SERVED:
        return view
    rows = signing_rows.keys(reader, zone.id)
    (key,) = (row for row in rows if keyset.is_wanted_at_parent(row))
    apex, rdata = facts.apex_of(zone), dnssec.dnskey(key.flags, key.public)
    return msgspec.structs.replace(
        view,
        flags=key.flags,
        algorithm=str(dnssec.ALGORITHM),
        key_type=dnssec.ALGORITHM_NAME,
        digest_type=str(dnssec.DIGEST_TYPE),
        digest_algorithm=dnssec.DIGEST_NAME,
        digest=dnssec.digest(apex, rdata).hex().upper(),
        ds=dnssec.ds_text(apex, rdata),
        key_tag=dnssec.key_tag(rdata),
        public_key=dnssec.public_text(key.public),
        keys=tuple(_key(apex, row) for row in rows),
    )


def _key(apex: bytes, row: KeyRow) -> KeyView:
    return KeyView(
        id=row.id,
        role=row.role,
        phase=row.phase,
        since=six_digits(row.since_us),
        flags=row.flags,
        key_tag=keyset.tag(row),
        algorithm=str(dnssec.ALGORITHM),
        public_key=dnssec.public_text(row.public),
        ds=dnssec.ds_text(apex, keyset.dnskey(row)) if keyset.signs_keys(row) else None,
    )


def patch(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: DnssecBody) -> DnssecView:
    """Begin to sign or to end it, and store the switches.

    Raises ZoneNotFound, DnssecIsDisabled, DnssecStatusRefused, DnssecKeysRefused, PresignedRefused,
    ZoneIsSecondary.
    """
    zone = zone_of(tx, zone_id)
    if body.status not in (None, "active", DISABLED):
        raise DnssecStatusRefused(status=names.shown(body.status or ""), pointer="/status")
    _check_keys(body)
    sent = _sent(body)
    has_switch = bool(sent)
    was_presigned = is_presigned(tx, zone)
    if body.dnssec_presigned and zone.type == facts.SECONDARY and facts.has_overrides(tx, zone_id):
        raise PresignedRefused(name=zone.name, other="secondary_overrides", pointer="/dnssec_presigned")
    if body.zonemd and zone.type == facts.SECONDARY:
        raise ZoneIsSecondary(name=zone.name, what="its digest is made")
    if body.status == DISABLED and not (_disable(call, tx, platform, zone_id) or has_switch):
        raise DnssecIsDisabled(pointer="/status")
    if has_switch:
        _store_switches(call, tx, platform, zone_id, sent)
    is_now = is_presigned(tx, zone)
    if is_now != was_presigned:
        secondary.transfer_again(call, tx, zone_id)
    if body.status == "active" and not is_now:
        _activate(call, tx, platform, zone)
    return show(tx, zone_id)


def is_presigned(reader: Reader, zone: ZoneRow) -> bool:
    """Whether it is served as its primary signed it; of a zone that is kept here the switch says nothing."""
    return zone.type == facts.SECONDARY and stored_dnssec(reader, zone.id).presigned


def check_presigned(reader: Reader, zone: ZoneRow) -> None:
    """Whether what is stored now can be together. Raises PresignedRefused."""
    if is_presigned(reader, zone) and facts.has_overrides(reader, zone.id):
        raise PresignedRefused(name=zone.name, other="secondary_overrides")


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> str:
    """End signing, as `disabled` does, and forget the switches. Raises ZoneNotFound."""
    was_presigned = is_presigned(tx, zone_of(tx, zone_id))
    _disable(call, tx, platform, zone_id)
    edit = ZoneEdit(call, tx, platform, zone_id)
    edit.settings.clear(DNSSEC)
    edit.finish()
    if was_presigned:
        secondary.transfer_again(call, tx, zone_id)
    return ""


def roll(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: RollBody) -> DnssecView:
    """Begin to replace keys. Raises ZoneNotFound, RollRefused, KeysSealed."""
    zone_of(tx, zone_id)
    state = signing.stored_of(tx, zone_id)
    if state is None or state.state not in rolls.ROLLING:
        raise RollRefused(reason="it is not signed, or on its way from or to that")
    rolls.roll(call, tx, platform, zone_id, body.role)
    return show(tx, zone_id)


_SWITCHES: Final = {
    "dnssec_multi_signer": "multi_signer",
    "dnssec_presigned": "presigned",
    "dnssec_use_nsec3": "use_nsec3",
    "key_layout": "layout",
    "ksk_lifetime_days": "ksk_days",
    "zsk_lifetime_days": "zsk_days",
    "zonemd": "zonemd",
}
"""Members of the body that are stored, and what they are called there."""


def _sent(body: DnssecBody) -> dict[str, object]:
    return {stored: value for sent, stored in _SWITCHES.items() if (value := getattr(body, sent)) is not None}


def _check_keys(body: DnssecBody) -> None:
    if body.key_layout is not None and body.key_layout not in LAYOUTS:
        raise DnssecKeysRefused(
            field="key_layout", reason=f"it is one of {', '.join(LAYOUTS)}", pointer="/key_layout"
        )
    for field in ("ksk_lifetime_days", "zsk_lifetime_days"):
        days = getattr(body, field)
        if days is not None and not 0 <= days <= DAYS_MAX:
            reason = f"days are 0, which is for ever, to {DAYS_MAX}"
            raise DnssecKeysRefused(field=field, reason=reason, pointer=f"/{field}")


def _activate(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow) -> None:
    """A zone that is signed or about to be stays as it is."""
    if zone.type == facts.SECONDARY:
        raise ZoneIsSecondary(name=zone.name, what="it is signed")
    stored = signing.stored_of(tx, zone.id)
    if stored is None or stored.state == UNSIGNING:
        signing.begin(call, tx, platform, zone)
    elif stored.state == LEAVING:
        signing.resume(call, tx, platform, zone.id)


def _disable(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> bool:
    """Returns whether there was anything to disable."""
    stored = signing.stored_of(tx, zone_id)
    if stored is None or stored.state in (LEAVING, UNSIGNING):
        return False
    signing.end(call, tx, platform, zone_id, stored)
    return True


def _store_switches(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, sent: dict[str, object]
) -> None:
    edit = ZoneEdit(call, tx, platform, zone_id)
    edit.settings.put(DNSSEC, msgspec.structs.replace(stored_dnssec(tx, zone_id), **sent))
    edit.finish()
    rolls.look_now(tx, zone_id)
