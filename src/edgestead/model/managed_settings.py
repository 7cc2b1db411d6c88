"""The rule that deploys the managed ruleset, as `edgecli waf` and the dashboard read and rewrite it.

Owns  what level, threshold and action stand in its overrides, and how they are changed.
Not   requests.

The API replaces a rule as a whole, so every change here starts from all that the rule says: overrides that
the command does not speak of stay.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from edgestead.model.rule_members import sent_back

Json = dict[str, Any]

LEVELS = (1, 2, 3, 4)
THRESHOLDS = {"low": 60, "medium": 40, "high": 25}
ACTIONS = ("block", "managed_challenge", "js_challenge", "log", "challenge")


class Settings(NamedTuple):
    """What a rule says of the managed ruleset. `level` 0: none is on; None: gaps.

    `acts`: whether the anomaly rule is on. Without it no score is ever too high, and `action` never happens.
    """

    enabled: bool
    acts: bool
    level: int | None
    disabled_levels: tuple[int, ...]
    threshold: int
    action: str


def tag(level: int) -> str:
    return f"paranoia-level-{level}"


def new_rule(managed_id: str) -> Json:
    return {
        "action": "execute",
        "action_parameters": {"id": managed_id},
        "expression": "true",
        "enabled": True,
    }


def executes(rule: Json, managed_id: str) -> bool:
    return rule["action"] == "execute" and bool(rule["action_parameters"]["id"] == managed_id)


def settings_of(rule: Json, anomaly_rule: Json) -> Settings:
    overrides = rule["action_parameters"].get("overrides", {})
    disabled = _disabled_levels(overrides)
    lowest_off = disabled[0] if disabled else LEVELS[-1] + 1
    own = _said(overrides.get("rules", ()), "id", anomaly_rule["id"])
    return Settings(
        enabled=rule.get("enabled", True),
        acts=own.get("enabled", overrides.get("enabled", True)),
        level=lowest_off - 1 if disabled == LEVELS[lowest_off - 1 :] else None,
        disabled_levels=disabled,
        threshold=int(own.get("score_threshold") or anomaly_rule["score_threshold"]),
        action=own.get("action") or overrides.get("action") or anomaly_rule["action"],
    )


def with_level(rule: Json, level: int) -> Json:
    """The body that turns the levels above `level` off and the others on.

    A level that is on says so only where the ruleset's own override would turn it off.
    """
    body, overrides = _body(rule)
    items = [dict(item) for item in overrides.get("categories", ())]
    for number in LEVELS:
        for item in _about(items, "category", tag(number)):
            item.pop("enabled", None)
        if number > level or overrides.get("enabled") is False:
            _last(items, "category", tag(number))["enabled"] = number <= level
    overrides["categories"] = [item for item in items if len(item) > 1]
    return _with_overrides(body, overrides)


def with_threshold(rule: Json, anomaly_rule_id: str, threshold: int | None, action: str | None) -> Json:
    """The body with this score threshold and action of the anomaly rule; None leaves what is there.

    The rule is turned on where it was off: else neither would mean anything.
    """
    body, overrides = _body(rule)
    items = [dict(item) for item in overrides.get("rules", ())]
    said = _said(items, "id", anomaly_rule_id)
    item = _last(items, "id", anomaly_rule_id)
    if not said.get("enabled", overrides.get("enabled", True)):
        item["enabled"] = True
    if threshold is not None:
        item["score_threshold"] = threshold
    if action is not None:
        item["action"] = action
    overrides["rules"] = items
    return _with_overrides(body, overrides)


def with_rules_off(rule: Json, ids: Iterable[str]) -> Json:
    """The body that turns these rules off, whatever else is said of them."""
    body, overrides = _body(rule)
    items = [dict(item) for item in overrides.get("rules", ())]
    for id_ in ids:
        _last(items, "id", id_)["enabled"] = False
    overrides["rules"] = items
    return _with_overrides(body, overrides)


def _disabled_levels(overrides: Json) -> tuple[int, ...]:
    whole = overrides.get("enabled", True)
    items = overrides.get("categories", ())
    found = {level: _said(items, "category", tag(level)) for level in LEVELS}
    return tuple(level for level in LEVELS if not found[level].get("enabled", whole))


def _about(items: Iterable[Json], key: str, value: str) -> list[Json]:
    return [item for item in items if item[key] == value]


def _said(items: Iterable[Json], key: str, value: str) -> Json:
    """All that is said of one thing: of several items the last one counts for each property, as for the
    server."""
    return {name: one for item in _about(items, key, value) for name, one in item.items()}


def _last(items: list[Json], key: str, value: str) -> Json:
    """The item about one thing whose properties win; a new one at the end where there is none."""
    about = _about(items, key, value)
    if not about:
        about.append({key: value})
        items += about
    return about[-1]


def _body(rule: Json) -> tuple[Json, Json]:
    """A copy of the rule that can be sent, and a copy of its overrides."""
    body = sent_back(rule)
    body["action_parameters"] = dict(body["action_parameters"])
    return body, dict(body["action_parameters"].get("overrides", {}))


def _with_overrides(body: Json, overrides: Json) -> Json:
    """The API refuses empty overrides, so lists that became empty are left out, and then the whole."""
    kept = {name: value for name, value in overrides.items() if value != []}
    body["action_parameters"].pop("overrides", None)
    if kept:
        body["action_parameters"]["overrides"] = kept
    return body
