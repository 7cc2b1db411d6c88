"""Who belongs to an account, in which roles: as the account sees it, and as the user does.

Owns  the shapes of members, memberships and roles; inviting, changing and removing a member.
Not   what a role gives (`model.roles`), and how rights follow (`usecases.access.member_rights`); signing in.

    invited (pending) ── opens the link, sets a password ──► accepted ── removed, or leaves ──► gone
         │  └── removed, or INVITATION_DAYS over: the link is dead                                ▲
         └── is in another account here: PUT /memberships/:id with this one's code ──► accepted ──┘

Nobody gives, changes or takes a role that allows more than their own credentials do. The user of the
credentials file holds the key pair, which no role binds: that membership stays as it is.
"""

import secrets
from collections.abc import Sequence

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.refusals.account import (
    InvitationForMember,
    KeyHolderStays,
    LastMember,
    MemberExists,
    MemberNotFound,
    MemberQuota,
    MemberRefused,
    MembershipNotFound,
    MembershipStatusRefused,
    RoleNotFound,
)
from edgestead.model.roles import BY_ID, ROLES, Role, permissions_of
from edgestead.model.times import whole_seconds
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, openid, passkeys, people, settings
from edgestead.tables.accounts import MemberRow, MembershipRow, UserRow
from edgestead.tables.people import InvitationRow
from edgestead.usecases.access import identities, member_rights
from edgestead.usecases.access.authorise import Identity, secret_hash
from edgestead.usecases.access.member_rights import read_roles
from edgestead.usecases.account.accounts import profile_of
from edgestead.usecases.limits import (
    EMAIL_CHARACTERS_MAX,
    INVITATION_DAYS,
    MEMBERS_PER_ACCOUNT_MAX,
    ROLES_PER_MEMBER_MAX,
)
from edgestead.usecases.lookup import account_of
from edgestead.usecases.platform import Platform

STATUSES = ("accepted", "rejected")
MEMBERSHIP_ORDERS = ("id", "account.name", "status")
_AREAS = {
    "analytics": "Zone",
    "dns_records": "DNS",
    "settings": "Account Settings",
    "waf": "Zone WAF",
    "zones": "Zone",
    "zone_settings": "Zone Settings",
}
_DAY_US = 86_400_000_000
_encode = msgspec.json.Encoder().encode


class RoleView(msgspec.Struct, frozen=True):
    id: str
    name: str
    description: str
    permissions: dict[str, dict[str, bool]]


class MemberUser(msgspec.Struct, frozen=True):
    id: str
    email: str
    first_name: str | None = None
    last_name: str | None = None
    two_factor_authentication_enabled: bool = False


class MemberView(msgspec.Struct, frozen=True):
    """`code` accepts the membership, once, and begins a new user's password: only this answer has it."""

    id: str
    status: str
    email: str
    user: MemberUser
    roles: tuple[RoleView, ...]
    code: str | msgspec.UnsetType = msgspec.UNSET


class InvitationView(msgspec.Struct, frozen=True):
    """`id` is the member's; `code` stands at the end of the link /ui/invite?code=."""

    id: str
    email: str
    code: str
    expires_on: str


class RoleReference(msgspec.Struct, frozen=True):
    id: str


class MemberBody(msgspec.Struct, frozen=True):
    """What POST and PUT take: `roles` are identifiers, or objects that have one. PUT reads only these."""

    email: str = ""
    roles: list[str | RoleReference] = []
    status: str | None = None


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
    """`code` is the account's own, which its link ends with."""

    status: str | None = None
    code: str = ""


class Filter(msgspec.Struct, frozen=True):
    """What a list of memberships asks for; None asks for nothing."""

    status: str | None = None
    account_name: str | None = None
    order: str = "id"
    descending: bool = False


def _role_view(role: Role) -> RoleView:
    return RoleView(role.id, role.name, role.description, permissions_of([role.id], _AREAS))


_ROLES = {role.id: _role_view(role) for role in ROLES}


def members(reader: Reader, account_id: str) -> list[MemberView]:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return [_member(reader, row) for row in accounts.members(reader, account_id)]


def member(reader: Reader, account_id: str, member_id: str) -> MemberView:
    """Raises AccountNotSeen, MemberNotFound."""
    return _member(reader, _row(reader, account_id, member_id))


def roles(reader: Reader, account_id: str) -> tuple[RoleView, ...]:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    return tuple(_ROLES.values())


def role(reader: Reader, account_id: str, role_id: str) -> RoleView:
    """Raises AccountNotSeen, RoleNotFound."""
    account_of(reader, account_id)
    if role_id not in _ROLES:
        raise RoleNotFound
    return _ROLES[role_id]


