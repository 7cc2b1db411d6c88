"""When secondaries are told of a change, on invented time and, once, over real sockets."""

import asyncio
import socket
from itertools import count, pairwise

import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import pytest

from edgestead.dns.counters import Slot
from edgestead.dns.notify import DELAY_SECONDS, GAP_SECONDS, RETRY_SECONDS, SENDS_PER_TURN_MAX, Notifier
from tests.dns.changing import Changing
from tests.dns.serving import Change, Counts, wire

APEX = "example.test."
ONE, TWO, SIX = ("192.0.2.1", 53), ("192.0.2.2", 5300), ("2001:db8::1", 53)


class Wire:
    """Takes what would be sent."""

    def __init__(self):
        self.sent = []

    def sendto(self, data, target):
        self.sent.append((dns.message.from_wire(data), target))


class World:
    """A notifier whose clock and network are ours."""

    def __init__(self, *targets, apexes=(APEX,)):
        self.now = 1000.0
        self.zone = Changing(apexes[0])
        for apex in apexes[1:]:
            Changing(apex, table=self.zone.table)
        self.counts, self.wire = Counts(), Wire()
        self.notifier = Notifier(
            self.zone.table, self.counts, targets, seconds=lambda: self.now, random_id=count(7).__next__
        )
        self.notifier._transports = dict.fromkeys((socket.AF_INET, socket.AF_INET6), self.wire)

    def change(self):
        self.zone.change(("www.example.test.", ("A", 300, "192.0.2.1")))
        self.notifier.changed([wire(APEX)])

    def after(self, seconds):
        """Let time go by in small steps; returns what was sent, as (message, target)."""
        for _ in range(round(seconds / 0.01)):
            self.now += 0.01
            self.notifier._send_due()
        sent, self.wire.sent = self.wire.sent, []
        return sent

    def answer(self, message, target, **changed):
        response = dns.message.make_response(message)
        response.id = changed.get("id", message.id)
        response.set_rcode(changed.get("rcode", 0))
        self.notifier._heard(response.to_wire(), target)


def test_a_change_is_told_to_every_target_with_the_soa():
    world = World(ONE, TWO, SIX)
    world.change()

    sent = world.after(0.1)

    assert sorted(target for _, target in sent) == sorted([ONE, TWO, SIX])
    for message, _ in sent:
        assert (message.opcode(), message.flags & dns.flags.AA) == (dns.opcode.NOTIFY, dns.flags.AA)
        assert [(str(q.name), q.rdtype) for q in message.question] == [(APEX, dns.rdatatype.SOA)]
        assert message.answer[0][0].serial == world.zone.serial == 2


def test_changes_that_come_together_are_told_together():
    world = World(ONE)
    for _ in range(5):
        world.change()
        world.now += DELAY_SECONDS / 10

    ((message, _),) = world.after(0.5)

    assert message.answer[0][0].serial == 6


def test_changes_that_keep_coming_are_told_once_in_a_while_and_the_last_one_for_certain():
    world, serials = World(ONE), []
    for step in range(600):
        if step < 300:
            world.change()
        for message, target in world.after(0.01):
            serials.append(message.answer[0][0].serial)
            world.answer(message, target)

    assert len(serials) == 3 / GAP_SECONDS + 1
    assert serials[-1] == world.zone.serial
    assert world.after(100) == []


def test_an_answer_ends_it_whatever_it_says():
    world = World(ONE)
    world.change()
    ((message, target),) = world.after(0.1)

    world.answer(message, target, rcode=dns.rcode.NOTAUTH)

    assert world.after(200) == []
    assert world.counts == {Slot.NOTIFIES_ANSWERED: 1}
    assert not world.notifier._due


def test_without_an_answer_it_is_told_again_less_and_less_often_and_then_no_more(caplog):
    world = World(ONE)
    world.change()

    moments = []
    for _ in range(8000):
        moments += [world.now for _ in world.after(0.01)]

    gaps = [round(later - earlier) for earlier, later in pairwise(moments)]
    assert gaps == list(RETRY_SECONDS)[:-1]
    assert world.counts == {Slot.NOTIFIES_UNANSWERED: 1}
    assert "192.0.2.1 port 53 does not answer" in caplog.text
    assert not world.notifier._due


