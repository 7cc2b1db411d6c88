"""Which rows of the journal are there, and from which serials they lead to the zone of now."""

import pytest

from edgestead.dns.journal import Journal, is_newer
from tests.dns.changing import Changing
from tests.dns.serving import Change

HALF = 1 << 31
NEWER = [(1, 0), (HALF - 1, 0), (0, 0xFFFFFFFF), (5, 0xFFFFFFF0), (HALF + 6, 7)]
NOT_NEWER = [(0, 0), (7, 7), (0, 1), (HALF, 0), (0, HALF), (0xFFFFFFFF, 0), (HALF + 8, 7)]


def a(number):
    return ("A", 300, f"192.0.2.{number}")


@pytest.mark.parametrize(("serial", "other"), NEWER)
def test_newer_serials(serial, other):
    assert is_newer(serial, other)


@pytest.mark.parametrize(("serial", "other"), NOT_NEWER)
def test_serials_that_are_not_newer(serial, other):
    assert not is_newer(serial, other)


def test_rows_lead_from_each_serial_to_the_newest():
    zone = Changing(serial=0xFFFFFFFE)
    for number in range(4):
        zone.change(("www.example.test.", a(number)))

    assert zone.serial == 2
    assert [zone.since(serial) for serial in (0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF, 0, 1, 2, 3)] == [
        None,
        4,
        3,
        2,
        1,
        None,
        None,
    ]


def test_a_gap_ends_what_was_before_it():
    zone = Changing()
    zone.change(("www.example.test.", a(1)))
    zone.table.apply(zone.changes(("www.example.test.", a(2))))  # its row gets lost
    zone.change(("www.example.test.", a(3)))

    assert [zone.since(serial) for serial in (1, 2, 3)] == [None, None, 1]


def test_a_change_that_was_too_much_is_a_gap():
    zone = Changing()
    zone.change(("www.example.test.", a(1)))
    texts = [f"{number:03}{'x' * 200}" for number in range(90)]
    zone.change(*[(f"n{number}.example.test.", ("TXT", 300, *texts)) for number in range(20)])
    assert zone.since(1) is zone.since(2) is None

    zone.change(("www.example.test.", a(2)))
    assert [zone.since(serial) for serial in (1, 2, 3)] == [None, None, 1]


def test_rows_that_stop_short_of_the_zone_lead_nowhere():
    zone = Changing()
    zone.change(("www.example.test.", a(1)))
    zone.table.apply(zone.changes(("www.example.test.", a(2))))

    assert zone.since(1) is None


@pytest.mark.parametrize("limit", [{"rows_max": 3}, {"octets_max": 700}])
def test_the_oldest_rows_of_all_zones_go_first(limit):
    journal = Journal(**limit)
    one, two = Changing("one.test.", journal=journal), Changing("two.test.", journal=journal)
    one.change(("www.one.test.", a(1)))
    for number in range(2):
        two.change(("www.two.test.", a(number)))
    assert (one.since(1), two.since(1)) == (1, 2)

    one.change(("www.one.test.", a(2)))
    assert (one.since(1), one.since(2), two.since(1)) == (None, 1, 2)


def test_a_dropped_zone_has_no_rows_and_another_may_take_its_name():
    zone = Changing()
    zone.change(("www.example.test.", a(1)))
    zone.journal.take([Change("example.test.")])
    assert zone.since(1) is None

    again = Changing(serial=1, journal=zone.journal)
    again.change(("www.example.test.", a(1)))
    assert again.since(1) == 1


def test_a_row_that_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="array"):
        Journal().take([Change("z", "log:journal", "", b"\x01")])
