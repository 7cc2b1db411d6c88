"""REST face of API tokens.

Owns  /user/tokens and /accounts/{account_id}/tokens.
Not   what a policy means; checking credentials.

The table of identities follows a change before it is answered (`usecases.access.identities`). Who may change
what is decided by the rows that the transaction sees: a token that an earlier write of the same commit ends
or narrows makes no successor.
"""

from collections.abc import Callable

import msgspec

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import Message, Page
from edgestead.model.refusals.access import InvalidApiToken
from edgestead.model.room import Adds
from edgestead.model.times import whole_seconds
from edgestead.rest import declared
from edgestead.rest.context import AppContext, WriteAs
from edgestead.rest.declared import DIRECTION, Answers, flag, pages, text
from edgestead.rest.limits import HISTORY_PAGE_SIZE_MAX, TOKEN_BODY_BYTES_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.store.control import Reader
from edgestead.usecases.access import token_log, tokens
from edgestead.usecases.access.authorise import TOKENS, VERIFY, Identity
from edgestead.usecases.access.token_draft import Owner, TokenBody
from edgestead.usecases.access.token_log import LogView
from edgestead.usecases.access.tokens import GroupView, TokenView

_USER, _ACCOUNT = "/user/tokens", "/accounts/{account_id}/tokens"
_USER_READ, _USER_WRITE = "API Tokens Read", "API Tokens Write"
_ACCOUNT_READ, _ACCOUNT_WRITE = "Account API Tokens Read", "Account API Tokens Write"
_GROUPS_QUERY = (
    text("name", "Only the group of this name."),
    text("scope", "Only groups about this kind of resource."),
)
_LINEAGE = flag(
    "lineage", "Also `parent_id`: the token that made it, null for none. Not of the original service."
)
_LIST_QUERY = (*pages(), DIRECTION, flag("include_expired", "Also tokens that have expired."), _LINEAGE)
_SUCCESSORS = flag(
    "with_successors", "Also every token that it made, and that those made; in one transaction."
)
_LOG_PAGES = pages(size_max=HISTORY_PAGE_SIZE_MAX)
_GOOD = Message(10000, "This API token is valid and active.")


class TokenStatus(msgspec.Struct, frozen=True):
    id: str
    status: str
    not_before: str | msgspec.UnsetType = msgspec.UNSET
    expires_on: str | msgspec.UnsetType = msgspec.UNSET


class Deleted(msgspec.Struct, frozen=True):
    """`successors` is there for who asked to delete them, too."""

    id: str
    successors: list[str] | msgspec.UnsetType = msgspec.UNSET


@route("GET", f"{_USER}/verify", family=VERIFY, user_only=True, answers=Answers(TokenStatus))
def verify_token(identity: Identity) -> Answer:
    """Whether the calling token is good. Every token may ask; a key pair is no token."""
    return _verified(identity)


@route("GET", f"{_ACCOUNT}/verify", family=VERIFY, answers=Answers(TokenStatus))
def verify_account_token(account_id: str, identity: Identity) -> Answer:
    """Whether the calling token, which this account owns, is good. Every such token may ask."""
    if identity.actor.kind != "account" or identity.actor.id != account_id:
        raise InvalidApiToken
    return _verified(identity)


@route(
    "GET",
    f"{_USER}/permission_groups",
    permission=_USER_READ,
    family=TOKENS,
    user_only=True,
    query=_GROUPS_QUERY,
)
def list_permission_groups(query: Query) -> list[GroupView]:
    """What a token's policies can name. Filters `name`, `scope`."""
    return tokens.permission_groups("user", query.text("name"), query.text("scope"))


@route(
    "GET",
    f"{_ACCOUNT}/permission_groups",
    permission=_ACCOUNT_READ,
    family=TOKENS,
    query=_GROUPS_QUERY,
)
def list_account_permission_groups(account_id: str, api: AppContext, query: Query) -> list[GroupView]:
    """What the policies of an account's token can name. Filters `name`, `scope`."""
    api.barrier.read(lambda reader: tokens.account_owner(reader, account_id))
    return tokens.permission_groups("account", query.text("name"), query.text("scope"))


@route(
    "GET",
    _USER,
    permission=_USER_READ,
    family=TOKENS,
    user_only=True,
    query=_LIST_QUERY,
    answers=declared.page_of(TokenView),
)
def list_tokens(api: AppContext, call: Call, identity: Identity, query: Query) -> Page:
    """The user's tokens, without secrets. Order `direction`; `include_expired` shows expired ones too."""
    return _page(api, call, query, lambda _reader: tokens.user_owner(identity))


