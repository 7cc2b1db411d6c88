"""Queries as bytes: headers, EDNS, sizes, and everything that is no query."""

import struct

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.rcode
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgestead.dns.counters import Slot
from tests.dns.serving import Asker, said, table_of

ZONE = (
    """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
www.example.test. 300 A 192.0.2.80
alias.example.test. 300 CNAME www.example.test.
*.wild.example.test. 300 A 192.0.2.81
cut.example.test. 300 NS ns.cut.example.test.
ns.cut.example.test. 300 A 192.0.2.82
"""
    + "".join(f"big.example.test. 300 A 10.0.{i >> 8}.{i & 255}\n" for i in range(60))  # 1005 octets with OPT
    + "".join(f"huge.example.test. 300 A 10.0.{i >> 8}.{i & 255}\n" for i in range(600))
    + "".join(f"inside.example.test. 300 NS ns{i}.inside.example.test.\n" for i in range(12))
    + "".join(f"ns{i}.inside.example.test. 300 AAAA 2001:db8::{i}\n" for i in range(12))
    + "".join(f"beside.example.test. 300 NS n{i}.example.test.\n" for i in range(12))
    + "".join(f"n{i}.example.test. 300 AAAA 2001:db8::{i}\n" for i in range(12))
)
TABLE = table_of({"example.test.": ZONE})

NAME = dns.name.from_text("www.example.test").to_wire()
QUESTION = NAME + b"\0\1\0\1"
RECORD = NAME + b"\0\1\0\1\0\0\0\0\0\4abcd"
OPT = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"


def message(flags=0x0100, qd=1, an=0, ns=0, ar=0, body=QUESTION):
    return struct.pack("!6H", 4711, flags, qd, an, ns, ar) + body


def opt(*, payload=1232, extended=0, version=0, flags=0, options=b"", owner=b"\0"):
    return owner + struct.pack("!HHBBHH", 41, payload, extended, version, flags, len(options)) + options


def ask(packet, *, udp=True):
    reply = Asker(TABLE, udp=udp).raw(packet)
    return None if reply is None else dns.message.from_wire(reply)


COOKIE, NSID = b"\0\x0a\0\x08abcdefgh", b"\0\3\0\0"
UNKNOWN, PADDING = b"\xff\xf0\0\2ab", b"\0\x0c\0\4\0\0\0\0"

FORMERR = {
    "no question": message(qd=0, body=b""),
    "no question, though octets": message(qd=0),
    "two questions (RFC 9619)": message(qd=2, body=QUESTION * 2),
    "the question is missing": message(body=b""),
    "the name is cut": message(body=NAME[:5]),
    "the class is missing": message(body=NAME + b"\0\1"),
    "octets behind the question": message(body=QUESTION + b"\0"),
    "the root, and a name of ours behind it": message(body=b"\0" + QUESTION),
    "the root within a name of ours": message(body=b"\3www\0" + QUESTION),
    "the root where a type of ours could stand": message(body=b"\0\1a" + QUESTION),
    "a label of 64 octets": message(body=b"\x40" + b"a" * 64 + QUESTION),
    "a pointer in the question": message(body=b"\xc0\x0c\0\1\0\1"),
    "a pointer at the end of the name": message(body=b"\3www\xc0\x0c\0\1\0\1"),
    "a name of 256 octets": message(body=(b"\x3f" + b"a" * 63) * 3 + b"\x2d" + b"a" * 45 + QUESTION),
    "an answer in the query": message(an=1, body=QUESTION + RECORD),
    "authority in the query": message(ns=1, body=QUESTION + RECORD),
    "the OPT record is missing": message(ar=1),
    "the OPT record is cut": message(ar=1, body=QUESTION + OPT[:-1]),
    "octets behind the OPT record": message(ar=1, body=QUESTION + OPT + b"\0"),
    "two OPT records (RFC 6891 §6.1.1)": message(ar=2, body=QUESTION + OPT * 2),
    "an OPT record with a name": message(ar=1, body=QUESTION + opt(owner=NAME)),
    "options that do not fill the OPT record": message(ar=1, body=QUESTION + opt(options=b"\0\x0a\0\x09abc")),
    "a cookie of no length that there is": message(
        ar=1, body=QUESTION + opt(options=b"\0\x0a\0\x09abcdefghi")
    ),
    "no question but an OPT record": message(qd=0, ar=1, body=OPT),
    "no question but a name server's identity": message(qd=0, ar=1, body=opt(options=NSID)),
    "an option's head cut": message(ar=1, body=QUESTION + opt(options=b"\0\x0a\0")),
    "more records than a query has": message(ar=17, body=QUESTION + (NAME + b"\0\1\0\1\0\0\0\0\0\0") * 17),
}
DROPPED = {
    "nothing": b"",
    "an octet": b"\0",
    "an ID": b"\0\0",
    "a header cut": message()[:11],
    "a response": message(flags=0x8000),
    "a response with an answer": message(
        flags=0x8400, an=1, body=QUESTION + NAME + b"\0\1\0\1\0\0\0\0\0\4abcd"
    ),
    "a response that is FORMERR": message(flags=0x8001, qd=0, body=b""),
    "a response of opcode NOTIFY": message(flags=0xA400),
}


