"""DNSSEC, secondary zones and TSIG keys as part of one file."""

import json
import time
from contextlib import closing

import pytest

from edgestead.cli.state import document
from edgestead.testing.server import EdgeServer
from tests.cli.test_state import write
from tests.support.patience import patient

ARRIVES_SECONDS_MAX = 180
SIGNED = """
[zones."signed.example"]
dnssec = "active"
dnssec_settings = { key_layout = "ksk-zsk", zonemd = true }
records = [ { name = "@", type = "A", content = "192.0.2.1" } ]
"""
SECONDARY = """
tsig_keys = [ { name = "xfr.example.net", algorithm = "hmac-sha512", transfer = false } ]

[zones."second.example"]
type = "secondary"
settings = { ssl = "strict" }
dns_settings = { secondary_overrides = true }
primaries = [
  { ip = "127.0.0.1", port = 9, key = "xfr.example.net" },
  { ip = "2001:db8::1", tls = true, ixfr = false },
]
"""


@pytest.fixture
def kv_server(lent):
    """One whose account has nothing of other tests: these commands look at all of it."""
    return lent


@pytest.fixture
def file(tmp_path):
    def one(text):
        path = tmp_path / "one.toml"
        path.write_text(text)
        return path

    return one


def zone_path(server, name):
    return f"/zones/{server.call('GET', f'/zones?name={name}').result[0]['id']}"


def test_a_zone_is_signed_as_the_file_says(edgecli, kv_server, file, tmp_path):
    path = file(SIGNED)
    planned = edgecli("plan", str(path))
    assert "+ zone signed.example\n" in planned.out
    assert "~ dnssec signed.example: disabled → active\n" in planned.out
    assert "~ dnssec setting key_layout: csk → ksk-zsk\n" in planned.out

    done = edgecli("apply", str(path), "--yes")

    assert done.code == 0, done.err
    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")
    held = kv_server.call("GET", f"{zone_path(kv_server, 'signed.example')}/dnssec").result
    assert (held["status"], held["key_layout"], held["zonemd"]) == ("pending", "ksk-zsk", True)
    written = tmp_path / "out.toml"
    edgecli("export", "-o", str(written))
    exported, wanted = (document.read(one)["zones"]["signed.example"] for one in (written, path))
    assert [exported[one] for one in ("dnssec", "dnssec_settings")] == [
        wanted[one] for one in ("dnssec", "dnssec_settings")
    ]
    assert edgecli("plan", str(written), "--check").code == 0
    write(path, '"active"', '"disabled"')
    write(path, "zonemd = true", "zonemd = false, zsk_lifetime_days = 90")
    assert edgecli("apply", str(path), "--yes").code == 0
    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")


def test_a_zone_as_it_is_made_differs_in_nothing_that_is_as_by_default(edgecli, file):
    edgecli("zone", "create", "plain.example")
    path = file('[zones."plain.example"]\ndnssec = "disabled"\n[zones."plain.example".dnssec_settings]\n')
    with path.open("a") as text:
        text.writelines(f"{name} = {json.dumps(value)}\n" for name, value in document.DNSSEC_DEFAULTS.items())

    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")
    assert "dnssec_settings" not in edgecli("export").out


def test_a_secondary_zone_is_made_with_its_primaries_and_no_records(edgecli, kv_server, file, tmp_path):
    path = file(SECONDARY)
    planned = edgecli("plan", str(path))
    assert "+ zone second.example: secondary\n" in planned.out
    assert "127.0.0.1 port 9 key xfr.example.net, 2001:db8::1 tls True ixfr False" in planned.out

    done = edgecli("apply", str(path), "--yes")

    assert done.code == 0, done.err
    assert "`edgecli dns key show xfr.example.net` prints its secret" in done.out
    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")
    keys = kv_server.call("GET", f"/accounts/{kv_server.ready['account_id']}/secondary_dns/tsigs").result
    written = tmp_path / "out.toml"
    edgecli("export", "-o", str(written))
    assert keys[0]["secret"]
    assert keys[0]["secret"] not in written.read_text()
    exported, wanted = document.read(written), document.read(path)
    assert exported["tsig_keys"] == wanted["tsig_keys"]
    zone = exported["zones"]["second.example"]
    assert {member: zone[member] for member in wanted["zones"]["second.example"]} == wanted["zones"][
        "second.example"
    ]
    assert "records" not in zone
    assert edgecli("plan", str(written), "--check").code == 0

    write(path, "port = 9", "port = 53")
    write(path, "transfer = false", "transfer = true")
    again = edgecli("apply", str(path), "--yes")
    assert "~ tsig key xfr.example.net: transfer off → default" in again.out, again.out
    assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")
    after = kv_server.call("GET", f"/accounts/{kv_server.ready['account_id']}/secondary_dns/tsigs").result
    assert after[0]["secret"] == keys[0]["secret"]


