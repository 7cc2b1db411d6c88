"""How many records there are, and may be.

Owns  the answer of the usage routes.
Not   enforcing a quota (`usecases.change.records`).
"""

import msgspec

from edgestead.store.control import Reader
from edgestead.tables import zones
from edgestead.usecases.lookup import account_of, zone_of
from edgestead.usecases.platform import Platform


class Usage(msgspec.Struct, frozen=True):
    """`record_quota` null: no limit."""

    record_quota: int | None
    record_usage: int


def of_zone(reader: Reader, platform: Platform, zone_id: str) -> Usage:
    """Raises ZoneNotFound."""
    return Usage(platform.quotas.zone_records, zone_of(reader, zone_id).record_count)


def of_account(reader: Reader, account_id: str) -> Usage:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return Usage(None, zones.records_of_account(reader, account_id))
