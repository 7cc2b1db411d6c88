"""Floods of questions that want signatures: each reply parses, fits and is proven; caches stay small."""

import struct

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import pytest

from edgestead.dns import kept
from tests.dns.serving import Asker
from tests.dns.test_signed import APEX, judge_of

KINDS = (
    *("A", "AAAA", "TXT", "MX", "CNAME", "NS", "DS", "SOA", "DNSKEY", "NSEC", "RRSIG", "NSEC3", "ANY"),
    *("CDS", "CDNSKEY", "HTTPS", "SVCB", "ZONEMD", "DNAME"),
)
PAYLOADS = (0, 512, 513, 900, 1232, 1400, 4096, 65_535)
QUESTIONS, MANY_QUESTIONS = 3_000, 60_000
CHANGED_EVERY = 100
JUDGED_EVERY = 8
ENTRIES_MAX = 200
UDP_OCTETS_MAX = 1_232


class Flood:
    def __init__(self, world):
        self.world, self.random = world, world.random
        for _ in range(40):
            world.change()
        for name, content in (("*.out", "www.example.net"), ("*.in", f"*.out.{APEX}")):
            assert world.signed.add(APEX, name, "CNAME", content).status == 200
        assert world.signed.set(APEX, "active").status == 200
        self.asker = Asker(world.signed.table)
        self.sent = self.received = 0

    def name(self):
        """One that is there, one beside or below it, or one that nobody thought of."""
        chance = self.random.random()
        labels = APEX.split(".") if chance < 0.3 else self.world.name().split(".")
        if chance < 0.1:
            labels = ["x", self.random.choice(("out", "in")), *labels]
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 30))):
            labels.insert(0, "".join(self.random.choices("abcwz*-_0", k=self.random.choice((1, 3, 12, 63)))))
        text = ".".join(labels[-60:])
        if self.random.random() < 0.2:
            text = "".join(self.random.choice((one.upper(), one)) for one in text)
        try:
            return dns.name.from_text(text)
        except dns.name.NameTooLong:
            return dns.name.from_text(APEX)

    def packet(self):
        payload = self.random.choice(PAYLOADS)
        kind = self.random.choice(KINDS)
        query = dns.message.make_query(self.name(), kind, want_dnssec=True, payload=payload)
        octets = bytearray(query.to_wire())
        if self.random.random() < 0.1:
            octets[self.random.randrange(2, len(octets))] = self.random.getrandbits(8)
        return bytes(octets), query, payload

    def run(self, questions):
        judge, plain = None, Asker(self.world.signed.table)
        for number in range(questions):
            if number % CHANGED_EVERY == 0:
                self.world.change()
                judge = judge_of(self.world.signed, self.world.signed.asker())
            octets, query, payload = self.packet()
            reply = self.asker.raw(octets)
            if reply is None:
                continue
            self.sent, self.received = self.sent + len(octets), self.received + len(reply)
            assert len(reply) <= UDP_OCTETS_MAX
            read = self._read(reply)
            if octets != query.to_wire():
                continue
            assert len(reply) <= max(512, payload)
            if not read.flags & dns.flags.TC and number % JUDGED_EVERY == 0:
                asked = query.question[0]
                if any(b"*" in label for label in asked.name.labels):
                    continue  # dnspython validates no asterisk that another one answers for
                without = plain(asked.name, dns.rdatatype.to_text(asked.rdtype), payload=4096)
                if asked.rdtype not in (dns.rdatatype.RRSIG, dns.rdatatype.NSEC, dns.rdatatype.ANY):
                    judge.check(asked.name, asked.rdtype, read, without)
            for cache in (self.asker.responder.exact, self.world.signed.table.view.outcomes):
                assert len(cache) <= ENTRIES_MAX

    def _read(self, reply):
        """As a resolver reads it, which counts the records."""
        read = dns.message.from_wire(reply)
        counts = [sum(map(len, section)) for section in read.sections[1:]]
        counts[2] += read.edns >= 0
        assert struct.pack("!3H", *counts) == reply[6:12], read
        return read


@pytest.fixture
def few_entries(monkeypatch):
    monkeypatch.setattr(kept, "ENTRIES_MAX", ENTRIES_MAX)


@pytest.mark.parametrize("seed", [21])
def test_a_flood_of_questions_for_signatures(new_world, few_entries, seed):
    flood = Flood(new_world(seed))
    flood.run(QUESTIONS)
    assert flood.received < 30 * flood.sent


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_long_floods_of_questions_for_signatures(new_world, few_entries, seed):
    Flood(new_world(seed)).run(MANY_QUESTIONS)
