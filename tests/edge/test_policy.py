"""Which addresses may be asked as origins."""

from ipaddress import ip_network

import pytest

from edgestead.edge.http.policy import Policy

OWN = [("127.0.0.1", 8080), ("0.0.0.0", 5300), ("::", 8443)]
EVERYTHING = tuple(map(ip_network, ("0.0.0.0/0", "::/0")))

NEVER = [
    ("127.0.0.1", 8080, "own"),
    ("::ffff:127.0.0.1", 8080, "own"),
    ("127.9.9.9", 5300, "own"),
    ("127.0.0.1", 8443, "own"),
    ("::1", 8443, "own"),
    ("169.254.169.254", 80, "never"),
    ("::ffff:169.254.169.254", 80, "never"),
    ("fe80::1", 80, "never"),
    ("224.0.0.1", 80, "never"),
    ("ff02::1", 80, "never"),
    ("0.0.0.0", 80, "never"),
    ("::", 80, "never"),
    ("255.255.255.255", 80, "never"),
    ("64:ff9b::a9fe:a9fe", 80, "never"),
    ("2002:a9fe:a9fe::1", 80, "never"),
    ("64:ff9b::7f00:1", 8080, "own"),
]
PRIVATE = ["127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "fd00::1", "::ffff:10.1.2.3"]
PRIVATE += ["100.64.0.1", "100.100.100.200", "64:ff9b::a00:1", "2002:a00:1::1"]
# Of these, releases of Python say different things, or nothing.
PRIVATE += ["192.0.0.8", "192.0.0.170", "192.88.99.1", "198.18.0.1", "240.0.0.1", "0.1.2.3", "203.0.113.9"]
PRIVATE += ["fec0::1", "64:ff9b:1::a00:1", "::10.1.2.3", "::8.8.8.8", "100::1", "2001:db8::1", "2001::1"]
PRIVATE += ["3fff::1", "5f00::1", "4000::1", "2001:2::1", "2001:10::1"]
WORLD = ["8.8.8.8", "2606:4700::1", "64:ff9b::808:808", "2002:808:808::1", "192.0.0.9", "192.0.0.10"]
WORLD += ["192.31.196.1", "192.52.193.1", "192.175.48.1", "192.88.98.1", "223.255.255.255", "2001:20::1"]
WORLD += ["2001:1::1", "2001:3::1", "2001:4:112::1", "2001:200::1", "2620:4f:8000::1", "3ffe::1"]


@pytest.mark.parametrize(("address", "port", "words"), NEVER)
def test_some_are_never_asked_whatever_is_allowed(address, port, words):
    assert words in Policy(OWN, EVERYTHING).fault(address, port)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_ones_are_asked_only_when_allowed(address):
    assert "--origin-allow" in Policy(OWN, ()).fault(address, 80)
    assert Policy(OWN, EVERYTHING).fault(address, 80) is None


def test_a_prefix_allows_its_own_addresses_only():
    policy = Policy((), (ip_network("10.0.0.0/8"),))
    assert policy.fault("10.9.9.9", 80) is None
    assert policy.fault("192.168.1.1", 80) is not None
    assert policy.fault("fd00::1", 80) is not None


@pytest.mark.parametrize("address", WORLD)
def test_the_world_is_asked(address):
    assert Policy(OWN, ()).fault(address, 80) is None
