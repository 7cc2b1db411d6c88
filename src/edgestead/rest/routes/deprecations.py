"""REST face of who still uses what a date ended or replaced.

Owns  /accounts/{account_id}/deprecations/usage; noting a use.
Not   what is dated (`changes`).
"""

from edgestead.changes.members import found
from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext
from edgestead.rest.declared import pages, text
from edgestead.rest.exchange import Exchange
from edgestead.rest.query import Query
from edgestead.rest.routing import BASE_PATH, route
from edgestead.usecases.access.authorise import PLATFORM
from edgestead.usecases.account import dated_uses
from edgestead.usecases.account.dated_uses import Key, UsageView


@route(
    "GET",
    "/accounts/{account_id}/deprecations/usage",
    permission="Account Settings Read",
    family=PLATFORM,
    query=(*pages(), text("token_id", "Only what this token used.")),
    answers=declared.page_of(UsageView),
)
def list_dated_uses(account_id: str, api: AppContext, query: Query) -> Page:
    """Which credentials used what a date ended or replaced, and how often. Filter `token_id`.

    The latest come first. Counts are kept until the token is deleted, and written down once a minute.
    """
    paging, token_id = query.paging(), query.text("token_id")
    everyone = api.barrier.read(
        lambda reader: dated_uses.listed(reader, account_id, api.dated_uses, token_id or None)
    )
    return paging.cut(everyone)


def note_path(exchange: Exchange) -> None:
    """The route itself is what a date ended or replaced."""
    change = exchange.route.change
    if change is not None:
        _note(exchange, change.subject, "")


def note_members(exchange: Exchange, octets: bytes) -> None:
    """Some members of the body are; the body was read already."""
    for watch in found(exchange.route.watches, octets):
        _note(exchange, watch.subject, watch.member)


def _note(exchange: Exchange, subject: str, member: str) -> None:
    actor, route_ = exchange.identity.actor, exchange.route
    endpoint = f"{route_.method} {route_.path.removeprefix(BASE_PATH)}"
    exchange.api.dated_uses.note(Key(actor.token_id or actor.id, subject, endpoint, member), exchange.now_us)
