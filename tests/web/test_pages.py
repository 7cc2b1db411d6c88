"""Every page and form of the dashboard, as somebody without script uses them."""

import json
import re
from html import unescape

import pytest

from edgestead.web.pages import PAGES
from tests.web.conftest import Visitor, link_of

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_a_link_signs_in_once_and_only_by_a_click(web_server, stranger):
    link = link_of(web_server)

    for _ in range(2):  # looking at it, as programs that preview links do, uses nothing up
        assert "signs this browser in, once" in stranger.get(link).words
    code = link.partition("code=")[2]
    entered = stranger.ask("POST", "/ui/enter", f"code={code}", Origin=f"http://{stranger.host}")
    assert (entered.status, entered.to) == (303, "/ui")
    assert "Health" in stranger.get("/ui").words
    again = Visitor(web_server).ask("POST", "/ui/enter", f"code={code}")
    assert again.status == 403
    assert "used already" in again.words
    cookie = entered.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/ui"))


def test_a_browser_at_the_root_is_led_there_and_a_program_is_not(stranger):
    assert stranger.get("/").to == "/ui"
    assert stranger.get("/", Accept="application/json").status == 404
    assert stranger.get("/ui").to == "/ui/sign-in"
    assert "edgecli dashboard" in stranger.get("/ui/sign-in").words


def test_an_unknown_token_signs_nobody_in(stranger):
    refused = stranger.sign_in("x" * 40)

    assert (refused.status, stranger.cookie) == (403, "")
    assert "No token is that" in refused.words


def test_signing_out_ends_the_session(visitor):
    cookie = visitor.cookie
    visitor.post("/ui/sign-out", visitor.get("/ui"))

    visitor.cookie = cookie
    assert visitor.get("/ui").to == "/ui/sign-in"


def test_a_session_ends_with_its_token(web_server, stranger):
    groups = web_server.call("GET", "/user/tokens/permission_groups").result
    group = next(one["id"] for one in groups if one["name"] == "Zone Read")
    policy = {
        "effect": "allow",
        "permission_groups": [{"id": group}],
        "resources": {f"com.cloudflare.api.account.{web_server.ready['account_id']}": "*"},
    }
    made = web_server.call("POST", "/user/tokens", {"name": "reader", "policies": [policy]}).result
    stranger.sign_in(made["value"])
    assert stranger.get("/ui/zones").status == 200
    refused = stranger.post("/ui/zones", name="not-mine.example")
    assert refused.status == 403
    assert web_server.call("GET", "/zones?name=not-mine.example").result == []

    web_server.call("DELETE", f"/user/tokens/{made['id']}")

    assert stranger.get("/ui/zones").to == "/ui/sign-in"


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"form_key": "x"}, {}),
        ({}, {"Origin": "http://evil.example"}),
        ({}, {"Origin": "null"}),
    ],
    ids=["key", "origin", "no-origin"],
)
def test_a_form_of_another_site_does_nothing(web_server, visitor, fields, headers):
    refused = visitor.post("/ui/zones", headers=headers, **{"name": "forged.example", **fields})

    assert refused.status == 403
    assert web_server.call("GET", "/zones?name=forged.example").result == []


def test_headers_of_every_page_allow_nothing_from_elsewhere(visitor, stranger):
    for page in (
        visitor.get("/ui"),
        visitor.get("/ui/none"),
        stranger.get("/ui/sign-in"),
        visitor.get("/ui/zones.json"),
    ):
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "same-origin"
        assert "style=" not in page.text
        assert "onclick" not in page.text


def test_files_of_the_pages_are_ours_and_cached(stranger):
    for name in ("style.css", "page.js"):
        found = stranger.get(f"/ui/static/{name}")
        assert (found.status, "immutable" in found.headers["cache-control"]) == (200, True)
    assert stranger.get("/ui/static/../site.py").status == 404


def test_a_zone_from_its_creation_to_an_undo(web_server, visitor):
    made = visitor.post("/ui/zones", name="made-here.example")
    assert "made-here.example is a zone now" in made.words
    path = "/ui/zones/made-here.example"

    wrong = visitor.post(path, name="www", type="A", content="not-an-address", ttl="1")
    assert wrong.status == 400
    assert 'value="not-an-address"' in wrong.text
    assert 'class="field-error"' in wrong.text or 'class="errors"' in wrong.text
    added = visitor.post(path, name="www", type="A", content="192.0.2.1", ttl="300", comment="the site")
    assert "A www is added" in added.words
    assert web_server.dig("www.made-here.example") == ["192.0.2.1"]
    record = visitor.get(path).link("www.made-here.example")

    changed = visitor.post(record, name="www", type="A", content="192.0.2.2", ttl="300", proxied="on")
    assert "The record is changed" in changed.words
    assert "proxied" in visitor.get(path).words
    visitor.post(record, visitor.get(path), what="unproxy")
    assert web_server.dig("www.made-here.example") == ["192.0.2.2"]
    visitor.post(record, what="delete")
    assert web_server.dig("www.made-here.example") == ["NXDOMAIN"]

    history = visitor.get(f"{path}/history")
    assert "A www.made-here.example 192.0.2.2" in history.words
    newest = json.loads(visitor.get(f"{path}/history.json").text)["changes"]["items"][0]["sequence"]
    undone = visitor.post(f"{path}/history", history, sequence=str(newest), what="undo")
    assert "Done: change" in undone.words
    assert web_server.dig("www.made-here.example") == ["192.0.2.2"]


