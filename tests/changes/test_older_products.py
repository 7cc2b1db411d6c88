"""What ended on 2025-06-15 answers on the day before, over today's rulesets: one store, two faces."""

from datetime import date

import pytest

from edgestead.rest.routing import BEFORE
from tests.rest.test_rulesets_access import may
from tests.rest.tokens import ALL_ZONES, policy
from tests.support.api import LocalApi
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

DAY_BEFORE, DAY = date(2025, 6, 14), date(2025, 6, 15)
RATES = "http_ratelimit"
LOGIN = 'http.request.uri.path eq "/login"'
NO_ID = "f" * 32


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = LocalApi(tmp_path_factory.mktemp("older"), as_of=DAY_BEFORE, allow_as_of=True, managed=MANAGED)
    yield made
    made.close()


@pytest.fixture(scope="module")
def names():
    return (f"zone{number}.test" for number in range(1_000))


@pytest.fixture
def api(served):
    return served


@pytest.fixture
def zone(api, names):
    return f"/zones/{api.post('/zones', {'name': next(names)}).result['id']}"


@pytest.fixture
def rules(zone):
    return f"{zone}/firewall/rules"


@pytest.fixture
def filters(zone):
    return f"{zone}/filters"


@pytest.fixture
def newer(api, zone):
    """The rules of a phase as today's face has them."""

    def read(phase=CUSTOM_PHASE):
        return api.get(f"{zone}/rulesets/phases/{phase}/entrypoint").result["rules"]

    return read


@pytest.fixture
def put(api, zone):
    def write(*rules, phase=CUSTOM_PHASE):
        answer = api.put(f"{zone}/rulesets/phases/{phase}/entrypoint", {"rules": list(rules)})
        assert answer.status == 200, answer.json
        return answer.result["rules"]

    return write


def rule(action="block", expression=LOGIN, **more):
    return {"action": action, "filter": {"expression": expression}, **more}


def ids(answer):
    return [one["id"] for one in answer.result]


# Firewall rules and filters.


def test_a_firewall_rule_is_a_custom_rule_under_the_same_id(api, rules, newer):
    (made,) = api.post(rules, [rule(description="no way in", ref="mine")]).result
    (stored,) = newer()

    assert (stored["id"], stored["action"], stored["expression"]) == (made["id"], "block", LOGIN)
    assert (stored["description"], stored["enabled"], stored["ref"]) == ("no way in", True, "mine")
    assert made["filter"] == {"id": made["id"], "expression": LOGIN, "paused": False}
    assert (made["paused"], made["ref"]) == (False, "mine")
    assert api.get(f"{rules}/{made['id']}").result == made
    assert api.get(rules).result == [made]

    replaced = api.put(f"{rules}/{made['id']}", rule("log", paused=True) | {"filter": {"id": made["id"]}})
    assert (replaced.result["action"], replaced.result["paused"]) == ("log", True)
    (stored,) = newer()
    assert (stored["id"], stored["version"], stored["action"]) == (made["id"], "2", "log")
    assert (stored["enabled"], stored["ref"]) == (False, made["id"])
    assert api.delete(f"{rules}/{made['id']}").result == {"id": made["id"]}
    assert newer() == []


@pytest.mark.parametrize(
    ("older", "more", "action", "parameters"),
    [
        ("log", {}, "log", None),
        ("challenge", {}, "challenge", None),
        ("managed_challenge", {}, "managed_challenge", None),
        ("allow", {}, "skip", {"ruleset": "current"}),
        (
            "bypass",
            {"products": ["waf", "rateLimit", "securityLevel"]},
            "skip",
            {"phases": [MANAGED_PHASE, RATES], "products": ["waf", "rateLimit", "securityLevel"]},
        ),
    ],
)
def test_each_action_is_one_of_today_and_reads_as_it_was_written(
    api, rules, newer, older, more, action, parameters
):
    (made,) = api.post(rules, [rule(older, **more)]).result
    (stored,) = newer()

    assert (stored["action"], stored.get("action_parameters")) == (action, parameters)
    assert (made["action"], made.get("products", [])) == (older, more.get("products", []))


def test_custom_rules_are_firewall_rules_where_those_can_say_the_same(api, rules, put):
    response = {"status_code": 405, "content": "No.", "content_type": "text/plain"}
    stored = put(
        block(ref="mine"),
        skip(ruleset="current"),
        skip(phases=[RATES]),
        block("true", action_parameters={"response": response}),
    )

    found = api.get(rules).result

    assert [one["id"] for one in found] == [one["id"] for one in stored[:2]]
    assert [(one["action"], one.get("ref")) for one in found] == [("block", "mine"), ("allow", None)]


