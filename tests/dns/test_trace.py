"""Why a question gets its answer, in words; and that the words agree with the answer."""

import dns.rcode
import dns.rdatatype
import pytest

from edgestead.dns.trace import text, trace
from tests.dns.random_zones import World
from tests.dns.serving import Asker, name_change, table_of, wire
from tests.dns.test_answers import EXAMPLE, OTHER

TABLE = table_of({"example.test.": EXAMPLE, "other.test.": OTHER})
HERE = "zone example.test. answers for "

STEPS = {
    ("www.example.test.", "A"): [HERE + "www.example.test.", "1 record with TTL 300"],
    ("www.example.test.", "MX"): [HERE + "www.example.test.", "it has no record of this type: no data"],
    ("nothing.example.test.", "A"): [
        HERE + "nothing.example.test.",
        "there is no nothing.example.test., nor an asterisk under example.test.: NXDOMAIN",
    ],
    ("x.wild.example.test.", "A"): [
        HERE + "x.wild.example.test.",
        "there is no x.wild.example.test.; the asterisk *.wild.example.test. stands in for it",
        "1 record with TTL 300",
    ],
    ("void.example.test.", "A"): [
        HERE + "void.example.test.",
        "void.example.test. exists only because of names below it: no data",
    ],
    ("a.cut.example.test.", "A"): [
        HERE + "a.cut.example.test.",
        "cut.example.test. is delegated: the answer names its servers",
    ],
    ("cut.example.test.", "DS"): [HERE + "cut.example.test.", "1 record with TTL 900"],
    ("across.example.test.", "A"): [
        HERE + "across.example.test.",
        "it is an alias of www.other.test.",
        "zone other.test. answers for www.other.test.",
        "1 record with TTL 300",
    ],
    ("ring1.example.test.", "A"): [
        HERE + "ring1.example.test.",
        "it is an alias of ring2.example.test.",
        HERE + "ring2.example.test.",
        "it is an alias of ring1.example.test.",
        "ring1.example.test. was there before: the aliases form a ring, the answer ends here",
    ],
    ("www.invalid.", "A"): ["no zone here holds www.invalid.: refused, or, behind an alias, left to others"],
}


@pytest.mark.parametrize(("question", "steps"), STEPS.items(), ids=str)
def test_the_steps_are(question, steps):
    name, kind = question

    assert trace(TABLE.view, wire(name), int(dns.rdatatype.from_text(kind))) == steps


def test_an_alias_that_waits_for_its_target_says_so():
    table = table_of({"example.test.": EXAMPLE})
    change = name_change("example.test.", "example.test.", "flat.example.test.", ("TYPE65535", 0, "\\# 0"))
    table.apply([change])

    assert "never resolved" in trace(table.view, wire("flat.example.test."), 1)[-1]
    assert Asker(table)("flat.example.test.", "A").rcode() == dns.rcode.SERVFAIL


@pytest.mark.parametrize("number", range(1, 6))
def test_the_last_step_agrees_with_the_answer(number):
    world = World(number, everything=True)
    table = table_of(world.zones)
    for _ in range(300):
        name, kind, _, _ = world.question()
        steps = trace(table.view, wire(name), int(dns.rdatatype.from_text(kind)))

        rcode = Asker(table, udp=False)(name, kind).rcode()

        assert ("NXDOMAIN" in steps[-1]) == (rcode == dns.rcode.NXDOMAIN), (name, kind, steps)
        assert (len(steps) == 1 and "refused" in steps[0]) == (rcode == dns.rcode.REFUSED)


def test_names_are_written_with_escapes():
    assert text(b"\5a.\\\0\xffz\0"[:1] + b"a.\\\0\xff" + b"\0") == "a\\.\\\\\\000\\255."
    assert text(b"\0") == "."
