"""An exception for a request that was stopped: what it would have let pass, told before; and its undo."""

import itertools
import os
import re

import pytest

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID
from edgestead.edge.events import EventFiles, EventLog
from edgestead.model.events import Contribution, Decision
from tests.edge.made import ask
from tests.usecases.ruleset_samples import CUSTOM_PHASE, MANAGED, MANAGED_PHASE, execute, skip
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor

ZONE = "example.com"
XSS, SQL = f"{941300:032x}", f"{942100:032x}"
_workers = itertools.count()


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path, managed=MANAGED)
    made.zone_id = made.make_zone(ZONE)
    made.entry = f"/zones/{made.zone_id}/rulesets/phases/{MANAGED_PHASE}/entrypoint"
    made.api.call("PUT", made.entry, {"rules": [execute()]})
    made.api.events_folder.mkdir()
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def happen(server, *events):
    """Events of (path, action, score by rule), the threshold is 5; the newest is the last."""
    folder = os.open(server.api.events_folder, os.O_RDONLY | os.O_DIRECTORY)
    log = EventLog(EventFiles(folder, next(_workers)), now_us=server.api.app.context.now_us)
    for path, action, scores in events:
        exchange = ask(path)
        exchange.zone = type(exchange.zone)(server.zone_id, ZONE.encode(), "a" * 32, "free", {})
        contributions = tuple(
            Contribution(rule, "words", score, "ARGS:q", "x") for rule, score in scores.items()
        )
        decision = Decision(
            *(MANAGED_PHASE, action, 403, RULESET_ID, ANOMALY_RULE_ID),
            score=sum(scores.values()),
            threshold=5,
            contributions=contributions,
        )
        log.decided(exchange, decision)
    log.close()
    os.close(folder)


def page_of(visitor, path):
    """The newest event of a path."""
    listed = visitor.get(f"/ui/zones/{ZONE}/events?path_prefix={path}")
    return re.search(r'<td><a href="([^"]+)"', listed.text)[1]


def told(page):
    stopped, passed = re.search(r"Of the newest (\d+) .* (\d+) would have passed", page.words).groups()
    return int(stopped), int(passed)


def rules(server):
    return server.api.get(server.entry).result["rules"]


def test_what_another_rule_stopped_would_not_have_passed(server, visitor):
    happen(server, *[("/s?q=sql", "block", {SQL: 5})] * 5, ("/s?q=xss", "block", {XSS: 5}))

    assert told(visitor.get(page_of(visitor, "/s"))) == (6, 1)


def test_what_still_scores_enough_would_not_have_passed(server, visitor):
    more = ("/s?n=1", "block", {XSS: 5, SQL: 5})
    less = ("/s?n=2", "block", {XSS: 3, SQL: 4})
    logged = ("/s?n=3", "log", {XSS: 5})
    happen(server, more, less, logged, ("/s?q=xss", "block", {XSS: 5}))

    assert told(visitor.get(page_of(visitor, "/s"))) == (3, 2)


def test_an_exception_is_found_again_and_undone(server, visitor):
    happen(server, ("/s?q=xss", "block", {XSS: 5}))
    path = page_of(visitor, "/s")

    made = visitor.post(path)
    again = visitor.get(path)

    assert "Requests like that one pass now" in made.words
    for page in (made, again):
        assert "Undo" in page.words
        assert "Make an exception" not in page.words
    assert [one["action"] for one in rules(server)] == ["skip", "execute"]
    (id_,) = set(re.findall(r'name="exception" value="([^"]+)"', again.text))
    assert "is deleted" in visitor.post(path, what="undo", exception=id_).words
    assert [one["action"] for one in rules(server)] == ["execute"]
    assert "Make an exception" in visitor.get(path).words


@pytest.mark.parametrize(
    "change",
    [
        {"enabled": False},
        {"expression": 'http.host eq "b.example"'},
        {"action_parameters": {"rules": {RULESET_ID: [SQL]}}},
        {"action_parameters": {"phases": ["http_ratelimit"]}},
    ],
    ids=["off", "elsewhere", "another rule", "another phase"],
)
def test_a_rule_that_lets_other_requests_pass_is_no_exception_for_this(server, visitor, change):
    happen(server, ("/s?q=xss", "block", {XSS: 5}))
    rule = skip(rules={RULESET_ID: [XSS]}) | change
    done = server.api.call("PUT", server.entry, {"rules": [rule, execute()]})
    assert done.status == 200, done.body

    assert "Make an exception" in visitor.get(page_of(visitor, "/s")).words


def test_settings_of_a_rule_that_is_off_say_so(server, visitor):
    path, sent = f"/ui/zones/{ZONE}/waf", {"level": "1", "threshold": "40", "action": "block"}
    assert "block: every edge process has it." in visitor.post(path, **sent).words
    server.api.call("PUT", server.entry, {"rules": [execute() | {"enabled": False}]})

    assert "every edge process has it; the rule is off." in visitor.post(path, **sent).words


