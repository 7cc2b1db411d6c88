"""What `edgecli waf` makes of a rule: everything that it does not speak of stays."""

import pytest

from edgestead.model import managed_settings as deployed
from edgestead.model.managed_settings import Settings, settings_of, with_level, with_threshold

ANOMALY = {"id": "a" * 32, "action": "block", "score_threshold": 40}
OTHER = {"category": "attack-sqli", "action": "log"}


def rule(**overrides):
    parameters = {"id": "m", "version": "latest"} | ({"overrides": overrides} if overrides else {})
    return {
        "id": "r",
        "version": "3",
        "action": "execute",
        "action_parameters": parameters,
        "expression": 'http.host eq "a"',
        "description": "deploy",
        "last_updated": "then",
        "ref": "mine",
        "enabled": False,
    }


def off(*levels):
    return [{"category": deployed.tag(level), "enabled": False} for level in levels]


def own(**more):
    return {"id": ANOMALY["id"], **more}


READ = [
    (rule(), 4, (), 40, "block"),
    (rule(categories=off(3, 4)), 2, (3, 4), 40, "block"),
    (rule(categories=off(4, 3, 2)), 1, (2, 3, 4), 40, "block"),
    (rule(categories=off(1, 2, 3, 4)), 0, (1, 2, 3, 4), 40, "block"),
    (rule(categories=off(2)), None, (2,), 40, "block"),
    (rule(categories=[*off(4), {"category": deployed.tag(4), "enabled": True}]), 4, (), 40, "block"),
    (rule(categories=[*off(4), {"category": deployed.tag(4), "action": "log"}]), 3, (4,), 40, "block"),
    (
        rule(enabled=False, categories=[{"category": deployed.tag(1), "enabled": True}]),
        1,
        (2, 3, 4),
        40,
        "block",
    ),
    (rule(rules=[own(score_threshold=25)]), 4, (), 25, "block"),
    (rule(action="log", rules=[own(score_threshold=25)]), 4, (), 25, "log"),
    (rule(action="log", rules=[own(action="challenge")]), 4, (), 40, "challenge"),
    (rule(rules=[own(score_threshold=60), own(score_threshold=25)]), 4, (), 25, "block"),
    (rule(rules=[own(score_threshold=60), own(action="log")]), 4, (), 60, "log"),
]
# overrides, whether the anomaly rule is on
ACTS = [
    ({}, True),
    ({"enabled": True}, True),
    ({"enabled": False}, False),
    ({"rules": [own(enabled=False)]}, False),
    ({"rules": [own(action="log")]}, True),
    ({"enabled": False, "rules": [own(enabled=True)]}, True),
    ({"enabled": False, "rules": [own(score_threshold=25)]}, False),
    ({"rules": [own(enabled=False), own(score_threshold=25)]}, False),
    ({"rules": [own(enabled=False), own(enabled=True)]}, True),
    ({"rules": [{"id": "x", "enabled": False}]}, True),
    ({"categories": off(1, 2, 3, 4)}, True),
]
LEVELS = [
    # overrides before, level, categories after
    ({}, 4, None),
    ({}, 2, off(3, 4)),
    ({}, 1, off(2, 3, 4)),
    ({"categories": off(2, 3, 4)}, 3, off(4)),
    ({"categories": off(3, 4)}, 4, None),
    ({"categories": [OTHER]}, 3, [OTHER, *off(4)]),
    ({"categories": [*off(3), OTHER]}, 3, [OTHER, *off(4)]),
    (
        {"categories": [{"category": deployed.tag(3), "enabled": False, "action": "log"}]},
        4,
        [{"category": deployed.tag(3), "action": "log"}],
    ),
    (
        {"categories": [*off(3), {"category": deployed.tag(3), "action": "log"}]},
        4,
        [{"category": deployed.tag(3), "action": "log"}],
    ),
    (
        {"enabled": False},
        1,
        [{"category": deployed.tag(1), "enabled": True}, *off(2, 3, 4)],
    ),
]


@pytest.mark.parametrize(("stored", "level", "disabled", "threshold", "action"), READ)
def test_a_rule_is_read_as_the_server_applies_it(stored, level, disabled, threshold, action):
    found = settings_of(stored, ANOMALY)._replace(acts=True)

    assert found == Settings(False, True, level, disabled, threshold, action)


@pytest.mark.parametrize(("overrides", "acts"), ACTS)
def test_a_rule_acts_while_the_anomaly_rule_is_on(overrides, acts):
    assert settings_of(rule(**overrides), ANOMALY).acts is acts


@pytest.mark.parametrize(("overrides", "acts"), ACTS)
def test_a_threshold_turns_on_the_rule_that_it_is_about_and_a_level_does_not(overrides, acts):
    scored = with_threshold(rule(**overrides), ANOMALY["id"], 25, None)
    levelled = with_level(rule(**overrides), 2)

    assert settings_of(scored, ANOMALY).acts is True
    assert ("enabled" in scored["action_parameters"]["overrides"]["rules"][-1]) is (
        not acts or overrides.get("rules", [{}])[-1].get("enabled", False)
    )
    assert settings_of(levelled, ANOMALY).acts is acts


@pytest.mark.parametrize(("before", "level", "after"), LEVELS)
def test_a_level_turns_off_what_is_above_it_and_nothing_else(before, level, after):
    body = with_level(rule(**before), level)

    assert body["action_parameters"].get("overrides", {}).get("categories") == after
    assert settings_of(rule(**body["action_parameters"].get("overrides", {})), ANOMALY).level == level


def test_a_level_keeps_thresholds_and_a_threshold_keeps_levels():
    before = rule(
        categories=off(4), rules=[own(score_threshold=25, enabled=True), {"id": "x", "enabled": False}]
    )

    levelled = with_level(before, 2)["action_parameters"]["overrides"]
    scored = with_threshold(before, ANOMALY["id"], None, "log")["action_parameters"]["overrides"]

    assert levelled["rules"] == before["action_parameters"]["overrides"]["rules"]
    assert scored["categories"] == off(4)
    assert scored["rules"] == [
        own(score_threshold=25, enabled=True, action="log"),
        {"id": "x", "enabled": False},
    ]


def test_all_of_the_rule_is_sent_again_but_what_only_the_server_writes():
    body = with_threshold(rule(), ANOMALY["id"], 60, "challenge")

    assert body == {
        "action": "execute",
        "action_parameters": {
            "id": "m",
            "version": "latest",
            "overrides": {"rules": [own(score_threshold=60, action="challenge")]},
        },
        "expression": 'http.host eq "a"',
        "description": "deploy",
        "enabled": False,
        "ref": "mine",
    }


def test_the_rule_that_was_read_is_not_touched():
    before = rule(categories=off(3), rules=[own(action="log")])

    with_level(before, 1)
    with_threshold(before, ANOMALY["id"], 1, None)

    assert before == rule(categories=off(3), rules=[own(action="log")])
