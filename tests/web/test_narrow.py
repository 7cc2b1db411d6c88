"""Every form of every page, sent by who may not: a token that only reads, one of another zone, no session."""

from urllib.parse import urlencode, urljoin

import pytest

from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.walking import walk

ZONE, OTHER = "mine.example", "theirs.example"
TYPED = {"email": "x@example.com", "name": "typed", "content": "192.0.2.9", "key": "typed", "title": "typed"}


@pytest.fixture
def server(tmp_path):
    """One of each thing that a form could change."""
    made = LocalSite(tmp_path)
    made.zones = {name: made.make_zone(name) for name in (ZONE, OTHER)}
    for zone_id in made.zones.values():
        record = {"type": "A", "name": "www", "content": "192.0.2.1", "ttl": 300}
        made.api.post(f"/zones/{zone_id}/dns_records", record)
        path = f"/zones/{zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
        rule = {"action": "log", "expression": "true", "description": "a rule"}
        assert made.api.put(path, {"rules": [rule]}).status == 200
    spaces = f"{made.account}/storage/kv/namespaces"
    space = made.api.post(spaces, {"title": "a space"}).result["id"]
    assert made.api.put(f"{spaces}/{space}/bulk", [{"key": "k", "value": "v"}]).status == 200
    roles = made.api.get(f"{made.account}/roles").result
    made.api.post(f"{made.account}/members", {"email": "m@example.com", "roles": [roles[0]["id"]]})
    yield made
    made.close()


def token(server, groups, resources):
    """The secret of a token with these permission groups."""
    policy = {"effect": "allow", "permission_groups": [{"id": one} for one in groups], "resources": resources}
    made = server.api.post("/user/tokens", {"name": "narrow", "policies": [policy]})
    assert made.status == 200, made
    return made.result["value"]


def groups(server, *names):
    known = server.api.get("/user/tokens/permission_groups").result
    return [one["id"] for one in known if one["name"] in names or (not names and "Read" in one["name"])]


def signed_in(server, secret):
    made = Visitor(server)
    assert made.sign_in(secret).status == 303
    return made


def changes(server):
    """What was changed so far, newest first."""
    found = server.api.get(f"{server.account}/audit_logs?per_page=100").result
    return [one["id"] for one in found if one["action"]["type"] not in ("login", "logout")]


def send_all(walked, visitor):
    """(path, status, where to) of each form of the pages, by each of its buttons."""
    answers = []
    for one in walked:
        for action, fields, buttons in one.read.sent:
            to = urljoin(one.target, action or one.target.partition("?")[0])
            if to.endswith("/sign-out"):
                continue
            typed = {
                field["name"]: field.get("value") or TYPED.get(field["name"], "typed") for field in fields
            }
            for button in buttons:
                form = typed | ({button["name"]: button.get("value", "")} if "name" in button else {})
                path = urljoin(to, button.get("formaction", to))
                done = visitor.ask("POST", path, urlencode(form), Origin=f"http://{visitor.host}")
                answers.append((path, done.status, done.to))
    return answers


def test_who_may_only_read_sees_all_and_changes_nothing(server):
    everywhere = dict.fromkeys(("com.cloudflare.api.account.*", "com.cloudflare.api.account.zone.*"), "*")
    reader = signed_in(server, token(server, groups(server), everywhere))
    walked = walk(reader, "typed")
    before = changes(server)

    answers = send_all(walked, reader)

    assert changes(server) == before
    refused = {path for path, status, _ in answers if status == 403}
    assert len(refused) > 10, sorted(answers)
    assert [one for one in answers if one[1] >= 500] == []


def test_a_token_of_one_zone_sees_no_other_one(server):
    operator = signed_in(server, server.ready["api_token"])
    names = ("Zone Read", "Zone Write", "DNS Read", "DNS Write", "Zone Settings Read", "Zone Settings Write")
    mine = {f"com.cloudflare.api.account.zone.{server.zones[ZONE]}": "*"}
    narrow = signed_in(server, token(server, groups(server, *names), mine))
    assert ZONE in narrow.get("/ui/zones").words
    added = narrow.post(f"/ui/zones/{ZONE}", name="here", type="A", content="192.0.2.3", ttl="300")
    assert "A here is added" in added.words
    before = changes(server)

    walked = [one for one in walk(operator, "typed") if OTHER in one.target]
    assert len(walked) > 5
    for one in walked:
        assert narrow.get(one.target).status in (403, 404), one.target
    key = narrow.get("/ui/zones").form_key
    for one in walked:
        for _, fields, _ in one.read.sent:
            for field in fields:
                if field["name"] == "form_key":
                    field["value"] = key
    answers = send_all(walked, narrow)

    assert {status for _, status, _ in answers} <= {403, 404}
    assert changes(server) == before
    for one in walk(narrow, "typed"):
        assert OTHER not in one.read.everything, one.target


def test_forms_of_a_session_that_ended_do_nothing(server):
    """All of them lead to the way in."""
    operator = signed_in(server, server.ready["api_token"])
    walked = walk(operator, "typed")
    cookie = operator.cookie
    operator.post("/ui/sign-out", operator.get("/ui"))
    operator.cookie = cookie
    before = changes(server)

    answers = send_all(walked, operator)

    assert len(answers) > 20
    assert {(status, to) for _, status, to in answers} == {(303, "/ui/sign-in")}
    assert {operator.get(one.target).to for one in walked} == {"/ui/sign-in"}
    assert changes(server) == before
