"""octoDNS with our own provider (packaging/octodns): what it plans, and that nothing is left to plan."""

import itertools
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.clients.test_clients import installer
from tests.docs.conftest import shell_of

ROOT = Path(__file__).parents[2]
BIN = installer.HOME / "venvs" / "octodns" / "bin"
SECONDS_MAX = 120
NUMBERS = itertools.count(1)
CHANGE = re.compile(r"^\*   (Create|Update|Delete)\s[*\s]*<\w+ (\w+) \d+, ([^,]+)", re.MULTILINE)
NOTHING = "No changes were planned"
HEX = "ab" * 32
LONG = "v=DKIM1\\; k=rsa\\; p=" + "A" * 400
CONFIG = """
manager: {{max_workers: 1}}
providers:
  config: {{class: octodns.provider.yaml.YamlProvider, directory: {folder}/config, enforce_order: false}}
  files: {{class: octodns_bind.ZoneFileSource, directory: {folder}/files, file_extension: .zone}}
  edgestead:
    class: octodns_edgestead.EdgesteadProvider
    api_base: env/EDGE_API_BASE
    token: env/EDGE_TOKEN
processors:
  no-root-ns: {{class: octodns.processor.filter.IgnoreRootNsFilter}}
zones:
  {zone}.: {{sources: [{source}], processors: [no-root-ns], targets: [edgestead]}}
"""
# As octoDNS writes it, so that a dump of it is the same.
RECORDS = {
    "": [
        {"type": "ALIAS", "value": "target.example.net."},
        {
            "type": "CAA",
            "values": [
                {"flags": 0, "tag": "iodef", "value": "mailto:dns@example.com"},
                {"flags": 0, "tag": "issue", "value": "ca.example"},
            ],
        },
        {
            "type": "MX",
            "values": [
                {"exchange": "mx1.example.net.", "preference": 10},
                {"exchange": "mx2.example.net.", "preference": 20},
            ],
        },
        {"type": "TXT", "values": ['say "hi" \\; a\\b', "v=spf1 -all"]},
    ],
    "*.wild": {"type": "A", "ttl": 60, "value": "192.0.2.9"},
    "_25._tcp": {
        "type": "TLSA",
        "value": {
            "certificate_association_data": HEX,
            "certificate_usage": 3,
            "matching_type": 1,
            "selector": 1,
        },
    },
    "_http._tcp": {
        "type": "URI",
        "value": {"priority": 5, "target": "http://example.net/x", "weight": 1},
    },
    "_sip._tcp": {
        "type": "SRV",
        "values": [
            {"port": 5060, "priority": 10, "target": "sip1.example.net.", "weight": 5},
            {"port": 5060, "priority": 20, "target": "sip2.example.net.", "weight": 5},
        ],
    },
    "auto": {"octodns": {"edgestead": {"auto-ttl": True}}, "type": "A", "ttl": 300, "value": "192.0.2.3"},
    "child": [
        {
            "type": "DS",
            "value": {"algorithm": 13, "digest": HEX, "digest_type": 2, "key_tag": 12345},
        },
        {"type": "NS", "values": ["ns1.example.net.", "ns2.example.net."]},
    ],
    "dkim": {"type": "TXT", "value": LONG},
    "host": {
        "type": "SSHFP",
        "value": {"algorithm": 4, "fingerprint": HEX, "fingerprint_type": 2},
    },
    "key": {"type": "OPENPGPKEY", "value": "AQIDBA=="},
    "mapped": {"type": "AAAA", "values": ["2001:db8::1", "2001:db8::2"]},
    "naptr": {
        "type": "NAPTR",
        "value": {
            "flags": "U",
            "order": 10,
            "preference": 100,
            "regexp": "!^.*$!sip:info@example.com!",
            "replacement": ".",
            "service": "SIP+D2U",
        },
    },
    "place": {
        "type": "LOC",
        "value": {
            "altitude": 20.0,
            "lat_degrees": 31,
            "lat_direction": "S",
            "lat_minutes": 58,
            "lat_seconds": 52.1,
            "long_degrees": 115,
            "long_direction": "E",
            "long_minutes": 49,
            "long_seconds": 11.7,
            "precision_horz": 10.0,
            "precision_vert": 2.0,
            "size": 10.0,
        },
    },
    "proxied": {"octodns": {"edgestead": {"proxied": True}}, "type": "A", "ttl": 300, "value": "192.0.2.4"},
    "ptr": {"type": "PTR", "values": ["a.example.net.", "b.example.net."]},
    "svc": {
        "type": "HTTPS",
        "value": {"svcparams": {"alpn": ["h2"]}, "svcpriority": 1, "targetname": "."},
    },
    "www": {"type": "A", "values": ["192.0.2.1", "192.0.2.2"]},
}
ZONE_FILE = """
$TTL 3600
@ IN SOA ns1.example.net. host.example.net. 1 7200 3600 1209600 3600
@ IN NS ns1.example.net.
@ IN MX 10 MX.example.net.
@ IN TXT "v=spf1 " "-all"
www 600 IN A 192.0.2.1
www 600 IN A 192.0.2.2
ftp IN CNAME www
_sip._tcp IN SRV 10 5 5060 sip
sub IN NS ns.sub
ns.sub IN AAAA 2001:DB8:0::53
"""


