"""How many records there are, and may be.

Owns  the answer of the usage routes.
Not   enforcing a quota (`usecases.zone.edit`).
"""

import msgspec

from edgestead.store.control import Reader
from edgestead.tables import zones
from edgestead.usecases.limits import RECORDS_PER_ZONE_MAX
from edgestead.usecases.lookup import account_of, zone_of


class Usage(msgspec.Struct, frozen=True):
    """`record_quota` null: no limit."""

    record_quota: int | None
    record_usage: int


def of_zone(reader: Reader, zone_id: str) -> Usage:
    """Raises ZoneNotFound."""
    return Usage(RECORDS_PER_ZONE_MAX, zone_of(reader, zone_id).record_count)


def of_account(reader: Reader, account_id: str) -> Usage:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return Usage(None, zones.records_of_account(reader, account_id))
