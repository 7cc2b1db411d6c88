"""The booking: holds that end, seats that are sold once, and a mistake that is taken back."""

import asyncio

import pytest


@pytest.fixture
def friday(objects):
    return objects.Booking["friday"]


def names(friday):
    return {seat: row["name"] for seat, row in friday.seats().items()}


def test_a_hold_ends_by_itself(objects, friday):
    assert friday.hold("1A", "ann", seconds=60)
    assert not friday.hold("1A", "bob")

    objects.advance(59)
    assert names(friday) == {"1A": "ann"}
    objects.advance(1)
    assert names(friday) == {}
    assert friday.hold("1A", "bob")


def test_each_hold_ends_at_its_own_time(objects, friday):
    friday.hold("1A", "ann", seconds=300)
    friday.hold("1B", "bob", seconds=60)
    friday.hold("1C", "cid", seconds=120)

    left = []
    for _ in range(5):
        left.append("".join(sorted(names(friday))))
        objects.advance(minutes=1)
    assert left == ["1A1B1C", "1A1C", "1A", "1A", "1A"]
    assert names(friday) == {}
    assert objects.storage(friday).get_alarm() is None


def test_a_paid_seat_is_kept(objects, friday):
    friday.hold("1A", "ann")
    assert not friday.pay("1A", "bob")
    assert friday.pay("1A", "ann")
    assert not friday.pay("1A", "ann")

    objects.advance(days=1)
    assert friday.seats() == {"1A": {"name": "ann", "sold": True}}


@pytest.mark.parametrize("power", [False, True])
def test_a_hold_ends_also_when_the_server_was_away_at_its_time(objects, friday, power):
    friday.hold("1A", "ann", seconds=60)

    objects.crash(power=power)
    objects.advance(61)

    assert names(friday) == {}


def test_two_people_never_have_one_seat(objects):
    async def race(env):
        return await asyncio.gather(*(env.Booking["friday"].hold("1A", f"guest-{n}") for n in range(10)))

    assert sum(objects.run(race)) == 1


def test_a_cancelled_show_is_taken_back(objects, friday):
    friday.hold("1A", "ann")
    friday.pay("1A", "ann")
    friday.hold("1B", "bob", seconds=600)
    before = objects.now
    objects.advance(60)

    assert friday.cancel_show() == 2
    undo = objects.restore(friday, before)

    assert names(friday) == {"1A": "ann", "1B": "bob"}
    objects.restore(friday, undo)
    assert names(friday) == {}
    objects.undo(friday)
    objects.advance(600)
    assert names(friday) == {"1A": "ann"}  # the hold's alarm is back, too
