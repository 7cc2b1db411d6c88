"""A zone's settings: each one and all of them, their values, the dates that ended some."""

from datetime import date

import pytest

from edgestead.changes import CHANGES, changed
from edgestead.model.call import Profile
from edgestead.model.settings import SETTINGS
from tests.support.api import LocalApi

GOOD = {
    "http2": "on",
    "ssl": "origin_pull",
    "min_tls_version": "1.3",
    "tls_1_3": "zrt",
    "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"],
    "security_level": "under_attack",
    "challenge_ttl": 31_536_000,
    "browser_cache_ttl": 0,
    "edge_cache_ttl": 30,
    "max_upload": 500,
    "pseudo_ipv4": "overwrite_header",
    "nel": {"enabled": True},
    "polish": "lossy",
    "h2_prioritization": "custom",
    "origin_max_http_version": "1",
    "aegis": {"enabled": True, "pool_id": "pool"},
    "automatic_platform_optimization": {
        "enabled": True,
        "cf": True,
        "wordpress": True,
        "wp_plugin": True,
        "hostnames": ["www.example.com"],
        "cache_by_device_type": False,
    },
    "china_network_enabled": "on",
    "content_converter": "on",
    "fonts": "on",
    "origin_h2_max_streams": 1,
    "pre_render": "on",
    "redirects_for_ai_training": "on",
    "search_for_agents": "on",
    "ssl_recommender": True,
    "transformations": "open",
    "transformations_allowed_origins": ",".join(["a.example"] * 100),
    "webmcp_enabled": "on",
    "webmcp_packs": "",
}
BAD = {
    "http2": ("yes", True, None, {}, [], 1, "ON"),
    "ssl": ("on", 1),
    "min_tls_version": ("1.4", 1.2),
    "ciphers": ("a", ["a", 1], ["a" * 129], ["a"] * 65, None),
    "challenge_ttl": (301, "soon", True, -1, 1.5),
    "browser_cache_ttl": (1, [], "9" * 20),
    "max_upload": (1000,),
    "nel": ({}, {"enabled": "yes"}, [], True, {"other": True}),
    "security_header": (
        {},
        {"strict_transport_security": {}},
        {"strict_transport_security": {"max_age": -1}},
    ),
    "cname_flattening": ("flat", True),
    "aegis": ({}, {"enabled": 1}, {"pool_id": 7}, "on"),
    "automatic_platform_optimization": ({}, {"hostnames": "www"}, {"cf": "on"}),
    "origin_h2_max_streams": (0, 1001, "many"),
    "ssl_recommender": ("on", 1, None),
    "transformations_allowed_origins": (None, ["*"], "a" * 4097),
}
ENDED = {  # a setting: its date's subject, its value before, and a good one
    "minify": ("setting-minify", {"css": "off", "html": "off", "js": "off"}, {"css": "on"}),
    "mobile_redirect": (
        "setting-mobile-redirect",
        {"status": "off", "mobile_subdomain": None, "strip_uri": False},
        {"status": "on", "mobile_subdomain": "m"},
    ),
    "privacy_pass": ("setting-privacy-pass", "on", "off"),
}
DAY = {change.subject: change.day for change in CHANGES}


@pytest.fixture
def path(zone_id):
    return f"/zones/{zone_id}/settings"


def known(as_of):
    return [row for row in SETTINGS.values() if row.after != "removed" or not changed(row.subject, as_of)]


@pytest.mark.inside("earlier tests have set the account's defaults")
def test_every_setting_that_the_date_knows_is_listed_with_its_default(api, path, as_of):
    found = {one["id"]: one for one in api.get(path).result}

    assert list(found) == [row.id for row in known(as_of)]
    for row in known(as_of):
        late = row.after in ("fixed", "idle") and changed(row.subject, as_of)
        assert found[row.id]["value"] == (row.late_default if late else row.default), row.id
        assert found[row.id]["modified_on"] is None
        assert found[row.id]["editable"] is (row.id not in ("advanced_ddos", "proxy_read_timeout"))
        assert next(iter(found[row.id])) == "id"
        assert api.get(f"{path}/{row.id}").result == found[row.id]


