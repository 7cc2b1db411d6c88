"""Every dated row on the day before, the day, and the day after: what is answered, and who is told."""

import json
from email.utils import parsedate_to_datetime

import pytest

from edgestead.changes import CHANGES, Kind, ending
from edgestead.http1 import head
from edgestead.model.settings import SETTINGS
from edgestead.rest import openapi
from edgestead.rest.routing import BASE_PATH, BEFORE, CONTROL, ROUTES, Router, rows_of
from tests.changes.conftest import ACCOUNT
from tests.support.api import KEY_PAIR

DAYS = (-1, 0, 1)
DATED_HEADERS = {"deprecation", "sunset"}
BY_SUBJECT = {change.subject: change for change in CHANGES}
ENDED = [change for change in CHANGES if change.kind is Kind.ENDPOINT]
DRAFTS = (
    "ECDHE-RSA-CHACHA20-POLY1305-OLD",
    "ECDHE-ECDSA-CHACHA20-POLY1305-D",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_DRAFT",
    "[ECDHE-RSA-AES128-GCM-SHA256|ecdhe-rsa-chacha20-draft]",
    "0xCC13",
    "cc14",
)
STANDARD = (
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
    "0xCCA8",
)
SRV = {"priority": 1, "weight": 2, "port": 3, "target": "a.example.net"}
WWW = {"type": "A", "name": "www", "content": "192.0.2.1"}
PROBES = {}  # of the rows that only their own resource can show


def probe(subject):
    def enter(function):
        PROBES[subject] = function
        return function

    return enter


@pytest.mark.parametrize("days", DAYS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.subject)
def test_a_row_holds_from_its_day_on(on, change, days):
    then = on(change, days)

    if change.kind is Kind.ENDPOINT:
        for endpoint in change.endpoints:
            check_ended(then, change, endpoint)
    elif change.setting and change.removed:
        check_removed_setting(then, change)
    else:
        PROBES[change.subject](then)


def test_every_row_that_is_still_there_is_looked_at_by_itself():
    looked_at = {c.subject for c in CHANGES} - {c.subject for c in CHANGES if c.removed}

    assert set(PROBES) == looked_at


# What ended.


def path_of(endpoint, zone_id):
    """The endpoint's path with ids of several forms."""
    path = endpoint.path.replace("{zone_id}", zone_id).replace("{account_id}", ACCOUNT[-32:])
    for name, value in {"rule_id": "981176", "tunnel_id": "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415"}.items():
        path = path.replace(f"{{{name}}}", value)
    path = path.replace("{path*}", "scripts/a%2Fb")
    return "/".join("5a7805061c76ada191ed06f9" if part[:1] == "{" else part for part in path.split("/"))


def check_ended(then, change, endpoint):
    path = path_of(endpoint, then.zone_id)
    answer = then.call(endpoint.method, path, {"value": "on"})

    if not then.has_changed and is_older(endpoint):
        assert 1197 not in answer.codes  # tests/changes/test_older_products.py has what they answer
        assert not DATED_HEADERS & set(answer.headers)
        return
    (error,) = answer.json["errors"]
    assert str(change.day) in error["message"]
    assert change.advice(path) in error["message"]
    if then.has_changed:
        assert (answer.status, error["code"]) == (410, 1199)
        check_headers(answer, change, then)
    else:
        assert (answer.status, error["code"]) == (400, 1197)
        assert not DATED_HEADERS & set(answer.headers)


def is_older(endpoint):
    """Whether it answers before its day."""
    return (endpoint.method, BASE_PATH + endpoint.path) in BEFORE


def check_headers(answer, change, then):
    assert answer.headers["deprecation"] == f"@{change.day_us // 1_000_000}"
    assert ("sunset" in answer.headers) == change.removed
    if change.removed:
        assert parsedate_to_datetime(answer.headers["sunset"]).date() == change.day
    links = answer.headers["link"].split(", ")
    assert f'</docs/deprecations#{change.subject}>; rel="deprecation"; type="text/html"' in links
    if change.successor:
        successor = change.successor.format(zone_id=then.zone_id, account_id=ACCOUNT[-32:])
        assert f'<{BASE_PATH}{successor}>; rel="successor-version"' in links


