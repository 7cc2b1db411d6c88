"""Use cases of users, accounts and memberships.

Owns  the members of these objects, and which of them a caller sees.
Asks  `tables.accounts`, `services.access`.
Tells `api.accounts`.
Not   tokens.
"""

import msgspec

from edgestead.model.access_errors import UserNeeded
from edgestead.model.envelope import Page
from edgestead.model.times import six_digits
from edgestead.model.zone_errors import AccountNotSeen
from edgestead.services import access
from edgestead.services.access import Identity
from edgestead.store.control import Reader
from edgestead.tables import accounts
from edgestead.tables.accounts import AccountRow, MembershipRow

ROLE = "Super Administrator - All Privileges"
_AREAS = ("account_settings", "dns_records", "zone", "zone_settings", "zones", "waf", "workers_kv_storage")


class AccountSettings(msgspec.Struct, frozen=True):
    enforce_twofactor: bool = False
    abuse_contact_email: str | None = None


class AccountView(msgspec.Struct, frozen=True):
    id: str
    name: str
    type: str
    settings: AccountSettings
    created_on: str


class AccountName(msgspec.Struct, frozen=True):
    id: str
    name: str


class UserView(msgspec.Struct, frozen=True):
    id: str
    email: str
    first_name: str | None = None
    last_name: str | None = None
    telephone: str | None = None
    country: str | None = None
    zipcode: str | None = None
    two_factor_authentication_enabled: bool = False
    two_factor_authentication_locked: bool = False
    suspended: bool = False
    betas: list[str] = []
    organizations: list[str] = []
    has_pro_zones: bool = False
    has_business_zones: bool = False
    has_enterprise_zones: bool = False


class ReadWrite(msgspec.Struct, frozen=True):
    read: bool = True
    write: bool = True


class MembershipView(msgspec.Struct, frozen=True):
    id: str
    status: str
    account: AccountName
    roles: list[str]
    permissions: dict[str, ReadWrite]
    api_access_enabled: bool | None = None


def user(reader: Reader, identity: Identity) -> UserView:
    """Whoever calls. Raises UserNeeded: the credentials are no user's."""
    row = accounts.user(reader, identity.actor.id)
    if row is None:
        raise UserNeeded
    return UserView(id=row.id, email=row.email)


def account(reader: Reader, identity: Identity, account_id: str) -> AccountView:
    """Raises AccountNotSeen."""
    row = accounts.account(reader, account_id)
    if row is None or not access.sees_account(identity, row.id):
        raise AccountNotSeen
    return _account_view(row)


def listed(
    reader: Reader, identity: Identity, name: str | None, descending: bool, page: int, per_page: int
) -> Page:
    """The accounts that the caller sees. A server has few: the page is cut from all of them."""
    rows = [
        row
        for row in accounts.all_accounts(reader)
        if access.sees_account(identity, row.id) and (name is None or row.name == name)
    ]
    if descending:
        rows.reverse()
    first = (page - 1) * per_page
    return Page([_account_view(row) for row in rows[first : first + per_page]], page, per_page, len(rows))


def memberships(reader: Reader, identity: Identity, page: int, per_page: int) -> Page:
    user_id = identity.actor.id
    rows = accounts.memberships(reader, user_id, per_page, (page - 1) * per_page)
    total = accounts.membership_count(reader, user_id)
    return Page([_membership_view(row) for row in rows], page, per_page, total)


def _account_view(row: AccountRow) -> AccountView:
    return AccountView(row.id, row.name, row.type, AccountSettings(), six_digits(row.created_us))


def _membership_view(row: MembershipRow) -> MembershipView:
    permissions = {area: ReadWrite() for area in _AREAS}
    account_name = AccountName(row.account_id, row.account_name)
    return MembershipView(row.id, row.status, account_name, [ROLE], permissions)
