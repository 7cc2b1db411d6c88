"""Secondary zones: stock BIND, Knot and NSD are the primaries of a real server."""

import base64
import contextlib

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.zone
import pytest

from edgestead.testing.server import wait_until
from tests.dns import stock
from tests.dns.private_lab import Folder
from tests.dns.stock import Stock
from tests.support.asking import by_udp
from tests.support.health import rows as health_rows

WAIT_SECONDS = 300
CHECK = "secondary-zones"
RECORDS = """
@ 3600 IN NS ns1.example.net.
@ 300 IN MX 10 Mail
@ 300 IN TXT "one" "two"
www 60 IN A 192.0.2.1
www 60 IN A 192.0.2.2
alias 60 IN CNAME www
*.wild 60 IN AAAA 2001:db8::1
_sip._tcp 60 IN SRV 1 2 5060 sip
sub 60 IN NS ns.sub
ns.sub 60 IN A 192.0.2.53
short 1 IN A 192.0.2.9
"""
CONFIGS = {  # further options of a server, and its zone
    "BIND": (
        "  notify no;\n  allow-transfer { any; };\n  ixfr-from-differences yes;",
        """
zone "{zone}" {{ type primary; file "zone"; }};
""",
    ),
    "Knot": (
        "",
        """
acl:
  - id: all
    address: 127.0.0.0/8
    action: transfer
zone:
  - domain: {zone}
    file: "{folder}/zone"
    acl: all
    zonefile-load: difference
    journal-content: changes
    zonefile-sync: -1
""",
    ),
    "NSD": (
        "",
        """
zone:
  name: {zone}
  zonefile: zone
  provide-xfr: 127.0.0.0/8 NOKEY
""",
    ),
}
KEY_NAME = "xfr.example.org"
WITH_KEY = {
    "BIND": (
        ("allow-transfer { any; }", 'allow-transfer { key "KEY"; }'),
        ("options {", 'key "KEY" { algorithm hmac-sha256; secret "SECRET"; };\noptions {'),
    ),
    "Knot": (
        ("acl:\n  - id: all\n", "acl:\n  - id: all\n    key: KEY\n"),
        ("database:", "key:\n  - id: KEY\n    algorithm: hmac-sha256\n    secret: SECRET\ndatabase:"),
    ),
    "NSD": (
        ("127.0.0.0/8 NOKEY", "127.0.0.0/8 KEY"),
        ("zone:\n", 'key:\n  name: KEY\n  algorithm: hmac-sha256\n  secret: "SECRET"\nzone:\n'),
    ),
}
"""What a configuration has in another's place, so that nobody transfers without the key."""
OVER_TLS = {
    "BIND": (
        (
            "options {",
            'tls own { cert-file "PEM"; key-file "PEM"; };\noptions {\n'
            "  listen-on port TLS tls own { HOST; };",
        ),
        ("allow-transfer { any; }", "allow-transfer port TLS transport tls { any; }"),
    ),
    "NSD": (
        (
            "server:\n",
            'server:\n  ip-address: HOST@TLS\n  tls-port: TLS\n  tls-service-key: "PEM"\n'
            '  tls-service-pem: "PEM"\n',
        ),
    ),
}
"""The same, so that it answers over TLS at a port of its own; BIND then transfers there alone. Debian's Knot
serves no TLS.
"""


class Primary(Stock):
    """A stock name server with one zone, which reads it again when it is told to."""

    def __init__(self, kind, folder, secret=None, pem=None):
        """Transfers with the key that has this `secret`; over TLS, too, at `tls_port`, with a certificate."""
        self.zone, self._folder, place = f"{kind.lower()}.example.org", folder, stock.new_place(kind)
        folder.mkdir()
        self.write(1, RECORDS)
        options, zone = CONFIGS[kind]
        config = stock.head(kind, folder, place, options) + zone.format(zone=self.zone, folder=folder)
        for old, new in WITH_KEY[kind] if secret else ():
            config = config.replace(old, new.replace("KEY", KEY_NAME).replace("SECRET", secret), 1)
        if pem:
            (host, _), (_, self.tls_port) = place, stock.new_place(kind)
            words = {"PEM": str(pem), "HOST": host, "TLS": str(self.tls_port)}
            for old, new in OVER_TLS[kind]:
                for word, value in words.items():
                    new = new.replace(word, value)
                config = config.replace(old, new, 1)
        super().__init__(kind, folder, config, place)

    def write(self, serial, records):
        soa = f"@ 3600 IN SOA ns1.example.net. Host\\.Master {serial} 7200 900 86400 600\n"
        (self._folder / "zone").write_text(f"$ORIGIN {self.zone}.\n{soa}{records}")

    def change(self, serial, records):
        self.write(serial, records)
        self.read_again()

    def contents(self):
        return contents(self.host, self.port, self.zone)

    def has(self, text):
        """Whether it transfers that. One that reads its zones again may break a transfer off."""
        try:
            return any(text in line for line in self.contents())
        except (OSError, EOFError):
            return False


