"""NOTIFY as it comes: answered for zones that are here, and passed on with its address."""

import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.tsig
import pytest

from edgestead.dns.keyring import Keyring
from edgestead.dns.tsig import Key
from tests.dns.serving import Asker, table_of, wire

ZONE = "zone.test."


@pytest.fixture
def told():
    return []


@pytest.fixture
def ask(told):
    asker = Asker(table_of({ZONE: "@ 60 IN SOA ns.test. h.test. 1 2 3 4 5\n@ 60 IN NS ns.test.\n"}))
    asker.responder.notified = lambda client: lambda name: told.append((client, name))

    def ask(message):
        octets = message if isinstance(message, bytes) else message.to_wire()
        return dns.message.from_wire(asker.raw(octets))

    return ask


@pytest.mark.parametrize(
    ("secret", "rcode"), [(b"s" * 32, dns.rcode.NOERROR), (b"t" * 32, dns.rcode.NOTAUTH)]
)
def test_a_signed_one_is_answered_with_a_signature_and_a_wrong_one_is_told_to_nobody(told, secret, rcode):
    keyring = Keyring()
    keyring.keys = {b"\3xfr\0": Key(b"\3xfr\0", b"\x0bhmac-sha256\0", b"s" * 32)}
    asker = Asker(
        table_of({ZONE: "@ 60 IN SOA ns.test. h.test. 1 2 3 4 5\n@ 60 IN NS ns.test.\n"}), keyring=keyring
    )
    asker.responder.notified = lambda client: lambda name: told.append((client, name))
    message = notify(ZONE)
    message.use_tsig(dns.tsig.Key("xfr", secret, "hmac-sha256"))

    octets = asker.raw(message.to_wire())

    assert octets[3] & 0xF == rcode
    assert bool(told) == (rcode == dns.rcode.NOERROR)
    if told:
        reply = dns.message.from_wire(octets, keyring=message.keyring, request_mac=message.mac)
        assert (reply.had_tsig, reply.opcode(), reply.id) == (True, dns.opcode.NOTIFY, message.id)


def notify(name, type_="SOA"):
    message = dns.message.make_query(name, type_, flags=dns.flags.AA, use_edns=False)
    message.set_opcode(dns.opcode.NOTIFY)
    return message


def test_it_is_answered_and_passed_on(ask, told):
    reply = ask(notify("ZONE.test."))

    assert (reply.rcode(), reply.opcode()) == (dns.rcode.NOERROR, dns.opcode.NOTIFY)
    assert reply.flags & dns.flags.QR
    assert told == [(bytes((192, 0, 2, 53)), wire(ZONE))]


@pytest.mark.parametrize(
    ("message", "rcode"),
    [
        (notify("www.zone.test."), dns.rcode.NOTAUTH),
        (notify("other.test."), dns.rcode.NOTAUTH),
        (notify(ZONE, "A"), dns.rcode.FORMERR),
        (notify(ZONE).to_wire()[:20], dns.rcode.FORMERR),
        (notify(ZONE).to_wire()[:12] + b"\xc0\x0c\0\6\0\1", dns.rcode.FORMERR),
    ],
    ids=["below", "elsewhere", "no SOA", "cut", "pointer"],
)
def test_what_is_none_is_refused_and_told_to_nobody(ask, told, message, rcode):
    assert ask(message).rcode() == rcode
    assert told == []