@pytest.mark.parametrize(
    "theirs",
    [[execute() | {"enabled": False}], [skip(ruleset="current")], []],
    ids=["execute", "skip", "none"],
)
def test_settings_of_a_phase_that_somebody_else_begins_with_meanwhile(server, visitor, theirs):
    fresh = server.make_zone("fresh.example")
    entry = f"/zones/{fresh}/rulesets/phases/{MANAGED_PHASE}/entrypoint"
    server.before(("POST", "PUT"), {"rules": theirs}, "PUT", entry)

    done = visitor.post("/ui/zones/fresh.example/waf", level="1", threshold="40", action="block")

    assert "threshold 40, block: every edge process has it" in done.words
    found = server.api.get(entry).result["rules"]
    assert [one["action"] for one in found] == ["skip"] * (theirs == [skip(ruleset="current")]) + ["execute"]
    assert found[-1]["enabled"] is ("the rule is off" not in done.words)
    assert found[-1]["action_parameters"]["overrides"]["rules"][-1]["score_threshold"] == 40


def test_settings_leave_what_somebody_else_has_changed_meanwhile(server, visitor):
    entry = f"/zones/{server.zone_id}/rulesets/phases/{MANAGED_PHASE}/entrypoint"
    ruleset = server.api.put(entry, {"rules": [execute()]}).result
    path = f"/zones/{server.zone_id}/rulesets/{ruleset['id']}/rules/{ruleset['rules'][0]['id']}"
    server.before(("PATCH",), execute() | {"enabled": False}, "PATCH", path)

    refused = visitor.post("/ui/zones/example.com/waf", level="1", threshold="40", action="block")

    assert (refused.status, "was changed meanwhile" in refused.words) == (400, True)
    assert server.api.get(entry).result["rules"][0]["enabled"] is False


def test_a_rule_that_skips_becomes_one_that_blocks(server, visitor):
    """By emptying the field of what only a skip has."""
    entry = f"/zones/{server.zone_id}/rulesets/phases/{CUSTOM_PHASE}/entrypoint"
    (rule,) = server.api.call("PUT", entry, {"rules": [skip(ruleset="current")]}).result["rules"]
    fields = {"action": "block", "expression": "true", "description": ""}

    path = f"/ui/zones/{ZONE}/rules/{CUSTOM_PHASE}/{rule['id']}"
    done = visitor.post(path, **fields, action_parameters="")

    assert "Done." in done.words
    (rule,) = server.api.get(entry).result["rules"]
    assert (rule["action"], "action_parameters" in rule) == ("block", False)


def test_an_exception_is_made_where_the_rules_are_executed(server, visitor):
    """The account's: an exception of the zone would not reach them, as levels do not skip one another."""
    account = f"{server.account}/rulesets/phases/{MANAGED_PHASE}/entrypoint"
    server.api.call("PUT", server.entry, {"rules": []})
    server.api.call("PUT", account, {"rules": [execute()]})
    happen(server, ("/s?q=sql", "block", {SQL: 5}))
    path = page_of(visitor, "/s")
    assert "the first rule of the account's managed phase" in visitor.get(path).words
    assert "The account's rules do, for every zone" in visitor.get(f"/ui/zones/{ZONE}/waf").words

    done = visitor.post(path, expression="ssl or not ssl")

    assert "of the account" in done.words
    made, _ = server.api.get(account).result["rules"]
    assert (made["action"], rules(server)) == ("skip", [])
    assert f'href="/ui/rules/{MANAGED_PHASE}/{made["id"]}"' in done.text
    visitor.post(path, what="undo", exception=made["id"])
    assert [one["action"] for one in server.api.get(account).result["rules"]] == ["execute"]
    server.api.call("PUT", account, {"rules": []})
    assert "there is no exception to make" in visitor.get(path).words
    assert visitor.post(path, visitor.get("/ui"), expression="ssl").status == 404


def test_where_zone_and_account_execute_the_rules_each_needs_an_exception(server, visitor):
    """And no page says that a request passes while one of them stops it."""
    account = f"{server.account}/rulesets/phases/{MANAGED_PHASE}/entrypoint"
    server.api.call("PUT", account, {"rules": [execute()]})
    happen(server, ("/s?q=sql", "block", {SQL: 5}))
    path = page_of(visitor, "/s")

    first = visitor.post(path)
    second = visitor.post(path)

    assert "The zone's rules let requests like that one pass now. The account's do not yet." in first.words
    assert "The account executes these rules, too" in first.words
    assert "Requests like that one pass now." in second.words
    assert "Make an exception" not in second.words
    ids = re.findall(r'name="exception" value="([^"]+)"', second.text)
    held = [server.api.get(entry).result["rules"] for entry in (server.entry, account)]
    assert [[one["action"] for one in rules] for rules in held] == [["skip", "execute"]] * 2
    assert ids == [rules[0]["id"] for rules in held]
    assert "is deleted" in visitor.post(path, what="undo", exception=ids[1]).words
    assert visitor.post(path, second, what="undo", exception=ids[1]).status == 404
    assert "The account executes these rules, too" in visitor.get(path).words
