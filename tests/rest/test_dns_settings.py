"""DNS settings of zones and accounts: what is stored, and what the feed is told to serve for it."""

import pytest

from edgestead.changes import NEWEST
from edgestead.model import names, served
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.records import TYPES
from edgestead.usecases import limits
from edgestead.usecases.zone import refreshing
from tests.support.api import CREDENTIALS, FIRST_US

ACCOUNT = f"/accounts/{CREDENTIALS.account_id}"
SERVERS = ("ns1.edge.internal", "ns2.edge.internal")
SOA = {
    "mname": None,
    "rname": "hostmaster.edge.internal",
    "refresh": 10_000,
    "retry": 2_400,
    "expire": 604_800,
    "min_ttl": 1_800,
    "ttl": 3_600,
}
DEFAULTS = {
    "flatten_all_cnames": False,
    "foundation_dns": False,
    "multi_provider": False,
    "nameservers": {"type": "edge.standard", "ns_set": 1},
    "ns_ttl": 86_400,
    "secondary_overrides": False,
    "soa": SOA,
    "zone_mode": "standard",
}
BAD = {  # what is sent, and where the refusal points
    "/ns_ttl": ({"ns_ttl": 29}, {"ns_ttl": 86_401}),
    "/zone_mode": ({"zone_mode": "proxy_only"}, {"zone_mode": "dns_only"}),
    "/nameservers/type": (
        {"nameservers": {"type": "edge.basic"}},
        {"nameservers": {"type": "edge.standard.random"}},
        {"nameservers": {"type": "custom"}},
    ),
    "/nameservers/ns_set": ({"nameservers": {"ns_set": 0}}, {"nameservers": {"ns_set": 6}}),
    "/nameservers": (
        {"nameservers": {"type": "custom.account"}},
        {"nameservers": {"type": "custom.zone"}},
    ),
    "/soa/refresh": ({"soa": {"refresh": 599}}, {"soa": {"refresh": 86_401}}),
    "/soa/retry": ({"soa": {"retry": 599}}, {"soa": {"retry": 3_601}}),
    "/soa/expire": ({"soa": {"expire": 86_399}}, {"soa": {"expire": 2_419_201}}),
    "/soa/min_ttl": ({"soa": {"min_ttl": 59}}, {"soa": {"min_ttl": 86_401}}),
    "/soa/ttl": ({"soa": {"ttl": 299}}, {"soa": {"ttl": 86_401}}),
    "/soa/mname": ({"soa": {"mname": "ns"}}, {"soa": {"mname": "-a.test"}}),
    "/soa/rname": ({"soa": {"rname": "me@example.com"}}, {"soa": {"rname": "a..b"}}),
    "/soa": ({"soa": {"refresh": 1_200}}, {"soa": {"refresh": 600, "retry": 601}}),
    "/internal_dns/reference_zone_id": ({"internal_dns": {"reference_zone_id": "a" * 32}},),
}


def upkeep(api):
    """What the server does between requests: zones that wait are rendered again."""
    nobody = Call(
        actor=Actor(kind="account", id=""),
        as_of=NEWEST,
        profile=Profile.SPEC,
        now_us=FIRST_US + 1_000_000,
        request_id="",
    )
    while api.store.write(lambda tx: refreshing.go_on(nobody, tx, api.platform)).result(60).value:
        pass


@pytest.fixture
def path(zone_id):
    return f"/zones/{zone_id}/dns_settings"


@pytest.fixture
def told(api, zone_id):
    """What the feed was told last of the zone: (SOA text without serial, SOA TTL, NS TTL, NS names)."""

    def read():
        mine = [change for change in api.changes if change.scope == zone_id]
        zone = served.decode_zone([one.doc for one in mine if one.kind == served.KIND_ZONE][-1])
        apex = zone.apex.hex()
        name = served.decode_name([one.doc for one in mine if one.key == apex][-1])
        mname, rname, _, *times = TYPES["SOA"].rdata.from_wire(zone.soa_rdata).to_content().split()
        (ns,) = [rrset for rrset in name.rrsets if rrset.type == TYPES["NS"].number]
        hosts = sorted(names.text_from_wire(rdata) for rdata in ns.rdatas)
        return " ".join((mname, rname, *times)), zone.soa_ttl_seconds, ns.ttl_seconds, hosts

    return read


