"""A reply as facts that can be compared: what is said, without how it is written.

An own reading of RFC 1035, for a hundredth of the time that dnspython takes: a comparison reads millions.
"""

import struct
from typing import NamedTuple

QR, AA, TC, RD, RA, AD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0020, 0x0010
NS, CNAME, SOA, OPT, ANY = 2, 5, 6, 41, 255
NAMES_BEFORE = {2: (0, 1), 5: (0, 1), 6: (0, 2), 12: (0, 1), 15: (2, 1), 33: (6, 1)}
"""Types whose names are written in any case, and at times compressed: octets before them, and how many."""


class Opt(NamedTuple):
    """The OPT record, without the values of its options."""

    version: int
    do: bool
    payload: int
    options: frozenset


class Facts(NamedTuple):
    """Sections are sorted tuples of (owner, type, class, TTL, rdata); names are in lower case."""

    flags: int
    rcode: int
    question: bytes
    answer: tuple
    authority: tuple
    additional: tuple
    opt: Opt | None

    def __str__(self):
        sections = (
            " ".join(f"{owner}/{kind}/{ttl}/{rdata.hex()}" for owner, kind, _, ttl, rdata in section)
            for section in self[3:6]
        )
        flags = f"{self.flags:04x} rcode {self.rcode}"
        return " | ".join((flags, *sections, str(self.opt)))


def facts(reply):
    """Read a whole reply. Raises for what is none, and for octets behind it."""
    flags, qd, an, ns, ar = struct.unpack_from("!5H", reply, 2)
    at = 12
    for _ in range(qd):
        at = _name(reply, at)[1] + 4
    question, sections, opt = reply[12:at], [], None
    for count in (an, ns, ar):
        section = []
        for _ in range(count):
            record, at = _record(reply, at)
            if record[1] == OPT:
                assert opt is None
                opt = record
            else:
                section.append(record)
        sections.append(tuple(sorted(section)))
    assert at == len(reply), "octets behind the message"
    rcode = flags & 15 | (opt[3] >> 24 << 4 if opt else 0)
    return Facts(flags & ~15, rcode, question, *sections, _opt(opt) if opt else None)


def _record(reply, at):
    owner, at = _name(reply, at)
    kind, rdclass, ttl, length = struct.unpack_from("!HHIH", reply, at)
    at += 10
    end = at + length
    assert end <= len(reply)
    before, names = NAMES_BEFORE.get(kind, (0, 0))
    rdata = reply[at : at + before]
    at += before
    for _ in range(names):
        name, at = _name(reply, at)
        rdata += name.encode()
    return (owner, kind, rdclass, ttl, rdata + reply[at:end]), end


def _name(reply, at):
    """A name in lower case with the octets after `at` at which it ends."""
    labels, end = [], None
    for _ in range(128):
        length = reply[at]
        if length >= 0xC0:
            end = at + 2 if end is None else end
            at = (length & 0x3F) << 8 | reply[at + 1]
            continue
        at += length + 1
        if not length:
            return b".".join(labels).decode("latin-1").lower() + ".", at if end is None else end
        labels.append(reply[at - length : at])
    raise AssertionError("a name without end")


def _opt(record):
    _, _, payload, ttl, options = record
    codes, at = set(), 0
    while at < len(options):
        code, length = struct.unpack_from("!HH", options, at)
        codes.add(code)
        at += 4 + length
    return Opt(ttl >> 16 & 255, bool(ttl & 0x8000), payload, frozenset(codes))
