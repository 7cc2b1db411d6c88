"""Every refusal of a ruleset: status, code, words and JSON pointer, and nothing changed."""

import pytest

from edgestead.model.refusals import ruleset
from edgestead.usecases.limits import CUSTOM_RULESETS_MAX
from tests.rest.refusals import refusal, words
from tests.rest.rulesets import ACCOUNT, NO_ID, entrypoint_of
from tests.usecases.ruleset_samples import (
    ANOMALY,
    CUSTOM_PHASE,
    ENTRIES,
    MANAGED,
    MANAGED_PHASE,
    block,
    execute,
    skip,
)

IN_FIRST = "/rules/0"
CUSTOM = {"name": "x", "kind": "custom", "phase": CUSTOM_PHASE}
PARAMETERS = f"{IN_FIRST}/action_parameters"


@pytest.fixture
def managed():
    return MANAGED


# Bodies of PUT entrypoint in the custom phase: body, code, pointer, words

BODIES = [
    (b"", 10026, None, "invalid JSON: input data was truncated"),
    (b"{", 10026, None, "invalid JSON: input data was truncated"),
    (b'{"rules": [}', 10026, None, "invalid JSON: invalid character (byte 11)"),
    (b"\xff", 10026, None, "invalid JSON"),
    (b"[" * 100 + b"]" * 100, 10026, None, "nested deeper than"),
    ([], 10026, "", "expected an object for body"),
    ({"kind": "zone"}, 10026, "/kind", 'invalid JSON: unknown field "kind"'),
    ({"phase": CUSTOM_PHASE}, 10026, "/phase", 'invalid JSON: unknown field "phase"'),
    ({"Rules": []}, 10026, "/Rules", 'unknown field "Rules"'),
    ({"a/b~c": 1}, 10026, "/a~1b~0c", 'unknown field "a/b~c"'),
    ({"rules": {}}, 10026, "/rules", "expected a list for rules"),
    ({"rules": [1]}, 10026, IN_FIRST, "expected an object for rules"),
    ({"name": ""}, 20121, "/name", "'' is not a valid value for name because it cannot be blank"),
    ({"name": 1}, 10026, "/name", "expected a string for name"),
    ({"name": "x" * 256}, 20121, "/name", "longer than 255 characters"),
    ({"name": "a\nb"}, 20121, "/name", "control character"),
    ({"description": "x" * 1025}, 20121, "/description", "longer than 1024"),
]

# First rules of the custom phase: rule, code, pointer, words

