"""Both UDP loops through real sockets."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial

import dns.edns
import dns.message
import pytest

from edgestead.dns import ring, udp
from edgestead.dns.counters import TOOK, TOOK_US, Slot
from edgestead.dns.udp import serve_udp
from edgestead.testing.server import wait_until
from tests.dns.serving import Counts, name_change, said

LOOPS = [
    pytest.param(serve_udp, id="batched", marks=pytest.mark.skipif(not ring.AVAILABLE, reason="no recvmmsg")),
    pytest.param(partial(serve_udp, batched=False), id="portable"),
]
IP_PKTINFO = 8  # <linux/in.h>; not in Python's socket module yet
SECONDS_MAX = 60  # until what has to happen counts as a failure
WWW = ("NOERROR", "AA", ["www.example.test. 300 a 192.0.2.80"], [], [])


def asks_for_addresses(sock):
    """Whether the loop has asked the kernel for the address that each datagram went to."""
    ipv4 = sock.family == socket.AF_INET
    level, option = (
        (socket.IPPROTO_IP, IP_PKTINFO) if ipv4 else (socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO)
    )
    return sock.getsockopt(level, option)


def query(name="www.example.test.", kind="A", **options):
    return dns.message.make_query(name, kind, **options).to_wire()


class Server:
    def __init__(self, serve, table, host="127.0.0.1"):
        self.family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(self.family, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.sock.bind((host, 0))
        self.port = self.sock.getsockname()[1]
        self.counts, self.stop = Counts(), threading.Event()
        self.thread = threading.Thread(target=serve, args=(self.sock, table, self.counts, self.stop))

    def finish(self):
        self.stop.set()
        self.thread.join(SECONDS_MAX)
        assert not self.thread.is_alive()
        self.sock.close()

    @contextmanager
    def client(self, host="127.0.0.1"):
        with socket.socket(self.family, socket.SOCK_DGRAM) as client:
            client.settimeout(SECONDS_MAX)
            client.connect((host, self.port))
            yield client


@contextmanager
def running(serve, table, host="127.0.0.1"):
    server = Server(serve, table, host)
    server.thread.start()
    try:
        yield server
    finally:
        server.finish()


def ask(client, packet):
    client.send(packet)
    return dns.message.from_wire(client.recv(65535))


@pytest.mark.parametrize("serve", LOOPS)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_query_is_answered_over_both_families(serve, host, table):
    with running(serve, table, host) as server, server.client(host) as client:
        replies = [said(ask(client, query())) for _ in range(3)]

    assert replies == [WWW] * 3


@pytest.mark.parametrize("serve", LOOPS)
@pytest.mark.parametrize(
    ("bound", "asked"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "::ffff:127.0.0.1")]
)
def test_a_cookie_is_good_for_the_address_that_it_went_to(serve, bound, asked, table):
    option = dns.edns.GenericOption(dns.edns.COOKIE, b"abcdefgh")
    with running(serve, table, bound) as server, server.client(asked) as client:
        cookie = ask(client, query(use_edns=0, options=[option])).options[0]
        option = dns.edns.GenericOption(dns.edns.COOKIE, cookie.client + cookie.server)
        again = ask(client, query(use_edns=0, options=[option]))

    assert again.options[0] == cookie
    assert server.counts[Slot.COOKIES_GOOD] == 1


@pytest.mark.skipif(not ring.AVAILABLE, reason="no recvmmsg")
@pytest.mark.parametrize(
    ("bound", "asked"), [("0.0.0.0", "127.0.0.7"), ("0.0.0.0", "127.0.0.1"), ("::", "::1")]
)
def test_the_reply_comes_from_the_address_that_was_asked(bound, asked, table):
    with running(serve_udp, table, bound) as server, server.client(asked) as client:
        wait_until(lambda: asks_for_addresses(server.sock), SECONDS_MAX)  # before the first datagram
        reply = ask(client, query())  # a connected socket takes datagrams from this address only

    assert said(reply) == WWW


@pytest.mark.parametrize("serve", LOOPS)
def test_the_queries_of_siblings_that_answer_nothing_are_answered_from_their_own_sockets(serve, table):
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(3)]
        clients = []
        for one in idle:
            one.bind(("127.0.0.1", 0))
            client = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            client.settimeout(SECONDS_MAX)
            client.connect(one.getsockname())  # and takes datagrams from there only
            clients.append(client)
        for number in range(2 * ring.BATCH + 1):  # more than one look takes, before anybody looks
            clients[0].send(number.to_bytes(2, "big") + query()[2:])
        with running(partial(serve, siblings=idle), table) as server:
            assert len({clients[0].recv(4096)[:2] for _ in range(2 * ring.BATCH + 1)}) == 2 * ring.BATCH + 1
            for client in clients:
                assert said(ask(client, query())) == WWW
            with server.client() as own:
                assert said(ask(own, query())) == WWW


@pytest.mark.parametrize("serve", LOOPS)
def test_what_gets_no_reply_leaves_the_others_theirs(serve, table):
    """A burst of queries among packets that must not be answered; every reply goes to its own ID."""
    table_lock_held_while_they_arrive = table.lock
    nothing = [b"", b"\1", query()[:11], b"\0\1\x80" + query()[3:], b"\xff" * 100]
    with running(serve, table) as server, server.client() as client:
        with table_lock_held_while_they_arrive:
            sent = []
            for i in range(60):
                packet = i.to_bytes(2, "big") + query()[2:]
                client.send(packet)
                sent.append(i)
                for junk in nothing[: i % 6]:
                    client.send(junk)
        received = [client.recv(4096) for _ in sent]
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(4096)

    assert sorted(int.from_bytes(reply[:2], "big") for reply in received) == sent
    assert {len(reply) for reply in received} == {len(received[0])}
    assert server.counts[Slot.NOERROR] == 60
    assert server.counts[Slot.DROPPED] == sum(len(nothing[: i % 6]) for i in sent)
    assert server.counts[Slot.QUERIES] == 60 + server.counts[Slot.DROPPED]
    assert server.counts[Slot.CACHE_HITS] == 59


@pytest.mark.parametrize(("every", "times"), [(1, 10), (4, 2)])
@pytest.mark.skipif(not ring.AVAILABLE, reason="no recvmmsg")
def test_some_answers_are_timed(monkeypatch, table, every, times):
    """One by one, so each is a batch; the time of none is more than that of the whole test."""
    monkeypatch.setattr(udp, "TIMED_EVERY", every)
    with running(serve_udp, table) as server, server.client() as client:
        for _ in range(10):
            client.send(query())
            client.recv(4096)

    timed = sum(server.counts[slot] for slot in range(TOOK, TOOK_US))
    assert timed == times
    assert 0 < server.counts[TOOK_US] < SECONDS_MAX * 1_000_000


@pytest.mark.parametrize("serve", LOOPS)
def test_long_datagrams_are_survived(serve, table):
    with running(serve, table) as server, server.client() as client:
        long = ask(client, query() + b"\0" * 5000)
        after = ask(client, query())

    assert (long.rcode().name, said(after)) == ("FORMERR", WWW)


@pytest.mark.parametrize("serve", LOOPS)
def test_large_replies_are_truncated(serve, table):
    with running(serve, table) as server, server.client() as client:
        reply = ask(client, query("big.example.test.", "TXT", use_edns=0, payload=4096))

    assert said(reply) == ("NOERROR", "AA TC", [], [], [])
    assert server.counts[Slot.TRUNCATED] == 1


@pytest.mark.parametrize("serve", LOOPS)
def test_a_name_that_cannot_be_answered_is_servfail_and_logged_once(serve, table, caplog):
    with running(serve, table) as server, server.client() as client:
        client.send(query("broken.example.test."))
        broken = client.recv(4096)
        client.send(query("broken.example.test."))
        client.recv(4096)
        after = ask(client, query())

    assert (broken[3], said(after)) == (0x02, WWW)
    assert len(caplog.records) == 1
    assert server.counts[Slot.SERVFAIL] == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="a raw socket needs root")
@pytest.mark.parametrize("serve", LOOPS)
def test_a_sender_that_cannot_be_answered_is_passed_over(serve, table):
    """Port 0 cannot be sent to: the kernel refuses, and the next in the batch gets its reply."""
    packet = query()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
        with running(serve, table) as server, server.client() as client:
            length = (8 + len(packet)).to_bytes(2, "big")
            datagram = b"\0\0" + server.port.to_bytes(2, "big") + length + b"\0\0" + packet
            with table.lock:
                raw.sendto(datagram, ("127.0.0.1", 0))
                raw.sendto(datagram, ("127.0.0.1", 0))
                client.send(packet)
            reply = dns.message.from_wire(client.recv(4096))

    assert said(reply) == WWW
    assert server.counts[Slot.UNSENT] == 2


@pytest.mark.parametrize("serve", LOOPS)
def test_changes_are_visible_as_soon_as_they_are_applied_under_load(serve, table):
    with running(serve, table) as server, server.client() as client:
        seen = []
        for i in range(1, 200):
            change = name_change(
                "example.test.", "example.test.", "www.example.test.", ("A", 60, f"10.0.0.{i}")
            )
            table.apply([change])
            seen.append(str(ask(client, query()).answer[0][0]))

    assert seen == [f"10.0.0.{i}" for i in range(1, 200)]


@pytest.mark.parametrize("serve", LOOPS)
def test_what_arrived_before_the_stop_is_answered(serve, table):
    server = Server(serve, table)
    with server.client() as client:
        for i in range(100):
            client.send(i.to_bytes(2, "big") + query()[2:])
        server.stop.set()
        server.thread.start()
        server.finish()
        replies = {int.from_bytes(client.recv(4096)[:2], "big") for _ in range(64)}

    assert len(replies) == 64


_CHILD = """
import signal, socket, sys, threading
from edgestead.dns.counters import NoCounters
from edgestead.dns.udp import serve_udp
from edgestead.dns.table import Table
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.bind(("127.0.0.1", 0))
    print(sock.getsockname()[1], flush=True)
    serve_udp(sock, Table(), NoCounters(), stop, batched={batched})
print("drained")
"""


@pytest.mark.parametrize("batched", [False, ring.AVAILABLE], ids=["portable", "batched"])
def test_sigterm_ends_an_idle_process_cleanly(batched):
    command = [sys.executable, "-W", "error", "-c", _CHILD.format(batched=batched)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        port = int(process.stdout.readline())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(SECONDS_MAX)
            client.connect(("127.0.0.1", port))
            assert ask(client, query()).rcode().name == "REFUSED"

        process.send_signal(signal.SIGTERM)

        assert process.stdout.read() == "drained\n"
        assert process.wait(SECONDS_MAX) == 0
