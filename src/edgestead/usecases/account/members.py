"""Who belongs to an account, in which role: as the account sees it, and as the user does.

Owns  the shapes of members, memberships and roles; the one role.
Not   what a credential may do: policies of tokens say that, not roles (`usecases.access.authorise`).

An account has the members that were created at the first start; there are no invitations. Each has every
right.
"""

from typing import Any

import msgspec

from edgestead.model.ids import fixed_id
from edgestead.model.refusals.account import (
    LastMember,
    MemberNotFound,
    MembershipNotFound,
    MembershipStatusRefused,
    RoleNotFound,
)
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts
from edgestead.tables.accounts import MemberRow, MembershipRow
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.lookup import account_of

STATUSES = ("accepted", "rejected")
MEMBERSHIP_ORDERS = ("id", "account.name", "status")
_ROLE_NAME = "Super Administrator - All Privileges"
_AREAS = ("analytics", "dns_records", "settings", "waf", "zones", "zone_settings")
_ALL_PERMISSIONS = {area: {"read": True, "write": True} for area in _AREAS}


class RoleView(msgspec.Struct, frozen=True):
    id: str
    name: str
    description: str
    permissions: dict[str, dict[str, bool]]


class MemberUser(msgspec.Struct, frozen=True):
    id: str
    email: str
    first_name: None = None
    last_name: None = None
    two_factor_authentication_enabled: bool = False


class MemberView(msgspec.Struct, frozen=True):
    id: str
    status: str
    email: str
    user: MemberUser
    roles: tuple[RoleView, ...]


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


class MembershipBody(msgspec.Struct, frozen=True):
    status: str | None = None


class Filter(msgspec.Struct, frozen=True):
    """What a list of memberships asks for; None asks for nothing."""

    status: str | None = None
    account_name: str | None = None
    order: str = "id"
    descending: bool = False


class Listed(msgspec.Struct, frozen=True):
    items: list[Any]
    total_count: int


ROLES = (
    RoleView(
        fixed_id("role", _ROLE_NAME),
        _ROLE_NAME,
        "May do everything in the account, its members included.",
        _ALL_PERMISSIONS,
    ),
)


def members(reader: Reader, account_id: str) -> list[MemberView]:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return [_member(row) for row in accounts.members(reader, account_id)]


def member(reader: Reader, account_id: str, member_id: str) -> MemberView:
    """Raises AccountNotSeen, MemberNotFound."""
    for found in members(reader, account_id):
        if found.id == member_id:
            return found
    raise MemberNotFound


def roles(reader: Reader, account_id: str) -> tuple[RoleView, ...]:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return ROLES


def role(reader: Reader, account_id: str, role_id: str) -> RoleView:
    """Raises AccountNotSeen, RoleNotFound."""
    for found in roles(reader, account_id):
        if found.id == role_id:
            return found
    raise RoleNotFound


def memberships(reader: Reader, identity: Identity, wanted: Filter, *, limit: int, offset: int) -> Listed:
    """Where the calling user belongs. There are few: all of them are read."""
    name = wanted.account_name
    found = [
        row
        for row in accounts.memberships(reader, identity.actor.id)
        if wanted.status in (None, row.status)
        and (name is None or row.account_name.casefold() == name.casefold())
    ]
    found.sort(key=_ORDER[wanted.order], reverse=wanted.descending)
    return Listed([_membership(row) for row in found[offset : offset + limit]], len(found))


def membership(reader: Reader, identity: Identity, membership_id: str) -> MembershipView:
    """Raises MembershipNotFound, also for another user's."""
    return _membership(_own(reader, identity, membership_id))


def put_membership(
    tx: Transaction, identity: Identity, membership_id: str, body: MembershipBody
) -> MembershipView:
    """Accept or reject. Raises MembershipNotFound, MembershipStatusRefused, LastMember."""
    row = _own(tx, identity, membership_id)
    if body.status not in STATUSES:
        raise MembershipStatusRefused(pointer="/status")
    if body.status != "accepted":
        _check_others(tx, row)
    accounts.set_membership_status(tx, row.id, body.status)
    return membership(tx, identity, membership_id)


def delete_membership(tx: Transaction, identity: Identity, membership_id: str) -> None:
    """Leave an account. Raises MembershipNotFound, LastMember."""
    row = _own(tx, identity, membership_id)
    _check_others(tx, row)
    accounts.delete_membership(tx, row.id)


_ORDER = {
    "id": lambda row: row.id,
    "account.name": lambda row: row.account_name,
    "status": lambda row: row.status,
}


def _own(reader: Reader, identity: Identity, membership_id: str) -> MembershipRow:
    row = accounts.membership(reader, membership_id)
    if row is None or row.user_id != identity.actor.id:
        raise MembershipNotFound
    return row


def _check_others(reader: Reader, row: MembershipRow) -> None:
    others = (one for one in accounts.members(reader, row.account_id) if one.id != row.id)
    if not any(one.status == "accepted" for one in others):
        raise LastMember


def _member(row: MemberRow) -> MemberView:
    return MemberView(row.id, row.status, row.email, MemberUser(row.user_id, row.email), ROLES)


def _membership(row: MembershipRow) -> MembershipView:
    account = NamedAccount(row.account_id, row.account_name)
    return MembershipView(row.id, row.status, account, (_ROLE_NAME,), _ALL_PERMISSIONS)
