"""Rules of the account: on a zone's page in their order, on a page of their own with the same editor."""

import json
import re

import pytest

from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_narrow import groups, token

CUSTOM, LIMITS = "http_request_firewall_custom", "http_ratelimit"
PAGE = "/ui/zones/mine.example/rules"
BLOCK = {"action": "block", "expression": "ssl"}


@pytest.fixture
def server(tmp_path):
    made = LocalSite(tmp_path)
    made.zone = made.make_zone("mine.example")
    yield made
    made.close()


@pytest.fixture
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


def make_ruleset(server, name, *rules, phase=CUSTOM):
    body = {"name": name, "kind": "custom", "phase": phase, "rules": list(rules)}
    made = server.api.post(f"{server.account}/rulesets", body)
    assert made.status == 200, made
    return made.result["id"]


def put(server, scope, *rules, phase=CUSTOM):
    made = server.api.put(f"{scope}/rulesets/phases/{phase}/entrypoint", {"rules": list(rules)})
    assert made.status == 200, made


def executes(id_, **more):
    said = {"id": id_, **more}
    return {"action": "execute", "expression": "true", "action_parameters": said, "description": "run it"}


def shown(visitor, phase=CUSTOM, path=PAGE):
    """(whose, in which rule's ruleset, place, action, own) of each rule of a phase."""
    phases = json.loads(visitor.get(f"{path}.json").text)["phases"]
    found = next(one["rules"] for one in phases if one["where"] == phase)
    return [tuple(one[name] for name in ("level", "by", "place", "action", "own")) for one in found]


def test_a_zones_page_has_the_accounts_rules_first_and_what_is_executed(server, visitor):
    shared = make_ruleset(server, "shared", {**BLOCK, "description": "in the shared one"}, BLOCK)
    put(server, server.account, {"action": "skip", **_SKIPPED, "expression": "not ssl"}, executes(shared))
    put(server, f"/zones/{server.zone}", BLOCK, executes(shared, version="1"))

    assert shown(visitor) == [
        ("account", 0, 1, "skip", False),
        ("account", 0, 2, "execute", False),
        ("account", 2, 1, "block", False),
        ("account", 2, 2, "block", False),
        ("zone", 0, 1, "block", True),
        ("zone", 0, 2, "execute", True),
        ("zone", 2, 1, "block", False),
        ("zone", 2, 2, "block", False),
    ]
    page = visitor.get(PAGE)
    assert "account 2, in it 1" in page.words
    assert "in the shared one" in page.words
    assert page.text.count('value="delete"') == 2, "what is another's is changed where it belongs"
    assert shown(visitor, LIMITS) == []
    tried = visitor.post(f"{PAGE}/try", url="https://mine.example/", method="GET", client="192.0.2.1")
    assert "in the shared one" in tried.words, "what it executes is tried, too"
    assert "answers 403" in tried.words


_SKIPPED = {"expression": "true", "action_parameters": {"ruleset": "current"}, "description": "first"}


def test_who_may_not_read_the_accounts_rules_is_told_so(server):
    put(server, server.account, {"action": "skip", **_SKIPPED})
    mine = {f"com.cloudflare.api.account.zone.{server.zone}": "*"}
    narrow = Visitor(server)
    narrow.sign_in(token(server, groups(server, "Zone Read", "Zone WAF Read"), mine))

    assert "The account's rules, which come first, are not shown" in narrow.get(PAGE).words
    assert shown(narrow) == []
    assert narrow.get("/ui/rules").status == 403


def test_rules_of_the_account_are_made_changed_and_deleted(server, visitor):
    visitor.post("/ui/rules", what="create", name="shared", kind=CUSTOM)
    (made,) = [one for one in server.api.get(f"{server.account}/rulesets").result if one["kind"] == "custom"]
    inside = f"/ui/rules/{made['id']}/new"
    assert "is wrong" not in visitor.post(inside, action="block", expression="ssl", description="b").words
    wrong = visitor.post(inside, action="block", expression="nothing", description="")
    assert (wrong.status, "unknown identifier" in wrong.words) == (400, True)
    editor = visitor.get(f"/ui/rules/{CUSTOM}/new")
    assert f'{{"id": "{made["id"]}"}}' in editor.words, "what can be executed is named"
    said = json.dumps({"id": made["id"]})
    done = visitor.post(
        f"/ui/rules/{CUSTOM}/new", action="execute", expression="true", description="", action_parameters=said
    )
    assert "Done." in done.words
    assert shown(visitor, path="/ui/rules") == [("account", 0, 1, "execute", True)]
    assert shown(visitor, made["id"], path="/ui/rules") == [("account", 0, 1, "block", True)]
    assert [one[:4] for one in shown(visitor)] == [("account", 0, 1, "execute"), ("account", 1, 1, "block")]

    rule = server.api.get(f"{server.account}/rulesets/{made['id']}").result["rules"][0]
    visitor.post("/ui/rules", what="off", phase=made["id"], rule=rule["id"])
    changed = visitor.post(f"/ui/rules/{made['id']}/{rule['id']}", action="log", expression="ssl")
    assert "Done." in changed.words
    (rule,) = server.api.get(f"{server.account}/rulesets/{made['id']}").result["rules"]
    assert (rule["action"], rule["enabled"]) == ("log", False)
    visitor.post("/ui/rules", what="delete", phase=made["id"], rule=rule["id"])
    assert shown(visitor, made["id"], path="/ui/rules") == []