def test_a_setting_with_another_name_of_its_value_takes_and_shows_both(api, path):
    """The SDKs send `enabled` for ssl_recommender, and read it."""
    setting = f"{path}/ssl_recommender"

    assert api.get(setting).result["enabled"] is False
    changed_ = api.patch(setting, {"enabled": True})
    assert (changed_.result["enabled"], changed_.result["value"]) == (True, True)
    assert changed_.json["messages"][0]["message"].endswith(": ssl_recommender.")
    items = {"items": [{"id": "ssl_recommender", "enabled": False}]}
    assert {one["id"]: one for one in api.patch(path, items).result}["ssl_recommender"]["value"] is False
    refused = api.patch(path, {"items": [{"id": "ssl_recommender", "enabled": "no"}]})
    assert refused.codes == [1007]
    assert refused.json["errors"][0]["source"] == {"pointer": "/items/0/enabled"}
    assert api.patch(f"{path}/ssl", {"enabled": True}).codes == [1007]
    assert "enabled" not in api.get(f"{path}/ssl").result


@pytest.mark.inside("invented time")
def test_a_setting_takes_its_values_and_shows_when(api, path):
    for id_, value in GOOD.items():
        changed_ = api.patch(f"{path}/{id_}", {"value": value}).result

        assert changed_["value"] == value
        assert changed_["modified_on"].startswith("2026-01-02T03:04:05.")
        assert api.get(f"{path}/{id_}").result == changed_
        assert changed_ in api.get(path).result


@pytest.mark.parametrize("id_", BAD)
@pytest.mark.inside("earlier tests have set the account's defaults")
def test_a_bad_value_is_1007_and_changes_nothing(api, path, id_):
    for value in BAD[id_]:
        answer = api.patch(f"{path}/{id_}", {"value": value})

        assert (answer.status, answer.codes) == (400, [1007]), value
        assert answer.json["errors"][0]["message"].startswith(f"Invalid value for zone setting {id_}: ")
        assert answer.json["errors"][0]["source"] == {"pointer": "/value"}
    assert api.get(f"{path}/{id_}").result["modified_on"] is None


@pytest.mark.parametrize("body", [{}, {"other": 1}])
def test_a_value_must_be_sent(api, path, body):
    assert api.patch(f"{path}/ssl", body).codes == [1007]


def test_numbers_may_be_text(api, path):
    assert api.patch(f"{path}/browser_cache_ttl", {"value": "1800"}).result["value"] == 1800


def test_an_object_keeps_the_members_that_are_not_sent(api, path):
    header = {"strict_transport_security": {"enabled": True, "max_age": 600}}
    api.patch(f"{path}/security_header", {"value": header})

    last = api.patch(f"{path}/security_header", {"value": {"strict_transport_security": {"preload": True}}})

    assert last.result["value"]["strict_transport_security"] == {
        "enabled": True,
        "max_age": 600,
        "include_subdomains": False,
        "preload": True,
        "nosniff": False,
    }


def test_an_object_keeps_the_members_that_the_same_body_sent_before(api, path):
    parts = {"enabled": True}, {"max_age": 600}
    items = [{"id": "security_header", "value": {"strict_transport_security": part}} for part in parts]
    found = {one["id"]: one["value"] for one in api.patch(path, {"items": items}).result}
    header = found["security_header"]["strict_transport_security"]
    assert (header["enabled"], header["max_age"]) == (True, 600)


def test_an_unknown_setting_is_1006(api, path):
    for id_ in ("nothing", "SSL", "dns.soa", "zone.hold"):
        for answer in (api.get(f"{path}/{id_}"), api.patch(f"{path}/{id_}", {"value": "on"})):
            assert (answer.status, answer.codes) == (400, [1006])
            assert id_ in answer.json["errors"][0]["message"]


