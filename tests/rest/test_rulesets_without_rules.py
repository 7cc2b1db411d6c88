"""A server that has loaded no rule set."""

import pytest

from tests.rest.rulesets import ACCOUNT
from tests.usecases.ruleset_samples import CUSTOM_PHASE, MANAGED, MANAGED_PHASE, block

NAMING = [
    (MANAGED_PHASE, "execute", {"id": MANAGED.id}, "/rules/0/action_parameters/id"),
    (CUSTOM_PHASE, "skip", {"rulesets": [MANAGED.id]}, "/rules/0/action_parameters/rulesets/0"),
]


@pytest.mark.inside("a node loads the rule set of its machine")
def test_nothing_managed_is_listed_or_found(api, zone_id):
    assert api.get(ACCOUNT).result == []
    assert api.get(f"/zones/{zone_id}/rulesets").result == []
    assert api.get(f"{ACCOUNT}/{MANAGED.id}").codes == [10001]


@pytest.mark.parametrize(("phase", "action", "parameters", "pointer"), NAMING)
@pytest.mark.inside("a node loads the rule set of its machine")
def test_naming_the_managed_ruleset_is_refused_with_what_helps(
    api, zone_id, phase, action, parameters, pointer
):
    rule = {"action": action, "expression": "true", "action_parameters": parameters}

    answer = api.put(f"/zones/{zone_id}/rulesets/phases/{phase}/entrypoint", {"rules": [rule]})

    (error,) = answer.json["errors"]
    assert (answer.status, error["code"], error["source"]["pointer"]) == (400, 20128, pointer)
    assert "apt install modsecurity-crs" in error["message"]
    assert "--crs PATH" in error["message"]


def test_rules_of_ones_own_need_no_rule_set(api, zone_id):
    path = f"/zones/{zone_id}/rulesets/phases/{CUSTOM_PHASE}/entrypoint"

    assert api.put(path, {"rules": [block()]}).status == 200
