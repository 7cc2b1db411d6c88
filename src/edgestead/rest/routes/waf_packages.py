"""REST face of the firewall's packages, groups and rules, until the day that ended them.

Owns  firewall/waf/packages of zones.
Not   what they are of the managed ruleset (`usecases.ruleset.waf_packages`); what is answered from the day on
      (`rest.routes.ended`).
"""

from collections.abc import Sequence
from typing import Any

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest.context import AppContext, Write
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.ruleset import waf_packages
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.ruleset.waf_packages import (
    GroupView,
    ModeChanged,
    PackageChanged,
    PackageView,
    RuleView,
)

_PACKAGES = "/zones/{zone_id}/firewall/waf/packages"
_PACKAGE = f"{_PACKAGES}/{{package_id}}"
_GROUPS = f"{_PACKAGE}/groups"
_RULES = f"{_PACKAGE}/rules"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_BESIDES = "Zone WAF Write"  # a view changes rules that rulesets made
_PAGE_SIZE_DEFAULT = 50  # as the hosted service had it


@route("GET", _PACKAGES, permission=_READ, until_its_day=True)
def list_packages(zone_id: str, api: AppContext, query: Query) -> Page:
    """The managed ruleset as a package."""
    scope = Scope("zone", zone_id)
    return _page(query, api.barrier.read(lambda reader: waf_packages.packages(reader, api.platform, scope)))


@route("GET", _PACKAGE, permission=_READ, until_its_day=True)
def show_package(zone_id: str, package_id: str, api: AppContext) -> PackageView:
    """One package."""
    scope = Scope("zone", zone_id)
    return api.barrier.read(lambda reader: waf_packages.package(reader, api.platform, scope, package_id))


@route("PATCH", _PACKAGE, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def change_package(
    zone_id: str, package_id: str, api: AppContext, call: Call, body: PackageChanged, write: Write
) -> PackageView:
    """Change from which score on it acts, and how."""
    scope = Scope("zone", zone_id)
    return await write(
        lambda tx: waf_packages.change_package(call, tx, api.platform, scope, package_id, body)
    )


@route("GET", _GROUPS, permission=_READ, until_its_day=True)
def list_groups(zone_id: str, package_id: str, api: AppContext, query: Query) -> Page:
    """Categories of rules. Filters `name` and `mode`."""
    scope, name, mode = Scope("zone", zone_id), query.text("name"), query.text("mode")
    found = api.barrier.read(lambda reader: waf_packages.groups(reader, api.platform, scope, package_id))
    return _page(query, [one for one in found if name in (None, one.name) and mode in (None, one.mode)])


@route("GET", f"{_GROUPS}/{{group_id}}", permission=_READ, until_its_day=True)
def show_group(zone_id: str, package_id: str, group_id: str, api: AppContext) -> GroupView:
    """One group."""
    scope = Scope("zone", zone_id)
    return api.barrier.read(
        lambda reader: waf_packages.group(reader, api.platform, scope, package_id, group_id)
    )


@route("PATCH", f"{_GROUPS}/{{group_id}}", permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def change_group(
    zone_id: str,
    package_id: str,
    group_id: str,
    api: AppContext,
    call: Call,
    body: ModeChanged,
    write: Write,
) -> GroupView:
    """Turn a category of rules on or off."""
    scope = Scope("zone", zone_id)
    return await write(
        lambda tx: waf_packages.change_group(call, tx, api.platform, scope, package_id, group_id, body)
    )


@route("GET", _RULES, permission=_READ, until_its_day=True)
def list_waf_rules(zone_id: str, package_id: str, api: AppContext, query: Query) -> Page:
    """Rules of the package. Filters `description`, `mode` and `group_id`."""
    scope, mode, group_id = Scope("zone", zone_id), query.text("mode"), query.text("group_id")
    words = (query.text("description") or "").casefold()
    found = api.barrier.read(lambda reader: waf_packages.rules(reader, api.platform, scope, package_id))
    return _page(
        query,
        [
            one
            for one in found
            if words in one.description.casefold()
            and mode in (None, one.mode)
            and group_id in (None, one.group.id)
        ],
    )


@route("GET", f"{_RULES}/{{rule_id}}", permission=_READ, until_its_day=True)
def show_waf_rule(zone_id: str, package_id: str, rule_id: str, api: AppContext) -> RuleView:
    """One rule."""
    scope = Scope("zone", zone_id)
    return api.barrier.read(
        lambda reader: waf_packages.rule(reader, api.platform, scope, package_id, rule_id)
    )


@route("PATCH", f"{_RULES}/{{rule_id}}", permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def change_waf_rule(
    zone_id: str, package_id: str, rule_id: str, api: AppContext, call: Call, body: ModeChanged, write: Write
) -> RuleView:
    """Turn a rule on or off."""
    scope = Scope("zone", zone_id)
    return await write(
        lambda tx: waf_packages.change_rule(call, tx, api.platform, scope, package_id, rule_id, body)
    )


def _page(query: Query, found: Sequence[Any]) -> Page:
    return query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX).cut(found)
