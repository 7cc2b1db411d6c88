"""Outgoing transfers of a real server: peers of a zone are told, and get it in the way that they name."""

import base64
import socket
import ssl
import struct
from contextlib import ExitStack

import dns.message
import dns.rcode
import dns.tsig
import pytest

from edgestead.testing.server import wait_until
from tests.dns.private_lab import Folder

ZONE = "example.com"
WAIT_SECONDS = 300


class Peer:
    """A socket that hears NOTIFY."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(WAIT_SECONDS)
        self.port = self.sock.getsockname()[1]

    def hear(self, key, after=0):
        """The serial of the next NOTIFY, which is answered and has to be signed. One that comes again, as
        the answer was late, is answered as well: of it there is nothing `after` that serial.
        """
        serial = -1
        while serial < after:
            data, source = self.sock.recvfrom(4096)
            message = dns.message.from_wire(data, keyring={key.name: key})
            assert message.had_tsig
            self.sock.sendto(dns.message.make_response(message).to_wire(), source)
            serial = message.answer[0][0].serial
        return serial


@pytest.fixture
def hears():
    made = Peer()
    yield made
    made.sock.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("outgoing") / "tls")


@pytest.fixture
def site(new_server, folder):
    private = ("--dot", "127.0.0.1:0", "--tls-dir", str(folder.path))
    return new_server(*private, "--transfer-to", "127.0.0.9").start()


def rcode(server, address="127.0.0.1", key=None, *, tls=False):
    """What a transfer from an address is answered."""
    query = dns.message.make_query(ZONE, "AXFR")
    if key is not None:
        query.use_tsig(key)
    host, _, port = server.ready["dot" if tls else "dns"].rpartition(":")
    with ExitStack() as stack:
        sock = stack.enter_context(socket.create_connection((host, int(port)), WAIT_SECONDS, (address, 0)))
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["dot"])
            sock = stack.enter_context(context.wrap_socket(sock))
        asked = query.to_wire()
        sock.sendall(struct.pack("!H", len(asked)) + asked)
        stream = stack.enter_context(sock.makefile("rb"))
        (size,) = struct.unpack("!H", stream.read(2))
        keyring = {} if key is None else {key.name: key}
        mac = b"" if key is None else query.mac
        reply = dns.message.from_wire(stream.read(size), keyring=keyring, request_mac=mac, xfr=True)
        return dns.rcode.to_text(reply.rcode())


def test_peers_are_told_by_their_key_and_transfer_as_they_were_named(site, hears):
    account = f"/accounts/{site.ready['account_id']}/secondary_dns"
    zone_id = site.make_zone(ZONE)
    outgoing = f"/zones/{zone_id}/secondary_dns/outgoing"
    made = site.call("POST", f"{account}/tsigs", {"name": "xfr.example", "transfer": False}).result
    key = dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"])
    places = {
        "keyed": {"ip": "127.0.0.1", "port": hears.port, "tsig_id": made["id"]},
        "private": {"ip": "127.0.0.3", "port": hears.port, "tls": True},
    }
    peers = {
        name: site.call("POST", f"{account}/peers", {"name": name, **body}).result["id"]
        for name, body in places.items()
    }
    assert rcode(site) == rcode(site, key=key) == "REFUSED"
    site.call("POST", outgoing, {"peers": list(peers.values())})
    assert rcode(site, key=key) == "REFUSED"

    site.call("POST", f"{outgoing}/enable", {})
    first = hears.hear(key)
    site.make_record(zone_id, "A", "www", "192.0.2.1")
    second = hears.hear(key, after=first + 1)
    site.call("POST", f"{outgoing}/force_notify", {})
    assert hears.hear(key, after=second) == second

    assert rcode(site, key=key) == "NOERROR"
    assert rcode(site) == rcode(site, "127.0.0.2", key) == rcode(site, "127.0.0.3") == "REFUSED"
    assert rcode(site, "127.0.0.3", tls=True) == "NOERROR"
    site.call("POST", f"{account}/acls", {"name": "two", "ip_range": "127.0.0.2"})
    assert rcode(site, "127.0.0.2", key) == "NOERROR"
    assert rcode(site, "127.0.0.2") == "REFUSED"

    site.stop()
    site.start()
    assert rcode(site, key=key) == "NOERROR"
    site.call("POST", f"{outgoing}/disable", {})
    assert rcode(site, key=key) == rcode(site, "127.0.0.3", tls=True) == "REFUSED"
    assert rcode(site, "127.0.0.9") == "NOERROR"  # the operator's


def test_a_key_of_the_account_opens_no_zone_whose_transfers_are_off(site):
    account = f"/accounts/{site.ready['account_id']}/secondary_dns"
    outgoing = f"/zones/{site.make_zone(ZONE)}/secondary_dns/outgoing"
    made = site.call("POST", f"{account}/tsigs", {"name": "all.example"}).result
    key = dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"])
    assert rcode(site, key=key) == "NOERROR"

    site.call("POST", outgoing, {"peers": []})
    assert rcode(site, key=key) == "REFUSED"
    site.call("POST", f"{outgoing}/enable", {})
    assert rcode(site, key=key) == "NOERROR"


def test_a_zone_is_transferred_in_over_tls(site, new_server):
    site.make_record(site.make_zone(ZONE), "A", "www", "192.0.2.1")
    port = int(site.ready["dot"].rpartition(":")[2])
    other = new_server(name="other").start()
    account = f"/accounts/{other.ready['account_id']}/secondary_dns"
    zone_id = other.call("POST", "/zones", {"name": ZONE, "type": "secondary"}).result["id"]
    source = site.call(
        "POST",
        f"/accounts/{site.ready['account_id']}/secondary_dns/peers",
        {
            "name": "other",
            "ip": "127.0.0.1",
            "tls": True,
        },
    ).result["id"]
    mine = site.call("GET", "/zones").result[0]["id"]
    site.call("POST", f"/zones/{mine}/secondary_dns/outgoing", {"peers": [source]})
    site.call("POST", f"/zones/{mine}/secondary_dns/outgoing/enable", {})
    host, _, dns_port = site.ready["dns"].rpartition(":")
    plain = {"name": "primary", "ip": host, "port": int(dns_port)}
    peer = other.call("POST", f"{account}/peers", plain).result["id"]
    incoming = f"/zones/{zone_id}/secondary_dns/incoming"
    other.call("POST", incoming, {"peers": [peer]})
    wait_until(lambda: "REFUSED" in other.call("GET", incoming).result["problem"], WAIT_SECONDS)

    other.call("PUT", f"{account}/peers/{peer}", plain | {"ip": "127.0.0.1", "port": port, "tls": True})
    other.call("POST", f"/zones/{zone_id}/secondary_dns/force_axfr", {})
    wait_until(lambda: other.call("GET", incoming).result["checked_time"], WAIT_SECONDS)
    assert [row["name"] for row in other.call("GET", f"/zones/{zone_id}/dns_records?type=A").result] == [
        f"www.{ZONE}"
    ]
