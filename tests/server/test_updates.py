"""Dynamic updates of a real server: by nsupdate and Kea, and as certbot and external-dns send them."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.tsig
import dns.update
import dns.zone
import pytest

from edgestead.server.places import private_place
from edgestead.testing.server import wait_until
from tests.dns.stock import SBIN
from tests.support.asking import by_udp

ZONE = "example.com"
REVERSE = "2.0.192.in-addr.arpa"
NSUPDATE, KEA = shutil.which("nsupdate"), shutil.which("kea-dhcp-ddns", path=SBIN)
SECONDS = 300


def place_of(server):
    host, _, port = server.ready["dns"].rpartition(":")
    return host, int(port)


def make_key(server, name, **body):
    path = f"/accounts/{server.ready['account_id']}/secondary_dns/tsigs"
    made = server.call("POST", path, {"name": name, **body})
    assert made.status == 200, made.body
    return made.result


def key_of(made):
    return dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from edgestead.testing.server import EdgeServer

    made = EdgeServer(tmp_path_factory.mktemp("updates") / "data").start()
    made.zone_id = made.make_zone(ZONE)
    made.made = make_key(made, "all.example.com", update={})
    yield made
    made.close()


def nsupdate(server, commands, made=None, *, tcp=False):
    host, port = place_of(server)
    script = f"server {host} {port}\nzone {ZONE}\n{commands}\nsend\n"
    key = ["-y", f"{made['algo'].rstrip('.')}:{made['name'].rstrip('.')}:{made['secret']}"] if made else []
    return subprocess.run(
        [NSUPDATE, *key, *(["-v"] if tcp else []), "-t", "60"],
        input=script,
        capture_output=True,
        text=True,
        timeout=300,
    )


needs_nsupdate = pytest.mark.skipif(NSUPDATE is None, reason="NSUPDATE IS NOT INSTALLED (bind9-dnsutils)")


@needs_nsupdate
@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize("algo", ["hmac-sha256", "hmac-sha512"])
def test_what_nsupdate_was_told_is_done_is_answered(server, tcp, algo):
    name = f"{algo}-{'tcp' if tcp else 'udp'}.{ZONE}"
    made = make_key(server, f"key.{name}", algo=algo, update={})
    done = nsupdate(server, f"update add {name} 300 A 192.0.2.1", made, tcp=tcp)

    assert (done.returncode, done.stderr) == (0, "")
    assert server.dig(name) == ["192.0.2.1"]
    refused = nsupdate(server, f"prereq nxdomain {name}\nupdate add {name} 300 A 192.0.2.2", made, tcp=tcp)
    assert "YXDOMAIN" in refused.stderr
    assert server.dig(name) == ["192.0.2.1"]
    assert nsupdate(server, f"update delete {name}", made, tcp=tcp).returncode == 0
    assert server.dig(name) == "NXDOMAIN" or server.dig(name) == ["NXDOMAIN"]


@needs_nsupdate
def test_who_has_no_key_or_not_the_right_one_changes_nothing(server):
    before = server.call("GET", f"/zones/{server.zone_id}/dns_records").result
    add = f"update add x.{ZONE} 300 A 192.0.2.1"
    other = make_key(server, "transfers.example.com")
    wrong = server.made | {"secret": base64.b64encode(b"x" * 32).decode()}
    unknown = server.made | {"name": "unknown.example."}

    assert "REFUSED" in nsupdate(server, add).stderr
    assert "REFUSED" in nsupdate(server, add, other).stderr
    assert "BADSIG" in nsupdate(server, add, wrong).stderr
    assert "BADKEY" in nsupdate(server, add, unknown).stderr
    elsewhere = add.replace(ZONE, "example.net")
    host, port = place_of(server)
    script = f"server {host} {port}\nzone example.net\n{elsewhere}\nsend\n"
    key = f"hmac-sha256:all.example.com:{server.made['secret']}"
    done = subprocess.run([NSUPDATE, "-y", key], input=script, capture_output=True, text=True, timeout=300)
    assert "NOTAUTH" in done.stderr
    assert server.call("GET", f"/zones/{server.zone_id}/dns_records").result == before


def send(server, message, by_tcp=None):
    host, port = place_of(server)
    if by_tcp is None:
        return by_udp(message, host, port)
    return by_tcp(message, host, port=port, timeout=SECONDS)


def update(made, zone=ZONE):
    return dns.update.UpdateMessage(zone, keyring=key_of(made))


def test_a_key_that_is_bound_to_a_token_may_what_the_token_may(server):
    account = server.ready["account_id"]
    groups = server.call("GET", "/user/tokens/permission_groups").result
    group = next(one["id"] for one in groups if one["name"] == "DNS Write")
    other = server.make_zone("other.test")
    resource = {f"com.cloudflare.api.account.zone.{server.zone_id}": "*"}
    policy = {"effect": "allow", "resources": resource, "permission_groups": [{"id": group}]}
    token = server.call("POST", "/user/tokens", {"name": "dyn", "policies": [policy]}).result
    made = make_key(server, "bound.example.com", update={"token_id": token["id"], "types": ["a"]})
    assert made["update"] == {"token_id": token["id"], "names": [], "types": ["A"]}

    def rcode(zone=ZONE, kind="A", text="192.0.2.7"):
        message = update(made, zone)
        message.add("bound", 300, kind, text)
        return dns.rcode.to_text(send(server, message).rcode())

    assert rcode() == "NOERROR"
    assert rcode(zone="other.test") == "REFUSED"
    assert rcode(kind="TXT", text="x") == "REFUSED"
    entries = server.call("GET", f"/accounts/{account}/audit_logs").result
    assert any("TSIG key bound.example.com" in str(entry) for entry in entries)
    server.call("DELETE", f"/user/tokens/{token['id']}")
    assert rcode(text="192.0.2.8") == "REFUSED"
    server.call("DELETE", f"/zones/{other}")


def test_a_message_that_comes_again_counts_once(server):
    message = update(server.made)
    message.add("once", 300, "A", "192.0.2.1")
    octets = message.to_wire()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect(place_of(server))
        for _ in range(2):
            sock.send(octets)
            assert sock.recv(4096)[3] & 0x0F == 0
        away = update(server.made)
        away.delete("once")
        assert send(server, away).rcode() == 0
        sock.send(octets)  # somebody kept it
        assert sock.recv(4096)[3] & 0x0F == 0
    assert server.dig(f"once.{ZONE}") in ("NXDOMAIN", ["NXDOMAIN"])


def test_the_requests_of_certbot(server):
    """Its DNS plugin finds the zone by the SOA of the names above, unsigned, and updates over TCP."""
    made = make_key(
        server, "certbot.example.com", update={"names": ["_acme-challenge.www.example.com"], "types": ["TXT"]}
    )
    domain = "_acme-challenge.www.example.com"
    for guess in (domain, "www.example.com", ZONE):
        query = dns.message.make_query(guess, "SOA", "IN")
        query.flags ^= dns.flags.RD
        reply = send(server, query, dns.query.tcp)
        if reply.rcode() == dns.rcode.NOERROR and reply.get_rrset(
            reply.answer, dns.name.from_text(guess), "IN", "SOA"
        ):
            break
    assert (guess, bool(reply.flags & dns.flags.AA)) == (ZONE, True)
    relative = dns.name.from_text(domain).relativize(dns.name.from_text(ZONE))
    for text in ("first", "second"):
        message = update(made)
        message.add(relative, 120, "TXT", text)
        assert send(server, message, dns.query.tcp).rcode() == dns.rcode.NOERROR
    assert server.dig(domain, "TXT") == ['"first"', '"second"']
    message = update(made)
    message.delete(relative, "TXT", "first")
    assert send(server, message, dns.query.tcp).rcode() == dns.rcode.NOERROR
    assert server.dig(domain, "TXT") == ['"second"']
    message = update(made)
    message.add("www", 120, "A", "192.0.2.1")
    assert send(server, message, dns.query.tcp).rcode() == dns.rcode.REFUSED


def test_the_requests_of_external_dns(server):
    """It reads the zone by a signed AXFR, then removes and inserts records."""
    made = make_key(server, "external.example.com", transfer=True, update={})
    message = update(made)
    message.add("web", 0, "A", "192.0.2.1")
    message.add("a-web", 0, "TXT", '"heritage=external-dns,external-dns/owner=cluster"')
    assert send(server, message).rcode() == dns.rcode.NOERROR
    host, port = place_of(server)
    query, _ = dns.xfr.make_query(zone := dns.zone.Zone(ZONE), keyring=key_of(made))
    dns.query.inbound_xfr(host, zone, query, port=port, timeout=SECONDS, lifetime=SECONDS)
    assert {"web", "a-web"} <= set(map(str, zone.nodes))


class Kea:
    """D2, which a DHCP server of Kea tells of leases and which tells DNS. It finds its zones in `domains`."""

    def __init__(self, folder, place, made, domains):
        self._folder, self._place = folder, private_place()
        server = {"ip-address": place[0], "port": place[1]}
        forward, reverse = (
            {"ddns-domains": [{"name": f"{name}.", "key-name": made["name"], "dns-servers": [server]}]}
            for name in domains
        )
        key = {"name": made["name"], "algorithm": "HMAC-SHA256", "secret": made["secret"]}
        settings = {
            "ip-address": self._place[0],
            "port": self._place[1],
            "dns-server-timeout": SECONDS * 1000,
            "tsig-keys": [key],
            "forward-ddns": forward,
            "reverse-ddns": reverse,
            "loggers": [
                {"name": "kea-dhcp-ddns", "severity": "INFO", "output_options": [{"output": "stdout"}]}
            ],
        }
        file = folder / "kea.conf"
        file.write_text(json.dumps({"DhcpDdns": settings}))
        own = os.environ | {"KEA_PIDFILE_DIR": str(folder), "KEA_LOCKFILE_DIR": str(folder)}
        with (folder / "said").open("wb") as said:
            self._process = subprocess.Popen([KEA, "-c", str(file)], stdout=said, stderr=said, env=own)
        self.wait_for("DHCP_DDNS_STARTED")
        wait_until(self._is_listening, SECONDS)  # it says so before, and what comes meanwhile is lost

    def wait_for(self, words, times=1):
        """Until it has said that so often."""
        try:
            wait_until(lambda: self._log.count(words) >= times or self._process.poll() is not None, SECONDS)
        finally:
            assert self._log.count(words) >= times, f"{words}, {times} times:\n{self._log}"

    def _is_listening(self):
        host, port = self._place
        number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
        return f" {number:08X}:{port:04X} " in Path("/proc/net/udp").read_text()

    @property
    def _log(self):
        return (self._folder / "said").read_text()

    def tell(self, name, address, client, *, gone=False):
        """What the DHCP server sends for a lease that begins or ends."""
        request = {
            "change-type": int(gone),
            "forward-change": True,
            "reverse-change": True,
            "use-conflict-resolution": True,
            "fqdn": f"{name}.",
            "ip-address": address,
            "dhcid": "000201" + client * 32,
            "lease-expires-on": "20991231235959",
            "lease-length": 3600,
        }
        octets = json.dumps(request).encode()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(len(octets).to_bytes(2, "big") + octets, self._place)

    def stop(self):
        self._process.terminate()
        self._process.wait(SECONDS)


@pytest.mark.skipif(KEA is None, reason="KEA'S D2 IS NOT INSTALLED (kea-dhcp-ddns-server)")
def test_leases_of_kea_are_names_until_they_end(server, tmp_path):
    reverse = server.make_zone(REVERSE)
    made = make_key(server, "kea.example.com", transfer=False, update={})
    name = f"host.lan.{ZONE}"
    kea = Kea(tmp_path, place_of(server), made, (ZONE, REVERSE))
    try:
        kea.tell(name, "192.0.2.7", "aa")
        kea.wait_for("DHCP_DDNS_ADD_SUCCEEDED")
        assert server.dig(name) == ["192.0.2.7"]
        assert server.dig(f"7.{REVERSE}", "PTR") == [f"{name}."]

        kea.tell(name, "192.0.2.8", "bb")  # another client
        kea.wait_for("DHCP_DDNS_ADD_FAILED")
        assert server.dig(name) == ["192.0.2.7"]

        kea.tell(name, "192.0.2.9", "aa")
        kea.wait_for("DHCP_DDNS_ADD_SUCCEEDED", 2)
        assert server.dig(name) == ["192.0.2.9"]

        kea.tell(name, "192.0.2.9", "aa", gone=True)
        kea.wait_for("DHCP_DDNS_REMOVE_SUCCEEDED")
        assert server.dig(name) in ("NXDOMAIN", ["NXDOMAIN"])
        assert server.call("GET", f"/zones/{reverse}/dns_records?type=PTR&name=9.{REVERSE}").result == []
    finally:
        kea.stop()
        server.call("DELETE", f"/zones/{reverse}")


def test_a_large_update_comes_over_tcp_and_a_larger_one_does_not(server):
    message = update(server.made)
    for number in range(300):
        message.add(f"n{number}", 300, "A", "192.0.2.1")
    assert send(server, message, dns.query.tcp).rcode() == dns.rcode.NOERROR
    assert server.dig(f"n299.{ZONE}") == ["192.0.2.1"]
    for number in range(300, 2000):
        message.add(f"n{number}", 300, "A", "192.0.2.1")
    with pytest.raises((EOFError, OSError)):
        send(server, message, dns.query.tcp)