@pytest.mark.parametrize("change", ENDED, ids=lambda change: change.subject)
def test_a_method_that_an_ended_path_did_not_have_is_405_with_those_it_had_then_410(on, zone_id, change):
    for path in {endpoint.path for endpoint in change.endpoints}:
        named = {endpoint.method for endpoint in change.endpoints if endpoint.path == path}
        place = path_of(next(one for one in change.endpoints if one.path == path), zone_id)
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} - named:
            before, since = (on(change, days, zone_id).call(method, place) for days in (-1, 0))

            allowed = named | ({"HEAD"} & {"HEAD" if "GET" in named else ""})
            assert (before.status, before.codes) == (405, [7001])
            assert before.headers["allow"] == ", ".join(sorted(allowed))
            assert (since.status, since.codes) == (410, [1199])


@pytest.mark.parametrize("days", [-1, 0])
@pytest.mark.parametrize("change", ENDED, ids=lambda change: change.subject)
def test_who_calls_and_what_they_see_is_decided_before_the_date(on, zone_id, elsewhere, change, days):
    then = on(change, days, zone_id)
    for endpoint in change.endpoints:
        path = path_of(endpoint, zone_id)
        nobody = then.call(endpoint.method, path, auth={})
        stranger = then.call(endpoint.method, path, auth={"authorization": "Bearer " + "x" * 40})
        answers = [nobody, stranger]

        assert (nobody.status, nobody.codes) == (400, [9106])
        assert stranger.status == 403
        if "{zone_id}" in endpoint.path:
            unknown = then.call(endpoint.method, path.replace(zone_id, "e" * 32))
            hidden = then.call(endpoint.method, path, auth=elsewhere)
            answers += [unknown, hidden]
            if days >= 0 or endpoint.method == "GET" or not is_older(endpoint):  # others read a body first
                assert (unknown.status, unknown.codes) == (404, [1001])
            assert (hidden.status, hidden.codes) == (403, [10000])
        elif "{account_id}" in endpoint.path:
            answers.append(then.call(endpoint.method, path.replace(ACCOUNT[-32:], "e" * 32)))
            assert (answers[-1].status, answers[-1].codes) == (403, [9109])
        for answer in answers:
            assert not DATED_HEADERS & set(answer.headers)


def test_who_sees_a_zone_by_any_right_learns_what_ended_in_it(api, zone_id, reader):
    path = f"/zones/{zone_id}/rate_limits"

    assert api.get(path, auth=reader).status == 410
    assert api.get(path, auth=KEY_PAIR).status == 410


def test_script_monitor_names_the_path_to_use(api, zone_id):
    path = f"/zones/{zone_id}/script_monitor/scripts/1"

    assert path.replace("script_monitor", "page_shield") in api.get(path).json["errors"][0]["message"]


def test_a_path_that_no_row_names_is_still_unknown(api, zone_id):
    for path in (
        f"/zones/{zone_id}/firewall",
        f"/zones/{zone_id}/filters/a/b",
        "/user/billing/x",
        "/tunnels",
    ):
        assert api.get(path).codes == [7003, 7000]


@pytest.mark.parametrize(
    "change", [change for change in CHANGES if change.successor], ids=lambda change: change.subject
)
def test_a_successor_is_a_route_of_this_server(zone_id, change):
    path = BASE_PATH + change.successor.format(zone_id=zone_id, account_id=ACCOUNT[-32:])

    row, _ = Router(ROUTES).find("GET", path)

    assert row.change is None


# What left the settings.