RULES = [
    ({}, 20114, f"{IN_FIRST}/action", "action is required"),
    ({"expression": "true"}, 20114, f"{IN_FIRST}/action", "action is required"),
    (
        {"expression": "true", "action_parameters": {}},
        20114,
        f"{IN_FIRST}/action",
        "action is required for action parameters",
    ),
    (block(action=""), 20120, f"{IN_FIRST}/action", "'' is not a valid value for action"),
    (
        block(action="explode"),
        20120,
        f"{IN_FIRST}/action",
        "'explode' is not a valid value for action because it is not an action",
    ),
    (
        block(action="rewrite"),
        20120,
        f"{IN_FIRST}/action",
        "'rewrite' is not a valid value for action because it is not possible to use the rewrite action in a"
        f" ruleset with phase {CUSTOM_PHASE} and kind zone",
    ),
    (block(action="score"), 20120, f"{IN_FIRST}/action", "not possible to use the score action"),
    (block(action=1), 10026, f"{IN_FIRST}/action", "expected a string for action"),
    (block(surprise=1), 10026, f"{IN_FIRST}/surprise", 'invalid JSON: unknown field "surprise"'),
    (block(score_threshold=25), 10026, f"{IN_FIRST}/score_threshold", "unknown field"),
    (block(position={"index": 1}), 10026, f"{IN_FIRST}/position", "unknown field"),
    (block(enabled="false"), 10026, f"{IN_FIRST}/enabled", "expected true or false for enabled"),
    (block(enabled=0), 10026, f"{IN_FIRST}/enabled", "expected true or false for enabled"),
    (block(logging={}), 10026, f"{IN_FIRST}/logging/enabled", 'missing field "enabled"'),
    (block(logging=True), 10026, f"{IN_FIRST}/logging", "expected an object for logging"),
    (
        block(id="x"),
        20121,
        f"{IN_FIRST}/id",
        "'x' is not a valid value for id because it must be 32 lower-case hexadecimal digits",
    ),
    (block(ref="r" * 256), 20121, f"{IN_FIRST}/ref", "longer than 255"),
    (
        {"action": "block"},
        20125,
        f"{IN_FIRST}/expression",
        "'' is not a valid value for expression because the expression cannot be blank",
    ),
    (block(""), 20125, f"{IN_FIRST}/expression", "cannot be blank"),
    (block(" \n"), 20125, f"{IN_FIRST}/expression", "cannot be blank"),
    (block(1), 10026, f"{IN_FIRST}/expression", "expected a string for expression"),
    (
        block('http.host eq "a" and http.hots eq "b"'),
        20127,
        f"{IN_FIRST}/expression",
        '\'http.host eq "a" and http.hots eq "b"\' is not a valid value for expression because could'
        " not parse"
        " filter expression: Filter parsing error (1:22):\n"
        'http.host eq "a" and http.hots eq "b"\n'
        "                     ^^^^^^^^^ unknown identifier\n"
        "did you mean http.host?",
    ),
    (
        block('true and\nip.src eq "1.2.3.4"'),
        20127,
        f"{IN_FIRST}/expression",
        'Filter parsing error (2:11):\nip.src eq "1.2.3.4"\n          ^',
    ),
    (block('http.host eq "' + "x" * 4100 + '"'), 20127, f"{IN_FIRST}/expression", "4096"),
    (block("ip.src in $office"), 20127, f"{IN_FIRST}/expression", "could not find list $office"),
    (block('http.host matches "(?=x)"'), 20127, f"{IN_FIRST}/expression", "regex parse error"),
    (
        block("http.response.code eq 404"),
        20127,
        f"{IN_FIRST}/expression",
        "unknown identifier\nhttp.response.code exists in response phases only",
    ),
    (block("(" * 200 + "ssl" + ")" * 200), 20127, f"{IN_FIRST}/expression", "maximum nesting depth exceeded"),
    (
        {"action": "skip", "expression": "true"},
        20113,
        PARAMETERS,
        "action parameters are required for the skip action",
    ),
    (block(action_parameters={"id": NO_ID}), 10026, f"{PARAMETERS}/id", 'invalid JSON: unknown field "id"'),
    (block(action_parameters=[]), 10026, PARAMETERS, "expected an object for action_parameters"),
    (
        block(ratelimit={"characteristics": ["ip.src"], "period": 60, "requests_per_period": 1}),
        20121,
        f"{IN_FIRST}/ratelimit",
        "does not limit rates",
    ),
    (
        block(exposed_credential_check={"username_expression": "http.host"}),
        10026,
        f"{IN_FIRST}/exposed_credential_check/password_expression",
        "missing field",
    ),
]

# Parameters of execute in the managed phase: parameters, code, pointer below them, words

