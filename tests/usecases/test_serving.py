"""What a zone's records become in DNS."""

from ipaddress import ip_address

import pytest

from edgestead.model import names
from edgestead.model.records import TYPES, parse
from edgestead.model.served import EXISTS, ServedRRset
from edgestead.tables.records import Neighbour
from edgestead.usecases.serving.rendering import NS_TTL_SECONDS, Renderer, ZoneFacts, is_proxied
from edgestead.usecases.serving.serials import next_serial

APEX = names.wire_from_text("example.com")
WWW = names.wire_from_text("www.example.com")
SERVERS = ("ns2.edge.internal", "ns1.edge.internal")
EDGE = ("203.0.113.1", "203.0.113.2", "2001:db8::1")
A, NS, CNAME, SOA, MX, TXT, AAAA, DS, HTTPS = 1, 2, 5, 6, 15, 16, 28, 43, 65


def record(type_, content, *, ttl=300, proxied=False, settings="{}", **more):
    rdata = parse(type_, content=content, **more).to_wire()
    return Neighbour(f"{type_}{content}", type_, rdata, ttl, int(proxied), settings, None, "[]")


@pytest.fixture
def renderer():
    return Renderer(SERVERS, EDGE)


def served(renderer, *records, owner=WWW, flat=None):
    """Types to (TTL, rdata)."""
    return {
        rrset.type: (rrset.ttl_seconds, rrset.rdatas)
        for rrset in renderer.name(APEX, owner, records, flat=flat).rrsets
    }


TARGET = ServedRRset(A, 60, (bytes((192, 0, 2, 9)),))


def edge(*texts):
    return tuple(sorted(ip_address(text).packed for text in texts))


def test_records_of_one_type_are_one_rrset_with_the_shortest_ttl(renderer):
    found = served(renderer, record("A", "192.0.2.2", ttl=600), record("A", "192.0.2.1", ttl=60))

    assert found == {A: (60, (b"\xc0\x00\x02\x01", b"\xc0\x00\x02\x02"))}


def test_the_automatic_ttl_is_300_seconds(renderer):
    assert served(renderer, record("A", "192.0.2.1", ttl=1))[A][0] == 300
    assert served(renderer, record("A", "192.0.2.1", ttl=1), record("A", "192.0.2.2", ttl=600))[A][0] == 300


def test_rrsets_do_not_depend_on_the_order_of_records(renderer):
    records = [
        record("TXT", "a"),
        record("MX", "m.test", priority=1),
        record("TXT", "b"),
        record("A", "192.0.2.1"),
    ]

    assert renderer.name(APEX, WWW, records) == renderer.name(APEX, WWW, records[::-1])


def test_a_name_without_records_serves_nothing(renderer):
    assert served(renderer) == {}


@pytest.mark.parametrize(
    "records",
    [
        (record("A", "192.0.2.1", proxied=True),),
        (record("AAAA", "2001:db8::5", proxied=True),),
        (record("CNAME", "origin.test", proxied=True),),
        (record("A", "192.0.2.1", proxied=True), record("A", "192.0.2.2"), record("AAAA", "2001:db8::5")),
    ],
    ids=["A", "AAAA", "CNAME", "one of three"],
)
@pytest.mark.parametrize("owner", [WWW, APEX], ids=["www", "apex"])
def test_a_proxied_name_serves_the_edge_and_never_its_origin(renderer, records, owner):
    found = served(renderer, *records, owner=owner)

    assert found.pop(A) == (300, edge("203.0.113.1", "203.0.113.2"))
    assert found.pop(AAAA) == (300, edge("2001:db8::1"))
    assert set(found) == ({NS} if owner == APEX else set())


def test_other_types_of_a_proxied_name_are_served_as_they_are(renderer):
    found = served(renderer, record("CNAME", "origin.test", proxied=True), record("TXT", "text", ttl=60))

    assert set(found) == {A, AAAA, TXT}
    assert found[TXT] == (60, (b"\x04text",))


@pytest.mark.parametrize(
    ("settings", "types"), [('{"ipv4_only":true}', {A}), ('{"ipv6_only":true}', {AAAA}), ("{}", {A, AAAA})]
)
def test_a_proxied_name_may_be_of_one_family(renderer, settings, types):
    assert set(served(renderer, record("A", "192.0.2.1", proxied=True, settings=settings))) == types


