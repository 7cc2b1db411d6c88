"""REST face of zone lockdowns.

Owns  firewall/lockdowns of zones; the parameters of their list.
Not   what such a lockdown is as a custom rule (`usecases.ruleset.lockdowns`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import number, pages, text
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.ruleset import lockdowns
from edgestead.usecases.ruleset.lockdowns import LockdownSent, LockdownView, Wanted
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.zone.actions import ZoneId

_LOCKDOWNS = "/zones/{zone_id}/firewall/lockdowns"
_LOCKDOWN = f"{_LOCKDOWNS}/{{lockdown_id}}"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_PAGE_SIZE_DEFAULT = 20  # as the hosted service has it
_QUERY = (
    text("description", "Only lockdowns whose description has this in it, in any case."),
    text("uri_search", "Only lockdowns one of whose urls has this in it, in any case."),
    text("ip", "Only lockdowns that let this address by, as it is answered."),
    text("ip_range_search", "The same of a network."),
    number("priority", "Only lockdowns of this priority."),
    *pages(_PAGE_SIZE_DEFAULT),
)


@route("GET", _LOCKDOWNS, permission=_READ, query=_QUERY, answers=declared.page_of(LockdownView))
def list_lockdowns(zone_id: str, api: AppContext, query: Query) -> Page:
    """A zone's lockdowns, in the order in which the edge asks them."""
    paging = query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    wanted = Wanted(
        query.text("description") or "",
        query.text("uri_search") or "",
        query.text("ip", "ip_range_search") or "",
        query.whole("priority"),
    )
    scope = Scope("zone", zone_id)
    return paging.cut(api.barrier.read(lambda reader: lockdowns.listed(reader, scope, wanted)))


@route("POST", _LOCKDOWNS, permission=_WRITE)
async def create_lockdown(
    zone_id: str, api: AppContext, call: Call, body: LockdownSent, write: Write
) -> LockdownView:
    """Keep everybody out of some pages but some addresses."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: lockdowns.create(call, tx, api.platform, scope, body))


@route("GET", _LOCKDOWN, permission=_READ)
def show_lockdown(zone_id: str, lockdown_id: str, api: AppContext) -> LockdownView:
    """One lockdown."""
    return api.barrier.read(lambda reader: lockdowns.show(reader, Scope("zone", zone_id), lockdown_id))


@route("PUT", _LOCKDOWN, permission=_WRITE)
async def replace_lockdown(
    zone_id: str, lockdown_id: str, api: AppContext, call: Call, body: LockdownSent, write: Write
) -> LockdownView:
    """Replace a lockdown."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: lockdowns.replace(call, tx, api.platform, scope, lockdown_id, body))


@route("DELETE", _LOCKDOWN, permission=_WRITE)
async def delete_lockdown(
    zone_id: str, lockdown_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete a lockdown."""
    scope = Scope("zone", zone_id)
    return await write(
        lambda tx: lockdowns.delete(call, tx, api.platform, scope, lockdown_id),
        lambda _: ZoneId(lockdown_id),
    )
