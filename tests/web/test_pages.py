"""Every page and form of the dashboard, as somebody without script uses them."""

import json
import re
from html import unescape

import pytest

from edgestead.testing.server import START_SECONDS_MAX
from edgestead.web.pages import PAGES
from tests.web.conftest import Visitor, link_of

CUSTOM = "http_request_firewall_custom"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_a_link_signs_in_once_and_only_by_a_click(web_server, stranger):
    link = link_of(web_server)

    for _ in range(2):  # looking at it, as programs that preview links do, uses nothing up
        assert "signs this browser in, once" in stranger.get(link).words
    code = link.partition("code=")[2]
    entered = stranger.send("/ui/enter", code=code)
    assert (entered.status, entered.to) == (303, "/ui")
    assert "Health" in stranger.get("/ui").words
    again = Visitor(web_server).send("/ui/enter", code=code)
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
    coming = visitor.get(f"{path}/history/{newest}/undo")
    assert "after: A www.made-here.example 192.0.2.2" in coming.words
    undone = visitor.post(f"{path}/history/{newest}/undo", coming, name="")
    assert "Done." in undone.words
    assert web_server.dig("www.made-here.example") == ["192.0.2.2"]


def test_settings_are_set_and_a_wrong_value_is_told(visitor, zone):
    path = f"/ui/zones/{zone}/settings"
    assert "ssl is strict" in visitor.post(path, id="ssl", value="strict").words
    refused = visitor.post(path, id="ssl", value="wrong")

    assert "ssl" in refused.words
    assert "<option selected>strict</option>" in visitor.get(path).text
    assert "challenge_ttl is 900" in visitor.post(path, id="challenge_ttl", value="900").words


def test_a_setting_of_several_values_is_whole_in_its_field(visitor, zone):
    path = f"/ui/zones/{zone}/settings"
    field = re.search(r'aria-label="aegis" value="([^"]*)"', visitor.get(f"{path}?set=aegis").text)[1]

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
    assert "00 01 02 ff" in visitor.get(f"{namespace}/bin").words
    visitor.post(visitor.get(namespace).link("a/b-c?"), what="delete")
    assert visitor.get(f"{namespace}/a%2Fb-c%3F").status == 404


def test_a_restore_shows_first_what_it_would_change(web_server, visitor, zone):
    path = f"/ui/zones/{zone}"
    for address in ("192.0.2.1", "192.0.2.2"):
        added = visitor.post(path, name=f"n{address[-1]}", type="A", content=address, ttl="300")
        assert "is added" in added.words
    changes = json.loads(visitor.get(f"{path}/history.json").text)["changes"]["items"]

    coming = visitor.get(f"{path}/history/{changes[1]['sequence']}/restore")
    assert f"before: A n2.{zone} 192.0.2.2" in coming.words
    assert "192.0.2.1" not in coming.words
    assert web_server.dig(f"n2.{zone}") == ["192.0.2.2"]
    assert "Done." in visitor.post(f"{path}/history/{changes[1]['sequence']}/restore", coming, name="").words
    assert web_server.dig(f"n2.{zone}") == ["NXDOMAIN"]
    same = visitor.get(f"{path}/history/{changes[1]['sequence']}/restore")
    assert "Nothing differs from then." in same.words
    assert visitor.get(f"{path}/history/{changes[1]['sequence']}/other").status == 404
    assert visitor.get(f"{path}/history/999/restore").status == 404


def test_a_zone_file_is_imported_behind_a_preview_and_exported(web_server, visitor, zone):
    path = f"/ui/zones/{zone}/import"
    text = f'www 300 IN A 192.0.2.7\nx 300 IN TXT "<b>"\n{zone}. 300 IN MX 5 mail.example.net.\n'
    wrong = visitor.post(path, file="www IN A nowhere\n", what="look")
    assert (wrong.status, "nowhere" in wrong.text) == (400, True)

    coming = visitor.post(path, file=text, what="look")
    assert "All records of the file: 3" in coming.words
    assert f"A www.{zone} 192.0.2.7" in coming.words
    assert "<b>" not in coming.text
    assert web_server.dig(f"www.{zone}") == ["NXDOMAIN"]
    assert "3 of 3 records are added" in visitor.post(path, coming, file=text, what="import").words
    assert web_server.dig(f"www.{zone}") == ["192.0.2.7"]
    assert "0 of the 3 records" in visitor.post(path, file=text, what="look").words
    exported = visitor.get(f"/ui/zones/{zone}/export")
    assert "192.0.2.7" in exported.text
    assert exported.headers["content-disposition"] == f'attachment; filename="{zone}.zone"'


