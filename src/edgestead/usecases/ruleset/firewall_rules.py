"""Firewall rules and filters, as they were before rulesets: rules of the custom phase, seen as a pair.

Owns  what a firewall rule and a filter are as custom rules, and reading them from these again; their order.
Not   the entry point that they stand in (`usecases.ruleset.views`); until when (`changes`); HTTP.

A firewall rule is a custom rule, and every custom rule that it can express is one: both faces have its id. A
filter is the expression of one. A filter that was made alone is a custom rule that is switched off: nothing
else keeps an id and an expression with the ruleset's versions. Rules that name it have its expression in
theirs and its id in their `ref`, and change with it.

`ref` holds what a custom rule has no member for: of a filter `FILTER`, a word of its own, whether it is
paused, and the client's ref; of a rule `RULE`, a word of its own, priority, filter, whether it is paused
itself, and the client's ref. A rule that needs none of it has the client's ref, or none.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeVar

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.firewall import OlderRuleNotFound, OlderRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.limits import (
    DESCRIPTION_CHARACTERS_MAX,
    OLDER_REF_CHARACTERS_MAX,
    OLDER_RULES_PER_BODY_MAX,
)
from edgestead.usecases.ruleset import access_rules, agent_rules, lockdowns, views
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import MANAGED_PHASE, RATE_LIMIT_PHASE, SKIP
from edgestead.usecases.ruleset.scope import Scope

FILTERS, RULES = "filters", "firewallrules"  # the families, as their refusals name them
FILTER, RULE = "filter/", "firewall_rule/"
ALLOW, BYPASS = "allow", "bypass"
# Without priorities the product asked its rules in this order.
ACTIONS = ("log", BYPASS, ALLOW, "managed_challenge", "js_challenge", "challenge", "block")
PRODUCTS = ("zoneLockdown", "uaBlock", "bic", "hot", "securityLevel", "rateLimit", "waf")
PRIORITY_MAX = 2**31 - 1  # as the product had it: 32 bits with a sign
_PHASES = {"rateLimit": RATE_LIMIT_PHASE, "waf": MANAGED_PHASE}  # what each product is today
_ALLOWED = {"ruleset": "current"}
_FRONT = (access_rules.PREFIX, lockdowns.PREFIX)
_ASIDE = (*_FRONT, agent_rules.PREFIX, FILTER)
_PAUSED = "paused"
_DIGITS = re.compile("[0-9]{0,10}")
_NO_MEMBERS = ("ratelimit", "exposed_credential_check")


class FilterSent(msgspec.Struct, frozen=True):
    """A filter, or inside of a rule the id of one; without an id its expression becomes the rule's own."""

    id: str | None = None
    expression: str | None = None
    description: str | None = None
    paused: bool | None = None
    ref: str | None = None


class FirewallRuleSent(msgspec.Struct, frozen=True):
    """`action` is one of ACTIONS, `products` some of PRODUCTS. Lower priorities are asked first."""

    filter: FilterSent
    action: str
    id: str | None = None
    description: str | None = None
    paused: bool | None = None
    priority: int | None = None
    products: list[str] | None = None
    ref: str | None = None


class FirewallRuleChanged(msgspec.Struct, frozen=True):
    """What is not sent stays."""

    id: str | None = None
    filter: FilterSent | None = None
    action: str | None = None
    description: str | None = None
    paused: bool | None = None
    priority: int | msgspec.UnsetType | None = msgspec.UNSET
    products: list[str] | None = None
    ref: str | None = None


class FilterView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    expression: str
    paused: bool
    description: str = ""
    ref: str = ""


