"""What a zone is asked to do: check its activation, forget what is cached.

Owns  the interval of checks; the shape of a purge.
Not   caches: the edge has none yet, so that a purge that is well formed has nothing to do.
"""

from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.setting import CheckedTooSoon, PurgeRefused
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.usecases.limits import PURGE_ITEMS_MAX
from edgestead.usecases.lookup import zone_of

CHECK_SECONDS_FREE = 3_600  # contract: once an hour on the free plan
CHECK_SECONDS_PAID = 300
_CHECKED = "zone.activation_checked"


class ZoneId(msgspec.Struct, frozen=True):
    id: str


class PurgeBody(msgspec.Struct, frozen=True):
    """One of these. A file is a URL, or an object with `url` and `headers`."""

    purge_everything: bool | None = None
    files: list[Any] | None = None
    tags: list[str] | None = None
    hosts: list[str] | None = None
    prefixes: list[str] | None = None


def check_activation(call: Call, tx: Transaction, zone_id: str) -> ZoneId:
    """Every zone here is active from its birth, so a check changes nothing; it has its interval all the same.

    Raises ZoneNotFound, CheckedTooSoon.
    """
    zone = zone_of(tx, zone_id)
    seconds = CHECK_SECONDS_FREE if zone.plan == "free" else CHECK_SECONDS_PAID
    last = settings.one(tx, zone_id, _CHECKED)
    if last is not None and call.now_us < last.modified_us + seconds * 1_000_000:
        raise CheckedTooSoon(seconds=seconds)
    settings.put(tx, zone_id, _CHECKED, "true", call.now_us)
    return ZoneId(zone_id)


def purge(reader: Reader, zone_id: str, body: PurgeBody) -> ZoneId:
    """Raises ZoneNotFound, PurgeRefused."""
    zone_of(reader, zone_id)
    lists = [one for one in (body.files, body.tags, body.hosts, body.prefixes) if one is not None]
    asked = bool(body.purge_everything) + len(lists)
    if asked != 1 or any(not 1 <= len(one) <= PURGE_ITEMS_MAX for one in lists):
        raise PurgeRefused
    return ZoneId(zone_id)