def test_what_a_plan_does_not_include_is_1057(api, zone_id, path):
    refused = api.patch(f"{path}/proxy_read_timeout", {"value": 200})
    api.patch(f"/zones/{zone_id}", {"plan": {"id": "enterprise"}})

    assert (refused.status, refused.codes) == (400, [1057])
    assert api.patch(f"{path}/proxy_read_timeout", {"value": 200}).result["editable"] is True
    assert api.patch(f"{path}/advanced_ddos", {"value": "off"}).codes == [1057]


def test_several_settings_change_together(api, path):
    items = [{"id": "ssl", "value": "full"}, {"id": "http2", "value": "on"}]

    found = {one["id"]: one["value"] for one in api.patch(path, {"items": items}).result}

    assert (found["ssl"], found["http2"], found["http3"]) == ("full", "on", "off")


def test_who_turns_http2_on_is_told_what_the_edge_speaks_then(api, path):
    changed = api.patch(f"{path}/http2", {"value": "on"})

    (remark,) = changed.json["messages"]
    assert "in HTTP/1.1, and in HTTP/2 where `http2` is on" in remark["message"]
    assert api.patch(f"{path}/http2", {"value": "off"}).json["messages"] == []


def test_one_bad_item_stops_all_and_every_bad_one_is_named(api, path):
    items = [
        {"id": "ssl", "value": "full"},
        {"id": "http2", "value": "perhaps"},
        {"id": "nothing", "value": "on"},
        {"id": "advanced_ddos", "value": "off"},
    ]

    answer = api.patch(path, {"items": items})

    assert (answer.status, answer.codes) == (400, [1007, 1006, 1057])
    pointers = [error["source"]["pointer"] for error in answer.json["errors"]]
    assert pointers == ["/items/1/value", "/items/2/id", "/items/3/value"]
    assert api.get(f"{path}/ssl").result["value"] == "off"


@pytest.mark.parametrize("body", [{}, {"items": []}, {"items": [{"id": "ssl", "value": "off"}] * 201}])
def test_without_items_a_patch_of_all_is_1004(api, path, body):
    answer = api.patch(path, body)

    assert (answer.status, answer.codes) == (400, [1004])


def test_development_mode_counts_down_three_hours(api, zone_id, path):
    before = api.get(f"{path}/development_mode").result
    on = api.patch(f"{path}/development_mode", {"value": "on"}).result

    assert (before["value"], before["time_remaining"]) == ("off", 0)
    assert (on["value"], on["time_remaining"]) == ("on", 10_800)
    assert api.get(f"/zones/{zone_id}").result["development_mode"] == 10_800
    assert "time_remaining" not in api.get(f"{path}/ssl").result
    api.patch(f"{path}/development_mode", {"value": "off"})
    assert api.get(f"/zones/{zone_id}").result["development_mode"] < 0


def test_settings_go_with_their_zone(api, zone_id, path):
    api.patch(f"{path}/ssl", {"value": "full"})
    api.delete(f"/zones/{zone_id}")

    assert api.get(path).codes == [1001]
    left = api.store.read(lambda reader: reader.rows("SELECT scope_id FROM settings"))
    assert (zone_id,) not in left


@pytest.mark.parametrize("id_", ENDED)
def test_a_removed_setting_is_known_until_its_date(api, path, as_of, id_):
    subject, default, value = ENDED[id_]
    shown, patched = api.get(f"{path}/{id_}"), api.patch(f"{path}/{id_}", {"value": value})

    if changed(subject, as_of):
        assert (shown.codes, patched.codes) == ([1006], [1006])
    else:
        assert shown.result["value"] == default
        assert patched.result["value"] == ({**default, **value} if isinstance(value, dict) else value)


def test_privacy_pass_was_posted(api, path, as_of):
    answer = api.post(f"{path}/privacy_pass", {"value": "off"})

    if changed("setting-privacy-pass", as_of):
        assert answer.codes == [1006]
    else:
        assert answer.result["value"] == api.get(f"{path}/privacy_pass").result["value"] == "off"


def test_brotli_was_chosen_and_is_always_on_since(api, path, as_of):
    late = changed("setting-brotli", as_of)

    assert api.get(f"{path}/brotli").result["value"] == ("on" if late else "off")
    api.patch(f"{path}/brotli", {"value": "on"})
    assert api.patch(f"{path}/brotli", {"value": "off"}).result["value"] == ("on" if late else "off")


