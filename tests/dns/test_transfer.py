"""Transfers over real sockets: who gets them, what is in them, and how they share the loop."""

import asyncio
import contextlib
import socket
import struct
from ipaddress import ip_network

import dns.asyncquery
import dns.edns
import dns.flags
import dns.message
import dns.rdatatype
import dns.rrset
import dns.versioned
import dns.xfr
import pytest
import uvloop

from edgestead.dns import tcp, transfer
from edgestead.dns.counters import Slot
from edgestead.dns.tcp import TransferPolicy, serve_tcp
from edgestead.dns.transfer import MESSAGE_OCTETS
from edgestead.model.served import KIND_NAME, ServedName, ServedRRset, encode
from tests.dns.changing import Changing
from tests.dns.serving import Asker, Change, Counts, patient_limits, said, wire

APEX = "example.test."
LOOPBACK = (ip_network("127.0.0.0/8"),)
WWW = ("A", 300, "192.0.2.1", "192.0.2.2")
TYPES = [
    ("AAAA", 60, "2001:db8::1"),
    ("MX", 300, "10 mail.example.test.", "20 Mail.Example.Test.", "30 mail.example.net."),
    ("TXT", 300, '"one" "two"', '"three"'),
    ("SRV", 300, "1 2 3 www.example.test."),
    ("NAPTR", 300, '1 2 "u" "sip" "" example.test.'),
    ("TYPE65280", 300, r"\# 3 abcdef"),
]


class World:
    """A server that transfers to `networks`, and connections to it, on one loop."""

    def __init__(self, zone, networks=LOOPBACK, **limits):
        self.zone, self.networks, self.limits = zone, networks, patient_limits(**limits)
        self.counts, self.stop, self.writers = Counts(), asyncio.Event(), []

    async def __aenter__(self):
        sock = socket.create_server(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        policy = TransferPolicy(journal=self.zone.journal, networks=self.networks)
        self.task = asyncio.create_task(
            serve_tcp(sock, self.zone.table, self.counts, self.stop, self.limits, transfers=policy)
        )
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self.stop.set()
        await self.task
        for writer in self.writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def connect(self, **options):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **options)
        self.writers.append(writer)
        return reader, writer

    async def ask(self, *queries):
        """A connection that has asked these."""
        reader, writer = await self.connect()
        writer.write(b"".join(map(frame, queries)))
        return reader


def frame(message):
    octets = message if isinstance(message, bytes) else message.to_wire()
    return struct.pack("!H", len(octets)) + octets


def axfr(name=APEX, **options):
    return dns.message.make_query(name, "AXFR", **options)


def ixfr(serial, name=APEX, **options):
    query = dns.message.make_query(name, "IXFR", **options)
    soa = f". . {serial} 0 0 0 0"
    query.authority.append(dns.rrset.from_text(name, 0, "IN", "SOA", soa))
    return query


async def octets_of(reader):
    (length,) = struct.unpack("!H", await reader.readexactly(2))
    return await reader.readexactly(length)


async def message_of(reader, *, one_rr_per_rrset=True):
    return dns.message.from_wire(await octets_of(reader), one_rr_per_rrset=one_rr_per_rrset, xfr=True)


async def records_of(reader):
    """The records of a transfer, in words, and its messages; of changes those that fit one message."""
    messages, records, soa, soas = [], [], None, 0
    while True:
        message = await message_of(reader)
        messages.append(message)
        for rrset in message.answer:
            records.append(rrset.to_text())
            soa = soa or rrset
            soas += rrset == soa
        single = len(records) == 1 and message.question[0].rdtype == dns.rdatatype.IXFR
        if soas >= 2 or single:
            return records, messages


async def followed(world, zone, serial=None):
    """What a secondary makes of a transfer into its copy of the zone."""
    query, _ = dns.xfr.make_query(zone, serial=serial)
    await dns.asyncquery.inbound_xfr("127.0.0.1", zone, query, port=world.port, timeout=60)
    return contents(zone)


def contents(zone):
    return sorted(f"{name} {ttl} {rdata}".lower() for name, ttl, rdata in zone.iterate_rdatas())


def a(number):
    return ("A", 300, f"192.0.2.{number}")


def large(zone, names):
    zone.change(*[(f"n{number}.{APEX}", a(number % 256)) for number in range(names)])
    return zone


