"""Which replies are kept whole, under which octets, how large each is booked, and what is counted."""

import struct

import dns.edns
import dns.message
import pytest

from edgestead.dns.answer import FADE_ENTRIES
from edgestead.dns.cookies import LIFE_SECONDS, Cookies
from edgestead.dns.counters import Slot
from edgestead.dns.settings import DnsSettings
from tests.dns.serving import Asker, changes_of, read_zone, said, table_of

ZONE = """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
www.example.test. 300 A 192.0.2.80
w.example.test. 300 A 192.0.2.83
alias.example.test. 300 CNAME www.example.test.
*.wild.example.test. 300 A 192.0.2.81
cut.example.test. 300 NS ns.cut.example.test.
ns.cut.example.test. 300 A 192.0.2.82
""" + "".join(f"big.example.test. 300 A 10.0.0.{i}\n" for i in range(80))
WHOLE = ZONE.replace("cut.example.test. 300 NS ns.cut.example.test.\n", "")  # without a delegation
SECRET = bytes(range(32))
CLIENT = bytes((192, 0, 2, 53))
NOW = (
    1_800_000_000.0  # of an invented clock: after half an hour a cookie is renewed, and a run may take longer
)
FULL_COOKIE = Cookies(SECRET, lambda: NOW).answer(b"abcdefgh", CLIENT)[0]


@pytest.fixture(params=[ZONE, WHOLE], ids=["with a delegation", "without"])
def asker(request):
    made = Asker(table_of({"example.test.": request.param}), settings=DnsSettings(cookie_secret=SECRET))
    made.responder.edns.cookies._now = lambda: NOW
    return made


def query_of(name, kind="A", cookie=None, **options):
    if cookie is not None:
        options |= {"use_edns": 0, "options": [dns.edns.GenericOption(dns.edns.COOKIE, cookie)]}
    return dns.message.make_query(name, kind, **options).to_wire()


def counted(asker, slot):
    asker.tally.flush()
    return asker.counts[slot]


KEPT = {
    # name and type: whether the reply is kept
    "an address": (("www.example.test.", "A"), True),
    "a label of one letter": (("w.example.test.", "A"), True),
    "an alias": (("alias.example.test.", "A"), True),
    "no data": (("www.example.test.", "AAAA"), True),
    "another case": (("WWW.example.test.", "A"), False),
    "no name": (("missing.example.test.", "A"), False),
    "a wildcard": (("x.wild.example.test.", "A"), False),
    "elsewhere": (("elsewhere.test.", "A"), False),
    "truncated": (("big.example.test.", "A"), False),
}


@pytest.mark.parametrize(("asked", "kept"), KEPT.values(), ids=KEPT)
def test_only_steady_replies_to_names_that_exist_are_kept(asker, asked, kept):
    packet = query_of(*asked)

    first = asker.raw(packet)

    exact = asker.responder.exact
    assert exact == ({packet[2:]: first[2:]} if kept else {})
    assert exact.octets == (len(packet) + len(first) - 4 if kept else 0)
    assert asker.raw(packet) == first


@pytest.mark.parametrize("edns", [-1, 0], ids=["plain", "edns"])
def test_what_does_not_fit_is_cut_down_to_its_question(asker, edns):
    reply = dns.message.from_wire(asker.raw(query_of("big.example.test.", use_edns=edns, payload=512)))

    assert reply.flags & dns.flags.TC
    assert not reply.answer
    assert (counted(asker, Slot.TRUNCATED), counted(asker, Slot.NOERROR)) == (1, 1)


@pytest.mark.parametrize("edns", [-1, 0], ids=["plain", "edns"])
@pytest.mark.parametrize("flags", [0, dns.flags.RD], ids=["no recursion", "recursion desired"])
def test_replies_to_every_standard_header_are_kept(asker, flags, edns):
    packet = query_of("www.example.test.", flags=flags, use_edns=edns)

    assert asker.responder.exact_of_now() == {}
    first = asker.raw(packet)

    assert asker.responder.exact == {packet[2:]: first[2:]}


def test_a_name_of_one_rrset_is_sent_from_its_node(asker):
    asker.raw(query_of("www.example.test."))

    assert asker.responder._outcomes == {}


def test_glue_is_not_sent_as_an_answer():
    asker = Asker(table_of({"example.test.": ZONE}))
    referral = (
        "NOERROR",
        "",
        [],
        ["cut.example.test. 300 ns ns.cut.example.test."],
        ["ns.cut.example.test. 300 a 192.0.2.82"],
    )

    assert [said(asker("ns.cut.example.test.", use_edns=False)) for _ in range(2)] == [referral] * 2


def test_what_was_kept_for_a_table_of_the_past_is_let_go_in_portions():
    table = table_of({"example.test.": ZONE})
    responder = Asker(table).responder
    for kept in (responder.exact, responder._before_cookies):
        for number in range(200):
            kept.keep(b"%d" % number, b"", 1)
    table.apply(changes_of(read_zone("example.test.", WHOLE)))

    left = []
    for _ in range(3):
        responder.exact_of_now()
        left.append(sum(map(len, responder._fading)))

    assert left == [400 - FADE_ENTRIES, 0, 0]


COUNTED = {"www": Slot.NOERROR, "missing": Slot.NXDOMAIN, "alias": Slot.NOERROR, "WWW": Slot.NOERROR}


