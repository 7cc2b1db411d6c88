"""The probes of RFC 8906 §8, each over UDP and TCP, through real sockets.

Each line is one subsection: the bits and the OPT record of the query, and what the section expects.
"""

import asyncio
import socket
import struct
from typing import NamedTuple

import pytest

from edgestead.dns.settings import DnsSettings
from edgestead.dns.tcp import serve_tcp
from edgestead.dns.udp import serve_udp
from tests.dns.facts import AA, AD, CD, QR, RA, RD, TC, facts
from tests.dns.serving import Counts, running

SOA, TYPE1000, TXT = 6, 1000, 16
NOERROR, NOTIMP, BADVERS = 0, 4, 16
APEX = b"\7example\4test\0"
SETTINGS = DnsSettings(identity=b"ams-1")

COOKIE = b"\0\x0a\0\x08abcdefgh"
NSID, EXPIRE, SUBNET, UNKNOWN = b"\0\3\0\0", b"\0\x09\0\0", b"\0\x08\0\4\0\1\0\0", b"\0\x64\0\0"


class Edns(NamedTuple):
    version: int = 0
    flags: int = 0
    options: bytes = b""
    payload: int = 4096


class Probe(NamedTuple):
    """`answers` is how many SOA records come; `bits` what else than QR and AA is set in the reply."""

    edns: Edns | None = None
    flags: int = 0
    name: bytes = APEX
    kind: int = SOA
    rcode: int = NOERROR
    answers: int = 1
    bits: int = 0
    do: bool = False
    options: frozenset = frozenset()


PROBES = {
    "8.1.1 is the server configured for the zone": Probe(),
    "8.1.2 unknown types": Probe(kind=TYPE1000, answers=0),
    "8.1.3.1 CD=1": Probe(flags=CD),
    "8.1.3.2 AD=1": Probe(flags=AD),
    "8.1.3.3 the reserved bit": Probe(flags=0x40),
    "8.1.3.4 recursive queries": Probe(flags=RD, bits=RD),
    "8.2.1 minimal EDNS": Probe(Edns()),
    "8.2.2 EDNS version 1": Probe(Edns(version=1), rcode=BADVERS, answers=0),
    "8.2.3 an unknown option": Probe(Edns(options=UNKNOWN)),
    "8.2.4 unknown flags": Probe(Edns(flags=0x40)),
    "8.2.5 version 1 with unknown flags": Probe(Edns(version=1, flags=0x40), rcode=BADVERS, answers=0),
    "8.2.6 version 1 with an unknown option": Probe(
        Edns(version=1, options=UNKNOWN), rcode=BADVERS, answers=0
    ),
    "8.2.7 truncated responses": Probe(
        Edns(flags=0x8000, payload=512), name=b"\3big" + APEX, kind=TXT, answers=0, bits=TC, do=True
    ),
    "8.2.8 DO=1": Probe(Edns(flags=0x8000), do=True),
    "8.2.9 version 1 with DO=1": Probe(Edns(version=1, flags=0x8000), rcode=BADVERS, answers=0, do=True),
    "8.2.10 many known options": Probe(
        Edns(options=COOKIE + NSID + EXPIRE + SUBNET), options=frozenset({10, 3, 8})
    ),
}
OPCODES = {"8.1.4 unknown opcodes": range(1, 16)}
"""8.1.5, that TCP answers, is every probe once more."""


@pytest.fixture
def ask(request, table):
    """A function that sends a packet over a transport and returns the reply."""

    def over_udp(packet):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        ):
            sock.bind(("127.0.0.1", 0))
            client.connect(sock.getsockname())
            client.settimeout(60)
            serve = lambda *args: serve_udp(*args, settings=SETTINGS)  # noqa: E731
            with running(serve, sock, table, Counts()):
                client.send(packet)
                return client.recv(65_535)

    async def over_tcp(packet):
        sock, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
        server = asyncio.create_task(serve_tcp(sock, table, Counts(), stop, settings=SETTINGS))
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        writer.write(struct.pack("!H", len(packet)) + packet)
        reply = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        writer.close()
        stop.set()
        await server
        return reply

    if request.param == "udp":
        return over_udp
    return lambda packet: asyncio.run(asyncio.wait_for(over_tcp(packet), 60))


def packet(probe):
    head = struct.pack("!6H", 4711, probe.flags, 1, 0, 0, probe.edns is not None)
    body = probe.name + struct.pack("!HH", probe.kind, 1)
    if probe.edns:
        version, flags, options, payload = probe.edns
        body += struct.pack("!BHHBBHH", 0, 41, payload, 0, version, flags, len(options)) + options
    return head + body


@pytest.mark.parametrize("ask", ["udp", "tcp"], indirect=True)
@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_probe_of_rfc_8906_section(probe, ask, request):
    reply = ask(packet(probe))

    got = facts(reply)
    over_tcp = request.node.callspec.params["ask"] == "tcp"
    bits = probe.bits & ~TC if over_tcp else probe.bits
    aa = 0 if probe.rcode == BADVERS else AA
    assert (got.rcode, got.flags) == (probe.rcode, QR | aa | bits)
    assert not got.flags & (RA | AD | CD)
    assert len([record for record in got.answer if record[1] == SOA]) == probe.answers
    assert (got.opt is not None) == (probe.edns is not None)
    if got.opt:
        assert (got.opt.version, got.opt.do, got.opt.options) == (0, probe.do, probe.options)
        assert z_bits(reply) == 0
    assert reply[:2] == packet(probe)[:2]


@pytest.mark.parametrize("ask", ["udp", "tcp"], indirect=True)
@pytest.mark.parametrize("opcode", OPCODES["8.1.4 unknown opcodes"])
def test_probe_of_rfc_8906_section_8_1_4_opcode(opcode, ask):
    """A header and nothing else."""
    reply = ask(struct.pack("!6H", 4711, opcode << 11, 0, 0, 0, 0))

    assert reply == struct.pack("!6H", 4711, QR | opcode << 11 | NOTIMP, 0, 0, 0, 0)


def test_no_probe_is_missing():
    """Ten of §8.2, six of §8.1 that are a query, its opcodes, and TCP for all."""
    assert len(PROBES) + len(OPCODES) == 17


def z_bits(reply):
    """The flags of the OPT record, which has no options behind it here or ends before them, but DO."""
    at = reply.index(b"\0\0\x29\x04\xd0", 12 + len(APEX))
    return int.from_bytes(reply[at + 7 : at + 9], "big") & 0x7FFF
