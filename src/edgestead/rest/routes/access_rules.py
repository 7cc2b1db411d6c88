"""REST face of IP access rules.

Owns  firewall/access_rules/rules of zones, accounts and users; the parameters of their lists.
Not   what such a rule is as a custom rule (`usecases.ruleset.access_rules`).

Those of a user are those of its account, for programs that know no other path. Who has several names one.
"""

from collections.abc import Callable

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import REMARK, Message, Page
from edgestead.model.refusals.firewall import FirewallRuleNotFound, FirewallRuleRefused
from edgestead.rest import declared
from edgestead.rest.context import AppContext, Write, WriteAs
from edgestead.rest.declared import Answers, choice, pages, text
from edgestead.rest.limits import PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts
from edgestead.usecases.access.authorise import Identity, Target, permits
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
_OF_ACCOUNT = "/accounts/{account_id}/firewall/access_rules/rules"
_ONE_OF_ACCOUNT = f"{_OF_ACCOUNT}/{{access_rule_id}}"
_OF_USER = "/user/firewall/access_rules/rules"
_ONE_OF_USER = f"{_OF_USER}/{{access_rule_id}}"
_READ_ALL, _WRITE_ALL = "Account WAF Read", "Account WAF Write"
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
    return _listed(api, query, body, lambda reader: Scope("zone", zone_id))


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
    return await write(
        lambda tx: access_rules.delete(call, tx, api.platform, scope, access_rule_id),
        lambda _: ZoneId(access_rule_id),
    )


@route(
    "GET", _OF_ACCOUNT, permission=_READ_ALL, query=_QUERY, takes={}, answers=declared.page_of(AccessRuleView)
)
def list_account_access_rules(account_id: str, api: AppContext, query: Query, body: bytes) -> Page:
    """IP access rules of all zones of an account, which are asked before each zone's own."""
    return _listed(api, query, body, lambda reader: Scope("account", account_id))


@route("POST", _OF_ACCOUNT, permission=_WRITE_ALL, answers=Answers(AccessRuleView))
async def create_account_access_rule(
    account_id: str, api: AppContext, call: Call, body: AccessRuleSent, write: Write
) -> Answer:
    """The same for all zones of an account."""
    rule, scope = access_rules.read(body), Scope("account", account_id)
    return _answer(await write(lambda tx: access_rules.create(call, tx, api.platform, scope, rule)))


@route("GET", _ONE_OF_ACCOUNT, permission=_READ_ALL, answers=Answers(AccessRuleView))
def show_account_access_rule(account_id: str, access_rule_id: str, api: AppContext) -> Answer:
    """One IP access rule of an account."""
    scope = Scope("account", account_id)
    return _answer(api.barrier.read(lambda reader: access_rules.show(reader, scope, access_rule_id)))


@route("PATCH", _ONE_OF_ACCOUNT, permission=_WRITE_ALL, answers=Answers(AccessRuleView))
async def change_account_access_rule(
    account_id: str, access_rule_id: str, api: AppContext, call: Call, body: AccessRuleChanged, write: Write
) -> Answer:
    """Change the mode or the notes of an IP access rule of an account."""
    scope = Scope("account", account_id)
    return _answer(
        await write(lambda tx: access_rules.update(call, tx, api.platform, scope, access_rule_id, body))
    )


@route("DELETE", _ONE_OF_ACCOUNT, permission=_WRITE_ALL)
async def delete_account_access_rule(
    account_id: str, access_rule_id: str, api: AppContext, call: Call, write: Write
) -> ZoneId:
    """Delete an IP access rule of an account."""
    scope = Scope("account", account_id)
    await write(lambda tx: access_rules.delete(call, tx, api.platform, scope, access_rule_id))
    return ZoneId(access_rule_id)


@route(
    "GET", _OF_USER, permission=_READ_ALL, query=_QUERY, takes={}, answers=declared.page_of(AccessRuleView)
)
def list_user_access_rules(api: AppContext, identity: Identity, query: Query, body: bytes) -> Page:
    """IP access rules of the user's account."""
    return _listed(api, query, body, lambda reader: _of_user(reader, identity, _READ_ALL))


@route("POST", _OF_USER, permission=_WRITE_ALL, answers=Answers(AccessRuleView))
async def create_user_access_rule(
    api: AppContext, call: Call, body: AccessRuleSent, write_as: WriteAs
) -> Answer:
    """The same for all zones of the user's account."""
    rule = access_rules.read(body)

    def create(tx: Transaction, identity: Identity) -> AccessRuleView:
        return access_rules.create(call, tx, api.platform, _of_user(tx, identity, _WRITE_ALL), rule)

    return _answer(await write_as(create))


@route("GET", _ONE_OF_USER, permission=_READ_ALL, answers=Answers(AccessRuleView))
def show_user_access_rule(access_rule_id: str, api: AppContext, identity: Identity) -> Answer:
    """One IP access rule of the user's account."""

    def show(reader: Reader) -> AccessRuleView:
        return access_rules.show(reader, _of_user(reader, identity, _READ_ALL), access_rule_id)

    return _answer(api.barrier.read(show))


@route("PATCH", _ONE_OF_USER, permission=_WRITE_ALL, answers=Answers(AccessRuleView))
async def change_user_access_rule(
    access_rule_id: str, api: AppContext, call: Call, body: AccessRuleChanged, write_as: WriteAs
) -> Answer:
    """Change the mode or the notes of an IP access rule of the user's account."""

    def change(tx: Transaction, identity: Identity) -> AccessRuleView:
        scope = _of_user(tx, identity, _WRITE_ALL)
        return access_rules.update(call, tx, api.platform, scope, access_rule_id, body)

    return _answer(await write_as(change))


@route("DELETE", _ONE_OF_USER, permission=_WRITE_ALL)
async def delete_user_access_rule(
    access_rule_id: str, api: AppContext, call: Call, write_as: WriteAs
) -> ZoneId:
    """Delete an IP access rule of the user's account."""

    def delete(tx: Transaction, identity: Identity) -> None:
        scope = _of_user(tx, identity, _WRITE_ALL)
        access_rules.delete(call, tx, api.platform, scope, access_rule_id)

    await write_as(delete)
    return ZoneId(access_rule_id)


def _of_user(reader: Reader, identity: Identity, group: str) -> Scope:
    """The one account in which the caller may do this. Raises FirewallRuleRefused, FirewallRuleNotFound."""
    rows = accounts.memberships(reader, identity.actor.id)
    ids = [row.account_id for row in rows if row.status == "accepted"]
    if identity.actor.kind == "account":
        ids = [identity.actor.id]
    found = [one for one in ids if permits(identity, group, Target(account_id=one))]
    if not found:
        raise FirewallRuleNotFound
    if len(found) > 1:
        reason = "the user has several accounts: use /accounts/:id/firewall/access_rules/rules"
        raise FirewallRuleRefused(reason=reason, pointer="")
    return Scope("account", found[0])


def _listed(api: AppContext, query: Query, body: bytes, scope_of: Callable[[Reader], Scope]) -> Page:
    if body:
        query = Query(b"&".join(filter(None, (query.raw, body))))
    paging, wanted = query.paging(_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX), _wanted(query)
    return paging.cut(api.barrier.read(lambda reader: access_rules.listed(reader, scope_of(reader), wanted)))


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
