"""IP access rules: who may come in, by address, network, country or autonomous system.

Owns  what each is as a custom rule, and reading it from one again; their order; filters of their list.
Not   the entry point that they stand in (`usecases.ruleset.views`); HTTP.

The rule that stands for an access rule has a `ref` of `PREFIX`, target and value. It is an access rule only
while everything else of it is what would be written here: whoever rewrites or disables it by the rulesets'
routes has a custom rule, and no list says of it what no longer holds.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from edgestead.model.addresses import plain, plain_network
from edgestead.model.call import Call
from edgestead.model.refusals.firewall import FirewallRuleExists, FirewallRuleNotFound, FirewallRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.limits import DESCRIPTION_CHARACTERS_MAX
from edgestead.usecases.ruleset import views
from edgestead.usecases.ruleset.managed import Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import CHALLENGES, MANAGED_PHASE, RATE_LIMIT_PHASE, SKIP
from edgestead.usecases.ruleset.scope import Scope

PREFIX = "access_rule/"
WHITELIST = "whitelist"
MODES = ("block", *CHALLENGES, WHITELIST)
TARGETS = ("ip", "ip6", "ip_range", "asn", "country")  # the narrowest first
ORDERS = ("configuration.target", "configuration.value", "mode")
UNKNOWN_HERE = ("asn", "country")
_ASN_MAX = 2**32 - 1  # RFC 6793
_TOR = "T1"
_EXPRESSIONS = {
    "ip": "ip.src eq {}",
    "ip6": "ip.src eq {}",
    "ip_range": "ip.src in {{{}}}",
    "asn": "ip.src.asnum eq {}",
    "country": 'ip.src.country eq "{}"',
}
_SKIPPED = {
    "ruleset": "current",
    "phases": [RATE_LIMIT_PHASE, MANAGED_PHASE],
    "products": ["securityLevel"],
}
_NOT_WRITTEN = frozenset(("id", "version", "last_updated", "enabled"))


class Configuration(msgspec.Struct, frozen=True):
    """Whom a rule is about. `target` is one of TARGETS."""

    target: str
    value: str


class AccessRuleSent(msgspec.Struct, frozen=True):
    """`mode` is one of MODES."""

    mode: str
    configuration: Configuration
    notes: str | None = None


class AccessRuleChanged(msgspec.Struct, frozen=True):
    """What is not sent stays. The configuration may be repeated and never changes."""

    mode: str | None = None
    configuration: Configuration | None = None
    notes: str | None = None


class ScopeView(msgspec.Struct, frozen=True):
    """The zone or account whose rule it is."""

    id: str
    type: str


class AccessRule(msgspec.Struct, frozen=True):
    """What is stored of one: the rest is said by where it stands."""

    mode: str
    configuration: Configuration
    notes: str


class AccessRuleView(msgspec.Struct, frozen=True, kw_only=True):
    """An access rule as answers have it. Both times are those of its last change."""

    id: str
    paused: bool
    modified_on: str
    created_on: str
    allowed_modes: tuple[str, ...]
    mode: str
    notes: str
    configuration: Configuration
    scope: ScopeView


class Wanted(msgspec.Struct, frozen=True):
    """What a list asks for; None and "" ask for everything. `notes` is a part of them, in any case."""

    mode: str = ""
    target: str = ""
    value: str = ""
    notes: str = ""
    any_of: bool = False
    order: str = ""
    descending: bool = False


def read(sent: AccessRuleSent) -> AccessRule:
    """The rule with its value in the one spelling that is stored. Raises FirewallRuleRefused."""
    return _checked(AccessRule(sent.mode, normal(sent.configuration), sent.notes or ""))


def changed(rule: AccessRule, sent: AccessRuleChanged) -> AccessRule:
    """Raises FirewallRuleRefused."""
    if sent.configuration is not None and normal(sent.configuration) != rule.configuration:
        raise FirewallRuleRefused(
            reason="the configuration of a rule never changes", pointer="/configuration"
        )
    mode = rule.mode if sent.mode is None else sent.mode
    return _checked(AccessRule(mode, rule.configuration, rule.notes if sent.notes is None else sent.notes))


def normal(sent: Configuration) -> Configuration:
    """A target, and its value in its one spelling. An address says itself which of both it is.

    Raises FirewallRuleRefused.

    >>> normal(Configuration("ip", "2001:DB8:0::1"))
    Configuration(target='ip6', value='2001:db8::1')
    """
    if sent.target not in TARGETS:
        reason = "target is one of " + ", ".join(TARGETS)
        raise FirewallRuleRefused(reason=reason, pointer="/configuration/target")
    found = spelled(sent)
    if found is None:
        reason = f"the value is not of the target {sent.target}"
        raise FirewallRuleRefused(reason=reason, pointer="/configuration/value")
    return found


def spelled(sent: Configuration) -> Configuration | None:
    """The same; None where the value is none of its target."""
    target, value = sent.target, sent.value.strip()
    if target == "country":
        code = value.upper()
        is_code = code == _TOR or (len(code) == 2 and code.isascii() and code.isalpha())
        return Configuration(target, code) if is_code else None
    if target == "asn":
        digits = value.upper().removeprefix("AS")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
        number = int(digits) if is_number else 0
        return Configuration(target, f"AS{number}") if 1 <= number <= _ASN_MAX else None
    if "%" in value:  # a zone of the machine that says it: RFC 4007 §11
        return None
    try:
        if target == "ip_range":
            return Configuration(target, str(plain_network(value)))
        address = plain(value)  # the edge compares IPv4 clients as such, whatever socket they came by
    except ValueError:
        return None
    return Configuration("ip" if address.version == 4 else "ip6", str(address))


def as_rule(rule: AccessRule) -> Rule:
    """The custom rule that enforces it, as a client of rulesets would send it."""
    where = rule.configuration
    value = where.value.removeprefix("AS") if where.target == "asn" else where.value
    body: Rule = {
        "action": rule.mode,
        "expression": _EXPRESSIONS[where.target].format(value),
        "description": rule.notes,
        "ref": f"{PREFIX}{where.target}/{where.value}",
    }
    if rule.mode == WHITELIST:
        body |= {"action": SKIP, "action_parameters": _SKIPPED, "logging": {"enabled": False}}
    return body


def from_rule(stored: Rule) -> AccessRule | None:
    """The access rule that a custom rule stands for, None for any other rule."""
    if not stored["ref"].startswith(PREFIX) or not stored["enabled"]:
        return None
    target, _, value = stored["ref"].removeprefix(PREFIX).partition("/")
    mode = WHITELIST if stored["action"] == SKIP else stored["action"]
    if target not in TARGETS or mode not in MODES:
        return None
    found = AccessRule(mode, Configuration(target, value), stored["description"])
    written = {name: one for name, one in stored.items() if name not in _NOT_WRITTEN}
    return found if written == as_rule(found) else None


def place(rule: AccessRule) -> tuple[int, int]:
    """Where it stands among the others: who is let in before who is not, the narrower before the wider."""
    return rule.mode != WHITELIST, TARGETS.index(rule.configuration.target)


def create(call: Call, tx: Transaction, platform: Platform, scope: Scope, rule: AccessRule) -> AccessRuleView:
    """Raises ZoneNotFound, AuthenticationError, FirewallRuleExists, TooManyRules."""
    views.ready(call, tx, platform, scope)
    stored, body = views.stored(tx, scope), as_rule(rule)
    for one in stored:
        if one["ref"] == body["ref"]:
            raise FirewallRuleExists(remarks=(_already(one),))
    return _view(scope, views.add(call, tx, platform, scope, body, _index(stored, rule)), rule)


def update(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str, sent: AccessRuleChanged
) -> AccessRuleView:
    """Raises ZoneNotFound, FirewallRuleNotFound, FirewallRuleRefused."""
    stored = views.stored(tx, scope)
    before = _found(stored, rule_id)
    rule = changed(before, sent)
    index = None
    if place(rule) != place(before):
        index = _index([one for one in stored if one["id"] != rule_id], rule)
    return _view(scope, views.change(call, tx, platform, scope, rule_id, as_rule(rule), index), rule)


def delete(call: Call, tx: Transaction, platform: Platform, scope: Scope, rule_id: str) -> None:
    """Raises ZoneNotFound, FirewallRuleNotFound."""
    _found(views.stored(tx, scope), rule_id)
    views.remove(call, tx, platform, scope, rule_id)


def show(reader: Reader, scope: Scope, rule_id: str) -> AccessRuleView:
    """Raises ZoneNotFound, FirewallRuleNotFound."""
    stored = views.stored(reader, scope)
    found = _found(stored, rule_id)
    return _view(scope, next(one for one in stored if one["id"] == rule_id), found)


def listed(reader: Reader, scope: Scope, wanted: Wanted) -> list[AccessRuleView]:
    """Those that a list asks for, in its order or that of the edge. Raises ZoneNotFound."""
    pairs = ((one, from_rule(one)) for one in views.stored(reader, scope))
    every = [_view(scope, one, rule) for one, rule in pairs if rule is not None]
    tests = list(_tests(wanted))
    match = any if wanted.any_of else all
    kept = [one for one in every if not tests or match(test(one) for test in tests)]
    if wanted.order:
        kept.sort(key=_KEYS[wanted.order])
    return kept[::-1] if wanted.descending else kept


Test = Callable[[AccessRuleView], bool]
_KEYS: dict[str, Callable[[AccessRuleView], str]] = {
    "configuration.target": lambda one: one.configuration.target,
    "configuration.value": lambda one: one.configuration.value,
    "mode": lambda one: one.mode,
}


def _tests(wanted: Wanted) -> Iterator[Test]:
    where = Configuration(wanted.target, wanted.value)
    if wanted.target in TARGETS and wanted.value:
        where = spelled(where) or where
    if wanted.mode:
        yield lambda one: one.mode == wanted.mode
    if where.target:
        yield lambda one: one.configuration.target == where.target
    if where.value:
        yield lambda one: one.configuration.value == where.value
    if wanted.notes:
        yield lambda one: wanted.notes.casefold() in one.notes.casefold()


def _found(stored: Sequence[Rule], rule_id: str) -> AccessRule:
    for one in stored:
        if one["id"] == rule_id and (found := from_rule(one)) is not None:
            return found
    raise FirewallRuleNotFound


def _index(others: Sequence[Rule], rule: AccessRule) -> int:
    """Its place, counted from 1: behind those that stand before it, and before all custom rules."""
    mine, index = place(rule), 1
    for at, one in enumerate(others, 1):
        found = from_rule(one)
        if found is not None and place(found) <= mine:
            index = at + 1
    return index


def _view(scope: Scope, stored: Rule, rule: AccessRule) -> AccessRuleView:
    return AccessRuleView(
        id=stored["id"],
        paused=False,
        modified_on=stored["last_updated"],
        created_on=stored["last_updated"],
        allowed_modes=MODES,
        mode=rule.mode,
        notes=rule.notes,
        configuration=rule.configuration,
        scope=ScopeView(scope.id, scope.kind),
    )


def _already(stored: Rule) -> str:
    if from_rule(stored) is not None:
        return f"The rule {stored['id']} is about the same. Change it, or delete it first."
    return (
        f"The custom rule {stored['id']} has this target's ref, and was changed by the rulesets' routes:"
        " change or delete it there."
    )


def _checked(rule: AccessRule) -> AccessRule:
    if rule.mode not in MODES:
        raise FirewallRuleRefused(reason="mode is one of " + ", ".join(MODES), pointer="/mode")
    if len(rule.notes) > DESCRIPTION_CHARACTERS_MAX:
        reason = f"notes have at most {DESCRIPTION_CHARACTERS_MAX} characters"
        raise FirewallRuleRefused(reason=reason, pointer="/notes")
    return rule
