"""Which actions and parameters each phase takes: good rules as stored, bad ones with their pointer."""

import pytest

from edgestead.language import PHASES
from edgestead.model.refusals.ruleset import RulesetRefused
from edgestead.usecases.ruleset import actions as rulesets_actions
from edgestead.usecases.ruleset import phases
from edgestead.usecases.ruleset.expressions import regex_uses
from edgestead.usecases.ruleset.rule import read_rule
from edgestead.usecases.ruleset.shapes import Place
from tests.usecases.ruleset_samples import CUSTOM_PHASE, MANAGED_PHASE, block

ID = "0" * 32
LIMIT = {"characteristics": ["cf.colo.id", "ip.src"], "period": 60, "requests_per_period": 100}
ANSWER = {"status_code": 429, "content": '{"slow": "down"}', "content_type": "application/json"}
STATIC = {"value": "https://www.example.com/", "expression": None}
DYNAMIC = {"expression": 'concat("https://example.com", http.request.uri.path)'}

# phase, action, parameters that are stored as they are sent
GOOD = [
    (CUSTOM_PHASE, "block", None),
    (CUSTOM_PHASE, "block", {"response": ANSWER}),
    (CUSTOM_PHASE, "challenge", None),
    (CUSTOM_PHASE, "js_challenge", None),
    (CUSTOM_PHASE, "managed_challenge", None),
    (CUSTOM_PHASE, "log", None),
    (CUSTOM_PHASE, "skip", {"ruleset": "current"}),
    (CUSTOM_PHASE, "skip", {"phases": ["http_ratelimit", MANAGED_PHASE], "products": ["waf", "bic"]}),
    (CUSTOM_PHASE, "skip", {"phase": "current"}),
    (MANAGED_PHASE, "skip", {"rules": {ID: [ID]}}),
    (MANAGED_PHASE, "skip", {"ruleset": "current", "rules": {ID: [ID]}, "phases": ["http_ratelimit"]}),
    (MANAGED_PHASE, "execute", {"id": ID, "version": "latest"}),
    (MANAGED_PHASE, "execute", {"id": ID, "version": "latest", "overrides": {"categories": []}}),  # level 4
    (MANAGED_PHASE, "execute", {"id": ID, "version": "12", "matched_data": {"public_key": "k"}}),
    ("http_request_dynamic_redirect", "redirect", {"from_value": {"target_url": DYNAMIC}}),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {
            "from_value": {
                "target_url": {"value": "https://example.com/"},
                "status_code": 308,
                "preserve_query_string": False,
            }
        },
    ),
    ("http_request_redirect", "redirect", {"from_list": {"name": "moved", "key": "http.request.full_uri"}}),
    ("http_request_transform", "rewrite", {"uri": {"path": {"value": "/new"}, "query": {"value": ""}}}),
    (
        "http_request_transform",
        "rewrite",
        {"uri": {"path": {"expression": 'regex_replace(http.request.uri.path, "^/a/", "/b/")'}}},
    ),
    (
        "http_request_late_transform",
        "rewrite",
        {
            "headers": {
                "X-Country": {"expression": "ip.src.country", "operation": "set"},
                "X-Old": {"operation": "remove"},
            }
        },
    ),
    (
        "http_response_headers_transform",
        "rewrite",
        {"headers": {"X-Frame-Options": {"value": "DENY", "operation": "add"}}},
    ),
    (
        "http_request_origin",
        "route",
        {"host_header": "a.example", "origin": {"host": "b.example", "port": 8443}},
    ),
    ("http_request_origin", "route", {"sni": {"value": "c.example"}}),
    ("http_config_settings", "set_config", {"bic": False, "ssl": "strict", "autominify": {"css": True}}),
    ("http_config_settings", "set_config", {"security_level": "under_attack", "disable_apps": True}),
    ("http_request_cache_settings", "set_cache_settings", {"cache": False}),
    (
        "http_request_cache_settings",
        "set_cache_settings",
        {
            "cache": True,
            "edge_ttl": {
                "mode": "override_origin",
                "default": 3600,
                "status_code_ttl": [
                    {"value": -1, "status_code_range": {"from": 500, "to": 599}},
                    {"value": 60, "status_code": 404},
                ],
            },
            "browser_ttl": {"mode": "respect_origin"},
            "cache_key": {"custom_key": {"query_string": {"include": {"list": ["a", "b"]}}}},
        },
    ),
    (
        "http_response_compression",
        "compress_response",
        {"algorithms": [{"name": "zstd"}, {"name": "auto"}]},
    ),
    ("http_custom_errors", "serve_error", {"content": "<h1>Oh</h1>\n", "content_type": "text/html"}),
    ("http_custom_errors", "serve_error", {"asset_name": "page", "status_code": 500}),
    ("http_log_custom_fields", "log_custom_field", {"request_fields": [{"name": "x-trace"}]}),
]
# phase, action, parameters, pointer below them
BAD = [
    (CUSTOM_PHASE, "block", {"response": {**ANSWER, "status_code": 399}}, "/response/status_code"),
    (CUSTOM_PHASE, "block", {"response": {**ANSWER, "status_code": 500}}, "/response/status_code"),
    (CUSTOM_PHASE, "block", {"response": {"status_code": 403}}, "/response/content"),
    (CUSTOM_PHASE, "block", {"response": {**ANSWER, "content": "x" * 30_721}}, "/response/content"),
    (
        CUSTOM_PHASE,
        "block",
        {"response": {**ANSWER, "content_type": "a/b\r\nx: y"}},
        "/response/content_type",
    ),
    (CUSTOM_PHASE, "log", {"response": ANSWER}, "/response"),
    ("http_request_dynamic_redirect", "redirect", {}, ""),
    ("http_request_dynamic_redirect", "redirect", {"from_value": {}}, "/from_value/target_url"),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {"from_value": {"target_url": {}}},
        "/from_value/target_url",
    ),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {"from_value": {"target_url": {"value": "javascript:alert(1)"}}},
        "/from_value/target_url/value",
    ),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {"from_value": {"target_url": {"expression": "http.hots"}}},
        "/from_value/target_url/expression",
    ),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {"from_value": {"target_url": {"expression": "ip.src.asnum"}}},
        "/from_value/target_url/expression",
    ),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {"from_value": {"target_url": DYNAMIC, "status_code": 304}},
        "/from_value/status_code",
    ),
    (
        "http_request_dynamic_redirect",
        "redirect",
        {"from_value": {"target_url": DYNAMIC, "status_code": "301"}},
        "/from_value/status_code",
    ),
    ("http_request_transform", "rewrite", {"uri": {}}, "/uri"),
    (
        "http_request_transform",
        "rewrite",
        {"uri": {"path": {"value": "/a", "expression": "ssl"}}},
        "/uri/path",
    ),
    ("http_response_headers_transform", "rewrite", {"uri": {"path": {"value": "/a"}}}, "/uri"),
    ("http_request_late_transform", "rewrite", {"headers": {}}, "/headers"),
    ("http_request_late_transform", "rewrite", {"headers": {"a b": {"operation": "remove"}}}, "/headers/a b"),
    *(
        (
            "http_request_late_transform",
            "rewrite",
            {"headers": {name: {"operation": "remove"}}},
            f"/headers/{name}",
        )
        for name in ("Host", "Expect", "X-Forwarded-For", "CF-Ray")
    ),
    (
        "http_request_late_transform",
        "rewrite",
        {"headers": {"Transfer-Encoding": {"operation": "set", "value": "chunked"}}},
        "/headers/Transfer-Encoding",
    ),
    ("http_request_late_transform", "rewrite", {"headers": {"a": {"operation": "set"}}}, "/headers/a"),
    ("http_request_late_transform", "rewrite", {"headers": {"a": {"value": "b"}}}, "/headers/a/operation"),
    (
        "http_request_late_transform",
        "rewrite",
        {"headers": {"a": {"operation": "set", "value": "b\r\nSet-Cookie: c"}}},
        "/headers/a/value",
    ),
    (
        "http_request_late_transform",
        "rewrite",
        {"headers": {"a": {"operation": "remove", "value": "b"}}},
        "/headers/a",
    ),
    (
        "http_request_late_transform",
        "rewrite",
        {"headers": {f"a{n}": {"operation": "remove"} for n in range(31)}},
        "/headers",
    ),
    ("http_request_origin", "route", {}, ""),
    ("http_request_origin", "route", {"origin": {"port": 0}}, "/origin/port"),
    ("http_request_origin", "route", {"origin": {"port": True}}, "/origin/port"),
    ("http_request_origin", "route", {"host_header": "a b"}, "/host_header"),
    ("http_request_origin", "route", {"host_header": "a\r\nx: y"}, "/host_header"),
    ("http_config_settings", "set_config", {}, ""),
    ("http_config_settings", "set_config", {"ssl": "sometimes"}, "/ssl"),
    ("http_config_settings", "set_config", {"disable_apps": False}, "/disable_apps"),
    ("http_request_cache_settings", "set_cache_settings", {"edge_ttl": {"default": 1}}, "/edge_ttl/mode"),
    (
        "http_request_cache_settings",
        "set_cache_settings",
        {"edge_ttl": {"mode": "override_origin", "status_code_ttl": [{"value": 1}]}},
        "/edge_ttl/status_code_ttl/0",
    ),
    (
        "http_request_cache_settings",
        "set_cache_settings",
        {
            "edge_ttl": {
                "mode": "override_origin",
                "status_code_ttl": [{"value": 1, "status_code_range": {"from": 500, "to": 400}}],
            }
        },
        "/edge_ttl/status_code_ttl/0/status_code_range",
    ),
    ("http_request_cache_settings", "set_cache_settings", {"cache_reserve": {}}, "/cache_reserve"),
    (
        "http_request_cache_settings",
        "set_cache_settings",
        {"cache_reserve": {"eligible": True, "enabled": True}},
        "/cache_reserve",
    ),
    ("http_request_transform", "rewrite", {"uri": {"path": {"value": "new"}}}, "/uri/path/value"),
    ("http_response_compression", "compress_response", {"algorithms": []}, "/algorithms"),
    (
        "http_response_compression",
        "compress_response",
        {"algorithms": [{"name": "lzma"}]},
        "/algorithms/0/name",
    ),
    ("http_custom_errors", "serve_error", {"content": "a", "asset_name": "b"}, ""),
    ("http_custom_errors", "serve_error", {"content": "a", "status_code": 399}, "/status_code"),
    ("http_log_custom_fields", "log_custom_field", {"request_fields": [{}]}, "/request_fields/0/name"),
]
LIMITS_GOOD = [
    LIMIT,
    {**LIMIT, "mitigation_timeout": 600, "counting_expression": "http.response.code eq 404"},
    {**LIMIT, "counting_expression": "", "requests_to_origin": True},
    {**LIMIT, "characteristics": ['http.request.headers["x-key"]', "http.host", "cf.unique_visitor_id"]},
    {
        "characteristics": ["ip.src"],
        "period": 10,
        "score_per_period": 9,
        "score_response_header_name": "x-score",
    },
]
LIMITS_BAD = [
    ({}, "/characteristics"),
    ({**LIMIT, "characteristics": []}, "/characteristics"),
    ({**LIMIT, "characteristics": ["ip.source"]}, "/characteristics/0"),
    ({**LIMIT, "characteristics": ["ip.src", 'http.host eq "a"']}, "/characteristics/1"),
    ({**LIMIT, "period": 7}, "/period"),
    ({**LIMIT, "period": "60"}, "/period"),
    ({**LIMIT, "requests_per_period": 0}, "/requests_per_period"),
    ({**LIMIT, "requests_per_period": None}, ""),
    ({**LIMIT, "score_per_period": 1}, ""),
    ({**LIMIT, "score_response_header_name": "x"}, "/score_per_period"),
    ({**LIMIT, "requests_per_period": None, "score_per_period": 1}, "/score_response_header_name"),
    ({**LIMIT, "mitigation_timeout": -1}, "/mitigation_timeout"),
    ({**LIMIT, "counting_expression": "oops"}, "/counting_expression"),
    ({**LIMIT, "more": 1}, "/more"),
]


