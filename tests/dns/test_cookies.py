"""Cookies prove a client's address, to all processes of a server, for an hour (RFC 7873, RFC 9018)."""

import struct

import dns.edns
import dns.message
import dns.rcode
import pytest

from edgestead.dns.cookies import Cookies
from edgestead.dns.counters import Slot
from edgestead.dns.settings import DnsSettings
from tests.dns.serving import Asker, changes_of, read_zone, said, table_of

ZONE = """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
www.example.test. 300 A 192.0.2.80
*.wild.example.test. 300 A 192.0.2.81
alias.example.test. 300 CNAME www.example.test.
cut.example.test. 300 NS ns.cut.example.test.
ns.cut.example.test. 300 A 192.0.2.82
""" + "".join(f"big.example.test. 300 A 10.0.0.{i}\n" for i in range(74))  # 1229 octets with OPT
TABLE = table_of({"example.test.": ZONE})
SECRET = bytes(range(32))
SETTINGS = DnsSettings(cookie_secret=SECRET)
CLIENT, OTHER = bytes((192, 0, 2, 53)), bytes((192, 0, 2, 54))
CLIENT_COOKIE = b"abcdefgh"
NOON = 1_800_000_000
LENGTHS = {8: True, 16: True, 24: True, 40: True, 0: False, 7: False, 9: False, 15: False, 41: False}

NAMES = {
    # name: rcode, flags, number of answers
    "www.example.test.": ("NOERROR", "AA", 1),
    "WwW.eXample.test.": ("NOERROR", "AA", 1),
    "alias.example.test.": ("NOERROR", "AA", 2),
    "x.wild.example.test.": ("NOERROR", "AA", 1),
    "missing.example.test.": ("NXDOMAIN", "AA", 0),
    "x.cut.example.test.": ("NOERROR", "", 0),
    "elsewhere.test.": ("REFUSED", "", 0),
}


class Clock:
    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


def cookie_of(reply):
    (option,) = [option for option in reply.options if option.otype == dns.edns.COOKIE]
    return option.client + option.server


def ask(asker, name, cookie, **options):
    return asker(name, use_edns=0, options=[dns.edns.GenericOption(dns.edns.COOKIE, cookie)], **options)


def test_a_cookie_is_good_for_its_client_and_client_cookie_only():
    cookies = Cookies(SECRET)
    cookie, proved = cookies.answer(CLIENT_COOKIE, CLIENT)

    assert (cookie[:8], len(cookie), proved) == (CLIENT_COOKIE, 24, False)
    assert cookies.answer(cookie, CLIENT) == (cookie, True)
    assert not cookies.answer(cookie, OTHER)[1]
    assert not cookies.answer(b"ABCDEFGH" + cookie[8:], CLIENT)[1]
    assert not Cookies(bytes(32)).answer(cookie, CLIENT)[1]
    for at in range(8, 24):
        damaged = bytearray(cookie)
        damaged[at] ^= 1
        assert not cookies.answer(bytes(damaged), CLIENT)[1]


@pytest.mark.parametrize("octets", [8, 15, 17, 32])
def test_a_server_cookie_of_another_length_proves_nothing(octets):
    cookie, _ = Cookies(SECRET).answer(CLIENT_COOKIE, CLIENT)

    assert not Cookies(SECRET).answer((cookie + bytes(16))[: 8 + octets], CLIENT)[1]


@pytest.mark.parametrize(
    ("age_seconds", "proved", "renewed"),
    [
        (0, True, False),
        (1800, True, False),
        (1861, True, True),
        (3600, True, True),
        (3661, False, True),
        (-300, True, False),
        (-361, False, True),
        (86_400, False, True),
    ],
)
def test_a_cookie_is_renewed_and_grows_old(age_seconds, proved, renewed):
    clock = Clock()
    cookie, _ = Cookies(SECRET, clock).answer(CLIENT_COOKIE, CLIENT)
    clock.now += age_seconds

    answered, good = Cookies(SECRET, clock).answer(cookie, CLIENT)

    assert (good, answered != cookie) == (proved, renewed)
    assert Cookies(SECRET, clock).answer(answered, CLIENT)[1]


def test_what_is_remembered_of_a_cookie_grows_old_with_it():
    clock = Clock()
    cookies = Cookies(SECRET, clock)
    cookie, _ = cookies.answer(CLIENT_COOKIE, CLIENT)
    assert cookies.answer(cookie, CLIENT)[1]

    clock.now += 3661

    assert not cookies.answer(cookie, CLIENT)[1]


def test_a_cookie_from_before_midnight_is_good_after_it():
    clock = Clock()
    clock.now = NOON // 86_400 * 86_400 - 5
    cookie, _ = Cookies(SECRET, clock).answer(CLIENT_COOKIE, CLIENT)
    clock.now += 10

    assert Cookies(SECRET, clock).answer(cookie, CLIENT) == (cookie, True)


@pytest.mark.parametrize("udp", [True, False], ids=["udp", "tcp"])
@pytest.mark.parametrize("name", NAMES)
def test_every_answer_carries_a_cookie_and_is_otherwise_the_same(name, udp):
    """First with the client's cookie alone, then with the one it got, then from another process."""
    asker, other = (Asker(TABLE, settings=SETTINGS, udp=udp) for _ in range(2))
    plain = asker(name, use_edns=0)
    first = ask(asker, name, CLIENT_COOKIE)
    again = ask(asker, name, cookie_of(first))
    elsewhere = ask(other, name, cookie_of(first))

    for reply in (first, again, elsewhere):
        assert said(reply) == said(plain)
        assert cookie_of(reply) == cookie_of(first)
    rcode, flags, answers = NAMES[name]
    assert said(first)[:2] == (rcode, flags)
    assert sum(map(len, first.answer)) == answers
    for counter in (asker, other):
        counter.tally.flush()
        assert counter.counts[Slot.COOKIES_GOOD] == 1