def test_a_silent_target_is_not_pressed_by_more_changes_and_hears_of_the_last_one():
    world, sent = World(ONE), []
    for _ in range(100):
        world.change()
        sent += world.after(1)

    assert len(sent) < len(RETRY_SECONDS) + 3
    ((message, _),) = world.after(40)[:1]
    assert message.answer[0][0].serial == world.zone.serial


ANSWERS_THAT_ARE_NONE = {
    "another id": lambda world, message, target: world.answer(message, target, id=message.id + 1),
    "from somebody else": lambda world, message, target: world.answer(message, TWO),
    "from another port": lambda world, message, target: world.answer(message, (target[0], 54)),
    "for another zone": lambda world, message, target: world.notifier._heard(
        message.id.to_bytes(2, "big") + bytes(10) + wire("example.net.") + bytes(4), target
    ),
    "cut short": lambda world, message, target: world.notifier._heard(message.to_wire()[:15], target),
}


@pytest.mark.parametrize("say", ANSWERS_THAT_ARE_NONE.values(), ids=ANSWERS_THAT_ARE_NONE)
def test_what_is_no_answer_changes_nothing(say):
    world = World(ONE)
    world.change()
    ((message, target),) = world.after(0.1)

    say(world, message, target)

    assert len(world.after(1)) == 1
    assert world.counts == {}


def test_a_zone_that_is_gone_is_not_told():
    world = World(ONE)
    world.change()
    world.zone.table.apply([Change(APEX)])

    assert world.after(100) == []
    assert not world.notifier._due


def test_many_zones_at_once_are_no_flood():
    apexes = [f"zone{number}.test." for number in range(100)]
    world = World(ONE, TWO, apexes=apexes)
    world.notifier.changed(map(wire, apexes))
    world.now += 1

    assert world.notifier._send_due() == SENDS_PER_TURN_MAX
    while world.notifier._send_due():
        pass
    assert len(world.wire.sent) == 200


def test_over_real_sockets():
    """Two secondaries; the other one loses the first message."""

    class Answered(Counts):
        def add(self, slot, n):
            super().add(slot, n)
            if self[Slot.NOTIFIES_ANSWERED] == 2:
                both.set()

    async def secondary(sock, zone, lost):
        loop = asyncio.get_running_loop()
        while True:
            data, source = await loop.sock_recvfrom(sock, 4096)
            message = dns.message.from_wire(data)
            assert message.answer[0][0].serial == zone.serial
            if not lost:
                await loop.sock_sendto(sock, b"rubbish", source)
                await loop.sock_sendto(sock, dns.message.make_response(message).to_wire(), source)
            lost = max(0, lost - 1)

    async def main(socks):
        loop = asyncio.get_running_loop()
        zone, counts = Changing(APEX), Answered()
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
        notifier = Notifier(zone.table, counts, [sock.getsockname() for sock in socks], seconds=loop.time)
        running = asyncio.create_task(notifier.run("127.0.0.1"))
        notifier.changed([wire(APEX)])
        answering = [
            asyncio.create_task(secondary(sock, zone, lost)) for sock, lost in zip(socks, (0, 1), strict=True)
        ]
        await both.wait()
        for task in (running, *answering):
            task.cancel()

    both = asyncio.Event()
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
    ):
        asyncio.run(asyncio.wait_for(main((one, two)), 60))


def test_targets_that_cannot_be_reached_from_here_do_not_keep_it_from_the_others(monkeypatch, caplog):
    """As on a machine without IPv6."""

    async def main(sock):
        loop = asyncio.get_running_loop()
        create = loop.create_datagram_endpoint

        async def refused(*arguments, family, **options):
            if family == socket.AF_INET6:
                raise OSError("Address family not supported by protocol")
            return await create(*arguments, family=family, **options)

        monkeypatch.setattr(loop, "create_datagram_endpoint", refused)
        zone = Changing(APEX)
        notifier = Notifier(zone.table, Counts(), [SIX, sock.getsockname()], seconds=loop.time)
        running = asyncio.create_task(notifier.run("127.0.0.1"))
        notifier.changed([wire(APEX)])
        assert (await loop.sock_recvfrom(sock, 4096))[0]
        running.cancel()

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        asyncio.run(asyncio.wait_for(main(sock), 60))
    assert "NOTIFY cannot be sent to AF_INET6" in caplog.text