@route(
    "GET",
    _ACCOUNT,
    permission=_ACCOUNT_READ,
    family=TOKENS,
    query=_LIST_QUERY,
    answers=declared.page_of(TokenView),
)
def list_account_tokens(account_id: str, api: AppContext, call: Call, query: Query) -> Page:
    """The account's tokens, without secrets. Order `direction`; `include_expired` shows expired ones too."""
    return _page(api, call, query, lambda reader: tokens.account_owner(reader, account_id))


@route(
    "GET",
    f"{_USER}/history",
    permission=_USER_READ,
    family=TOKENS,
    user_only=True,
    query=_LOG_PAGES,
    answers=declared.page_of(LogView),
)
def list_token_changes(api: AppContext, identity: Identity, query: Query) -> Page:
    """Who created, updated, rolled and deleted tokens of the user, newest first."""
    return _log_page(api, query, lambda _reader: tokens.user_owner(identity))


@route(
    "GET",
    f"{_ACCOUNT}/history",
    permission=_ACCOUNT_READ,
    family=TOKENS,
    query=_LOG_PAGES,
    answers=declared.page_of(LogView),
)
def list_account_token_changes(account_id: str, api: AppContext, query: Query) -> Page:
    """Who created, updated, rolled and deleted tokens of the account, newest first."""
    return _log_page(api, query, lambda reader: tokens.account_owner(reader, account_id))


@route(
    "POST",
    _USER,
    permission=_USER_WRITE,
    family=TOKENS,
    user_only=True,
    body_bytes_max=TOKEN_BODY_BYTES_MAX,
)
async def create_token(api: AppContext, call: Call, body: TokenBody, write_as: WriteAs) -> TokenView:
    """Create a token of the user. Only this answer holds its secret, `value`."""
    return await write_as(
        lambda tx, identity: tokens.create(
            call, tx, api.platform, identity, tokens.user_owner(identity), body
        )
    )


@route("POST", _ACCOUNT, permission=_ACCOUNT_WRITE, family=TOKENS, body_bytes_max=TOKEN_BODY_BYTES_MAX)
async def create_account_token(
    account_id: str, api: AppContext, call: Call, body: TokenBody, write_as: WriteAs
) -> TokenView:
    """Create a token that the account owns. Only this answer holds its secret, `value`."""
    return await write_as(
        lambda tx, identity: tokens.create(
            call, tx, api.platform, identity, tokens.account_owner(tx, account_id), body
        ),
    )


@route(
    "GET",
    f"{_USER}/{{token_id}}",
    permission=_USER_READ,
    family=TOKENS,
    user_only=True,
    query=(_LINEAGE,),
)
def show_token(token_id: str, api: AppContext, call: Call, identity: Identity, query: Query) -> TokenView:
    """One token of the user, without its secret."""
    return _show(api, call, query, lambda _reader: tokens.user_owner(identity), token_id)


@route("GET", f"{_ACCOUNT}/{{token_id}}", permission=_ACCOUNT_READ, family=TOKENS, query=(_LINEAGE,))
def show_account_token(
    account_id: str, token_id: str, api: AppContext, call: Call, query: Query
) -> TokenView:
    """One token of the account, without its secret."""
    return _show(api, call, query, lambda reader: tokens.account_owner(reader, account_id), token_id)


@route(
    "PUT",
    f"{_USER}/{{token_id}}",
    permission=_USER_WRITE,
    family=TOKENS,
    user_only=True,
    body_bytes_max=TOKEN_BODY_BYTES_MAX,
    adds=Adds.NOTHING,
)
async def update_token(
    token_id: str, api: AppContext, call: Call, body: TokenBody, write_as: WriteAs
) -> TokenView:
    """Replace all of a token but its secret; `status` switches it off and on."""
    return await write_as(
        lambda tx, identity: tokens.update(
            call, tx, api.platform, identity, tokens.user_owner(identity), api.uses, token_id, body
        )
    )


@route(
    "PUT",
    f"{_ACCOUNT}/{{token_id}}",
    permission=_ACCOUNT_WRITE,
    family=TOKENS,
    body_bytes_max=TOKEN_BODY_BYTES_MAX,
    adds=Adds.NOTHING,
)
async def update_account_token(
    account_id: str, token_id: str, api: AppContext, call: Call, body: TokenBody, write_as: WriteAs
) -> TokenView:
    """Replace all of an account's token but its secret; `status` switches it off and on."""
    return await write_as(
        lambda tx, identity: tokens.update(
            call, tx, api.platform, identity, tokens.account_owner(tx, account_id), api.uses, token_id, body
        ),
    )


