"""The managed ruleset, rulesets that execute others, and dry runs."""

import pytest

from tests.rest.rulesets import ACCOUNT, NO_ID, new
from tests.usecases.ruleset_samples import (
    ANOMALY,
    ENTRIES,
    MANAGED,
    MANAGED_PHASE,
    block,
    execute,
    skip,
)


@pytest.fixture
def managed():
    return MANAGED


# The managed ruleset


def test_the_managed_ruleset_shows_its_rules_without_expressions(api):
    answer = api.get(f"{ACCOUNT}/{MANAGED.id}").result

    first, *_, last = answer["rules"]
    assert first == {
        "id": ENTRIES[0].id,
        "version": "7",
        "action": "score",
        "action_parameters": {"increment": 5},
        "categories": ["paranoia-level-1", "attack-sqli"],
        "description": "942100: Sample",
        "last_updated": "2023-11-14T22:13:20.000000Z",
        "ref": ENTRIES[0].id,
        "enabled": True,
    }
    assert (last["id"], last["action"], last["score_threshold"]) == (ANOMALY.id, "block", 40)
    assert "categories" not in last


def test_the_managed_ruleset_has_one_version_and_its_tags(api):
    one = f"{ACCOUNT}/{MANAGED.id}"

    assert [row["version"] for row in api.get(f"{one}/versions").result] == ["7"]
    assert api.get(f"{one}/versions/7").result == api.get(one).result
    tagged = api.get(f"{one}/versions/latest/by_tag/attack-sqli").result["rules"]
    assert [rule["id"] for rule in tagged] == [ENTRIES[0].id, ENTRIES[1].id]
    assert api.get(f"{one}/versions/6").codes == [10004]


def test_a_tag_that_no_rule_has_is_not_found(api):
    answer = api.get(f"{ACCOUNT}/{MANAGED.id}/versions/7/by_tag/{'x' * 100}")

    assert (answer.status, answer.codes) == (404, [10005])
    assert answer.json["errors"][0]["message"] == (
        f"could not find a rule with tag {'x' * 64} in ruleset {MANAGED.id}"
    )
    assert api.get(f"{ACCOUNT}/{MANAGED.id}/versions/6/by_tag/attack-sqli").codes == [10004]


def test_only_managed_rulesets_have_tags(api):
    custom = api.post(ACCOUNT, new("custom")).result["id"]

    assert api.get(f"{ACCOUNT}/{custom}/versions/1/by_tag/a").codes == [10001]