@pytest.mark.parametrize("packet", FORMERR.values(), ids=FORMERR)
@pytest.mark.parametrize("udp", [True, False], ids=["udp", "tcp"])
def test_what_breaks_the_format_gets_a_header_that_says_so(packet, udp):
    reply = Asker(TABLE, udp=udp).raw(packet)

    assert reply == struct.pack("!6H", 4711, 0x8101, 0, 0, 0, 0)


@pytest.mark.parametrize("packet", DROPPED.values(), ids=DROPPED)
def test_what_is_no_query_gets_nothing(packet):
    asker = Asker(TABLE)

    assert asker.raw(packet) is None

    asker.tally.flush()
    assert asker.counts == {Slot.DROPPED: 1}


@pytest.mark.parametrize("opcode", [1, 2, 3, 4, 5, 6, 15])
def test_other_opcodes_are_not_implemented(opcode):
    reply = Asker(TABLE).raw(message(flags=opcode << 11 | 0x0100))

    assert reply == struct.pack("!6H", 4711, 0x8104 | opcode << 11, 0, 0, 0, 0)


@pytest.mark.parametrize("flags", [0, 0x0010, 0x0020, 0x0040, 0x0080, 0x0100, 0x0130, 0x0400, 0x0200, 0x07FF])
def test_of_the_flags_only_rd_comes_back(flags):
    reply = ask(message(flags=flags))

    assert reply.flags == dns.flags.QR | dns.flags.AA | flags & dns.flags.RD
    assert said(reply)[2] == ["www.example.test. 300 a 192.0.2.80"]


@pytest.mark.parametrize("options", [b"", NSID, UNKNOWN + PADDING, UNKNOWN * 20])
@pytest.mark.parametrize("do", [0, 0x8000])
@pytest.mark.parametrize("z", [0, 0x7FFF])
def test_edns_is_answered_with_one_opt_record_and_no_options(options, do, z):
    reply = ask(message(ar=1, body=QUESTION + opt(flags=do | z, options=options)))

    assert (reply.edns, reply.payload, reply.options) == (0, 1232, ())
    assert reply.ednsflags & 0xFFFF == do
    assert said(reply)[2] == ["www.example.test. 300 a 192.0.2.80"]


def test_without_edns_there_is_none_in_the_reply():
    assert ask(message()).edns == -1


@pytest.mark.parametrize("version", [1, 2, 255])
@pytest.mark.parametrize("do", [0, 0x8000])
def test_an_unknown_edns_version_is_badvers(version, do):
    reply = ask(message(ar=1, body=QUESTION + opt(version=version, flags=do, options=b"\0\x0a\0\1a")))

    assert reply.rcode() == dns.rcode.BADVERS
    assert (reply.edns, reply.ednsflags & 0x8000, reply.answer) == (0, do, [])


def test_other_additional_records_are_passed_over():
    other = NAME + struct.pack("!HHIH", 65280, 1, 0, 3) + b"abc"
    pointed = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + b"abcd"

    reply = ask(message(ar=3, body=QUESTION + pointed + OPT + other))

    assert said(reply)[2] == ["www.example.test. 300 a 192.0.2.80"]
    assert reply.edns == 0


def test_a_signature_of_another_form_is_formerr():
    signature = NAME + struct.pack("!HHIH", 250, 255, 0, 3) + b"abc"

    assert ask(message(ar=1, body=QUESTION + signature)).rcode() == dns.rcode.FORMERR


@pytest.mark.parametrize(
    ("name", "payload", "fits"),
    [
        ("big", None, False),
        ("big", 0, False),
        ("big", 512, False),
        ("big", 1004, False),
        ("big", 1005, True),
        ("big", 1232, True),
        ("big", 4096, True),
        ("huge", 1232, False),
        ("huge", 65535, False),
    ],
)
@pytest.mark.parametrize("write", [str.lower, str.upper])
def test_what_does_not_fit_is_truncated_to_nothing(name, payload, fits, write):
    asker = Asker(TABLE)
    options = {"use_edns": False} if payload is None else {"use_edns": 0, "payload": payload}
    query = dns.message.make_query(write(f"{name}.example.test."), "A", **options)

    replies = [dns.message.from_wire(asker.raw(query.to_wire())) for _ in range(2)]

    for reply in replies:
        assert bool(reply.flags & dns.flags.TC) != fits
        assert bool(reply.answer) == fits
        assert reply.flags & dns.flags.AA
        assert len(reply.to_wire()) <= max(512, min(payload or 0, 1232))


