"""Secondaries of a real server: told of a change made by the API, they fetch it."""

import os
import signal
import socket

import dns.message
import dns.query
import dns.rdatatype
import dns.versioned
import dns.xfr
import pytest

from edgestead.testing.server import wait_until

ZONE = "example.com"
WAIT_SECONDS = 300


class Secondary:
    """A copy of a zone, and a socket that hears NOTIFY."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(WAIT_SECONDS)
        self.zone = dns.versioned.Zone(ZONE, relativize=False)
        self.serial = None

    @property
    def flag(self):
        return f"127.0.0.1:{self.sock.getsockname()[1]}"

    def hear(self):
        """The serial of the next NOTIFY for our zone, which is answered."""
        while True:
            data, source = self.sock.recvfrom(4096)
            message = dns.message.from_wire(data)
            self.sock.sendto(dns.message.make_response(message).to_wire(), source)
            if str(message.question[0].name) == ZONE + ".":
                return message.answer[0][0].serial

    def hear_after(self, serial):
        while (heard := self.hear()) <= serial:
            pass
        return heard

    def fetch(self, server):
        """Transfer: whole the first time, changes then. Returns the records of the answer."""
        host, _, port = server.ready["dns"].rpartition(":")
        query, _ = dns.xfr.make_query(self.zone, serial=self.serial)
        records = [0]
        with dns.query.make_socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.settimeout(WAIT_SECONDS)
            sock.connect((host, int(port)))
            sock.setblocking(False)
            dns.query.send_tcp(sock, query)
            with dns.xfr.Inbound(self.zone, query.question[0].rdtype, self.serial) as inbound:
                done = False
                while not done:
                    message, _ = dns.query.receive_tcp(sock, one_rr_per_rrset=True)
                    records[0] += len(message.answer)
                    done = inbound.process_message(message)
        with self.zone.reader() as reader:
            self.serial = reader.get(f"{ZONE}.", dns.rdatatype.SOA)[0].serial
        return records[0]

    def addresses(self, name):
        with self.zone.reader() as reader:
            found = reader.get(f"{name}.{ZONE}.", dns.rdatatype.A)
        return sorted(rdata.address for rdata in found or ())


@pytest.fixture
def secondary():
    made = Secondary()
    yield made
    made.sock.close()


def test_a_secondary_hears_of_a_change_and_fetches_it_also_after_restarts(new_server, secondary):
    server = new_server("--transfer-to", "127.0.0.0/8", "--notify", secondary.flag).start()
    zone_id = server.make_zone(ZONE)
    server.make_record(zone_id, "A", "first", "192.0.2.1")
    first = secondary.hear()
    secondary.fetch(server)
    assert secondary.serial >= first
    assert secondary.addresses("first") == ["192.0.2.1"]

    before = secondary.serial
    server.make_record(zone_id, "A", "second", "192.0.2.2")
    assert secondary.hear_after(before) == before + 1
    assert secondary.fetch(server) == 5  # SOA, old SOA, new SOA, the record, SOA
    assert secondary.addresses("second") == ["192.0.2.2"]

    server.make_record(zone_id, "A", "third", "192.0.2.3")
    assert server.stop() == 0
    server.start()
    assert secondary.hear_after(before + 1) == before + 2
    assert secondary.fetch(server) == 5  # the journal outlives the processes
    assert secondary.addresses("third") == ["192.0.2.3"]
    counted = 'edge_dns_transfers_total{process="dns-tcp",sent="changes"} 1'
    wait_until(lambda: counted in server.call("GET", "//metrics").body, WAIT_SECONDS)


def test_a_restarted_tcp_process_announces_its_zones_and_knows_the_changes(new_server, secondary):
    server = new_server("--transfer-to", "127.0.0.1", "--notify", secondary.flag).start()
    zone_id = server.make_zone(ZONE)
    secondary.fetch(server)
    server.make_record(zone_id, "A", "www", "192.0.2.1")

    before = server.children()["dns-tcp"]
    os.kill(before, signal.SIGKILL)
    server.wait_for_life("dns-tcp", before)
    wait_until(lambda: secondary.hear() > secondary.serial, WAIT_SECONDS)

    assert secondary.fetch(server) == 5
    assert secondary.addresses("www") == ["192.0.2.1"]


@pytest.mark.parametrize("flags", [(), ("--transfer-to", "192.0.2.0/24")], ids=["nobody", "others"])
def test_whoever_was_not_named_gets_nothing(flags, new_server, secondary):
    server = new_server(*flags).start()
    server.make_zone(ZONE)

    with pytest.raises(dns.xfr.TransferError, match="REFUSED"):
        secondary.fetch(server)
