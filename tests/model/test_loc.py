"""LOC: text with optional parts, and numbers that the wire holds in one digit and a power of ten."""

from decimal import Decimal

import pytest

from edgestead.model.records import from_wire, parse

TEXT = [
    ("37 N 122 W 0", "37 0 0.000 N 122 0 0.000 W 0.00 1.00 10000.00 10.00"),
    ("37 46 N 122 23 W 0m", "37 46 0.000 N 122 23 0.000 W 0.00 1.00 10000.00 10.00"),
    ("37 46 46.5 s 122 23 35 e -100000m 5M", "37 46 46.500 S 122 23 35.000 E -100000.00 5.00 10000.00 10.00"),
    ("0 N 0 E 0 0 0", "0 0 0.000 N 0 0 0.000 E 0.00 0.00 0.00 10.00"),
    ("90 N 180 W 42849672.95 90000000 90000000 90000000",
     "90 0 0.000 N 180 0 0.000 W 42849672.95 90000000.00 90000000.00 90000000.00"),
    ("0 0 0.0004 N 0 0 0.0006 E -0.004", "0 0 0.000 N 0 0 0.001 E 0.00 1.00 10000.00 10.00"),
]  # fmt: skip

# size in metres, octet, what the octet means
SIZES = [
    ("0", 0x00, "0.00"),
    ("0.01", 0x10, "0.01"),
    ("1", 0x12, "1.00"),
    ("0.99", 0x91, "0.90"),
    ("1234.56", 0x15, "1000.00"),
    ("90000000", 0x99, "90000000.00"),
]


@pytest.mark.parametrize(("content", "usual"), TEXT)
def test_parts_may_be_left_out(content, usual):
    rdata = parse("LOC", content=content)

    assert rdata.to_content() == usual
    assert parse("LOC", content=usual) == rdata


@pytest.mark.parametrize(("metres", "octet", "meant"), SIZES)
def test_a_size_keeps_one_digit_on_the_wire_and_all_in_the_answer(metres, octet, meant):
    rdata = parse("LOC", content=f"1 N 1 E 0 {metres}")

    assert rdata.to_wire()[1] == octet
    assert rdata.to_data()["size"] == float(metres)
    assert from_wire("LOC", rdata.to_wire()).size == Decimal(meant)


@pytest.mark.parametrize("direction", ["N", "S"])
def test_the_poles_are_the_last_places(direction):
    pole = parse("LOC", content=f"90 {direction} 0 E 0")

    assert from_wire("LOC", pole.to_wire()) == pole
