"""REST face of accounts, of the calling user and of who belongs where.

Owns  /accounts, /user and /memberships; an account's members and roles.
Not   tokens (`rest.routes.tokens`); an account's DNS defaults (`rest.routes.dns_settings`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.model.room import Adds
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write, WriteAs
from edgestead.rest.declared import DIRECTION, choice, pages, text
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.access.authorise import PLATFORM, Identity
from edgestead.usecases.account import accounts, members
from edgestead.usecases.account.accounts import AccountBody, AccountView, UserBody, UserView
from edgestead.usecases.account.members import (
    InvitationView,
    MemberBody,
    MembershipBody,
    MembershipView,
    MemberView,
    RoleView,
)

_ACCOUNT = "/accounts/{account_id}"
_MEMBERSHIP = "/memberships/{membership_id}"
STATUSES = ("accepted", "pending", "rejected")
_READ, _WRITE = "Account Settings Read", "Account Settings Write"


@route("GET", "/user", permission="User Details Read", family=PLATFORM, user_only=True)
def show_user(api: AppContext, identity: Identity) -> UserView:
    """The user whom the credentials belong to."""
    return api.barrier.read(lambda reader: accounts.user(reader, identity))


@route("PATCH", "/user", permission="User Details Write", family=PLATFORM, user_only=True)
async def patch_user(call: Call, identity: Identity, body: UserBody, write: Write) -> UserView:
    """Change the user's name, telephone, country or postal code."""
    return await write(lambda tx: accounts.patch_user(call, tx, identity, body))


@route(
    "GET",
    "/accounts",
    family=PLATFORM,
    query=(*pages(), text("name", "Only the account of this name."), DIRECTION),
    answers=declared.page_of(AccountView),
)
def list_accounts(api: AppContext, call: Call, identity: Identity, query: Query) -> Page:
    """The accounts that the caller sees. Filter `name`; order `direction`."""
    paging = query.paging()
    found = api.barrier.read(
        lambda reader: accounts.listed(
            call,
            reader,
            identity,
            query.text("name"),
            descending=query.descending(),
            limit=paging.per_page,
            offset=paging.offset,
        )
    )
    return paging.of(found)


@route("POST", "/accounts", family=PLATFORM)
async def create_account(api: AppContext, call: Call, body: AccountBody, write_as: WriteAs) -> AccountView:
    """Create another account. Only credentials that may do everything on the server can."""
    return await write_as(lambda tx, identity: accounts.create(call, tx, api.platform, identity, body))


@route("GET", _ACCOUNT, family=PLATFORM)
def show_account(account_id: str, api: AppContext, call: Call, identity: Identity) -> AccountView:
    """One account."""
    return api.barrier.read(lambda reader: accounts.show(call, reader, identity, account_id))


@route("PUT", _ACCOUNT, permission=_WRITE, family=PLATFORM)
async def put_account(account_id: str, call: Call, body: AccountBody, write: Write) -> AccountView:
    """Rename an account, change its settings."""
    return await write(lambda tx: accounts.put(call, tx, account_id, body))


@route(
    "GET",
    f"{_ACCOUNT}/members",
    permission=_READ,
    family=PLATFORM,
    query=pages(),
    answers=declared.page_of(MemberView),
)
def list_members(account_id: str, api: AppContext, query: Query) -> Page:
    """Who belongs to an account."""
    paging = query.paging()
    found = api.barrier.read(lambda reader: members.members(reader, account_id))
    return paging.cut(found)


@route("POST", f"{_ACCOUNT}/members", permission=_WRITE, family=PLATFORM)
async def add_member(
    account_id: str, api: AppContext, call: Call, body: MemberBody, write_as: WriteAs
) -> MemberView:
    """Invite somebody by e-mail address. The answer's `code` begins their password, once.

    It is sent to nobody: that is up to the caller. The link for a browser is `/ui/invite?code=` with it. It
    ends after seven days.
    """
    return await write_as(
        lambda tx, identity: members.add(call, tx, api.platform, identity, account_id, body)
    )


@route("PUT", f"{_ACCOUNT}/members/{{member_id}}", permission=_WRITE, family=PLATFORM, adds=Adds.NOTHING)
async def change_member(
    account_id: str, member_id: str, api: AppContext, call: Call, body: MemberBody, write_as: WriteAs
) -> MemberView:
    """Give a member other roles. What they lose, their sessions and tokens lose with it."""
    return await write_as(
        lambda tx, identity: members.change(call, tx, api.platform, identity, account_id, member_id, body)
    )