def test_rules_are_asked_by_priority_then_by_action_behind_access_rules(api, zone, rules, newer):
    api.post(
        f"{zone}/firewall/access_rules/rules",
        {"mode": "block", "configuration": {"target": "ip", "value": "192.0.2.7"}},
    )
    api.post(
        f"{zone}/firewall/ua_rules", {"mode": "block", "configuration": {"target": "ua", "value": "bot"}}
    )
    wanted = [("block", 5), ("block", None), ("log", None), ("allow", None), ("block", 1)]
    api.post(rules, [rule(action, priority=priority) for action, priority in wanted])

    found = [(one["action"], one.get("priority")) for one in api.get(rules).result]

    assert found == [("block", 1), ("block", 5), ("log", None), ("allow", None), ("block", None)]
    stored = [one["ref"].partition("/")[0] for one in newer()]
    assert (stored[0], stored[-1]) == ("access_rule", "ua_rule")
    last = api.get(rules).result[-1]
    api.patch(rules, [{"id": last["id"], "priority": 3}])
    assert [one.get("priority") for one in api.get(rules).result] == [1, 3, 5, None, None]
    api.patch(f"{rules}/{last['id']}", {"id": last["id"], "priority": None})
    again = api.get(f"{rules}/{last['id']}").result
    assert again == last | {name: again[name] for name in ("created_on", "modified_on")}


def test_a_filter_stands_alone_until_rules_name_it(api, rules, filters, newer):
    (made,) = api.post(filters, [{"expression": LOGIN, "description": "login", "ref": "f/1"}]).result
    (stored,) = newer()
    assert (stored["id"], stored["enabled"], api.get(rules).result) == (made["id"], False, [])
    assert made == {
        "id": made["id"],
        "expression": LOGIN,
        "paused": False,
        "description": "login",
        "ref": "f/1",
    }

    named = [
        {"action": action, "filter": {"id": made["id"]}, "description": action, "priority": 7, "ref": action}
        for action in ("log", "block")
    ]
    both = api.post(rules, named).result
    assert [one["filter"] for one in both] == [made, made]
    assert [one["expression"] for one in newer() if one["enabled"]] == [LOGIN, LOGIN]

    changed = api.put(f"{filters}/{made['id']}", made | {"expression": "ssl", "paused": True}).result
    assert (changed["expression"], changed["paused"]) == ("ssl", True)
    assert [(one["expression"], one["enabled"]) for one in newer()] == [("ssl", False)] * 3
    assert [one["paused"] for one in api.get(rules).result] == [False, False]
    api.put(f"{filters}/{made['id']}", made)
    assert [one["enabled"] for one in newer()].count(True) == 2
    listed = api.get(rules).result
    assert [(one["priority"], one["ref"], one["description"]) for one in listed] == [
        (7, "log", "log"),
        (7, "block", "block"),
    ]

    refused = api.delete(f"{filters}/{made['id']}")
    assert (refused.status, refused.codes) == (400, [10014])
    assert both[0]["id"] in refused.json["errors"][0]["message"]
    api.delete(f"{rules}/{both[0]['id']}?delete_filter_if_unused=true")
    assert ids(api.get(filters)) == [made["id"]]
    api.delete(f"{rules}?id={both[1]['id']}")
    assert ids(api.get(filters)) == [made["id"]]
    assert api.delete(f"{filters}?id={made['id']}").result == [{"id": made["id"]}]
    assert newer() == []


def test_a_request_is_one_version_however_many_rules_it_changes(api, rules, filters, newer, zone):
    def version():
        return int(api.get(f"{zone}/rulesets/phases/{CUSTOM_PHASE}/entrypoint").result["version"])

    (made,) = api.post(filters, [{"expression": LOGIN, "description": "login"}]).result
    api.post(rules, [{"action": "block", "filter": {"id": made["id"]}, "priority": 9 - n} for n in range(5)])
    before = version()

    api.put(f"{filters}/{made['id']}", made | {"expression": "ssl"})
    assert (version(), {one["expression"] for one in newer()}) == (before + 1, {"ssl"})
    assert [one["priority"] for one in api.get(rules).result] == [5, 6, 7, 8, 9]
    many = [one | {"paused": True} for one in api.get(rules).result]
    assert api.patch(rules, [{"id": one["id"], "paused": True} for one in many]).status == 200
    assert (version(), [one["paused"] for one in api.get(rules).result]) == (before + 2, [True] * 5)
    api.delete(f"{rules}?{'&'.join(f'id={one}' for one in (one['id'] for one in many))}")
    assert (version(), ids(api.get(filters))) == (before + 3, [made["id"]])
    refused = api.post(rules, [rule(), rule(expression="nothing.like eq 1")])
    assert (refused.status, version(), api.get(rules).result) == (400, before + 3, [])


