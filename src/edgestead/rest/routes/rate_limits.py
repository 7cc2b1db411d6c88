"""REST face of rate limits, until the day that ended them.

Owns  rate_limits of zones.
Not   what such a limit is as a rule (`usecases.ruleset.rate_limits`); what is answered from the day on
      (`rest.routes.ended`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest.context import AppContext, Write
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.ruleset import rate_limits
from edgestead.usecases.ruleset.rate_limits import RateLimitSent, RateLimitView
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.zone.actions import ZoneId

_LIMITS = "/zones/{zone_id}/rate_limits"
_LIMIT = f"{_LIMITS}/{{rate_limit_id}}"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_BESIDES = "Zone WAF Write"  # a view changes rules that rulesets made
_PAGE_SIZE_DEFAULT = 20  # as the hosted service had it


@route("GET", _LIMITS, permission=_READ, until_its_day=True)
def list_rate_limits(zone_id: str, api: AppContext, query: Query) -> Page:
    """Rate limits, in the order in which the edge asks them."""
    paging, scope = query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX), Scope("zone", zone_id)
    return paging.cut(api.barrier.read(lambda reader: rate_limits.listed(reader, scope)))


@route("POST", _LIMITS, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def create_rate_limit(
    zone_id: str, api: AppContext, call: Call, body: RateLimitSent, write: Write
) -> RateLimitView:
    """Make one."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: rate_limits.create(call, tx, api.platform, scope, body))


@route("GET", _LIMIT, permission=_READ, until_its_day=True)
def show_rate_limit(zone_id: str, rate_limit_id: str, api: AppContext) -> RateLimitView:
    """One rate limit."""
    return api.barrier.read(lambda reader: rate_limits.show(reader, Scope("zone", zone_id), rate_limit_id))


@route("PUT", _LIMIT, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def replace_rate_limit(
    zone_id: str, rate_limit_id: str, api: AppContext, call: Call, body: RateLimitSent, write: Write
) -> RateLimitView:
    """Replace one; it keeps its place."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: rate_limits.replace(call, tx, api.platform, scope, rate_limit_id, body))


@route("DELETE", _LIMIT, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def delete_rate_limit(
    zone_id: str, rate_limit_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete one."""
    scope = Scope("zone", zone_id)
    await write(lambda tx: rate_limits.delete(call, tx, api.platform, scope, rate_limit_id))
    return ZoneId(rate_limit_id)