class FirewallRuleView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Both times are those of the last change."""

    id: str
    paused: bool
    description: str
    action: str
    filter: FilterView
    created_on: str
    modified_on: str
    priority: int | None = None
    products: tuple[str, ...] = ()
    ref: str = ""


class Wanted(msgspec.Struct, frozen=True):
    """What a list asks for; "" and None ask for everything. Texts are parts of what is found, in any case."""

    id: str = ""
    description: str = ""
    text: str = ""  # of a filter's expression, or of a rule's action
    ref: str = ""
    paused: bool | None = None


class Here(NamedTuple):
    """The rules that a request changes, as one version however many it names."""

    edit: views.Edit
    platform: Platform


_Done = TypeVar("_Done")


def changed(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, change: Callable[[Here], _Done]
) -> _Done:
    """What a change of the rules answers, once they are stored. Raises ZoneNotFound, and what it raises."""
    here = Here(views.Edit(call, tx, platform, scope), platform)
    done = change(here)
    here.edit.commit()
    return done


def rules_listed(reader: Reader, scope: Scope, wanted: Wanted) -> list[FirewallRuleView]:
    """In the order in which the edge asks them. Raises ZoneNotFound."""
    return [
        one
        for one in _rules(views.stored(reader, scope))
        if wanted.id in ("", one.id)
        and wanted.description.casefold() in one.description.casefold()
        and wanted.text in ("", one.action)
        and wanted.paused in (None, one.paused)
    ]


def filters_listed(reader: Reader, scope: Scope, wanted: Wanted) -> list[FilterView]:
    """Those that stand alone first, then those that are a rule's own. Raises ZoneNotFound."""
    return [
        one
        for one in _filters(views.stored(reader, scope)).values()
        if wanted.id in ("", one.id)
        and wanted.description.casefold() in one.description.casefold()
        and wanted.text.casefold() in one.expression.casefold()
        and wanted.ref in ("", one.ref)
        and wanted.paused in (None, one.paused)
    ]


def rule_shown(reader: Reader, scope: Scope, rule_id: str) -> FirewallRuleView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    return _rule(views.stored(reader, scope), rule_id)


def filter_shown(reader: Reader, scope: Scope, filter_id: str) -> FilterView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    return _filter(views.stored(reader, scope), filter_id)


def create_rules(here: Here, sent: Sequence[FirewallRuleSent]) -> list[FirewallRuleView]:
    """Raises ZoneNotFound, OlderRuleRefused, OlderRuleNotFound, and what rulesets refuse."""
    _check_count(RULES, len(sent))
    return [_create_rule(here, one) for one in sent]


def create_filters(here: Here, sent: Sequence[FilterSent]) -> list[FilterView]:
    """Raises ZoneNotFound, OlderRuleRefused, and what rulesets refuse."""
    _check_count(FILTERS, len(sent))
    return [_create_filter(here, one) for one in sent]


def replace_rules(here: Here, sent: Sequence[FirewallRuleSent]) -> list[FirewallRuleView]:
    """Each by its id."""
    _check_count(RULES, len(sent))
    return [replace_rule(here, one.id or "", one) for one in sent]


def replace_filters(here: Here, sent: Sequence[FilterSent]) -> list[FilterView]:
    """Each by its id."""
    _check_count(FILTERS, len(sent))
    return [replace_filter(here, one.id or "", one) for one in sent]


def change_rules(here: Here, sent: Sequence[FirewallRuleChanged]) -> list[FirewallRuleView]:
    """Each by its id."""
    _check_count(RULES, len(sent))
    return [change_rule(here, one.id or "", one) for one in sent]


def change_rule(here: Here, rule_id: str, sent: FirewallRuleChanged) -> FirewallRuleView:
    """Raises what `replace_rule` raises."""
    old = _rule(here.edit.rules, rule_id)
    whole = FirewallRuleSent(
        filter=sent.filter or FilterSent(id=old.filter.id),
        action=sent.action or old.action,
        description=old.description if sent.description is None else sent.description,
        paused=old.paused if sent.paused is None else sent.paused,
        priority=old.priority if isinstance(sent.priority, msgspec.UnsetType) else sent.priority,
        products=list(old.products) if sent.products is None else sent.products,
        ref=old.ref if sent.ref is None else sent.ref,
    )
    return replace_rule(here, rule_id, whole)


