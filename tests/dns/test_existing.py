"""Names that exist without data, in random zones that change, beside a reference that knows only RFC 4592."""

import random

import pytest

from edgestead.dns.table import Table, parts
from edgestead.model.served import EXISTS, KIND_NAME, ServedName, ServedRRset, encode, mark
from tests.dns.serving import Asker, Change, gone, name_change, wire, zone_change

APEX = "example.test."
LABELS = ("a", "b", "c", "*")
ADDRESS = ServedRRset(1, 300, (bytes((192, 0, 2, 1)),))
TEXT = ServedRRset(16, 300, (b"\4text",))
CONTENTS = ((), (mark(EXISTS),), (mark(EXISTS),), (ADDRESS,), (TEXT,), (ADDRESS, TEXT))
KINDS = {"A": 1, "TXT": 16, "MX": 15, "TYPE65535": 65_535}


def said_by_the_book(owners, labels, kind):
    """RFC 4592 §3.3.1 over {labels above the apex: its types}; every name above an owner exists, too."""
    exists = {owner[i:] for owner in owners for i in range(len(owner) + 1)} | {()}
    if labels in exists:
        return "data" if kind in owners.get(labels, ()) else "no data"
    encloser = next(labels[i:] for i in range(1, len(labels) + 1) if labels[i:] in exists)
    source = ("*", *encloser)
    if source not in exists:
        return "no name"
    return "data" if kind in owners.get(source, ()) else "no data"


def said_by_us(ask, labels, kind):
    reply = ask(".".join((*labels, APEX)), kind)
    if reply.rcode():
        return "no name"
    return "data" if reply.answer else "no data"


def _name(chosen):
    return tuple(chosen.choice(LABELS) for _ in range(chosen.randint(1, 4)))


def _change(labels, contents):
    owner = wire(".".join((*labels, APEX)))
    return Change("z", KIND_NAME, owner.hex(), encode(ServedName(wire(APEX), owner, contents)))


def _through_a_file(table):
    made = Table()
    made.thaw(parts(table.freeze()))
    return made


@pytest.mark.parametrize("number", range(8))
def test_a_random_zone_that_changes_is_answered_by_the_book(number):
    chosen, owners, table = random.Random(number), {}, Table()
    table.apply([zone_change("z", APEX), name_change("z", APEX, APEX, ("NS", 300, "ns1.example.net."))])
    for step in range(60):
        labels, contents = _name(chosen), chosen.choice(CONTENTS)
        if owners and chosen.random() < 0.4:
            labels = chosen.choice(list(owners))
        owners[labels] = {rrset.type for rrset in contents if not rrset.is_mark}
        if not contents:
            del owners[labels]
        table.apply([_change(labels, contents) if contents else gone("z", ".".join((*labels, APEX)))])
        if step % 20 == 19:
            table = _through_a_file(table)
        ask = Asker(table)
        for _ in range(12):
            asked, kind = _name(chosen), chosen.choice(list(KINDS))
            assert said_by_us(ask, asked, kind) == said_by_the_book(owners, asked, KINDS[kind]), asked
