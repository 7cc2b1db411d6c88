"""When a base of the control log is due, and which process uploads it."""

import math

import pytest

from edgestead.cluster.members import ADMITTED, JOINING, Row
from edgestead.cluster.office import Holder
from edgestead.cluster.seat import Seat, View
from edgestead.server.cluster.bases import BASE_BYTES, BASE_SECONDS, SECOND_US, is_due, uploads

NOW_US = 10 * BASE_SECONDS * SECOND_US
DAY_AGO_US = NOW_US - BASE_SECONDS * SECOND_US


@pytest.mark.parametrize(
    ("octets", "oldest_us", "due"),
    [
        (0, None, False),  # nothing was appended
        (BASE_BYTES - 1, DAY_AGO_US + 1, False),
        (BASE_BYTES, NOW_US, True),
        (1, DAY_AGO_US, True),
    ],
)
def test_a_base_is_due_after_so_much_or_a_day(octets, oldest_us, due):
    assert is_due(octets, oldest_us, NOW_US) is due


def seat_of(number, *, leader, admitted, joining=(), answers=True):
    made = Seat(lambda: 0.0)
    rows = {n: Row(0, ADMITTED) for n in admitted} | {n: Row(0, JOINING) for n in joining}
    made.view = View(None if leader is None else Holder(leader, 0), rows)
    made.office.number = number
    made.office.answers_until_ms = math.inf if answers else -math.inf
    return made


@pytest.mark.parametrize(
    ("number", "options", "does"),
    [
        (2, {"leader": 1, "admitted": (1, 2, 3)}, True),  # the leader has its time for writes
        (1, {"leader": 1, "admitted": (1, 2, 3)}, False),
        (3, {"leader": 1, "admitted": (1, 2, 3)}, False),
        (1, {"leader": 1, "admitted": (1,)}, True),  # nobody else could
        (1, {"leader": 1, "admitted": (1,), "joining": (2,)}, True),
        (2, {"leader": 1, "admitted": (1,), "joining": (2,)}, False),
        (2, {"leader": 1, "admitted": (1, 2), "answers": False}, False),
        (None, {"leader": None, "admitted": ()}, False),
    ],
)
def test_one_process_uploads_and_a_follower_where_there_is_one(number, options, does):
    assert uploads(seat_of(number, **options)) is does
