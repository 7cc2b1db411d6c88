"""The SOA record that a caller may write: a second view of the zone's DNS setting `soa`.

Owns  the mapping between the two.
Not   what DNS serves: that is made of the setting, with or without such a record.

The serial is kept as it was sent and never served: the server counts its own. Contract "Types", SOA.
"""

from typing import cast

from edgestead.model import settings
from edgestead.model.names import InvalidValue, text_from_wire
from edgestead.model.records import SOA, folded_content, from_wire
from edgestead.model.refusals.record import ContentRefused, TtlRefused
from edgestead.model.served import ServedZone
from edgestead.tables.records import RecordRow
from edgestead.usecases import limits
from edgestead.usecases.change.neighbours import Draft
from edgestead.usecases.serving.facts import FAMILY, StoredSoa
from edgestead.usecases.serving.rendering import Soa

SETTING = f"{FAMILY}.{settings.SOA}"
TTL_SECONDS_MIN = 300  # contract "DNS settings", soa.ttl

_SERIAL_AT = -20  # of the five numbers at the end of the rdata (RFC 1035 §3.3.13)
_SERIAL_END = -16


def setting_of(draft: Draft) -> StoredSoa:
    """What the setting becomes by a record. Raises ContentRefused, TtlRefused."""
    soa = cast(SOA, from_wire("SOA", draft.rdata))
    times = {"refresh": soa.refresh, "retry": soa.retry, "expire": soa.expire, "min_ttl": soa.minimum}
    for name, seconds in times.items():
        try:
            settings.SOA_TIMES[name].read(seconds, None)
        except InvalidValue as error:
            raise _refused(f"{name} {error.reason}") from None
    if not soa.retry <= soa.refresh <= soa.expire:
        raise _refused("retry ≤ refresh ≤ expire must hold")
    if draft.ttl != 1 and draft.ttl < TTL_SECONDS_MIN:
        raise TtlRefused(
            type="SOA", field="ttl", seconds_min=TTL_SECONDS_MIN, seconds_max=limits.TTL_SECONDS_MAX
        )
    ttl = Soa().ttl if draft.ttl == 1 else draft.ttl
    return StoredSoa(text_from_wire(soa.mname), text_from_wire(soa.rname), ttl=ttl, **times)


def following(row: RecordRow, apex: bytes, zone: ServedZone) -> Draft:
    """The record as it must be for what the zone serves; its serial and its notes stay."""
    rdata = zone.soa_rdata[:_SERIAL_AT] + row.rdata[_SERIAL_AT:_SERIAL_END] + zone.soa_rdata[_SERIAL_END:]
    soa = from_wire("SOA", rdata)
    is_automatic = row.ttl == 1 and zone.soa_ttl_seconds == Soa().ttl
    return Draft(
        owner=apex,
        name=row.name,
        type="SOA",
        rdata=rdata,
        ttl=1 if is_automatic else zone.soa_ttl_seconds,
        proxied=0,
        priority=None,
        content=soa.to_content(),
        content_folded=folded_content(soa),
        data=None,
        settings=row.settings,
        comment=row.comment,
        tags=row.tags,
    )


def _refused(reason: str) -> ContentRefused:
    return ContentRefused(type="SOA", field="content", reason=reason)