def replace_rule(here: Here, rule_id: str, sent: FirewallRuleSent) -> FirewallRuleView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused, and what rulesets refuse."""
    old = _rule(here.edit.rules, rule_id)
    _check_rule(sent)
    filter_, filter_id = _filter_of(here, sent.filter, own_id=rule_id)
    others = [one for one in here.edit.rules if one["id"] != rule_id]
    index = (
        None if _key(sent.priority, sent.action) == _key(old.priority, old.action) else _index(others, sent)
    )
    body = _as_rule(here, sent, filter_, filter_id) | (
        {} if filter_id or _has_ref(sent) else {"ref": rule_id}
    )
    stored = next(one for one in here.edit.rules if one["id"] == rule_id)
    if body["action"] == stored["action"] and "logging" in stored:
        body["logging"] = stored["logging"]  # today's face has it, and this one has no member for it
    here.edit.change(rule_id, body, index)
    return _rule(here.edit.rules, rule_id)


def replace_filter(here: Here, filter_id: str, sent: FilterSent) -> FilterView:
    """Rules that name it change with it. Raises what `create_filters` raises, OlderRuleNotFound."""
    old = _filter(here.edit.rules, filter_id)
    _check_filter(sent)
    naming = [one for one in _rules(here.edit.rules) if one.filter.id == filter_id]
    if not _is_alone(here, filter_id):
        if sent.description or sent.ref or sent.paused:
            _refuse(FILTERS, f"it is the expression of the rule {filter_id}, which has the other members")
        whole = FirewallRuleChanged(filter=FilterSent(expression=sent.expression))
        return change_rule(here, filter_id, whole).filter
    stored = next(one for one in here.edit.rules if one["id"] == filter_id)
    body = _as_filter(stored["ref"].split("/")[1], sent, old)
    here.edit.change(filter_id, body, None)
    for rule in naming:
        change_rule(here, rule.id, FirewallRuleChanged(filter=FilterSent(id=filter_id), paused=rule.paused))
    return _filter(here.edit.rules, filter_id)


def delete_rule(here: Here, rule_id: str, *, with_filter: bool = False) -> None:
    """A filter of its own goes with it, one that stands alone if asked, unless another rule names it.

    Raises ZoneNotFound, OlderRuleNotFound.
    """
    old = _rule(here.edit.rules, rule_id)
    here.edit.remove(rule_id)
    if with_filter and _is_alone(here, old.filter.id) and not _naming(here, old.filter.id):
        here.edit.remove(old.filter.id)


def delete_filter(here: Here, filter_id: str) -> None:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused: a rule needs it."""
    _filter(here.edit.rules, filter_id)
    naming = _naming(here, filter_id)
    if naming:
        _refuse(FILTERS, f"the rule {naming[0]} needs it: delete that first")
    here.edit.remove(filter_id)


def check_ids(family: str, ids: Sequence[str]) -> None:
    """Raises OlderRuleRefused: none, or too many."""
    _check_count(family, len(ids))


def _create_rule(here: Here, sent: FirewallRuleSent) -> FirewallRuleView:
    _check_rule(sent)
    filter_, filter_id = _filter_of(here, sent.filter, own_id="")
    body = _as_rule(here, sent, filter_, filter_id)
    index = _index(here.edit.rules, sent)
    made = here.edit.add(body, index)
    return _rule(here.edit.rules, made["id"])


def _create_filter(here: Here, sent: FilterSent) -> FilterView:
    _check_filter(sent)
    body = _as_filter(here.platform.new_id()[-12:], sent, None)
    made = here.edit.add(body, None)
    return _filter(here.edit.rules, made["id"])


def _filter_of(here: Here, sent: FilterSent, own_id: str) -> tuple[FilterView, str]:
    """The filter of a rule, and its id where it stands alone. Raises OlderRuleNotFound, OlderRuleRefused."""
    if sent.id is None or (sent.id == own_id and sent.expression):
        if sent.expression is None:
            _refuse(RULES, "a filter has an expression, or is the id of one")
        if not (sent.description or sent.ref or sent.paused):
            return FilterView(id=own_id, expression=sent.expression, paused=False), ""
        made = _create_filter(here, sent)
        return made, made.id
    found = _filter(here.edit.rules, sent.id)
    if _is_alone(here, found.id):
        return found, found.id
    if found.id != own_id:
        _refuse(RULES, f"the filter {found.id} is the expression of another rule: make one that stands alone")
    return found, ""


