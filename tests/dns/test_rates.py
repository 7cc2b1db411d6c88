"""How many answers a network gets in a second, by kind, over all workers."""

import mmap
import os
import socket
import subprocess
import sys
from functools import partial

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest

from edgestead.dns import rates, ring
from edgestead.dns.counters import Slot
from edgestead.dns.rates import ROWS, SLIP, Rates, memory_octets
from edgestead.dns.udp import serve_udp
from tests.dns.serving import Counts, running

HERE, NEIGHBOUR, ELSEWHERE = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 200)), bytes((192, 0, 3, 1))
HERE_6 = bytes.fromhex("20010db800000001" + "00" * 8)
NEIGHBOUR_6 = bytes.fromhex("20010db8000000ff" + "11" * 8)
ELSEWHERE_6 = bytes.fromhex("20010db8000001ff" + "11" * 8)
LOOPBACK = [bytes((127, 0, 0, 1)), bytes((127, 9, 9, 9)), bytes(15) + b"\1"]

ANSWER = b"\x84\0\0\1\0\1\0\0\0\0"
KINDS = {
    "an answer": ANSWER,
    "no data": b"\x84\0\0\1\0\0\0\1\0\0",
    "a referral": b"\x80\0\0\1\0\0\0\1\0\0",
    "no name": b"\x84\3\0\1\0\0\0\1\0\0",
    "an error": b"\x80\5\0\1\0\0\0\0\0\0",
}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def workers(count, per_second=10, **options):
    """`count` ends of the same memory, watching, and their clock."""
    clock, memory = Clock(), memoryview(bytearray(memory_octets(count)))
    ends = [Rates(per_second, memory, worker=i, workers=count, now=clock, **options) for i in range(count)]
    for end in ends:
        end.watching(0)
    return ends, clock


def admitted(end, client, reply=ANSWER, times=100):
    return sum(end.admits(client, reply) for _ in range(times))


def test_a_network_gets_as_many_answers_in_a_second_as_the_limit_says():
    (end,), clock = workers(1)

    assert admitted(end, HERE) == 10
    assert admitted(end, NEIGHBOUR) == 0
    assert admitted(end, ELSEWHERE) == 10
    assert admitted(end, HERE_6) == 10
    assert admitted(end, NEIGHBOUR_6) == 0
    assert admitted(end, ELSEWHERE_6) == 10
    clock.now += 1
    end.watching(0)
    assert admitted(end, HERE) == 10


def test_each_kind_of_answer_is_counted_for_itself():
    (end,), _ = workers(1)

    assert {kind: admitted(end, HERE, reply) for kind, reply in KINDS.items()} == dict.fromkeys(KINDS, 10)


@pytest.mark.parametrize("count", [2, 3, 64])
def test_workers_count_together(count):
    ends, clock = workers(count)
    for _ in range(3):
        assert sum(admitted(ends[turn % count], HERE, times=1) for turn in range(500)) == 10
        clock.now += 1
        for end in ends:
            end.watching(0)


def test_a_worker_that_is_a_second_ahead_does_not_count_here():
    (early, late), clock = workers(2)
    clock.now += 1
    early.watching(0)
    assert admitted(early, HERE) == 10
    assert admitted(late, HERE) == 10


@pytest.mark.parametrize("client", LOOPBACK)
def test_loopback_is_exempt(client):
    (end,), _ = workers(1)

    assert admitted(end, client) == 100
    assert admitted(workers(1, loopback_exempt=False)[0][0], client) == 10


def test_nobody_is_watched_while_all_together_are_within_the_limit():
    (first, second), clock = workers(2)

    assert [first.watching(5), second.watching(5)] == [False, False]
    assert [second.watching(1), first.watching(1)] == [True, True]
    clock.now += 1
    assert [first.watching(1), second.watching(1)] == [True, True], "a flood does not pause"
    clock.now += 1
    assert [first.watching(1), second.watching(1)] == [False, False]
    assert first.watching(10)
    clock.now += 2
    assert not first.watching(1)


def test_a_small_part_of_the_limit_is_added_up_before_it_is_looked_at():
    (first, second), _ = workers(2, per_second=640)

    assert [first.watching(9) for _ in range(71)] == [False] * 71  # 639, of which 630 are counted
    assert not second.watching(10)
    assert second.watching(10)


def test_networks_are_spread_over_the_rows():
    (end,), _ = workers(1, per_second=1)
    networks = [bytes((10, i >> 8, i & 255, 1)) for i in range(1000)]

    together = sum(not end.admits(network, ANSWER) for network in networks)

    assert together <= 1000 * 1000 // ROWS


def test_every_second_answer_over_the_limit_slips():
    (end,), _ = workers(1)

    assert [end.slips() for _ in range(4)] == [False, True] * 2
    assert SLIP == 2


# Through sockets.

LOOPS = [
    pytest.param(serve_udp, id="batched", marks=pytest.mark.skipif(not ring.AVAILABLE, reason="no recvmmsg")),
    pytest.param(partial(serve_udp, batched=False), id="portable"),
]
WWW = dns.message.make_query("www.example.test.", "A", use_edns=False).to_wire()


@pytest.fixture(params=LOOPS)
def flood(request, table):
    """Ask many times at once from loopback, which counts here; returns the replies and the counts.

    The clock stands still: the first of all seconds has been too much already.
    """

    def flood(packets, per_second=10):
        (end,), _ = workers(1, per_second, loopback_exempt=False)
        end.watching(per_second + 1)
        counts = Counts()
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        ):
            sock.bind(("127.0.0.1", 0))
            client.connect(sock.getsockname())
            arguments = (sock, table, counts)
            with running(lambda *args: request.param(*args[:3], args[3], rates=end), *arguments):
                for packet in packets:
                    client.send(packet)
            client.setblocking(False)
            replies = []
            while True:
                try:
                    replies.append(client.recv(4096))
                except BlockingIOError:
                    return replies, counts

    return flood


