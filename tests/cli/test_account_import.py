"""An account brought over from one server to another, both real."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import call
from tests.cli.flaky import FlakyProxy
from tests.support.patience import patient

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
OFFICE = [
    {"action": "log", "expression": "true", "description": "seen"},
    {"action": "block", "expression": 'http.host eq "admin"', "ref": "admin"},
]
ENTRY = "rulesets/phases/http_request_firewall_custom/entrypoint"
ALL = {"zones", "records", "settings", "rulesets", "namespaces", "values"}


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A server with one of everything."""
    from edgestead.testing.server import EdgeServer

    folder = tmp_path_factory.mktemp("there")
    server = EdgeServer(folder / "data", *patient(folder)).start()
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
    make_rulesets(server, zone)
    kv = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
    namespace = server.call("POST", kv, {"title": "texts"}).result["id"]
    values = [
        {"key": "plain", "value": "one"},
        {"key": "with/all?", "value": "two", "metadata": {"a": [1]}, "expiration": 4_000_000_000},
    ]
    assert server.call("PUT", f"{kv}/{namespace}/bulk", values).status == 200
    yield server
    server.close()


def make_rulesets(server, zone):
    """A custom one that skips a rule of its own, and entry points of account and zone that execute it."""
    account = f"/accounts/{server.ready['account_id']}"
    body = {"name": "office", "kind": "custom", "phase": "http_request_firewall_custom", "rules": OFFICE}
    made = server.call("POST", f"{account}/rulesets", body).result
    office, (seen, admin) = made["id"], made["rules"]
    skip = {"action": "skip", "action_parameters": {"rules": {office: [seen["id"]]}}, "expression": "true"}
    execute = {"action": "execute", "action_parameters": {"id": office, "version": "1"}, "expression": "true"}
    bodies = (
        (f"{account}/rulesets/{office}", [seen, skip, admin]),
        (f"{account}/{ENTRY}", [execute]),
        (f"/zones/{zone}/{ENTRY}", [*RULES, execute]),
    )
    for path, rules in bodies:
        assert server.call("PUT", path, {"rules": rules}).status == 200


@pytest.fixture
def here(clean_environment, lent, monkeypatch):
    monkeypatch.setenv("EDGE_API_BASE", lent.ready["api_base"])
    monkeypatch.setenv("EDGE_TOKEN", lent.ready["api_token"])
    return lent


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
    usage = f"/accounts/{here.ready['account_id']}/deprecations/usage"
    before = here.call("GET", usage).result  # by other tests

    code, report = bring_over()

    assert (code, report["refused"]) == (0, [])
    assert set(report["made"]) == ALL
    assert everything(here) == everything(there)

    assert here.call("GET", usage).result == before, "a move uses nothing that a date ended"

    code, again = bring_over()
    assert (code, again["made"], again["refused"]) == (0, {}, [])
    assert again["here_already"]["records"] == len(RECORDS) + 2


def test_a_plan_is_empty_after_it_and_rulesets_are_named(there, here, bring_over):
    bring_over()

    planned = call("plan", there.ready["api_base"], "--check")
    assert (planned.code, planned.out) == (0, "Nothing differs.\n"), planned.out
    assert "version 1 of custom/office; its newest is executed" in planned.err
    exported = json.loads(call("export", "--json").out)
    assert [one["name"] for one in exported["rulesets"]] == ["office"]
    (skip,) = (one for one in exported["rulesets"][0]["rules"] if one["action"] == "skip")
    assert skip["action_parameters"]["rules"] == {"custom/office": ["seen"]}
    assert exported["rules"]["custom"][0]["action_parameters"] == {"id": "custom/office"}


def test_a_zone_comes_with_the_rulesets_that_it_executes_and_no_others(there, here, bring_over):
    code, report = bring_over("--zone", "example.com", "--only", "zones", "--only", "rulesets")

    assert (code, report["made"]) == (0, {"zones": 1, "rulesets": 2})
    assert bring_over("--zone", "example.com", "--only", "rulesets")[1]["made"] == {}


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


def test_a_run_that_breaks_off_says_what_it_brought(there, here, monkeypatch):
    monkeypatch.setenv("IMPORT_TOKEN", there.ready["api_token"])
    with FlakyProxy(here.ready["api_base"], lambda number, _: "drop" if number else None) as between:
        monkeypatch.setenv("EDGE_API_BASE", between)
        done = call("import", "--from", there.ready["api_base"], "--json")

    assert (done.code, "cannot be reached" in done.err) == (1, True), done.err
    assert json.loads(done.out)["made"] == {"zones": 1}


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


LIMITED = "limited"  # of what is asked for too often
PRODUCTS = {  # what the front of a server answers, as the hosted service would
    "/zones/{zone}/custom_pages": [
        {"id": "500_errors", "state": "customized"},
        {"id": "x", "state": "default"},
    ],
    "/zones/{zone}/pagerules": [{"id": "1"}, {"id": "2"}],
    "/accounts/{account}/r2/buckets": {"buckets": [{"name": "pictures"}, {"name": "texts"}]},
    "/accounts/{account}/rules/lists": [],
}


