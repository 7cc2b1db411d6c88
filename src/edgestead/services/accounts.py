"""The use cases of accounts, of the calling user, and of memberships.

Owns  their JSON shapes.
Asks  `tables.accounts`; `services.access` for which accounts are seen.
Tells `api`.
Not   making accounts and users (`services.credentials`).
"""

from typing import Any

import msgspec

from edgestead.model.errors import Forbidden
from edgestead.model.times import six_digits
from edgestead.model.zone_errors import AccountNotSeen
from edgestead.services.access import Identity, sees_account
from edgestead.store.control import Reader
from edgestead.tables import accounts
from edgestead.tables.accounts import AccountRow, MembershipRow


class AccountSettings(msgspec.Struct, frozen=True):
    enforce_twofactor: bool = False
    abuse_contact_email: str | None = None


class AccountView(msgspec.Struct, frozen=True):
    id: str
    name: str
    type: str
    settings: AccountSettings
    created_on: str


class UserView(msgspec.Struct, frozen=True):
    """Contract "`/user`, `/accounts`, `/memberships`". What this server does not keep is null or empty."""

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
    betas: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    has_pro_zones: bool = False
    has_business_zones: bool = False
    has_enterprise_zones: bool = False


class NamedAccount(msgspec.Struct, frozen=True):
    id: str
    name: str


class MembershipView(msgspec.Struct, frozen=True):
    id: str
    status: str
    account: NamedAccount
    roles: tuple[str, ...]
    permissions: dict[str, dict[str, bool]]
    api_access_enabled: bool | None = None


class Listed(msgspec.Struct, frozen=True):
    items: list[Any]
    total_count: int


_ROLES = ("Super Administrator - All Privileges",)
_AREAS = ("analytics", "dns_records", "settings", "waf", "zones", "zone_settings")
_ALL_PERMISSIONS = {area: {"read": True, "write": True} for area in _AREAS}


def show(reader: Reader, identity: Identity, account_id: str) -> AccountView:
    """Raises AccountNotSeen."""
    row = accounts.account(reader, account_id)
    if row is None or not sees_account(identity, account_id):
        raise AccountNotSeen
    return _view(row)


def listed(
    reader: Reader, identity: Identity, name: str | None, *, descending: bool, limit: int, offset: int
) -> Listed:
    """The accounts that the caller sees, oldest first. There are few: all of them are read."""
    rows = [
        row
        for row in accounts.all_accounts(reader)
        if sees_account(identity, row.id) and (name is None or row.name.casefold() == name.casefold())
    ]
    if descending:
        rows.reverse()
    return Listed([_view(row) for row in rows[offset : offset + limit]], len(rows))


def user(reader: Reader, identity: Identity) -> UserView:
    """Raises Forbidden: the user is gone."""
    row = accounts.user(reader, identity.actor.id)
    if row is None:
        raise Forbidden
    return UserView(row.id, row.email)


def memberships(reader: Reader, identity: Identity, *, limit: int, offset: int) -> Listed:
    """Where the calling user belongs."""
    user_id = identity.actor.id
    rows = accounts.memberships(reader, user_id, limit, offset)
    return Listed([_membership(row) for row in rows], accounts.membership_count(reader, user_id))


def _view(row: AccountRow) -> AccountView:
    return AccountView(row.id, row.name, row.type, AccountSettings(), six_digits(row.created_us))


def _membership(row: MembershipRow) -> MembershipView:
    account = NamedAccount(row.account_id, row.account_name)
    return MembershipView(row.id, row.status, account, _ROLES, _ALL_PERMISSIONS)