def check_removed_setting(then, change):
    path = f"{then.zone}/settings/{change.setting}"
    value = SETTINGS[change.setting].default
    answers = [then.call(method, path, {"value": value}) for method in sorted(setting_methods(change))]
    listed = {one["id"] for one in then.call("GET", f"{then.zone}/settings").result}
    items = {"items": [{"id": change.setting, "value": value}]}
    together = then.call("PATCH", f"{then.zone}/settings", items)

    assert (change.setting in listed) is not then.has_changed
    for answer in (*answers, together):
        assert (answer.status, answer.codes) == ((400, [1006]) if then.has_changed else (200, []))
    for answer in answers:
        if then.has_changed:
            check_headers(answer, change, then)
        else:
            assert not DATED_HEADERS & set(answer.headers)


def setting_methods(change):
    return {endpoint.method for endpoint in change.endpoints} | {"PATCH"}


@pytest.mark.parametrize(
    "change", [change for change in CHANGES if change.setting], ids=lambda change: change.subject
)
def test_a_dated_setting_takes_no_other_method_at_any_date(on, zone_id, change):
    allowed = setting_methods(change)
    for method in {"PUT", "DELETE", "POST"} - allowed:
        for days in DAYS:
            answer = on(change, days, zone_id).call(method, f"/zones/{zone_id}/settings/{change.setting}")

            assert (answer.status, answer.codes) == (405, [7001])
            assert answer.headers["allow"] == ", ".join(sorted({*allowed, "HEAD"}))


def test_rows_and_settings_agree_on_what_is_removed():
    for change in CHANGES:
        if change.setting and SETTINGS[change.setting].subject:
            assert SETTINGS[change.setting].subject == change.subject
            assert (SETTINGS[change.setting].after == "removed") == change.removed
    assert all(change.removed for change in ENDED)


# What goes on beside its replacement.


def check_told(answer, subject, then):
    """The headers stand from the day on, whatever the answer."""
    if then.has_changed:
        check_headers(answer, BY_SUBJECT[subject], then)
    else:
        assert not {*DATED_HEADERS, "link"} & set(answer.headers)


@probe("setting-brotli")
def _(then):
    path = f"{then.zone}/settings/brotli"
    answers = [then.call("PATCH", path, {"value": "off"}), then.call("GET", path)]

    for answer in answers:
        assert answer.result["value"] == ("on" if then.has_changed else "off")
        check_told(answer, "setting-brotli", then)


@probe("setting-server-side-exclude")
def _(then):
    path = f"{then.zone}/settings/server_side_exclude"
    untouched = then.call("GET", path)
    answers = [then.call("PATCH", path, {"value": "on"}), then.call("GET", path)]

    assert untouched.result["value"] == ("off" if then.has_changed else "on")
    for answer in answers:
        assert answer.result["value"] == "on"
        check_told(answer, "setting-server-side-exclude", then)


@probe("setting-cname-flattening")
def _(then):
    old, new = f"{then.zone}/settings/cname_flattening", f"{then.zone}/dns_settings"
    for written, flattens, read in (("on", True, "on"), ("off", False, "apex"), ("apex", False, "apex")):
        answer = then.call("PATCH", old, {"value": written})
        assert answer.result["value"] == read
        assert then.call("GET", new).result["flatten_all_cnames"] is flattens
        check_told(answer, "setting-cname-flattening", then)
    for flattens, read in ((True, "on"), (False, "apex")):
        then.call("PATCH", new, {"flatten_all_cnames": flattens})
        answer = then.call("GET", old)
        listed = {one["id"]: one for one in then.call("GET", f"{then.zone}/settings").result}
        assert answer.result == listed["cname_flattening"]
        assert answer.result["value"] == read
        assert answer.result["modified_on"]
        check_told(answer, "setting-cname-flattening", then)
    items = {"items": [{"id": "cname_flattening", "value": "on"}]}
    then.call("PATCH", f"{then.zone}/settings", items)
    assert then.call("GET", new).result["flatten_all_cnames"] is True
    refused = then.call("PATCH", old, {"value": "flat"})
    assert refused.codes == [1007]
    check_told(refused, "setting-cname-flattening", then)