def test_a_zone_starts_with_the_defaults(api, path, told):
    assert api.get(path).result == DEFAULTS
    assert told() == (
        "ns2.edge.internal hostmaster.edge.internal 10000 2400 604800 1800",
        3_600,
        86_400,
        [*SERVERS],
    )


def test_a_patch_keeps_what_it_does_not_name(api, path):
    api.patch(path, {"flatten_all_cnames": True, "soa": {"min_ttl": 60}})
    api.patch(path, {"foundation_dns": True, "secondary_overrides": True, "soa": {"refresh": 9_000}})

    assert api.get(path).result == {
        **DEFAULTS,
        "flatten_all_cnames": True,
        "foundation_dns": True,
        "secondary_overrides": True,
        "soa": {**SOA, "min_ttl": 60, "refresh": 9_000},
    }


@pytest.mark.parametrize("pointer", BAD)
def test_a_bad_value_is_refused_with_its_place_and_changes_nothing(api, path, pointer):
    for body in BAD[pointer]:
        answer = api.patch(path, {"multi_provider": True, **body})

        assert (answer.status, answer.codes) == (400, [1001]), body
        assert answer.json["errors"][0]["source"] == {"pointer": pointer}
    assert api.get(path).result == DEFAULTS


ROUTES = ("use_apex_ns", "secondary_overrides")
LIKE_TRUTH = (1, 0, "true", "false", "on", [])
SWITCHES = ("flatten_all_cnames", "foundation_dns", "multi_provider", "secondary_overrides")


@pytest.mark.parametrize("value", LIKE_TRUTH, ids=repr)
def test_only_true_and_false_are_truth(api, path, value):
    account = f"{ACCOUNT}/dns_settings"
    answers = [(api.patch(path, {name: value}), f"/{name}") for name in SWITCHES]
    answers += [
        (api.patch(account, {"zone_defaults": {name: value}}), f"/zone_defaults/{name}") for name in SWITCHES
    ]
    answers.append((api.patch(account, {"enforce_dns_only": value}), "/enforce_dns_only"))
    answers += [(api.patch(f"{path}/{name}", {"value": value}), "/value") for name in ROUTES]

    for answer, pointer in answers:
        assert (answer.status, answer.codes) == (400, [9207])
        assert answer.json["errors"][0]["source"] == {"pointer": pointer}
    assert api.get(path).result == DEFAULTS


def test_what_is_stored_only_is_said_to_be(api, zone_id, path):
    api.patch(f"/zones/{zone_id}", {"plan": {"id": "enterprise"}})

    def said(**sent):
        return [(one["code"], one["message"]) for one in api.patch(path, sent).json["messages"]]

    ((code, words),) = said(foundation_dns=True, secondary_overrides=True, ns_ttl=600, zone_mode="cdn_only")
    assert code == 10_000
    assert words.endswith(": foundation_dns, secondary_overrides, zone_mode.")
    assert said(ns_ttl=600, zone_mode="dns_only", multi_provider=True) == []


def test_a_zone_mode_needs_the_enterprise_plan(api, zone_id, path):
    refused = api.patch(path, {"zone_mode": "dns_only"})
    api.patch(f"/zones/{zone_id}", {"plan": {"id": "enterprise"}})

    assert "Custom zone modes are not available" in refused.json["errors"][0]["message"]
    assert api.patch(path, {"zone_mode": "dns_only"}).result["zone_mode"] == "dns_only"