def wide(zone):
    """More octets than the sockets in between can hold."""
    rrsets = (ServedRRset(65280, 300, (bytes(20_000),)),)
    names = [ServedName(wire(APEX), wire(f"wide{number}.{APEX}"), rrsets) for number in range(600)]
    zone.table.apply([Change(APEX, KIND_NAME, name.owner.hex(), encode(name)) for name in names])
    zone.change((f"www.{APEX}", WWW))


@pytest.fixture
def zone():
    zone = Changing(APEX)
    zone.change((f"www.{APEX}", WWW, *TYPES), (f"deep.er.{APEX}", a(3)))
    zone.change((f"sub.{APEX}", ("NS", 300, f"ns.sub.{APEX}")), (f"ns.sub.{APEX}", a(4)), (f"*.{APEX}", a(5)))
    return zone


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(coroutine, 300))

    return run


def test_a_whole_zone(run, zone):
    async def main():
        async with World(zone) as world:
            records, (message,) = await records_of(await world.ask(axfr(id=4711)))
        assert records[0] == records[-1]
        assert " SOA " in records[0]
        assert (message.id, dns.flags.to_text(message.flags)) == (4711, "QR AA RD")
        assert len(records) == 2 + 1 + 2 + 1 + 3 + 2 + 3 + 1 + 2 + 1
        assert f"sub.{APEX} 300 IN NS ns.sub.{APEX}" in records
        assert f"*.{APEX} 300 IN A 192.0.2.5" in records
        assert f"www.{APEX} 300 IN MX 30 mail.example.net." in records
        assert world.counts[Slot.TRANSFERS_WHOLE] == 1

    run(main())


def test_a_secondary_takes_it_whole_and_follows_the_changes(run, zone, monkeypatch):
    monkeypatch.setattr(tcp, "SWEEP_SECONDS", 300)  # counts are handed over by then, or at the end

    async def main():
        async with World(zone, idle_seconds=600) as world:
            copy = dns.versioned.Zone(APEX, relativize=False)
            first = await followed(world, copy)
            zone.change((f"www.{APEX}", a(9), TYPES[2]), (f"deep.er.{APEX}",))
            zone.change((f"www.{APEX}", a(9), ("TXT", 60, '"three"')), (f"new.{APEX}", a(8)))
            second = await followed(world, copy, serial=zone.serial - 2)
            assert second != first
            assert second == await followed(world, dns.versioned.Zone(APEX, relativize=False))
            kinds = (Slot.TRANSFERS_WHOLE, Slot.TRANSFERS_CHANGES, Slot.TRANSFERS_REFUSED)
            assert [world.counts[kind] for kind in kinds] == [0, 0, 0]  # not handed over yet
        assert [world.counts[kind] for kind in kinds] == [2, 1, 0]

    run(main())


def test_changes_are_told_serial_by_serial(run, zone):
    zone.change((f"www.{APEX}", a(9)))
    zone.change((f"new.{APEX}", a(8)))

    async def main():
        async with World(zone) as world:
            records, _ = await records_of(await world.ask(ixfr(zone.serial - 1)))
            assert [line.split()[3] for line in records] == ["SOA", "SOA", "SOA", "A", "SOA"]
            serials = [int(line.split()[6]) for line in records if " SOA " in line]
            assert serials == [zone.serial, zone.serial - 1, zone.serial, zone.serial]
            assert records[3].startswith("new.")
            records, _ = await records_of(await world.ask(ixfr(zone.serial - 2)))
            assert sum(" SOA " in line for line in records) == 6

    run(main())


@pytest.mark.parametrize("ahead", [0, 1, 1000])
def test_who_has_the_serial_gets_the_serial(ahead, run, zone):
    async def main():
        async with World(zone) as world:
            records, _ = await records_of(await world.ask(ixfr(zone.serial + ahead)))
            assert len(records) == 1
        assert world.counts[Slot.TRANSFERS_CURRENT] == 1

    run(main())


def test_who_is_too_far_behind_gets_the_zone(run, zone):
    async def main():
        async with World(zone) as world:
            whole, _ = await records_of(await world.ask(axfr()))
            records, _ = await records_of(await world.ask(ixfr((zone.serial - 1000) % 2**32)))
            assert records == whole

    run(main())


def test_the_zone_is_sent_when_it_is_shorter_than_its_changes(run, zone):
    for number in range(400):
        zone.change((f"www.{APEX}", a(number % 256)))

    async def main():
        async with World(zone) as world:
            records, _ = await records_of(await world.ask(ixfr(zone.serial - 400)))
            assert sum(" SOA " in line for line in records) == 2
            records, _ = await records_of(await world.ask(ixfr(zone.serial - 10)))
            assert sum(" SOA " in line for line in records) == 22

    run(main())