@route(
    "DELETE",
    f"{_USER}/{{token_id}}",
    permission=_USER_WRITE,
    family=TOKENS,
    user_only=True,
    query=(_SUCCESSORS,),
)
async def delete_token(
    token_id: str, api: AppContext, call: Call, query: Query, write_as: WriteAs
) -> Deleted:
    """Delete a token of the user. Its secret is dead when this answers.

    Tokens that it made stay, within the bounds that it was to them; with `with_successors` they are deleted.
    """
    return await _delete(
        api, call, query, write_as, lambda _tx, identity: tokens.user_owner(identity), token_id
    )


@route("DELETE", f"{_ACCOUNT}/{{token_id}}", permission=_ACCOUNT_WRITE, family=TOKENS, query=(_SUCCESSORS,))
async def delete_account_token(
    account_id: str, token_id: str, api: AppContext, call: Call, query: Query, write_as: WriteAs
) -> Deleted:
    """Delete a token of the account. Its secret is dead when this answers.

    Tokens that it made stay, within the bounds that it was to them; with `with_successors` they are deleted.
    """
    return await _delete(
        api, call, query, write_as, lambda tx, _identity: tokens.account_owner(tx, account_id), token_id
    )


@route(
    "PUT",
    f"{_USER}/{{token_id}}/value",
    permission=_USER_WRITE,
    family=TOKENS,
    user_only=True,
    adds=Adds.NOTHING,
)
async def roll_token(token_id: str, api: AppContext, call: Call, write_as: WriteAs) -> str:
    """Give a token a new secret, which is the answer. The old one is dead when this answers."""
    return await write_as(
        lambda tx, identity: tokens.roll(
            call, tx, api.platform, identity, tokens.user_owner(identity), token_id
        )
    )


@route("PUT", f"{_ACCOUNT}/{{token_id}}/value", permission=_ACCOUNT_WRITE, family=TOKENS, adds=Adds.NOTHING)
async def roll_account_token(
    account_id: str, token_id: str, api: AppContext, call: Call, write_as: WriteAs
) -> str:
    """Give an account's token a new secret, which is the answer. The old one is dead when this answers."""
    return await write_as(
        lambda tx, identity: tokens.roll(
            call, tx, api.platform, identity, tokens.account_owner(tx, account_id), token_id
        ),
    )


def _page(api: AppContext, call: Call, query: Query, owner: Callable[[Reader], Owner]) -> Page:
    paging = query.paging()
    include_expired = query.flag("include_expired") or False
    descending = query.descending()
    with_parents = query.flag("lineage") or False
    found = api.barrier.read(
        lambda reader: tokens.listed(
            call,
            reader,
            owner(reader),
            api.uses,
            include_expired=include_expired,
            descending=descending,
            with_parents=with_parents,
            limit=paging.per_page,
            offset=paging.offset,
        )
    )
    return paging.of(found)


def _show(
    api: AppContext, call: Call, query: Query, owner: Callable[[Reader], Owner], token_id: str
) -> TokenView:
    with_parent = query.flag("lineage") or False
    return api.barrier.read(
        lambda reader: tokens.show(call, reader, owner(reader), api.uses, token_id, with_parent=with_parent)
    )


async def _delete(
    api: AppContext,
    call: Call,
    query: Query,
    write_as: WriteAs,
    owner: Callable[[Reader, Identity], Owner],
    token_id: str,
) -> Deleted:
    with_successors = query.flag("with_successors") or False
    gone = await write_as(
        lambda tx, identity: tokens.delete(
            call, tx, api.platform, identity, owner(tx, identity), token_id, with_successors=with_successors
        )
    )
    return Deleted(token_id, gone if with_successors else msgspec.UNSET)


def _log_page(api: AppContext, query: Query, owner: Callable[[Reader], Owner]) -> Page:
    paging = query.paging(size_max=HISTORY_PAGE_SIZE_MAX)
    found = api.barrier.read(
        lambda reader: token_log.listed(reader, owner(reader), limit=paging.per_page, offset=paging.offset)
    )
    return paging.of(found)


def _verified(identity: Identity) -> Answer:
    if identity.actor.token_id is None:
        raise InvalidApiToken
    status = TokenStatus(
        identity.actor.token_id,
        identity.status,
        _time(identity.not_before_us),
        _time(identity.expires_us),
    )
    return Answer(body=envelope.success(status, (_GOOD,)))


def _time(time_us: int | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if time_us is None else whole_seconds(time_us)