def test_soa_settings_are_served(api, path, told):
    soa = {
        "mname": "Primary.Example.net.",
        "rname": "dns.example.net",
        "refresh": 7_200,
        "retry": 3_600,
        "expire": 86_400,
        "min_ttl": 300,
        "ttl": 1_800,
    }
    changed = api.patch(path, {"soa": soa}).result

    assert changed["soa"] == {**soa, "mname": "primary.example.net"}
    assert told()[:2] == ("primary.example.net dns.example.net 7200 3600 86400 300", 1_800)
    api.patch(path, {"soa": {"mname": None, "rname": None}})
    assert told()[0].startswith("ns2.edge.internal hostmaster.edge.internal 7200")


def test_a_record_keeps_the_zones_soa(api, path, records, told):
    api.patch(path, {"soa": {"min_ttl": 60}, "ns_ttl": 600})
    api.post(records, {"type": "TXT", "name": "@", "content": "text"})

    soa, _, ns_ttl, _ = told()
    assert (soa.split()[-1], ns_ttl) == ("60", 600)


def test_a_change_that_dns_does_not_see_tells_the_feed_nothing(api, path):
    api.changes.clear()

    api.patch(path, {"flatten_all_cnames": True, "secondary_overrides": True})
    api.patch(path, {"soa": {"min_ttl": 1_800}, "ns_ttl": 86_400, "multi_provider": False})

    assert api.changes == []


def test_a_change_of_the_apex_is_one_serial_further(api, path, zone_id):
    def serial():
        docs = [one.doc for one in api.changes if one.kind == served.KIND_ZONE]
        return TYPES["SOA"].rdata.from_wire(served.decode_zone(docs[-1]).soa_rdata).serial

    before = serial()
    api.patch(path, {"ns_ttl": 600})

    assert serial() == before + 1


def test_multi_provider_serves_ns_records_at_the_apex(api, path, records, told):
    api.post(records, {"type": "NS", "name": "@", "content": "ns.other.test", "ttl": 900})
    assert told()[2:] == (86_400, [*SERVERS])

    api.patch(path, {"multi_provider": True})
    assert told()[2:] == (900, ["ns.other.test", *SERVERS])

    made = api.post(records, {"type": "NS", "name": "@", "content": "ns2.other.test", "ttl": 600}).result
    assert told()[2:] == (600, ["ns.other.test", *SERVERS, "ns2.other.test"])
    api.delete(f"{records}/{made['id']}")
    api.patch(path, {"multi_provider": False})
    assert told()[2:] == (86_400, [*SERVERS])