@route("DELETE", f"{_ACCOUNT}/members/{{member_id}}", permission=_WRITE, family=PLATFORM)
async def remove_member(
    account_id: str, member_id: str, api: AppContext, call: Call, write_as: WriteAs
) -> dict[str, str]:
    """Remove a member. Who belongs to no account then has no session and no token left."""
    await write_as(
        lambda tx, identity: members.remove(call, tx, api.platform, identity, account_id, member_id)
    )
    return {"id": member_id}


@route("POST", f"{_ACCOUNT}/members/{{member_id}}/invitation", permission=_WRITE, family=PLATFORM)
async def invite_member_again(
    account_id: str, member_id: str, api: AppContext, call: Call, write_as: WriteAs
) -> InvitationView:
    """Another code for a member who lost the link, or forgot the password; the older one is dead."""
    return await write_as(
        lambda tx, identity: members.invite_again(call, tx, identity, account_id, member_id)
    )


@route("GET", f"{_ACCOUNT}/members/{{member_id}}", permission=_READ, family=PLATFORM)
def show_member(account_id: str, member_id: str, api: AppContext) -> MemberView:
    """One member of an account."""
    return api.barrier.read(lambda reader: members.member(reader, account_id, member_id))


@route(
    "GET",
    f"{_ACCOUNT}/roles",
    permission=_READ,
    family=PLATFORM,
    query=pages(),
    answers=declared.page_of(RoleView),
)
def list_roles(account_id: str, api: AppContext, query: Query) -> Page:
    """The roles that members can have."""
    paging = query.paging()
    found = api.barrier.read(lambda reader: members.roles(reader, account_id))
    return paging.cut(found)


@route("GET", f"{_ACCOUNT}/roles/{{role_id}}", permission=_READ, family=PLATFORM)
def show_role(account_id: str, role_id: str, api: AppContext) -> RoleView:
    """One role."""
    return api.barrier.read(lambda reader: members.role(reader, account_id, role_id))


@route(
    "GET",
    "/memberships",
    permission="Memberships Read",
    family=PLATFORM,
    user_only=True,
    query=(
        *pages(),
        choice("status", STATUSES, "", "Only memberships with this status."),
        *(text(name, "Only memberships in the account of this name.") for name in ("account.name", "name")),
        choice("order", members.MEMBERSHIP_ORDERS, "id", "What the memberships are ordered by."),
        DIRECTION,
    ),
    answers=declared.page_of(MembershipView),
)
def list_memberships(api: AppContext, identity: Identity, query: Query) -> Page:
    """The accounts that the calling user belongs to. Filters `status`, `account.name`, `name`; `order`."""
    paging = query.paging()
    wanted = members.Filter(
        query.choice("status", STATUSES, "") or None,
        query.text("account.name", "name") or None,
        query.choice("order", members.MEMBERSHIP_ORDERS, "id"),
        query.descending(),
    )
    found = api.barrier.read(
        lambda reader: members.memberships(
            reader, identity, wanted, limit=paging.per_page, offset=paging.offset
        )
    )
    return paging.of(found)


@route("GET", _MEMBERSHIP, permission="Memberships Read", family=PLATFORM, user_only=True)
def show_membership(membership_id: str, api: AppContext, identity: Identity) -> MembershipView:
    """One membership of the calling user."""
    return api.barrier.read(lambda reader: members.membership(reader, identity, membership_id))


@route("PUT", _MEMBERSHIP, permission="Memberships Write", family=PLATFORM, user_only=True)
async def put_membership(
    membership_id: str, api: AppContext, call: Call, body: MembershipBody, write_as: WriteAs
) -> MembershipView:
    """Accept or reject a membership. The last accepted member stays."""
    return await write_as(
        lambda tx, identity: members.put_membership(call, tx, api.platform, identity, membership_id, body)
    )


@route("DELETE", _MEMBERSHIP, permission="Memberships Write", family=PLATFORM, user_only=True)
async def delete_membership(
    membership_id: str, api: AppContext, call: Call, write_as: WriteAs
) -> dict[str, str]:
    """Leave an account. The last accepted member stays."""
    await write_as(
        lambda tx, identity: members.delete_membership(call, tx, api.platform, identity, membership_id)
    )
    return {"id": membership_id}
