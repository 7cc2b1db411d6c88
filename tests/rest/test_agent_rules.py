"""User agent rules: rules of the custom phase, seen through the older interface."""

import pytest

from tests.rest.rulesets import NO_ID
from tests.rest.test_rulesets_access import may, token
from tests.usecases.ruleset_samples import block


@pytest.fixture
def rules(zone_id):
    return f"/zones/{zone_id}/firewall/ua_rules"


def rule(value="BadBot/1.0", mode="block", **more):
    return {"mode": mode, "configuration": {"target": "ua", "value": value}, **more}


@pytest.mark.parametrize("agent", ["BadBot/1.0 (x)", 'a "b" c', "a\\", '\\"', '\\\\"', "ü"])
def test_a_rule_is_made_found_replaced_and_deleted(api, rules, entrypoint, agent):
    api.put(entrypoint, {"rules": [block(ref="mine")]})
    made = api.post(rules, rule(agent, description="a bot")).result

    assert made["configuration"] == {"target": "ua", "value": agent}
    assert (made["description"], made["mode"], made["paused"]) == ("a bot", "block", False)
    assert api.get(rules).result == [api.get(f"{rules}/{made['id']}").result] == [made]
    replaced = api.put(f"{rules}/{made['id']}", rule(agent + "2", "challenge", paused=True)).result
    assert replaced["id"] == made["id"]
    assert (replaced["configuration"]["value"], replaced["paused"]) == (agent + "2", True)
    mine, stored = api.get(entrypoint).result["rules"]
    assert (mine["ref"], stored["enabled"], stored["action"]) == ("mine", False, "challenge")
    assert api.delete(f"{rules}/{made['id']}").result == {"id": made["id"]}
    assert api.get(rules).result == []


def test_an_agent_has_one_rule(api, rules):
    made = [api.post(rules, rule(value)).result["id"] for value in ("a", "b")]

    for answer in (api.post(rules, rule("a")), api.put(f"{rules}/{made[1]}", rule("a"))):
        assert (answer.status, answer.codes) == (400, [10009])
    assert api.put(f"{rules}/{made[0]}", rule("a", paused=True)).status == 200


@pytest.mark.parametrize(
    "body",
    [
        rule(""),
        rule("a\nb"),
        rule("x" * 1025),
        rule(mode="whitelist"),
        rule(description="x" * 1025),
        {"mode": "block", "configuration": {"target": "ip", "value": "x"}},
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(api, rules, body):
    assert api.post(rules, body).status == 400
    assert api.get(rules).result == []


def test_a_custom_rule_is_none_of_them(api, rules, entrypoint):
    api.put(entrypoint, {"rules": [block(), block("true", ref="ua_rule/x")]})

    assert api.get(rules).result == []
    for one in (NO_ID, *(one["id"] for one in api.get(entrypoint).result["rules"])):
        assert api.get(f"{rules}/{one}").codes == [10001]
        assert api.delete(f"{rules}/{one}").codes == [10001]


@pytest.mark.parametrize(
    ("query", "found"),
    [("", "ab"), ("user_agent=A", "a"), ("paused=true", "b"), ("description=BOT", "b"), ("per_page=1", "a")],
)
def test_a_list_is_filtered_and_paged(api, rules, query, found):
    api.post(rules, rule("a"))
    api.post(rules, rule("b", paused=True, description="a bot"))

    assert "".join(one["configuration"]["value"] for one in api.get(f"{rules}?{query}").result) == found


def test_who_may_write_them(api, rules):
    assert may(api.post(rules, rule(), auth=token(api, "Firewall Services Write")))
