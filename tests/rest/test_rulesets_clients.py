"""What a published configuration of the hosted service meets here, in the profile for clients and without."""

import pytest

from edgestead.model.call import Profile
from tests.support.api import CREDENTIALS
from tests.usecases.ruleset_samples import (
    ANOMALY,
    CUSTOM_PHASE,
    ENTRIES,
    MANAGED,
    MANAGED_PHASE,
    block,
    execute,
)

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


# The shapes that guides and API references publish, with values of our own: scope, phase, rules


def act(action: str, expression: str = "true", **parameters: object) -> dict[str, object]:
    return {"action": action, "expression": expression, "action_parameters": parameters}


def within(sent, stored) -> bool:
    """Whether everything sent is there unchanged; the server may add members."""
    if isinstance(sent, dict):
        return all(name in stored and within(one, stored[name]) for name, one in sent.items())
    return sent == stored


SHAPES = {
    "the managed ruleset and nothing else": ("zone", MANAGED_PHASE, [execute()]),
    "everything off but two categories and one rule": (
        "zone",
        MANAGED_PHASE,
        [
            execute(
                overrides={
                    "enabled": False,
                    "categories": [
                        {"category": "attack-sqli", "action": "log", "enabled": True},
                        {"category": "attack-xss", "action": "log", "enabled": True},
                    ],
                    "rules": [{"id": ENTRIES[3].id, "action": "block", "enabled": True}],
                }
            )
        ],
    ),
    "level, threshold and action": (
        "zone",
        MANAGED_PHASE,
        [execute(version="latest", overrides={"categories": LEVEL_2, "rules": [THRESHOLD]})],
    ),
    "an account executes for some of its zones": (
        "account",
        MANAGED_PHASE,
        [execute(overrides={"action": "log"}) | {"expression": 'cf.zone.name in {"a.example" "b.example"}'}],
    ),
    "exceptions before the managed ruleset": (
        "zone",
        MANAGED_PHASE,
        [
            act("skip", 'http.request.uri.path eq "/upload"', rules={MANAGED.id: [ENTRIES[0].id]})
            | {"logging": {"enabled": False}},
            act("skip", 'http.host eq "static.a.example"', rulesets=[MANAGED.id]),
            act("skip", "ip.src in {192.0.2.0/24}", ruleset="current"),
            execute(),
        ],
    ),
    "custom rules": (
        "zone",
        CUSTOM_PHASE,
        [
            block('(ip.src.country in {"AQ" "BV"} and not cf.client.bot)'),
            block('(starts_with(http.request.uri.path, "/login"))', action="managed_challenge"),
            act(
                "skip", "ip.src eq 192.0.2.1", products=["zoneLockdown", "uaBlock"], phases=["http_ratelimit"]
            ),
        ],
    ),
    "an answer of one's own": (
        "zone",
        CUSTOM_PHASE,
        [
            act(
                "block",
                'http.request.method in {"TRACE"}',
                response={"status_code": 405, "content": '{"no": "way"}', "content_type": "application/json"},
            )
        ],
    ),
    "a rate limit": (
        "zone",
        "http_ratelimit",
        [
            block('http.request.uri.path matches "^/api/"')
            | {
                "ratelimit": {
                    "characteristics": ["cf.colo.id", "ip.src", 'http.request.headers["x-api-key"]'],
                    "period": 60,
                    "requests_per_period": 100,
                    "mitigation_timeout": 600,
                    "counting_expression": 'http.request.uri.path eq "/in" and http.response.code eq 401',
                }
            }
        ],
    ),
    "redirects": (
        "zone",
        "http_request_dynamic_redirect",
        [
            act(
                "redirect",
                'http.request.uri.path matches "^/old/"',
                from_value={
                    "target_url": {"expression": 'concat("https://new.a.example", http.request.uri.path)'},
                    "status_code": 301,
                    "preserve_query_string": True,
                },
            )
        ],
    ),
    "rewritten URLs": (
        "zone",
        "http_request_transform",
        [
            act("rewrite", 'http.request.uri.path eq "/a"', uri={"path": {"value": "/b"}}),
            act(
                "rewrite",
                uri={
                    "path": {"expression": 'regex_replace(http.request.uri.path, "^/v1/(.*)$", "/v2/${1}")'}
                },
            ),
            act("rewrite", uri={"query": {"value": ""}}),
        ],
    ),
    "request headers": (
        "zone",
        "http_request_late_transform",
        [
            act(
                "rewrite",
                headers={
                    "X-Bot": {"operation": "set", "expression": "to_string(cf.client.bot)"},
                    "X-Source": {"operation": "set", "value": "edge"},
                    "X-Internal": {"operation": "remove"},
                },
            )
        ],
    ),
    "origins": (
        "zone",
        "http_request_origin",
        [
            act(
                "route",
                'http.host eq "a.example"',
                origin={"host": "b.a.example", "port": 8042},
                host_header="b.example",
            )
        ],
    ),
    "cache: bypass, and no reserve": (
        "zone",
        "http_request_cache_settings",
        [
            act("set_cache_settings", 'http.cookie contains "session"', cache=False),
            act("set_cache_settings", cache=True, cache_reserve={"enabled": False}),
            act(
                "set_cache_settings", cache=True, cache_reserve={"eligible": True, "minimum_file_size": 1024}
            ),
        ],
    ),
    "cache: times and key": (
        "zone",
        "http_request_cache_settings",
        [
            act(
                "set_cache_settings",
                '(http.request.uri.path.extension in {"css" "js"})',
                cache=True,
                edge_ttl={
                    "mode": "override_origin",
                    "default": 7200,
                    "status_code_ttl": [
                        {"status_code": 404, "value": 10},
                        {"status_code_range": {"from": 500}, "value": 0},
                        {"status_code_range": {"to": 199}, "value": -1},
                    ],
                },
                browser_ttl={"mode": "respect_origin"},
                serve_stale={"disable_stale_while_updating": True},
                cache_key={
                    "ignore_query_strings_order": True,
                    "custom_key": {
                        "query_string": {"exclude": {"all": True}},
                        "header": {"include": ["x-a"], "check_presence": ["x-b"], "exclude_origin": True},
                        "cookie": {"include": ["c"]},
                        "user": {"device_type": True, "geo": False},
                        "host": {"resolved": True},
                    },
                },
            )
        ],
    ),
    "settings": (
        "zone",
        "http_config_settings",
        [act("set_config", ssl="flexible", bic=False, polish="lossy")],
    ),
    "compression": (
        "zone",
        "http_response_compression",
        [
            act(
                "compress_response",
                'http.response.content_type.media_type eq "text/html"',
                algorithms=[{"name": "brotli"}, {"name": "auto"}],
            )
        ],
    ),
    "errors": (
        "zone",
        "http_custom_errors",
        [
            act(
                "serve_error",
                "http.response.code eq 503",
                content="<p>Soon</p>",
                content_type="text/html",
                status_code=503,
            )
        ],
    ),
}