EXECUTES = [
    ({}, 10026, "/id", 'missing field "id"'),
    ({"id": "x"}, 20121, "/id", "32 lower-case hexadecimal digits"),
    ({"id": NO_ID}, 20128, "/id", "there is no such ruleset"),
    ({"version": "6"}, 20128, "/version", "the loaded version is 7"),
    ({"version": "newest"}, 20121, "/version", "latest or a number"),
    ({"version": 7}, 10026, "/version", "expected a string"),
    ({"overrides": {}}, 20121, "/overrides", "it cannot be empty"),
    ({"overrides": {"action": "allow"}}, 20121, "/overrides/action", "must be one of block"),
    ({"overrides": {"enabled": "no"}}, 10026, "/overrides/enabled", "expected true or false"),
    ({"overrides": {"more": 1}}, 10026, "/overrides/more", "unknown field"),
    ({"overrides": {"sensitivity_level": "low"}}, 20121, "/overrides/sensitivity_level", "DDoS"),
    (
        {"overrides": {"categories": [{"category": "paranoia-level-5", "enabled": False}]}},
        20128,
        "/overrides/categories/0/category",
        "no rule of the ruleset has this category",
    ),
    (
        {"overrides": {"categories": [{"category": "attack-xss"}]}},
        20121,
        "/overrides/categories/0",
        "because it overrides nothing: action, enabled are missing",
    ),
    (
        {"overrides": {"categories": [{"enabled": False}]}},
        10026,
        "/overrides/categories/0/category",
        "missing field",
    ),
    (
        {"overrides": {"rules": [{"id": ENTRIES[0].id, "enabled": False}, {"id": NO_ID, "enabled": False}]}},
        20128,
        "/overrides/rules/1/id",
        "the ruleset has no such rule",
    ),
    (
        {"overrides": {"rules": [{"id": ANOMALY.id}]}},
        20121,
        "/overrides/rules/0",
        "because it overrides nothing: action, enabled, score_threshold are missing",
    ),
    (
        {"overrides": {"rules": [{"id": ANOMALY.id, "action": "explode"}]}},
        20121,
        "/overrides/rules/0/action",
        "'explode' is not a valid value for action because it must be one of",
    ),
    (
        {"overrides": {"rules": [{"id": ANOMALY.id, "score_threshold": 0}]}},
        20121,
        "/overrides/rules/0/score_threshold",
        "must be from 1",
    ),
    (
        {"overrides": {"rules": [{"id": ANOMALY.id, "score_threshold": 25.5}]}},
        10026,
        "/overrides/rules/0/score_threshold",
        "expected a whole number",
    ),
    (
        {"overrides": {"rules": [{"id": ENTRIES[0].id, "score_threshold": 25}]}},
        20121,
        "/overrides/rules/0/score_threshold",
        "only the anomaly rule",
    ),
    ({"matched_data": {}}, 10026, "/matched_data/public_key", "missing field"),
]

SKIPS = [
    ({}, "", "it cannot be empty"),
    ({"ruleset": "other"}, "/ruleset", "must be one of current"),
    ({"rulesets": [NO_ID]}, "/rulesets/0", "there is no such ruleset"),
    ({"rulesets": []}, "/rulesets", "from 1 to"),
    ({"rulesets": [MANAGED.id], "ruleset": "current"}, "/rulesets", "cannot stand beside ruleset"),
    ({"rulesets": [MANAGED.id], "phases": ["http_ratelimit"]}, "/rulesets", "cannot stand beside phases"),
    (
        {"rulesets": [MANAGED.id], "rules": {MANAGED.id: [ANOMALY.id]}},
        "/rulesets",
        "cannot stand beside rules",
    ),
    ({"rules": {}}, "/rules", "from 1 to"),
    ({"rules": {NO_ID: [ANOMALY.id]}}, f"/rules/{NO_ID}", "there is no such ruleset"),
    ({"rules": {MANAGED.id: [ANOMALY.id, NO_ID]}}, f"/rules/{MANAGED.id}/1", "has no such rule"),
    ({"phases": ["http_nothing"]}, "/phases/0", "must be one of"),
    ({"products": ["ratelimit"]}, "/products/0", "must be one of bic, hot, rateLimit"),
]


@pytest.mark.parametrize(("body", "code", "pointer", "reason"), BODIES)
def test_a_body_that_is_none_is_refused(api, rulesets, body, code, pointer, reason):
    answer = api.put(entrypoint_of(rulesets), body)

    assert refusal(answer) == (400, code, pointer)
    assert reason in words(answer)
    assert api.get(entrypoint_of(rulesets)).status == 404