WRITES = [
    ("PUT", "", {"rules": []}),
    ("DELETE", "", None),
    ("POST", "/rules", block()),
    ("PATCH", f"/rules/{ANOMALY.id}", block()),
    ("DELETE", f"/rules/{ANOMALY.id}", None),
    ("DELETE", "/versions/7", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_the_managed_ruleset_cannot_be_written(api, scope, method, path, body):
    answer = api.call(method, f"{scope[0]}/{MANAGED.id}{path}", body)

    assert (answer.status, answer.codes) == (400, [20221])


@pytest.mark.parametrize("path", ["", "/versions", "/versions/7"])
def test_a_zone_reads_the_managed_ruleset_that_it_executes(api, rulesets, path):
    assert api.get(f"{rulesets}/{MANAGED.id}{path}").result == api.get(f"{ACCOUNT}/{MANAGED.id}{path}").result
    assert api.get(f"/zones/{NO_ID}/rulesets/{MANAGED.id}{path}").codes == [1001]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_deploy_tells_what_cannot_work_on_this_machine(api, rulesets, monkeypatch, query):
    monkeypatch.setattr(MANAGED, "remarks", ("its detectors are off",))
    path = f"{rulesets}/phases/{MANAGED_PHASE}/entrypoint"

    deployed = api.put(path + query, {"rules": [execute(MANAGED.id)]})
    emptied = api.put(path, {"rules": []})

    assert deployed.status == emptied.status == 200
    assert deployed.json["messages"] == [{"code": 10_000, "message": "its detectors are off", "type": None}]
    assert emptied.json["messages"] == []


# Executing custom rulesets


def test_an_executed_ruleset_cannot_be_deleted_until_nobody_executes_it(api, entrypoint):
    custom = api.post(ACCOUNT, new("custom", rules=[block()])).result["id"]
    made = api.put(entrypoint, {"rules": [execute(custom, version="1")]}).result

    refused = api.delete(f"{ACCOUNT}/{custom}")
    api.put(entrypoint, {"rules": []})

    assert made["rules"][0]["action_parameters"] == {"id": custom, "version": "1"}
    assert refused.codes == [20222]
    assert api.delete(f"{ACCOUNT}/{custom}").status == 204


@pytest.mark.parametrize(
    "naming",
    [
        lambda id_, rule_id: skip(rulesets=[id_]),
        lambda id_, rule_id: skip(rules={id_: [rule_id]}),
        lambda id_, rule_id: execute(id_),
    ],
)
def test_a_ruleset_that_a_rule_names_cannot_be_deleted_until_none_does(api, entrypoint, naming):
    custom = api.post(ACCOUNT, new("custom", rules=[block()])).result
    path = f"{ACCOUNT}/{custom['id']}"
    user = api.put(entrypoint, {"rules": [naming(custom["id"], custom["rules"][0]["id"])]}).result["id"]

    refused = api.delete(path)
    dry = api.delete(f"{path}?dry_run=true")

    assert (refused.status, refused.codes, dry.json) == (400, [20222], refused.json)
    assert refused.json["errors"][0]["message"] == (
        f"ruleset {custom['id']} cannot be deleted because a rule of ruleset {user} executes or skips it"
    )
    assert api.get(path).result == custom
    api.put(entrypoint, {"rules": []})
    assert api.delete(path).status == 204


def test_a_ruleset_that_only_skips_itself_can_be_deleted(api):
    custom = api.post(ACCOUNT, new("custom")).result["id"]
    api.put(f"{ACCOUNT}/{custom}", {"rules": [skip(rulesets=[custom])]})

    assert api.delete(f"{ACCOUNT}/{custom}").status == 204


def test_a_version_that_a_rule_executes_cannot_be_deleted_until_none_does(api, entrypoint):
    custom = api.post(ACCOUNT, new("custom", rules=[block()])).result["id"]
    for _ in range(2):
        api.put(f"{ACCOUNT}/{custom}", {"rules": [block()]})
    user = api.put(entrypoint, {"rules": [execute(custom, version="1"), execute(custom)]}).result["id"]

    refused = api.delete(f"{ACCOUNT}/{custom}/versions/1")

    assert (refused.status, refused.codes) == (400, [20224])
    assert refused.json["errors"][0]["message"] == (
        f"version 1 of ruleset {custom} cannot be deleted because a rule of ruleset {user} executes it"
    )
    assert api.delete(f"{ACCOUNT}/{custom}/versions/2").status == 204
    api.put(entrypoint, {"rules": [execute(custom)]})
    assert api.delete(f"{ACCOUNT}/{custom}/versions/1").status == 204


# Dry runs


@pytest.fixture
def writes(rulesets, entrypoint, three):
    """Every write of the API: method, path, body, and the status of its success."""
    one, rule = f"{rulesets}/{three['id']}", three["rules"][0]["id"]
    return [
        ("POST", rulesets, new("zone") | {"phase": MANAGED_PHASE}, 200),
        ("PUT", one, {"rules": []}, 200),
        ("PUT", entrypoint, {"rules": []}, 200),
        ("POST", f"{one}/rules", block(), 200),
        ("PATCH", f"{one}/rules/{rule}", block(), 200),
        ("DELETE", f"{one}/rules/{rule}", None, 200),
        ("DELETE", one, None, 204),
        ("POST", ACCOUNT, new("custom"), 200),
    ]


def test_a_dry_run_answers_null_and_changes_nothing(api, writes, rulesets):
    before = [api.get(rulesets).result, api.get(ACCOUNT).result]

    for method, path, body, status in writes:
        answer = api.call(method, f"{path}?dry_run=true", body)
        assert answer.status == status, (method, path, answer.body)
        if status == 200:
            assert answer.json == {"result": None, "success": True, "errors": [], "messages": []}

    assert [api.get(rulesets).result, api.get(ACCOUNT).result] == before


def test_a_dry_run_of_deleting_a_version_leaves_it(api, rulesets, three):
    one = f"{rulesets}/{three['id']}"
    api.put(one, {"rules": []})

    assert api.delete(f"{one}/versions/1?dry_run=true").status == 204
    assert api.delete(f"{one}/versions/2?dry_run=true").codes == [20223]
    assert api.get(f"{one}/versions/1").result == three


def test_a_dry_run_refuses_what_the_write_would_refuse(api, rulesets, entrypoint, three):
    bad = {"rules": [block("http.hots eq 1")]}

    dry, wet = api.put(f"{entrypoint}?dry_run=true", bad), api.put(entrypoint, bad)

    assert (dry.status, dry.json) == (wet.status, wet.json)
    assert dry.codes == [20127]
    gone = f"{rulesets}/{NO_ID}?dry_run=true"
    assert api.delete(gone).codes == [10001]


@pytest.mark.parametrize("word", ["1", "yes", "TRUE", ""])
def test_a_dry_run_is_true_or_false_and_nothing_else(api, entrypoint, three, word):
    assert api.put(f"{entrypoint}?dry_run={word}", {"rules": []}).status == 400
    assert api.get(entrypoint).result == three


def test_dry_run_false_is_a_write(api, entrypoint, three):
    assert api.put(f"{entrypoint}?dry_run=false", {"rules": []}).result["rules"] == []


@pytest.mark.parametrize("body", [b"", b"{", b'{"rules": [{}]}', b'{"rules": []}'])
def test_a_dry_run_that_is_neither_true_nor_false_is_refused_whatever_the_body(api, entrypoint, body):
    answer = api.put(f"{entrypoint}?dry_run=1", body)

    assert answer.status == 400
    assert "dry_run" in answer.json["errors"][0]["message"]
