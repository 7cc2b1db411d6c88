"""IPv6 from end to end: clients, origins, and a socket that takes both families."""

import socket

import pytest

from edgestead.testing.server import EdgeServer
from tests.edge.origin import HTTP_200, Origin, headers_of, loopback
from tests.edge.talk import get, in_one_go
from tests.support.patience import patient

ZONE = "six.example"
CUSTOM = "http_request_firewall_custom"


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="NOT TESTED: this machine has no IPv6")


class Site:
    """A server on `[::]`, whose origins are on the port of one that listens on `::1`."""

    def __init__(self, folder):
        self.origin = Origin("::1")
        allowed = [part for prefix in ("127.0.0.0/8", "::1/128") for part in ("--origin-allow", prefix)]
        self.server = EdgeServer(
            folder / "data",
            *patient(folder),
            *("--http", "[::]:0", "--edge-address", "2001:db8::10"),
            *("--origin-port", str(self.origin.port), "--trusted-proxies", "127.77.0.0/16", *allowed),
        )
        self.server.start()
        self.zone_id = self.server.make_zone(ZONE)

    def name(self, name, *records):
        host = f"{name}.{ZONE}"
        for type_, content in records:
            made = self.server.make_record(self.zone_id, type_, host, content, proxied=True)
            assert made.status == 200, made
        return host

    def get(self, host, path="/", *headers, by="[::1]"):
        return get(f"{by}:{self.server.ready['http'].rpartition(':')[2]}", host, path, *headers)

    def heard(self):
        """The headers of the request that the origin got last."""
        return headers_of(self.origin.heads[-1])

    def close(self):
        self.server.close()
        self.origin.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


def test_an_origin_with_an_aaaa_record_is_asked(site):
    host = site.name("origin", ("AAAA", "::1"))
    answer = site.get(host)
    assert (answer.status, answer.body) == (200, b"ok")
    assert site.heard()[b"host"] == host.encode()
    assert site.heard()[b"x-forwarded-for"] == site.heard()[b"edge-connecting-ip"] == b"::1"


def test_kept_connections_are_used_again(site):
    host = site.name("kept", ("AAAA", "::1"))

    def scene():
        before = site.origin.connections
        for _ in range(3):
            assert site.get(host).status == 200
        return site.origin.connections - before

    assert in_one_go(scene) <= 1


def test_families_stand_in_for_one_another(site):
    host = site.name("both", ("A", loopback(5)), ("AAAA", "::1"))
    assert [site.get(host).status for _ in range(4)] == [200] * 4


def test_an_alias_is_resolved_to_its_ipv6_address(site):
    made = site.server.make_record(site.zone_id, "AAAA", f"target.{ZONE}", "::1")
    assert made.status == 200
    assert site.get(site.name("alias", ("CNAME", f"target.{ZONE}"))).status == 200


@pytest.mark.parametrize("address", ["2001:db8::1", "fd00::1", "fe80::1", "ff02::1", "::"])
def test_addresses_that_are_not_allowed_are_not_asked(site, address):
    host = f"f{address.replace(':', '-').strip('-')}x.{ZONE}"
    made = site.server.make_record(site.zone_id, "AAAA", host, address, proxied=True)
    assert made.status != 200 or site.get(host).status == 523


def test_a_rule_sees_an_ipv6_client(site):
    host = site.name("rule", ("AAAA", "::1"))
    block(site, host, "ip.src in {::1/128}")
    assert site.get(host).status == 403
    assert site.get(host, by="127.0.0.1").status == 200


def test_an_ipv4_client_of_a_socket_for_both_families_is_one(site):
    host = site.name("mapped", ("AAAA", "::1"))
    block(site, host, "ip.src eq 127.0.0.1")
    assert site.get(host, by="127.0.0.1").status == 403
    assert site.get(host).status == 200
    assert site.get(host, "/", "X-Forwarded-For: 203.0.113.9", by="127.0.0.1").status == 403


def test_its_networks_are_those_of_trusted_proxies(site):
    host = site.name("trusted", ("AAAA", "::1"))
    with socket.create_connection(
        ("127.0.0.1", int(site.server.ready["http"].rpartition(":")[2])), source_address=("127.77.0.1", 0)
    ) as connection:
        connection.sendall(f"GET / HTTP/1.0\r\nHost: {host}\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n".encode())
        assert connection.recv(12) == HTTP_200[:12]
    assert site.heard()[b"edge-connecting-ip"] == b"203.0.113.9"


def block(site, host, expression):
    rules = [{"action": "block", "expression": f'http.host eq "{host}" and {expression}'}]
    path = f"/zones/{site.zone_id}/rulesets/phases/{CUSTOM}/entrypoint"
    assert site.server.call("PUT", path, {"rules": rules}).status == 200
