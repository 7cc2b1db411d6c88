"""Whose inspection goes on next: on an invented clock, in rounds of an invented loop."""

import pytest

from edgestead.edge.exchanges import turns as inspection_turns
from edgestead.edge.exchanges.turns import PER_ADDRESS_MAX, WAITING_MAX, Owner, Turns
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import HTTP_BYTES, HTTP_BYTES_ADDRESS

TURN_SECONDS, SLICE_SECONDS = 1 / 2048, 4 / 2048  # of the invented clock, which has no rounding then


class Loop:
    """Rounds of a loop, and a clock that only work moves."""

    def __init__(self):
        self.now, self.soon = 0.0, []

    def round(self):
        soon, self.soon = self.soon, []
        for function in soon:
            function()

    def run(self):
        rounds = 0
        while self.soon:
            self.round()
            rounds += 1
        return rounds


class Work:
    """So many turns of work of somebody, as far as turns look at it."""

    def __init__(self, loop, served, name, turns):
        self.loop, self.served, self.name = loop, served, name
        self.left_seconds, self.used_seconds = turns * TURN_SECONDS, 0.0

    def go_on(self, seconds):
        if self.name is None:
            raise RuntimeError
        self.served.append(self.name)
        used = min(seconds, self.left_seconds)
        self.loop.now += used
        self.used_seconds += used
        self.left_seconds -= used
        return self if self.left_seconds else self.name


class World:
    """`served` is who worked, `ended` and `crowded` who was told what."""

    def __init__(self):
        self.loop = Loop()
        self.turns = Turns(lambda function: self.loop.soon.append(function), lambda: self.loop.now)
        self.served, self.ended, self.crowded = [], [], []

    def work(self, name, turns):
        return Work(self.loop, self.served, name, turns)

    def wait(self, address, name, turns):
        work = self.work(name, turns)
        self.turns.wait(address, work, Owner(self.ended.append, lambda: self.crowded.append(name)))
        return work


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr(inspection_turns, "TURN_SECONDS", TURN_SECONDS)
    monkeypatch.setattr(inspection_turns, "SLICE_SECONDS", SLICE_SECONDS)
    return World()


def test_one_turn_is_worked_in_each_round_whoever_waits(world):
    for number in range(10):
        world.wait(f"192.0.2.{number}", number, 3)
    assert len(world.loop.soon) == 1
    world.loop.round()
    assert world.served == [0]
    assert world.loop.run() == 29
    assert sorted(world.ended) == list(range(10))


def test_many_short_ones_share_a_turn(world):
    for number in range(8):
        world.wait(f"192.0.2.{number}", number, 0.25)
    assert world.loop.run() == 2


def test_addresses_take_turns_however_much_one_of_them_wants(world):
    for number in range(10):
        world.wait("192.0.2.1", f"heavy {number}", 5)
    world.wait("192.0.2.2", "light", 3)

    world.loop.run()

    assert world.served[:6].count("light") == 3
    assert len(world.served) == 53


def test_one_connection_gets_as_much_as_many_of_another_address(world):
    for number in range(PER_ADDRESS_MAX):
        world.wait(f"2001:db8::{number:x}", "many", 400)
    world.wait("2001:db8:0:1::1", "one", 400)
    for _ in range(600):
        world.loop.round()
    assert abs(world.served.count("one") - 300) <= 1


def test_who_comes_later_is_neither_behind_nor_ahead_of_all_that_was_served(world):
    world.wait("192.0.2.1", "first", 400)
    for _ in range(50):
        world.loop.round()

    world.wait("192.0.2.2", "second", 400)
    for _ in range(40):
        world.loop.round()

    assert abs(world.served[50:].count("second") - 20) <= 1


def test_who_was_quiet_and_comes_again_owes_and_has_nothing(world):
    world.wait("192.0.2.1", "always", 400)
    for _ in range(20):
        world.wait("192.0.2.2", "again", 1)
        world.loop.round()
        world.loop.round()
    assert abs(world.served.count("again") - 20) <= 1
    assert abs(world.served.count("always") - 20) <= 1


def test_of_one_address_the_shortest_go_first_and_each_ends(world):
    world.wait("192.0.2.1", "long", 240)
    for _ in range(160):
        world.loop.round()

    world.wait("192.0.2.1", "short", 8)
    world.wait("192.0.2.1", "middle", 80)
    world.loop.run()

    assert world.served[160:176] == ["short", "middle"] * 8
    assert world.ended == ["short", "middle", "long"]


# at once


def test_a_request_gets_a_slice_at_once(world):
    short, long = world.work("short", 3), world.work("long", 9)
    assert world.turns.begin("192.0.2.1", short) == "short"
    assert world.turns.begin("192.0.2.1", long) is long
    assert world.loop.now == pytest.approx(3 * TURN_SECONDS + SLICE_SECONDS)


