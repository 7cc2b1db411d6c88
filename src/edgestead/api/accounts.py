"""REST face of the user, accounts and memberships.

Owns  the routes `/user`, `/accounts`, `/accounts/{account_id}` and `/memberships`.
Asks  `services.accounts`.
Tells nobody.
Not   tokens; members of an account.
"""

from edgestead.api.context import AppContext
from edgestead.api.query import Query
from edgestead.api.routing import route
from edgestead.model.envelope import Page
from edgestead.services import accounts
from edgestead.services.access import PLATFORM, Identity
from edgestead.services.accounts import AccountView, UserView


@route("GET", "/user", family=PLATFORM, user_only=True)
def get_user(api: AppContext, identity: Identity) -> UserView:
    """Read the user whose credentials were sent."""
    return api.barrier.read(lambda reader: accounts.user(reader, identity))


@route("GET", "/accounts", family=PLATFORM)
def list_accounts(api: AppContext, identity: Identity, query: Query) -> Page:
    """List the accounts that the caller sees."""
    paging = query.paging()
    name, descending = query.text("name"), query.descending()
    return api.barrier.read(
        lambda reader: accounts.listed(reader, identity, name, descending, paging.page, paging.per_page)
    )


@route("GET", "/accounts/{account_id}", family=PLATFORM)
def get_account(account_id: str, api: AppContext, identity: Identity) -> AccountView:
    """Read one account."""
    return api.barrier.read(lambda reader: accounts.account(reader, identity, account_id))


@route("GET", "/memberships", family=PLATFORM, user_only=True)
def list_memberships(api: AppContext, identity: Identity, query: Query) -> Page:
    """List the accounts that the user belongs to, with roles."""
    paging = query.paging()
    return api.barrier.read(
        lambda reader: accounts.memberships(reader, identity, paging.page, paging.per_page)
    )
