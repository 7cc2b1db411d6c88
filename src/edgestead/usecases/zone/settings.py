"""The use cases of a zone's settings: all of them, or one.

Owns  showing, checking and storing; which setting a date or a profile shows.
Not   DNS settings.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from edgestead.changes import changed
from edgestead.model import names
from edgestead.model.call import Call, Profile
from edgestead.model.names import InvalidValue
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.setting import ItemsMissing, SettingIsFixed, SettingValueRefused, UnknownSetting
from edgestead.model.settings import (
    CNAME_FLATTENING,
    DEVELOPMENT_MODE,
    DEVELOPMENT_SECONDS,
    FLATTENING,
    SETTINGS,
    VENDOR_IDS,
    Setting,
)
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.tables.settings import Stored
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.limits import SETTINGS_PER_PATCH_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving.facts import PROTOCOLS
from edgestead.usecases.zone import dns_settings

INVITES_TO_TLS = (
    "DNS answers HTTPS records for proxied names from now on. Browsers that see them try TLS: the edge"
    " answers on its --https listener, if it has one, in HTTP/1.1, and in HTTP/2 where `http2` is on."
)
_VENDOR_FLATTENING = {"apex": "flatten_at_root", "on": "flatten_all"}
_MICROSECONDS = 1_000_000
_decode = msgspec.json.Decoder().decode
_OWN_IDS = {own: vendor for vendor, own in VENDOR_IDS.items()}


class SettingBody(msgspec.Struct, frozen=True):
    """What PATCH of one setting takes. What a value may be is the setting's own; `enabled` is read where a
    row has that alias.
    """

    value: Any = msgspec.UNSET
    enabled: Any = msgspec.UNSET


class SettingItem(msgspec.Struct, frozen=True):
    id: str
    value: Any = msgspec.UNSET
    enabled: Any = msgspec.UNSET


class SettingsBody(msgspec.Struct, frozen=True):
    items: list[SettingItem] | None = None


class SettingView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One setting. `modified_on` is null until somebody changes it; `enabled` repeats the value of a setting
    that clients know by that name.
    """

    id: str
    value: Any
    editable: bool
    modified_on: str | None
    time_remaining: int | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET


def listed(call: Call, reader: Reader, zone_id: str) -> list[SettingView]:
    """Every setting that the call's date knows, by name. Raises ZoneNotFound."""
    return _listed(call, reader, zone_of(reader, zone_id))


def show(call: Call, reader: Reader, zone_id: str, id_: str) -> SettingView:
    """Raises ZoneNotFound, UnknownSetting."""
    zone = zone_of(reader, zone_id)
    row = _setting(call, id_)
    return _view(call, row, zone, _stored(reader, zone_id, row.id))


def patch(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, id_: str, body: SettingBody
) -> SettingView:
    """Raises ZoneNotFound, UnknownSetting, SettingIsFixed, SettingValueRefused, ZoneIsSecondary."""
    zone = zone_of(tx, zone_id)
    row = _setting(call, id_)
    value = _checked(call, tx, zone, row, body, "")
    edit = ZoneEdit(call, tx, platform, zone.id)
    _put(edit, row, value)
    edit.finish()
    return _view(call, row, zone, _stored(tx, zone_id, row.id))


def patch_all(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, body: SettingsBody
) -> list[SettingView]:
    """Change some settings, or none of them: every refusal is answered at once.

    Raises ZoneNotFound, ItemsMissing; UnknownSetting, SettingIsFixed, SettingValueRefused; ZoneIsSecondary.
    """
    zone = zone_of(tx, zone_id)
    if not body.items or len(body.items) > SETTINGS_PER_PATCH_MAX:
        raise ItemsMissing(items_max=SETTINGS_PER_PATCH_MAX, pointer="/items")
    edit = ZoneEdit(call, tx, platform, zone.id)
    for row, value in _checked_items(call, tx, zone, body.items):
        _put(edit, row, value)
    edit.finish()
    return _listed(call, tx, zone)


def remarks(views: Iterable[SettingView]) -> list[str]:
    """What an operator should know of settings that were just changed."""
    said = [INVITES_TO_TLS] if any(one.id in PROTOCOLS and one.value == "on" for one in views) else []
    idle = [one.id for one in views if not SETTINGS[VENDOR_IDS.get(one.id, one.id)].effect]
    return [*said, dns_settings.stored_only(idle)] if idle else said


def development_seconds(call_us: int, stored: Stored | None) -> int:
    """Seconds that development mode has left; negative, since it ended; 0 when it never was on."""
    if stored is None:
        return 0
    value, since_us = _decode(stored.value), stored.modified_us
    passed = (call_us - since_us) // _MICROSECONDS
    if value == "on":
        return DEVELOPMENT_SECONDS - passed or -1
    return -passed or -1


