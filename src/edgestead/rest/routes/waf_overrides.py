"""REST face of the firewall's overrides by page, until the day that ended them.

Owns  firewall/waf/overrides of zones.
Not   what such an override is as a rule (`usecases.ruleset.waf_overrides`); what is answered from the day on
      (`rest.routes.ended`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest.context import AppContext, Write
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.ruleset import waf_overrides
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.ruleset.waf_overrides import OverrideSent, OverrideView
from edgestead.usecases.zone.actions import ZoneId

_OVERRIDES = "/zones/{zone_id}/firewall/waf/overrides"
_OVERRIDE = f"{_OVERRIDES}/{{override_id}}"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_BESIDES = "Zone WAF Write"  # a view changes rules that rulesets made
_PAGE_SIZE_DEFAULT = 50  # as of packages


@route("GET", _OVERRIDES, permission=_READ, until_its_day=True)
def list_waf_overrides(zone_id: str, api: AppContext, query: Query) -> Page:
    """A zone's overrides, by their priorities."""
    scope = Scope("zone", zone_id)
    found = api.barrier.read(lambda reader: waf_overrides.listed(reader, api.platform, scope))
    return query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX).cut(found)


@route("POST", _OVERRIDES, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def create_waf_override(
    zone_id: str, api: AppContext, call: Call, body: OverrideSent, write: Write
) -> OverrideView:
    """Have rules or groups of the package disabled for some pages."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: waf_overrides.create(call, tx, api.platform, scope, body))


@route("GET", _OVERRIDE, permission=_READ, until_its_day=True)
def show_waf_override(zone_id: str, override_id: str, api: AppContext) -> OverrideView:
    """One override."""
    scope = Scope("zone", zone_id)
    return api.barrier.read(lambda reader: waf_overrides.show(reader, api.platform, scope, override_id))


@route("PUT", _OVERRIDE, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def replace_waf_override(
    zone_id: str, override_id: str, api: AppContext, call: Call, body: OverrideSent, write: Write
) -> OverrideView:
    """Replace an override."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: waf_overrides.replace(call, tx, api.platform, scope, override_id, body))


@route("DELETE", _OVERRIDE, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def delete_waf_override(
    zone_id: str, override_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete an override."""
    scope = Scope("zone", zone_id)
    await write(lambda tx: waf_overrides.delete(call, tx, api.platform, scope, override_id))
    return ZoneId(override_id)