@probe("dns-settings-endpoints")
def _(then):
    new = f"{then.zone}/dns_settings"
    for name, member in (("use_apex_ns", "multi_provider"), ("secondary_overrides", "secondary_overrides")):
        old = f"{new}/{name}"
        answers = [then.call("PATCH", old, {"value": True})]
        assert then.call("GET", new).result[member] is True
        then.call("PATCH", new, {member: False})
        answers.append(then.call("GET", old))
        assert [answer.result["value"] for answer in answers] == [True, False]
        answers.append(then.call("PATCH", old, {"value": "perhaps"}))
        assert answers[-1].status == 400
        for answer in answers:
            check_told(answer, "dns-settings-endpoints", then)
        assert then.call("GET", new).result[member] is False


# What changed inside of resources.


@probe("account-nameserver-settings")
def _(then):
    account, defaults = then.call("GET", ACCOUNT).result, f"{ACCOUNT}/dns_settings"

    def put(**settings):
        answer = then.call("PUT", ACCOUNT, {"name": account["name"], "settings": settings})
        return answer.result["settings"]

    def newer():
        return then.call("GET", defaults).result["zone_defaults"]["nameservers"]["type"]

    for sent, type_ in (
        ({"default_nameservers": "custom.tenant"}, "custom.tenant"),
        ({"use_account_custom_ns_by_default": False}, "custom.tenant"),
        ({"use_account_custom_ns_by_default": True}, "custom.account"),
        ({"use_account_custom_ns_by_default": False}, "edge.standard"),
        (
            {"default_nameservers": "edge.standard", "use_account_custom_ns_by_default": True},
            "edge.standard",
        ),
    ):
        shown = put(**sent)
        assert (shown["default_nameservers"], newer()) == (type_, type_)
        assert shown["use_account_custom_ns_by_default"] is (type_ == "custom.account")
    for type_ in ("custom.account", "edge.standard.random", "edge.standard"):
        then.call("PATCH", defaults, {"zone_defaults": {"nameservers": {"type": type_}}})
        for shown in (then.call("GET", ACCOUNT).result, then.call("GET", "/accounts").result[0]):
            assert shown["settings"]["default_nameservers"] == type_
            assert shown["settings"]["use_account_custom_ns_by_default"] is (type_ == "custom.account")
    refused = then.call("PUT", ACCOUNT, {"name": "other", "settings": {"default_nameservers": "mine"}})
    assert refused.status == 400
    assert then.call("GET", ACCOUNT).result["name"] == account["name"]


def records_everywhere(then, body):
    """One record as each of the five endpoints answers it."""
    path = f"{then.zone}/dns_records"
    made = then.call("POST", path, body).result
    one = f"{path}/{made['id']}"
    return [
        made,
        then.call("GET", path).result[0],
        then.call("GET", one).result,
        then.call("PATCH", one, {"comment": "x"}).result,
        then.call("PUT", one, {**body, "name": made["name"]}).result,
    ]


@probe("record-zone-fields")
def _(then):
    for record in records_everywhere(then, {**WWW, "zone_id": 5, "zone_name": "other.test"}):
        shown = {name: record[name] for name in ("zone_id", "zone_name") if name in record}
        zone = then.call("GET", then.zone).result
        assert shown == ({} if then.has_changed else {"zone_id": zone["id"], "zone_name": zone["name"]})


@probe("record-locked")
def _(then):
    for record in records_everywhere(then, {**WWW, "locked": True}):
        assert record.get("locked", "absent") == ("absent" if then.has_changed else False)


@probe("dns-error-chain")
def _(then):
    answer = then.call("POST", f"{then.zone}/dns_records", {**WWW, "content": "nope"})

    (error,) = answer.json["errors"]
    if then.has_changed:
        assert (error["code"], "error_chain" in error) == (9005, False)
    else:
        assert (error["code"], error["message"]) == (1004, "DNS Validation Error")
        assert [cause["code"] for cause in error["error_chain"]] == [9005]
    assert (answer.status, answer.json["success"], answer.json["result"]) == (400, False, None)