def _checked_items(
    call: Call, tx: Transaction, zone: ZoneRow, items: Sequence[SettingItem]
) -> list[tuple[Setting, Any]]:
    checked: list[tuple[Setting, Any]] = []
    earlier: dict[str, Any] = {}  # a setting may be sent in parts, member by member
    refusals: list[EdgeError] = []
    for at, item in enumerate(items):
        try:
            row = _setting(call, item.id, f"/items/{at}/id")
            earlier[row.id] = _checked(call, tx, zone, row, item, f"/items/{at}", earlier)
            checked.append((row, earlier[row.id]))
        except EdgeError as refusal:
            refusals.append(refusal)
    if refusals:
        first = refusals[0]
        first.also = tuple(refusals[1:])
        raise first
    return checked


def _checked(
    call: Call,
    reader: Reader,
    zone: ZoneRow,
    row: Setting,
    sent: SettingBody | SettingItem,
    at: str,
    earlier: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """The value that was `sent`, at a JSON pointer; `earlier` are those that the same body sets before it.

    Raises SettingIsFixed, SettingValueRefused.
    """
    value, pointer = sent.value, f"{at}/value"
    if row.alias and value is msgspec.UNSET and sent.enabled is not msgspec.UNSET:
        value, pointer = sent.enabled, f"{at}/{row.alias}"
    if reason := _why_fixed(row, zone):
        raise SettingIsFixed(id=_shown_id(call, row), reason=reason, pointer=pointer)
    present = earlier[row.id] if row.id in earlier else _value(call, row, _stored(reader, zone.id, row.id))
    try:
        if value is msgspec.UNSET:
            raise InvalidValue("value is missing")
        return row.check.read(value, present)
    except InvalidValue as error:
        raise SettingValueRefused(
            id=_shown_id(call, row), reason=f"{error.reason}.", pointer=pointer
        ) from None


def _why_fixed(row: Setting, zone: ZoneRow) -> str:
    if row.read_only:
        return "it is always on."
    if row.plan and zone.plan != row.plan:
        return f"it needs the plan {row.plan}."
    return ""


def _put(edit: ZoneEdit, row: Setting, value: Any) -> None:
    if row.id == CNAME_FLATTENING:
        dns_settings.put_fields(edit, {dns_settings.FLATTEN: FLATTENING[value] == "on"})
    else:
        edit.settings.put(row.id, value, again=row.id == DEVELOPMENT_MODE)


def _listed(call: Call, reader: Reader, zone: ZoneRow) -> list[SettingView]:
    stored: Mapping[str, Stored] = settings.all_of(reader, zone.id)
    flattening = dns_settings.flattening(reader, zone.id)
    return [
        _view(call, row, zone, flattening if row.id == CNAME_FLATTENING else stored.get(row.id))
        for row in SETTINGS.values()
        if not _has_become("removed", row, call)
    ]


def _setting(call: Call, id_: str, pointer: str | None = None) -> Setting:
    row = SETTINGS.get(VENDOR_IDS.get(id_, id_))
    if row is None or _has_become("removed", row, call):
        raise UnknownSetting(id=names.shown(id_)[1:-1], pointer=pointer)
    return row


def _has_become(after: str, row: Setting, call: Call) -> bool:
    """Whether the dated change of a setting holds, and left that of it."""
    return row.after == after and changed(row.subject, call.as_of)


def _shown_id(call: Call, row: Setting) -> str:
    return _OWN_IDS.get(row.id, row.id) if call.profile is Profile.CLIENTS else row.id


def _stored(reader: Reader, zone_id: str, id_: str) -> Stored | None:
    if id_ == CNAME_FLATTENING:
        return dns_settings.flattening(reader, zone_id)
    return settings.one(reader, zone_id, id_)


def _value(call: Call, row: Setting, stored: Stored | None) -> Any:
    if row.id == CNAME_FLATTENING:
        shown = "on" if stored and _decode(stored.value) else "apex"
        return _VENDOR_FLATTENING[shown] if call.profile is Profile.CLIENTS else shown
    if _has_become("fixed", row, call):
        return row.late_default
    if stored is None:
        return row.late_default if _has_become("idle", row, call) else row.default
    value = _decode(stored.value)
    if row.id == DEVELOPMENT_MODE and value == "on":
        return "on" if development_seconds(call.now_us, stored) > 0 else "off"
    return value


def _view(call: Call, row: Setting, zone: ZoneRow, stored: Stored | None) -> SettingView:
    value = _value(call, row, stored)
    remaining: int | msgspec.UnsetType = msgspec.UNSET
    if row.id == DEVELOPMENT_MODE:
        remaining = max(0, development_seconds(call.now_us, stored)) if value == "on" else 0
    return SettingView(
        id=_shown_id(call, row),
        value=value,
        editable=not _why_fixed(row, zone),
        modified_on=six_digits(stored.modified_us) if stored else None,
        time_remaining=remaining,
        enabled=value if row.alias else msgspec.UNSET,
    )
