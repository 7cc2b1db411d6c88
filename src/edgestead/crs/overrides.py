"""The effective managed ruleset after a zone's overrides.

Owns  the precedence of overrides.
Not   decoding or refusing overrides (`usecases`): unknown ids and categories match no rule here.

A rule override beats categories, categories beat the ruleset, each property on its own. Of several
categories that a rule has, and of several items about one rule, the last one listed wins. Absent properties
(None) have no effect.

The ruleset's `action` is the anomaly rule's: the other rules score, they do not act. A category's or a rule's
own action makes a scoring rule act by itself instead of scoring.

Source: spec "Managed ruleset configuration"; docs/explanation/crs.md.
"""

import msgspec

from edgestead.crs.catalogue import THRESHOLD_DEFAULT, Catalogue, Entry


class CategoryOverride(msgspec.Struct, frozen=True, kw_only=True):
    category: str
    action: str | None = None
    enabled: bool | None = None


class RuleOverride(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    action: str | None = None
    enabled: bool | None = None
    score_threshold: int | None = None


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    action: str | None = None
    enabled: bool | None = None
    categories: tuple[CategoryOverride, ...] = ()
    rules: tuple[RuleOverride, ...] = ()


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """`increments` and `actions` by CRS number: the enabled rules that score, and those that act instead.

    `anomaly_action` is None when the anomaly rule is disabled: then no score blocks.
    """

    increments: dict[int, int]
    actions: dict[int, str]
    score_threshold: int
    anomaly_action: str | None


def apply_overrides(catalogue: Catalogue, overrides: Overrides) -> Effective:
    """The effective ruleset. Without overrides every rule of all four paranoia levels is enabled."""
    rules: dict[str, RuleOverride] = {}
    for override in overrides.rules:
        rules[override.id] = _both(rules.get(override.id, override), override)
    increments: dict[int, int] = {}
    actions: dict[int, str] = {}
    for entry in catalogue.entries[:-1]:
        enabled, action = _decided(entry, rules.get(entry.id), overrides)
        if enabled is False or (enabled is None and overrides.enabled is False):
            continue
        if action is not None and action != entry.action:
            actions[entry.crs_id] = action
        else:
            increments[entry.crs_id] = entry.increment or 0
    anomaly = catalogue.anomaly_rule
    own = rules.get(anomaly.id, RuleOverride(id=anomaly.id))
    enabled = own.enabled if own.enabled is not None else overrides.enabled
    return Effective(
        increments=increments,
        actions=actions,
        score_threshold=own.score_threshold or anomaly.score_threshold or THRESHOLD_DEFAULT,
        anomaly_action=None if enabled is False else own.action or overrides.action or anomaly.action,
    )


def _both(earlier: RuleOverride, later: RuleOverride) -> RuleOverride:
    """Merge two items about one rule."""
    return RuleOverride(
        id=later.id,
        action=earlier.action if later.action is None else later.action,
        enabled=earlier.enabled if later.enabled is None else later.enabled,
        score_threshold=earlier.score_threshold if later.score_threshold is None else later.score_threshold,
    )


def _decided(entry: Entry, own: RuleOverride | None, overrides: Overrides) -> tuple[bool | None, str | None]:
    """`enabled` and `action` from rule and category overrides; None where none sets them."""
    enabled, action = (own.enabled, own.action) if own is not None else (None, None)
    for override in reversed(overrides.categories):
        if override.category in entry.categories:
            enabled = override.enabled if enabled is None else enabled
            action = override.action if action is None else action
    return enabled, action