def test_server_side_exclude_is_off_since_its_date_unless_it_was_set(api, path, as_of):
    late = changed("setting-server-side-exclude", as_of)

    assert api.get(f"{path}/server_side_exclude").result["value"] == ("off" if late else "on")
    assert api.patch(f"{path}/server_side_exclude", {"value": "on"}).result["value"] == "on"


@pytest.mark.parametrize("id_", ENDED)
def test_a_setting_ends_on_its_very_day(tmp_path, id_):
    subject, _, _ = ENDED[id_]
    day = DAY[subject]
    api = LocalApi(tmp_path, allow_as_of=True)
    try:
        zone = api.post("/zones", {"name": "example.com"}).result["id"]
        eve = date.fromordinal(day.toordinal() - 1)
        codes = [
            api.get(f"/zones/{zone}/settings/{id_}", headers={"edge-as-of": str(when)}).codes
            for when in (eve, day)
        ]
    finally:
        api.close()

    assert codes == [[], [1006]]


class TestFlattening:
    """One value, two views: spec "DNS settings" and its row of 2025-03-21."""

    WORDS = (
        ("on", True, "on"),
        ("off", False, "apex"),
        ("flatten_all", True, "on"),
        ("apex", False, "apex"),
        ("on", True, "on"),
        ("flatten_at_root", False, "apex"),
        ("flatten_none", False, "apex"),
    )

    def test_the_older_view_writes_the_newer(self, api, zone_id, path):
        for sent, flattens, shown in self.WORDS:
            answered = api.patch(f"{path}/cname_flattening", {"value": sent}).result

            assert answered["value"] == shown
            assert api.get(f"/zones/{zone_id}/dns_settings").result["flatten_all_cnames"] is flattens
            assert {one["id"]: one for one in api.get(path).result}["cname_flattening"] == answered

    @pytest.mark.inside("invented time")
    def test_the_newer_view_writes_the_older_with_its_date(self, api, zone_id, path):
        api.patch(f"/zones/{zone_id}/dns_settings", {"flatten_all_cnames": True})

        shown = api.get(f"{path}/cname_flattening").result
        assert shown["value"] == "on"
        assert shown["modified_on"].startswith("2026-01-02T03:04:05.")
        api.patch(path, {"items": [{"id": "cname_flattening", "value": "apex"}]})
        assert api.get(f"/zones/{zone_id}/dns_settings").result["flatten_all_cnames"] is False


class TestClientsProfile:
    """The original vendor's spellings are answered; both are read in both profiles."""

    @pytest.fixture
    def profile(self):
        return Profile.CLIENTS

    def test_flattening_has_the_vendors_words(self, api, path):
        assert api.get(f"{path}/cname_flattening").result["value"] == "flatten_at_root"
        assert api.patch(f"{path}/cname_flattening", {"value": "on"}).result["value"] == "flatten_all"

    @pytest.mark.parametrize("id_", ["log_to_cloudflare", "log_to_edge"])
    def test_the_log_setting_has_the_vendors_name(self, api, path, id_):
        assert api.patch(f"{path}/{id_}", {"value": "off"}).result["id"] == "log_to_cloudflare"


def test_the_log_setting_has_our_name_and_reads_the_vendors(api, path):
    assert api.patch(f"{path}/log_to_cloudflare", {"value": "off"}).result["id"] == "log_to_edge"