class TestDedicatedRoutes:
    """Spec, 2024-09-13: the older two routes show one value with the DNS settings, at every date."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [("use_apex_ns", "multi_provider"), ("secondary_overrides", "secondary_overrides")],
    )
    @pytest.mark.inside("invented time")
    def test_both_views_are_in_sync(self, api, path, old, new):
        assert api.get(f"{path}/{old}").result == {
            "id": old,
            "value": False,
            "editable": True,
            "modified_on": None,
        }
        changed = api.patch(f"{path}/{old}", {"value": True}).result
        assert changed["value"] is True
        assert changed["modified_on"].startswith("2026-01-02T")
        assert api.get(path).result[new] is True
        api.patch(path, {new: False})
        assert api.get(f"{path}/{old}").result["value"] is False

    def test_use_apex_ns_is_served(self, api, path, records, told):
        api.post(records, {"type": "NS", "name": "@", "content": "ns.other.test"})
        api.patch(f"{path}/use_apex_ns", {"value": True})

        assert "ns.other.test" in told()[3]

    @pytest.mark.parametrize("body", [{}, {"value": "perhaps"}, {"value": None}])
    def test_a_value_must_be_sent(self, api, path, body):
        assert api.patch(f"{path}/use_apex_ns", body).codes == [9207]


class TestCustomNameservers:
    CUSTOM = f"{ACCOUNT}/custom_ns"

    def add(self, api, name, ns_set=None):
        return api.post(self.CUSTOM, {"ns_name": name} | ({"ns_set": ns_set} if ns_set else {})).result

    def test_a_name_server_has_the_addresses_of_its_name(self, api, zone_id, records):
        assert api.get(self.CUSTOM).result == []
        assert self.add(api, "NS1.example.com.") == {
            "ns_name": "ns1.example.com",
            "ns_set": 1,
            "zone_tag": zone_id,
            "status": "pending",
            "dns_records": [],
        }
        for type_, content in (("A", "192.0.2.53"), ("AAAA", "2001:db8::53")):
            api.post(records, {"type": type_, "name": "ns1", "content": content})
        (shown,) = api.get(self.CUSTOM).result
        assert shown["status"] == "verified"
        assert shown["dns_records"] == [
            {"type": "A", "value": "192.0.2.53"},
            {"type": "AAAA", "value": "2001:db8::53"},
        ]

    def test_a_name_outside_of_our_zones_is_pending(self, api):
        made = self.add(api, "ns.elsewhere.test", 5)

        assert (made["zone_tag"], made["status"], made["ns_set"]) == (None, "pending", 5)

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"ns_name": "ns"},
            {"ns_name": "a..b"},
            {"ns_name": "n.test", "ns_set": 6},
            {"ns_name": "*.a.b"},
        ],
    )
    def test_what_is_no_name_server_is_refused(self, api, body):
        answer = api.post(self.CUSTOM, body)

        assert (answer.status, answer.codes) == (400, [1001])
        assert api.get(self.CUSTOM).result == []

    def test_a_name_server_is_there_once_and_there_are_25(self, api):
        self.add(api, "ns1.elsewhere.test")
        again = api.post(self.CUSTOM, {"ns_name": "ns1.elsewhere.test", "ns_set": 2})
        assert (again.status, again.codes) == (400, [1001])
        for number in range(2, 26):
            self.add(api, f"ns{number}.elsewhere.test")
        assert api.post(self.CUSTOM, {"ns_name": "ns26.elsewhere.test"}).codes == [1001]
        assert len(api.get(self.CUSTOM).result) == 25

    def test_a_zone_serves_the_set_that_it_chooses(self, api, zone_id, path, told):
        self.add(api, "ns2.mine.test", 2)
        self.add(api, "ns1.mine.test", 2)
        self.add(api, "ns1.other.test", 1)

        api.patch(path, {"nameservers": {"type": "custom.account", "ns_set": 2}})

        soa, _, _, hosts = told()
        assert soa.startswith("ns1.mine.test hostmaster.mine.test ")
        assert hosts == ["ns1.mine.test", "ns2.mine.test"]
        assert api.get(f"/zones/{zone_id}").result["name_servers"] == hosts
        assert api.get(path).result["soa"]["rname"] == "hostmaster.mine.test"
        api.patch(path, {"nameservers": {"ns_set": 1}})
        assert told()[3] == ["ns1.other.test"]
        api.patch(path, {"nameservers": {"type": "edge.advanced"}})
        assert told()[3] == [*SERVERS]

    def test_a_change_of_a_set_is_served_by_its_zones(self, api, zone_id, path, told):
        self.add(api, "ns1.mine.test")
        api.patch(path, {"nameservers": {"type": "custom.account"}})
        self.add(api, "ns2.mine.test")
        assert told()[3] == ["ns1.mine.test", "ns2.mine.test"]

        assert api.delete(f"{self.CUSTOM}/NS1.mine.test").result == []
        assert told()[3] == ["ns2.mine.test"]
        last = api.delete(f"{self.CUSTOM}/ns2.mine.test")
        assert (last.status, last.codes) == (400, [1001])
        assert told()[3] == ["ns2.mine.test"]
        api.patch(path, {"nameservers": {"type": "edge.standard"}})
        assert api.delete(f"{self.CUSTOM}/ns2.mine.test").status == 200

    def test_zones_beyond_the_limit_of_a_change_are_served_by_the_upkeep(
        self, api, zone_id, path, told, monkeypatch
    ):
        monkeypatch.setattr(limits, "ZONES_SERVED_ANEW_MAX", 1)
        self.add(api, "ns1.mine.test")
        other = api.post("/zones", {"name": "other.test"}).result["id"]
        unconcerned = api.post("/zones", {"name": "unconcerned.test"}).result["id"]
        for each in (zone_id, other):
            api.patch(f"/zones/{each}/dns_settings", {"nameservers": {"type": "custom.account"}})
        api.changes.clear()

        self.add(api, "ns2.mine.test")

        assert api.changes == []
        upkeep(api)
        assert told()[3] == ["ns1.mine.test", "ns2.mine.test"]
        assert {one.scope for one in api.changes} == {zone_id, other} != {unconcerned}

    @pytest.mark.parametrize("at_once", [0, 1])
    def test_a_record_of_the_soa_follows_the_first_name_server(
        self, api, path, records, monkeypatch, at_once
    ):
        monkeypatch.setattr(limits, "ZONES_SERVED_ANEW_MAX", at_once)
        soa = "ns.x.test host.x.test 1 10000 2400 604800 1800"
        record = f"{records}/{api.post(records, {'type': 'SOA', 'name': '@', 'content': soa}).result['id']}"
        self.add(api, "ns2.mine.test")
        api.patch(path, {"nameservers": {"type": "custom.account"}, "soa": {"mname": None}})

        self.add(api, "ns1.mine.test")
        upkeep(api)

        assert api.get(record).result["content"].startswith("ns1.mine.test host.x.test 1 ")

    def test_an_unknown_name_server_is_404(self, api):
        answer = api.delete(f"{self.CUSTOM}/ns9.mine.test")

        assert (answer.status, answer.codes) == (404, [1001])

    def test_the_zones_older_view_is_in_sync(self, api, zone_id, path, told):
        custom = f"/zones/{zone_id}/custom_ns"
        self.add(api, "ns1.mine.test", 3)
        first = api.get(custom).json
        assert (first["enabled"], first["ns_set"], first["result"], first["success"]) == (False, 1, [], True)

        assert api.put(custom, {"enabled": True, "ns_set": 3}).result == []

        assert api.get(path).result["nameservers"] == {"type": "custom.account", "ns_set": 3}
        assert told()[3] == ["ns1.mine.test"]
        api.put(custom, {"enabled": False})
        assert api.get(custom).json["enabled"] is False
        assert told()[3] == [*SERVERS]

    @pytest.mark.parametrize("body", [{"enabled": True}, {"enabled": True, "ns_set": 9}, {"ns_set": 0}])
    def test_the_zones_older_view_refuses_a_set_without_a_name_server(self, api, zone_id, body):
        assert api.put(f"/zones/{zone_id}/custom_ns", body).codes == [1001]

    def test_names_of_zones_are_available(self, api, zone_id):
        assert api.get(f"{self.CUSTOM}/availability").result == ["example.com"]

    def test_a_zones_own_name_servers_are_served(self, api, zone_id, path, told):
        zone = f"/zones/{zone_id}"
        vanity = ["ns2.example.com", "NS1.example.com."]
        changed = api.patch(zone, {"vanity_name_servers": vanity}).result

        hosts = ["ns1.example.com", "ns2.example.com"]
        assert changed["vanity_name_servers"] == changed["name_servers"] == hosts
        assert told()[3] == hosts
        assert api.get(path).result["nameservers"]["type"] == "custom.zone"
        cleared = api.patch(zone, {"vanity_name_servers": []}).result
        assert (cleared["vanity_name_servers"], cleared["name_servers"]) == ([], [*SERVERS])
        assert told()[3] == [*SERVERS]
        bad = api.patch(zone, {"vanity_name_servers": ["ns1.example.com", "ns"]})
        assert bad.codes == [1001]
        assert bad.json["errors"][0]["source"] == {"pointer": "/vanity_name_servers/1"}
        assert api.patch(zone, {"vanity_name_servers": [f"n{n}.a.test" for n in range(11)]}).codes == [1001]


class TestAccountDefaults:
    PATH = f"{ACCOUNT}/dns_settings"

    def test_an_account_starts_with_the_defaults(self, api):
        defaults = {**DEFAULTS, "nameservers": {"type": "edge.standard"}}
        assert api.get(self.PATH).result == {"zone_defaults": defaults, "enforce_dns_only": False}

    def test_only_later_zones_get_them(self, api, zone_id, path):
        body = {"ns_ttl": 600, "soa": {"min_ttl": 60}, "flatten_all_cnames": True, "multi_provider": True}
        changed = api.patch(self.PATH, {"zone_defaults": body, "enforce_dns_only": True}).result
        api.changes.clear()
        later = api.post("/zones", {"name": "later.test"}).result["id"]

        assert changed["enforce_dns_only"] is True
        assert changed["zone_defaults"]["soa"]["min_ttl"] == 60
        assert api.get(path).result == DEFAULTS
        shown = api.get(f"/zones/{later}/dns_settings").result
        assert shown == {**DEFAULTS, **body, "soa": {**SOA, "min_ttl": 60}}
        name = served.decode_name([one.doc for one in api.changes if one.kind == served.KIND_NAME][-1])
        assert [rrset.ttl_seconds for rrset in name.rrsets] == [600]

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"ns_ttl": 1}, "/zone_defaults/ns_ttl"),
            ({"nameservers": {"type": "custom.zone"}}, "/zone_defaults/nameservers/type"),
        ],
    )
    def test_bad_defaults_are_refused(self, api, body, pointer):
        answer = api.patch(self.PATH, {"zone_defaults": body})

        assert (answer.status, answer.codes) == (400, [1001])
        assert answer.json["errors"][0]["source"] == {"pointer": pointer}

    def test_the_accounts_older_settings_are_in_sync(self, api):
        """Spec, 2025-03-14."""

        def settings(**sent):
            answer = api.put(ACCOUNT, {"name": "mine", "settings": sent}).result["settings"]
            assert api.get(ACCOUNT).result["settings"] == answer
            assert api.get("/accounts").result[0]["settings"] == answer
            new = api.get(self.PATH).result["zone_defaults"]["nameservers"]["type"]
            assert new == answer["default_nameservers"]
            return new, answer["use_account_custom_ns_by_default"]

        assert settings(default_nameservers="custom.tenant") == ("custom.tenant", False)
        assert settings(use_account_custom_ns_by_default=False) == ("custom.tenant", False)
        assert settings(use_account_custom_ns_by_default=True) == ("custom.account", True)
        assert settings(use_account_custom_ns_by_default=False) == ("edge.standard", False)
        assert settings(
            default_nameservers="edge.standard.random", use_account_custom_ns_by_default=True
        ) == ("edge.standard.random", False)
        api.patch(self.PATH, {"zone_defaults": {"nameservers": {"type": "custom.account"}}})
        assert settings() == ("custom.account", True)

    def test_a_zone_of_an_account_without_name_servers_has_the_servers_own(self, api):
        for type_ in ("custom.account", "edge.standard.random"):
            api.patch(self.PATH, {"zone_defaults": {"nameservers": {"type": type_}}})
            zone = api.post("/zones", {"name": f"{type_}.test"}).result

            assert zone["name_servers"] == [*SERVERS]

    def test_an_unknown_account_is_403(self, api):
        for answer in (
            api.get(f"/accounts/{'b' * 32}/dns_settings"),
            api.patch(f"/accounts/{'b' * 32}/dns_settings", {}),
            api.get(f"/accounts/{'b' * 32}/custom_ns"),
        ):
            assert (answer.status, answer.codes) == (403, [9109])


class TestClientsProfile:
    @pytest.fixture
    def profile(self):
        return Profile.CLIENTS

    def test_the_vendors_spelling_is_answered_and_both_are_read(self, api, path):
        for sent in ("cloudflare.advanced", "edge.advanced"):
            shown = api.patch(path, {"nameservers": {"type": sent}}).result["nameservers"]
            assert shown == {"type": "cloudflare.advanced", "ns_set": 1}
        assert api.get(ACCOUNT).result["settings"]["default_nameservers"] == "cloudflare.standard"


def test_the_vendors_spelling_is_read_and_ours_answered(api, path):
    shown = api.patch(path, {"nameservers": {"type": "cloudflare.advanced"}}).result["nameservers"]

    assert shown["type"] == "edge.advanced"


class TestDnssec:
    @pytest.fixture
    def dnssec(self, zone_id):
        return f"/zones/{zone_id}/dnssec"

    def test_it_is_disabled_and_has_no_keys(self, api, dnssec):
        shown = api.get(dnssec).result

        assert shown["status"] == "disabled"
        for key in ("flags", "algorithm", "digest", "ds", "key_tag", "public_key", "modified_on"):
            assert shown[key] is None
        assert api.get(f"{dnssec}/zsk").result == []

    def test_it_is_switched_by_its_status(self, api, dnssec):
        disabled = api.patch(dnssec, {"status": "disabled"})
        other = api.patch(dnssec, {"status": "pending"})
        active = api.patch(dnssec, {"status": "active", "dnssec_multi_signer": True})

        assert (disabled.status, other.status, active.status) == (400, 400, 200)
        assert disabled.json["errors"][0]["message"] == "DNSSEC is already disabled"
        assert (active.result["status"], active.result["dnssec_multi_signer"]) == ("pending", True)
        assert active.result["ds"].startswith("example.com. 3600 IN DS ")
        assert api.patch(dnssec, {"status": "disabled"}).result["status"] == "pending-disabled"

    @pytest.mark.inside("invented time")
    def test_its_switches_are_stored(self, api, dnssec):
        api.patch(dnssec, {"dnssec_multi_signer": True})
        shown = api.patch(dnssec, {"dnssec_use_nsec3": True, "status": "disabled"}).result

        switches = ("dnssec_multi_signer", "dnssec_presigned", "dnssec_use_nsec3")
        assert [shown[name] for name in switches] == [True, False, True]
        assert shown["modified_on"].startswith("2026-01-02T")
        assert isinstance(api.delete(dnssec).result, str)
        assert api.get(dnssec).result["dnssec_multi_signer"] is False


def test_an_unknown_zone_is_404(api):
    unknown = f"/zones/{'e' * 32}"
    for method, path, body in (
        ("GET", "/dns_settings", None),
        ("PATCH", "/dns_settings", {}),
        ("PATCH", "/dns_settings/use_apex_ns", {"value": True}),
        ("GET", "/dns_settings/secondary_overrides", None),
        ("GET", "/dnssec", None),
        ("PATCH", "/dnssec", {"dnssec_multi_signer": True}),
        ("DELETE", "/dnssec", None),
        ("GET", "/dnssec/zsk", None),
        ("GET", "/custom_ns", None),
        ("PUT", "/custom_ns", {"enabled": False}),
        ("GET", "/settings", None),
        ("PATCH", "/settings", {"items": [{"id": "ssl", "value": "off"}]}),
        ("GET", "/settings/ssl", None),
        ("PATCH", "/settings/ssl", {"value": "off"}),
    ):
        answer = api.call(method, unknown + path, body)
        assert (answer.status, answer.codes) == (404, [1001]), path