def test_over_tcp_everything_fits():
    assert len(ask(message(body=b"\4huge" + QUESTION[4:]), udp=False).answer[0]) == 600


@pytest.mark.parametrize(
    ("cut", "truncated"), [("inside", True), ("beside", False)], ids=["RFC 9471 §3.1", "RFC 9471 §3.2"]
)
def test_glue_that_does_not_fit(cut, truncated):
    small = Asker(TABLE)(f"www.{cut}.example.test.", use_edns=False)
    large = Asker(TABLE, udp=False)(f"www.{cut}.example.test.", use_edns=False)

    assert len(large.additional) == 12
    assert bool(small.flags & dns.flags.TC) == truncated
    assert small.additional == []
    assert bool(small.authority) != truncated


def test_a_label_may_hold_any_octet():
    body = b"\5a\0.\xff\\" + NAME[4:] + b"\0\1\0\1"

    assert ask(message(body=body)).rcode() == dns.rcode.NXDOMAIN


def test_a_broken_node_fails_its_own_name_only():
    table = table_of({"example.test.": ZONE})
    table.view.zones[dns.name.from_text("example.test.").to_wire()].names[b"\3bad"] = b"\0\0\1"
    asker = Asker(table)

    with pytest.raises(Exception, match="unpack"):
        asker("bad.example.test.")

    assert asker("www.example.test.").rcode() == 0


# Packets near enough to queries to get somewhere: whole queries, then damaged ones, then anything.

LABELS = st.sampled_from(
    [b"www", b"big", b"huge", b"wild", b"cut", b"alias", b"ns", b"*", b"nothing", b"\0", b"A.b"]
)
NAMES = st.lists(LABELS | st.binary(min_size=1, max_size=63), max_size=5).map(
    lambda labels: b"".join(bytes((len(label),)) + label for label in labels)
)
APEXES = st.sampled_from([b"\7example\4test\0", b"\7EXAMPLE\4tEsT\0", b"\4test\0", b"\0"])
KINDS = st.sampled_from([1, 2, 5, 6, 28, 41, 43, 65, 97, 251, 252, 255, 65280]) | st.integers(0, 65535)
OPTS = st.builds(
    opt,
    payload=st.integers(0, 65535),
    version=st.sampled_from([0, 0, 0, 1]),
    flags=st.sampled_from([0, 0x8000, 0xFFFF]),
    options=st.just(b"") | st.binary(max_size=40),
)
QUERIES = st.builds(
    lambda flags, name, apex, kind, rdclass, records: message(
        flags, 1, 0, 0, len(records), name + apex + struct.pack("!HH", kind, rdclass) + b"".join(records)
    ),
    flags=st.sampled_from([0, 0x0100, 0x0130]) | st.integers(0, 65535),
    name=NAMES,
    apex=APEXES,
    kind=KINDS,
    rdclass=st.sampled_from([1, 1, 1, 3, 255]) | st.integers(0, 65535),
    records=st.lists(OPTS, max_size=2),
)


@st.composite
def damaged(draw):
    packet = bytearray(draw(QUERIES))
    for _ in range(draw(st.integers(1, 4))):
        packet[draw(st.integers(0, len(packet) - 1))] = draw(st.integers(0, 255))
    return bytes(packet[: draw(st.integers(0, len(packet)))]) if draw(st.booleans()) else bytes(packet)


ASKERS = {udp: Asker(TABLE, udp=udp) for udp in (True, False)}


@settings(max_examples=1500, deadline=None)
@given(packet=QUERIES | damaged() | st.binary(max_size=600), udp=st.booleans())
@example(packet=message(ar=1, body=QUESTION + opt(payload=0)), udp=True)
def test_any_packet_gets_a_reply_that_parses_and_fits_or_none(packet, udp):
    reply = ASKERS[udp].raw(packet)

    if len(packet) < 12 or packet[2] & 0x80:
        assert reply is None
        return
    assert reply[:2] == packet[:2]
    assert reply[2] & 0xF9 == 0x80 | packet[2] & 0x79
    parsed = dns.message.from_wire(reply) if packet[2] & 0x78 == 0 else None
    size = parsed and parsed.edns >= 0 and 1232
    assert len(reply) <= (size or 512 if udp else 65535)
    fresh = Asker(TABLE, udp=udp).raw(packet)
    assert fresh == reply, "what is kept must not differ from what is worked out"


@settings(max_examples=300, deadline=None)
@given(packet=QUERIES)
def test_truncation_is_the_only_difference_between_transports(packet):
    over_udp, over_tcp = Asker(TABLE, udp=True).raw(packet), Asker(TABLE, udp=False).raw(packet)

    if over_udp is not None and not over_udp[2] & 0x02 and len(over_tcp) <= 512:
        assert over_udp == over_tcp
