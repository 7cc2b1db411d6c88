"""Stock secondaries follow our zones through random changes, and end with the same zones."""

import asyncio
import contextlib
import random
import socket
import threading
import time
from ipaddress import ip_network

import dns.exception
import dns.query
import dns.zone
import pytest
import uvloop

from edgestead.dns.counters import Slot
from edgestead.dns.notify import Notifier
from edgestead.dns.tcp import TransferPolicy, serve_tcp
from edgestead.dns.udp import serve_udp
from tests.dns.changing import Changing
from tests.dns.secondaries import BINARIES, secondaries
from tests.dns.serving import Counts, running, wire

APEXES = ("one.test.", "two.example.", "below.two.example.")
NAMES_AT_FIRST = 300
EQUAL_SECONDS_MAX = 180
PAUSE_SECONDS = 0.01
LABELS = (
    "a",
    "b",
    "www",
    "mail",
    "*",
    "_sip._tcp",
    "deep.er",
    "x.y.z",
    *(f"n{number}" for number in range(40)),
)

KINDS = {
    "A": "192.0.2.{n}",
    "AAAA": "2001:db8::{n}",
    "MX": "{n} Mail.{owner}",
    "TXT": '"text {n}" "more"',
    "SRV": "{n} 2 3 www.{owner}",
    "CAA": '0 issue "ca{n}.example.net"',
    "HTTPS": "{n} . alpn=h2 ipv4hint=192.0.2.{n}",
    "TYPE65280": "\\# 1 0{n}",
}


class Primary:
    """Our server on one port for UDP and TCP, with its loop on a thread of its own."""

    def __init__(self, apexes):
        self.zones = {apex: Changing(apex, serial=0xFFFFFFF0) for apex in apexes[:1]}
        first = self.zones[apexes[0]]
        for apex in apexes[1:]:
            self.zones[apex] = Changing(apex, table=first.table, journal=first.journal)
        self.table, self.journal = first.table, first.journal
        self.counts = Counts()
        self.udp, self.tcp = both_sockets()
        self.port = self.udp.getsockname()[1]
        self.loop = uvloop.new_event_loop()
        self._stop = asyncio.Event()
        self._notifier = None

    @contextlib.contextmanager
    def running(self):
        thread = threading.Thread(target=self.loop.run_until_complete, args=(self._serve(),))
        thread.start()
        try:
            with self.udp, running(serve_udp, self.udp, self.table, Counts()):
                yield self
        finally:
            self.loop.call_soon_threadsafe(self._stop.set)
            thread.join(60)
            assert not thread.is_alive()
            self.loop.close()

    async def _serve(self):
        policy = TransferPolicy(journal=self.journal, networks=(ip_network("127.0.0.1/32"),))
        await serve_tcp(self.tcp, self.table, self.counts, self._stop, transfers=policy)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def notify(self, targets):
        """Tell these addresses of every change from now on."""
        self._notifier = Notifier(self.table, self.counts, targets, seconds=self.loop.time)
        asyncio.run_coroutine_threadsafe(self._notifier.run("127.0.0.1"), self.loop)

    def change(self, apex, *names):
        """Apply one change on the loop, and return when it is visible."""
        done = threading.Event()

        def apply():
            self.zones[apex].change(*names)
            if self._notifier is not None:
                self._notifier.changed([wire(apex)])
            done.set()

        self.loop.call_soon_threadsafe(apply)
        assert done.wait(60)


def both_sockets():
    """A datagram socket and a listening one on the same free port."""
    for _ in range(100):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        try:
            return udp, socket.create_server(udp.getsockname())
        except OSError:
            udp.close()
    raise AssertionError("no port is free for both UDP and TCP")


