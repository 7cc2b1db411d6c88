"""Stock Knot and BIND, and a server of ours, are producers of catalogs that a real server follows."""

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import pytest

from edgestead.testing.server import EdgeServer
from tests.dns import stock
from tests.dns.stock import Stock
from tests.support.asking import by_udp
from tests.support.health import rows as health_rows

WAIT_SECONDS = 300
CATALOG = "catalog.test"
KNOT = """
acl:
  - id: all
    address: 127.0.0.0/8
    action: transfer
zone:
  - domain: catalog.test
    catalog-role: generate
    acl: all
"""
KNOT_MEMBER = """
  - domain: {zone}
    file: "{folder}/{zone}"
    acl: all
    catalog-role: member
    catalog-zone: catalog.test
    catalog-group: {group}
"""
BIND = """
zone "catalog.test" { type primary; file "catalog"; };
"""
BIND_MEMBER = """
zone "{zone}" {{ type primary; file "{zone}"; }};
"""
BIND_CATALOG = """$TTL 0
@ SOA invalid. invalid. {serial} 3600 600 2147483646 0
@ NS invalid.
version TXT "2"
"""
ZONE = """$ORIGIN {zone}.
$TTL 60
@ SOA ns.example.net. host.example.net. 1 3600 600 86400 60
@ NS ns.example.net.
www A 192.0.2.{last}
"""


class Producer(Stock):
    """`has` lists zones with the last octet of their address; each is in the group of its name."""

    def __init__(self, kind, folder, zones):
        self._serial = 0
        self._folder, self._place = folder, stock.new_place(kind)
        folder.mkdir()
        super().__init__(kind, folder, self._config(kind, zones), self._place)

    def _config(self, kind, zones):
        self._serial += 1
        member = {"Knot": KNOT_MEMBER, "BIND": BIND_MEMBER}[kind]
        options = {"Knot": "", "BIND": "  allow-transfer { any; };\n  notify no;"}[kind]
        catalog = [BIND_CATALOG.format(serial=self._serial)]
        parts = [stock.head(kind, self._folder, self._place, options), {"Knot": KNOT, "BIND": BIND}[kind]]
        for zone, last in zones.items():
            (self._folder / zone).write_text(ZONE.format(zone=zone, last=last))
            group = zone.replace(".", "-")
            parts.append(member.format(zone=zone, folder=self._folder, group=group))
            catalog.append(f'm{last}.zones PTR {zone}.\ngroup.m{last}.zones TXT "{group}"\n')
        (self._folder / "catalog").write_text("".join(catalog))
        return "".join(parts)

    def has(self, zones):
        self.read_again(self._config(self.kind, zones))


@pytest.fixture(params=["Knot", "BIND"])
def producer(request, tmp_path):
    if stock.binary(request.param) is None:
        pytest.skip(f"{request.param.upper()} IS NOT INSTALLED: no catalog of it is followed")
    made = Producer(request.param, tmp_path / "producer", {"one.test": 1, "two.test": 2})
    yield made
    made.stop()


def follow(server, host, port, **more):
    """Returns the path of the catalog that is followed."""
    dns_path = f"/accounts/{server.ready['account_id']}/secondary_dns"
    peer = server.call(
        "POST", f"{dns_path}/peers", {"name": "producer", "ip": host, "port": int(port)}
    ).result
    body = {"name": CATALOG, "peers": [peer["id"]], **more}
    made = server.call("POST", f"{dns_path}/catalogs", body)
    return f"{dns_path}/catalogs/{made.result['id']}"


def notify(server, source):
    """Tell a server that the catalog has changed, as the producer does."""
    host, _, port = server.ready["dns"].rpartition(":")
    message = dns.message.make_query(CATALOG, "SOA", flags=dns.flags.AA)
    message.set_opcode(dns.opcode.NOTIFY)
    reply = by_udp(message, host, int(port), source=source)
    assert reply.rcode() == dns.rcode.NOERROR


def names_of(server, catalog):
    found = server.call("GET", f"{catalog}/zones").result
    return {one["name"]: one["status"] for one in found}


def test_zones_come_and_go_with_the_catalog_of_a_stock_producer(new_server, producer):
    server = new_server().start()
    groups = {"two-test": {"secondary_overrides": True}}
    catalog = follow(server, producer.host, producer.port, grace_seconds=0, groups=groups)
    for last, zone in enumerate(("one.test", "two.test"), 1):
        server.wait_until(
            lambda zone=zone, last=last: server.dig(f"www.{zone}") == [f"192.0.2.{last}"], WAIT_SECONDS
        )
    assert server.dig(CATALOG, "SOA") == ["SERVFAIL"]
    (two,) = server.call("GET", "/zones?name=two.test").result
    assert server.call("GET", f"/zones/{two['id']}/dns_settings").result["secondary_overrides"] is True

    producer.has({"two.test": 2, "three.test": 3})

    def is_followed():
        notify(server, producer.host)
        return server.dig("www.three.test") == ["192.0.2.3"] and server.dig("www.one.test") == ["REFUSED"]

    server.wait_until(is_followed, WAIT_SECONDS)
    assert names_of(server, catalog) == {"two.test": "member", "three.test": "member"}
    assert server.stop() == 0
    server.start()
    assert server.dig("www.three.test") == ["192.0.2.3"]


@pytest.fixture
def producing(tmp_path):
    """A server of ours whose catalog is followed."""
    made = EdgeServer(tmp_path / "producing", "--transfer-to", "127.0.0.0/8")
    yield made.start()
    made.stop()


def test_one_server_of_ours_follows_another_and_a_catalog_that_is_lost_loses_no_zone(new_server, producing):
    consumer = new_server().start()
    path = f"/accounts/{producing.ready['account_id']}/secondary_dns/catalog"
    producing.call("PUT", path, {"name": CATALOG})
    zone_id = producing.make_zone("one.test")
    producing.make_record(zone_id, "A", "www", "192.0.2.1")
    producing.call("PATCH", f"/zones/{zone_id}/dnssec", {"status": "active"})
    host, _, port = producing.ready["dns"].rpartition(":")
    catalog = follow(consumer, host, port, dnssec_presigned=True)
    consumer.wait_until(lambda: consumer.dig("www.one.test") == ["192.0.2.1"], WAIT_SECONDS)
    keys = consumer.dig("one.test", "DNSKEY")
    assert keys == producing.dig("one.test", "DNSKEY")
    assert keys[0].startswith("257 ")

    producing.call("DELETE", f"/zones/{zone_id}")

    def has_left():
        notify(consumer, host)
        return names_of(consumer, catalog) == {"one.test": "leaving"}

    consumer.wait_until(has_left, WAIT_SECONDS)
    assert consumer.dig("www.one.test") == ["192.0.2.1"]

    producing.call("DELETE", path)

    def is_missed():
        notify(consumer, host)
        return "the primary answers" in consumer.call("GET", catalog).result["problem"]

    consumer.wait_until(is_missed, WAIT_SECONDS)
    assert names_of(consumer, catalog) == {"one.test": "leaving"}

    def is_in_health():
        rows = [row for row in health_rows(consumer) if row["check"] == "catalogs"]
        return (CATALOG, "warn") in [(row["subject"], row["state"]) for row in rows]

    consumer.wait_until(is_in_health, WAIT_SECONDS)
