"""Every test finds the platform as it was, whatever the last one did to it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgestead.rest import app as _app  # noqa: F401 - importing it fills the table
from edgestead.rest.routing import BASE_PATH, ROUTES
from edgestead.testing import platforms
from edgestead.testing.emptying import FACTS, LISTS
from edgestead.testing.platforms import Platform, Platforms

ROOT = Path(__file__).parents[2]
EXAMPLES = str(ROOT / "examples")
KEPT = "kept.test"
RULE = {"action": "log", "expression": "true"}
CUSTOM = {"kind": "custom", "phase": "http_request_firewall_custom", "rules": [RULE]}
GO_WITH = {  # what they go with
    "/accounts/{account_id}/rulesets/{ruleset_id}/rules": "their ruleset",
    "/accounts/{account_id}/workers/namespaces": "the same by its new name",
    "/certificates": "their zone",
    "/user/firewall/access_rules/rules": "those of the account, which they are",
}
ACCESS_RULE = {"mode": "block", "configuration": {"target": "ip", "value": "192.0.2.8"}}
TOKEN = {
    "name": "x",
    "policies": [
        {
            "effect": "allow",
            "permission_groups": [{"name": "DNS Read"}],
            "resources": {"com.edge.api.account.zone.*": "*"},
        }
    ],
}


def fill(edge):
    zone = edge.make_zone(KEPT)
    zone.add("A", "www", "192.0.2.1")
    edge.make_namespace("kept").put("key", "value")


@pytest.fixture(scope="module")
def new_folder(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("platform")


@pytest.fixture(scope="module")
def platform(new_folder):
    made = Platform(new_folder, ["--objects", EXAMPLES], fill)
    yield made
    made.close()


def everything(edge):
    """What the API shows of all that a test can leave behind."""
    paths = [path.format(account=edge.account_id) for path in (*(path for path, _ in LISTS), *FACTS)]
    found = {path: edge.get(path).result for path in paths}
    for path, _ in LISTS:
        for one in found[path.format(account=edge.account_id)]:
            one.pop("last_used_on", None)  # by the asking itself
    return found


def make_a_mess(edge):
    account = f"/accounts/{edge.account_id}"
    group = next(
        one for one in edge.get("/user/tokens/permission_groups").result if one["name"] == "DNS Read"
    )
    TOKEN["policies"][0]["permission_groups"] = [{"id": group["id"]}]
    zone = edge.make_zone("new.test")
    zone.add("A", "www", "192.0.2.1")
    edge.make_namespace("new").put("key", "value")
    custom = edge.post(f"{account}/rulesets", {"name": "inner", **CUSTOM}).result["id"]
    executes = {"action": "execute", "expression": "true", "action_parameters": {"id": custom}}
    root = f"{account}/rulesets/phases/http_request_firewall_custom/entrypoint"
    role = edge.get(f"{account}/roles").result[0]["id"]
    peer = edge.post(f"{account}/secondary_dns/peers", {"name": "ns2", "ip": "192.0.2.53"}).result["id"]
    answers = [
        edge.put(root, {"rules": [executes]}),
        edge.post(f"{account}/custom_ns", {"ns_name": "ns1.new.test"}),
        edge.patch(f"{zone.path}/dns_settings", {"nameservers": {"type": "custom.account", "ns_set": 1}}),
        edge.post(f"{account}/tokens", TOKEN),
        edge.post("/user/tokens", {**TOKEN, "expires_on": "2020-01-01T00:00:00Z"}),
        edge.put(account, {"name": "renamed", "settings": {"enforce_twofactor": True}}),
        edge.patch(f"{account}/dns_settings", {"zone_defaults": {"ns_ttl": 60}}),
        edge.patch("/user", {"first_name": "Ada"}),
        edge.post(f"{account}/members", {"email": "ann@example.com", "roles": [role]}),
        edge.post(f"{account}/firewall/access_rules/rules", ACCESS_RULE),
        edge.post(f"{account}/secondary_dns/acls", {"name": "office", "ip_range": "192.0.2.0/24"}),
        edge.post(f"{account}/secondary_dns/tsigs", {"name": "xfr.example.com"}),
        edge.post(f"{account}/secondary_dns/catalogs", {"name": "catalog.test", "peers": [peer]}),
    ]
    assert [answer.status for answer in answers] == [200] * len(answers), answers
    return zone


def test_all_that_can_be_made_can_be_taken_back():
    made = {row.path for row in ROUTES if row.method == "POST" and not row.has_ended}
    lists = {row.path.rpartition("/")[0] for row in ROUTES if row.method == "DELETE"} & made
    emptied = {BASE_PATH + path.replace("{account}", "{account_id}") for path, _ in LISTS}

    assert {path for path in lists if "{zone_id}" not in path} == emptied | {
        BASE_PATH + path for path in GO_WITH
    }


def test_what_a_test_left_is_gone_and_what_was_there_stays(platform):
    edge = platform.for_a_test()
    before = everything(edge)
    make_a_mess(edge)
    assert everything(edge) != before

    again = platform.for_a_test()

    assert again is edge
    assert everything(edge) == before
    assert [zone["name"] for zone in edge.get("/zones").result] == [KEPT]
    assert edge.dns.answers("www.new.test") == []


def test_a_zone_that_was_there_gets_its_records_and_settings_back(platform):
    edge = platform.for_a_test()
    (zone,) = edge.get("/zones").result
    path = f"/zones/{zone['id']}"
    (record,) = edge.get(f"{path}/dns_records").result
    edge.delete(f"{path}/dns_records/{record['id']}")
    edge.post(f"{path}/dns_records", {"type": "A", "name": "other", "content": "192.0.2.9"})
    edge.patch(f"{path}/settings/ssl", {"value": "full"})
    assert edge.dns.answers(f"www.{KEPT}") == []

    for _ in range(2):  # the way back is a change itself
        assert platform.for_a_test() is edge
        assert edge.dns.answers(f"www.{KEPT}") == ["192.0.2.1"]
        assert edge.dns.answers(f"other.{KEPT}") == []
        assert edge.get(f"{path}/settings/ssl").result["value"] == "off"


def test_programs_find_the_platform_by_what_edgecli_env_prints(platform):
    known = platform.edge.environment

    assert known["EDGE_API_BASE"] == known["CLOUDFLARE_BASE_URL"] == platform.edge.api_base
    assert (known["EDGE_EMAIL"], known["EDGE_KEY"]) == (platform.edge.email, platform.edge.key)
    assert known["EDGE_PID"].isdigit()
    assert "EDGE_HTTPS_ADDR" not in known, "it has no such listener"


def test_objects_have_forgotten(platform):
    edge = platform.for_a_test()
    path = f"http://{edge.objects}/objects/Leaderboard/chess/submit"

    def call(method, *arguments):
        from edgestead.testing.edge import ask

        headers = {"Authorization": f"Bearer {edge.token}"}
        target = f"/objects/Leaderboard/chess/{method}"
        return ask(edge.objects, "POST", target, {"args": arguments, "kwargs": {}}, headers)

    assert call("submit", "ann", 10).status == 200, path
    assert call("top", 3).result != []
    assert platform.for_a_test() is edge
    assert call("top", 3).result == []


def kill_it(edge, platform):
    os.kill(platform.server.pid, signal.SIGKILL)
    platform.server.wait()


def take_what_was_there(edge, platform):
    (zone,) = edge.get("/zones").result
    assert edge.delete(f"/zones/{zone['id']}").status == 200


@pytest.mark.parametrize("harm", [kill_it, take_what_was_there])
def test_a_platform_that_a_test_has_broken_is_a_new_one(new_folder, harm):
    platform = Platform(new_folder, [], fill)
    try:
        edge = platform.for_a_test()
        harm(edge, platform)

        renewed = platform.for_a_test()

        assert renewed is not edge
        assert [zone["name"] for zone in renewed.get("/zones").result] == [KEPT]
        assert renewed.dns.answers(f"www.{KEPT}") == ["192.0.2.1"]
    finally:
        platform.close()


def test_a_platform_that_cannot_be_filled_does_not_go_on_running(new_folder):
    pids = []

    def fail(edge):
        pids.append(edge._ready["pid"])
        raise RuntimeError("no such thing")

    with pytest.raises(RuntimeError, match="no such thing"):
        Platform(new_folder, [], fail)
    assert not Path(f"/proc/{pids[0]}").exists()


def test_the_platform_that_nobody_asked_for_the_longest_is_ended_first(monkeypatch):
    log = []

    class Recorded:
        def __init__(self, new_folder, flags, fill):
            self.name = flags[-1]
            log.append(f"start {self.name}")

        def close(self):
            log.append(f"end {self.name}")

    monkeypatch.setattr(platforms, "Platform", Recorded)
    monkeypatch.setattr(platforms, "PLATFORMS_MAX", 2)
    made = Platforms(lambda: None)
    for day in (None, "2020-04-01", None, "2024-01-01", None):
        made.get(day, ["x"], fill)
    made.close()

    assert log[:4] == ["start x", "start 2020-04-01", "end 2020-04-01", "start 2024-01-01"]
    assert sorted(log[4:]) == ["end 2024-01-01", "end x"]


def test_what_is_started_or_filled_in_another_way_is_another_platform(monkeypatch):
    monkeypatch.setattr(platforms, "Platform", lambda *how: how)
    made = Platforms(lambda: None)

    assert made.get(None, ["x"], fill) is made.get(None, ["x"], fill)
    assert made.get(None, ["y"], fill) is not made.get(None, ["x"], fill)
    assert made.get(None, ["x"], print) is not made.get(None, ["x"], fill)


# The plugin, as another project uses it.

SUITE = """
import pytest