def test_a_large_zone_comes_in_bounded_messages_of_one_serial(run, zone):
    large(zone, 3000)

    async def main():
        async with World(zone) as world:
            reader = await world.ask(axfr(use_edns=0))
            first = await octets_of(reader)
            zone.change((f"n2999.{APEX}",), (f"later.{APEX}", a(1)))  # while the transfer is under way
            messages = [dns.message.from_wire(first, xfr=True)]
            while sum(rrset.rdtype == dns.rdatatype.SOA for m in messages for rrset in m.answer) < 2:
                octets = await octets_of(reader)
                assert len(octets) <= MESSAGE_OCTETS
                messages.append(dns.message.from_wire(octets, xfr=True))
            names = {str(rrset.name) for message in messages for rrset in message.answer}
            assert len(messages) > 3
            assert f"n2999.{APEX}" in names
            assert f"later.{APEX}" not in names
            assert [message.edns for message in messages] == [0] + [-1] * (len(messages) - 1)

    run(main())


def test_a_record_larger_than_a_message_has_one_for_itself(run, zone):
    text = " ".join(f'"{"x" * 255}"' for _ in range(200))
    zone.change((f"big.{APEX}", ("TXT", 300, text)))

    async def main():
        async with World(zone) as world:
            records, messages = await records_of(await world.ask(axfr()))
            assert sum("xxx" in line for line in records) == 1
            assert len(messages) == 3

    run(main())


def test_what_is_asked_behind_a_transfer_is_answered_behind_it(run, zone):
    large(zone, 2000)

    async def main():
        async with World(zone) as world:
            www = dns.message.make_query(f"www.{APEX}", "A")
            reader = await world.ask(www, axfr(), www, ixfr(zone.serial), www)
            assert len((await message_of(reader)).answer) == 2
            records, _ = await records_of(reader)
            assert len(records) > 2000
            assert len((await message_of(reader)).answer) == 2
            assert len((await records_of(reader))[0]) == 1
            assert len((await message_of(reader)).answer) == 2

    run(main())


def test_others_are_answered_while_a_client_does_not_read_its_transfer(run, zone):
    wide(zone)

    async def main():
        async with World(zone) as world:
            _reader, writer = await world.connect(limit=1024)
            writer.transport.pause_reading()
            writer.write(frame(axfr()))
            other = await world.ask(dns.message.make_query(f"www.{APEX}", "A"))
            assert len((await message_of(other)).answer) == 2
            writer.transport.abort()

    run(main())


def test_a_client_that_does_not_read_its_transfer_is_ended_as_any_other(run, zone):
    wide(zone)

    async def main():
        async with World(zone, idle_seconds=0.5) as world:
            _reader, writer = await world.connect(limit=1024)
            writer.transport.pause_reading()
            writer.write(frame(axfr()))
            while not world.counts[Slot.TCP_CONNECTIONS] or world.counts[Slot.TCP_OPEN]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    run(main())


def test_a_zone_in_the_middle_of_a_change_is_transferred_after_it(run, zone):
    *names, _row, soa = zone.changes((f"www.{APEX}", a(9)), (f"new.{APEX}", a(8)))

    async def main():
        async with World(zone) as world:
            zone.table.apply(names[:1])
            reader = await world.ask(axfr())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.05)
            zone.table.apply(names[1:])
            zone.table.apply([soa])
            records, _ = await records_of(reader)
            assert f" {zone.serial} " in records[0]
            assert any(line.startswith("new.") for line in records)

    run(main())


def test_a_change_that_is_never_completed_is_servfail(run, zone, monkeypatch):
    monkeypatch.setattr(transfer, "SETTLE_LOOKS_MAX", 2)
    zone.table.apply(zone.changes((f"www.{APEX}", a(9)))[:1])

    async def main():
        async with World(zone) as world:
            assert (await message_of(await world.ask(axfr()))).rcode().name == "SERVFAIL"

    run(main())


def test_a_zone_that_goes_meanwhile_is_not_ours(run, zone):
    zone.table.apply(zone.changes((f"www.{APEX}", a(9)))[:1])

    async def main():
        async with World(zone) as world:
            reader = await world.ask(axfr())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0.03)
            zone.table.apply([type(zone.changes()[0])(APEX)])
            assert (await message_of(reader)).rcode().name == "NOTAUTH"

    run(main())


