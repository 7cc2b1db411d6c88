"""Packages, groups and rules of the firewall, as they were before managed rulesets.

Owns  what each is of the managed ruleset and of the rule that executes it; changing that rule's overrides.
Not   the ruleset (`usecases.ruleset.managed`); overrides' meaning (`crs`); until when (`changes`); HTTP.

The managed ruleset is the one package, under its id. Its categories are the groups; a rule's group is the
first that it has beside its paranoia level. What is changed here are the overrides of the first rule of the
zone that executes the ruleset for every request, or that would if it were switched on; the first change makes
one. Only what turns something on switches that rule on. So both faces show the same, and have one history.
"""

from collections.abc import Sequence
from copy import deepcopy
from hashlib import sha256
from typing import Any, NoReturn

import msgspec

from edgestead.crs import Entry
from edgestead.model.call import Call
from edgestead.model.refusals.firewall import OlderRuleNotFound, OlderRuleRefused
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.ruleset import views
from edgestead.usecases.ruleset.managed import ManagedRuleset, Platform
from edgestead.usecases.ruleset.merge import Rule
from edgestead.usecases.ruleset.phases import EXECUTE, MANAGED_PHASE
from edgestead.usecases.ruleset.scope import Scope, account_of

PACKAGES, GROUPS, RULES = "wafpackages", "wafgroups", "wafrules"
ON, OFF = "on", "off"
SENSITIVITIES = {"high": 25, "medium": 40, "low": 60}  # the score that acts
ACTION_MODES = {"simulate": "log", "block": "block", "challenge": "challenge"}
_MODES = {ON: True, OFF: False}
_EVERYWHERE = "true"
_LEVEL = "paranoia-level"
Owned = dict[str, dict[str, Any]]  # what overrides say of rules, by their ids


class PackageChanged(msgspec.Struct, frozen=True):
    """`sensitivity` is one of SENSITIVITIES or off, `action_mode` one of ACTION_MODES. None stays."""

    sensitivity: str | None = None
    action_mode: str | None = None


class ModeChanged(msgspec.Struct, frozen=True):
    """`mode` is on or off."""

    mode: str


class PackageView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    description: str
    detection_mode: str
    zone_id: str
    status: str
    sensitivity: str
    action_mode: str


class GroupName(msgspec.Struct, frozen=True):
    id: str
    name: str


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    description: str
    rules_count: int
    modified_rules_count: int
    package_id: str
    mode: str
    allowed_modes: tuple[str, ...] = (ON, OFF)


class RuleView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    description: str
    priority: str
    package_id: str
    group: GroupName
    mode: str
    default_mode: str = ON
    allowed_modes: tuple[str, ...] = (ON, OFF)


def packages(reader: Reader, platform: Platform, scope: Scope) -> list[PackageView]:
    """The managed ruleset, where the server has one. Raises ZoneNotFound."""
    account_of(reader, scope)
    return [] if platform.managed is None else [package(reader, platform, scope, platform.managed.id)]


def package(reader: Reader, platform: Platform, scope: Scope, package_id: str) -> PackageView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    managed = _managed(reader, platform, scope, package_id)
    executing = _executing(reader, scope, managed)
    overrides = _overrides(executing)
    anomaly = managed.catalogue.anomaly_rule
    own = _owned(overrides).get(anomaly.id, {})
    is_on = own.get("enabled", overrides.get("enabled", True))
    threshold = own.get("score_threshold", anomaly.score_threshold)
    action = own.get("action", overrides.get("action", anomaly.action))
    modes = {word: mode for mode, word in ACTION_MODES.items()}
    return PackageView(
        id=managed.id,
        name=managed.catalogue.name,
        description=managed.catalogue.description,
        detection_mode="anomaly",
        zone_id=scope.id,
        status="active" if executing is not None and executing["enabled"] else "inactive",
        sensitivity=_sensitivity(threshold) if is_on else OFF,
        action_mode=modes.get(action, "challenge"),
    )


