"""Pages of rules: the editor, trying expressions and requests, and the managed rules with their replay."""

import json

import msgspec
import pytest

from edgestead.usecases.event_index import Kinds
from edgestead.web.pages import trial, waf
from edgestead.web.pages.waf import Wanted
from tests.web.test_rows import PAGE_BYTES_MAX

CUSTOM = "http_request_firewall_custom"
LEVELS = {"first": 1, "second": 2, "third": 3}


@pytest.fixture
def path(zone):
    return f"/ui/zones/{zone}/rules"


def rules(visitor, path, phase=CUSTOM):
    phases = json.loads(visitor.get(f"{path}.json").text)["phases"]
    return next(one["rules"] for one in phases if one["phase"] == phase)


def add(visitor, path, phase=CUSTOM, **fields):
    usual = {"action": "block", "expression": 'http.host eq "a"', "description": ""}
    return visitor.post(f"{path}/{phase}/new", **(usual | fields))


def test_rules_are_added_switched_moved_changed_and_deleted(visitor, path):
    for words in ("first", "second"):
        assert "Done." in add(visitor, path, description=words).words
    first, second = rules(visitor, path)
    assert (first["description"], first["hits"]) == ("first", 0)

    def act(what, rule):
        return visitor.post(path, what=what, phase=CUSTOM, rule=rule["id"])

    act("off", first)
    act("down", first)
    assert [(one["description"], one["enabled"]) for one in rules(visitor, path)] == [
        ("second", True),
        ("first", False),
    ]
    editor = f"{path}/{CUSTOM}/{second['id']}"
    assert 'value="second"' in visitor.get(editor).text
    changed = {"action": "log", "expression": "ssl", "description": "changed"}
    visitor.post(editor, **changed)
    act("delete", first)
    (left,) = rules(visitor, path)
    assert {name: left[name] for name in changed} == changed
    assert act("delete", first).status == 404


def test_a_page_of_many_rules_is_light_and_leads_to_the_others(visitor, path, zone):
    server = visitor.server
    (found,) = server.call("GET", f"/zones?name={zone}").result
    expression = " or ".join(f'http.request.uri.path contains "/some/longer/path/{n}"' for n in range(20))
    for phase, action in ((CUSTOM, "block"), ("http_request_firewall_managed", "skip")):
        more = {"action_parameters": {"ruleset": "current"}} if action == "skip" else {}
        sent = [
            {"action": action, "expression": expression, "description": f'"{phase}" {n} ' + "<" * 100, **more}
            for n in range(60)
        ]
        entry = f"/zones/{found['id']}/rulesets/phases/{phase}/entrypoint"
        assert server.call("PUT", entry, {"rules": sent}).status == 200
    seen = []
    files = [visitor.get(f"/ui/static/{name}") for name in ("page.js", "style.css")]
    for number in range(1, 9):
        page = visitor.get(f"{path}?page={number}")
        sizes = [len(one.text.encode()) for one in (page, *files)]
        assert sum(sizes) < PAGE_BYTES_MAX, sizes
        assert (f"?page={number + 1}" in page.text) is (number < 8)
        phases = json.loads(visitor.get(f"{path}.json?page={number}").text)["phases"]
        seen += [(one["phase"], rule["place"]) for one in phases for rule in one["rules"]]
    assert seen == [(phase, n) for phase in (CUSTOM, "http_request_firewall_managed") for n in range(1, 61)]
    first, *_ = (rule for one in phases for rule in one["rules"])
    moved = visitor.post(
        f"{path}?page=8", what="off", phase="http_request_firewall_managed", rule=first["id"]
    )
    assert "Page 8 of 8, 120 in all" in moved.words


def test_what_the_editor_does_not_speak_of_stays(visitor, path, zone):
    check = {"username_expression": "http.host", "password_expression": "http.user_agent"}
    server = visitor.server
    (found,) = server.call("GET", f"/zones?name={zone}").result
    entry = f"/zones/{found['id']}/rulesets/phases/{CUSTOM}/entrypoint"
    sent = {"action": "block", "expression": "ssl", "exposed_credential_check": check}
    (rule,) = server.call("PUT", entry, {"rules": [sent]}).result["rules"]

    for what in ("off", "on", "down"):
        visitor.post(path, what=what, phase=CUSTOM, rule=rule["id"])
    visitor.post(f"{path}/{CUSTOM}/{rule['id']}", action="log", expression="ssl", description="changed")

    (rule,) = server.call("GET", entry).result["rules"]
    assert (rule["action"], rule["exposed_credential_check"]) == ("log", check)


def test_rules_of_other_phases_have_their_parameters(visitor, path):
    page = visitor.get(f"{path}/http_request_dynamic_redirect/new")
    assert "from_value" in page.text
    moved = {"from_value": {"target_url": {"value": "https://b.example/"}, "status_code": 301}}
    done = add(
        visitor,
        path,
        "http_request_dynamic_redirect",
        action="redirect",
        action_parameters=json.dumps(moved),
    )
    assert "Done." in done.words
    (rule,) = rules(visitor, path, "http_request_dynamic_redirect")
    assert rule["action_parameters"]["from_value"]["status_code"] == 301
    wrong = add(visitor, path, "http_request_origin", action="route", action_parameters="{")
    assert (wrong.status, "This is no JSON" in wrong.words) == (400, True)
    assert visitor.get(f"{path}/none/new").status == 404