NETWORKS = [
    ((), "REFUSED"),
    (("192.0.2.0/24", "2001:db8::/32"), "REFUSED"),
    (("::1/128", "127.0.0.1/32"), "NOERROR"),
    (("0.0.0.0/0",), "NOERROR"),
]


@pytest.mark.parametrize(("networks", "rcode"), NETWORKS)
@pytest.mark.parametrize("query", [axfr(), ixfr(1)], ids=["AXFR", "IXFR"])
def test_only_those_who_may_get_a_zone(query, networks, rcode, run, zone):
    async def main():
        async with World(zone, tuple(map(ip_network, networks))) as world:
            message = await message_of(await world.ask(query))
            assert message.rcode().name == rcode
            assert bool(message.answer) is (rcode == "NOERROR")
        assert world.counts[Slot.TRANSFERS_REFUSED] == (rcode == "REFUSED")

    run(main())


PEERS = [
    ("127.0.0.1", True),
    ("::ffff:127.0.0.1", True),
    ("::1", False),
    ("fe80::1%lo", False),
    ("10.0.0.1", False),
]


@pytest.mark.parametrize(("peer", "allowed"), PEERS)
def test_addresses_are_compared_as_addresses(peer, allowed, zone):
    transfers = transfer.Transfers(zone.table, zone.journal, Asker(zone.table).tally, LOOPBACK)

    (first, *_) = transfers.begin(axfr().to_wire()[2:], peer)

    assert first[1] & 15 == (0 if allowed else 5)


NO_SOA = ixfr(1).to_wire().replace(b"\0\6\0\1", b"\0\7\0\1")
REFUSED = [
    ("a name that is no apex", axfr(f"www.{APEX}"), "NOTAUTH"),
    ("a zone of others", axfr("example.net."), "NOTAUTH"),
    ("changes without a serial", dns.message.make_query(APEX, "IXFR"), "FORMERR"),
    (
        "changes since something that is no SOA",
        NO_SOA,
        "FORMERR",
    ),
    ("half a serial", ixfr(1).to_wire()[:-6], "FORMERR"),
    ("octets behind the request", axfr().to_wire() + b"x", "FORMERR"),
    ("class CH", dns.message.make_query(APEX, "AXFR", rdclass="CH"), "REFUSED"),
    ("another opcode", axfr().to_wire()[:2] + b"\x20" + axfr().to_wire()[3:], "NOTIMP"),
]


@pytest.mark.parametrize(
    ("query", "rcode"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_requests_that_get_no_zone(query, rcode, run, zone):
    async def main():
        async with World(zone) as world:
            reader = await world.ask(query, dns.message.make_query(f"www.{APEX}", "A"))
            assert (await octets_of(reader))[3] & 15 == dns.rcode.from_text(rcode)
            assert len((await message_of(reader)).answer) == 2

    run(main())


def test_a_query_that_only_looks_like_a_transfer_is_answered_as_ever(run, zone):
    option = dns.edns.GenericOption(65001, b"\0\0\xfc\0\1")

    async def main():
        async with World(zone) as world:
            query = dns.message.make_query(f"www.{APEX}", "A", use_edns=0, options=[option])
            assert len((await message_of(await world.ask(query))).answer) == 2

    run(main())


def test_as_many_transfers_at_a_time_as_an_address_may_have(run, zone, monkeypatch):
    monkeypatch.setattr(transfer, "DNS_TRANSFERS_ADDRESS", transfer.DNS_TRANSFERS_ADDRESS._replace(limit=1))
    wide(zone)

    async def main():
        async with World(zone) as world:
            first, writer = await world.connect(limit=1024)
            writer.write(frame(axfr()))
            await first.readexactly(2)
            writer.transport.pause_reading()
            assert (await message_of(await world.ask(axfr()))).rcode().name == "SERVFAIL"
            writer.transport.abort()
            while not (message := await message_of(await world.ask(ixfr(zone.serial)))).answer:
                assert message.rcode().name == "SERVFAIL"
                await asyncio.sleep(0.02)

    run(main())


def test_over_udp_changes_get_our_serial_and_whole_zones_are_refused(zone):
    ask = Asker(zone.table)
    query = ixfr(1)
    reply = dns.message.from_wire(ask.raw(query.to_wire()))

    rcode, flags, answer, authority, additional = said(reply)
    assert (rcode, flags, len(answer), authority, additional) == ("NOERROR", "AA", 1, [], [])
    assert f" {zone.serial} " in answer[0]
    assert ask(APEX, "AXFR").rcode().name == "REFUSED"
