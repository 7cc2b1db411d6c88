"""REST face of accounts, of the calling user and of memberships.

Owns  /accounts, /user and /memberships.
Asks  `services.accounts`.
Tells clients.
Not   tokens (`api.tokens`).
"""

from edgestead.api import declared
from edgestead.api.context import AppContext
from edgestead.api.declared import DIRECTION, pages, text
from edgestead.api.query import Query
from edgestead.api.routing import route
from edgestead.model.envelope import Page, page_of
from edgestead.services import accounts
from edgestead.services.access import PLATFORM, Identity
from edgestead.services.accounts import AccountView, MembershipView, UserView


@route("GET", "/user", permission="User Details Read", family=PLATFORM, user_only=True)
def show_user(api: AppContext, identity: Identity) -> UserView:
    """The user whom the credentials belong to."""
    return api.barrier.read(lambda reader: accounts.user(reader, identity))


@route(
    "GET",
    "/accounts",
    family=PLATFORM,
    query=(*pages(), text("name", "Only the account of this name."), DIRECTION),
    answers=declared.page_of(AccountView),
)
def list_accounts(api: AppContext, identity: Identity, query: Query) -> Page:
    """The accounts that the caller sees. Filter `name`; order `direction`."""
    paging = query.paging()
    found = api.barrier.read(
        lambda reader: accounts.listed(
            reader,
            identity,
            query.text("name"),
            descending=query.descending(),
            limit=paging.per_page,
            offset=paging.offset,
        )
    )
    return page_of(found.items, paging.page, paging.per_page, found.total_count)


@route("GET", "/accounts/{account_id}", family=PLATFORM)
def show_account(account_id: str, api: AppContext, identity: Identity) -> AccountView:
    """One account."""
    return api.barrier.read(lambda reader: accounts.show(reader, identity, account_id))


@route(
    "GET",
    "/memberships",
    permission="Memberships Read",
    family=PLATFORM,
    user_only=True,
    query=pages(),
    answers=declared.page_of(MembershipView),
)
def list_memberships(api: AppContext, identity: Identity, query: Query) -> Page:
    """The accounts that the calling user belongs to, with roles."""
    paging = query.paging()
    found = api.barrier.read(
        lambda reader: accounts.memberships(reader, identity, limit=paging.per_page, offset=paging.offset)
    )
    return page_of(found.items, paging.page, paging.per_page, found.total_count)