class TestHistory:
    """A change of settings is a change of the zone: who, when, before and after."""

    @pytest.mark.inside("earlier tests have set the account's defaults")
    def test_each_patch_is_one_change_with_what_it_changed(self, api, zone_id, path):
        api.patch(
            path, {"items": [{"id": "ssl", "value": "full"}, {"id": "cname_flattening", "value": "on"}]}
        )
        api.patch(f"{path}/ssl", {"value": "full"})
        api.patch(f"/zones/{zone_id}/dns_settings", {"ns_ttl": 600})
        api.patch(f"/zones/{zone_id}/dnssec", {"dnssec_multi_signer": True})

        changes = api.get(f"/zones/{zone_id}/history?direction=asc").result
        found = [
            [(one["kind"], one["id"], one["before"], one["after"]) for one in c["changes"]] for c in changes
        ]
        assert found[:2] == [
            [("setting", "ssl", None, "full"), ("setting", "dns.flatten_all_cnames", None, True)],
            [("setting", "dns.ns_ttl", None, 600)],
        ]
        assert [one[1] for one in found[2]] == ["zone.dnssec"]
        assert len(found) == 3

    def test_a_refused_patch_is_none(self, api, zone_id, path):
        api.patch(path, {"items": [{"id": "ssl", "value": "full"}, {"id": "http2", "value": "perhaps"}]})

        assert api.get(f"/zones/{zone_id}/history").result == []

    def test_an_undo_takes_settings_back_and_dns_hears_of_it(self, api, zone_id, path):
        dns = f"/zones/{zone_id}/dns_settings"
        before = api.get(dns).result
        api.patch(path, {"items": [{"id": "ssl", "value": "full"}]})
        api.patch(dns, {"ns_ttl": 600, "flatten_all_cnames": True})
        api.changes.clear()

        undone = api.post(f"/zones/{zone_id}/history/2/undo", {}).result

        assert undone == {"sequence": 3, "changes_count": 2}
        assert api.get(dns).result == before
        assert "zone" in {change.kind for change in api.changes}
        assert api.get(f"{path}/ssl").result["value"] == "full"
        assert api.post(f"/zones/{zone_id}/history/3/undo", {}).result["changes_count"] == 2
        assert api.get(dns).result["ns_ttl"] == 600

    def test_an_undo_is_refused_where_the_setting_changed_since(self, api, zone_id, path):
        api.patch(f"{path}/ssl", {"value": "full"})
        api.patch(f"{path}/ssl", {"value": "strict"})

        answer = api.post(f"/zones/{zone_id}/history/1/undo", {})
        assert answer.status == 400
        assert "the setting ssl" in answer.json["errors"][0]["message"]
        assert api.get(f"{path}/ssl").result["value"] == "strict"

    def test_a_restore_brings_records_and_settings_back_in_one_change(self, api, zone_id, path, records):
        api.patch(f"{path}/ssl", {"value": "full"})
        made = api.post(records, {"type": "A", "name": "www", "content": "192.0.2.1"}).result
        api.patch(f"{path}/ssl", {"value": "off"})
        api.delete(f"{records}/{made['id']}")

        done = api.post(f"/zones/{zone_id}/history/2/restore", {}).result

        assert done == {"sequence": 5, "changes_count": 2}
        assert api.get(f"{path}/ssl").result["value"] == "full"
        assert api.get(records).result[0]["id"] == made["id"]

    def test_name_servers_that_are_gone_are_not_brought_back(self, api, zone_id):
        dns = f"/zones/{zone_id}/dns_settings"
        custom = f"/accounts/{api.get('/accounts').result[0]['id']}/custom_ns"
        api.post(custom, {"ns_name": "ns1.mine.test"})
        api.patch(dns, {"nameservers": {"type": "custom.account"}})
        api.patch(dns, {"nameservers": {"type": "edge.standard"}})
        api.delete(f"{custom}/ns1.mine.test")

        assert api.post(f"/zones/{zone_id}/history/2/undo", {}).status == 400
        assert api.get(dns).result["nameservers"]["type"] == "edge.standard"


def test_the_answer_says_which_settings_are_stored_only(api, zone_id):
    settings = f"/zones/{zone_id}/settings"

    def said(path, body):
        return [one["message"] for one in api.patch(path, body).json["messages"]]

    (words,) = said(f"{settings}/early_hints", {"value": "on"})
    assert words == "Stored only, this server serves nothing else for it: early_hints."
    assert said(f"{settings}/ipv6", {"value": "off"}) == []
    items = [{"id": "ssl", "value": "full"}, {"id": "webp", "value": "on"}, {"id": "0rtt", "value": "on"}]
    (words,) = said(settings, {"items": items})
    assert words.endswith(": 0rtt, webp.")