def test_over_the_limit_half_is_dropped_and_half_says_to_come_by_tcp(flood):
    replies, counts = flood([WWW] * 60)

    parsed = [dns.message.from_wire(reply) for reply in replies]
    answered = [reply for reply in parsed if reply.answer]
    truncated = [reply for reply in parsed if reply.flags & dns.flags.TC]
    assert (len(answered), len(truncated), len(parsed)) == (10, 25, 35)
    assert all(reply.rcode() == 0 and not reply.answer and reply.question for reply in truncated)
    assert (counts[Slot.LIMITED], counts[Slot.SLIPPED]) == (25, 25)


def test_who_knows_cookies_gets_one_instead_and_then_everything(flood):
    option = dns.edns.GenericOption(dns.edns.COOKIE, b"abcdefgh")
    query = dns.message.make_query("www.example.test.", "A", use_edns=0, options=[option])

    replies, _ = flood([query.to_wire()] * 60)

    parsed = [dns.message.from_wire(reply) for reply in replies]
    refused = [reply for reply in parsed if reply.rcode() == dns.rcode.BADCOOKIE]
    assert len(refused) == 25
    assert not any(reply.answer or reply.flags & dns.flags.TC for reply in refused)
    assert all(reply.question == query.question for reply in refused)
    assert len(refused[0].to_wire()) < 512

    got = refused[0].options[0]
    query.use_edns(0, options=[dns.edns.GenericOption(dns.edns.COOKIE, got.client + got.server)])
    replies, counts = flood([query.to_wire()] * 60)

    assert sum(bool(dns.message.from_wire(reply).answer) for reply in replies) == 60
    assert counts[Slot.COOKIES_GOOD] == 60


def test_a_good_cookie_speaks_for_its_own_query_only(flood):
    option = dns.edns.GenericOption(dns.edns.COOKIE, b"abcdefgh")
    query = dns.message.make_query("www.example.test.", "A", use_edns=0, options=[option])
    got = dns.message.from_wire(flood([query.to_wire()])[0][0]).options[0]
    query.use_edns(0, options=[dns.edns.GenericOption(dns.edns.COOKIE, got.client + got.server)])

    replies, _ = flood([query.to_wire(), WWW] * 30)

    with_answer = [reply for reply in map(dns.message.from_wire, replies) if reply.answer]
    assert sum(reply.edns == 0 for reply in with_answer) == 30
    assert sum(reply.edns < 0 for reply in with_answer) == 10


SHORT_ALREADY = {
    "FORMERR": WWW + b"\0",
    "NOTIMP": WWW[:2] + b"\x20" + WWW[3:],
    "BADVERS": WWW[:11] + b"\1" + WWW[12:] + b"\0\0\x29\x04\xd0\0\1\0\0\0\0",
}


@pytest.mark.parametrize("packet", SHORT_ALREADY.values(), ids=SHORT_ALREADY)
def test_errors_are_limited_too_and_stay_as_they_are(packet, flood):
    replies, counts = flood([packet] * 60)

    assert len(replies) == 35
    assert len(set(replies)) == 1
    assert counts[Slot.LIMITED] == 25


_WORKER = """
import mmap, os, socket, sys, threading
from edgestead.dns.counters import NoCounters
from edgestead.dns.rates import Rates, memory_octets
from edgestead.dns.settings import DnsSettings
from edgestead.dns.udp import serve_udp
from tests.dns.serving import table_of
fd, memory_fd, worker = map(int, sys.argv[1:])
memory = memoryview(mmap.mmap(memory_fd, memory_octets(2)))
rates = Rates(50, memory, worker=worker, workers=2, loopback_exempt=False, now=lambda: 1000.0)
table = table_of({"example.test.": '''
example.test. 60 SOA ns1.example.test. a.example.test. 1 1 1 1 60
www.example.test. 300 A 192.0.2.80
'''})
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set())).start()
serve_udp(socket.socket(fileno=fd), table, NoCounters(), stop, DnsSettings(), rates)
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memfd")
def test_two_processes_on_one_port_keep_one_limit():
    """400 queries at once from 8 sockets, which the kernel spreads over both."""
    memory_fd = os.memfd_create("rates")
    os.ftruncate(memory_fd, memory_octets(2))
    first = mmap.mmap(memory_fd, memory_octets(2))
    Rates(50, memoryview(first), worker=0, workers=2, now=lambda: 1000.0).watching(51)
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind(socks[0].getsockname() if sock is socks[1] else ("127.0.0.1", 0))
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
    for client in clients:
        client.connect(socks[0].getsockname())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    for _ in range(50):
        for client in clients:
            client.send(WWW)

    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(sock.fileno()), str(memory_fd), str(worker)],
            pass_fds=(sock.fileno(), memory_fd),
            stdin=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for worker, sock in enumerate(socks)
    ]
    for process in processes:
        process.communicate(timeout=300)  # drains what has arrived, then ends

    replies = []
    for client in clients:
        client.setblocking(False)
        while True:
            try:
                replies.append(client.recv(4096))
            except BlockingIOError:
                break
        client.close()
    for sock in socks:
        sock.close()
    first.close()
    os.close(memory_fd)
    answered = sum(reply[7] for reply in replies)
    assert 48 <= answered <= 52, "who counts at the same moment may miss the other, or see it before its turn"
    assert answered + sum(reply[2] & 2 == 2 for reply in replies) == len(replies) < 400
    assert rates.SLIP == 2