def test_what_an_older_rule_has_no_member_for_stays(api, rules, put, newer):
    (stored,) = put(skip(ruleset="current") | {"logging": {"enabled": False}, "expression": LOGIN})

    changed = api.put(f"{rules}/{stored['id']}", rule("allow", "ssl")).result

    assert (changed["action"], changed["filter"]["expression"]) == ("allow", "ssl")
    assert newer()[0]["logging"] == {"enabled": False}


def test_a_filter_that_goes_with_the_last_rule_that_names_it(api, rules, newer):
    filter_ = {"expression": LOGIN, "description": "words of its own"}
    (made,) = api.post(rules, [{"action": "block", "filter": filter_}]).result
    assert made["filter"]["id"] != made["id"]
    assert len(newer()) == 2

    api.delete(f"{rules}/{made['id']}?delete_filter_if_unused=true")

    assert newer() == []


def test_a_rule_that_is_rewritten_by_todays_face_has_its_own_filter_then(api, zone, filters, rules, newer):
    (filter_,) = api.post(filters, [{"expression": LOGIN}]).result
    (made,) = api.post(rules, [{"action": "block", "filter": {"id": filter_["id"]}}]).result
    ruleset = api.get(f"{zone}/rulesets/phases/{CUSTOM_PHASE}/entrypoint").result
    stored = next(one for one in newer() if one["id"] == made["id"])
    path = f"{zone}/rulesets/{ruleset['id']}/rules/{made['id']}"
    assert api.patch(path, stored | {"expression": "ssl"}).status == 200

    found = api.get(f"{rules}/{made['id']}").result

    assert found["filter"] == {"id": made["id"], "expression": "ssl", "paused": False}
    assert api.get(f"{filters}/{filter_['id']}").result["expression"] == LOGIN


def test_an_older_version_of_the_ruleset_brings_the_rules_back(api, zone, rules, newer):
    made = api.post(rules, [rule(), rule("log", "ssl")]).result
    ruleset = f"{zone}/rulesets/{api.get(f'{zone}/rulesets/phases/{CUSTOM_PHASE}/entrypoint').result['id']}"
    before = api.get(ruleset).result
    api.put(f"{rules}/{made[0]['id']}", rule("log", "true"))
    assert api.get(f"{rules}/{made[0]['id']}").result["action"] == "log"

    old = api.get(f"{ruleset}/versions/{before['version']}").result
    api.put(ruleset, {"rules": old["rules"]})

    found = api.get(f"{rules}/{made[0]['id']}").result
    assert (found["action"], found["filter"]["expression"]) == ("block", LOGIN)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "1 to 25"),
        ([rule()] * 26, "1 to 25"),
        ([rule("redirect")], "action is one of"),
        ([rule("bypass")], "products"),
        ([rule(products=["waf"])], "products"),
        ([rule("bypass", products=["dns"])], "products are some of"),
        ([rule("bypass", products=["waf", "waf"])], "twice"),
        ([rule(priority=0)], "priority"),
        ([rule(priority=2**31)], "priority"),
        ([rule(ref="access_rule/ip/192.0.2.1")], "ref begins"),
        ([rule(ref="x" * 51)], "ref is"),
        ([rule(ref="a\nb")], "ref is"),
        ([rule(description="x" * 1025)], "description"),
        ([{"action": "block", "filter": {}}], "an expression"),
        ([rule(), rule("redirect")], "action is one of"),
        ([rule(expression="nothing.like eq 1")], ""),
        (rule(), ""),
    ],
)
def test_what_no_rule_can_be_is_refused_and_changes_nothing(api, rules, newer, put, body, said):
    put()
    answer = api.post(rules, body)

    assert answer.status == 400
    assert said in answer.json["errors"][0]["message"]
    assert newer() == []


