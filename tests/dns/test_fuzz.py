"""Octets near enough to queries to get somewhere: both ways to a reply say the same, both transports live.

The quick way reads a query from its end and proves by walking that it was right; the other one reads it by
the book. Here the first is held against the second.
"""

import asyncio
import contextlib
import random
import struct
import time

import pytest

from edgestead.dns.settings import DnsSettings
from edgestead.dns.tcp import QUERY_OCTETS_MAX
from tests.dns.facts import QR, facts
from tests.dns.random_zones import World
from tests.dns.serving import Asker, table_of
from tests.dns.test_tcp import World as TcpServer

CLIENT = bytes((192, 0, 2, 53))
NOW = 1_800_000_000
PACKETS = 15_000
LONG_SECONDS = 1_800
SETTINGS = DnsSettings(cookie_secret=bytes(32), identity=b"here", version=b"one")


class Fuzz:
    """Packets made of a world's queries, with options and damage."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.world = World(number, everything=True)
        self.table = table_of(self.world.zones)
        self.cookies = [b"abcdefgh"]

    def packet(self):
        packet = self.world.packet(self.random.getrandbits(16))
        if self.random.random() < 0.4:
            packet = self._with_options(packet)
        if self.random.random() < 0.6:
            packet = self._damaged(bytearray(packet))
        return packet

    def _with_options(self, packet):
        """The options in place of what the packet's OPT record has, if it has one."""
        end = packet.index(b"\0", 12) + 5 if b"\0" in packet[12:] else len(packet)
        options = b"".join(self._option() for _ in range(self.random.choice((1, 1, 1, 2, 3))))
        record = struct.pack(
            "!BHHIH", 0, 41, self.random.choice((0, 512, 539, 540, 1232, 4096)), 0, len(options)
        )
        return packet[:11] + b"\1" + packet[12:end] + record + options

    def _option(self):
        data = self.random.choice(
            (self.random.choice(self.cookies), b"", b"\0\1\x18\0\xc0\0\2", self.random.randbytes(9))
        )
        code = self.random.choice((10, 10, 10, 3, 8, 11, 65_001))
        return struct.pack("!HH", code, len(data)) + data

    def _damaged(self, packet):
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randrange(len(packet) + 1)
            match self.random.randrange(5):
                case 0 if at < len(packet):
                    packet[at] = self.random.getrandbits(8)
                case 1:
                    del packet[at:]
                case 2:
                    packet[at:at] = self.random.randbytes(self.random.randint(1, 12))
                case 3:
                    del packet[at : at + self.random.randint(1, 12)]
                case _ if at < len(packet):
                    packet[at] ^= 1 << self.random.randrange(8)
        return bytes(packet)


def asker(fuzz, *, udp):
    made = Asker(fuzz.table, udp=udp, settings=SETTINGS, client=CLIENT)
    made.responder.edns.cookies._now = lambda: NOW
    return made


def check(packet, quick, book, *, udp):
    reply = quick.raw(packet)
    slow = book.responder._unusual(packet[2:], 0)
    assert reply == (None if slow is None else packet[:2] + slow), packet.hex()
    if len(packet) < 12 or packet[2] & 0x80:
        assert reply is None
        return None
    assert reply[:2] == packet[:2]
    assert int.from_bytes(reply[2:4], "big") & (QR | 0x7900) == QR | packet[2] << 8 & 0x7900
    said = facts(reply)
    assert len(reply) <= (1232 if said.opt else 512) or not udp, packet.hex()
    return reply


def run(number, goes_on):
    fuzz = Fuzz(number)
    ends = {udp: (asker(fuzz, udp=udp), asker(fuzz, udp=udp)) for udp in (True, False)}
    good, _ = ends[True][0].responder.edns.cookies.answer(b"abcdefgh", CLIENT)
    fuzz.cookies += [good, b"ABCDEFGH" + good[8:]]
    packets = 0
    while goes_on(packets):
        packet, udp = fuzz.packet(), fuzz.random.random() < 0.8
        check(packet, *ends[udp], udp=udp)
        packets += 1
    return packets


@pytest.mark.parametrize("number", [1, 2])
def test_both_ways_to_a_reply_say_the_same(number):
    run(number, lambda packets: packets < PACKETS)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS + 300)
def test_half_an_hour_of_packets(capsys):
    end = time.monotonic() + LONG_SECONDS
    packets, number = 0, 100
    while time.monotonic() < end:
        packets += run(number, lambda packets: packets < 100_000 and time.monotonic() < end)
        number += 1
    with capsys.disabled():
        print(f"\n{packets} packets, {number - 100} sets of zones")  # noqa: T201


async def frames(fuzz, count):
    """Connections that send frames cut and damaged in any way; after each a sound one is answered."""
    sound = b"\0\x22" + bytes(2) + b"\1\0\0\1\0\0\0\0\0\0" + b"\3www\7example\4test\0\0\1\0\1"
    sound = struct.pack("!H", len(sound) - 2) + sound[2:]
    async with TcpServer(fuzz.table) as server:
        for _ in range(count):
            stream = b"".join(
                struct.pack("!H", fuzz.random.choice((len(packet), len(packet), len(packet) + 1, 5, 65_535)))
                + packet
                for packet in (fuzz.packet()[:QUERY_OCTETS_MAX] for _ in range(fuzz.random.randint(1, 5)))
            )
            broken = await server.client()
            at = fuzz.random.randrange(len(stream) + 1)
            for part in (stream[:at], stream[at:]):
                broken.writer.write(part)
                await asyncio.sleep(0)
            with contextlib.suppress(OSError):  # it may be ended by now
                broken.writer.write_eof()
            with contextlib.suppress(ConnectionError):  # with octets of ours unread
                assert well_framed(await asyncio.wait_for(broken.reader.read(), 60))
            whole = await server.client()
            whole.writer.write(sound)
            await asyncio.wait_for(whole.read_octets(), 60)
            for client in (broken, whole):
                client.writer.close()
            server.clients.clear()


def well_framed(octets):
    while octets:
        size = int.from_bytes(octets[:2], "big")
        facts(octets[2 : 2 + size])
        octets = octets[2 + size :]
    return True


def test_broken_frames_end_their_connection_only():
    asyncio.run(frames(Fuzz(3), 150))


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS + 300)
def test_half_an_hour_of_frames():
    end, number = time.monotonic() + LONG_SECONDS, 500
    while time.monotonic() < end:
        asyncio.run(frames(Fuzz(number), 500))
        number += 1