class Chance:
    """Random changes; the same number gives the same ones."""

    def __init__(self, number):
        self.random = random.Random(number)

    def names(self, apex):
        count = self.random.choice((1, 1, 1, 2, 5))
        return [self.name(f"{label}.{apex}") for label in self.random.sample(LABELS, count)]

    def name(self, owner):
        ttl, chance = self.random.choice((60, 300, 3600)), self.random.random()
        if chance < 0.2:
            return (owner,)
        if chance < 0.3:
            return (owner, ("CNAME", ttl, "target.example.net."))
        if chance < 0.4 and not owner.startswith(("*", "_")):
            more = [("DS", ttl, f"4711 13 2 {'ab' * 32}")] if self.random.random() < 0.5 else []
            return (owner, ("NS", ttl, "ns1.example.net.", f"ns.{owner}"), *more)
        return (owner, *(self.rrset(kind, owner) for kind in self.random.sample(sorted(KINDS), 2)))

    def rrset(self, kind, owner):
        numbers = self.random.sample(range(1, 10), self.random.choice((1, 1, 2, 3)))
        texts = [KINDS[kind].format(n=number, owner=owner.lstrip("*.")) for number in numbers]
        return (kind, self.random.choice((60, 300)), *texts)


def contents(host, port, apex):
    """Everything that a server transfers, as lines."""
    zone = dns.zone.Zone(apex, relativize=False)
    dns.query.inbound_xfr(host, zone, port=port, timeout=60, lifetime=60)
    return sorted(
        f"{name} {ttl} {rdata.rdtype} {rdata}".lower() for name, ttl, rdata in zone.iterate_rdatas()
    )


def held(follower, apex):
    """As `contents`; None where it gives none just now, as one that reads again does."""
    with contextlib.suppress(dns.exception.DNSException, OSError, EOFError):
        return contents(follower.host, follower.port, apex)


def follow(number, changes, folder):
    if not any(BINARIES.values()):
        pytest.skip("NEITHER NSD NOR KNOT IS INSTALLED: nobody follows our zones (apt-get install nsd knot)")
    chance = Chance(number)
    with Primary(APEXES).running() as primary:
        for apex in APEXES:
            primary.change(
                apex, *[(f"first{i}.{apex}", ("A", 300, "192.0.2.1")) for i in range(NAMES_AT_FIRST)]
            )
        with secondaries(folder, primary.port, APEXES) as followers:
            wait_until_equal(primary, followers)  # who comes late fetches whole zones, and no changes
            primary.notify([(follower.host, follower.port) for follower in followers])
            for _ in range(changes):
                apex = chance.random.choice(APEXES)
                primary.change(apex, *chance.names(apex))
                time.sleep(PAUSE_SECONDS)
            wait_until_equal(primary, followers)
            for apex in APEXES:
                ours = contents("127.0.0.1", primary.port, apex)
                assert len(ours) > NAMES_AT_FIRST
                for follower in followers:
                    # Over TCP a process may still answer that has not the zone that UDP has shown.
                    end = time.monotonic() + EQUAL_SECONDS_MAX
                    while (found := held(follower, apex)) != ours and time.monotonic() < end:
                        time.sleep(0.05)
                    assert found == ours, f"{follower.kind} {apex}"
    assert primary.counts[Slot.TRANSFERS_CHANGES] >= 2 * len(APEXES)
    assert primary.counts[Slot.TRANSFERS_REFUSED] == primary.counts[Slot.NOTIFIES_UNANSWERED] == 0


def wait_until_equal(primary, followers):
    end = time.monotonic() + EQUAL_SECONDS_MAX
    for follower in followers:
        for apex, zone in primary.zones.items():
            while follower.serial(apex) != zone.serial:
                assert time.monotonic() < end, (
                    f"{follower.kind} stays behind in {apex}:\n{follower.log[-5000:]}"
                )
                time.sleep(0.05)


def test_nsd_and_knot_follow_through_random_changes(tmp_path):
    follow(1, 300, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(2, 7))
def test_nsd_and_knot_follow_through_many_random_changes(number, tmp_path):
    follow(number, 1000, tmp_path)