@pytest.mark.parametrize(("label", "slot"), COUNTED.items())
def test_each_reply_that_is_made_counts_once(asker, label, slot):
    for number in range(3):
        asker.raw(query_of(f"{label}{'' if label != 'missing' else number}.example.test."))
        asker.responder.exact.clear()

    assert counted(asker, slot) == 3


def test_a_whole_cookie_is_kept_up_to_where_it_begins(asker):
    packet = query_of("www.example.test.", cookie=FULL_COOKIE)

    first = asker.raw(packet)
    (key,) = asker.responder._before_cookies
    before = asker.responder._before_cookies[key]

    assert packet[2:].startswith(key)
    assert len(packet[2:]) - len(key) == len(FULL_COOKIE)
    assert first[2:].startswith(before)
    assert asker.responder._before_cookies.octets == len(key) + len(before)
    assert asker.responder.proved
    asker.responder.proved = False
    assert asker.raw(packet) == first
    assert asker.responder.proved
    assert counted(asker, Slot.NOERROR) == 2
    assert counted(asker, Slot.COOKIES_GOOD) == 2


def test_a_cookie_that_was_known_grows_old(asker):
    packet = query_of("www.example.test.", cookie=FULL_COOKIE)
    asker.raw(packet)
    assert asker.responder.proved

    asker.responder.proved = False
    asker.responder.edns.cookies._now = lambda: NOW + 2 * LIFE_SECONDS
    asker.raw(packet)

    assert not asker.responder.proved


@pytest.mark.parametrize(
    ("name", "cookie"),
    [
        ("www.example.test.", b"abcdefgh"),
        ("missing.example.test.", FULL_COOKIE),
        ("WWW.example.test.", FULL_COOKIE),
    ],
    ids=["half a cookie", "no name", "another case"],
)
def test_other_replies_with_cookies_are_not_kept(asker, name, cookie):
    for _ in range(2):
        reply = dns.message.from_wire(asker.raw(query_of(name, cookie=cookie)))
        (option,) = reply.options
        assert (option.client, len(option.server)) == (b"abcdefgh", 16)

    assert asker.responder._before_cookies == {}
    asked_twice = Slot.NXDOMAIN if name.startswith("missing") else Slot.NOERROR
    assert counted(asker, asked_twice) == 2


def test_a_cookie_beside_another_option_proves_as_much(asker):
    options = [
        dns.edns.GenericOption(dns.edns.COOKIE, FULL_COOKIE),
        dns.edns.GenericOption(dns.edns.NSID, b""),
    ]
    packet = query_of("www.example.test.", use_edns=0, options=options)

    for number in (1, 2):
        asker.responder.proved = False
        asker.raw(packet)
        assert (asker.responder.proved, counted(asker, Slot.COOKIES_GOOD)) == (True, number)


def test_each_query_of_another_version_of_edns_counts_once(asker):
    for _ in range(2):
        assert dns.message.from_wire(asker.raw(query_of("www.example.test.", use_edns=1))).rcode() == 16

    assert counted(asker, Slot.OTHER_RCODE) == 2


def test_a_query_for_a_cookie_alone_counts_once(asker):
    packet = struct.pack("!6H", 7, 0x0100, 0, 0, 0, 1) + query_of("a.", cookie=b"abcdefgh")[19:]
    wrong = struct.pack("!6H", 7, 0x0100, 0, 0, 0, 1) + query_of("a.", cookie=b"abcdefgh" + bytes(16))[19:]
    for _ in range(2):
        assert asker.raw(packet)[2:4] == b"\x81\x00"
        assert dns.message.from_wire(asker.raw(wrong)).rcode() == 23

    assert counted(asker, Slot.NOERROR) == 2
    assert counted(asker, Slot.OTHER_RCODE) == 2


SHORT = {
    "plain": ({}, False, 0x8200),
    "plain, recursion desired": ({"flags": dns.flags.RD}, False, 0x8300),
    "edns": ({"use_edns": 0}, False, 0x8200),
    "edns, recursion desired": ({"use_edns": 0, "flags": dns.flags.RD}, False, 0x8300),
    "a cookie": ({"cookie": b"abcdefgh"}, True, 0x8000),
    "a cookie, recursion desired": ({"cookie": b"abcdefgh", "flags": dns.flags.RD}, True, 0x8100),
}


@pytest.mark.parametrize(("options", "cookie", "flags"), SHORT.values(), ids=SHORT)
def test_a_short_answer_repeats_the_question_and_says_how_to_come_back(asker, options, cookie, flags):
    packet = query_of("www.example.test.", **{"flags": 0, **options})
    reply = asker.raw(packet)[2:]

    said = packet[:2] + asker.responder.short(packet[2:], reply, 0)
    short = dns.message.from_wire(said)

    assert short.question == dns.message.from_wire(packet).question
    assert short.flags == flags | (7 if cookie else 0)
    assert short.rcode() == (23 if cookie else 0)
    assert (short.answer, short.edns) == ([], 0 if "use_edns" in options or cookie else -1)


def test_a_fault_is_logged_once_for_each_state_of_the_table(asker, caplog):
    packet = query_of("www.example.test.")
    for _ in range(2):
        reply = asker.responder.failed(packet[2:])

    assert reply == b"\x81\x02" + bytes(8)
    assert [record.getMessage() for record in caplog.records] == [
        f"no answer for the query {packet[2:].hex()}"
    ]
    assert counted(asker, Slot.SERVFAIL) == 2
