"""Names with a mark, that nobody knows their addresses yet or that they exist without data: the mark itself
never leaves the server, whatever is asked for."""

from ipaddress import ip_network

import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from edgestead.dns.counters import Tally
from edgestead.dns.journal import Journal
from edgestead.dns.trace import trace
from edgestead.dns.transfer import Transfers
from edgestead.model.served import EXISTS, KIND_NAME, PENDING, ServedName, ServedRRset, encode, mark
from tests.dns.serving import Asker, Change, Counts, table_of, wire, zone_change

APEX = "example.test."
ZONE = """
@ 3600 SOA ns1.example.net. hostmaster.example.net. 1 7200 900 86400 600
@ 3600 NS ns1.example.net.
alias 300 CNAME alone
to.empty 300 CNAME empty.wild
*.wild 300 A 192.0.2.99
"""
MARK = mark(PENDING)
FOUR = ServedRRset(1, 60, (bytes((192, 0, 2, 1)),))
TXT = ServedRRset(16, 60, (b"\x04here",))
OWNERS = {
    "alone": (MARK,),
    "half": (FOUR, MARK),
    "beside": (TXT, MARK),
    "*.waits": (MARK,),
    "empty.wild": (mark(EXISTS),),
    "*.nothing": (mark(EXISTS),),
}
RESERVED = (0, 2, 65_280, 65_534, 65_535)
"""Types that no record here has; the marks stand for themselves at some of these numbers."""

ANSWERS = {
    ("alone", "A"): "SERVFAIL",
    ("alone", "AAAA"): "SERVFAIL",
    ("alone", "ANY"): "SERVFAIL",
    ("alone", "MX"): "NOERROR 0",
    ("half", "A"): "NOERROR 1",
    ("half", "AAAA"): "SERVFAIL",
    ("half", "ANY"): "NOERROR 1",
    ("beside", "TXT"): "NOERROR 1",
    ("beside", "A"): "SERVFAIL",
    ("x.waits", "A"): "SERVFAIL",
    ("x.waits", "TXT"): "NOERROR 0",
    ("alias", "A"): "NOERROR 1",
    ("empty.wild", "A"): "NOERROR 0",
    ("empty.wild", "ANY"): "NOERROR 0",
    ("empty.wild", "CNAME"): "NOERROR 0",
    ("a.wild", "A"): "NOERROR 1",
    ("below.empty.wild", "A"): "NXDOMAIN",
    ("to.empty", "A"): "NOERROR 1",
    ("x.nothing", "A"): "NOERROR 0",
    ("x.y.nothing", "TXT"): "NOERROR 0",
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


@pytest.mark.parametrize("kind", RESERVED)
@pytest.mark.parametrize("owner", ["alone", "half", "beside", "x.waits", "empty.wild", "x.nothing", "x.wild"])
def test_a_type_that_nobody_has_is_no_data_at_every_name(owner, kind, table):
    reply = Asker(table)(f"{owner}.{APEX}", f"TYPE{kind}")

    assert (reply.rcode(), reply.answer) == (dns.rcode.NOERROR, [])
    assert [rrset.rdtype for rrset in reply.authority] == [dns.rdatatype.SOA]


def test_an_alias_is_followed_for_such_a_type(table):
    for kind in (65_280, 65_535):
        reply = Asker(table)(f"alias.{APEX}", f"TYPE{kind}")
        assert [rrset.rdtype for rrset in reply.answer] == [dns.rdatatype.CNAME]


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


def test_the_steps_say_that_a_name_without_served_records_exists(table):
    steps = trace(table.view, wire(f"empty.wild.{APEX}"), 1)

    assert steps[-1].startswith("it exists, but none of its records is served")
    assert not any("asterisk" in step for step in steps)