def test_what_is_not_there_is_not_found(api, rules, filters, put):
    put(skip(phases=[RATES]))
    for path in (f"{rules}/{NO_ID}", f"{filters}/any-text"):
        for method, body in (
            ("GET", None),
            ("PUT", {"action": "log", "filter": {"id": NO_ID}, "expression": "ssl"}),
            ("DELETE", None),
        ):
            assert api.call(method, path, body).codes == [10001], (method, path)
    assert api.post(rules, [{"action": "log", "filter": {"id": NO_ID}}]).codes == [10001]
    assert api.delete(rules).status == 400


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "ab"),
        ("action=log", "a"),
        ("description=B", "b"),
        ("paused=true", "b"),
        ("per_page=1&page=2", "b"),
    ],
)
def test_lists_are_filtered_and_paged(api, rules, filters, query, found):
    api.post(rules, [rule("log", description="a"), rule(description="b", paused=True)])

    assert "".join(one["description"] for one in api.get(f"{rules}?{query}").result) == found
    assert len(api.get(f"{filters}?expression=LOGIN").result) == 2
    assert api.get(f"{filters}?expression=other").result == []


# Rate limits.


LIMIT = {
    "match": {
        "request": {"methods": ["GET", "POST"], "schemes": ["HTTPS"], "url": "www.example.com/login*"},
        "response": {"status": [401, 403]},
    },
    "threshold": 5,
    "period": 60,
    "action": {"mode": "ban", "timeout": 300},
    "description": "logins",
    "bypass": [{"name": "url", "value": "www.example.com/login/ok"}],
}
ANY = {"methods": ["_ALL_"], "schemes": ["_ALL_"], "url": "*"}


def limit(**more):
    return {"match": {"request": ANY}, "threshold": 5, "period": 60, "action": {"mode": "ban"}} | more


def test_a_rate_limit_is_a_rule_under_the_same_id(api, zone, newer):
    limits = f"{zone}/rate_limits"
    made = api.post(limits, LIMIT).result
    (stored,) = newer(RATES)

    page = 'concat(http.host, http.request.uri.path) wildcard "www.example.com/login'
    expression = f'http.request.method in {{"GET" "POST"}} and ssl and {page}*" and not ({page}/ok")'
    assert (stored["id"], stored["expression"], stored["action"]) == (made["id"], expression, "block")
    assert stored["ratelimit"] == {
        "characteristics": ["ip.src"],
        "period": 60,
        "requests_per_period": 5,
        "mitigation_timeout": 300,
        "requests_to_origin": False,
        "counting_expression": f"({expression}) and http.response.code in {{401 403}}",
    }
    assert {name: made[name] for name in LIMIT} == LIMIT
    assert made["disabled"] is False
    assert api.get(limits).result == [api.get(f"{limits}/{made['id']}").result] == [made]
    replaced = api.put(f"{limits}/{made['id']}", LIMIT | {"disabled": True, "threshold": 9}).result
    assert (replaced["id"], replaced["disabled"], replaced["threshold"]) == (made["id"], True, 9)
    assert (newer(RATES)[0]["enabled"], newer(RATES)[0]["version"]) == (False, "2")
    assert api.delete(f"{limits}/{made['id']}").result == {"id": made["id"]}
    assert newer(RATES) == []


@pytest.mark.parametrize(
    "body",
    [
        limit(),
        limit(action={"mode": "simulate", "timeout": 60}),
        limit(action={"mode": "managed_challenge"}),
        limit(action={"mode": "ban", "timeout": 10, "response": {"content_type": "text/plain", "body": "x"}}),
        limit(match={"request": ANY | {"schemes": ["HTTP"]}, "response": {"origin_traffic": True}}),
        limit(match={"request": ANY | {"schemes": ["HTTP", "HTTPS"]}}),
    ],
)
def test_a_rate_limit_reads_as_it_was_written(api, zone, body):
    made = api.post(f"{zone}/rate_limits", body).result

    timeout = body["action"].get("timeout", 0 if body["action"]["mode"] == "ban" else None)
    action = body["action"] | ({} if timeout is None else {"timeout": timeout})
    assert {name: made[name] for name in body} == body | {"action": action}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (limit(period=45), "period is one of 10, 60"),
        (limit(threshold=0), "threshold"),
        (limit(action={"mode": "block"}), "mode is one of"),
        (limit(action={"mode": "ban", "timeout": 86_401}), "timeout"),
        (limit(match={"request": ANY | {"url": "https://a.example/x"}}), "url is"),
        (limit(match={"request": ANY | {"url": 'a"b'}}), "url is"),
        (limit(match={"request": ANY | {"methods": ["BREW"]}}), "methods"),
        (limit(match={"request": ANY | {"schemes": ["FTP"]}}), "schemes"),
        (limit(match={"request": ANY, "response": {"status": [7]}}), "status"),
        (
            limit(match={"request": ANY, "headers": [{"name": "X", "op": "eq", "value": "y"}]}),
            "the only header",
        ),
        (limit(bypass=[{"name": "url", "value": "a b"}]), "bypass"),
        (limit(correlate={"by": "nat"}), "correlate"),
    ],
)
def test_what_the_phase_cannot_do_is_refused_with_its_reason(api, zone, body, said):
    answer = api.post(f"{zone}/rate_limits", body)

    assert (answer.status, answer.codes) == (400, [10014])
    assert said in answer.json["errors"][0]["message"]
    assert api.get(f"{zone}/rate_limits").result == []


