"""The two procedures of the specification, step by step, as somebody with curl does them."""

import pytest

from edgestead.crs import RulesMissing
from edgestead.usecases.ruleset.managed import load_managed
from tests.rest.rulesets import ACCOUNT
from tests.usecases.ruleset_samples import MANAGED, MANAGED_PHASE

ACTIONS = ("block", "managed_challenge", "js_challenge", "log", "challenge")


@pytest.fixture(scope="module", params=["sample", "installed"])
def managed(request):
    if request.param == "sample":
        return MANAGED
    try:
        return load_managed()
    except RulesMissing as error:
        pytest.skip(f"NOT TESTED against a real rule set: {error}")


@pytest.fixture
def entrypoint(api, zone_id) -> str:
    """The entry point's path; the managed ruleset is deployed."""
    path = f"/zones/{zone_id}/rulesets/phases/{MANAGED_PHASE}/entrypoint"
    rule = {"action": "execute", "expression": "true", "action_parameters": {"id": owasp(api)}}
    assert api.put(path, {"rules": [rule]}).status == 200
    return path


def owasp(api) -> str:
    """Step 1 of both: the id of the entry named as the managed OWASP core ruleset."""
    (found,) = [row for row in api.get(ACCOUNT).result if row["kind"] == "managed" and "OWASP" in row["name"]]
    return found["id"]


def executing(api, entrypoint, managed_id):
    """The entry point, and the rule that executes the managed ruleset."""
    ruleset = api.get(entrypoint).result
    (rule,) = [
        rule
        for rule in ruleset["rules"]
        if rule["action"] == "execute" and rule["action_parameters"]["id"] == managed_id
    ]
    return ruleset, rule


def override(api, zone_id, entrypoint, overrides):
    managed_id = owasp(api)
    ruleset, rule = executing(api, entrypoint, managed_id)
    return api.patch(
        f"/zones/{zone_id}/rulesets/{ruleset['id']}/rules/{rule['id']}",
        {
            "action": "execute",
            "action_parameters": {"id": managed_id, "overrides": overrides},
            "expression": "true",
            "enabled": True,
        },
    )


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_set_the_paranoia_level(api, zone_id, entrypoint, level):
    above = [{"category": f"paranoia-level-{n}", "enabled": False} for n in range(level + 1, 5)]

    answer = override(api, zone_id, entrypoint, {"categories": above}).result

    _, rule = executing(api, entrypoint, owasp(api))
    assert answer["rules"] == [rule]
    assert rule["action_parameters"] == {
        "id": owasp(api),
        "version": "latest",
        "overrides": {"categories": above},
    }


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("threshold", [25, 1, 9_999])
def test_set_score_threshold_and_action(api, zone_id, entrypoint, threshold, action):
    last = api.get(f"{ACCOUNT}/{owasp(api)}").result["rules"][-1]
    wanted = {"id": last["id"], "score_threshold": threshold, "action": action}

    answer = override(api, zone_id, entrypoint, {"rules": [wanted]})

    assert answer.status == 200
    _, rule = executing(api, entrypoint, owasp(api))
    assert rule["action_parameters"]["overrides"] == {"rules": [wanted]}


def test_a_level_set_later_drops_a_threshold_that_is_not_sent_again(api, zone_id, entrypoint):
    last = api.get(f"{ACCOUNT}/{owasp(api)}").result["rules"][-1]
    override(api, zone_id, entrypoint, {"rules": [{"id": last["id"], "score_threshold": 25}]})

    override(api, zone_id, entrypoint, {"categories": [{"category": "paranoia-level-4", "enabled": False}]})

    _, rule = executing(api, entrypoint, owasp(api))
    assert "rules" not in rule["action_parameters"]["overrides"]


def test_absent_and_false_stay_apart(api, zone_id, entrypoint):
    *_, first, last = api.get(f"{ACCOUNT}/{owasp(api)}").result["rules"]
    items = [{"id": last["id"], "action": "log"}, {"id": first["id"], "enabled": False, "action": None}]

    override(api, zone_id, entrypoint, {"rules": items, "enabled": None})

    _, rule = executing(api, entrypoint, owasp(api))
    assert rule["action_parameters"]["overrides"] == {
        "rules": [{"id": last["id"], "action": "log"}, {"id": first["id"], "enabled": False}]
    }


def test_every_level_has_rules_and_the_last_rule_is_the_anomaly_rule(api):
    rules = api.get(f"{ACCOUNT}/{owasp(api)}").result["rules"]

    tags = {tag for rule in rules for tag in rule.get("categories", ())}
    assert {f"paranoia-level-{level}" for level in (1, 2, 3, 4)} <= tags
    assert (rules[-1]["action"], rules[-1]["score_threshold"]) == ("block", 40)
    assert rules[-1]["id"] == "6179ae15870a4bb7b2d480d4843b323c"
    assert owasp(api) == "4814384a9e5d4991b9815dcfc25d2f1f"
    assert all(rule["action"] == "score" for rule in rules[:-1])