def read(phase, kind="zone", **rule):
    return read_rule({"expression": "true", **rule}, Place(phase), kind).definition


def refused(phase, kind="zone", **rule) -> RulesetRefused:
    with pytest.raises(RulesetRefused) as caught:
        read(phase, kind, **rule)
    return caught.value


@pytest.mark.parametrize(("phase", "action", "parameters"), GOOD)
def test_a_good_rule_is_stored_as_it_was_sent(phase, action, parameters):
    found = read(phase, action=action, action_parameters=parameters)

    assert found.get("action_parameters") == parameters
    assert (found["action"], found["enabled"], found["description"]) == (action, True, "")


@pytest.mark.parametrize(("phase", "action", "parameters", "pointer"), BAD)
def test_bad_parameters_are_refused_where_they_are_wrong(phase, action, parameters, pointer):
    assert (
        refused(phase, action=action, action_parameters=parameters).pointer == "/action_parameters" + pointer
    )


def test_every_action_has_a_good_rule_and_is_used_by_a_phase():
    used = {action for row in phases.TABLE.values() for kind in row[1:] for action in kind}

    assert used == rulesets_actions.TABLE.keys()
    assert {action for _, action, _ in GOOD} == used


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["zone", "root", "custom", "managed"])
def test_a_phase_takes_its_actions_and_no_other(phase, kind):
    allowed = phases.TABLE[phase].actions(kind)

    for action in [*rulesets_actions.TABLE, *rulesets_actions.MANAGED_ONLY]:
        if action not in allowed:
            error = refused(phase, kind, action=action)
            assert (error.code, error.pointer) == (20120, "/action")
            assert f"phase {phase} and kind {kind}" in error.message


