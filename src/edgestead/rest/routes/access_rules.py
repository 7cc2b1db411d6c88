"""REST face of IP access rules.

Owns  firewall/access_rules/rules of zones; the parameters of their list.
Not   what such a rule is as a custom rule (`usecases.ruleset.access_rules`).
"""

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import REMARK, Message, Page
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import Answers, choice, pages, text
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.usecases.ruleset import access_rules
from edgestead.usecases.ruleset.access_rules import (
    MODES,
    ORDERS,
    TARGETS,
    UNKNOWN_HERE,
    AccessRuleChanged,
    AccessRuleSent,
    AccessRuleView,
    Wanted,
)
from edgestead.usecases.ruleset.scope import Scope
from edgestead.usecases.zone.actions import ZoneId

_RULES = "/zones/{zone_id}/firewall/access_rules/rules"
_RULE = f"{_RULES}/{{access_rule_id}}"
_READ, _WRITE = "Firewall Services Read", "Firewall Services Write"
_PAGE_SIZE_DEFAULT = 20  # as the hosted service has it
_NOWHERE = (
    "This server knows no countries and no autonomous systems (docs/reference/edge-fields.md): no request"
    " matches the rule."
)
_QUERY = (
    choice("mode", MODES, "", "Only rules of this mode."),
    choice("configuration.target", TARGETS, "", "Only rules of this target."),
    text("configuration_target", "The same, as fail2ban spells it."),
    text("configuration.value", "Only rules of this value."),
    text("configuration_value", "The same."),
    text("notes", "Only rules whose notes have this in them, in any case."),
    choice("match", ("all", "any"), "all", "Whether all of these have to hold, or one."),
    choice("order", ORDERS, "", "Without it, the order in which the edge asks them."),
    declared.DIRECTION,
    *pages(_PAGE_SIZE_DEFAULT),
)


@route("GET", _RULES, permission=_READ, query=_QUERY, takes={}, answers=declared.page_of(AccessRuleView))
def list_access_rules(zone_id: str, api: AppContext, query: Query, body: bytes) -> Page:
    """A zone's IP access rules, in the order in which the edge asks them.

    Parameters count in the body as well: fail2ban sends them there, and deletes the first rule of the answer.
    """
    if body:
        query = Query(b"&".join(filter(None, (query.raw, body))))
    paging, wanted = query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX), _wanted(query)
    scope = Scope("zone", zone_id)
    return paging.cut(api.barrier.read(lambda reader: access_rules.listed(reader, scope, wanted)))


@route("POST", _RULES, permission=_WRITE, answers=Answers(AccessRuleView))
async def create_access_rule(
    zone_id: str, api: AppContext, call: Call, body: AccessRuleSent, write: Write
) -> Answer:
    """Let in, challenge or block an address, a network, a country or an autonomous system."""
    rule = access_rules.read(body)
    scope = Scope("zone", zone_id)
    return _answer(await write(lambda tx: access_rules.create(call, tx, api.platform, scope, rule)))


@route("GET", _RULE, permission=_READ, answers=Answers(AccessRuleView))
def show_access_rule(zone_id: str, access_rule_id: str, api: AppContext) -> Answer:
    """One IP access rule."""
    scope = Scope("zone", zone_id)
    return _answer(api.barrier.read(lambda reader: access_rules.show(reader, scope, access_rule_id)))


@route("PATCH", _RULE, permission=_WRITE, answers=Answers(AccessRuleView))
async def change_access_rule(
    zone_id: str, access_rule_id: str, api: AppContext, call: Call, body: AccessRuleChanged, write: Write
) -> Answer:
    """Change the mode or the notes of an IP access rule."""
    scope = Scope("zone", zone_id)
    return _answer(
        await write(lambda tx: access_rules.update(call, tx, api.platform, scope, access_rule_id, body))
    )


@route("DELETE", _RULE, permission=_WRITE)
async def delete_access_rule(
    zone_id: str, access_rule_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete an IP access rule."""
    scope = Scope("zone", zone_id)
    await write(lambda tx: access_rules.delete(call, tx, api.platform, scope, access_rule_id))
    return ZoneId(access_rule_id)


def _wanted(query: Query) -> Wanted:
    """Raises InvalidQuery."""
    return Wanted(
        mode=query.choice("mode", MODES, ""),
        target=query.text("configuration.target", "configuration_target") or "",
        value=query.text("configuration.value", "configuration_value") or "",
        notes=query.text("notes") or "",
        any_of=query.choice("match", ("all", "any"), "all") == "any",
        order=query.choice("order", ORDERS, ""),
        descending=query.descending(),
    )


def _answer(view: AccessRuleView) -> Answer:
    is_known = view.configuration.target not in UNKNOWN_HERE
    messages = [] if is_known else [Message(REMARK, _NOWHERE)]
    return Answer(envelope.success(view, messages))