def test_a_mistake_in_an_expression_is_shown_with_its_place(visitor, path):
    wrong = add(visitor, path, expression="http.host eq 1 and\nhttp.hots eq 1")
    assert wrong.status == 400
    assert "http.hots eq 1</textarea>" in wrong.text
    assert "Line " in wrong.words

    checked = visitor.post(f"{path}/check", phase=CUSTOM, expression="ssl and\nhttp.hots eq 1")
    assert "Line 2, character 1: unknown identifier" in checked.words
    assert "did you mean http.host" in checked.words
    right = visitor.post(f"{path}/check", phase=CUSTOM, expression="ssl")
    assert "The expression is understood" in right.words
    response = visitor.post(f"{path}/check", phase=CUSTOM, expression="http.response.code eq 200")
    assert "Line 1" in response.words


def test_fields_have_a_meaning():
    known = {one["name"]: one for one in trial.fields(CUSTOM)}

    assert known["http.user_agent"]["about"] == "the User-Agent header: which program asks"
    assert "http.response.code" not in known
    assert [name for name, one in known.items() if not one["about"]] == []


def test_a_request_is_tried_and_not_sent(visitor, path, zone):
    stops = 'http.request.uri.path eq "/x" and ip.src eq 192.0.2.9'
    add(visitor, path, description="stops", expression=stops)
    add(visitor, path, description="behind", expression='http.user_agent contains "curl"', action="log")
    asked = {"url": f"http://www.{zone}/x", "method": "GET", "client": "192.0.2.9", "body": ""}
    asked |= {"header_lines": "User-Agent: curl/8\nX: y", "expression": ""}

    found = visitor.post(f"{path}/try", **asked)
    assert "1 yes block stops" in found.words
    assert "2 yes, not reached log behind" in found.words
    other = visitor.post(f"{path}/try", **(asked | {"client": "192.0.2.1"}))
    assert "1 no block stops" in other.words
    assert (
        "1 yes log this expression"
        in visitor.post(f"{path}/try", **(asked | {"expression": "not ssl"})).words
    )
    assert "The edge answers 403: the rule stops." in found.words
    assert "not reached: the rule stops" in found.words
    assert "The origin is asked." in other.words
    for wrong in ({"url": "x y"}, {"client": "me"}, {"header_lines": "none"}, {"expression": "http.hots"}):
        refused = visitor.post(f"{path}/try", **(asked | wrong))
        assert refused.status == 400, wrong
        assert 'class="errors"' in refused.text


def test_a_trial_knows_the_accounts_rules_where_they_may_be_read(visitor, path, zone):
    server = visitor.server
    (found,) = server.call("GET", f"/zones?name={zone}").result
    add(visitor, path, description="of the zone")
    entry = f"/accounts/{found['account']['id']}/rulesets/phases/http_request_dynamic_redirect/entrypoint"
    to = {"from_value": {"target_url": {"value": "https://x.example/"}, "status_code": 302}}
    sent = {"action": "redirect", "expression": f'http.host eq "{zone}"', "action_parameters": to}
    server.call("PUT", entry, {"rules": [sent]})
    asked = {"url": f"http://{zone}/", "method": "GET", "client": "192.0.2.9", "body": "", "header_lines": ""}
    try:
        page = visitor.post(f"{path}/try", **asked, expression="")
    finally:
        server.call("PUT", entry, {"rules": []})
    assert "Redirects, account 1 yes redirect" in page.words
    assert "answers 302 to https://x.example/" in page.words


def kind(count, stopped, **scores):
    found = [{"rule_id": rule, "score": score} for rule, score in scores.items()]
    newest = dict.fromkeys(("id", "occurred_on", "method", "host", "path", "client"), "")
    return {"count": count, "stopped": stopped, "scores": found, "newest": newest}


@pytest.mark.parametrize(
    ("level", "threshold", "action", "let_in", "stopped"),
    [
        (4, 5, "block", 0, 0),
        (1, 5, "block", 1, 0),
        (4, 6, "block", 1, 0),
        (4, 3, "block", 0, 1),
        (4, 5, "log", 2, 0),
        (1, 1, "managed_challenge", 1, 1),
    ],
)
def test_a_replay_says_what_another_setting_would_have_done(level, threshold, action, let_in, stopped):
    """Ten of each kind are ten requests."""
    kinds = [kind(10, True, first=5, third=5), kind(10, True, second=5), kind(10, False, first=3)]
    scored = {"since": "", "complete": True, "uncounted": 0, "kinds": kinds}

    found = waf.replay(msgspec.convert(scored, Kinds), LEVELS, Wanted(level, threshold, action))

    assert (found["let_in_count"], found["stopped_count"]) == (10 * let_in, 10 * stopped)
    assert found["were_stopped"] == 20
    assert found["would_be"] == 20 + 10 * (stopped - let_in)


def test_without_a_rule_set_the_page_says_where_one_comes_from(visitor, zone):
    page = visitor.get(f"/ui/zones/{zone}/waf")

    assert page.status == 200
    assert "modsecurity-crs" in page.words or "Replay the last day" in page.words
