"""Versions of custom rulesets that are executed by number have documents of their own in the feed."""

import pytest

from edgestead.model.ruleset_document import decode
from tests.support.api import CREDENTIALS, LocalApi

PHASE = "http_request_firewall_custom"
ACCOUNT = f"/accounts/{CREDENTIALS.account_id}/rulesets"
ENTRYPOINT = f"{ACCOUNT}/phases/{PHASE}/entrypoint"


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path)
    yield made
    made.close()


@pytest.fixture
def custom(api):
    """A custom ruleset of two versions: its id."""
    rules = [{"action": "log", "expression": "true"}]
    made = api.post(ACCOUNT, {"name": "c", "kind": "custom", "phase": PHASE, "rules": rules}).result
    api.put(f"{ACCOUNT}/{made['id']}", {"rules": [{"action": "block", "expression": "true"}]})
    return made["id"]


def execute(id_, version):
    return {"action": "execute", "expression": "true", "action_parameters": {"id": id_, "version": version}}


def told(api):
    """The newest document of each key, of versions only."""
    return {change.key: change.doc for change in api.changes if "@" in change.key}


def test_a_version_that_is_executed_by_number_is_told_with_its_own_rules(api, custom):
    api.put(ENTRYPOINT, {"rules": [execute(custom, "1")]})
    document = decode(told(api)[f"{custom}@1"])
    assert (document.id, document.version, document.kind) == (custom, "1", "custom")
    assert b'"action":"log"' in bytes(document.rules)
    assert {change.scope for change in api.changes if "@" in change.key} == {CREDENTIALS.account_id}


@pytest.mark.parametrize("version", ["latest", None])
def test_the_latest_version_needs_no_document_of_its_own(api, custom, version):
    rule = execute(custom, version)
    if version is None:
        del rule["action_parameters"]["version"]
    api.put(ENTRYPOINT, {"rules": [rule]})
    assert told(api) == {}


def test_a_version_is_forgotten_with_the_last_rule_that_executes_it(api, custom):
    api.put(ENTRYPOINT, {"rules": [execute(custom, "1"), execute(custom, "1"), execute(custom, "2")]})
    api.put(ENTRYPOINT, {"rules": [execute(custom, "1")]})
    assert [key for key, doc in told(api).items() if doc is not None] == [f"{custom}@1"]
    api.put(ENTRYPOINT, {"rules": []})
    assert set(told(api).values()) == {None}


def test_a_version_that_another_ruleset_executes_stays(api, custom):
    zone_id = api.post("/zones", {"name": "pinned.test"}).result["id"]
    of_zone = f"/zones/{zone_id}/rulesets/phases/{PHASE}/entrypoint"
    api.put(ENTRYPOINT, {"rules": [execute(custom, "1")]})
    made = api.put(of_zone, {"rules": [execute(custom, "1")]}).result
    api.put(ENTRYPOINT, {"rules": []})
    assert told(api)[f"{custom}@1"] is not None
    api.call("DELETE", f"/zones/{zone_id}/rulesets/{made['id']}")
    assert told(api)[f"{custom}@1"] is None
