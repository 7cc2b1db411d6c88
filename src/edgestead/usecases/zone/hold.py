"""Holds: other accounts may not take a zone's name, or a name below it.

Owns  the shape and rules of a hold.
Not   names that exist: a name is one zone's, with or without a hold.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.setting import HoldRefused, ZoneOnHold
from edgestead.model.times import whole_seconds
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.limits import HOLD_AFTER_DAYS_MAX
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform

_HOLD = "zone.hold"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_CHARACTERS_MAX = 40
_DAY_US = 86_400_000_000


class StoredHold(msgspec.Struct, frozen=True):
    """A hold; with `after_us` it begins, or begins again, then."""

    include_subdomains: bool = False
    after_us: int | None = None


class HoldBody(msgspec.Struct, frozen=True):
    hold_after: str | None = None
    include_subdomains: bool | None = None


class HoldView(msgspec.Struct, frozen=True, omit_defaults=True):
    """`include_subdomains` stands only where there is a hold."""

    hold: bool
    hold_after: str | msgspec.UnsetType = msgspec.UNSET
    include_subdomains: bool | msgspec.UnsetType = msgspec.UNSET


_read = msgspec.json.Decoder(StoredHold).decode


def show(call: Call, reader: Reader, zone_id: str) -> HoldView:
    """Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    return _view(call, _stored(reader, zone_id))


def put(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, *, include_subdomains: bool
) -> HoldView:
    """Raises ZoneNotFound."""
    return _store(call, tx, platform, zone_of(tx, zone_id), StoredHold(include_subdomains))


def patch(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: HoldBody) -> HoldView:
    """Change a hold; an empty `hold_after` makes it hold now. Raises ZoneNotFound, HoldRefused."""
    zone = zone_of(tx, zone_id)
    hold = _stored(tx, zone_id)
    if hold is None:
        raise HoldRefused(reason="the zone is not held.")
    if body.include_subdomains is not None:
        hold = msgspec.structs.replace(hold, include_subdomains=body.include_subdomains)
    if body.hold_after is not None:
        hold = msgspec.structs.replace(hold, after_us=_time(call, body.hold_after, "/hold_after"))
    return _store(call, tx, platform, zone, hold)


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str, hold_after: str | None) -> HoldView:
    """Lift a hold, or until a time. Raises ZoneNotFound, HoldRefused."""
    zone = zone_of(tx, zone_id)
    hold = _stored(tx, zone_id)
    if hold is None:
        return HoldView(hold=False)
    if not hold_after:
        return _store(call, tx, platform, zone, None)
    after_us = _time(call, hold_after, None)
    return _store(call, tx, platform, zone, msgspec.structs.replace(hold, after_us=after_us))


def check_free(call: Call, reader: Reader, account_id: str, name: str) -> None:
    """Raises ZoneOnHold: another account holds a zone above the name, with what is below it."""
    above = name.partition(".")[2]
    while above:
        zone_id = zones.id_by_name(reader, above)
        if zone_id is not None and zones.account_id(reader, zone_id) != account_id:
            hold = _stored(reader, zone_id)
            if hold is not None and hold.include_subdomains and _holds(call, hold):
                raise ZoneOnHold(name=name, pointer="/name")
        above = above.partition(".")[2]


def _stored(reader: Reader, zone_id: str) -> StoredHold | None:
    stored = settings.one(reader, zone_id, _HOLD)
    return _read(stored.value) if stored else None


def _store(
    call: Call, tx: Transaction, platform: Platform, zone: ZoneRow, hold: StoredHold | None
) -> HoldView:
    edit = ZoneEdit(call, tx, platform, zone.id)
    if hold is None:
        edit.settings.clear(_HOLD)
    else:
        edit.settings.put(_HOLD, hold)
    edit.finish()
    return _view(call, hold)


def _holds(call: Call, hold: StoredHold) -> bool:
    return hold.after_us is None or call.now_us >= hold.after_us


def _view(call: Call, hold: StoredHold | None) -> HoldView:
    if hold is None:
        return HoldView(hold=False)
    return HoldView(
        hold=_holds(call, hold),
        hold_after=msgspec.UNSET if hold.after_us is None else whole_seconds(hold.after_us),
        include_subdomains=hold.include_subdomains,
    )


def _time(call: Call, text: str, pointer: str | None) -> int | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text) if len(text) <= _TIME_CHARACTERS_MAX else None
    except ValueError:
        moment = None
    if moment is None:
        raise HoldRefused(reason="a time is written like 2026-01-31T12:00:00Z.", pointer=pointer)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    after_us = (moment - _EPOCH) // timedelta(microseconds=1)
    if after_us > call.now_us + HOLD_AFTER_DAYS_MAX * _DAY_US:
        raise HoldRefused(reason=f"a hold begins within {HOLD_AFTER_DAYS_MAX} days.", pointer=pointer)
    return max(after_us, 0)
