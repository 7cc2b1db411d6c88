"""Zones that queries do not find: lost ones, and private ones but for their apex."""

import dns.message
import msgspec
import pytest

from edgestead.dns.table import Table, parts
from edgestead.model.served import decode_zone, encode
from tests.dns.serving import Asker, changes_of, read_zone, wire

ZONE = "zone.test."
TEXT = """
@ 60 IN SOA ns.test. h.test. 1 2 3 4 5
@ 60 IN NS ns.test.
www 60 IN A 192.0.2.1
*.wild 60 IN A 192.0.2.2
"""
OTHER = """
@ 60 IN SOA ns.test. h.test. 1 2 3 4 5
@ 60 IN NS ns.test.
alias 60 IN CNAME www.zone.test.
"""
NAMES = ("zone.test.", "www.zone.test.", "no.zone.test.", "a.wild.zone.test.", "deep.er.zone.test.")


def changes(**flags):
    """The zone's, whose last one has these flags."""
    *names, last = changes_of(read_zone(ZONE, TEXT))
    return [*names, said(last, **flags)]


def said(change, **flags):
    return msgspec.structs.replace(
        change, doc=encode(msgspec.structs.replace(decode_zone(change.doc), **flags))
    )


def thawed(table):
    again = Table()
    again.thaw(list(parts(table.freeze())))
    return again


@pytest.fixture(params=["told", "from a file"])
def make(request):
    """A table with the zone and another one, as the feed told it, or as a start from a file has it."""

    def made(**flags):
        table = Table()
        table.apply([*changes(**flags), *changes_of(read_zone("other.test.", OTHER))])
        return table if request.param == "told" else thawed(table)

    return made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["A", "SOA", "NS", "DS", "ANY", "TYPE65280"])
def test_a_lost_zone_answers_servfail(make, name, kind):
    asker = Asker(make(lost=True))

    for query in (dns.message.make_query(name, kind), dns.message.make_query(name, kind, want_dnssec=True)):
        reply = dns.message.from_wire(asker.raw(query.to_wire()))
        assert reply.rcode().name == ("SERVFAIL" if (name, kind) != (ZONE, "DS") else reply.rcode().name)
        assert not reply.answer


def test_an_alias_into_a_lost_zone_is_answered_without_it(make):
    reply = Asker(make(lost=True))("alias.other.test.")

    assert reply.rcode().name == "NOERROR"
    assert [str(rrset[0]) for rrset in reply.answer] == ["www.zone.test."]


def test_a_lost_zone_is_found_again_with_one_document():
    table = Table()
    table.apply(changes(lost=True))
    table.apply([changes()[-1]])

    assert str(Asker(table)("www.zone.test.").answer[0][0]) == "192.0.2.1"
    table.apply([changes(lost=True)[-1]])
    assert Asker(table)("www.zone.test.").rcode().name == "SERVFAIL"


def test_a_lost_zone_is_not_transferred(make):
    zone = make(lost=True).transferable(wire(ZONE))

    assert not zone.settled


def test_of_a_private_zone_queries_find_the_apex_and_transfers_everything(make):
    table = make(private=True)
    ask = Asker(table)

    assert {name: ask(name).rcode().name for name in NAMES} == dict.fromkeys(NAMES, "NXDOMAIN") | {
        ZONE: "NOERROR"
    }
    assert ask(ZONE, "SOA").answer
    assert wire("www.zone.test.")[:4] in table.transferable(wire(ZONE)).names


def test_a_private_zone_that_goes_is_gone_for_transfers():
    table = Table()
    table.apply(changes(private=True))
    table.apply([msgspec.structs.replace(changes()[-1], kind="", doc=None)])

    assert table.transferable(wire(ZONE)) is None
