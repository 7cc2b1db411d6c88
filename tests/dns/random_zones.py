"""Random zones with every structure that answers depend on, and random questions about them.

Labels come from a small set, so that names meet: as non-terminals, under wildcards, below cuts, at the ends
of aliases. The same number gives the same zones and questions. Two things are left out, because NSD does
them its own way (docs/explanation/dns.md): names that exist only for what another zone holds at or below
them, and asterisks below a cut.
"""

import random
import struct

import dns.rdatatype

LABELS = ["a", "b", "c", "www", "mail", "x1", "_sip", "_tcp", "deep"]
APEXES = ["example.test.", "sub.example.test.", "other.test.", "a.b.other.test.", "third.example."]
QUESTION_TYPES = (
    "A A A AAAA AAAA CNAME MX TXT NS SOA SRV PTR CAA DS HTTPS"
    " TLSA NAPTR HINFO TYPE65280 TYPE1234 DNSKEY NSEC RRSIG ANY TYPE65534 TYPE65535"
).split()
TYPE_NUMBERS = {kind: int(dns.rdatatype.from_text(kind)) for kind in QUESTION_TYPES}
SIZES = [None, None, 0, 400, 512, 1232, 1232, 4096, 65535]


def wire(name):
    labels = name.rstrip(".").split(".") if name != "." else []
    return b"".join(bytes((len(label),)) + label.encode() for label in labels) + b"\0"


def _below_any(name, names):
    return any(name.endswith("." + other) for other in names)


class World:
    """Zones as {apex: text}. With `everything` they hold what NSD does its own way, too."""

    def __init__(self, number, *, everything=False):
        self.number = number
        self._everything = everything
        self.random = random.Random(number)
        self.zones = {}
        self._names = []
        for apex in APEXES:
            self.zones[apex] = self._zone(apex)

    def _zone(self, apex):
        owners = {self._below(apex) for _ in range(self.random.randint(8, 40))}
        records = {
            apex: [f"300 SOA ns1.{apex} hostmaster.{apex} 7 7200 900 86400 {self.random.choice((60, 3600))}"]
        }
        records[apex] += [f"600 NS ns{i}.{apex}" for i in (1, 2)] + self._data(apex, 1)
        records |= {f"ns{i}.{apex}": [f"600 A 192.0.2.{i}"] for i in (1, 2)}
        if apex == "other.test.":
            records["b.other.test."] = ["300 HINFO above another-apex"]
        for owner in sorted(owners):
            records.setdefault(owner, [])
            records[owner] += self._records(owner, alone=not records[owner])
        if self._everything:
            self._names += records
            return "".join(f"{owner} {record}\n" for owner, lines in records.items() for record in lines)
        cuts = {owner for owner, lines in records.items() if owner != apex and " NS " in str(lines)}
        other_apexes = [other for other in APEXES if other.endswith("." + apex)]
        records = {
            owner: lines
            for owner, lines in records.items()
            if not _below_any(owner, other_apexes) and not (owner.startswith("*") and _below_any(owner, cuts))
        }
        self._names += records
        return "".join(f"{owner} {record}\n" for owner, lines in records.items() for record in lines)

    def _below(self, apex):
        labels = [self.random.choice(LABELS) for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 4)))]
        if self.random.random() < 0.12:
            labels[0] = "*"
        return ".".join(labels) + "." + apex

    def _records(self, owner, *, alone):
        chance = self.random.random()
        if alone and chance < 0.25:
            return [f"{self._ttl()} CNAME {self._end()}"]
        if alone and chance < 0.37 and not owner.startswith("*"):
            return self._delegation(owner)
        return self._data(owner, self.random.randint(1, 3))

    def _delegation(self, owner):
        ttl = self._ttl()
        lines = [f"{ttl} NS {target}" for target in {f"ns.{owner}", self._target()}]
        if self.random.random() < 0.5:
            lines.append(f"{self._ttl()} DS 4711 13 2 {'ab' * 32}")
        if self.random.random() < 0.5:
            lines.append(f"{self._ttl()} A 192.0.2.77")
        return lines

    def _data(self, owner, kinds):
        lines = []
        for kind in self.random.sample(list(self._makers()), kinds):
            ttl = self._ttl()
            texts = {self._makers()[kind]() for _ in range(self.random.choice((1, 1, 1, 2, 3)))}
            lines += [f"{ttl} {kind} {text}" for text in sorted(texts)]
        return lines

    def _makers(self):
        number = self.random.randint
        return {
            "A": lambda: f"192.0.2.{number(1, 254)}",
            "AAAA": lambda: f"2001:db8::{number(1, 9999):x}",
            "MX": lambda: f"{number(0, 20)} {self._target()}",
            "TXT": lambda: '"' + "t" * self.random.choice((1, 20, 200)) + f'{number(0, 9)}"',
            "SRV": lambda: f"1 2 {number(1, 9)} {self._target()}",
            "CAA": lambda: f'0 issue "ca{number(1, 9)}.test"',
            "PTR": lambda: self._target(),
            "TYPE65280": lambda: r"\# 4 0a0b0c" + f"{number(16, 99):02d}",
        }

    def _ttl(self):
        return self.random.choice((60, 300, 3600))

    def _target(self):
        if self._names and self.random.random() < 0.3:
            return self.random.choice(self._names).replace("*", "w")
        if self.random.random() < 0.1:
            return "outside.invalid."
        return self._below(self.random.choice(APEXES)).replace("*", "w")

    def _end(self):
        """Of an alias: a target, or an asterisk below it, which is seldom there."""
        target = self._target()
        return f"*.{target}" if self.random.random() < 0.2 else target

    @property
    def owners(self):
        return frozenset(self._names)

    def packet(self, number):
        """A whole query of this ID: a random question, header bits that must not matter, now and then an
        option that nobody knows or a version that there is not."""
        name, kind, payload, do = self.question()
        chosen, ar = self.random, payload is not None
        bits = chosen.choice((0, 0x0100, 0x0100, 0x0100, 0x0120, 0x0110, 0x0040))
        record = b""
        if ar:
            version = 0 if chosen.random() < 0.98 else chosen.choice((1, 100))
            options = b"" if chosen.random() < 0.9 else b"\xfd\xe9\0\2ab"
            record = struct.pack("!BHHBBHH", 0, 41, payload, 0, version, do << 15, len(options)) + options
        head = struct.pack("!6H", number, bits, 1, 0, 0, ar)
        return head + wire(name) + struct.pack("!HH", TYPE_NUMBERS[kind], 1) + record

    def question(self):
        """(name, type, EDNS payload or None, DO) of one random question."""
        chance = self.random.random()
        if chance < 0.55:
            name = self.random.choice(self._names)
        elif chance < 0.9:
            name = self._below(self.random.choice(APEXES))
        else:
            name = self._below(self.random.choice(["test.", "invalid.", "."]))
        if self.random.random() < 0.15:
            name = self.random.choice(LABELS) + "." + name
        if self.random.random() < 0.3:
            name = "".join(self.random.choice((c.lower(), c.upper())) for c in name)
        size = self.random.choice(SIZES)
        do = size is not None and self.random.random() < 0.3
        return name.replace("..", "."), self.random.choice(QUESTION_TYPES), size, do
