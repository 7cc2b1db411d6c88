"""Chains of denials with holes: of empty non-terminals, and between two parts of a change."""

import os
import struct
from typing import NamedTuple

import pytest

from edgestead.dns.lookup import lookup
from edgestead.dns.table import Table
from edgestead.model import dnssec, names
from edgestead.model.served import KIND_NAME, KIND_ZONE, ServedName, ServedRRset, ServedZone, encode

APEX = names.wire_from_text("x.test")
A, NS, SOA, TXT, RRSIG, NSEC, NSEC3 = 1, 2, 6, 16, 46, 47, 50
NXDOMAIN, SERVFAIL = 3, 2
PARAMS = dnssec.Nsec3Params(1, 0, b"")


class Entry(NamedTuple):
    kind: str
    key: str
    doc: bytes
    scope: str = "z"


def signature(covered):
    return struct.pack("!HBBIIIH", covered, 13, 2, 300, 2_000_000_000, 1_000_000_000, 1) + APEX + bytes(64)


def link(following):
    return dnssec.nsec(names.wire_from_text(following), [A])


def hashed_link(salt=b""):
    return bytes((1, 0, 0, 0, len(salt))) + salt + b"\x14" + b"x" * 20 + b"\0\1\x40"


def at(name, *rrsets):
    """Records of types with their signatures as (type, rdata); a name of x.test."""
    owner = names.wire_from_text(name) if isinstance(name, str) else name
    served = [ServedRRset(type_, 300, (rdata,)) for type_, rdata in rrsets]
    covered = tuple(signature(type_) for type_, _ in rrsets)
    served.append(ServedRRset(RRSIG, 300, covered))
    return Entry(KIND_NAME, owner.hex(), encode(ServedName(APEX, owner, tuple(served))))


def soa():
    rdata = b"\0\0" + struct.pack("!5I", 1, 2, 3, 4, 5)
    return Entry(KIND_ZONE, "", encode(ServedZone(APEX, 300, rdata, soa_rrsigs=(signature(SOA),))))


def hashed(name, salt=b""):
    label = dnssec.nsec3_label(names.wire_from_text(name), PARAMS)
    return at(label + APEX, (NSEC3, hashed_link(salt)))


APEX_NS = (NS, b"\0")
CHAINS = {
    "none": [at("x.test", APEX_NS)],
    "a wildcard that is an empty non-terminal": [
        at("x.test", APEX_NS, (NSEC, link("a.*.x.test"))),
        at("a.*.x.test", (A, b"abcd"), (NSEC, link("x.test"))),
    ],
    "a wildcard that is not in it": [
        at("x.test", APEX_NS, (NSEC, link("x.test"))),
        at("*.x.test", (A, b"abcd")),
    ],
    "hashed, without the apex": [at("x.test", APEX_NS), at("*.x.test", (A, b"abcd")), hashed("a.x.test")],
}


def table(*entries):
    made = Table()
    made.apply([*entries, soa()])
    return made


def asked(made, name, type_=A):
    wire, view = names.wire_from_text(name), made.view
    return lookup(view, view.zone_of(wire), wire, type_.to_bytes(2, "big") + b"\0\1", True)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(("name", "type_"), [("q.x.test", A), ("q.x.test", TXT), ("x.test", TXT)])
def test_a_question_is_answered_whatever_a_chain_lacks(chain, name, type_):
    assert asked(table(*CHAINS[chain]), name, type_)


def test_an_empty_wildcard_is_denied_by_the_record_before_it():
    found = asked(table(*CHAINS["a wildcard that is an empty non-terminal"]), "q.x.test")

    assert found.slot != NXDOMAIN  # the wildcard exists
    assert found.tail.count(NSEC.to_bytes(2, "big") + b"\0\1") >= 2  # over the name and over the wildcard


def test_a_zone_answers_between_two_parts_that_change_its_chain():
    made = table(at("x.test", APEX_NS, (NSEC, link("x.test"))))
    made.apply([at("x.test", APEX_NS)])

    assert asked(made, "q.x.test").slot == NXDOMAIN


def test_no_chain_is_kept_that_has_no_records():
    made = table(at("x.test", APEX_NS))
    for _ in range(20):
        made.apply([hashed("a.x.test", os.urandom(8)), soa()])

    assert len(made.view.zones[APEX].signatures._hashed) == 1


OTHER = names.wire_from_text("other.test")


def other(last):
    rrsets = (ServedRRset(A, 300, (bytes((192, 0, 2, last)),)),)
    return Entry(KIND_NAME, OTHER.hex(), encode(ServedName(OTHER, OTHER, rrsets)), "o")


def other_soa():
    rdata = b"\0\0" + struct.pack("!5I", 1, 2, 3, 4, 5)
    return Entry(KIND_ZONE, "", encode(ServedZone(OTHER, 300, rdata)), "o")


def test_a_name_that_cannot_be_served_takes_its_zone_and_no_other():
    rrsets = (ServedRRset(NSEC, 300, (link("x.test"),)),)  # not signed
    owner = names.wire_from_text("a.x.test")
    broken = Entry(KIND_NAME, owner.hex(), encode(ServedName(APEX, owner, rrsets)))
    made = table(at("x.test", APEX_NS, (NSEC, link("x.test"))), other(1), other_soa())
    assert asked(made, "x.test", NS).slot == 0

    for batch in ([broken, other(2)], [soa()]):
        made.apply(batch)
        assert asked(made, "x.test", NS).slot == SERVFAIL
        assert bytes((192, 0, 2, 2)) in asked(made, "other.test").tail

    made.apply([at("a.x.test", (A, b"abcd")), soa()])
    assert b"abcd" in asked(made, "a.x.test").tail


def test_a_zone_that_comes_with_such_a_name_is_not_served_from_the_first_moment():
    owner = names.wire_from_text("a.x.test")
    rrsets = (ServedRRset(NSEC, 300, (link("x.test"),)),)
    broken = Entry(KIND_NAME, owner.hex(), encode(ServedName(APEX, owner, rrsets)))

    for order in ([broken, soa()], [soa(), broken]):
        made = Table()
        made.apply([at("x.test", APEX_NS), *order])
        assert asked(made, "x.test", NS).slot == SERVFAIL