@pytest.mark.parametrize(
    ("settings", "types"), [("{}", {A}), ('{"ipv4_only":true}', {A}), ('{"ipv6_only":true}', {EXISTS})]
)
def test_a_zone_without_ipv6_has_no_such_addresses_of_its_edge(renderer, settings, types):
    facts = ZoneFacts(ipv6=False, alpn=(b"h2",))
    records = [record("AAAA", "2001:db8::99", proxied=True, settings=settings)]

    found = renderer.name(APEX, WWW, records, facts).rrsets

    assert {rrset.type for rrset in found} - {HTTPS} == types
    assert all(ip_address("2001:db8::1").packed not in rdata for rrset in found for rdata in rrset.rdatas)


def test_a_zone_that_is_dns_only_serves_proxied_records_as_they_are_written(renderer):
    records = [record("A", "192.0.2.1", ttl=1, proxied=True), record("TXT", '"a"')]

    found = renderer.name(APEX, WWW, records, ZoneFacts(dns_only=True, alpn=(b"h2",))).rrsets

    assert [(one.type, one.ttl_seconds) for one in found] == [(A, 300), (TXT, 300)]
    assert found[0].rdatas == edge("192.0.2.1")


def test_an_edge_of_one_family_answers_only_that(renderer):
    found = served(Renderer(SERVERS, ("203.0.113.1",)), record("AAAA", "2001:db8::5", proxied=True))

    assert set(found) == {A}


def test_beside_a_plain_cname_nothing_else_is_served(renderer):
    found = served(
        renderer, record("CNAME", "a.test"), record("TXT", "text"), record("MX", "m.test", priority=1)
    )

    assert set(found) == {CNAME}


def test_beside_a_flattened_cname_the_rest_is_served(renderer):
    found = served(renderer, record("CNAME", "a.test"), record("TXT", "text"), owner=APEX, flat=[TARGET])

    assert set(found) == {NS, TXT, A}
    assert found[A] == (60, TARGET.rdatas)


def test_a_name_with_records_of_which_none_is_served_exists(renderer):
    alias = record("CNAME", "gone.example.com")
    only_six = record("A", "192.0.2.1", proxied=True, settings='{"ipv6_only":true}')

    assert served(renderer, alias, flat=()) == {EXISTS: (0, (b"",))}
    assert set(served(renderer, alias, record("TXT", '"a"'), flat=())) == {TXT}
    assert set(served(Renderer(SERVERS, EDGE[:1]), only_six)) == {EXISTS}
    assert served(renderer) == {}


def test_ns_records_at_the_apex_are_stored_and_ours_are_served(renderer):
    found = served(renderer, record("NS", "ns.elsewhere.test"), owner=APEX)

    servers = tuple(sorted(names.wire_from_text(server) for server in SERVERS))
    assert found == {NS: (NS_TTL_SECONDS, servers)}


def test_ns_records_below_the_apex_delegate(renderer):
    found = served(renderer, record("NS", "ns.elsewhere.test", ttl=600))

    assert found == {NS: (600, (names.wire_from_text("ns.elsewhere.test"),))}


def test_a_ds_is_served_with_its_delegation_only(renderer):
    ds = record("DS", "1 13 2 " + "ab" * 32)

    assert set(served(renderer, ds)) == {EXISTS}
    assert set(served(renderer, ds, record("NS", "ns.elsewhere.test"))) == {NS, DS}
    assert set(served(renderer, ds, owner=APEX)) == {NS}


def test_a_zone_has_an_soa_with_the_first_server_and_the_serial(renderer):
    zone = renderer.zone(APEX, 0x01020304)

    soa = TYPES["SOA"].rdata.from_wire(zone.soa_rdata)
    assert (zone.apex, zone.soa_ttl_seconds) == (APEX, 3600)
    assert soa.to_content() == "ns2.edge.internal hostmaster.edge.internal 16909060 10000 2400 604800 1800"


@pytest.mark.parametrize(("serial", "following"), [(0, 1), (41, 42), (2**32 - 1, 0), (2**31 - 1, 2**31)])
def test_a_serial_moves_by_one_and_wraps(serial, following):
    assert next_serial(serial) == following


def test_one_proxied_record_makes_the_name_proxied():
    assert is_proxied([record("A", "192.0.2.1"), record("A", "192.0.2.2", proxied=True)])
    assert not is_proxied([record("A", "192.0.2.1")])
    assert not is_proxied([])


@pytest.mark.parametrize(("servers", "edge"), [(("a..b",), ()), (SERVERS, ("300.1.1.1",))])
def test_facts_that_are_none_are_refused_at_the_start(servers, edge):
    with pytest.raises(ValueError, match=r"dots|300\.1\.1\.1"):
        Renderer(servers, edge)
