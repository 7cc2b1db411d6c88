"""What the operator says about DNS reaches every process that answers, over their restarts."""

import os
import signal
import socket

import dns.edns
import dns.message
import dns.query
import dns.rcode
import dns.rdataclass
import pytest

from edgestead.testing.server import EdgeServer
from tests.support.asking import by_udp

CONFIG = """
dns-workers = 2
dns-rate = 20
dns-identity = "ams-1"
dns-version = "ours"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    (folder / "edge.toml").write_text(CONFIG)
    server = EdgeServer(folder / "data", "--config", str(folder / "edge.toml"))
    yield server.start()
    server.close()


def ask(server, query, *, tcp=False):
    host, port = server.ready["dns"].rsplit(":", 1)
    return dns.query.tcp(query, host, 300, int(port)) if tcp else by_udp(query, host, int(port))


def asked(*options):
    return dns.message.make_query("www.example.com.", "A", use_edns=0, options=options)


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_identity_and_version_are_told(tcp, server):
    nsid = ask(server, asked(dns.edns.GenericOption(dns.edns.NSID, b"")), tcp=tcp).options
    version = ask(server, dns.message.make_query("version.bind.", "TXT", dns.rdataclass.CH), tcp=tcp)

    assert nsid[0].to_wire() == b"ams-1"
    assert version.answer[0][0].strings == (b"ours",)


def test_a_cookie_is_good_at_every_worker_and_after_their_restart(server):
    """RFC 7873 §5.4: a query without a question says whether its cookie is good."""
    first = ask(server, asked(dns.edns.GenericOption(dns.edns.COOKIE, b"abcdefgh"))).options[0]
    cookie = dns.edns.GenericOption(dns.edns.COOKIE, first.client + first.server)
    query = dns.message.QueryMessage()
    query.use_edns(0, options=[cookie])

    def rcodes():
        return {ask(server, query, tcp=turn == 0).rcode() for turn in range(20)}

    assert rcodes() == {dns.rcode.NOERROR}

    before = server.children()
    for worker in ("dns-0", "dns-1", "dns-tcp"):
        os.kill(before[worker], signal.SIGKILL)
        server.wait_for_life(worker, before[worker])
    assert rcodes() == {dns.rcode.NOERROR}

    query.use_edns(0, options=[dns.edns.GenericOption(dns.edns.COOKIE, first.client + bytes(16))])
    assert rcodes() == {dns.rcode.BADCOOKIE}


def test_loopback_has_no_limit(server):
    """20 a second are allowed to others."""
    host, port = server.ready["dns"].rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((host, int(port)))
        client.settimeout(60)
        for _ in range(100):
            client.send(asked().to_wire())
            assert client.recv(4096)[2] & 2 == 0
