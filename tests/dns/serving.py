"""Zones as text, served: what tests of this room share."""

import contextlib
import struct
import threading
from collections import Counter
from functools import cache

import dns.flags
import dns.message
import dns.name
import dns.rdatatype
import dns.zone
import msgspec

from edgestead.dns.answer import Responder
from edgestead.dns.counters import SLOTS, Slot, Tally
from edgestead.dns.settings import DEFAULTS
from edgestead.dns.table import Table
from edgestead.dns.tcp import TcpLimits
from edgestead.model.served import KIND_NAME, KIND_ZONE, ServedName, ServedRRset, ServedZone, encode


class Change(msgspec.Struct, frozen=True):
    scope: str
    kind: str = ""
    key: str = ""
    doc: bytes | None = None


class Counts(Counter):
    def add(self, slot, n):
        self[Slot(slot) if slot < SLOTS else slot] += n


def patient_limits(**limits):
    """Those that are named. Nobody is idle else: a client on a busy machine may say nothing for seconds."""
    return TcpLimits(**{"idle_seconds": 600.0} | limits)


def wire(name):
    return dns.name.from_text(name).canonicalize().to_wire()


def zone_change(
    scope, apex, *, soa_ttl_seconds=3600, minimum_seconds=600, serial=1, mname="ns1.example.net."
):
    numbers = b"".join(n.to_bytes(4, "big") for n in (serial, 7200, 900, 86400, minimum_seconds))
    rdata = wire(mname) + wire("hostmaster.example.net.") + numbers
    return Change(scope, KIND_ZONE, "", encode(ServedZone(wire(apex), soa_ttl_seconds, rdata)))


@cache
def rdata_wire(kind, text):
    """dnspython takes its time for long texts."""
    return dns.rdata.from_text("IN", kind, text).to_wire()


def name_change(scope, apex, owner, *rrsets):
    """`rrsets` are (type, TTL, rdata, rdata, ...) with types and rdata as dnspython reads them."""
    served = tuple(
        ServedRRset(
            dns.rdatatype.from_text(kind),
            ttl,
            tuple(rdata_wire(kind, text) for text in texts),
        )
        for kind, ttl, *texts in rrsets
    )
    return Change(scope, KIND_NAME, wire(owner).hex(), encode(ServedName(wire(apex), wire(owner), served)))


def gone(scope, owner):
    return Change(scope, KIND_NAME, wire(owner).hex(), None)


def read_zone(apex, text):
    return dns.zone.from_text(text, origin=apex, relativize=False, check_origin=False)


def changes_of(zone, scope=None):
    """The feed's changes for a dnspython zone with absolute names, in the order of services: the SOA last."""
    apex = zone.origin.canonicalize().to_wire()
    scope = scope or zone.origin.to_text()
    for name, node in zone.nodes.items():
        owner = name.canonicalize().to_wire()
        rrsets = []
        for rdataset in node.rdatasets:
            rdatas = tuple(rdata.to_wire() for rdata in rdataset)
            if rdataset.rdtype == dns.rdatatype.SOA:
                rrsigs = node.get_rdataset(zone.rdclass, dns.rdatatype.RRSIG, dns.rdatatype.SOA) or ()
                signatures = tuple(rdata.to_wire() for rdata in rrsigs)
                document = ServedZone(apex, rdataset.ttl, rdatas[0], signatures)
                soa = Change(scope, KIND_ZONE, "", encode(document))
            elif rdataset.covers == dns.rdatatype.SOA:
                continue
            else:
                rrsets.append(ServedRRset(int(rdataset.rdtype), rdataset.ttl, rdatas))
        yield Change(scope, KIND_NAME, owner.hex(), encode(ServedName(apex, owner, tuple(rrsets))))
    yield soa


def table_of(zones):
    """A table that serves zones given as {apex: text of the zone}."""
    table = Table()
    for apex, text in zones.items():
        table.apply(changes_of(read_zone(apex, text)))
    return table


class Asker:
    """Asks a table without sockets and reads the replies with dnspython."""

    def __init__(self, table, *, udp=True, settings=DEFAULTS, client=bytes((192, 0, 2, 53)), keyring=None):
        self.counts = Counts()
        self.tally = Tally(self.counts)
        self.responder = Responder(table, self.tally, settings, lambda _: client, udp=udp, keyring=keyring)

    def raw(self, packet):
        """The whole reply to a whole query, as a loop makes it, or None."""
        query = packet[2:]
        self.responder.look_at_the_clock()
        exact = self.responder.exact_of_now()
        reply = exact.get(query)
        if reply is None:
            reply = self.responder.reply(query, 0)
        return None if reply is None else packet[:2] + reply

    def __call__(self, name, kind="A", **options):
        query = dns.message.make_query(name, kind, **options)
        octets = self.raw(query.to_wire())
        reply = dns.message.from_wire(octets)
        assert query.is_response(reply)
        counts = [sum(map(len, section)) for section in reply.sections[1:]]
        counts[2] += reply.edns >= 0
        assert struct.pack("!3H", *counts) == octets[6:12], "a record stands in the reply twice"
        return reply


def said(reply):
    """A reply in words: rcode, flags and each section's records as sorted text."""
    flags = dns.flags.to_text(reply.flags & (dns.flags.AA | dns.flags.TC))
    sections = (
        sorted(
            f"{rrset.name} {rrset.ttl} {dns.rdatatype.to_text(rrset.rdtype)} {rdata}".lower()
            for rrset in section
            for rdata in rrset
        )
        for section in (reply.answer, reply.authority, reply.additional)
    )
    return (reply.rcode().name, flags, *sections)


@contextlib.contextmanager
def running(serve, *arguments):
    """`serve(*arguments, stop)` on a thread until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=serve, args=(*arguments, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()
