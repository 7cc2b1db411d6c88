"""A flattened name whose target nobody knows yet: the mark in its place never leaves the server."""

from ipaddress import ip_network

import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from edgestead.dns.counters import Tally
from edgestead.dns.journal import Journal
from edgestead.dns.trace import trace
from edgestead.dns.transfer import Transfers
from edgestead.model.served import KIND_NAME, PENDING, ServedName, ServedRRset, encode
from tests.dns.serving import Asker, Change, Counts, table_of, wire, zone_change

APEX = "example.test."
ZONE = """
@ 3600 SOA ns1.example.net. hostmaster.example.net. 1 7200 900 86400 600
@ 3600 NS ns1.example.net.
alias 300 CNAME alone
"""
MARK = ServedRRset(PENDING, 0, (b"",))
FOUR = ServedRRset(1, 60, (bytes((192, 0, 2, 1)),))
TXT = ServedRRset(16, 60, (b"\x04here",))
OWNERS = {"alone": (MARK,), "half": (FOUR, MARK), "beside": (TXT, MARK), "*.wild": (MARK,)}

ANSWERS = {
    ("alone", "A"): "SERVFAIL",
    ("alone", "AAAA"): "SERVFAIL",
    ("alone", "ANY"): "SERVFAIL",
    ("alone", "MX"): "NOERROR 0",
    ("alone", f"TYPE{PENDING}"): "SERVFAIL",
    ("half", "A"): "NOERROR 1",
    ("half", "AAAA"): "SERVFAIL",
    ("half", "ANY"): "NOERROR 1",
    ("half", f"TYPE{PENDING}"): "SERVFAIL",
    ("beside", "TXT"): "NOERROR 1",
    ("beside", "A"): "SERVFAIL",
    ("beside", f"TYPE{PENDING}"): "SERVFAIL",
    ("x.wild", "A"): "SERVFAIL",
    ("x.wild", "TXT"): "NOERROR 0",
    ("x.wild", f"TYPE{PENDING}"): "SERVFAIL",
    ("alias", "A"): "NOERROR 1",
    ("alias", f"TYPE{PENDING}"): "SERVFAIL",
}


@pytest.fixture(scope="module")
def table():
    made = table_of({APEX: ZONE})
    names = [ServedName(wire(APEX), wire(f"{owner}.{APEX}"), rrsets) for owner, rrsets in OWNERS.items()]
    changes = [Change(APEX, KIND_NAME, name.owner.hex(), encode(name)) for name in names]
    made.apply([*changes, zone_change(APEX, APEX)])
    return made


@pytest.mark.parametrize(("question", "answer"), ANSWERS.items(), ids=str)
def test_addresses_fail_the_rest_is_answered_and_the_mark_is_not(question, answer, table):
    name, kind = question
    reply = Asker(table)(f"{name}.{APEX}", kind)

    said = dns.rcode.to_text(reply.rcode())
    assert (said if said != "NOERROR" else f"{said} {len(reply.answer)}") == answer
    assert all(rrset.rdtype != PENDING for section in reply.sections[1:] for rrset in section)


def test_a_secondary_gets_the_zone_without_it(table):
    transfers = Transfers(table, Journal(), Tally(Counts()), (ip_network("127.0.0.0/8"),))
    query = dns.message.make_query(APEX, "AXFR").to_wire()[2:]

    (message,) = transfers.begin(query, "127.0.0.1")

    reply = dns.message.from_wire(b"\0\0" + message, xfr=True)
    kinds = {dns.rdatatype.to_text(rrset.rdtype) for rrset in reply.answer}
    assert kinds == {"SOA", "NS", "CNAME", "A", "TXT"}


def test_the_steps_say_which_family_waits(table):
    half = wire(f"half.{APEX}")

    assert trace(table.view, half, 1)[-1] == "1 record with TTL 60"
    assert trace(table.view, half, 28)[-1].endswith("never resolved yet: SERVFAIL")
