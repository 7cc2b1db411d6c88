"""The name servers' own names: answered, and nothing beside them claimed."""

import pytest

from edgestead.dns.own import own_names
from edgestead.dns.table import Table
from edgestead.dns.trace import trace
from tests.dns.serving import Asker, Change, changes_of, read_zone, said, wire

SERVERS = ("ns1.edge.test", "NS2.edge.test")
ADDRESSES = ("192.0.2.53", "2001:db8::53", "192.0.2.54")
SOA = "ns1.edge.test. 300 soa ns1.edge.test. hostmaster.edge.test. 1 10000 2400 604800 300"
REFUSED = ("REFUSED", "", [], [], [])
ZONE = """
@ 3600 SOA ns1.edge.test. hostmaster.edge.test. 1 7200 900 86400 600
@ 3600 NS ns1.edge.test.
alias 60 CNAME ns1.edge.test.
"""
HELD = "@ 3600 SOA a. b. 1 7200 900 86400 600\n@ 3600 NS a.\nns1 60 A 198.51.100.1\n"

ANSWERS = {
    ("ns1.edge.test", "A"): (
        "NOERROR",
        "AA",
        ["ns1.edge.test. 3600 a 192.0.2.53", "ns1.edge.test. 3600 a 192.0.2.54"],
        [],
        [],
    ),
    ("Ns2.Edge.test", "AAAA"): ("NOERROR", "AA", ["ns2.edge.test. 3600 aaaa 2001:db8::53"], [], []),
    ("ns1.edge.test", "MX"): ("NOERROR", "AA", [], [SOA], []),
    ("ns1.edge.test", "DS"): ("NOERROR", "AA", [], [SOA], []),
    ("edge.test", "A"): REFUSED,
    ("edge.test", "SOA"): REFUSED,
    ("ns3.edge.test", "A"): REFUSED,
    ("a.ns1.edge.test", "A"): REFUSED,
    ("ns1.edge.test", "AXFR"): ("NOTAUTH", "", [], [], []),
    ("alias.example.test", "AAAA"): (
        "NOERROR",
        "AA",
        ["alias.example.test. 60 cname ns1.edge.test.", "ns1.edge.test. 3600 aaaa 2001:db8::53"],
        [],
        [],
    ),
}


@pytest.fixture
def table():
    made = Table(own_names(SERVERS, ADDRESSES))
    made.apply(changes_of(read_zone("example.test.", ZONE)))
    return made


@pytest.mark.parametrize(("question", "answer"), ANSWERS.items(), ids=str)
def test_a_question_gets(question, answer, table):
    assert said(Asker(table)(*question)) == answer


def test_a_zone_that_holds_the_name_is_asked_instead_and_gives_it_back(table):
    ask = Asker(table)
    table.apply(changes_of(read_zone("edge.test.", HELD), "held"))

    assert said(ask("ns1.edge.test"))[2] == ["ns1.edge.test. 60 a 198.51.100.1"]
    assert ask("ns2.edge.test").rcode().name == "NXDOMAIN"

    table.apply([Change("held")])
    assert len(said(ask("ns1.edge.test"))[2]) == 2


def test_the_names_stay_when_all_zones_are_replaced(table):
    table.take_over(Table())

    assert len(said(Asker(table)("ns1.edge.test"))[2]) == 2
    assert table.zones == 0


def test_without_an_address_nothing_is_said():
    assert own_names(SERVERS, ()) == {}
    assert said(Asker(Table(own_names(SERVERS, ())))("ns1.edge.test")) == REFUSED


def test_the_steps_name_it(table):
    assert trace(table.view, wire("ns1.edge.test."), 1) == [
        "zone ns1.edge.test. answers for ns1.edge.test.",
        "2 records with TTL 3600",
    ]
