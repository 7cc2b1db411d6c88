"""How many records there are, and may be.

Owns  the answer of the usage routes.
Asks  `tables.zones`, which keeps the count.
Tells `api.zone_files`.
Not   enforcing a quota (`services.zone_edit`).
"""

import msgspec

from edgestead.model.zone_errors import AccountNotSeen, ZoneNotFound
from edgestead.services.limits import RECORDS_PER_ZONE_MAX
from edgestead.store.control import Reader
from edgestead.tables import accounts, zones


class Usage(msgspec.Struct, frozen=True):
    """`record_quota` null: no limit."""

    record_quota: int | None
    record_usage: int


def of_zone(reader: Reader, zone_id: str) -> Usage:
    """Raises ZoneNotFound."""
    state = zones.state(reader, zone_id)
    if state is None:
        raise ZoneNotFound
    return Usage(RECORDS_PER_ZONE_MAX, state.record_count)


def of_account(reader: Reader, account_id: str) -> Usage:
    """Raises AccountNotSeen."""
    if accounts.account(reader, account_id) is None:
        raise AccountNotSeen
    return Usage(None, zones.records_of_account(reader, account_id))