def test_a_rate_rule_that_no_rate_limit_could_say_is_none(api, zone, put):
    ratelimit = {"characteristics": ["ip.src", "http.host"], "period": 60, "requests_per_period": 5}
    put(block("true", ratelimit=ratelimit), block(LOGIN, ratelimit=ratelimit), phase=RATES)

    assert api.get(f"{zone}/rate_limits").result == []


# Packages of the firewall.


def test_the_managed_ruleset_is_the_package_and_its_categories_are_groups(api, zone, newer):
    packages = f"{zone}/firewall/waf/packages"
    (package,) = api.get(packages).result
    assert (package["id"], package["status"], package["sensitivity"]) == (MANAGED.id, "inactive", "medium")
    assert package["action_mode"] == "block"
    one = f"{packages}/{package['id']}"

    changed = api.patch(one, {"sensitivity": "low", "action_mode": "simulate"}).result
    assert (changed["status"], changed["sensitivity"], changed["action_mode"]) == (
        "active",
        "low",
        "simulate",
    )
    (stored,) = newer(MANAGED_PHASE)
    assert stored["action_parameters"]["overrides"]["rules"] == [
        {"action": "log", "enabled": True, "id": ANOMALY.id, "score_threshold": 60}
    ]
    assert api.patch(one, {"sensitivity": "off"}).result["sensitivity"] == "off"

    (group,) = api.get(f"{one}/groups?name=attack-sqli").result
    assert (group["mode"], group["rules_count"], group["modified_rules_count"]) == ("on", 2, 0)
    assert api.patch(f"{one}/groups/{group['id']}", {"mode": "off"}).result["mode"] == "off"
    rules = api.get(f"{one}/rules?group_id={group['id']}").result
    assert [(rule["id"], rule["mode"]) for rule in rules] == [(entry.id, "off") for entry in ENTRIES[:2]]
    rule = f"{one}/rules/{ENTRIES[0].id}"
    assert api.patch(rule, {"mode": "on"}).result["mode"] == api.get(rule).result["mode"] == "on"
    assert api.get(f"{one}/groups/{group['id']}").result["modified_rules_count"] == 1

    (stored,) = newer(MANAGED_PHASE)
    overrides = stored["action_parameters"]["overrides"]
    assert overrides["categories"] == [{"category": "attack-sqli", "enabled": False}]
    assert overrides["rules"][-1] == {"id": ENTRIES[0].id, "enabled": True}
    assert overrides["rules"][0]["enabled"] is False


@pytest.mark.parametrize(
    ("path", "off", "on"),
    [
        ("", {"sensitivity": "off"}, {"sensitivity": "high"}),
        ("", {"action_mode": "simulate"}, {"sensitivity": "medium"}),
        ("/groups/{group}", {"mode": "off"}, {"mode": "on"}),
        (f"/rules/{ENTRIES[0].id}", {"mode": "off"}, {"mode": "on"}),
    ],
)
def test_what_turns_nothing_on_leaves_the_firewall_off(api, zone, newer, path, off, on):
    one = f"{zone}/firewall/waf/packages/{MANAGED.id}"
    group = api.get(f"{one}/groups?name=attack-sqli").result[0]["id"]
    path = one + path.format(group=group)

    changed = api.patch(path, off).result
    assert off.items() <= changed.items()
    assert api.get(path).result == changed
    assert [stored["enabled"] for stored in newer(MANAGED_PHASE)] == [False]
    assert api.get(one).result["status"] == "inactive"

    assert on.items() <= api.patch(path, on).result.items()
    assert [stored["enabled"] for stored in newer(MANAGED_PHASE)] == [True]
    api.patch(path, off)
    assert api.get(one).result["status"] == "active"