@pytest.mark.parametrize("action", [row.name for row in rulesets_actions.TABLE.values() if row.needed])
def test_actions_that_mean_nothing_without_parameters_need_them(action):
    phase = next(row.name for row in phases.TABLE.values() if action in row.zone | row.root)
    kind = "zone" if action in phases.TABLE[phase].zone else "root"

    for absent in ({}, {"action_parameters": None}):
        error = refused(phase, kind, action=action, **absent)
        assert (error.code, error.pointer) == (20113, "/action_parameters")


def test_empty_parameters_of_actions_without_any_are_not_stored():
    assert "action_parameters" not in read(CUSTOM_PHASE, action="log", action_parameters={})


# Defaults


def test_skip_logs_unless_it_says_otherwise():
    skip = {"action": "skip", "action_parameters": {"ruleset": "current"}}

    assert read(CUSTOM_PHASE, **skip)["logging"] == {"enabled": True}
    assert read(CUSTOM_PHASE, **skip, logging={"enabled": False})["logging"] == {"enabled": False}
    assert "logging" not in read(CUSTOM_PHASE, action="block")
    assert read(CUSTOM_PHASE, action="block", logging={"enabled": True})["logging"] == {"enabled": True}


def test_execute_is_answered_with_the_latest_version():
    found = read(
        MANAGED_PHASE, action="execute", action_parameters={"id": ID, "overrides": {"enabled": False}}
    )

    assert list(found["action_parameters"].items()) == [
        ("id", ID),
        ("version", "latest"),
        ("overrides", {"enabled": False}),
    ]


