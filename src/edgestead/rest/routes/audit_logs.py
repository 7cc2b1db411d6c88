"""REST face of the audit log.

Owns  /accounts/{account_id}/audit_logs and /user/audit_logs.
Not   writing it (`rest.rights`); its words (`usecases.audit`).
"""

from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext
from edgestead.rest.declared import choice, flag, pages, text
from edgestead.rest.limits import AUDIT_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.tables.audit import Wanted
from edgestead.usecases import audit
from edgestead.usecases.access.authorise import PLATFORM, Identity
from edgestead.usecases.audit import EntryView
from edgestead.usecases.lookup import account_of

_QUERY = (
    *pages(AUDIT_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX),
    choice("direction", ("desc", "asc"), "desc", "Newest or oldest first."),
    text("id", "Only this entry."),
    text("since", "Only what happened then or later: a day, or a time (RFC 3339)."),
    text("before", "Only what happened before."),
    text("actor.email", "Only what the user with this e-mail address did."),
    text("actor.ip", "Only what came from this address or network (CIDR)."),
    text("action.type", "Only this action: create, update, delete, roll, undo …"),
    text("zone.name", "Only what was done in the zone of this name."),
    flag("hide_user_logs", "Leave out what users did to their own tokens and memberships."),
)


@route(
    "GET",
    "/accounts/{account_id}/audit_logs",
    permission="Account Settings Read",
    family=PLATFORM,
    query=_QUERY,
    answers=declared.page_of(EntryView),
)
async def list_audit_logs(account_id: str, api: AppContext, query: Query) -> Page:
    """Who changed what in an account, when and from where, newest first."""
    api.barrier.read(lambda reader: account_of(reader, account_id))
    return await _page(api, query, Wanted(account_id=account_id))


@route(
    "GET",
    "/user/audit_logs",
    permission="User Details Read",
    family=PLATFORM,
    user_only=True,
    query=_QUERY,
    answers=declared.page_of(EntryView),
)
async def list_user_audit_logs(api: AppContext, identity: Identity, query: Query) -> Page:
    """What the calling user changed, in every account, newest first."""
    return await _page(api, query, Wanted(actor_id=identity.actor.id))


async def _page(api: AppContext, query: Query, whose: Wanted) -> Page:
    paging = query.paging(AUDIT_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    descending = query.choice("direction", ("desc", "asc"), "desc") == "desc"
    wanted = whose._replace(
        sequence=audit.sequence_of(query.text("id")),
        since_us=audit.time_of("since", query.text("since")),
        before_us=audit.time_of("before", query.text("before")),
        email=query.text("actor.email") or None,
        networks=audit.networks_of("actor.ip", query.text("actor.ip")),
        action=query.text("action.type") or None,
        zone_name=query.text("zone.name") or None,
        without_user=query.flag("hide_user_logs") or False,
    )
    found = await api.barrier.read_long(
        lambda reader: audit.listed(
            reader, wanted, descending=descending, limit=paging.per_page, offset=paging.offset
        )
    )
    return paging.of(found)
