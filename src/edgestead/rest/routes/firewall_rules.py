"""REST face of firewall rules and filters, until the day that ended them.

Owns  firewall/rules and filters of zones; the parameters of their lists.
Not   what they are as custom rules (`usecases.ruleset.firewall_rules`); what is answered from the day on
      (`rest.routes.ended`).
"""

from collections.abc import Callable
from typing import Any, TypeVar

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest.context import AppContext, Write
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.ruleset import firewall_rules
from edgestead.usecases.ruleset.firewall_rules import (
    FilterSent,
    FilterView,
    FirewallRuleChanged,
    FirewallRuleSent,
    FirewallRuleView,
    Here,
    Wanted,
)
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.zone.actions import ZoneId

_RULES = "/zones/{zone_id}/firewall/rules"
_RULE = f"{_RULES}/{{rule_id}}"
_FILTERS = "/zones/{zone_id}/filters"
_FILTER = f"{_FILTERS}/{{filter_id}}"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_BESIDES = "Zone WAF Write"  # a view changes rules that rulesets made
_Done = TypeVar("_Done")
_PAGE_SIZE_DEFAULT = 25  # as the hosted service had it


@route("GET", _RULES, permission=_READ, until_its_day=True)
def list_firewall_rules(zone_id: str, api: AppContext, query: Query) -> Page:
    """Firewall rules, in the order in which the edge asks them."""
    return _page(
        query, lambda reader: firewall_rules.rules_listed(reader, _zone(zone_id), _wanted(query)), api
    )