def test_a_token_is_made_for_a_task_rolled_and_revoked(web_server, visitor, zone):
    made = visitor.post(
        "/ui/tokens/new", task="certificates", zone=zone, name="certbot", days="30", address=""
    )
    secret = re.search(r'id="secret" value="([^"]+)"', made.text)[1]
    zone_id = web_server.call("GET", f"/zones?name={zone}", token=secret).result[0]["id"]
    record = {"type": "TXT", "name": "_acme-challenge", "content": "x"}
    assert web_server.call("POST", f"/zones/{zone_id}/dns_records", record, token=secret).status == 200
    assert web_server.call("PATCH", f"/zones/{zone_id}", {"paused": True}, token=secret).status == 403

    listed = visitor.get("/ui/tokens")
    assert f"may: Zone Read, DNS Write, of the zone {zone}" in listed.words
    assert zone_id not in listed.words
    tokens = json.loads(visitor.get("/ui/tokens.json").text)["tokens"]["items"]
    id_ = next(one["id"] for one in tokens if one["name"] == "certbot")
    rolled = visitor.post("/ui/tokens", what="roll", id=id_, name="certbot")
    other = re.search(r'id="secret" value="([^"]+)"', rolled.text)[1]
    assert web_server.call("GET", "/zones", token=secret).status != 200
    assert web_server.call("GET", "/zones", token=other).status == 200
    visitor.post("/ui/tokens", what="revoke", id=id_)
    assert "certbot" not in visitor.get("/ui/tokens").words
    assert secret not in web_server.log
    assert secret not in visitor.get("/ui/tokens").text


@pytest.mark.parametrize(
    "fields", [{"task": "dns", "zone": "none.example"}, {"task": "metrics", "days": "x"}, {"address": "here"}]
)
def test_a_token_that_cannot_be_is_refused_with_its_form(visitor, zone, fields):
    refused = visitor.post("/ui/tokens/new", **({"task": "look", "zone": zone, "name": "mine"} | fields))

    assert refused.status == 400
    assert 'value="mine"' in refused.text
    assert 'class="errors"' in refused.text


def test_dates_say_who_calls_what_ended(visitor):
    assert visitor.get("/ui/dates").status == 200


def test_a_value_of_json_keeps_its_expiry(web_server, visitor):
    visitor.post("/ui/values", title="of json")
    namespace = visitor.get("/ui/values").link("of json")
    page = visitor.post(namespace, key="j", value='{"a":[1]}', expiration_ttl="3600")

    assert '"a": [ 1 ]' in page.words
    expires = json.loads(visitor.get(f"{namespace}/j.json").text)["expires"]
    visitor.post(f"{namespace}/j", visitor.get(f"{namespace}/j"), value="{}", expiration=str(expires))
    assert json.loads(visitor.get(f"{namespace}/j.json").text)["expires"] == expires
    assert "7b 7d" in visitor.get(f"{namespace}/j?as=hex").words


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

    below = (
        "",
        "/history",
        "/rules",
        "/rules/try",
        f"/rules/{CUSTOM}/new",
        "/waf",
        "/events",
        "/settings",
        "/events?client=%3Cscript%3E",
    )
    pages = [
        *(f"/ui/zones/{zone}{path}" for path in below),
        *(
            "/ui",
            "/ui/zones",
            "/ui/values",
            f"/ui/values/{title}",
            "/ui/tokens",
            "/ui/tokens/new",
            "/ui/dates",
            "/ui/objects",
            "/ui/examination",
            "/ui/rules",
            "/ui/rules/check",
            f"/ui/rules/{CUSTOM}/new",
        ),
        *("/ui/members", "/ui/audit", "/ui/profile"),
        *(f"/ui/zones?q={HOSTILE[:8]}%22", "/ui?said=%3Cscript%3E", "/ui/objects/Booking"),
    ]
    for path in pages:
        page = visitor.get(path)
        assert page.status == 200, (path, page.words)
        assert "<script>alert" not in page.text, path
        assert "<img src=x" not in page.text, path
        assert page.text.count("<script") == 1, path
    # Parts of the overview, a file; tests/web/test_objects.py, test_cluster.py
    elsewhere = ("/ui/live", "/ui/audit/export", "/ui/objects/", "/ui/cluster")
    for row in PAGES:  # and none of them was forgotten
        assert row.path.startswith(elsewhere) or any(
            path.startswith(row.path.partition("{")[0]) for path in pages
        ), row.path


def test_a_zone_is_signed_by_a_button_and_its_ds_is_shown(web_server, visitor, zone):
    path = f"/ui/zones/{zone}/settings"
    before = visitor.get(path)
    assert "The zone is not signed." in before.words
    assert "Name servers" in before.words

    signed = visitor.post(path, what="active")

    assert "The zone is signed" in signed.words
    id_ = web_server.call("GET", f"/zones?name={zone}").result[0]["id"]
    told = web_server.call("GET", f"/zones/{id_}/dnssec").result
    assert f"<code>{told['ds']}</code>" in signed.text
    assert "Wait until" in told["next"]
    assert f"pending: {told['next']}" in signed.words
    off = visitor.post(path, what="disabled")
    assert "will be served without signatures" in off.words

    def says_what_is_next():  # which is another thing as soon as the parent was asked
        told = web_server.call("GET", f"/zones/{id_}/dnssec").result
        return f"pending-disabled: {told['next']}" in visitor.get(path).words

    web_server.wait_until(says_what_is_next, START_SECONDS_MAX)


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
