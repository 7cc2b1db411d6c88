"""What each EDNS option gets, and what the server says about itself."""

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.rdataclass
import pytest

from edgestead.dns.settings import DnsSettings
from tests.dns.serving import Asker, said, table_of

ZONE = """
example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 900 86400 600
example.test. 3600 NS ns1.example.test.
www.example.test. 300 A 192.0.2.80
"""
TABLE = table_of({"example.test.": ZONE})
TOLD = DnsSettings(identity=b"ams-1", version=b"edge 9")
WWW = ("NOERROR", "AA", ["www.example.test. 300 a 192.0.2.80"], [], [])


def ask(*options, name="www.example.test.", kind="A", udp=True, settings=TOLD, **how):
    """The reply, and its options as {code: data}."""
    sent = [dns.edns.GenericOption(code, bytes.fromhex(data)) for code, data in options]
    reply = Asker(TABLE, udp=udp, settings=settings)(name, kind, use_edns=0, options=sent, **how)
    return reply, {int(option.otype): option.to_wire().hex() for option in reply.options}


OPTIONS = {
    # what is sent over UDP, what comes back
    "an identity, if there is one (RFC 5001)": ([(3, "")], {3: b"ams-1".hex()}),
    "an IPv4 subnet (RFC 7871 §7.2.1)": ([(8, "00011800c00002")], {8: "00011800c00002"}),
    "an IPv6 subnet": ([(8, "0002380020010db8000000")], {8: "0002380020010db8000000"}),
    "a subnet of no octets": ([(8, "00010000")], {8: "00010000"}),
    "no family and no address": ([(8, "00000000")], {}),
    "a prefix within an octet": ([(8, "00011400c00000")], {8: "00011400c00000"}),
    "keepalive, which is for TCP (RFC 7828 §3.2.1)": ([(11, "")], {}),
    "padding, which is for encryption (RFC 7830)": ([(12, "00" * 20)], {}),
    "options that nobody knows": ([(65001, "00"), (100, "")], {}),
    "several": ([(65001, "00"), (3, ""), (8, "00010000")], {3: b"ams-1".hex(), 8: "00010000"}),
}
BAD_OPTIONS = {
    "a subnet without a head": (8, "0001"),
    "a family that there is not": (8, "00030000"),
    "a prefix longer than an address": (8, "00012100c000020100"),
    "a scope in a query": (8, "00011818c00002"),
    "too few octets of address": (8, "00011800c000"),
    "too many": (8, "00011800c0000201"),
    "bits behind the prefix": (8, "00011400c00002"),
    "a time-out from a client (RFC 7828 §3.2.1)": (11, "0064"),
}


@pytest.mark.parametrize(("sent", "answered"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_gets(sent, answered):
    reply, options = ask(*sent)

    assert (said(reply), options) == (WWW, answered)


@pytest.mark.parametrize("option", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_a_broken_option_is_formerr(option):
    query = dns.message.make_query(
        "www.example.test.",
        "A",
        use_edns=0,
        options=[dns.edns.GenericOption(option[0], bytes.fromhex(option[1]))],
    )

    assert Asker(TABLE).raw(query.to_wire())[2:] == b"\x81\x01" + bytes(8)


def test_a_server_without_identity_leaves_it_out():
    assert ask((3, ""), settings=DnsSettings())[1] == {}


@pytest.mark.parametrize("options", [b"", b"\0\3\0\0", b"\0\x08\0\2\0\1", b"\0\x0a\0\1\0"])
@pytest.mark.parametrize("version", [1, 2, 255])
def test_another_version_is_badvers_whatever_its_options_say(options, version):
    query = dns.message.make_query("www.example.test.", "A").to_wire()
    record = b"\0\0\x29\x04\xd0\0" + bytes((version,)) + b"\0\0" + len(options).to_bytes(2, "big") + options

    reply = dns.message.from_wire(Asker(TABLE, settings=TOLD).raw(query[:11] + b"\1" + query[12:] + record))

    assert (reply.rcode(), reply.edns, reply.options) == (dns.rcode.BADVERS, 0, ())


REFUSALS = {
    # question, info code (RFC 8914 §4)
    "a zone that is not here": (("www.other.test.", "A"), 20),
    "another class": (("www.example.test.", "A", dns.rdataclass.HS), 20),
    "a transfer": (("example.test.", "AXFR"), 18),
    "what the server does not tell": (("authors.bind.", "TXT", dns.rdataclass.CH), 18),
}


@pytest.mark.parametrize(("question", "code"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_why_to_those_who_speak_edns(question, code):
    name, kind, *rdclass = question
    how = {"rdclass": rdclass[0]} if rdclass else {}
    reply, options = ask(name=name, kind=kind, **how)
    silent = Asker(TABLE)(name, kind, **how)

    assert (reply.rcode(), options) == (dns.rcode.REFUSED, {15: f"{code:04x}"})
    assert (silent.rcode(), silent.edns) == (dns.rcode.REFUSED, -1)


TOLD_NAMES = {
    "version.bind.": "edge 9",
    "VERSION.server.": "edge 9",
    "hostname.bind.": "ams-1",
    "id.server.": "ams-1",
}


@pytest.mark.parametrize(("name", "text"), TOLD_NAMES.items())
@pytest.mark.parametrize("kind", ["TXT", "ANY"])
def test_the_server_says_what_its_operator_lets_it(name, text, kind):
    told = Asker(TABLE, settings=TOLD)(name, kind, rdclass=dns.rdataclass.CH)
    silent = Asker(TABLE, settings=DnsSettings())(name, kind, rdclass=dns.rdataclass.CH)

    (rrset,) = told.answer
    assert (rrset.rdclass, rrset.ttl, [rdata.strings for rdata in rrset]) == (
        dns.rdataclass.CH,
        0,
        [(text.encode(),)],
    )
    assert told.flags & dns.flags.AA
    assert (silent.rcode(), silent.answer) == (dns.rcode.REFUSED, [])


def test_another_type_of_what_the_server_says_is_refused():
    assert (
        Asker(TABLE, settings=TOLD)("id.server.", "A", rdclass=dns.rdataclass.CH).rcode() == dns.rcode.REFUSED
    )


def test_keepalive_is_answered_over_tcp():
    asker = Asker(TABLE, udp=False)
    asker.responder.edns.keepalive_units = 100
    reply = asker("www.example.test.", use_edns=0, options=[dns.edns.GenericOption(11, b"")])

    assert (said(reply), reply.options[0].to_wire()) == (WWW, b"\0\x64")
