"""Aliases answered with addresses: inside our zones at once, outside through a resolver in the background."""

from itertools import count

import dns.rcode
import pytest

from edgestead.model.served import PENDING
from edgestead.testing.platforms import Platform
from edgestead.testing.server import wait_until
from tests.server.resolver import Resolver

EDGE = ("--edge-address", "203.0.113.7")
_numbers = count()


@pytest.fixture(scope="module")
def resolver():
    made = Resolver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def platform(resolver, tmp_path_factory):
    flags = ("--resolver", resolver.address, *EDGE)
    made = Platform(lambda: tmp_path_factory.mktemp("flattening"), flags, lambda edge: None)
    yield made
    made.close()


@pytest.fixture
def server(platform):
    """One that all tests use; its zones are the test's own."""
    platform.for_a_test()
    return with_zone(platform.server)


@pytest.fixture
def new(new_server, resolver):
    """One that no test has used."""
    return with_zone(new_server("--resolver", resolver.address, *EDGE).start())


def with_zone(server):
    server.zone_id = server.make_zone("example.com")
    return server


@pytest.fixture
def target():
    """A label in example.net that neither the resolver nor the server has seen."""
    return f"target-{next(_numbers)}"


@pytest.fixture
def outside(target):
    return f"{target}.example.net"


def settings(server, **fields):
    assert server.call("PATCH", f"/zones/{server.zone_id}/dns_settings", fields).status == 200


def setting(server, name, value):
    answer = server.call("PATCH", f"/zones/{server.zone_id}/settings/{name}", {"value": value})
    assert answer.status == 200
    return answer.body


def answers(server, name, wanted, kind="A"):
    wait_until(lambda: server.dig(name, kind) == wanted, 300)


def test_the_apex_is_answered_with_the_addresses_of_its_target_the_moment_they_change(server):
    server.make_record(server.zone_id, "CNAME", "@", "www.example.com")
    assert server.dig("example.com") == []

    record = server.make_record(server.zone_id, "A", "www", "192.0.2.1").result
    assert server.dig("example.com") == ["192.0.2.1"]
    assert server.dig("example.com", "NS") != []

    server.call("PATCH", f"/zones/{server.zone_id}/dns_records/{record['id']}", {"content": "192.0.2.2"})
    assert server.dig("example.com") == ["192.0.2.2"]


def test_a_chain_over_our_zones_and_a_wildcard_is_followed(server):
    other = server.make_zone("example.org")
    server.make_record(server.zone_id, "CNAME", "@", "a.example.org")
    server.make_record(other, "CNAME", "a", "b.example.com")
    wildcard = server.make_record(server.zone_id, "A", "*", "192.0.2.3").result
    assert server.dig("example.com") == ["192.0.2.3"]

    server.call("DELETE", f"/zones/{server.zone_id}/dns_records/{wildcard['id']}")
    assert server.dig("example.com") == []


def test_a_target_that_is_proxied_is_the_edge(server):
    server.make_record(server.zone_id, "CNAME", "@", "www.example.com")
    server.make_record(server.zone_id, "A", "www", "192.0.2.1", proxied=True)

    assert server.dig("example.com") == ["203.0.113.7"]


def test_every_alias_is_flattened_when_the_zone_says_so(server):
    server.make_record(server.zone_id, "A", "www", "192.0.2.1")
    server.make_record(server.zone_id, "CNAME", "shop", "www.example.com")
    assert server.dig("shop.example.com", "CNAME") == ["www.example.com."]

    settings(server, flatten_all_cnames=True)
    assert server.dig("shop.example.com", "CNAME") == []
    assert server.dig("shop.example.com") == ["192.0.2.1"]

    settings(server, flatten_all_cnames=False)
    assert server.dig("shop.example.com", "CNAME") == ["www.example.com."]


def test_a_target_outside_fails_until_its_first_answer_and_keeps_its_last_one(server, resolver, outside):
    resolver.fails(outside)
    server.make_record(server.zone_id, "CNAME", "@", outside)
    server.make_record(server.zone_id, "CNAME", "www", "example.com")
    assert server.dig("example.com") == ["SERVFAIL"]
    assert server.dig("example.com", "AAAA") == ["SERVFAIL"]
    assert server.dig("example.com", "MX") == []
    assert server.dig("example.com", f"TYPE{PENDING}") == []  # never the mark itself

    resolver.says(outside, "198.51.100.1", "2001:db8::1", ttl=20)
    answers(server, "example.com", ["198.51.100.1"])
    answers(server, "example.com", ["2001:db8::1"], "AAAA")
    assert server.dig("www.example.com") == ["198.51.100.1", "example.com."]

    resolver.fails(outside)
    server.stop()
    server.start()
    assert server.dig("example.com") == ["198.51.100.1"]


def test_a_target_that_does_not_exist_has_no_address(server, resolver, outside):
    resolver.fails(outside, dns.rcode.NXDOMAIN)
    server.make_record(server.zone_id, "CNAME", "@", outside)

    answers(server, "example.com", [])