@probe("srv-data-members")
def _(then):
    path = f"{then.zone}/dns_records"
    members = {"service": "_sip", "proto": "_tcp", "name": then.call("GET", then.zone).result["name"]}
    for record in records_everywhere(then, {"type": "SRV", "name": "_sip._tcp", "data": SRV}):
        assert record["data"] == (SRV if then.has_changed else {**SRV, **members})
    for number, member in enumerate(members):
        body = {
            "type": "SRV",
            "name": f"_sip._tcp.n{number}",
            "data": {**SRV, "port": number, member: members[member]},
        }
        answer = then.call("POST", path, body)
        assert (answer.status, answer.causes) == ((400, [9102]) if then.has_changed else (200, []))


@probe("notification-email")
def _(then):
    shown = json.dumps([openapi.document(ROUTES), *(row.path for row in ROUTES)])

    assert "notification_email" not in shown
    assert "load_balancer" not in shown
    assert "nothing takes or answers the field" in BY_SUBJECT["notification-email"].note
    answer = then.call("POST", f"{ACCOUNT}/load_balancers/pools", {"notification_email": "a@example.com"})
    assert (answer.status, answer.codes) == (404, [7003, 7000])


# What holds at every date.


@probe("draft-chacha20")
def _(then):
    path = f"{then.zone}/settings/ciphers"
    assert then.call("PATCH", path, {"value": list(STANDARD)}).result["value"] == list(STANDARD)
    for draft in DRAFTS:
        assert then.call("PATCH", path, {"value": [*STANDARD, draft]}).codes == [1007], draft
    assert then.call("GET", path).result["value"] == list(STANDARD)


@probe("transfer-encoding-with-content-length")
def _(then):
    """Decided at the head, before any route or date is known; test_transport.py sends it over each socket."""
    both = [(b"host", b"a"), (b"transfer-encoding", b"chunked"), (b"content-length", b"2")]
    for path in (then.zone, "/no/such/route", f"{then.zone}/firewall/rules"):
        with pytest.raises(head.Refused) as caught:
            head.read("1.1", b"GET", f"{BASE_PATH}{path}".encode(), both)

        assert caught.value.args[0] == 400


# The table and the routes.


def test_every_endpoint_of_every_row_is_a_route():
    there = {(row.method, row.path.removeprefix(BASE_PATH)): row for row in ROUTES}
    shapes = {(method, shape(path)): row for (method, path), row in there.items()}

    for change in CHANGES:
        for endpoint in change.endpoints:
            assert shapes[endpoint.method, shape(endpoint.path)].change is change
        for endpoint in change.affected:
            assert there[endpoint.method, endpoint.path].change is None


def shape(path):
    return "/".join("{}" if part.startswith("{") and part[-2:] != "*}" else part for part in path.split("/"))


def test_a_path_has_at_most_one_row():
    paths = [(c.subject, e.path) for c in CHANGES for e in c.endpoints]

    assert {path: subject for subject, path in paths} == {path: ending(path).subject for _, path in paths}
    assert ending("/zones") is None


def test_the_description_says_what_is_deprecated():
    paths = openapi.document(ROUTES)["paths"]

    for row in rows_of(CONTROL):
        operation = paths[row.path.replace("*}", "}")][row.method.lower()]
        assert operation.get("deprecated", False) is (row.change is not None)
        if row.has_ended:
            assert set(operation["responses"]) == {"4XX", "503"}


def test_the_description_marks_members_that_a_date_replaced():
    schemas = openapi.document(ROUTES)["components"]["schemas"]

    for name in ("AccountSettings", "SettingsBody"):
        found = [one for key, one in schemas.items() if name in key and "default_nameservers" in str(one)]
        for schema in found:
            members = schema["properties"]
            assert {member for member in members if members[member].get("deprecated")} == {
                "default_nameservers",
                "use_account_custom_ns_by_default",
            }
        assert found


def test_the_page_that_links_lead_to_has_every_row(api):
    answer = api.get("/docs/deprecations", base="", auth={})
    page = answer.body.decode()

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    for change in CHANGES:
        assert f'<h2 id="{change.subject}">' in page
    assert "<script" not in page