def test_rules_are_added_switched_and_deleted(visitor, zone):
    path = f"/ui/zones/{zone}/rules"
    wrong = visitor.post(path, what="add", action="block", expression="http.hots eq 1", description="")
    assert wrong.status == 400
    assert "http.hots" in wrong.words
    for words in ("first", "second"):
        visitor.post(path, what="add", action="block", expression='http.host eq "a"', description=words)
    custom = "http_request_firewall_custom"

    def rules():
        phases = json.loads(visitor.get(f"{path}.json").text)["phases"]
        return next(phase["rules"] for phase in phases if phase["phase"] == custom)

    first = rules()[0]["id"]
    visitor.post(path, what="off", phase=custom, rule=first)
    assert [(one["description"], one["enabled"]) for one in rules()] == [("first", False), ("second", True)]
    visitor.post(path, what="delete", phase=custom, rule=first)
    assert [one["description"] for one in rules()] == ["second"]


def test_settings_are_set_and_a_wrong_value_is_told(visitor, zone):
    path = f"/ui/zones/{zone}/settings"
    assert "ssl is strict" in visitor.post(path, id="ssl", value="strict").words
    refused = visitor.post(path, id="ssl", value="wrong")

    assert "ssl" in refused.words
    assert 'value="strict"' in visitor.get(path).text
    assert "challenge_ttl is 900" in visitor.post(path, id="challenge_ttl", value="900").words


def test_a_setting_of_several_values_is_whole_in_its_field(visitor, zone):
    path = f"/ui/zones/{zone}/settings"
    field = re.search(r'aria-label="aegis" value="([^"]*)"', visitor.get(path).text)[1]

    said = visitor.post(path, id="aegis", value=unescape(field)).words

    assert "aegis is {" in said
    assert "enabled" in unescape(field)


def test_values_are_written_shown_and_deleted(web_server, visitor):
    assert "The namespace is made" in visitor.post("/ui/values", title="of pages").words
    namespace = visitor.get("/ui/values").link("of pages")
    written = visitor.post(namespace, key="a/b-c?", value="line 1\nline 2")

    assert "line 1" in written.text
    assert "13 bytes" in written.words
    space = f"/accounts/{web_server.ready['account_id']}/storage/kv/namespaces/{namespace.rpartition('/')[2]}"
    web_server.call("PUT", f"{space}/bulk", [{"key": "bin", "value": "AAEC/w==", "base64": True}])
    assert "00000000 00 01 02 ff" in visitor.get(f"{namespace}/bin").words
    visitor.post(visitor.get(namespace).link("a/b-c?"), what="delete")
    assert visitor.get(f"{namespace}/a%2Fb-c%3F").status == 404


def test_tokens_are_listed_and_revoked(web_server, visitor):
    groups = web_server.call("GET", "/user/tokens/permission_groups").result
    policy = {
        "effect": "allow",
        "permission_groups": [{"id": groups[0]["id"]}],
        "resources": {f"com.cloudflare.api.account.{web_server.ready['account_id']}": "*"},
    }
    made = web_server.call("POST", "/user/tokens", {"name": "to be revoked", "policies": [policy]}).result
    assert "to be revoked" in visitor.get("/ui/tokens").words

    visitor.post("/ui/tokens", id=made["id"])

    assert "to be revoked" not in visitor.get("/ui/tokens").words
    assert made["value"] not in web_server.log


def test_what_others_wrote_is_text_on_every_page(web_server, visitor, zone):
    zone_id = web_server.call("GET", f"/zones?name={zone}").result[0]["id"]
    web_server.call(
        "POST",
        f"/zones/{zone_id}/dns_records",
        {"type": "TXT", "name": "x", "content": HOSTILE, "comment": HOSTILE[:90]},
    )
    account = web_server.ready["account_id"]
    spaces = f"/accounts/{account}/storage/kv/namespaces"
    title = web_server.call("POST", spaces, {"title": HOSTILE}).result["id"]
    web_server.call(
        "PUT", f"{spaces}/{title}/bulk", [{"key": HOSTILE, "value": HOSTILE, "metadata": {"a": HOSTILE}}]
    )
    rule = {"action": "log", "expression": 'http.user_agent contains "<script>"', "description": HOSTILE}
    web_server.call(
        "PUT", f"/zones/{zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint", {"rules": [rule]}
    )

    below = ("", "/history", "/rules", "/events", "/settings", "/events?client=%3Cscript%3E")
    pages = [
        *(f"/ui/zones/{zone}{path}" for path in below),
        *("/ui", "/ui/zones", "/ui/values", f"/ui/values/{title}", "/ui/tokens"),
        *(f"/ui/zones?q={HOSTILE[:8]}%22", "/ui?said=%3Cscript%3E"),
    ]
    for path in pages:
        page = visitor.get(path)
        assert page.status == 200, (path, page.words)
        assert "<script>alert" not in page.text, path
        assert "<img src=x" not in page.text, path
        assert page.text.count("<script") == 1, path
    for row in PAGES:  # and none of them was forgotten
        assert row.path.count("{") > 1 or any(
            path.startswith(row.path.partition("{")[0]) for path in pages
        ), row.path


@pytest.mark.parametrize(
    "path", ["/ui/zones/none.example", "/ui/none", "/ui/zones/a.example/records/x", "/ui" + "/a" * 99]
)
def test_what_is_not_there_is_a_page_that_says_so(visitor, path):
    page = visitor.get(path)

    assert page.status == 404
    assert "Back to the overview" in page.words


@pytest.mark.parametrize(
    ("body", "status"),
    [("a=1&" * 1_000, 413), ("x" * (5 << 20), 413), ("%ff=%fe", 403)],
    ids=["fields", "length", "octets"],
)
def test_a_form_that_is_none_is_refused(visitor, body, status):
    page = visitor.ask("POST", "/ui/zones", body, Origin=f"http://{visitor.host}")

    assert page.status == status