class OctoDns:
    """One zone of one server, and a folder with its configuration."""

    def __init__(self, folder, running, zone):
        installer.install("octodns_newzone")
        self.folder, self.zone, self.server = folder, zone, running.server
        self.environment = (
            os.environ | running.environment | {"PYTHONPATH": str(ROOT / "packaging/octodns/src")}
        )
        (folder / "config").mkdir()
        (folder / "files").mkdir()
        self.read_from("config")

    def read_from(self, source):
        (self.folder / "octodns.yaml").write_text(
            CONFIG.format(folder=self.folder, zone=self.zone, source=source)
        )

    def write(self, records):
        (self.folder / "config" / f"{self.zone}.yaml").write_text(yaml.safe_dump(records))

    def run(self, program, *arguments, code=0):
        done = subprocess.run(
            [BIN / program, "--config-file", self.folder / "octodns.yaml", *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def plan(self):
        """The lines of the plan, or NOTHING."""
        said = self.run("octodns-sync")
        return NOTHING if NOTHING in said else changes(said)

    def sync(self, records=None):
        if records is not None:
            self.write(records)
        return changes(self.run("octodns-sync", "--doit", "--force"))

    def rows(self):
        (zone,) = self.server.call("GET", f"/zones?name={self.zone}").result
        return self.server.call("GET", f"/zones/{zone['id']}/dns_records?per_page=1000").result

    def dump(self):
        self.run(
            "octodns-dump", "--lenient", "--output-dir", self.folder / "dumped", f"{self.zone}.", "edgestead"
        )
        return yaml.safe_load((self.folder / "dumped" / f"{self.zone}.yaml").read_text())


def changes(said):
    """(Create, Update or Delete; type; name) of each change in a plan's text."""
    return sorted(CHANGE.findall(said))


@pytest.fixture
def octodns(tmp_path, spec_server):
    return OctoDns(tmp_path, spec_server, f"octodns{next(NUMBERS)}.example")


def test_a_zone_that_was_missing_is_made_answered_and_dumped_as_it_was(octodns):
    octodns.sync(RECORDS)

    assert octodns.plan() == NOTHING
    assert octodns.dump() == RECORDS
    dig, zone = octodns.server.dig, octodns.zone
    assert dig(f"www.{zone}") == ["192.0.2.1", "192.0.2.2"]
    assert dig(zone, "MX") == ["10 mx1.example.net.", "20 mx2.example.net."]
    assert dig(zone, "TXT") == ['"say \\"hi\\" ; a\\\\b"', '"v=spf1 -all"']
    assert dig(f"_sip._tcp.{zone}", "SRV") == [
        "10 5 5060 sip1.example.net.",
        "20 5 5060 sip2.example.net.",
    ]
    assert dig(f"ptr.{zone}", "PTR") == ["a.example.net.", "b.example.net."]
    assert dig(f"naptr.{zone}", "NAPTR") == ['10 100 "U" "SIP+D2U" "!^.*$!sip:info@example.com!" .']
    assert dig(f"x.wild.{zone}") == ["192.0.2.9"]
    assert dig(f"proxied.{zone}") != ["192.0.2.4"], "the edge answers"


def test_a_plan_is_what_has_changed_and_what_stays_keeps_its_row(octodns):
    base = {
        "auto": {"type": "A", "ttl": 300, "value": "192.0.2.3"},
        "gone": {"type": "A", "value": "192.0.2.8"},
        "kind": {"type": "A", "value": "192.0.2.7"},
        "same": {"type": "A", "value": "192.0.2.6"},
        "www": {"type": "A", "values": ["192.0.2.1", "192.0.2.2"]},
    }
    octodns.sync(base)
    before = {row["content"]: row["id"] for row in octodns.rows()}
    changed = base | {
        "auto": base["auto"] | {"octodns": {"edgestead": {"auto-ttl": True}}},
        "kind": {"type": "CNAME", "value": "target.example.net."},
        "new": {"type": "A", "value": "192.0.2.5"},
        "www": {"type": "A", "ttl": 600, "values": ["192.0.2.1", "192.0.2.3"]},
    }
    del changed["gone"]
    octodns.write(changed)
    zone = octodns.zone
    expected = [
        ("Create", "A", f"new.{zone}."),
        ("Create", "CNAME", f"kind.{zone}."),
        ("Delete", "A", f"gone.{zone}."),
        ("Delete", "A", f"kind.{zone}."),
        ("Update", "A", f"auto.{zone}."),
        ("Update", "A", f"www.{zone}."),
    ]

    assert octodns.plan() == expected
    assert octodns.sync() == expected

    assert octodns.plan() == NOTHING
    dig = octodns.server.dig
    assert dig(f"www.{zone}") == ["192.0.2.1", "192.0.2.3"]
    assert dig(f"kind.{zone}", "CNAME") == ["target.example.net."]
    assert dig(f"gone.{zone}") == "NXDOMAIN" or dig(f"gone.{zone}") == ["NXDOMAIN"]
    after = {row["content"]: row for row in octodns.rows()}
    assert after["192.0.2.1"]["id"] == before["192.0.2.1"]
    assert after["192.0.2.6"]["id"] == before["192.0.2.6"]
    assert [after[content]["ttl"] for content in ("192.0.2.1", "192.0.2.6")] == [600, 3600]


def test_what_octodns_does_not_compare_is_planned_too(octodns):
    """`proxied`, and rows of a name that differ; the TTL of a proxied name is the server's."""
    octodns.sync(
        {
            "www": {"type": "A", "value": "192.0.2.1"},
            "www2": {"type": "A", "values": ["192.0.2.2", "192.0.2.3"]},
        }
    )
    row = next(row for row in octodns.rows() if row["content"] == "192.0.2.3")
    path = f"/zones/{octodns.server.call('GET', f'/zones?name={octodns.zone}').result[0]['id']}/dns_records"
    assert octodns.server.call("PATCH", f"{path}/{row['id']}", {"ttl": 60}).status == 200
    options = {"octodns": {"edgestead": {"proxied": True}}}
    octodns.write(
        {
            "www": {"type": "A", "ttl": 5, "value": "192.0.2.1", **options},
            "www2": {"type": "A", "values": ["192.0.2.2", "192.0.2.3"]},
        }
    )

    planned = octodns.sync()

    assert planned == [("Update", "A", f"www.{octodns.zone}."), ("Update", "A", f"www2.{octodns.zone}.")]
    assert octodns.plan() == NOTHING
    assert [(row["proxied"], row["ttl"]) for row in octodns.rows()].count((True, 1)) == 1


def test_a_zone_file_leaves_nothing_to_plan(octodns):
    (octodns.folder / "files" / f"{octodns.zone}.zone").write_text(ZONE_FILE)
    octodns.read_from("files")

    octodns.sync()

    assert octodns.plan() == NOTHING
    assert octodns.server.dig(octodns.zone, "TXT") in (['"v=spf1 -all"'], ['"v=spf1 " "-all"'])
    assert octodns.server.dig(f"www.{octodns.zone}") == ["192.0.2.1", "192.0.2.2"]
    assert octodns.dump()["ftp"]["value"] == f"www.{octodns.zone}."


def test_a_refusal_says_which_record_and_changes_nothing(octodns):
    octodns.sync({"www": {"type": "A", "value": "192.0.2.1"}})
    octodns.write({"www": {"type": "A", "value": "192.0.2.2"}, "2nd": {"type": "A", "value": "192.0.2.3"}})

    said = octodns.run("octodns-sync", "--doit", "--force", code=1)

    assert f"A 2nd.{octodns.zone} 192.0.2.3" in said.splitlines()[-1]
    assert "(9000)" in said.splitlines()[-1]
    assert octodns.server.dig(f"www.{octodns.zone}") == ["192.0.2.1"]


def test_many_changes_go_in_batches_that_the_server_takes(octodns):
    many = {f"h{number}": {"type": "A", "value": f"192.0.2.{number % 250}"} for number in range(390)}
    many["big"] = {"type": "A", "values": [f"198.51.{number // 250}.{number % 250}" for number in range(250)]}

    octodns.sync(many)

    assert octodns.plan() == NOTHING
    assert len(octodns.rows()) == 640


def test_the_page_does_what_it_says(octodns, tmp_path):
    path = f"{BIN}:{octodns.environment['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", shell_of("docs/how-to/octodns.md")],
        env=octodns.environment | {"PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert octodns.server.dig("www.shop.example") == ["192.0.2.1", "192.0.2.2"]
    dumped, written = (
        yaml.safe_load((tmp_path / folder / "shop.example.yaml").read_text())
        for folder in ("dumped", "zones")
    )
    written["api"]["ttl"] = 300
    assert dumped == written