def test_but_not_where_its_address_waits_already(world):
    world.wait("2001:db8::1", "first", 2)
    same, other = world.work("same", 1), world.work("other", 1)

    assert world.turns.begin("2001:db8::2", same) is same
    assert world.turns.begin("192.0.2.1", other) == "other"
    assert world.served == ["other"]
    world.loop.run()
    assert world.turns.begin("2001:db8::2", same) == "same"


def test_the_slice_at_once_counts(world):
    world.wait("192.0.2.1", "first", 9)
    begun = world.work("begun", 9)
    assert world.turns.begin("192.0.2.2", begun) is begun
    world.turns.wait("192.0.2.2", begun, Owner(world.ended.append, lambda: None))
    for _ in range(4):
        world.loop.round()
    assert world.served == ["begun", *["first"] * 4]


# room


def test_an_address_has_room_for_so_many(world):
    for number in range(PER_ADDRESS_MAX + 2):
        world.wait("192.0.2.1", number, 1)
    world.wait("192.0.2.2", "other", 1)

    assert world.crowded == [PER_ADDRESS_MAX, PER_ADDRESS_MAX + 1]
    world.loop.run()
    assert sorted(world.ended[:2], key=str) == [0, "other"]
    assert len(world.ended) == PER_ADDRESS_MAX + 1


def test_who_has_most_makes_room_for_others(world):
    many = WAITING_MAX // 8
    for address in range(8):
        for number in range(many):
            world.wait(f"192.0.2.{address}", (address, number), 100)
    for _ in range(9):
        world.loop.round()

    world.wait("192.0.2.100", "light", 1)

    assert world.crowded == [(0, 1)]  # who had the last turn of the first of the addresses
    assert world.turns.waiting == WAITING_MAX


def test_who_leaves_is_worked_on_no_more_and_makes_room(world):
    works = [world.wait("192.0.2.1", number, 200) for number in range(PER_ADDRESS_MAX)]
    for _ in range(PER_ADDRESS_MAX * 20):
        world.loop.round()
    del world.served[:]
    for work in works[1:]:
        world.turns.leave("192.0.2.1", work)
        world.turns.leave("192.0.2.1", work)

    assert world.turns.waiting == 1
    world.loop.run()
    assert set(world.served) == {0}
    assert world.ended == [0]


def test_nothing_is_kept_of_an_address_that_nobody_waits_for(world):
    for number in range(50):
        world.wait(f"192.0.2.{number}", number, 2)
    left = [(f"192.0.2.{number}", world.wait(f"192.0.2.{number}", number, 2)) for number in range(50, 100)]
    assert world.turns.addresses == 100
    for address, work in left:
        world.turns.leave(address, work)
    world.loop.run()
    assert world.turns.addresses == world.turns.waiting == len(world.turns._least) == 0


def test_an_error_of_one_stops_no_other(world):
    world.wait("192.0.2.1", None, 1)
    world.wait("192.0.2.2", "other", 2)
    with pytest.raises(RuntimeError):
        world.loop.round()
    world.loop.run()
    assert world.ended == ["other"]
    assert world.turns.waiting == 0


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("no:address", "no:address", True),
    ],
)
def test_an_ipv6_address_counts_by_its_first_half(one, other, is_same):
    assert (network_of(one) == network_of(other)) == is_same


def test_what_waits_is_drawn_on_the_memory_of_its_address_and_given_back():
    ledger, world = Ledger(tell=lambda *_: None), World()
    memory = Levels(ledger, HTTP_BYTES_ADDRESS, HTTP_BYTES)
    world.turns = Turns(world.loop.soon.append, lambda: world.loop.now, ledger, memory)
    large = HTTP_BYTES_ADDRESS.limit // 8
    works = [world.work(number, 3) for number in range(12)]
    for number, work in enumerate(works):
        owner = Owner(world.ended.append, lambda number=number: world.crowded.append(number), large)
        world.turns.wait(f"2001:db8::{number:x}", work, owner)
    other = world.work("other", 3)
    world.turns.wait("192.0.2.1", other, Owner(world.ended.append, lambda: None, large))
    held = dict(memory.held)
    world.turns.leave("2001:db8::1", works[0])
    left = memory.held["2001:db8::/64"]
    world.loop.run()

    assert world.crowded == [8, 9, 10, 11]
    assert held == {"2001:db8::/64": 8 * large, "192.0.2.1": large}
    assert left == 7 * large
    assert sorted(map(str, world.ended)) == sorted([*map(str, range(1, 8)), "other"])
    assert memory.held == {}
    assert ledger.refused(HTTP_BYTES_ADDRESS) == 4