def _as_rule(here: Here, sent: FirewallRuleSent, filter_: FilterView, filter_id: str) -> Rule:
    """The custom rule, as a client of rulesets would send it."""
    body: Rule = {
        "action": sent.action,
        "expression": filter_.expression,
        "description": sent.description or "",
        "enabled": not (sent.paused or filter_.paused),
    }
    products = sent.products or []
    if sent.action == ALLOW:
        body |= {"action": SKIP, "action_parameters": _ALLOWED}
    elif sent.action == BYPASS:
        body |= {"action": SKIP, "action_parameters": _bypassed(products)}
    if filter_id or sent.priority is not None:
        words = (
            here.platform.new_id()[-12:],
            "" if sent.priority is None else str(sent.priority),
            filter_id,
            _PAUSED if sent.paused else "",
            sent.ref or "",
        )
        body["ref"] = RULE + "/".join(words)
    elif sent.ref:
        body["ref"] = sent.ref
    return body


def _has_ref(sent: FirewallRuleSent) -> bool:
    return bool(sent.ref) or sent.priority is not None


def _as_filter(word: str, sent: FilterSent, old: FilterView | None) -> Rule:
    """It is switched off, so that it acts on nothing."""
    was_paused = old is not None and old.paused
    paused = _PAUSED if (was_paused if sent.paused is None else sent.paused) else ""
    return {
        "action": "log",
        "expression": sent.expression,
        "description": sent.description or "",
        "enabled": False,
        "ref": f"{FILTER}{word}/{paused}/{sent.ref or ''}",
    }


def _rules(stored: Sequence[Rule]) -> list[FirewallRuleView]:
    alone = _alone(stored)
    return [found for one in stored if (found := _from_rule(one, alone)) is not None]


def _rule(stored: Sequence[Rule], rule_id: str) -> FirewallRuleView:
    for one in _rules(stored):
        if one.id == rule_id:
            return one
    raise OlderRuleNotFound(family=RULES)


def _filter(stored: Sequence[Rule], filter_id: str) -> FilterView:
    found = _filters(stored).get(filter_id)
    if found is None:
        raise OlderRuleNotFound(family=FILTERS)
    return found


def _filters(stored: Sequence[Rule]) -> dict[str, FilterView]:
    return _alone(stored) | {one.filter.id: one.filter for one in _rules(stored)}


def _alone(stored: Sequence[Rule]) -> dict[str, FilterView]:
    """The filters that are rules of their own."""
    found = {}
    for one in stored:
        if one["ref"].startswith(FILTER) and one["ref"].count("/") >= 3 and not one["enabled"]:
            _, _, paused, ref = one["ref"].split("/", 3)
            found[one["id"]] = FilterView(
                id=one["id"],
                expression=one["expression"],
                paused=paused == _PAUSED,
                description=one["description"],
                ref=ref,
            )
    return found


def _is_alone(here: Here, filter_id: str) -> bool:
    return filter_id in _alone(here.edit.rules)


def _naming(here: Here, filter_id: str) -> list[str]:
    stored = here.edit.rules
    return [one.id for one in _rules(stored) if one.filter.id == filter_id]