def test_a_package_shows_what_todays_face_wrote(api, zone, put):
    one = f"{zone}/firewall/waf/packages/{MANAGED.id}"
    put(execute(overrides={"enabled": False, "rules": [{"id": ENTRIES[0].id, "enabled": True}]}),
        phase=MANAGED_PHASE)  # fmt: skip

    modes = {rule["id"]: rule["mode"] for rule in api.get(f"{one}/rules").result}

    assert modes == {entry.id: "on" if entry is ENTRIES[0] else "off" for entry in (*ENTRIES, ANOMALY)}
    assert {group["mode"] for group in api.get(f"{one}/groups").result} == {"off"}
    assert api.get(one).result["sensitivity"] == "off"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {"sensitivity": "loud"}),
        ("", {"action_mode": "drop"}),
        (f"/rules/{ENTRIES[0].id}", {"mode": "block"}),
        (f"/rules/{ENTRIES[0].id}", {}),
    ],
)
def test_a_mode_that_there_was_not_is_refused(api, zone, path, body):
    assert api.patch(f"{zone}/firewall/waf/packages/{MANAGED.id}{path}", body).status == 400


def test_packages_groups_and_rules_that_are_not_there(api, zone):
    one = f"{zone}/firewall/waf/packages"
    for path in (f"{one}/{NO_ID}", f"{one}/{MANAGED.id}/groups/{NO_ID}", f"{one}/{MANAGED.id}/rules/981176"):
        assert api.get(path).codes == [10001]


# Overrides by page.


PAGES = ["www.example.com/upload*", "api.example.com/*"]


@pytest.fixture
def overrides(zone):
    return f"{zone}/firewall/waf/overrides"


@pytest.fixture
def sqli(api, zone):
    """The id of a group with two rules."""
    return api.get(f"{zone}/firewall/waf/packages/{MANAGED.id}/groups?name=attack-sqli").result[0]["id"]


def test_an_override_is_an_exception_before_what_executes_the_managed_ruleset(
    api, overrides, newer, put, sqli
):
    put(execute(), phase=MANAGED_PHASE)
    sent = {"urls": PAGES, "groups": {sqli: "disable"}, "rules": {ENTRIES[2].id: "disable"}, "priority": 7}

    made = api.post(overrides, sent | {"description": "uploads"}).result

    assert sent.items() <= made.items()
    assert (made["description"], made["paused"], made["rewrite_action"]) == ("uploads", False, {})
    exception, executing = newer(MANAGED_PHASE)
    page = 'concat(http.host, http.request.uri.path) wildcard "{}"'
    assert exception["expression"] == f"({' or '.join(map(page.format, PAGES))})"
    assert exception["action_parameters"] == {
        "rules": {MANAGED.id: [entry.id for entry in ENTRIES if entry in ENTRIES[:3]]}
    }
    assert (exception["id"], exception["action"], executing["action"]) == (made["id"], "skip", "execute")


def test_an_override_is_replaced_and_goes(api, overrides, newer):
    made = api.post(overrides, {"urls": PAGES, "rules": {ENTRIES[0].id: "disable"}}).result
    one = f"{overrides}/{made['id']}"

    changed = {"urls": PAGES[:1], "groups": {}, "rules": {ENTRIES[1].id: "disable"}, "paused": True}
    answer = api.put(one, changed).result
    assert changed.items() <= answer.items()
    assert api.get(one).result == answer == api.get(overrides).result[0]
    assert newer(MANAGED_PHASE)[0]["enabled"] is False

    assert api.delete(one).result == {"id": answer["id"]}
    assert (api.get(one).codes, api.get(overrides).result, newer(MANAGED_PHASE)) == ([10001], [], [])


def test_overrides_stand_by_their_priorities(api, overrides, sqli):
    for priority in (5, None, 1, 3):
        api.post(overrides, {"urls": PAGES, "groups": {sqli: "disable"}, "priority": priority})
    assert [one["priority"] for one in api.get(overrides).result] == [1, 3, 5, None]

    last = api.get(overrides).result[-1]
    api.put(f"{overrides}/{last['id']}", {"urls": PAGES, "groups": {sqli: "disable"}, "priority": 2})
    assert [one["priority"] for one in api.get(overrides).result] == [1, 2, 3, 5]