def add(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, account_id: str, body: MemberBody
) -> MemberView:
    """Invite somebody by a code, with which a user whom the server does not know yet sets a password.

    Raises AccountNotSeen, MemberRefused, RoleGrantsMore, MemberExists, MemberQuota.
    """
    account_of(tx, account_id)
    email, role_ids = _email(body.email), _role_ids(body)
    status = body.status or "pending"
    if status not in ("pending", "accepted"):
        raise MemberRefused(field="status", reason="it is pending or accepted", pointer="/status")
    member_rights.check_may_give(identity, tx, account_id, role_ids)
    present = accounts.members(tx, account_id)
    if any(one.email.lower() == email.lower() for one in present):
        raise MemberExists(email=email, pointer="/email")
    if len(present) >= MEMBERS_PER_ACCOUNT_MAX:
        raise MemberQuota(limit=MEMBERS_PER_ACCOUNT_MAX)
    user = accounts.user_of_email(tx, email.lower())
    is_new = user is None
    if user is None:
        user = UserRow(platform.new_id(), email, email.lower(), b"", call.now_us)
        accounts.insert_user(tx, user)
        identities.tell_user(tx, user)
    else:
        status = "pending"  # whoever has their password has shown it to another account, and not to this one
    member_id = platform.new_id()
    accounts.insert_membership(tx, member_id, account_id, user.id, status, call.now_us, _text(role_ids))
    member_rights.settle(call, tx, platform, user.id)
    made = member(tx, account_id, member_id)
    code = _invite(call, tx, user.id, account_id, sets_password=is_new).code
    return msgspec.structs.replace(made, code=code)


def change(
    call: Call,
    tx: Transaction,
    platform: Platform,
    identity: Identity,
    account_id: str,
    member_id: str,
    body: MemberBody,
) -> MemberView:
    """Give a member other roles, from this commit on.

    Raises AccountNotSeen, MemberNotFound, MemberRefused, RoleGrantsMore, KeyHolderStays.
    """
    row, role_ids = _row(tx, account_id, member_id), _role_ids(body)
    _check_may_touch(identity, tx, account_id, row)
    member_rights.check_may_give(identity, tx, account_id, role_ids)
    accounts.set_roles(tx, row.id, _text(role_ids))
    member_rights.settle(call, tx, platform, row.user_id)
    return member(tx, account_id, member_id)


def remove(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, account_id: str, member_id: str
) -> None:
    """End a membership: of who belongs nowhere then, every session and token is dead with this commit.

    Raises AccountNotSeen, MemberNotFound, RoleGrantsMore, KeyHolderStays, LastMember.
    """
    row = _row(tx, account_id, member_id)
    _check_may_touch(identity, tx, account_id, row)
    _check_others(tx, account_id, row.id)
    _leave(call, tx, platform, row.id, row.user_id, account_id)


def invite_again(
    call: Call, tx: Transaction, identity: Identity, account_id: str, member_id: str
) -> InvitationView:
    """Another code, for a link that was lost or a password that was forgotten; the older one is dead.

    Who gets it is that user, so the caller needs what the user may in every account.

    Raises AccountNotSeen, MemberNotFound, RoleGrantsMore, KeyHolderStays.
    """
    row = _row(tx, account_id, member_id)
    _check_may_touch(identity, tx, account_id, row)
    for one in accounts.memberships(tx, row.user_id):
        member_rights.check_may_give(identity, tx, one.account_id, read_roles(one.roles))
    if row.status == "rejected":  # they are asked once more: a link accepts what is pending
        accounts.set_membership_status(tx, row.id, "pending")
    made = _invite(call, tx, row.user_id, account_id, sets_password=True)
    return InvitationView(member_id, row.email, made.code, whole_seconds(made.expires_us))


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
    call: Call,
    tx: Transaction,
    platform: Platform,
    identity: Identity,
    membership_id: str,
    body: MembershipBody,
) -> MembershipView:
    """Accept with the account's code, or reject.

    Raises MembershipNotFound, MembershipStatusRefused, InvitationForMember, LastMember.
    """
    row = _own(tx, identity, membership_id)
    if body.status not in STATUSES:
        raise MembershipStatusRefused(pointer="/status")
    if body.status != "accepted":
        _check_others(tx, row.account_id, row.id)
    elif row.status != "accepted" and not identity.full:
        _use_up(call, tx, row, body.code)
    accounts.set_membership_status(tx, row.id, body.status)
    member_rights.settle(call, tx, platform, row.user_id)
    return membership(tx, identity, membership_id)


def delete_membership(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, membership_id: str
) -> None:
    """Leave an account. Raises MembershipNotFound, LastMember."""
    row = _own(tx, identity, membership_id)
    _check_others(tx, row.account_id, row.id)
    _leave(call, tx, platform, row.id, row.user_id, row.account_id)


_ORDER = {
    "id": lambda row: row.id,
    "account.name": lambda row: row.account_name,
    "status": lambda row: row.status,
}


