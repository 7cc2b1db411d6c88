"""What a lease is worth while control is dead, and when another one has begun."""

import os
import random

import pytest

from edgestead.feed.lease import LEASE_MS, Lease
from edgestead.server.supervisor.control_life import BYTES, ControlLife

LEASE_US = LEASE_MS * 1000
STEPS = 400


class World:
    """The supervisor's and control's end, on an invented clock; `lease` is a process's end."""

    def __init__(self, descriptor):
        self.now_us = 1_000_000
        self.life = ControlLife(descriptor, writes=True, now_us=self.clock)
        self.lease = Lease(self.clock, ControlLife(descriptor).outlives)

    def clock(self):
        return self.now_us

    def starts(self):
        self.life.begins()
        self.life.opens()

    def grants(self):
        self.lease.until_us = self.now_us + LEASE_US

    def passes(self, share):
        self.now_us += int(share * LEASE_US)

    @property
    def admits(self):
        return self.lease.holds(self.lease.until_us)


@pytest.fixture
def world():
    descriptor = os.memfd_create("life")
    os.ftruncate(descriptor, BYTES)
    yield World(descriptor)
    os.close(descriptor)


def test_while_control_is_dead_a_lease_that_was_valid_at_its_death_has_no_end(world):
    world.starts()
    world.grants()
    world.passes(0.9)
    world.life.ends()

    world.passes(1_000)

    assert world.admits


def test_a_lease_that_was_over_before_control_died_stays_over(world):
    world.starts()
    world.grants()
    world.passes(1)
    world.life.ends()

    assert not world.admits


def test_one_that_cannot_start_has_acknowledged_nothing(world):
    world.starts()
    world.grants()
    world.life.ends()
    for _ in range(3):
        world.passes(2)
        world.life.begins()
        assert world.admits
        world.life.ends()

    assert world.admits


def test_the_next_control_ends_it_as_late_as_it_waits_for_it(world):
    world.starts()
    world.grants()
    world.life.ends()
    world.passes(5)
    world.starts()

    world.passes(0.999)
    assert world.admits
    world.passes(0.001)
    assert not world.admits


def test_a_process_that_has_never_had_a_lease_admits_nobody(world):
    assert not world.admits
    world.starts()
    assert not world.admits
    world.life.ends()

    assert not world.admits


@pytest.mark.parametrize("seed", range(20))
def test_nobody_is_admitted_when_a_revocation_may_have_been_acknowledged(world, seed):
    """Control acknowledges one that the process has not applied when every lease that it knows of is over."""
    chance, control, acknowledged = random.Random(seed), None, False
    for _ in range(STEPS):
        step = chance.choice(("pass", "pass", "start", "open", "end", "grant", "acknowledge"))
        if step == "pass":
            world.passes(chance.choice((0.1, 0.5, 1, 3)))
        elif step == "start" and control is None:
            control = "begun"
            world.life.begins()
        elif step == "open" and control == "begun":
            world.life.opens()
            control = world.now_us + LEASE_US  # until then it knows of leases of the one before
        elif step == "end" and control is not None:
            control = None
            world.passes(chance.choice((0, 0, 0.2)))  # the supervisor sees it later
            world.life.ends()
        elif step == "grant" and isinstance(control, int):  # only to who has applied everything
            world.grants()
            control, acknowledged = max(control, world.lease.until_us), False
        elif step == "acknowledge" and isinstance(control, int) and world.now_us >= control:
            acknowledged = True

        assert not (acknowledged and world.admits)
