"""Data folders of every release open with this version, and nothing of them is gone."""

import json
import re
import tarfile

import dns.dnssec
import dns.exception
import dns.message
import dns.name
import dns.query
import pytest

from edgestead.testing.server import EdgeServer, wait_until
from tests.releases.kept import (
    ALARM_MS,
    BANNED,
    ENTRIES,
    FLAGS,
    HERE,
    KEY_NAME,
    MEMBER,
    RECORDS,
    RULE,
    SIGNED,
    VALUES,
    ZONE,
    edgecli,
)

RELEASES = sorted(HERE.glob("*.tar.xz"))
SECONDS_MAX = 120


def test_there_is_a_folder_of_each_release():
    kept = [file.name.removesuffix(".tar.xz") for file in RELEASES]
    released = re.findall(r"^## \[(\d[^]]*)\]", (HERE.parents[1] / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert kept == sorted(released)
    assert "0.1.0" in kept


@pytest.fixture(scope="module", params=RELEASES, ids=lambda file: file.name.removesuffix(".tar.xz"))
def opened(request, tmp_path_factory):
    """A server on a copy of the folder, and what was known when it was kept."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(request.param) as packed:
        packed.extractall(folder, filter="data")
    data = folder / "data"
    known = json.loads((data / "known.json").read_text())
    edgecli("object", "adopt", "--data-dir", str(data))
    server = EdgeServer(data, *FLAGS)
    try:
        yield server.start(), known
        assert server.stop() == 0
        edgecli("verify", str(data))
    finally:
        server.close()


@pytest.fixture
def since_0_2(opened):
    """The same, where the folder has what 0.1.0 did not know."""
    if "signed" not in opened[1]:
        pytest.skip("0.1.0 had no DNSSEC, TSIG keys, members or access rules")
    return opened


@pytest.mark.parametrize(("type_", "name", "content"), RECORDS)
def test_records_are_answered(opened, type_, name, content):
    server, known = opened
    full = ZONE if name == "@" else f"{name}.{ZONE}"

    (record,) = server.call("GET", f"/zones/{known['zone']}/dns_records?type={type_}&name={full}").result

    assert record["name"] == full
    assert content.split()[-1].strip('"') in record["content"]


def test_dns_serves_them(opened):
    server, _ = opened

    assert server.dig(f"www.{ZONE}") == ["192.0.2.1"]
    assert server.dig(f"nowhere.{ZONE}") == ["NXDOMAIN"]


def test_settings_and_rules_are_there(opened):
    server, known = opened
    zone = f"/zones/{known['zone']}"

    assert server.call("GET", f"{zone}/settings/always_use_https").result["value"] == "on"
    (rule,) = server.call("GET", f"{zone}/rulesets/phases/http_request_firewall_custom/entrypoint").result[
        "rules"
    ]
    assert RULE.items() <= rule.items()


def test_the_first_token_may_do_everything_that_there_is_now(opened):
    server, known = opened

    assert server.call("GET", f"/zones/{known['zone']}/custom_certificates").status == 200
    assert server.call("GET", f"/zones/{known['zone']}/firewall/access_rules/rules").status == 200


def test_history_knows_who_made_the_records(opened):
    server, known = opened

    changes = server.call("GET", f"/zones/{known['zone']}/history").result

    assert len(changes) > len(RECORDS)


@pytest.mark.parametrize("key", VALUES)
def test_values_and_their_metadata_are_there(opened, key):
    server, known = opened
    space = f"/accounts/{known['account']}/storage/kv/namespaces/{known['namespace']}"

    assert server.call("GET", f"{space}/values/{key}").body == VALUES[key]
    assert server.call("GET", f"{space}/metadata/{key}").result == {"of": key}


@pytest.mark.parametrize("kind", ["Ledger", "Journal"])
def test_objects_go_on_and_go_back(opened, kind):
    server, known = opened
    assert server.call_object(f"{kind}/one/read").result == [3, *ENTRIES]
    assert server.call_object(f"{kind}/one/when").result == ALARM_MS

    where = {
        "EDGE_OBJECTS_ADDR": server.ready["objects"],
        "EDGE_TOKEN": server.ready["api_token"],
    }
    edgecli("object", "restore", kind, "one", known[kind], "--yes", **where)

    assert server.call_object(f"{kind}/one/read").result == [2, *ENTRIES[:2]]
    assert server.call_object(f"{kind}/one/enter", "after").result == 3


def is_validated(server, name, type_):
    """Whether DNS gives an answer whose signature holds now, by the zone's keys."""
    host, _, port = server.ready["dns"].rpartition(":")

    def asked(name, type_):
        query = dns.message.make_query(name, type_, want_dnssec=True)
        return dns.query.udp(query, host, port=int(port), timeout=60).answer

    keys = {dns.name.from_text(SIGNED): asked(SIGNED, "DNSKEY")[0]}
    try:
        dns.dnssec.validate(*asked(name, type_), keys)
    except dns.exception.DNSException:
        return False
    return True


def test_a_signed_zone_is_signed_with_the_same_key(since_0_2):
    server, known = since_0_2

    assert server.call("GET", f"/zones/{known['signed']}/dnssec").result["ds"] == known["ds"]
    # A folder of years ago has signatures that ended, and new ones soon after its start.
    wait_until(lambda: is_validated(server, f"www.{SIGNED}", "A"), SECONDS_MAX)
    assert server.make_record(known["signed"], "A", "new", "192.0.2.3").status == 200
    assert is_validated(server, f"new.{SIGNED}", "A")


def test_a_tsig_key_has_its_secret(since_0_2):
    server, known = since_0_2

    key = server.call("GET", f"/accounts/{known['account']}/secondary_dns/tsigs/{known['tsig']}").result

    assert (key["name"], key["secret"]) == (KEY_NAME, known["secret"])


def test_who_may_do_what_is_as_it_was(since_0_2):
    server, known = since_0_2
    zone = f"/zones/{known['signed']}"

    (rule,) = server.call("GET", f"{zone}/firewall/access_rules/rules").result
    members = server.call("GET", f"/accounts/{known['account']}/members").result

    assert rule["configuration"]["value"] == BANNED
    assert [one["roles"][0]["name"] for one in members if one["user"]["email"] == MEMBER] == ["DNS"]
    assert server.call("GET", f"{zone}/dns_records", token=known["reader"]).status == 200
    refused = server.call("GET", f"/zones/{known['zone']}/dns_records", token=known["reader"])
    assert refused.status == 403