@pytest.mark.parametrize(("rule", "code", "pointer", "reason"), RULES)
def test_a_rule_that_is_wrong_is_refused(api, rulesets, rule, code, pointer, reason):
    answer = api.put(entrypoint_of(rulesets), {"rules": [rule]})

    assert refusal(answer) == (400, code, pointer)
    assert reason in words(answer)
    assert api.get(entrypoint_of(rulesets)).status == 404


@pytest.mark.parametrize(("parameters", "code", "pointer", "reason"), EXECUTES)
def test_an_execute_that_is_wrong_is_refused(api, rulesets, parameters, code, pointer, reason):
    whole = {"id": MANAGED.id, **parameters} if parameters else {}
    rule = {"action": "execute", "expression": "true", "action_parameters": whole}
    answer = api.put(entrypoint_of(rulesets, MANAGED_PHASE), {"rules": [rule]})

    assert refusal(answer) == (400, code, PARAMETERS + pointer)
    assert reason in words(answer)


@pytest.mark.parametrize(("parameters", "pointer", "reason"), SKIPS)
def test_a_skip_that_is_wrong_is_refused(api, rulesets, parameters, pointer, reason):
    rule = {"action": "skip", "expression": "true", "action_parameters": parameters}

    answer = api.put(entrypoint_of(rulesets), {"rules": [rule]})

    assert refusal(answer)[2] == PARAMETERS + pointer
    assert reason in words(answer)


def test_a_rule_by_itself_has_pointers_without_the_list(api, rulesets):
    made = api.put(entrypoint_of(rulesets), {"rules": [block()]}).result
    rules = f"{rulesets}/{made['id']}/rules"

    for answer in (
        api.post(rules, {"action": "block"}),
        api.patch(f"{rules}/{made['rules'][0]['id']}", {"action": "block", "enabled": True}),
    ):
        assert refusal(answer) == (400, 20125, "/expression")
    assert api.get(entrypoint_of(rulesets)).result == made


# Kinds and phases


def test_a_second_entry_point_is_refused_with_the_known_code(api, rulesets):
    body = {"name": "second", "kind": "zone", "phase": MANAGED_PHASE}
    api.put(entrypoint_of(rulesets, MANAGED_PHASE), {})

    answer = api.post(rulesets, body)

    assert refusal(answer) == (400, 20217, "/kind")
    assert words(answer) == (
        "'zone' is not a valid value for kind because exceeded maximum number of zone rulesets for phase "
        + MANAGED_PHASE
    )


def test_there_is_an_end_of_custom_rulesets(api):
    body = {"name": "x", "kind": "custom", "phase": CUSTOM_PHASE}
    for _ in range(CUSTOM_RULESETS_MAX):
        assert api.post(ACCOUNT, body).status == 200

    assert refusal(api.post(ACCOUNT, body)) == (400, 20217, "/kind")


KINDS = [
    ("zone", "root"),
    ("zone", "custom"),
    ("zone", "managed"),
    ("zone", "x"),
    ("account", "zone"),
    ("account", "managed"),
]


@pytest.mark.parametrize(("scope", "kind"), KINDS)
def test_each_scope_has_its_kinds(api, rulesets, scope, kind):
    path = rulesets if scope == "zone" else ACCOUNT

    answer = api.post(path, {"name": "x", "kind": kind, "phase": CUSTOM_PHASE})

    assert refusal(answer) == (400, 20121, "/kind")


@pytest.mark.parametrize("missing", ["name", "kind", "phase"])
def test_a_new_ruleset_names_itself(api, rulesets, missing):
    body = {"name": "x", "kind": "zone", "phase": CUSTOM_PHASE}
    del body[missing]

    assert refusal(api.post(rulesets, body)) == (400, 10026, f"/{missing}")


