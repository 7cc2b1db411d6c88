"""Overrides of the firewall's rules by page, as they were before managed rulesets.

Owns  what each is as a rule of the managed phase, and reading it from one again; their order.
Not   packages, groups and rules themselves (`usecases.ruleset.waf_packages`); HTTP; until when (`changes`).

An override is an exception: a rule that skips rules of the managed ruleset for addresses with stars, before
any rule that executes it. A rule alone blocks nothing here, the score does, so `disable` is all that an
override says of one. Its `ref` is `PREFIX`, a word of its own, its priority and the beginnings of its groups'
ids; a group is the rules that it has when the override is written.
"""

import re
from collections.abc import Collection, Sequence

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.firewall import OlderRuleNotFound, OlderRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.limits import (
    DESCRIPTION_CHARACTERS_MAX,
    WAF_OVERRIDE_GROUPS_MAX,
    WAF_OVERRIDE_URLS_MAX,
)
from edgestead.usecases.ruleset import url_patterns, views
from edgestead.usecases.ruleset.lockdowns import PRIORITY_MAX
from edgestead.usecases.ruleset.managed import ManagedRuleset, Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import MANAGED_PHASE
from edgestead.usecases.ruleset.scope import Scope, account_of
from edgestead.usecases.ruleset.waf_packages import group_id

FAMILY = "wafoverrides"
PREFIX = "waf-override/"
DISABLE = "disable"
_GROUP_CHARACTERS = 6  # of a group's id: enough to tell a ruleset's categories apart
_REF = re.compile(PREFIX + r"([0-9a-f]{1,32})/([0-9]{0,10})/((?:[0-9a-f]{6},)*)")


class OverrideSent(msgspec.Struct, frozen=True):
    """`urls` are hosts with paths, in which a star is any text; `rules` and `groups` say `disable` by id."""

    urls: list[str]
    rules: dict[str, str] = {}
    groups: dict[str, str] = {}
    rewrite_action: dict[str, str] = {}
    description: str | None = None
    paused: bool = False
    priority: int | None = None


class OverrideView(msgspec.Struct, frozen=True, kw_only=True):
    """`rules` are those that are of none of its groups."""

    id: str
    description: str
    paused: bool
    priority: int | None
    urls: tuple[str, ...]
    groups: dict[str, str]
    rules: dict[str, str]
    rewrite_action: dict[str, str] = {}


def listed(reader: Reader, platform: Platform, scope: Scope) -> list[OverrideView]:
    """By their priorities, those without one last. Raises ZoneNotFound."""
    managed = _managed(reader, platform, scope)
    if managed is None:
        return []
    every = views.stored(reader, scope, MANAGED_PHASE)
    return [found for one in every if (found := from_rule(one, managed)) is not None]


def show(reader: Reader, platform: Platform, scope: Scope, override_id: str) -> OverrideView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    for one in listed(reader, platform, scope):
        if one.id == override_id:
            return one
    raise OlderRuleNotFound(family=FAMILY)


def create(call: Call, tx: Transaction, platform: Platform, scope: Scope, sent: OverrideSent) -> OverrideView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused, TooManyRules."""
    managed = _managed(tx, platform, scope)
    if managed is None:
        raise OlderRuleNotFound(family=FAMILY)
    _check(sent, managed)
    body = as_rule(sent, managed, platform.new_id()[-12:])
    index = _index(views.stored(tx, scope, MANAGED_PHASE), managed, sent.priority)
    return _view(views.add(call, tx, platform, scope, body, index, MANAGED_PHASE), managed)


def replace(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, override_id: str, sent: OverrideSent
) -> OverrideView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused."""
    old, managed = show(tx, platform, scope, override_id), platform.managed
    assert managed is not None
    _check(sent, managed)
    stored = views.stored(tx, scope, MANAGED_PHASE)
    word = next(one["ref"].split("/")[1] for one in stored if one["id"] == override_id)
    index = None
    if sent.priority != old.priority:
        index = _index([one for one in stored if one["id"] != override_id], managed, sent.priority)
    body = as_rule(sent, managed, word)
    return _view(views.change(call, tx, platform, scope, override_id, body, index, MANAGED_PHASE), managed)


def delete(call: Call, tx: Transaction, platform: Platform, scope: Scope, override_id: str) -> None:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    show(tx, platform, scope, override_id)
    views.remove(call, tx, platform, scope, override_id, MANAGED_PHASE)


