"""A row of the journal: what is in it, and what is too much for it."""

import msgspec
import pytest

from edgestead.model import served
from edgestead.model.served import ServedRRset, ServedZone
from edgestead.usecases.serving.publish import ROW_OCTETS_MAX, Journaled, less

BEFORE, AFTER = ServedZone(b"\4test\0", 3600, b"soa 1"), ServedZone(b"\4test\0", 3600, b"soa 2")
A1, A2, A12 = (ServedRRset(1, 300, rdatas) for rdatas in ((b"1",), (b"2",), (b"1", b"2")))
SLOW_A1 = ServedRRset(1, 600, (b"1",))
TXT = ServedRRset(16, 300, (b"1",))

LESS = [
    ("nothing less nothing", (), (), ()),
    ("all of it less nothing", (A12,), (), (A12,)),
    ("the same", (A12,), (A12,), ()),
    ("one record of two", (A12,), (A2,), (A1,)),
    ("another TTL is another record", (A1,), (SLOW_A1,), (A1,)),
    ("another type is another record", (A1,), (TXT,), (A1,)),
    ("of several RRsets what differs", (A12, TXT), (A1, TXT), (A2,)),
]


@pytest.mark.parametrize(("rrsets", "others", "left"), [case[1:] for case in LESS], ids=[c[0] for c in LESS])
def test_less(rrsets, others, left):
    assert less(rrsets, others) == left


def test_a_row_holds_names_that_differ_only():
    journaled = Journaled()
    journaled.take(b"same", (A1,), (A1,))
    journaled.take(b"new", (), (A1,))
    journaled.take(b"changed", (A1, TXT), (A2, TXT))

    row = served.decode_change(journaled.row(BEFORE, AFTER))

    assert (row.before, row.after, row.whole) == (BEFORE, AFTER, True)
    assert row.removed == ((b"changed", (A1,)),)
    assert row.added == ((b"new", (A1,)), (b"changed", (A2,)))


SIGNED_BEFORE, SIGNED_AFTER = (msgspec.structs.replace(one, soa_rrsigs=(b"s",)) for one in (BEFORE, AFTER))
RRSIG = ServedRRset(46, 300, (b"\0\1 of A",))


@pytest.mark.parametrize(
    ("before", "after", "added", "whole"),
    [
        (BEFORE, AFTER, ((b"both", (A1,)),), True),
        (SIGNED_BEFORE, SIGNED_AFTER, ((b"both", (A1, RRSIG)), (b"signed", (RRSIG,))), True),
        (BEFORE, SIGNED_AFTER, (), False),
        (SIGNED_BEFORE, AFTER, (), False),
    ],
    ids=["not given out", "given out", "they come", "they go"],
)
def test_signatures_are_in_rows_as_long_as_they_are_given_out(before, after, added, whole):
    journaled = Journaled()
    journaled.take(b"both", (), (A1, RRSIG))
    journaled.take(b"signed", (A1,), (A1, RRSIG))

    row = served.decode_change(journaled.row(before, after))

    assert (row.added, row.whole) == (added, whole)


@pytest.mark.parametrize(("octets", "whole"), [(ROW_OCTETS_MAX - 200, True), (ROW_OCTETS_MAX, False)])
def test_a_change_that_is_too_large_is_a_gap(octets, whole):
    journaled = Journaled()
    journaled.take(b"large", (), (ServedRRset(16, 300, (bytes(octets),)),))

    document = journaled.row(BEFORE, AFTER)

    row = served.decode_change(document)
    assert row.whole is whole
    assert bool(row.added) is whole
    assert (row.before, row.after) == (BEFORE, AFTER)
    assert len(document) <= ROW_OCTETS_MAX