ELSEWHERE = "e" * 32  # a managed ruleset of the hosted service
MANAGED = {"id": "f" * 32, "kind": "zone", "phase": "http_request_firewall_managed", "name": "default"}
MANAGED_RULES = [
    {"id": "1" * 32, "action": "execute", "expression": "true", "action_parameters": {"id": ELSEWHERE}},
    {
        "id": "2" * 32,
        "action": "skip",
        "expression": "true",
        "description": "not there",
        "action_parameters": {"ruleset": "current"},
    },
]


@pytest.fixture
def with_managed(there, monkeypatch):
    """The front's zone executes a ruleset that only the hosted service has."""
    zone = there.call("GET", "/zones?name=example.com").result[0]["id"]
    path = f"/zones/{zone}/rulesets"
    whole = {**MANAGED, "rules": MANAGED_RULES}
    monkeypatch.setitem(PRODUCTS, path, [*there.call("GET", path).result, MANAGED])
    monkeypatch.setitem(PRODUCTS, f"{path}/{MANAGED['id']}", whole)
    monkeypatch.setitem(PRODUCTS, f"{path}/phases/{MANAGED['phase']}/entrypoint", whole)


@pytest.fixture
def hosted(there):
    """The server behind a front that has products which this one does not have."""
    zone = there.call("GET", "/zones?name=example.com").result[0]["id"]
    account = there.ready["account_id"]
    known = {path.format(zone=zone, account=account): found for path, found in PRODUCTS.items()}
    base = there.ready["api_base"]

    class Front(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.removeprefix("/client/v4")
            if path in known:
                limited = known[path] == LIMITED
                errors = [{"code": 971, "message": "too many"}] if limited else []
                envelope = {"success": not limited, "errors": errors, "messages": [], "result": known[path]}
                self.answer(429 if limited else 200, json.dumps(envelope).encode())
                return
            request = Request(base + path, headers={"authorization": self.headers["authorization"]})
            try:
                with urlopen(request) as answer:
                    self.answer(200, answer.read())
            except HTTPError as error:
                with error:
                    self.answer(error.code, error.read())

        def answer(self, status, content):
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    front = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    serving = threading.Thread(target=front.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{front.server_port}/client/v4"
    front.shutdown()
    serving.join()
    front.server_close()


LEFT = [
    "the account: 2 buckets of R2: docs/differences.md lists what is not here",
    "example.com: 1 custom page: a rule's own response has its text: docs/how-to/edge-rules.md",
    "example.com: 2 page rules: write redirects and headers as rules: docs/how-to/edge-rules.md",
]
TOKENS_LEFT = "the user: 1 token: no secret moves, make new ones: docs/how-to/move-in.md has the commands"


def test_what_is_not_carried_over_is_named(there, here, hosted, monkeypatch):
    monkeypatch.setenv("IMPORT_TOKEN", there.ready["api_token"])

    told = call("import", "--from", hosted, "--dry-run")
    assert [line for line in told.err.splitlines() if "Not carried" in line] == [
        f"Not carried over: {line}" for line in [*LEFT, TOKENS_LEFT]
    ]
    whole = json.loads(call("import", "--from", hosted, "--json").out)
    assert whole["not_carried_over"] == [*LEFT, TOKENS_LEFT]
    planned = call("plan", hosted)  # has the tokens
    assert [line.strip() for line in planned.err.splitlines()[1:]][: len(LEFT)] == LEFT, planned.err
    assert (
        call("import", "--from", hosted, "--zone", "example.net", "--dry-run", "--json").out.count("page")
        == 0
    )


def test_what_nobody_could_look_at_is_named(there, here, monkeypatch, request):
    """It may be there: a limit of requests says nothing of that."""
    monkeypatch.setitem(PRODUCTS, "/accounts/{account}/r2/buckets", LIMITED)
    monkeypatch.setitem(PRODUCTS, "/zones/{zone}/dnssec", LIMITED)
    hosted = request.getfixturevalue("hosted")
    monkeypatch.setenv("IMPORT_TOKEN", there.ready["api_token"])

    told = call("import", "--from", hosted, "--dry-run")

    words = "nobody could look whether there is one: too many [code: 971]"
    assert f"Not carried over: the account: r2/buckets: {words}\n" in told.err
    assert f"Not carried over: example.com: DNSSEC: {words}\n" in told.err
    assert told.code == 0


@pytest.mark.parametrize("command", ["import", "apply"])
def test_a_ruleset_that_is_not_here_keeps_no_other_rule_back(
    there, here, with_managed, hosted, monkeypatch, command
):
    monkeypatch.setenv("IMPORT_TOKEN", there.ready["api_token"])
    words = ["import", "--from", hosted] if command == "import" else ["apply", hosted, "--yes"]

    done = call(*words, "--zone", "example.com")

    assert done.code == 0, (done.out, done.err)
    assert f"execute the ruleset {ELSEWHERE}, which is not here: true" in done.err
    exported = json.loads(call("export", "--json").out)["zones"]["example.com"]["rules"]
    assert [rule["description"] for rule in exported["managed"]] == ["not there"]
    assert call("plan", hosted, "--zone", "example.com", "--check").out == "Nothing differs.\n"