@route("POST", _RULES, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def create_firewall_rules(
    zone_id: str, api: AppContext, call: Call, body: list[FirewallRuleSent], write: Write
) -> list[FirewallRuleView]:
    """Make some, all of them or none."""
    return await write(_edit(call, api, zone_id, lambda here: firewall_rules.create_rules(here, body)))


@route("PUT", _RULES, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def replace_firewall_rules(
    zone_id: str, api: AppContext, call: Call, body: list[FirewallRuleSent], write: Write
) -> list[FirewallRuleView]:
    """Replace some by their ids, all of them or none."""
    return await write(_edit(call, api, zone_id, lambda here: firewall_rules.replace_rules(here, body)))


@route("PATCH", _RULES, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def change_firewall_rules(
    zone_id: str, api: AppContext, call: Call, body: list[FirewallRuleChanged], write: Write
) -> list[FirewallRuleView]:
    """Change some by their ids, all of them or none."""
    return await write(_edit(call, api, zone_id, lambda here: firewall_rules.change_rules(here, body)))


@route("DELETE", _RULES, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def delete_firewall_rules(
    zone_id: str, api: AppContext, call: Call, query: Query, write: Write
) -> list[ZoneId]:
    """Delete those that parameters `id` name, all of them or none."""
    ids, with_filter = query.every("id"), bool(query.flag("delete_filter_if_unused"))
    firewall_rules.check_ids(firewall_rules.RULES, ids)

    def delete(here: Here) -> None:
        for rule_id in ids:
            firewall_rules.delete_rule(here, rule_id, with_filter=with_filter)

    await write(_edit(call, api, zone_id, delete))
    return [ZoneId(one) for one in ids]


@route("GET", _RULE, permission=_READ, until_its_day=True)
def show_firewall_rule(zone_id: str, rule_id: str, api: AppContext) -> FirewallRuleView:
    """One firewall rule."""
    return api.barrier.read(lambda reader: firewall_rules.rule_shown(reader, _zone(zone_id), rule_id))


@route("PUT", _RULE, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def replace_firewall_rule(
    zone_id: str, rule_id: str, api: AppContext, call: Call, body: FirewallRuleSent, write: Write
) -> FirewallRuleView:
    """Replace one."""
    return await write(
        _edit(call, api, zone_id, lambda here: firewall_rules.replace_rule(here, rule_id, body))
    )


@route("PATCH", _RULE, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def change_firewall_rule(
    zone_id: str, rule_id: str, api: AppContext, call: Call, body: FirewallRuleChanged, write: Write
) -> FirewallRuleView:
    """Change some members of one."""
    return await write(
        _edit(call, api, zone_id, lambda here: firewall_rules.change_rule(here, rule_id, body))
    )


@route("DELETE", _RULE, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def delete_firewall_rule(
    zone_id: str, rule_id: str, api: AppContext, call: Call, query: Query, write: Write
) -> ZoneId:
    """Delete one; `delete_filter_if_unused` takes its filter along."""
    with_filter = bool(query.flag("delete_filter_if_unused"))
    await write(
        _edit(
            call,
            api,
            zone_id,
            lambda here: firewall_rules.delete_rule(here, rule_id, with_filter=with_filter),
        )
    )
    return ZoneId(rule_id)


@route("GET", _FILTERS, permission=_READ, until_its_day=True)
def list_filters(zone_id: str, api: AppContext, query: Query) -> Page:
    """Filters."""
    return _page(
        query, lambda reader: firewall_rules.filters_listed(reader, _zone(zone_id), _wanted(query)), api
    )


@route("POST", _FILTERS, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def create_filters(
    zone_id: str, api: AppContext, call: Call, body: list[FilterSent], write: Write
) -> list[FilterView]:
    """Make some, all of them or none."""
    return await write(_edit(call, api, zone_id, lambda here: firewall_rules.create_filters(here, body)))


@route("PUT", _FILTERS, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def replace_filters(
    zone_id: str, api: AppContext, call: Call, body: list[FilterSent], write: Write
) -> list[FilterView]:
    """Replace some by their ids, all of them or none."""
    return await write(_edit(call, api, zone_id, lambda here: firewall_rules.replace_filters(here, body)))


@route("DELETE", _FILTERS, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def delete_filters(
    zone_id: str, api: AppContext, call: Call, query: Query, write: Write
) -> list[ZoneId]:
    """Delete those that parameters `id` name, all of them or none."""
    ids = query.every("id")
    firewall_rules.check_ids(firewall_rules.FILTERS, ids)

    def delete(here: Here) -> None:
        for filter_id in ids:
            firewall_rules.delete_filter(here, filter_id)

    await write(_edit(call, api, zone_id, delete))
    return [ZoneId(one) for one in ids]


@route("GET", _FILTER, permission=_READ, until_its_day=True)
def show_filter(zone_id: str, filter_id: str, api: AppContext) -> FilterView:
    """One filter."""
    return api.barrier.read(lambda reader: firewall_rules.filter_shown(reader, _zone(zone_id), filter_id))


@route("PUT", _FILTER, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def replace_filter(
    zone_id: str, filter_id: str, api: AppContext, call: Call, body: FilterSent, write: Write
) -> FilterView:
    """Replace one, and the expression of the rules that name it."""
    return await write(
        _edit(call, api, zone_id, lambda here: firewall_rules.replace_filter(here, filter_id, body))
    )


@route("DELETE", _FILTER, permission=_WRITE, besides=_BESIDES, until_its_day=True)
async def delete_filter(zone_id: str, filter_id: str, api: AppContext, call: Call, write: Write) -> ZoneId:
    """Delete one that no rule needs."""
    await write(_edit(call, api, zone_id, lambda here: firewall_rules.delete_filter(here, filter_id)))
    return ZoneId(filter_id)


def _zone(zone_id: str) -> Scope:
    return Scope("zone", zone_id)


def _edit(
    call: Call, api: AppContext, zone_id: str, change: Callable[[Here], _Done]
) -> Callable[[Transaction], _Done]:
    """The transaction in which a zone's rules are changed."""
    return lambda tx: firewall_rules.changed(call, tx, api.platform, _zone(zone_id), change)


def _page(query: Query, read: Callable[[Reader], list[Any]], api: AppContext) -> Page:
    return query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX).cut(api.barrier.read(read))


def _wanted(query: Query) -> Wanted:
    return Wanted(
        id=query.text("id") or "",
        description=query.text("description") or "",
        text=query.text("expression", "action") or "",
        ref=query.text("ref") or "",
        paused=query.flag("paused"),
    )