def test_what_was_transferred_is_compared_and_never_applied(edgecli, kv_server, tmp_path, file):
    with closing(
        EdgeServer(tmp_path / "primary", *patient(tmp_path), "--transfer-to", "127.0.0.1").start()
    ) as primary:
        zone = primary.make_zone("moved.example")
        primary.make_record(zone, "A", "www", "192.0.2.7", ttl=300)
        ip, _, port = primary.ready["dns"].rpartition(":")
        text = f'type = "secondary"\nprimaries = [ {{ ip = "{ip}", port = {port} }} ]\n'
        path = file(f'[zones."moved.example"]\n{text}')
        assert edgecli("apply", str(path), "--yes").code == 0
        records = f"{zone_path(kv_server, 'moved.example')}/dns_records"
        end = time.monotonic() + ARRIVES_SECONDS_MAX
        while not kv_server.call("GET", records).result:
            assert time.monotonic() < end, edgecli("dns", "secondary", "show", "moved.example").out
            time.sleep(0.1)

        assert edgecli("plan", str(path), "--check").out.endswith("Nothing differs.\n")
        assert "192.0.2.7" not in edgecli("export").out
        same = edgecli("diff", f"@{primary.ready['dns']}", "server", "--zone", "moved.example")
        assert (same.code, same.out) == (0, "Nothing differs.\n"), same.out
    older = file(
        '[zones."moved.example"]\nrecords = [ { name = "www", type = "A", content = "192.0.2.8" } ]\n'
    )
    refused = edgecli("apply", str(older), "--yes")
    assert refused.code == 1
    assert "is secondary here: its records are its primary's" in refused.err


def test_a_zone_of_another_type_and_a_key_that_is_missing_are_told(edgecli, file):
    edgecli("zone", "create", "second.example")
    path = file(SECONDARY)
    told = edgecli("plan", str(path))
    assert told.code == 1
    assert "The zone second.example is primary here, and not secondary." in told.err

    edgecli("zone", "delete", "second.example", "--yes")
    write(path, "tsig_keys = [", "tsig_keys = [] # [")
    done = edgecli("apply", str(path), "--yes")
    assert done.code == 1
    assert "There is no TSIG key xfr.example.net." in done.err


def test_who_may_not_read_keys_compares_the_rest(edgecli, narrow_plan, file):
    path = file(SECONDARY)
    edgecli("apply", str(path), "--yes")
    looked = narrow_plan(path, "Account DNS Settings Read")
    assert (looked.code, looked.out) == (0, "Nothing differs.\n"), (looked.out, looked.err)
    assert "TSIG keys: " in looked.err


def test_keys_of_zones_that_another_server_signs_stay_there(edgecli, tmp_path, monkeypatch, file):
    with closing(EdgeServer(tmp_path / "there", *patient(tmp_path)).start()) as there:
        zone = there.make_zone("signed.example")
        there.call("PATCH", f"/zones/{zone}/dnssec", {"status": "active"})
        body = {"name": "second.example", "type": "secondary", "account": {"id": there.ready["account_id"]}}
        there.call("POST", "/zones", body)
        monkeypatch.setenv("IMPORT_TOKEN", there.ready["api_token"])
        base = there.ready["api_base"]

        report = edgecli("import", "--from", base, "--json")
        planned = edgecli("plan", base, "--zone", "signed.example", "--check")

    assert report.code == 0, report.err
    assert json.loads(report.out)["made"]["zones"] == 1
    left = json.loads(report.out)["not_carried_over"]
    assert any("second.example: it is secondary there: `edgecli dns secondary add" in one for one in left)
    signed = "signed.example: DNSSEC: the keys stay there"
    assert any(one.startswith(signed) for one in left)
    assert (planned.code, planned.out) == (0, "Nothing differs.\n"), planned.out
    assert signed in planned.err
