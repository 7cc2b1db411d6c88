"""A zone leaves as DNS serves it: other name servers' own checks take the file, signed or not."""

import re
import shutil
import subprocess

import dns.rdatatype
import dns.zone
import pytest

from edgestead.testing.server import wait_until
from tests.cli import powerdns

KEY = "out.leaving.example"
ZONE = "leaving.example"
PLAIN = "plain.example"
OF_A_SIGNER = ("RRSIG", "NSEC", "NSEC3", "NSEC3PARAM", "DNSKEY", "CDS", "CDNSKEY")
RECORDS = (
    ("A", "@", "192.0.2.1", {}),
    ("A", "www", "192.0.2.80", {"proxied": True}),
    ("CNAME", "alias", "www.leaving.example", {}),
    ("MX", "@", "mail.leaving.example", {"priority": 10}),
    ("A", "mail", "192.0.2.25", {"ttl": 600}),
    ("TXT", "odd", '"two ; parts" "\\" and more"', {}),
    ("NS", "below", "ns.elsewhere.example", {}),
    ("A", "*.wild", "192.0.2.9", {}),
)


@pytest.fixture
def zone(kv_server):
    zone_id = kv_server.make_zone(ZONE)
    for type_, name, content, more in RECORDS:
        made = kv_server.make_record(zone_id, type_, name, content, **more)
        assert made.status == 200, made
    yield zone_id
    kv_server.call("DELETE", f"/zones/{zone_id}")


@pytest.fixture
def exported(edgecli, kv_server, zone, clean_environment, monkeypatch):
    monkeypatch.setenv("EDGE_DNS_ADDR", kv_server.ready["dns"])
    assert edgecli("dns", "key", "add", KEY).code == 0

    def run(*options, zone=ZONE):
        file = clean_environment / "zone"
        done = edgecli("zone", "export", zone, "--served", "-o", str(file), *options)
        return done, file

    yield run
    edgecli("dns", "key", "remove", KEY, "--yes")


@pytest.fixture
def signed(exported, kv_server, zone, tmp_path):
    """The file of the zone while it is signed."""
    kv_server.call("PATCH", f"/zones/{zone}/dnssec", {"status": "active"})
    wait_until(lambda: " RRSIG SOA " in exported("--key", KEY)[1].read_text(), 180)
    return exported("--key", KEY)[1].rename(tmp_path / "signed")


def judged(*command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is missing")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def judged_unsigned(file):
    judged("named-checkzone", "-i", "none", ZONE, file)
    judged("nsd-checkzone", ZONE, file)
    judged("kzonecheck", "-o", ZONE, file)


def records(source):
    """Name, TTL, type and data of each in a file or a text."""
    text = source if isinstance(source, str) else source.read_text()
    found = dns.zone.from_text(text, origin=ZONE, relativize=False)
    return {
        (str(name), str(ttl), dns.rdatatype.to_text(rdata.rdtype), str(rdata))
        for name, ttl, rdata in found.iterate_rdatas()
    }


def test_a_zone_leaves_as_it_is_served(exported, kv_server):
    done, file = exported("--key", KEY)

    assert (done.code, done.err) == (0, "")
    text = file.read_text()
    assert text.startswith(f"$ORIGIN {ZONE}.\n{ZONE}. 3600 IN SOA ")
    assert f"www.{ZONE}. 300 IN A {kv_server.ready['http'].rpartition(':')[0]}" in text
    assert f"mail.{ZONE}. 600 IN A 192.0.2.25" in text
    judged_unsigned(file)


@powerdns.needed
@pytest.mark.parametrize("is_signed", [False, True])
def test_powerdns_takes_it_without_what_a_signer_made(exported, is_signed, tmp_path, request):
    """Its database has no place for NSEC."""
    if is_signed:
        request.getfixturevalue("signed")
    _, file = exported("--key", KEY, "--unsigned")
    powerdns.make_folder(tmp_path)

    powerdns.pdnsutil(tmp_path, "load-zone", ZONE, file)

    assert " 0 errors" in powerdns.pdnsutil(tmp_path, "check-zone", ZONE)
    assert records(powerdns.pdnsutil(tmp_path, "list-zone", ZONE)) == records(file)


def test_a_zone_that_left_is_what_is_here(exported, edgecli, kv_server):
    """Where nothing is proxied and no TTL is left to the server."""
    zone_id = kv_server.make_zone(PLAIN)
    for type_, name, content, more in RECORDS:
        kv_server.make_record(zone_id, type_, name, content, **more | {"ttl": 600, "proxied": False})
    _, file = exported("--key", KEY, zone=PLAIN)
    same = edgecli("plan", f"bind:{file}", "--check")
    kv_server.make_record(zone_id, "A", "later", "192.0.2.3")
    differs = edgecli("plan", f"bind:{file}", "--check")
    kv_server.call("DELETE", f"/zones/{zone_id}")

    assert (same.code, same.out.splitlines()[-1]) == (0, "Nothing differs."), same.out + same.err
    assert (differs.code, "later" in differs.out) == (1, True)


def test_a_signed_zone_leaves_signed_or_not(exported, signed):
    assert {"RRSIG", "NSEC", "DNSKEY"} <= set(re.findall(r" IN (\w+) ", signed.read_text()))
    judged("dnssec-verify", "-q", "-z", "-o", ZONE, signed)
    judged("kzonecheck", "-d", "on", "-o", ZONE, signed)
    judged("named-checkzone", "-i", "none", ZONE, signed)
    done, file = exported("--key", KEY, "--unsigned")
    assert done.code == 0
    assert records(file) == {one for one in records(signed) if one[2] not in OF_A_SIGNER}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 1, "`edgecli dns key add NAME` makes one, and --key NAME uses it"),
        (("--key", "nobody.example"), 1, "There is no TSIG key nobody.example"),
    ],
)
def test_a_transfer_that_is_not_allowed_says_what_to_do(exported, options, code, words):
    done, file = exported(*options)

    assert (done.code, words in done.err) == (code, True), done.err
    assert not file.exists()


def test_a_key_that_transfers_nothing_is_told(edgecli, exported):
    edgecli("dns", "key", "add", "none.leaving.example", "--no-transfer")
    done, _ = exported("--key", "none.leaving.example")
    edgecli("dns", "key", "remove", "none.leaving.example", "--yes")

    assert (done.code, "transfers no zone" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "no server runs on this machine"),
        ("here", "is no HOST:PORT"),
        ("127.0.0.1:1", "cannot be reached: Connection refused"),
    ],
)
def test_where_dns_answers_has_to_be_known(edgecli, zone, monkeypatch, address, words):
    monkeypatch.setenv("EDGE_DNS_ADDR", address)

    done = edgecli("zone", "export", ZONE, "--served")

    assert (done.code, words in done.err) == (1, True), done.err


def test_what_belongs_to_served_is_refused_without_it(edgecli):
    assert edgecli("zone", "export", ZONE, "--unsigned").code == 2
    assert edgecli("zone", "export", ZONE, "--key", KEY).code == 2