def change_package(
    call: Call, tx: Transaction, platform: Platform, scope: Scope, package_id: str, sent: PackageChanged
) -> PackageView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused."""
    managed = _managed(tx, platform, scope, package_id)
    wanted: dict[str, Any] = {}
    if sent.sensitivity is not None:
        if sent.sensitivity not in (*SENSITIVITIES, OFF):
            _refuse(PACKAGES, "sensitivity is one of " + ", ".join((*SENSITIVITIES, OFF)))
        wanted["enabled"] = sent.sensitivity != OFF
        if sent.sensitivity != OFF:
            wanted["score_threshold"] = SENSITIVITIES[sent.sensitivity]
    if sent.action_mode is not None:
        if sent.action_mode not in ACTION_MODES:
            _refuse(PACKAGES, "action_mode is one of " + ", ".join(ACTION_MODES))
        wanted["action"] = ACTION_MODES[sent.action_mode]
    if wanted:
        anomaly = managed.catalogue.anomaly_rule.id
        _write(call, tx, platform, scope, managed, "rules", "id", anomaly, wanted)
    return package(tx, platform, scope, package_id)


def groups(reader: Reader, platform: Platform, scope: Scope, package_id: str) -> list[GroupView]:
    """By their names. Raises ZoneNotFound, OlderRuleNotFound."""
    managed = _managed(reader, platform, scope, package_id)
    overrides = _overrides(_executing(reader, scope, managed))
    owned = _owned(overrides)
    return [_group(managed, overrides, owned, name) for name in sorted(managed.catalogue.categories)]


def group(reader: Reader, platform: Platform, scope: Scope, package_id: str, group_id: str) -> GroupView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    for one in groups(reader, platform, scope, package_id):
        if one.id == group_id:
            return one
    raise OlderRuleNotFound(family=GROUPS)


def change_group(
    call: Call,
    tx: Transaction,
    platform: Platform,
    scope: Scope,
    package_id: str,
    group_id: str,
    sent: ModeChanged,
) -> GroupView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused."""
    name = group(tx, platform, scope, package_id, group_id).name
    wanted = {"enabled": _is_on(GROUPS, sent.mode)}
    managed = _managed(tx, platform, scope, package_id)
    _write(call, tx, platform, scope, managed, "categories", "category", name, wanted)
    return group(tx, platform, scope, package_id, group_id)


def rules(reader: Reader, platform: Platform, scope: Scope, package_id: str) -> list[RuleView]:
    """In the catalogue's order. Raises ZoneNotFound, OlderRuleNotFound."""
    managed = _managed(reader, platform, scope, package_id)
    overrides = _overrides(_executing(reader, scope, managed))
    owned = _owned(overrides)
    return [_rule(managed, overrides, owned, entry) for entry in managed.catalogue.entries]


def rule(reader: Reader, platform: Platform, scope: Scope, package_id: str, rule_id: str) -> RuleView:
    """Raises ZoneNotFound, OlderRuleNotFound."""
    managed = _managed(reader, platform, scope, package_id)
    entry = managed.entries.get(rule_id)
    if entry is None:
        raise OlderRuleNotFound(family=RULES)
    overrides = _overrides(_executing(reader, scope, managed))
    return _rule(managed, overrides, _owned(overrides), entry)


def change_rule(
    call: Call,
    tx: Transaction,
    platform: Platform,
    scope: Scope,
    package_id: str,
    rule_id: str,
    sent: ModeChanged,
) -> RuleView:
    """Raises ZoneNotFound, OlderRuleNotFound, OlderRuleRefused."""
    rule(tx, platform, scope, package_id, rule_id)
    wanted = {"enabled": _is_on(RULES, sent.mode)}
    managed = _managed(tx, platform, scope, package_id)
    _write(call, tx, platform, scope, managed, "rules", "id", rule_id, wanted)
    return rule(tx, platform, scope, package_id, rule_id)


def group_id(name: str) -> str:
    """The id of a category: always the same."""
    return sha256(b"waf group " + name.encode()).hexdigest()[:32]


def _managed(reader: Reader, platform: Platform, scope: Scope, package_id: str) -> ManagedRuleset:
    account_of(reader, scope)
    if platform.managed is None or platform.managed.id != package_id:
        raise OlderRuleNotFound(family=PACKAGES)
    return platform.managed


def _executing(reader: Reader, scope: Scope, managed: ManagedRuleset) -> Rule | None:
    """The rule whose overrides these are: the first that is switched on, else the first that is not."""
    found = [
        one
        for one in views.stored(reader, scope, MANAGED_PHASE)
        if one["action"] == EXECUTE
        and one["action_parameters"]["id"] == managed.id
        and one["expression"] == _EVERYWHERE
    ]
    return next((one for one in found if one["enabled"]), found[0] if found else None)