@pytest.mark.parametrize("profile", [Profile.CLIENTS, Profile.SPEC])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_published_shape_applies_unchanged(api, zone_id, shape):
    scope, phase, rules = SHAPES[shape]
    of = f"/zones/{zone_id}" if scope == "zone" else f"/accounts/{CREDENTIALS.account_id}"
    entrypoint = f"{of}/rulesets/phases/{phase}/entrypoint"

    dry = api.put(f"{entrypoint}?dry_run=true", {"rules": rules})
    made = api.put(entrypoint, {"rules": rules}).result

    assert (dry.status, dry.result) == (200, None)
    for sent, stored in zip(rules, made["rules"], strict=True):
        assert within(sent, stored)
    kept = [{"id": rule["id"]} for rule in made["rules"]]
    assert api.put(entrypoint, {"rules": kept}).result["rules"] == made["rules"]


@pytest.mark.parametrize("profile", [Profile.CLIENTS, Profile.SPEC])
def test_a_zone_finds_what_it_deploys_without_leaving_the_zone(api, zone_id):
    rulesets = f"/zones/{zone_id}/rulesets"
    (owasp,) = [row["id"] for row in api.get(rulesets).result if row["kind"] == "managed"]

    assert api.get(f"{rulesets}/{owasp}").result["rules"][-1]["id"] == ANOMALY.id


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