def test_a_name_whose_target_has_gone_hides_the_wildcard_and_outlives_a_restart(server, resolver, outside):
    settings(server, flatten_all_cnames=True)
    resolver.fails(outside, dns.rcode.NXDOMAIN)
    server.make_record(server.zone_id, "A", "*.wild", "192.0.2.99")
    server.make_record(server.zone_id, "TXT", "*.wild", '"wild"')
    server.make_record(server.zone_id, "CNAME", "nx.wild", outside)
    target = server.make_record(server.zone_id, "A", "www", "192.0.2.1").result
    server.make_record(server.zone_id, "CNAME", "gone.wild", "www.example.com")
    assert server.dig("gone.wild.example.com") == ["192.0.2.1"]

    server.call("DELETE", f"/zones/{server.zone_id}/dns_records/{target['id']}")
    answers(server, "nx.wild.example.com", [])
    assert server.dig("gone.wild.example.com") == server.dig("gone.wild.example.com", "TXT") == []
    assert server.dig("other.wild.example.com") == ["192.0.2.99"]

    server.stop()
    server.start()
    assert server.dig("gone.wild.example.com") == server.dig("nx.wild.example.com", "TXT") == []


def test_a_zone_of_ours_takes_the_place_of_the_world_and_gives_it_back(server, resolver, target, outside):
    resolver.says(outside, "198.51.100.1")
    server.make_record(server.zone_id, "CNAME", "@", outside)
    answers(server, "example.com", ["198.51.100.1"])

    other = server.make_zone("example.net")
    server.make_record(other, "A", target, "192.0.2.9")
    assert server.dig("example.com") == ["192.0.2.9"]

    server.call("DELETE", f"/zones/{other}")
    answers(server, "example.com", ["198.51.100.1"])


def test_a_proxied_name_offers_the_protocols_that_are_on(server):
    server.make_record(server.zone_id, "A", "www", "192.0.2.1", proxied=True)
    server.make_record(server.zone_id, "A", "plain", "192.0.2.1")
    assert server.dig("www.example.com", "HTTPS") == []

    said = setting(server, "http2", "on")
    assert server.dig("www.example.com", "HTTPS") == ['1 . alpn="h2" ipv4hint="203.0.113.7"']
    assert "--https" in said["messages"][0]["message"]
    assert server.dig("plain.example.com", "HTTPS") == []

    setting(server, "http3", "on")
    assert server.dig("www.example.com", "HTTPS") == ['1 . alpn="h3,h2" ipv4hint="203.0.113.7"']

    server.make_record(server.zone_id, "HTTPS", "www", "1 . alpn=h2")
    assert server.dig("www.example.com", "HTTPS") == ['1 . alpn="h2"']

    setting(server, "http2", "off")
    setting(server, "http3", "off")
    assert server.dig("www.example.com", "HTTPS") == ['1 . alpn="h2"']


def test_another_edge_and_other_name_servers_are_answered_after_a_start_with_them(new):
    new.make_record(new.zone_id, "A", "www", "192.0.2.1", proxied=True)
    new.make_record(new.zone_id, "CNAME", "@", "www.example.com")
    new.stop()

    new.flags = ("--edge-address", "203.0.113.8", "--nameserver", "ns.example.net")
    new.start()

    answers(new, "www.example.com", ["203.0.113.8"])
    answers(new, "example.com", ["203.0.113.8"])
    answers(new, "example.com", ["ns.example.net."], "NS")
    (soa,) = new.dig("example.com", "SOA")
    assert soa.startswith("ns.example.net. ")


def test_a_silent_resolver_fails_one_name_and_no_other_one(server, resolver, outside):
    settings(server, flatten_all_cnames=True)
    resolver.answers["silent.example.net", "A"] = resolver.answers["silent.example.net", "AAAA"] = None
    server.make_record(server.zone_id, "CNAME", "silent", "silent.example.net")
    wait_until(lambda: ("silent.example.net", "A") in resolver.asked, 300)

    resolver.says(outside, "198.51.100.1")
    server.make_record(server.zone_id, "CNAME", "quick", outside)

    answers(server, "quick.example.com", ["198.51.100.1"])
    assert server.dig("silent.example.com") == ["SERVFAIL"]


def test_what_waits_to_be_rendered_goes_on_after_a_restart(new):
    settings(new, flatten_all_cnames=True)
    zones = [new.make_zone(f"zone-{number}.example") for number in range(3)]
    for number, zone_id in enumerate(zones):
        new.make_record(zone_id, "CNAME", "@", "www.example.com")
        new.make_record(zone_id, "A", "www", "192.0.2.1", proxied=True)
        assert new.dig(f"www.zone-{number}.example") == ["203.0.113.7"]
    new.make_record(new.zone_id, "A", "www", "192.0.2.1", proxied=True)
    new.stop()

    new.flags = (*new.flags[:2], "--edge-address", "203.0.113.8")
    new.start()
    new.stop()  # before, after or while its zones are rendered
    new.start()

    for number in range(3):
        answers(new, f"zone-{number}.example", ["203.0.113.8"])
        answers(new, f"www.zone-{number}.example", ["203.0.113.8"])


def test_metrics_tell_how_the_targets_are(new, resolver, outside):
    resolver.fails(outside)
    new.make_record(new.zone_id, "CNAME", "@", outside)

    def shown(line):
        return line in new.call("GET", "//metrics").body.splitlines()

    wait_until(lambda: not shown('edge_flattening_asked_total{process="control",outcome="failed"} 0'), 300)
    assert shown('edge_flattening_targets{process="control"} 1')
    assert shown('edge_flattening_targets_unknown{process="control"} 1')

    resolver.says(outside, "198.51.100.1")
    wait_until(lambda: shown('edge_flattening_targets_unknown{process="control"} 0'), 300)
    assert not shown('edge_flattening_asked_total{process="control",outcome="answered"} 0')
