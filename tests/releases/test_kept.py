"""Data folders of every release open with this version, and nothing of them is gone."""

import json
import tarfile

import pytest

from edgestead.testing.server import EdgeServer
from tests.releases.kept import ALARM_MS, CLASSES, ENTRIES, HERE, RECORDS, RULE, VALUES, ZONE, edgecli

RELEASES = sorted(HERE.glob("*.tar.xz"))


def test_there_is_a_folder_of_each_release():
    assert "0.1.0" in {file.name.removesuffix(".tar.xz") for file in RELEASES}


@pytest.fixture(scope="module", params=RELEASES, ids=lambda file: file.name.removesuffix(".tar.xz"))
def opened(request, tmp_path_factory):
    """A server on a copy of the folder, and what was known when it was kept."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(request.param) as packed:
        packed.extractall(folder, filter="data")
    data = folder / "data"
    known = json.loads((data / "known.json").read_text())
    edgecli("object", "adopt", "--data-dir", str(data))
    server = EdgeServer(data, *CLASSES)
    try:
        yield server.start(), known
        assert server.stop() == 0
        edgecli("verify", str(data))
    finally:
        server.close()


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