def _overrides(executing: Rule | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if executing is None else executing["action_parameters"].get("overrides", {})
    return found


def _write(
    call: Call,
    tx: Transaction,
    platform: Platform,
    scope: Scope,
    managed: ManagedRuleset,
    member: str,
    key: str,
    value: str,
    wanted: dict[str, Any],
) -> None:
    """Change one item of the overrides. The rule is switched on where that turns something on."""
    old = _executing(tx, scope, managed)
    overrides = _with_item(deepcopy(_overrides(old)), member, key, value, wanted)
    turns_on = wanted.get("enabled") is True
    if old is None:
        body = {
            "action": EXECUTE,
            "expression": _EVERYWHERE,
            "action_parameters": {"id": managed.id, "overrides": overrides},
            "enabled": turns_on,
        }
        views.add(call, tx, platform, scope, body, None, MANAGED_PHASE)
        return
    body = {name: one for name, one in old.items() if name not in ("id", "version", "last_updated")} | {
        "action_parameters": old["action_parameters"] | {"overrides": overrides},
        "enabled": old["enabled"] or turns_on,
    }
    views.change(call, tx, platform, scope, old["id"], body, None, MANAGED_PHASE)


def _with_item(
    overrides: dict[str, Any], member: str, key: str, value: str, wanted: dict[str, Any]
) -> dict[str, Any]:
    """The overrides with one item of a list changed, and last: of several about one rule the last wins."""
    items: list[dict[str, Any]] = overrides.get(member, [])
    merged: dict[str, Any] = {key: value}
    for one in items:
        if one[key] == value:
            merged |= one
    rest = [one for one in items if one[key] != value]
    return overrides | {member: [*rest, merged | wanted]}


def _owned(overrides: dict[str, Any]) -> Owned:
    """What overrides say of rules by their ids: several items about one rule together."""
    merged: Owned = {}
    for one in overrides.get("rules", ()):
        merged[one["id"]] = merged.get(one["id"], {}) | one
    return merged


def _enabled(overrides: dict[str, Any], owned: Owned, entry: Entry) -> bool:
    """As the edge decides: a rule's own override, then its categories' last, then the ruleset's."""
    own = owned.get(entry.id, {}).get("enabled")
    if own is not None:
        return bool(own)
    for one in reversed(overrides.get("categories", ())):
        if one["category"] in entry.categories and "enabled" in one:
            return bool(one["enabled"])
    return bool(overrides.get("enabled", True))


def _group(managed: ManagedRuleset, overrides: dict[str, Any], owned: Owned, name: str) -> GroupView:
    members: Sequence[Entry] = [one for one in managed.catalogue.entries if name in one.categories]
    mode = overrides.get("enabled", True)
    for one in overrides.get("categories", ()):
        if one["category"] == name:
            mode = one.get("enabled", mode)
    return GroupView(
        id=group_id(name),
        name=name,
        description=f"Rules of the category {name}.",
        rules_count=len(members),
        modified_rules_count=sum(1 for one in members if one.id in owned),
        package_id=managed.id,
        mode=ON if mode else OFF,
    )


def _rule(managed: ManagedRuleset, overrides: dict[str, Any], owned: Owned, entry: Entry) -> RuleView:
    named = [one for one in entry.categories if not one.startswith(_LEVEL)] or entry.categories
    name = named[0] if named else ""
    return RuleView(
        id=entry.id,
        description=entry.description,
        priority=str(entry.crs_id),
        package_id=managed.id,
        group=GroupName(group_id(name) if name else "", name),
        mode=ON if _enabled(overrides, owned, entry) else OFF,
    )


def _sensitivity(threshold: int | None) -> str:
    """The word for a score: that of the highest threshold that is not above it, or the strictest."""
    fitting = [word for word, score in SENSITIVITIES.items() if (threshold or 0) >= score]
    return fitting[-1] if fitting else next(iter(SENSITIVITIES))


def _is_on(family: str, mode: str) -> bool:
    if mode not in _MODES:
        _refuse(family, "mode is on or off")
    return _MODES[mode]


def _refuse(family: str, reason: str) -> NoReturn:
    raise OlderRuleRefused(family=family, reason=reason)
