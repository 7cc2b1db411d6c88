"""An account brought over from one server to another, both real."""

import json

import pytest

from tests.cli.conftest import call

RECORDS = (
    ("A", "www", "192.0.2.1", {"proxied": False, "ttl": 300, "comment": "the page", "tags": ["team:web"]}),
    ("AAAA", "www", "2001:db8::1", {}),
    ("CNAME", "shop", "www.example.com", {}),
    ("MX", "example.com", "mail.example.com", {"priority": 10}),
    ("TXT", "example.com", "v=spf1 mx -all", {}),
    ("NS", "sub", "ns.example.net", {}),
)
CAA = {"type": "CAA", "name": "example.com", "data": {"flags": 0, "tag": "issue", "value": "ca.example"}}
DS = {
    "type": "DS",
    "name": "sub",
    "data": {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab" * 32},
}
RULES = [{"action": "log", "expression": 'http.host eq "www.example.com"', "description": "seen"}]
ENTRY = "rulesets/phases/http_request_firewall_custom/entrypoint"
ALL = {"zones", "records", "settings", "rulesets", "namespaces", "values"}


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A server with one of everything."""
    from edgestead.testing.server import EdgeServer

    server = EdgeServer(tmp_path_factory.mktemp("there") / "data").start()
    zone = server.make_zone("example.com")
    for type_, name, content, more in RECORDS:
        assert server.make_record(zone, type_, name, content, **more).status == 200
    for body in (CAA, DS):
        assert server.call("POST", f"/zones/{zone}/dns_records", body).status == 200
    server.make_zone("example.net")
    changes = (
        ("PATCH", "settings/ssl", {"value": "strict"}),
        ("PATCH", "dns_settings", {"flatten_all_cnames": True}),
        ("PUT", ENTRY, {"rules": RULES}),
    )
    for method, path, body in changes:
        assert server.call(method, f"/zones/{zone}/{path}", body).status == 200
    kv = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
    namespace = server.call("POST", kv, {"title": "texts"}).result["id"]
    values = [
        {"key": "plain", "value": "one"},
        {"key": "with/all?", "value": "two", "metadata": {"a": [1]}, "expiration": 4_000_000_000},
    ]
    assert server.call("PUT", f"{kv}/{namespace}/bulk", values).status == 200
    yield server
    server.close()


@pytest.fixture
def here(clean_environment, new_server, monkeypatch):
    server = new_server().start()
    monkeypatch.setenv("EDGE_API_BASE", server.ready["api_base"])
    monkeypatch.setenv("EDGE_TOKEN", server.ready["api_token"])
    return server


@pytest.fixture
def bring_over(there, here, monkeypatch):
    monkeypatch.setenv("IMPORT_TOKEN", there.ready["api_token"])

    def run(*options):
        done = call("import", "--from", there.ready["api_base"], "--json", *options)
        return done.code, json.loads(done.out)

    return run


def everything(server):
    """What a server has, without ids and times."""
    zones = {}
    for zone in server.call("GET", "/zones").result:
        path = f"/zones/{zone['id']}"
        records = server.call("GET", f"{path}/dns_records").result
        rules = server.call("GET", f"{path}/{ENTRY}")
        zones[zone["name"]] = (
            sorted(
                (one["type"], one["name"], one["content"], one["ttl"], one["proxied"], str(one["comment"]))
                for one in records
            ),
            server.call("GET", f"{path}/settings/ssl").result["value"],
            server.call("GET", f"{path}/dns_settings").result["flatten_all_cnames"],
            [rule["expression"] for rule in rules.result["rules"]] if rules.status == 200 else [],
        )
    kv = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
    values = {
        space["title"]: sorted(
            (one["name"], one.get("expiration"), str(one.get("metadata")))
            for one in server.call("GET", f"{kv}/{space['id']}/keys").result
        )
        for space in server.call("GET", kv).result
    }
    return zones, values


def test_everything_comes_over_and_a_second_run_finds_it(there, here, bring_over):
    code, report = bring_over()

    assert (code, report["refused"]) == (0, [])
    assert set(report["made"]) == ALL
    assert everything(here) == everything(there)

    uses = here.call("GET", f"/accounts/{here.ready['account_id']}/deprecations/usage")
    assert uses.result == [], "a move uses nothing that a date ended"

    code, again = bring_over()
    assert (code, again["made"], again["refused"]) == (0, {}, [])
    assert again["here_already"]["records"] == len(RECORDS) + 2


def test_a_dry_run_says_the_same_and_does_nothing(here, bring_over):
    code, plan = bring_over("--dry-run")

    assert everything(here) == ({}, {})
    assert (code, plan["made"]["zones"], plan["made"]["records"]) == (0, 2, len(RECORDS) + 2)
    assert bring_over()[1]["made"] == plan["made"]


def test_a_dry_run_over_what_is_here_says_the_same(here, bring_over):
    here.make_zone("example.com")

    assert bring_over("--dry-run")[1]["made"] == bring_over()[1]["made"]


def test_one_zone_and_one_kind_can_be_chosen(here, bring_over):
    bring_over("--zone", "example.net")
    assert set(everything(here)[0]) == {"example.net"}

    bring_over("--only", "values")
    zones, values = everything(here)
    assert set(zones) == {"example.net"}
    assert set(values) == {"texts"}


def test_a_run_that_was_cut_short_is_run_again(there, here, bring_over):
    zone = here.make_zone("example.com")
    here.make_record(zone, "A", "www", "192.0.2.1", ttl=300, comment="the page")

    code, report = bring_over()

    assert code == 0
    assert report["here_already"]["zones"] == report["here_already"]["records"] == 1
    assert everything(here) == everything(there)


def test_what_is_refused_is_told_and_the_rest_comes_over(here, bring_over):
    zone = here.make_zone("example.com")
    here.make_record(zone, "A", "shop", "192.0.2.9")

    code, report = bring_over()

    assert code == 1
    (refused,) = report["refused"]
    assert "shop.example.com CNAME" in refused["what"]
    assert report["made"]["records"] == len(RECORDS) + 1


def test_a_zone_that_is_not_there_is_told_before_anything_happens(here, bring_over, there):
    done = call("import", "--from", there.ready["api_base"], "--zone", "example.org")

    assert (done.code, everything(here)) == (1, ({}, {}))
    assert "example.org" in done.err


def test_without_credentials_nothing_is_asked(here, monkeypatch):
    for name in ("IMPORT_TOKEN", "IMPORT_EMAIL", "IMPORT_KEY"):
        monkeypatch.delenv(name, raising=False)

    done = call("import", "--from", "http://127.0.0.1:9/client/v4")

    assert done.code == 1
    assert "Set IMPORT_TOKEN" in done.err


def test_a_secret_with_a_blank_is_not_shown(here, monkeypatch):
    monkeypatch.setenv("IMPORT_TOKEN", "very secret")

    done = call("import", "--from", "http://127.0.0.1:9/client/v4")

    assert done.code == 1
    assert "secret" not in done.err.replace("IMPORT_TOKEN", "")