def contents(host, port, name):
    """Everything that a server transfers, as lines."""
    transfer = dns.query.xfr(host, name, port=port, timeout=300, relativize=False)
    zone = dns.zone.from_xfr(transfer, relativize=False)
    return {f"{name} {ttl} {rdata.rdtype} {rdata}".lower() for name, ttl, rdata in zone.iterate_rdatas()}


@pytest.fixture
def primaries(tmp_path):
    with contextlib.ExitStack() as stack:
        found = []
        for kind in CONFIGS:
            if stock.binary(kind) is not None:
                found.append(Primary(kind, tmp_path / kind))
                stack.callback(found[-1].stop)
        if not found:
            pytest.skip("NEITHER BIND NOR KNOT NOR NSD IS INSTALLED: no zone is transferred from them")
        yield found


def test_zones_are_what_their_primaries_have_and_are_served_onward(new_server, primaries):
    server = new_server("--transfer-to", "127.0.0.0/8").start()
    host, _, port = server.ready["dns"].rpartition(":")
    ids = {one: make_secondary(server, one) for one in primaries}
    for one in primaries:
        name = f"www.{one.zone}"
        server.wait_until(lambda name=name: server.dig(name) == ["192.0.2.1", "192.0.2.2"], WAIT_SECONDS)
        theirs = {line for line in one.contents() if not line.startswith("short")}
        ours = contents(host, int(port), one.zone)
        assert theirs <= ours
        assert len(ours) == len(theirs) + 1  # a TTL of a second means another thing here

    for one in primaries:
        one.change(2, RECORDS.replace("192.0.2.2", "192.0.2.3") + "new 60 IN A 192.0.2.7\n")
        wait_until(lambda one=one: one.has(" 2 7200"), WAIT_SECONDS)
        notify(server, one.zone, "127.0.0.1", one.host)
    for one, zone_id in ids.items():
        name = f"new.{one.zone}"
        server.wait_until(lambda name=name: server.dig(name) == ["192.0.2.7"], WAIT_SECONDS)
        assert server.dig(f"www.{one.zone}") == ["192.0.2.1", "192.0.2.3"]
        listed = server.call("GET", f"/zones/{zone_id}/dns_records?per_page=100").result
        assert len(listed) == len(one.contents()) - 1  # the SOA
        assert server.make_record(zone_id, "A", "other", "192.0.2.8").body["errors"][0]["code"] == 9608
        one.stop()

    assert server.stop() == 0
    server.start()
    assert [server.dig(f"new.{one.zone}") for one in primaries] == [["192.0.2.7"]] * len(primaries)


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_primary_that_demands_a_key_is_asked_with_it_and_no_other_answer_counts(new_server, tmp_path, kind):
    if stock.binary(kind) is None:
        pytest.skip(f"{kind.upper()} IS NOT INSTALLED")
    server = new_server().start()
    account = server.ready["account_id"]
    keys = f"/accounts/{account}/secondary_dns/tsigs"
    secret = base64.b64encode(b"s" * 32).decode()
    key = server.call("POST", keys, {"name": KEY_NAME, "secret": base64.b64encode(b"t" * 32).decode()}).result
    primary = Primary(kind, tmp_path / kind, secret)
    try:
        zone_id = make_secondary(server, primary, key["id"])
        incoming = f"/zones/{zone_id}/secondary_dns/incoming"
        words = "does not prove who it is from"  # at first "it has no peers" yet
        server.wait_until(lambda: words in server.call("GET", incoming).result["problem"], WAIT_SECONDS)
        assert server.dig(f"www.{primary.zone}") == ["SERVFAIL"]
        assert_in_health(server, primary.zone, "warn")

        server.call("PUT", f"{keys}/{key['id']}", {"name": KEY_NAME, "secret": secret})
        server.call("POST", f"/zones/{zone_id}/secondary_dns/force_axfr")
        server.wait_until(lambda: server.dig(f"www.{primary.zone}")[0] == "192.0.2.1", WAIT_SECONDS)
        primary.change(2, RECORDS + "new 60 IN A 192.0.2.7\n")
        server.wait_until(lambda: has_new(server, zone_id, primary), WAIT_SECONDS)
        assert server.call("GET", incoming).result["problem"] == ""
        assert_in_health(server, "", "ok")
    finally:
        primary.stop()