def test_another_exception_is_no_override(api, overrides, put):
    put(skip(rules={MANAGED.id: [ENTRIES[0].id]}), skip(ruleset="current"), phase=MANAGED_PHASE)

    assert api.get(overrides).result == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"urls": []}, "urls are 1 to"),
        ({"urls": ["https://www.example.com/"]}, "a url is"),
        ({"rules": {}}, "says disable"),
        ({"rules": {ENTRIES[0].id: "block"}}, "says disable"),
        ({"rewrite_action": {"block": "simulate"}}, "says disable"),
        ({"rules": {"981176": "disable"}}, "rules are ids"),
        ({"groups": {NO_ID: "disable"}}, "groups are ids"),
        ({"description": "x" * 1_025}, "description"),
        ({"priority": -1}, "priority"),
    ],
)
def test_an_override_that_an_exception_cannot_say_is_refused_with_its_reason(api, overrides, body, said):
    answer = api.post(overrides, {"urls": PAGES, "rules": {ENTRIES[0].id: "disable"}} | body)

    assert (answer.status, answer.codes) == (400, [10014])
    assert said in answer.json["errors"][0]["message"]
    assert api.get(overrides).result == []


# All of them.


PATHS = ("firewall/rules", "filters", "rate_limits", "firewall/waf/packages", "firewall/waf/overrides")


@pytest.mark.parametrize("path", PATHS)
def test_from_the_day_on_only_todays_face_has_the_rules(api, zone, rules, newer, path):
    api.post(rules, [rule()])

    gone = api.get(f"{zone}/{path}", headers={"edge-as-of": str(DAY)})

    assert (gone.status, gone.codes) == (410, [1199])
    assert len(newer()) == 1


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("group", "reads"),
    [("Firewall Services Read", True), ("Firewall Services Write", True), ("DNS Write", False)],
)
def test_who_may_read_and_write_them(api, zone, path, group, reads):
    policies = [policy(group, resources=ALL_ZONES)]
    made = api.post("/user/tokens", {"name": group, "policies": policies}).result
    auth = {"authorization": f"Bearer {made['value']}"}

    assert may(api.get(f"{zone}/{path}", auth=auth)) == reads


WHO_CHANGES = [
    (("Firewall Services Write",), False),
    (("Zone WAF Write",), False),
    (("Firewall Services Read", "Zone WAF Write"), False),
    (("Firewall Services Write", "Zone WAF Read"), False),
    (("Firewall Services Write", "Zone WAF Write"), True),
]


@pytest.mark.parametrize(("groups", "changes"), WHO_CHANGES)
def test_who_may_not_change_rulesets_changes_none_of_their_rules_by_a_view(
    api, zone, rules, newer, put, groups, changes
):
    (made,) = put(block(description="of the WAF's own people"))
    put(execute(), phase=MANAGED_PHASE)
    policies = [policy(*groups, resources=ALL_ZONES)]
    token = api.post("/user/tokens", {"name": "view", "policies": policies}).result
    auth = {"authorization": f"Bearer {token['value']}"}
    package = f"{zone}/firewall/waf/packages/{MANAGED.id}"

    answers = [
        api.patch(package, {"sensitivity": "off"}, auth=auth),
        api.post(f"{zone}/filters", [{"expression": LOGIN}], auth=auth),
        api.delete(f"{rules}/{made['id']}", auth=auth),
    ]

    assert [may(one) for one in answers] == [changes] * 3
    assert (made["id"] in [one["id"] for one in newer()]) is not changes


def test_every_change_by_a_view_of_an_entry_point_asks_for_both_groups():
    views = [row for row in BEFORE.values() if row.method != "GET"]

    assert len(views) == 21
    assert {(row.permission, row.besides) for row in views} == {("Firewall Services Write", "Zone WAF Write")}


def test_what_is_written_stands_in_the_audit_log(api, zone, rules):
    (made,) = api.post(rules, [rule()]).result
    api.delete(f"{rules}/{made['id']}")

    account = api.get(zone).result["account"]["id"]
    rows = api.get(f"/accounts/{account}/audit_logs?per_page=2").result
    assert [row["action"]["type"] for row in rows] == ["delete", "create"]
    assert {row["resource"]["type"] for row in rows} == {"rule"}