def test_a_ruleset_is_not_found_where_it_does_not_belong(server, visitor):
    """A zone's page changes the zone's rules alone, the account's no managed ones."""
    shared = make_ruleset(server, "shared", BLOCK)
    compression = "http_response_compression"
    assert visitor.get(f"{PAGE}/{compression}/new").status == 200
    unknown = (f"{PAGE}/{shared}", "/ui/rules/none", f"/ui/rules/{'0' * 32}", f"/ui/rules/{compression}")
    for path in (f"{one}/new" for one in unknown):
        assert visitor.get(path).status == 404, path
    assert visitor.post("/ui/rules", what="create", name="", kind=CUSTOM).status == 400


def test_a_rule_that_is_moved_stays_as_somebody_else_has_changed_it_meanwhile(server, visitor):
    scope = f"/zones/{server.zone}"
    put(server, scope, BLOCK | {"description": "first"}, BLOCK | {"description": "second"})
    ruleset = server.api.get(f"{scope}/rulesets/phases/{CUSTOM}/entrypoint").result
    path, first = f"{scope}/rulesets/{ruleset['id']}", ruleset["rules"][0]
    changed = BLOCK | {"description": "changed"}
    server.before(("PATCH",), changed, "PATCH", f"{path}/rules/{first['id']}")
    fields = {"what": "down", "phase": CUSTOM, "rule": first["id"]}
    assert visitor.post(PAGE, **fields).status == 200

    assert [one["description"] for one in server.api.get(path).result["rules"]] == ["second", "changed"]


def test_a_switch_and_the_editor_leave_what_somebody_else_has_changed_meanwhile(server, visitor):
    scope = f"/zones/{server.zone}"
    put(server, scope, BLOCK | {"description": "as it was"})
    ruleset = server.api.get(f"{scope}/rulesets/phases/{CUSTOM}/entrypoint").result
    rule = ruleset["rules"][0]
    path = f"{scope}/rulesets/{ruleset['id']}/rules/{rule['id']}"

    def theirs():
        return server.api.get(f"{scope}/rulesets/{ruleset['id']}").result["rules"][0]

    server.before(("PATCH",), BLOCK | {"description": "theirs"}, "PATCH", path)
    switched = visitor.post(PAGE, what="off", phase=CUSTOM, rule=rule["id"])
    assert (switched.status, "was changed meanwhile" in switched.words) == (400, True)
    assert (theirs()["description"], theirs()["enabled"]) == ("theirs", True)

    editor = f"{PAGE}/{CUSTOM}/{rule['id']}"
    shown_version = re.search(r'name="version" value="(\d+)"', visitor.get(editor).text)[1]
    server.api.patch(path, BLOCK | {"description": "theirs again"})
    mine = {"action": "log", "expression": "ssl", "description": "mine", "version": shown_version}
    saved = visitor.post(editor, **mine)
    assert (saved.status, "was changed meanwhile" in saved.words) == (400, True)
    assert 'value="mine"' in saved.text
    assert theirs()["description"] == "theirs again"
    assert "Done." in visitor.post(editor, **mine | {"version": theirs()["version"]}).words
    assert theirs()["description"] == "mine"


@pytest.mark.parametrize("of_account", [False, True])
def test_the_first_rule_of_a_phase_leaves_what_somebody_else_began_with(server, visitor, of_account):
    scope, page = (server.account, "/ui/rules") if of_account else (f"/zones/{server.zone}", PAGE)
    entry = f"{scope}/rulesets/phases/{CUSTOM}/entrypoint"
    theirs, mine = ({"action": "skip", **_SKIPPED, "expression": one} for one in ("ssl", "not ssl"))
    server.before(("POST", "PUT"), {"rules": [theirs]}, "PUT", entry)

    fields = {**mine, "action_parameters": json.dumps(mine["action_parameters"])}
    done = visitor.post(f"{page}/{CUSTOM}/new", **fields)

    assert "Done." in done.words
    assert [one["expression"] for one in server.api.get(entry).result["rules"]] == ["ssl", "not ssl"]


def test_a_wrong_first_rule_is_told_at_its_field(server, visitor):
    wrong = visitor.post(f"{PAGE}/{CUSTOM}/new", action="block", expression="nothing", description="")

    assert (wrong.status, "unknown identifier" in wrong.words) == (400, True)