def test_a_phase_that_is_none_is_refused(api, rulesets):
    for method in ("GET", "PUT"):
        answer = api.call(
            method, entrypoint_of(rulesets, "http_request_nothing"), {} if method == "PUT" else None
        )
        assert refusal(answer) == (400, 20102, None)
        assert words(answer) == 'phase "http_request_nothing" is not accessible in this API'
    assert refusal(api.get(f"{entrypoint_of(rulesets, 'x')}/versions")) == (400, 20102, None)
    assert refusal(api.post(rulesets, {"name": "x", "kind": "zone", "phase": "x"})) == (400, 20102, "/phase")
    assert refusal(api.put(entrypoint_of(rulesets, "ddos_l4"), {})) == (400, 20102, None)


def test_a_root_of_a_firewall_phase_executes_and_skips_but_does_not_block(api):
    for rule in (execute(api.post(ACCOUNT, CUSTOM).result["id"]), skip(phases=["http_ratelimit"])):
        assert api.put(entrypoint_of(ACCOUNT), {"rules": [rule]}).status == 200

    answer = api.put(entrypoint_of(ACCOUNT), {"rules": [block()]})

    assert refusal(answer) == (400, 20120, f"{IN_FIRST}/action")
    assert words(answer) == (
        "'block' is not a valid value for action because it is not possible to use the block action in a "
        f"ruleset with phase {CUSTOM_PHASE} and kind root"
    )


@pytest.mark.parametrize(("member", "other"), [("name", "x"), ("kind", "root"), ("phase", MANAGED_PHASE)])
def test_what_a_ruleset_is_never_changes(api, rulesets, member, other):
    made = api.put(entrypoint_of(rulesets), {}).result

    answer = api.put(f"{rulesets}/{made['id']}", {member: other, "rules": []})

    assert refusal(answer) == (400, 20121, f"/{member}")
    assert f"it cannot change from '{made[member]}'" in words(answer)


def test_an_entry_point_keeps_its_name(api, rulesets):
    api.put(entrypoint_of(rulesets), {"name": "mine"})

    assert api.put(entrypoint_of(rulesets), {"name": "mine"}).status == 200
    assert refusal(api.put(entrypoint_of(rulesets), {"name": "other"})) == (400, 20121, "/name")


# Identity


def test_two_rules_with_one_name_are_refused(api, rulesets):
    made = api.put(entrypoint_of(rulesets), {"rules": [block(ref="a"), block(ref="b")]}).result
    a, b = made["rules"]
    path = f"{rulesets}/{made['id']}/rules"

    assert refusal(api.put(entrypoint_of(rulesets), {"rules": [block(ref="a"), block(ref="a")]})) == (
        400,
        20130,
        "/rules/1/id",
    )
    assert refusal(api.put(entrypoint_of(rulesets), {"rules": [block(ref="c"), block(ref="c")]})) == (
        400,
        20130,
        "/rules/1/ref",
    )
    assert refusal(api.post(path, block(ref="b"))) == (400, 20130, "/ref")
    assert refusal(api.post(path, block(id=b["id"]))) == (400, 20130, "/id")
    assert refusal(api.patch(f"{path}/{a['id']}", block(ref="b"))) == (400, 20130, "/ref")
    assert refusal(api.patch(f"{path}/{a['id']}", block(id=b["id"]))) == (400, 20130, "/id")
    assert api.get(entrypoint_of(rulesets)).result == made


# Not found


def test_what_is_not_there_is_404(api, rulesets):
    made = api.put(entrypoint_of(rulesets), {"rules": [block()]}).result
    one = f"{rulesets}/{made['id']}"

    assert refusal(api.get(entrypoint_of(rulesets, MANAGED_PHASE))) == (404, 10003, None)
    assert words(api.get(entrypoint_of(rulesets, MANAGED_PHASE))) == (
        f"could not find entrypoint ruleset in the {MANAGED_PHASE} phase"
    )
    for method, body in (("GET", None), ("PUT", {"rules": []}), ("DELETE", None)):
        assert refusal(api.call(method, f"{rulesets}/{NO_ID}", body)) == (404, 10001, None)
    assert refusal(api.post(f"{rulesets}/{NO_ID}/rules", block())) == (404, 10001, None)
    assert refusal(api.patch(f"{one}/rules/{NO_ID}", block())) == (404, 10002, None)
    assert refusal(api.delete(f"{one}/rules/{NO_ID}")) == (404, 10002, None)
    assert refusal(api.delete(f"{one}/versions/9")) == (404, 10004, None)
    assert api.get(f"{rulesets}/short").codes == [7003, 7000]


