"""Queries with a signature: replies beside which it does not fit, and clients over their limit."""

import base64

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.tsig
import dns.update
import pytest

from edgestead.dns.settings import DnsSettings
from tests.dns.serving import Asker, table_of
from tests.dns.test_update import SECRETS, World, keyring

ZONE = """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
""" + "".join(f"many.example.test. 300 A 10.0.0.{i}\n" for i in range(70))  # 1,154 octets of a reply


@pytest.fixture
def asker():
    return Asker(
        table_of({"example.test.": ZONE}),
        settings=DnsSettings(cookie_secret=bytes(range(32))),
        keyring=keyring(),
    )


def signed(message, key="may"):
    secret = base64.b64encode(SECRETS.get(key, b"nobody knows it")).decode()
    message.use_tsig(dns.tsig.Key(key, secret))
    return message


def said(asker, message):
    return dns.message.from_wire(
        asker.raw(message.to_wire()), keyring=message.keyring, request_mac=message.mac
    )


@pytest.mark.parametrize("cookie", [False, True], ids=["edns", "a cookie"])
def test_a_reply_beside_which_a_signature_does_not_fit_is_truncated(asker, cookie):
    option = [dns.edns.GenericOption(dns.edns.COOKIE, b"abcdefgh")] if cookie else []
    query = dns.message.make_query("many.example.test.", "A", use_edns=0, payload=1232, options=option)
    whole = dns.message.from_wire(asker.raw(query.to_wire()))
    assert (whole.flags & dns.flags.TC, len(whole.answer[0])) == (0, 70)

    reply = said(asker, signed(query))

    assert reply.had_tsig
    assert (reply.flags & dns.flags.TC, reply.rcode(), reply.answer) == (dns.flags.TC, dns.rcode.NOERROR, [])
    assert [option.otype for option in reply.options] == [dns.edns.COOKIE] * cookie


def update():
    made = dns.update.UpdateMessage("example.test")
    made.add("www", 300, "A", "192.0.2.1")
    return made


def full():
    made = dns.message.make_query("many.example.test.", "A")
    made.answer.append(dns.rrset.from_text("a.", 1, "IN", "A", "192.0.2.1"))
    return made


@pytest.mark.parametrize("make", [update, full], ids=["an update", "a query with an answer"])
def test_a_message_that_is_no_query_is_refused_over_the_limit(asker, make):
    world = World()
    asker.responder.update = lambda query, _: world.begin(bytes(2) + query)[2:]
    packet = signed(make(), "nobody").to_wire()
    reply = asker.raw(packet)

    short = packet[:2] + asker.responder.short(packet[2:], reply[2:], 0)

    assert len(reply) > len(short) == 12
    assert dns.message.from_wire(short).rcode() == dns.rcode.REFUSED