def as_rule(sent: OverrideSent, managed: ManagedRuleset, word: str) -> Rule:
    """The rule that enforces it, as a client of rulesets would send it."""
    skipped = _members(managed, sent.groups) | set(sent.rules)
    groups = "".join(f"{one[:_GROUP_CHARACTERS]}," for one in sent.groups)
    return {
        "action": "skip",
        "action_parameters": {
            "rules": {managed.id: [one for one in managed.entries if one in skipped]},
        },
        "expression": f"({' or '.join(map(url_patterns.as_test, sent.urls))})",
        "description": sent.description or "",
        "enabled": not sent.paused,
        "ref": f"{PREFIX}{word}/{'' if sent.priority is None else sent.priority}/{groups}",
    }


def from_rule(stored: Rule, managed: ManagedRuleset) -> OverrideView | None:
    """The override that a rule stands for, None for any other rule."""
    ref = _REF.fullmatch(stored["ref"])
    parameters = stored.get("action_parameters", {})
    skipped = parameters.get("rules", {})
    urls = [url_patterns.from_test(one) for one in stored["expression"][1:-1].split(" or ")]
    is_ours = stored["action"] == "skip" and set(parameters) == {"rules"} and set(skipped) == {managed.id}
    if ref is None or not is_ours or None in urls or not stored["expression"].startswith("("):
        return None
    groups = [one for one in _groups(managed) if f"{one[:_GROUP_CHARACTERS]}," in ref[3]]
    members = _members(managed, groups)
    return OverrideView(
        id=stored["id"],
        description=stored["description"],
        paused=not stored["enabled"],
        priority=int(ref[2]) if ref[2] else None,
        urls=tuple(one for one in urls if one is not None),
        groups=dict.fromkeys(groups, DISABLE),
        rules={one: DISABLE for one in skipped[managed.id] if one not in members},
    )


def _managed(reader: Reader, platform: Platform, scope: Scope) -> ManagedRuleset | None:
    account_of(reader, scope)
    return platform.managed


def _groups(managed: ManagedRuleset) -> dict[str, str]:
    """Names by id."""
    return {group_id(name): name for name in sorted(managed.catalogue.categories)}


def _members(managed: ManagedRuleset, groups: Collection[str]) -> set[str]:
    names = {name for one, name in _groups(managed).items() if one in groups}
    return {entry.id for entry in managed.catalogue.entries if names.intersection(entry.categories)}


def _check(sent: OverrideSent, managed: ManagedRuleset) -> None:
    """Raises OlderRuleRefused."""
    said = {*sent.rules.values(), *sent.groups.values()}
    for holds, reason in (
        (0 < len(sent.urls) <= WAF_OVERRIDE_URLS_MAX, f"urls are 1 to {WAF_OVERRIDE_URLS_MAX}"),
        (all(map(url_patterns.is_pattern, sent.urls)), f"a url is {url_patterns.FORM}"),
        (
            said == {DISABLE} and not sent.rewrite_action,
            "an override says disable of rules and groups, at least of one: the score acts, for other pages"
            " otherwise by a rule that executes the managed ruleset with overrides and an expression",
        ),
        (set(sent.rules) <= set(managed.entries), "rules are ids of rules of the package"),
        (set(sent.groups) <= set(_groups(managed)), "groups are ids of groups of the package"),
        (
            len(sent.groups) <= WAF_OVERRIDE_GROUPS_MAX,
            f"groups are at most {WAF_OVERRIDE_GROUPS_MAX}",
        ),
        (
            len(sent.description or "") <= DESCRIPTION_CHARACTERS_MAX,
            f"the description has at most {DESCRIPTION_CHARACTERS_MAX} characters",
        ),
        (
            sent.priority is None or 0 <= sent.priority <= PRIORITY_MAX,
            f"priority is 0 to {PRIORITY_MAX}, or null",
        ),
    ):
        if not holds:
            raise OlderRuleRefused(family=FAMILY, reason=reason)


def _index(stored: Sequence[Rule], managed: ManagedRuleset, priority: int | None) -> int:
    """Its place, counted from 1: before all rules but the overrides that come before it."""
    mine, index = (priority is None, priority or 0), 1
    for at, one in enumerate(stored, 1):
        found = from_rule(one, managed)
        if found is not None and (found.priority is None, found.priority or 0) <= mine:
            index = at + 1
    return index


def _view(stored: Rule, managed: ManagedRuleset) -> OverrideView:
    found = from_rule(stored, managed)
    assert found is not None
    return found