@pytest.mark.parametrize("udp", [True, False], ids=["udp", "tcp"])
def test_a_wrong_server_cookie_is_answered_like_none(udp):
    """RFC 7873 §5.2.4: nobody is over their rate, so the answer comes, and with it a good cookie."""
    asker = Asker(TABLE, settings=SETTINGS, udp=udp)

    reply = ask(asker, "www.example.test.", CLIENT_COOKIE + bytes(16))

    assert said(reply) == ("NOERROR", "AA", ["www.example.test. 300 a 192.0.2.80"], [], [])
    assert cookie_of(reply)[8:] != bytes(16)
    assert not asker.responder.proved


@pytest.mark.parametrize(("octets", "good"), LENGTHS.items())
def test_the_length_of_a_cookie_is_checked(octets, good):
    reply = Asker(TABLE).raw(packet(b"\0\x0a" + octets.to_bytes(2, "big") + bytes(octets)))

    assert (reply[3] & 15 == dns.rcode.FORMERR) == (not good)


def test_of_two_cookies_the_first_counts():
    reply = dns.message.from_wire(Asker(TABLE).raw(packet(b"\0\x0a\0\x08abcdefgh" + b"\0\x0a\0\x08ABCDEFGH")))

    assert cookie_of(reply)[:8] == b"abcdefgh"


@pytest.mark.parametrize("payload", [0, 512, 539, 540, 1000, 1231, 1232, 4096])
def test_the_cookie_finds_room_or_the_reply_is_truncated(payload):
    asker = Asker(TABLE)
    for _ in range(2):
        reply = ask(asker, "big.example.test.", CLIENT_COOKIE, payload=payload)

        assert cookie_of(reply)
        assert said(reply)[1] == "AA TC"
        assert reply.payload == 1232
    assert said(asker("big.example.test.", use_edns=0, payload=1232))[1] == "AA"
    asker.tally.flush()
    assert asker.counts[Slot.TRUNCATED] == 2


def test_a_question_that_looks_like_a_cookie_is_none():
    """The octets of an OPT record with a cookie in the name of a question, and inside another option."""
    record = b"\0\0\x29\x04\xd0\0\0\0\0\0\x0c\0\x0a\0\x08abcdefgh"
    inside = b"\xff\xf0" + len(record).to_bytes(2, "big") + record
    for asker in (Asker(TABLE), Asker(TABLE, udp=False)):
        outer = dns.message.from_wire(asker.raw(packet(inside)))
        assert (outer.rcode(), outer.options) == (dns.rcode.NOERROR, ())

        name = b"\x03www" + bytes((len(record),)) + record + b"\7example\4test\0\0\1\0\1"
        reply = asker.raw(struct.pack("!6H", 1, 0, 1, 0, 0, 0) + name)
        assert reply[3] & 15 == dns.rcode.NXDOMAIN
        cut = asker.raw(struct.pack("!6H", 1, 0, 1, 0, 0, 1) + b"\x03www" + bytes((len(record),)) + record)
        assert cut[3] & 15 == dns.rcode.FORMERR


@pytest.mark.parametrize("kind", ["none", "good", "bad"])
def test_a_query_without_a_question_asks_for_a_cookie(kind):
    """RFC 7873 §5.4."""
    asker = Asker(TABLE, settings=SETTINGS)
    good, _ = Cookies(SECRET).answer(CLIENT_COOKIE, CLIENT)
    cookie = {"none": CLIENT_COOKIE, "good": good, "bad": CLIENT_COOKIE + bytes(16)}[kind]
    body = b"\0\0\x29\x04\xd0\0\0\0\0" + struct.pack("!3H", len(cookie) + 4, 10, len(cookie)) + cookie

    reply = dns.message.from_wire(asker.raw(struct.pack("!6H", 1, 0, 0, 0, 0, 1) + body))

    assert reply.rcode() == (dns.rcode.BADCOOKIE if kind == "bad" else dns.rcode.NOERROR)
    assert cookie_of(reply)[:8] == CLIENT_COOKIE
    assert not reply.question + reply.answer + reply.authority


def packet(options):
    name = b"\3www\7example\4test\0\0\1\0\1"
    return (
        struct.pack("!6H", 1, 0, 1, 0, 0, 1)
        + name
        + b"\0\0\x29\x04\xd0\0\0\0\0"
        + len(options).to_bytes(2, "big")
        + options
    )


def test_each_client_gets_its_own_cookie_with_what_all_are_told_and_a_change_at_once():
    table = table_of({"example.test.": ZONE})
    asker = Asker(table, settings=SETTINGS)
    cookies = [cookie_of(ask(asker, "www.example.test.", client * 8)) for client in (b"a", b"b")]
    for _ in range(2):
        for cookie in cookies:
            reply = ask(asker, "www.example.test.", cookie)
            assert (cookie_of(reply), len(reply.answer)) == (cookie, 1)
        reply = ask(asker, "www.example.test.", cookies[0][:8] + cookies[1][8:])
        assert cookie_of(reply) != cookies[0][:8] + cookies[1][8:], "another client's half is none"
    for text in ("192.0.2.80", "192.0.2.99"):
        table.apply(changes_of(read_zone("example.test.", ZONE.replace("192.0.2.80", text))))
        reply = ask(asker, "www.example.test.", cookies[0])
        assert reply.answer[0][0].address == text
