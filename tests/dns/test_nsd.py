"""Random questions to random zones get what NSD says."""

import socket

import dns.flags
import dns.message
import pytest

from edgestead.dns.udp import serve_udp
from tests.dns import nsd
from tests.dns.random_zones import World
from tests.dns.serving import Counts, running, said, table_of

NUMBERS = range(1, 11)
QUESTIONS = 1000
WAIT_SECONDS = 10


@pytest.fixture(scope="module", autouse=True)
def _nsd_is_here():
    if nsd.BINARY is None:
        pytest.skip("NSD IS NOT INSTALLED: answers are not compared with a peer (apt-get install nsd)")


def client(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(WAIT_SECONDS)
    sock.connect(("127.0.0.1", port))
    return sock


def asked(sock, packet):
    sock.send(packet)
    return dns.message.from_wire(sock.recv(65535))


@pytest.mark.parametrize("number", NUMBERS)
def test_random_questions_get_what_nsd_says(number, tmp_path):
    compare(World(number), QUESTIONS, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(1000, 1100))
def test_many_random_questions_get_what_nsd_says(number, tmp_path):
    compare(World(number), 10_000, tmp_path)


def compare(world, questions, folder):
    """Rcode, AA, TC and every section as a set; names without regard to case, which compression changes.

    Of truncated replies only rcode and flags: what else stands in them is to be ignored (RFC 2181 §9).
    """
    ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ours.bind(("127.0.0.1", 0))
    with (
        ours,
        nsd.nsd(folder, world.zones) as (port, _),
        running(serve_udp, ours, table_of(world.zones), Counts()),
        client(port) as peer,
        client(ours.getsockname()[1]) as us,
    ):
        for _ in range(questions):
            name, kind, payload, do = world.question()
            edns = {"use_edns": False} if payload is None else {"use_edns": 0, "payload": payload}
            packet = dns.message.make_query(name, kind, want_dnssec=do, **edns).to_wire()
            expected, reply = asked(peer, packet), asked(us, packet)
            end = 2 if expected.flags & dns.flags.TC else None
            what = f"zones {world.number}: {name} {kind} {payload} do={do}"
            assert said(reply)[:end] == said(expected)[:end], what
            assert (reply.edns, reply.question) == (expected.edns, expected.question)
