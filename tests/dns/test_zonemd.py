"""Digests of zones, by dnspython's and Knot's own."""

import time

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.zone
import pytest
from dns.rdtypes.ANY.ZONEMD import ZONEMD as Zonemd
from dns.zonetypes import DigestHashAlgorithm, DigestScheme

from edgestead.model import names, zonemd
from edgestead.testing.server import wait_until
from tests.dns import stock
from tests.dns.stock import Stock

APEX = "zone.test"
TEXT = """$ORIGIN zone.test.
@ 3600 IN SOA Ns.Example.NET. Host.example.net. 7 3600 600 86400 60
@ 3600 IN NS NS.example.net.
@ 3600 IN MX 10 Mail
www 60 IN A 192.0.2.1
www 60 IN A 192.0.2.2
WWW 60 IN TXT "Upper" "lower"
alias 1 IN CNAME Www
*.wild 60 IN SRV 1 2 3 Target
sub 60 IN NS ns.sub
ns.sub 60 IN A 192.0.2.53
"""


def zone_of(text):
    return dns.zone.from_text(text, origin=f"{APEX}.", relativize=False)


def with_digest(text, hash_=1, *, serial=7, spoil=False):
    """A zone with a ZONEMD record that dnspython made."""
    zone = zone_of(text)
    node = zone.find_rdataset(f"{APEX}.", "ZONEMD", create=True)
    made = zone.compute_digest(DigestHashAlgorithm(hash_), DigestScheme.SIMPLE)
    octets = bytes(made.digest[:-1]) + bytes((made.digest[-1] ^ spoil,))
    node.add(Zonemd(made.rdclass, made.rdtype, serial, made.scheme, made.hash_algorithm, octets), ttl=3600)
    return zone


def read(zone):
    """(apex, SOA, others) as a transfer is read."""
    soa, found = None, []
    for name, ttl, rdata in zone.iterate_rdatas():
        record = (name.canonicalize().to_wire(), int(rdata.rdtype), ttl, rdata.to_wire())
        if rdata.rdtype == dns.rdatatype.SOA:
            soa = record
        else:
            found.append(record)
    return names.wire_from_text(APEX), soa, found


@pytest.mark.parametrize("hash_", [1, 2])
def test_a_digest_of_another_program_is_ours(hash_):
    assert zonemd.problem(*read(with_digest(TEXT, hash_))) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("192.0.2.53", "192.0.2.54"),
        ("www 60 IN A 192.0.2.2\n", ""),
        ("*.wild 60", "*.wild 61"),
        ("86400 60", "86400 61"),
        ('"Upper"', '"upper"'),
    ],
)
def test_any_other_content_is_not(old, new):
    apex, _, before = read(with_digest(TEXT))
    (digest,) = (record for record in before if record[1] == zonemd.ZONEMD)
    assert old in TEXT
    _, soa, others = read(zone_of(TEXT.replace(old, new)))
    assert "another content" in zonemd.problem(apex, soa, [*others, digest])


def test_a_ttl_of_one_second_may_be_kept_as_two():
    apex, soa, records = read(with_digest(TEXT))
    kept = [(owner, type_, ttl + (ttl == 1), rdata) for owner, type_, ttl, rdata in records]
    assert kept != records
    assert zonemd.problem(apex, soa, kept) == ""


def test_of_ttls_of_one_and_two_seconds_it_is_known_which_were_one():
    apex, soa, records = read(with_digest(TEXT.replace("www 60 IN A", "www 2 IN A")))
    kept = [(owner, type_, ttl + (ttl == 1), rdata) for owner, type_, ttl, rdata in records]
    ones = [after for before, after in zip(records, kept, strict=True) if before != after]
    assert ones
    assert "another content" in zonemd.problem(apex, soa, kept)
    assert zonemd.problem(apex, soa, kept, ones) == ""


def test_what_nobody_can_say_is_no_problem_and_another_serial_is():
    apex, soa, records = read(with_digest(TEXT, spoil=True))
    assert "another content" in zonemd.problem(apex, soa, records)
    (own,) = (record for record in records if record[1] == zonemd.ZONEMD)
    others = [record for record in records if record is not own]
    assert zonemd.problem(apex, soa, others) == ""
    for changed in (own[3][:4] + b"\2" + own[3][5:], own[3][:5] + b"\xf0" + own[3][6:], own[3][:-1], b""):
        assert zonemd.problem(apex, soa, [*others, (*own[:3], changed)]) == ""
    twice = (*own[:3], own[3][:-1] + b"\0")
    assert zonemd.problem(apex, soa, [*records, twice]) == ""
    assert "another serial" in zonemd.problem(*read(with_digest(TEXT, serial=8)))


@pytest.mark.skipif(stock.binary("Knot") is None, reason="KNOT IS NOT INSTALLED: nobody judges our digest")
@pytest.mark.parametrize("is_right", [True, False])
def test_knot_loads_a_zone_with_our_digest_and_with_no_other(tmp_path, is_right):
    apex, soa, others = read(zone_of(TEXT))
    octets = zonemd.digest(apex, [soa, *others], 1)
    octets = octets if is_right else octets[::-1]
    (tmp_path / "zone").write_text(f"{TEXT}@ 3600 IN ZONEMD 7 1 1 {octets.hex()}\n")
    place = stock.new_place("Knot")
    zone = f'zone:\n  - domain: {APEX}\n    file: "{tmp_path}/zone"\n    zonemd-verify: on\n'
    knot = Stock("Knot", tmp_path, stock.head("Knot", tmp_path, place) + zone, place)
    try:
        wait_until(lambda: "zone.test." in knot.log and ("loaded" in knot.log or "failed" in knot.log), 180)
        query = dns.message.make_query(f"www.{APEX}", "A")
        reply = dns.query.udp(query, knot.host, port=knot.port, timeout=60)
        assert (reply.rcode() == dns.rcode.NOERROR) == is_right, knot.log
    finally:
        knot.stop()


def cost(count):
    """Seconds for a zone of so many names. For the design note."""
    apex = names.wire_from_text(APEX)
    soa = (apex, 6, 60, b"\0\0" + bytes(20))
    records = [(b"\x08" + b"%08x" % n + apex, 1, 60, n.to_bytes(4, "big")) for n in range(count)]
    began = time.process_time()
    zonemd.digest(apex, [soa, *records], 1)
    return time.process_time() - began