class _Invitation(msgspec.Struct, frozen=True):
    code: str
    expires_us: int


def _use_up(call: Call, tx: Transaction, row: MembershipRow, code: str) -> None:
    """Raises InvitationForMember: a code of another account says nothing of this one."""
    found = people.invitation(tx, secret_hash(code))
    is_own = found is not None and (found.user_id, found.account_id) == (row.user_id, row.account_id)
    if found is None or not is_own or call.now_us >= found.expires_us:
        reason = "the code at the end of this account's own link is needed, while it holds"
        raise InvitationForMember(reason=reason, pointer="/code")
    if openid.is_bound(tx, row.user_id) and people.password(tx, row.user_id):
        raise InvitationForMember(reason="sign in with your identity provider to accept it", pointer="/code")
    people.delete_invitation(tx, row.user_id, row.account_id)
    people.begin_nothing(tx, row.user_id)


def _invite(
    call: Call, tx: Transaction, user_id: str, account_id: str, *, sets_password: bool
) -> _Invitation:
    code = secrets.token_urlsafe(24)
    expires_us = call.now_us + INVITATION_DAYS * _DAY_US
    row = InvitationRow(user_id, secret_hash(code), account_id, call.now_us, expires_us, int(sets_password))
    people.set_invitation(tx, row)
    return _Invitation(code, expires_us)


def _leave(
    call: Call, tx: Transaction, platform: Platform, membership_id: str, user_id: str, account_id: str
) -> None:
    accounts.delete_membership(tx, membership_id)
    people.delete_invitation(tx, user_id, account_id)
    user = accounts.user(tx, user_id)
    if accounts.memberships(tx, user_id) or user is None or user.key_hash:
        member_rights.settle(call, tx, platform, user_id)
        return
    member_rights.end(call, tx, platform, user_id)
    people.forget(tx, user_id)
    passkeys.forget(tx, user_id)
    openid.forget(tx, user_id)
    settings.delete_all(tx, user_id)
    accounts.delete_user(tx, user_id)
    identities.forget_user(tx, user_id)


def _check_may_touch(identity: Identity, reader: Reader, account_id: str, row: MemberRow) -> None:
    if row.key_hash:
        raise KeyHolderStays
    member_rights.check_may_give(identity, reader, account_id, read_roles(row.roles))


def _email(text: str) -> str:
    name, at, host = text.strip().partition("@")
    is_one = name and at and host and "@" not in host and len(text.strip()) <= EMAIL_CHARACTERS_MAX
    if not is_one or any(not "!" <= character <= "~" for character in text.strip()):
        reason = f"an address like ann@example.com is expected, of at most {EMAIL_CHARACTERS_MAX} characters"
        raise MemberRefused(field="email", reason=reason, pointer="/email")
    return text.strip()


def _role_ids(body: MemberBody) -> list[str]:
    found = [one if isinstance(one, str) else one.id for one in body.roles]
    if not 1 <= len(found) <= ROLES_PER_MEMBER_MAX or not all(one in BY_ID for one in found):
        reason = f"from 1 to {ROLES_PER_MEMBER_MAX} identifiers of roles are expected"
        raise MemberRefused(field="roles", reason=reason, pointer="/roles")
    return list(dict.fromkeys(found))


def _row(reader: Reader, account_id: str, member_id: str) -> MemberRow:
    account_of(reader, account_id)
    for row in accounts.members(reader, account_id):
        if row.id == member_id:
            return row
    raise MemberNotFound


def _own(reader: Reader, identity: Identity, membership_id: str) -> MembershipRow:
    row = accounts.membership(reader, membership_id)
    if row is None or row.user_id != identity.actor.id:
        raise MembershipNotFound
    return row


def _check_others(reader: Reader, account_id: str, membership_id: str) -> None:
    others = (one for one in accounts.members(reader, account_id) if one.id != membership_id)
    if not any(one.status == "accepted" for one in others):
        raise LastMember


def _views(role_ids: Sequence[str]) -> tuple[RoleView, ...]:
    return tuple(_ROLES[one] for one in role_ids if one in _ROLES)


def _member(reader: Reader, row: MemberRow) -> MemberView:
    said = profile_of(reader, row.user_id)
    user = MemberUser(row.user_id, row.email, said.first_name, said.last_name)
    return MemberView(row.id, row.status, row.email, user, _views(read_roles(row.roles)))


def _membership(row: MembershipRow) -> MembershipView:
    role_ids = read_roles(row.roles)
    names = tuple(view.name for view in _views(role_ids))
    account = NamedAccount(row.account_id, row.account_name)
    return MembershipView(row.id, row.status, account, names, permissions_of(role_ids, _AREAS))


def _text(role_ids: Sequence[str]) -> str:
    return _encode(role_ids).decode()