def test_null_counts_as_absent_and_false_does_not():
    nulls = dict.fromkeys(
        ("id", "ref", "description", "enabled", "logging", "action_parameters", "ratelimit")
    )

    assert read(CUSTOM_PHASE, **block(**nulls)) == read(CUSTOM_PHASE, **block())
    assert read(CUSTOM_PHASE, **block(enabled=False))["enabled"] is False


@pytest.mark.parametrize("id_", ["x", ID[:31], ID + "0", "A" * 32, "0" * 31 + "g"])
def test_the_id_of_a_rule_is_one(id_):
    error = refused(CUSTOM_PHASE, **block(id=id_))

    assert (error.code, error.pointer) == (20121, "/id")
    assert refused(CUSTOM_PHASE, **block(id=1)).code == 10026
    assert read(CUSTOM_PHASE, **block(id="")) == read(CUSTOM_PHASE, **block())


REGEX_USES = [
    ([], 0),
    (block('http.host eq "a"'), 0),
    (block('http.host ~ "a" or http.host matches "b"'), 2),
    (block("true", description="matches ~"), 0),
    ({"ratelimit": {"counting_expression": 'http.host ~ "a"'}}, 1),
    ({"from_value": {"target_url": {"expression": 'regex_replace(http.host, "a", "b")'}}}, 1),
    ({"headers": {"expression": {"expression": 'regex_replace(http.host, "a", "b")'}}}, 1),
    ([block('http.host ~ "a"'), 1, None, block(['http.host ~ "a"'])], 1),
]


@pytest.mark.parametrize(("value", "uses"), REGEX_USES)
def test_regular_expressions_are_counted_where_expressions_stand(value, uses):
    assert regex_uses(value) == uses


def test_what_only_the_server_writes_may_be_sent_back():
    sent_back = {"version": "3", "last_updated": "2026-01-01T00:00:00Z", "categories": ["a"]}

    assert read(CUSTOM_PHASE, **block(**sent_back)) == read(CUSTOM_PHASE, **block())


def test_credentials_are_checked_by_two_expressions():
    check = {
        "username_expression": 'http.request.body.form["user"][0]',
        "password_expression": "sha256(http.host)",
    }

    assert read(CUSTOM_PHASE, **block(exposed_credential_check=check))["exposed_credential_check"] == check
    wrong = {**check, "password_expression": "http.host eq 1"}
    assert refused(CUSTOM_PHASE, **block(exposed_credential_check=wrong)).code == 20127


# Rate limits


@pytest.mark.parametrize("limit", LIMITS_GOOD)
def test_a_good_limit_is_stored_with_what_it_left_out(limit):
    found = read("http_ratelimit", action="block", ratelimit=limit)["ratelimit"]

    assert found == {"mitigation_timeout": 0, "requests_to_origin": False, **limit}


@pytest.mark.parametrize(("limit", "pointer"), LIMITS_BAD)
def test_a_bad_limit_is_refused_where_it_is_wrong(limit, pointer):
    assert refused("http_ratelimit", action="block", ratelimit=limit).pointer == "/ratelimit" + pointer


def test_only_rate_limits_limit_rates():
    skip = {"action": "skip", "action_parameters": {"ruleset": "current"}}

    assert refused("http_ratelimit", action="block").pointer == "/ratelimit"
    assert refused("http_ratelimit", **skip, ratelimit=LIMIT).pointer == "/ratelimit"
    assert refused(CUSTOM_PHASE, **block(ratelimit=LIMIT)).pointer == "/ratelimit"
    assert "ratelimit" not in read("http_ratelimit", **skip)