def _from_rule(stored: Rule, alone: Mapping[str, FilterView]) -> FirewallRuleView | None:
    """The firewall rule that a custom rule is, None where no firewall rule could say the same."""
    action, products = _action_of(stored)
    if not action or stored["ref"].startswith(_ASIDE) or any(name in stored for name in _NO_MEMBERS):
        return None
    own = FilterView(id=stored["id"], expression=stored["expression"], paused=False)
    priority, filter_, is_paused = None, own, not stored["enabled"]
    ref = "" if stored["ref"] == stored["id"] else stored["ref"]
    words = ref.removeprefix(RULE).split("/", 4)
    if ref.startswith(RULE) and len(words) == 5 and _DIGITS.fullmatch(words[1]):
        priority, ref = int(words[1]) if words[1] else None, words[4]
        named = alone.get(words[2], own)
        filter_ = named if named.expression == own.expression else own
        is_paused = words[3] == _PAUSED if filter_.paused else is_paused
    return FirewallRuleView(
        id=stored["id"],
        paused=is_paused,
        description=stored["description"],
        action=action,
        filter=filter_,
        created_on=stored["last_updated"],
        modified_on=stored["last_updated"],
        priority=priority,
        products=products,
        ref=ref,
    )


def _action_of(stored: Rule) -> tuple[str, tuple[str, ...]]:
    """The older name of what a custom rule does, and the products that it leaves out; "" without one."""
    parameters = stored.get("action_parameters")
    if stored["action"] != SKIP:
        is_known = stored["action"] in ACTIONS and parameters is None
        return (stored["action"], ()) if is_known else ("", ())
    if parameters == _ALLOWED:
        return ALLOW, ()
    products = (parameters or {}).get("products", [])
    return (BYPASS, tuple(products)) if products and parameters == _bypassed(products) else ("", ())


def _bypassed(products: Sequence[str]) -> Rule:
    phases = [_PHASES[one] for one in products if one in _PHASES]
    return {"products": list(products), **({"phases": phases} if phases else {})}


def _key(priority: int | None, action: str) -> tuple[bool, int, int]:
    """Where a rule stands among the others."""
    return priority is None, priority or 0, ACTIONS.index(action)


def _index(stored: Sequence[Rule], sent: FirewallRuleSent) -> int:
    """Its place, counted from 1: behind the last rule that is asked before it, access rules and lockdowns."""
    mine, index, alone = _key(sent.priority, sent.action), 1, _alone(stored)
    for at, one in enumerate(stored, 1):
        found = _from_rule(one, alone)
        before = found is not None and _key(found.priority, found.action) <= mine
        if before or one["ref"].startswith(_FRONT):
            index = at + 1
    return index


def _check_count(family: str, count: int) -> None:
    if not 0 < count <= OLDER_RULES_PER_BODY_MAX:
        _refuse(family, f"a request is about 1 to {OLDER_RULES_PER_BODY_MAX} of them")


def _check_rule(sent: FirewallRuleSent) -> None:
    products = sent.products or []
    for holds, reason in (
        (sent.action in ACTIONS, "action is one of " + ", ".join(ACTIONS)),
        (bool(products) == (sent.action == BYPASS), "products belong to the action bypass, which needs some"),
        (set(products) <= set(PRODUCTS), "products are some of " + ", ".join(PRODUCTS)),
        (len(products) == len(set(products)), "a product is named twice"),
        (
            sent.priority is None or 1 <= sent.priority <= PRIORITY_MAX,
            f"priority is 1 to {PRIORITY_MAX}, or null",
        ),
        *_words(sent.description, sent.ref),
    ):
        if not holds:
            _refuse(RULES, reason)


def _check_filter(sent: FilterSent) -> None:
    for holds, reason in (
        (sent.expression is not None, "a filter has an expression"),
        *_words(sent.description, sent.ref),
    ):
        if not holds:
            _refuse(FILTERS, reason)


def _words(description: str | None, ref: str | None) -> tuple[tuple[bool, str], ...]:
    return (
        (
            len(description or "") <= DESCRIPTION_CHARACTERS_MAX,
            f"the description has at most {DESCRIPTION_CHARACTERS_MAX} characters",
        ),
        (
            len(ref or "") <= OLDER_REF_CHARACTERS_MAX and (ref or "").isprintable(),
            f"ref is one line of at most {OLDER_REF_CHARACTERS_MAX} characters",
        ),
        (not (ref or "").startswith((*_ASIDE, RULE)), "ref begins as those of other interfaces do"),
    )


def _refuse(family: str, reason: str) -> NoReturn:
    raise OlderRuleRefused(family=family, reason=reason)
