"""REST face of user agent rules.

Owns  firewall/ua_rules of zones; the parameters of their list.
Not   what such a rule is as a custom rule (`usecases.ruleset.agent_rules`).
"""

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import flag, pages, text
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import route
from edgestead.usecases.ruleset import agent_rules
from edgestead.usecases.ruleset.agent_rules import AgentRuleSent, AgentRuleView, Wanted
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.zone.actions import ZoneId

_RULES = "/zones/{zone_id}/firewall/ua_rules"
_RULE = f"{_RULES}/{{ua_rule_id}}"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_PAGE_SIZE_DEFAULT = 20  # as the hosted service has it
_QUERY = (
    text("description", "Only rules whose description has this in it, in any case."),
    text("user_agent", "Only rules whose agent has this in it, in any case."),
    flag("paused", "Only rules that are paused, or that are not."),
    *pages(_PAGE_SIZE_DEFAULT),
)


@route("GET", _RULES, permission=_READ, query=_QUERY, answers=declared.page_of(AgentRuleView))
def list_agent_rules(zone_id: str, api: AppContext, query: Query) -> Page:
    """A zone's user agent rules, in the order in which the edge asks them."""
    paging = query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    wanted = Wanted(query.text("description") or "", query.text("user_agent") or "", query.flag("paused"))
    scope = Scope("zone", zone_id)
    return paging.cut(api.barrier.read(lambda reader: agent_rules.listed(reader, scope, wanted)))


@route("POST", _RULES, permission=_WRITE)
async def create_agent_rule(
    zone_id: str, api: AppContext, call: Call, body: AgentRuleSent, write: Write
) -> AgentRuleView:
    """Block or challenge requests of one user agent."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: agent_rules.create(call, tx, api.platform, scope, body))


@route("GET", _RULE, permission=_READ)
def show_agent_rule(zone_id: str, ua_rule_id: str, api: AppContext) -> AgentRuleView:
    """One user agent rule."""
    return api.barrier.read(lambda reader: agent_rules.show(reader, Scope("zone", zone_id), ua_rule_id))


@route("PUT", _RULE, permission=_WRITE)
async def replace_agent_rule(
    zone_id: str, ua_rule_id: str, api: AppContext, call: Call, body: AgentRuleSent, write: Write
) -> AgentRuleView:
    """Replace a user agent rule; it keeps its place."""
    scope = Scope("zone", zone_id)
    return await write(lambda tx: agent_rules.replace(call, tx, api.platform, scope, ua_rule_id, body))


@route("DELETE", _RULE, permission=_WRITE)
async def delete_agent_rule(
    zone_id: str, ua_rule_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete a user agent rule."""
    scope = Scope("zone", zone_id)
    return await write(
        lambda tx: agent_rules.delete(call, tx, api.platform, scope, ua_rule_id),
        lambda _: ZoneId(ua_rule_id),
    )