@pytest.mark.parametrize("kind", OVER_TLS)
def test_a_zone_is_transferred_in_from_a_stock_primary_over_tls(new_server, tmp_path, kind):
    if stock.binary(kind) is None:
        pytest.skip(f"{kind.upper()} IS NOT INSTALLED: no zone is transferred from it over TLS")
    server = new_server().start()
    primary = Primary(kind, tmp_path / kind, pem=Folder(tmp_path / "tls").path / "default.pem")
    try:
        zone_id = make_secondary(server, primary, port=primary.tls_port, tls=True)
        incoming = f"/zones/{zone_id}/secondary_dns/incoming"

        def said():
            return server.call("GET", incoming).result["problem"]

        def is_there():
            return server.dig(f"www.{primary.zone}")[0] == "192.0.2.1"

        server.wait_until(lambda: is_there() or "(ALPN)" in said(), WAIT_SECONDS)
        if kind == "NSD" and not is_there():
            return  # 4.6 chooses no protocol, which RFC 9103 §7.1 demands
        primary.change(2, RECORDS + "new 60 IN A 192.0.2.7\n")
        server.wait_until(lambda: has_new(server, zone_id, primary), WAIT_SECONDS)
        assert said() == ""
    finally:
        primary.stop()


def assert_in_health(server, subject, state):
    """What /health/ready and /metrics say, within the round that looks."""

    def is_there():
        rows = [row for row in health_rows(server) if row["check"] == CHECK]
        return (subject, state) in [(row["subject"], row["state"]) for row in rows]

    server.wait_until(is_there, WAIT_SECONDS)
    level = {"ok": 0, "warn": 1}[state]
    shown = f'edge_health{{process="control",check="{CHECK}"}} {level}'
    server.wait_until(lambda: shown in server.call("GET", "//metrics").body, WAIT_SECONDS)


def has_new(server, zone_id, primary):
    notify(server, primary.zone, primary.host)
    return server.dig(f"new.{primary.zone}") == ["192.0.2.7"]


def make_secondary(server, primary, key_id=None, **more):
    account = server.ready["account_id"]
    peer = {"name": primary.kind, "ip": primary.host, "port": primary.port, "tsig_id": key_id}
    made = server.call("POST", f"/accounts/{account}/secondary_dns/peers", peer | more)
    body = {"name": primary.zone, "type": "secondary", "account": {"id": account}}
    zone_id = server.call("POST", "/zones", body).result["id"]
    assert server.dig(f"www.{primary.zone}") == server.dig(primary.zone, "SOA", tcp=True) == ["SERVFAIL"]
    incoming = {"name": "in", "peers": [made.result["id"]]}
    server.call("POST", f"/zones/{zone_id}/secondary_dns/incoming", incoming)
    return zone_id


def notify(server, zone, *sources):
    """Tell the server that a zone has changed, as these addresses: only the primary's is heard."""
    host, _, port = server.ready["dns"].rpartition(":")
    message = dns.message.make_query(zone, "SOA", flags=dns.flags.AA)
    message.set_opcode(dns.opcode.NOTIFY)
    for source in sources:
        reply = by_udp(message, host, int(port), source=source)
        assert (reply.rcode(), reply.opcode()) == (dns.rcode.NOERROR, dns.opcode.NOTIFY)