def test_a_zone_or_account_that_is_not_there(api, rulesets):
    assert refusal(api.get(f"/zones/{NO_ID}/rulesets")) == (404, 1001, None)
    assert refusal(api.put(entrypoint_of(f"/zones/{NO_ID}/rulesets"), {})) == (404, 1001, None)
    assert refusal(api.get(f"/accounts/{NO_ID}/rulesets")) == (403, 10000, None)
    assert refusal(
        api.post(f"/accounts/{NO_ID}/rulesets", {"name": "x", "kind": "root", "phase": CUSTOM_PHASE})
    ) == (
        403,
        10000,
        None,
    )


# References between rulesets


def test_a_ruleset_executes_only_its_own_phase(api, rulesets):
    other = api.post(ACCOUNT, {"name": "x", "kind": "custom", "phase": "http_ratelimit"}).result["id"]

    for id_ in (MANAGED.id, other):
        answer = api.put(entrypoint_of(rulesets), {"rules": [execute(id_)]})
        assert refusal(answer) == (400, 20128, f"{PARAMETERS}/id")
        assert "the ruleset is in phase" in words(answer)


def test_a_version_of_more_than_64_bits_is_none(api, rulesets):
    custom = api.post(ACCOUNT, {"name": "x", "kind": "custom", "phase": CUSTOM_PHASE}).result["id"]

    answer = api.put(entrypoint_of(rulesets), {"rules": [execute(custom, version="9" * 19)]})

    assert refusal(answer) == (400, 20121, f"{PARAMETERS}/version")


def test_a_custom_ruleset_has_versions_and_no_overrides(api, rulesets):
    custom = api.post(ACCOUNT, {"name": "x", "kind": "custom", "phase": CUSTOM_PHASE}).result["id"]

    missing = api.put(entrypoint_of(rulesets), {"rules": [execute(custom, version="9" * 18)]})
    overridden = api.put(entrypoint_of(rulesets), {"rules": [execute(custom, overrides={"enabled": False})]})

    assert refusal(missing) == (400, 20128, f"{PARAMETERS}/version")
    assert refusal(overridden) == (400, 20121, f"{PARAMETERS}/overrides")


def test_custom_rulesets_do_not_execute_one_another(api):
    body = {"name": "x", "kind": "custom", "phase": MANAGED_PHASE}
    inner = api.post(ACCOUNT, body).result["id"]

    answer = api.post(ACCOUNT, {**body, "rules": [execute(inner)]})

    assert refusal(answer) == (400, 20128, f"{PARAMETERS}/id")
    assert api.post(ACCOUNT, {**body, "rules": [execute(MANAGED.id)]}).status == 200


def test_the_account_of_another_zone_is_another_account(api, rulesets):
    entry = api.put(entrypoint_of(rulesets), {}).result["id"]

    assert refusal(api.put(entrypoint_of(rulesets), {"rules": [execute(entry)]})) == (
        400,
        20128,
        f"{PARAMETERS}/id",
    )


# The table itself


def test_every_refusal_has_a_code_of_its_own_where_clients_tell_them_apart():
    own = {
        name: error.code
        for name, error in vars(ruleset).items()
        if isinstance(error, type) and error.__module__ == ruleset.__name__
    }

    shared = {"InvalidJson": "UnknownField", "TooManyRules": "RulesetExists"}
    told_apart = [code for name, code in own.items() if name not in shared]
    assert len(told_apart) == len(set(told_apart))
    assert all(own[one] == own[other] for one, other in shared.items())