@pytest.mark.as_of("2024-07-13", "2024-07-14")
def test_two_dates(edge_zone, edge_as_of):
    has_locked = "locked" in edge_zone.add("A", "www", "192.0.2.1")
    assert has_locked is (str(edge_as_of) == "2024-07-13")

def test_today(edge, edge_zone, edge_kv, edge_dns):
    assert "locked" not in edge_zone.add("A", "www", "192.0.2.1")
    assert edge_dns.rcode("no.example.test") == "NXDOMAIN"
    assert [r.to_text() for r in edge_dns.resolver().resolve("www.example.test")] == ["192.0.2.1"]
    edge_kv.put("a/b", b"1", expiration_ttl=60)
    assert (edge_kv.get("a/b"), edge_kv.keys("a"), edge_kv.get("c")) == (b"1", ["a/b"], None)
    edge_kv.delete("a/b")
    assert edge_kv.keys() == []
    with pytest.raises(ValueError, match="DNS Read"):
        edge.make_token("DNS")

def test_the_next_one_finds_nothing(edge):
    assert edge.get("/zones").result == []
"""


@pytest.fixture
def run_pytest(tmp_path):
    def run(suite, *options):
        (tmp_path / "test_suite.py").write_text(suite)
        return subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-p", "edgestead.testing.plugin"),
                *("-p", "no:cacheprovider", "--strict-markers", "-v", "-c", os.devnull),
                *("--rootdir", str(tmp_path), *options, str(tmp_path)),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            timeout=600,
        )

    yield run
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_a_test_runs_once_for_each_of_its_dates(run_pytest):
    done = run_pytest(SUITE)

    assert done.returncode == 0, done.stdout
    for name in ("two_dates[2024-07-13]", "two_dates[2024-07-14]", "today", "the_next_one_finds_nothing"):
        assert f"test_{name} PASSED" in done.stdout


def test_a_whole_suite_runs_at_the_dates_of_the_option(run_pytest):
    options = ("--edge-as-of", "2024-07-13", "--edge-as-of", "2024-07-14")

    done = run_pytest(SUITE, *options, "-k", "today")

    assert done.returncode == 1
    assert "test_today[2024-07-13] FAILED" in done.stdout
    assert "test_today[2024-07-14] PASSED" in done.stdout


@pytest.mark.parametrize("day", ["2024-02-30", "tomorrow", "2020-03-31"])
def test_a_date_that_is_none_ends_the_run_with_words(run_pytest, day):
    suite = f"import pytest\n@pytest.mark.as_of({day!r})\ndef test_x(edge): ...\n"

    done = run_pytest(suite)

    assert done.returncode not in (0, 1)
    assert "as_of takes dates" in done.stdout + done.stderr


def test_the_plugin_brings_nothing_to_suites_that_do_not_use_it(run_pytest):
    suite = "import sys\ndef test_x(): assert not {'msgspec', 'dns', 'apsw'} & set(sys.modules)\n"

    assert run_pytest(suite).returncode == 0


def test_the_examples_of_the_page_are_tests_that_pass(run_pytest):
    page = (ROOT / "docs" / "how-to" / "test-against-edgestead.md").read_text()
    blocks = [part.partition("```")[0] for part in page.split("```python\n")[1:]]

    done = run_pytest("\n".join(blocks))

    assert done.returncode == 0, done.stdout
    tests = sum(block.count("def test_") for block in blocks)
    assert f"{tests + 1} passed" in done.stdout  # one of them at two dates
