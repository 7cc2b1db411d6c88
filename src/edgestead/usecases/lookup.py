"""The zone or account that a path names, or the refusal that there is none.

Owns  nothing.
Not   whether the caller may see it: the pipeline decided that.
"""

from edgestead.model.refusals.account import AccountNotSeen
from edgestead.model.refusals.zone import ZoneNotFound
from edgestead.store.control import Reader
from edgestead.tables import accounts, zones
from edgestead.tables.accounts import AccountRow
from edgestead.tables.zones import ZoneRow


def zone_of(reader: Reader, zone_id: str) -> ZoneRow:
    """Raises ZoneNotFound."""
    zone = zones.zone(reader, zone_id)
    if zone is None:
        raise ZoneNotFound
    return zone


def account_of(reader: Reader, account_id: str) -> AccountRow:
    """Raises AccountNotSeen."""
    account = accounts.account(reader, account_id)
    if account is None:
        raise AccountNotSeen
    return account
