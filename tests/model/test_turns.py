"""Whose work is done next: on an invented clock, in rounds of an invented loop."""

import random

import pytest

from edgestead.model.budgets import turns as module
from edgestead.model.budgets.table import TRACKED_MAX
from edgestead.model.budgets.turns import LATE_SECONDS, LOOK_OCTETS, Turns

WORK_SECONDS, TURN_SECONDS = 1 / 4096, 2 / 4096  # of the invented clock, which has no rounding then


class World:
    """Rounds of a loop, and a clock that only work moves. `done` is who worked, in order."""

    def __init__(self, turn_seconds=TURN_SECONDS, follows_seconds=0.0):
        self.now, self.began, self.soon, self.done = 100.0, 100.0, [], []
        self.turns = Turns(
            self.soon.append,
            lambda: self.began,
            lambda: self.now,
            turn_seconds=turn_seconds,
            follows_seconds=follows_seconds,
        )

    def round(self):
        self.began, soon = self.now, self.soon[:]
        self.soon.clear()
        for function in soon:
            function()

    def run(self):
        rounds = 0
        while self.soon:
            self.round()
            rounds += 1
        return rounds

    def wait(self, address, count=1, *, name=None, seconds=WORK_SECONDS):
        """So many works of an address, each of which is put off when the one before it is done."""

        def work():
            self.now += seconds
            self.done.append(address if name is None else name)
            if count > 1:
                self.wait(address, count - 1, name=name, seconds=seconds)

        self.turns.wait(address, work)


@pytest.fixture
def world():
    return World()


def test_work_is_done_at_once_until_the_round_is_late(world):
    waits = [world.turns.must_wait(LOOK_OCTETS)]
    world.now += LATE_SECONDS / 2
    waits.append(world.turns.must_wait(LOOK_OCTETS))
    world.now += LATE_SECONDS
    waits.append(world.turns.must_wait(LOOK_OCTETS))
    world.began = world.now
    waits.append(world.turns.must_wait(LOOK_OCTETS))

    assert waits == [False, False, True, False]


def test_the_clock_is_looked_at_once_in_some_octets_however_small_the_pieces(world):
    world.now += 2 * LATE_SECONDS

    looked = [world.turns.must_wait(1) for _ in range(100)].index(True)

    assert looked < LOOK_OCTETS // module.PIECE_OCTETS


def test_all_work_waits_while_some_does(world):
    world.wait("bad", 3)
    before = world.turns.must_wait(1)
    world.run()

    assert (before, world.turns.must_wait(1)) == (True, False)


def test_a_round_is_worked_for_one_turn(world):
    for number in range(10):
        world.wait(f"192.0.2.{number}")
    world.round()
    worked = len(world.done)

    assert worked == TURN_SECONDS / WORK_SECONDS
    assert len(world.soon) == 1
    assert world.run() == 4


def test_where_answers_take_many_rounds_each_is_as_short_as_one_work():
    world = World(turn_seconds=module.ONE_A_ROUND)
    for number in range(10):
        world.wait(f"192.0.2.{number}")

    assert world.run() == len(world.done) == 10


def test_what_follows_from_a_work_counts_for_the_turn_and_for_the_address():
    world = World(follows_seconds=WORK_SECONDS)
    for number in range(10):
        world.wait(f"192.0.2.{number}")
    world.round()

    assert len(world.done) == 1


def test_an_address_alone_has_the_whole_processor(world):
    for _ in range(20):
        world.wait("alone", 5)
    began = world.now
    rounds = world.run()

    assert len(world.done) == 100
    assert world.now - began == 100 * WORK_SECONDS
    assert rounds == 50


@pytest.mark.parametrize("seed", range(20))
def test_a_good_address_waits_for_at_most_one_work_of_each_bad_one(world, seed):
    chance = random.Random(seed)
    bad = [f"bad {number}" for number in range(chance.randrange(1, 40))]
    for address in bad:
        for _ in range(chance.randrange(1, 11)):  # connections
            world.wait(address, 50, seconds=WORK_SECONDS * chance.randrange(1, 5))
    for _ in range(chance.randrange(60)):
        world.round()
    before = len(world.done)
    world.wait("good")
    while "good" not in world.done:
        world.round()

    ahead = world.done[before : world.done.index("good")]
    assert max(map(ahead.count, ahead), default=0) <= 1


def test_who_asks_for_less_than_its_share_is_next_whenever_it_asks(world):
    for number in range(100):  # each of another price, as no two requests take the same time
        world.wait(f"bad {number}", 1_000, seconds=WORK_SECONDS * (1 + number / 1_024))
    for _ in range(500):
        world.round()

    ahead = []
    for _ in range(20):
        before = len(world.done)
        world.wait("good")
        while "good" not in world.done[before:]:
            world.round()
        ahead.append(world.done.index("good", before) - before)
        for _ in range(51):  # meanwhile each of the others has had a work
            world.round()

    assert max(ahead) <= 3


def test_connections_of_one_address_share_its_part(world):
    for number in range(10):
        world.wait("many", 1_000, name=f"many {number}")
    world.wait("one", 1_000)
    for _ in range(500):
        world.round()

    assert abs(world.done.count("one") - len(world.done) / 2) <= 1
    assert abs(world.done.count("many 3") - len(world.done) / 20) <= 1


def test_dear_work_is_paid_by_its_address(world):
    world.wait("dear", 1_000, seconds=9 * WORK_SECONDS)
    world.wait("cheap", 1_000)
    for _ in range(200):
        world.round()

    assert abs(world.done.count("cheap") - 9 * world.done.count("dear")) <= 9


def test_who_comes_later_is_neither_behind_nor_ahead_of_all_that_was_done(world):
    world.wait("first", 1_000)
    for _ in range(50):
        world.round()
    world.wait("second", 1_000)
    for _ in range(50):
        world.round()

    assert abs(world.done.count("second") - 50) <= 1


def test_to_leave_and_come_back_earns_nothing(world):
    """One request at a time, each when the one before it is answered, beside one that has all it wants."""
    world.wait("steady", 10_000)
    asked = dict.fromkeys(("leaves", "leaves, too"), 0)
    for _ in range(200):
        for name, count in asked.items():
            if world.done.count(name) == count:
                asked[name] += 1
                world.wait(name)
        world.round()

    assert world.done.count("steady") >= len(world.done) / 3 - 1


def test_an_error_of_one_work_stops_no_other(world):
    def broken():
        raise RuntimeError

    world.turns.wait("broken", broken)
    world.wait("good")
    with pytest.raises(RuntimeError):
        world.round()
    world.run()

    assert world.done == ["good"]
    assert not world.turns.must_wait(1)


def test_an_address_that_comes_when_too_many_are_known_is_known(world):
    world.wait("bad", 10 * TRACKED_MAX)
    for number in range(2 * TRACKED_MAX):
        world.wait(f"guest {number}")
        assert f"guest {number}" in world.turns._accounts
        world.round()


def test_accounts_are_kept_only_while_somebody_waits_and_never_without_end(world):
    world.wait("bad", 10 * TRACKED_MAX)
    for number in range(3 * TRACKED_MAX):
        world.wait(f"guest {number}")
        world.round()
        assert len(world.turns._accounts) <= TRACKED_MAX + 2
    for _ in range(10 * TRACKED_MAX):
        world.round()

    assert len(world.turns._accounts) == 0
