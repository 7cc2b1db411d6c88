"""What a published configuration of the hosted service meets here, in the profile for clients and without."""

import pytest

from edgestead.model.call import Profile
from tests.services.ruleset_samples import ANOMALY, ENTRIES, MANAGED, MANAGED_PHASE, execute

THEIR_VERSION = "36"
THEIR_RULE = "d" * 32
LEVEL_2 = [{"category": f"paranoia-level-{level}", "enabled": False} for level in (3, 4)]
THRESHOLD = {"id": ANOMALY.id, "score_threshold": 60, "action": "managed_challenge"}
PUBLISHED = {
    "name": "Zone-level phase entry point",
    "description": "Executes the managed ruleset",
    "rules": [
        execute(version=THEIR_VERSION, overrides={"categories": LEVEL_2, "rules": [THRESHOLD]})
        | {"description": "OWASP", "enabled": True}
    ],
}


@pytest.fixture
def managed():
    return MANAGED


@pytest.fixture
def path(zone_id) -> str:
    return f"/zones/{zone_id}/rulesets/phases/{MANAGED_PHASE}/entrypoint"


@pytest.mark.parametrize("profile", [Profile.CLIENTS])
def test_their_version_is_taken_and_answered_as_it_was_sent(api, path):
    dry = api.put(f"{path}?dry_run=true", PUBLISHED)
    made = api.put(path, PUBLISHED).result

    assert dry.status == 200
    (rule,) = made["rules"]
    assert rule["action_parameters"] == PUBLISHED["rules"][0]["action_parameters"]
    assert (made["name"], made["description"]) == (PUBLISHED["name"], PUBLISHED["description"])
    assert api.put(path, PUBLISHED).result["rules"][0]["action_parameters"]["version"] == THEIR_VERSION


def test_the_specification_knows_the_loaded_version_only(api, path):
    answer = api.put(path, PUBLISHED)

    (error,) = answer.json["errors"]
    assert (answer.status, error["code"]) == (400, 20128)
    assert error["source"]["pointer"] == "/rules/0/action_parameters/version"
    assert "the loaded version is 7; expected it or latest" in error["message"]


@pytest.mark.parametrize("profile", [Profile.CLIENTS, Profile.SPEC])
def test_an_override_of_their_rule_is_refused_with_the_way_to_ours(api, path):
    """An exception that silently did nothing would block somebody; a rule made stricter would let pass."""
    overrides = {"rules": [{"id": ENTRIES[0].id, "enabled": False}, {"id": THEIR_RULE, "enabled": False}]}

    answer = api.put(f"{path}?dry_run=true", {"rules": [execute(overrides=overrides)]})

    (error,) = answer.json["errors"]
    assert (answer.status, error["code"]) == (400, 20128)
    assert error["source"]["pointer"] == "/rules/0/action_parameters/overrides/rules/1/id"
    assert error["message"] == (
        f"'{THEIR_RULE}' is not a valid value for id because the ruleset has no such rule: ids of other"
        " servers do not carry over, look in its rules for the one whose description has the same number"
    )


# Ways to the first deployment


def test_a_put_of_the_entry_point_deploys(api, path):
    assert api.get(path).status == 404

    made = api.put(path, {"rules": [execute()]}).result

    assert (made["kind"], made["version"], len(made["rules"])) == ("zone", "1", 1)


def test_a_new_ruleset_of_kind_zone_deploys(api, zone_id, path):
    body = {"name": "zone", "kind": "zone", "phase": MANAGED_PHASE, "rules": [execute()]}

    made = api.post(f"/zones/{zone_id}/rulesets", body).result

    assert api.get(path).result == made


def test_a_rule_added_to_the_entry_point_deploys(api, zone_id, path):
    made = api.put(path, {"rules": []}).result

    deployed = api.post(f"/zones/{zone_id}/rulesets/{made['id']}/rules", execute()).result

    assert [rule["action"] for rule in deployed["rules"]] == ["execute"]
    assert api.get(path).result == deployed


def test_a_provider_that_plans_reads_deletes_the_empty_one_makes_its_own_and_puts(api, zone_id, path):
    rulesets = f"/zones/{zone_id}/rulesets"
    empty = api.put(path, {}).result

    assert api.get(path).result["rules"] == []
    assert api.delete(f"{rulesets}/{empty['id']}").status == 204
    made = api.post(rulesets, {"name": "terraform", "kind": "zone", "phase": MANAGED_PHASE}).result
    put = api.put(path, {"description": "managed", "rules": [execute()]}).result

    assert (put["id"], put["name"], put["version"]) == (made["id"], "terraform", "2")
    assert empty["id"] != made["id"]


@pytest.mark.parametrize("profile", [Profile.CLIENTS])
@pytest.mark.parametrize("version", ["newest", "", "3.3.4", 36])
def test_a_version_is_still_a_number(api, path, version):
    assert api.put(path, {"rules": [execute(version=version)]}).status == 400
