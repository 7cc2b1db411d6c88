"""How long others may go on with what a zone served before: what DNSSEC has to wait for (RFC 7583 §3).

Owns  these times, in microseconds.
Not   what happens after one (`usecases.zone.signing`, `usecases.zone.rolls`).

What was served is in caches for its TTL: of records here a day at most, of a DS at a parent taken for two.
It is served on by secondaries until they have the change: those are granted `refresh` and `retry` of the
zone's SOA and an hour, which is as late as they are when a NOTIFY is lost and one question after it.
"""

from typing import Final

from edgestead.usecases.limits import TTL_SECONDS_MAX
from edgestead.usecases.serving import keyset
from edgestead.usecases.serving.rendering import Soa

_US: Final = 1_000_000
SLACK_SECONDS: Final = 3_600  # beyond what a follower of the zone may be late by its SOA
OTHERS_SECONDS: Final = 86_400  # until the zone's other providers have a new key of ours
DS_TTL_SECONDS: Final = 2 * 86_400  # one day and late servers of the parent, or two days


def keys_us(soa: Soa) -> int:
    """Until every cache that has the zone's DNSKEYs has the newest one."""
    return (keyset.TTL_SECONDS + _late_seconds(soa)) * _US


def others_us() -> int:
    """Until the zone's other providers serve the newest key, which somebody brings to them."""
    return OTHERS_SECONDS * _US


def shared_keys_us(soa: Soa) -> int:
    """As `keys_us` where other providers sign the zone: until no cache has their DNSKEYs without the newest.

    Nothing here can see their TTL and SOA: the one is taken for a day at most, the other for ours.
    """
    return others_us() + records_us(soa)


def records_us(soa: Soa) -> int:
    """Until no cache has an answer from before a change: without signatures, or with those of an old key."""
    return (TTL_SECONDS_MAX + _late_seconds(soa)) * _US


def ds_us() -> int:
    """Until no cache has a DS that the parent has no longer."""
    return DS_TTL_SECONDS * _US


def old_key_us(soa: Soa) -> int:
    """Until no cache needs a key that nothing needs any more which is served here or at the parent."""
    return max(records_us(soa), ds_us())


def _late_seconds(soa: Soa) -> int:
    return soa.refresh + soa.retry + SLACK_SECONDS
