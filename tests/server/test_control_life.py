"""Who is let in by what control shows that it tells, while it lives, hangs or is dead."""

import os
import random
from types import SimpleNamespace

import pytest

from edgestead.feed.lease import LEASE_MS, Grant, Lease
from edgestead.postgres import incarnations
from edgestead.server.control import waiting
from edgestead.server.nodes import identity
from edgestead.server.supervisor.control_life import BYTES, ControlLife

LEASE_US = LEASE_MS * 1000
STEPS = 400


class World:
    """The supervisor's and control's end, on an invented clock; `lease` is a process's end."""

    def __init__(self, descriptor):
        self.now_us = 1_000_000
        self.life = ControlLife(descriptor, writes=True)
        seen = ControlLife(descriptor)
        self.lease = Lease(lambda: self.now_us, told=lambda: seen.told)
        self.committed = 0  # the newest change

    def starts(self):
        self.life.begins()
        self.life.tells(self.committed)

    def grants(self):
        self.lease.grant = Grant(self.now_us + LEASE_US, self.lease.grant.upto)

    def passes(self, share):
        self.now_us += int(share * LEASE_US)

    @property
    def admits(self):
        return self.lease.holds(self.lease.grant)


@pytest.fixture
def descriptor():
    made = os.memfd_create("life")
    os.ftruncate(made, BYTES)
    yield made
    os.close(made)


@pytest.fixture
def world(descriptor):
    return World(descriptor)


def test_who_has_everything_that_was_told_is_gone_by_while_control_hangs_or_is_dead(world):
    world.committed = 7
    world.starts()
    world.lease.applied(7)

    world.passes(1_000)
    assert world.admits
    world.life.ends()
    assert world.admits
    world.life.begins()
    assert world.admits

    world.life.tells(8)
    assert not world.admits


def test_who_has_not_has_no_lease_either(world):
    world.committed = 7
    world.starts()
    world.lease.applied(6)
    world.grants()

    assert not world.admits


def test_a_change_that_nobody_was_told_of_keeps_nobody_out(world):
    world.committed = 7
    world.starts()
    world.lease.applied(7)
    world.committed = 8
    world.life.ends()
    world.passes(1)
    assert world.admits

    world.starts()  # and the next control may tell it

    assert not world.admits


def test_a_process_that_has_nothing_yet_admits_nobody(world):
    world.grants()
    world.committed = 7
    world.starts()
    assert not world.admits
    world.life.ends()

    assert not world.admits


def test_where_nobody_says_what_was_told_a_lease_is_over_also_while_control_is_dead(world):
    """In a cluster another machine may tell somebody meanwhile."""
    world.life.begins()
    world.lease.applied(7)
    world.grants()
    assert world.admits
    world.life.ends()

    world.passes(1)

    assert not world.admits


def test_no_lease_counts_from_when_the_office_of_the_one_before_is_freed_until_those_of_before_are_over(
    world,
):
    world.life.begins()
    world.lease.applied(7)
    world.grants()
    world.life.ends()
    assert world.admits

    world.life.shuts()
    assert not world.admits

    world.passes(1)
    world.life.leases_decide()
    assert not world.admits
    world.grants()
    assert world.admits


def test_leases_end_before_the_office_of_the_one_before_is_freed(world, descriptor, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(identity, "member_of", lambda folder: SimpleNamespace(peer=SimpleNamespace(name="a")))
    monkeypatch.setattr(incarnations, "bury", lambda dsn, node: seen.append((node, world.admits)))
    world.grants()
    assert world.admits

    start = SimpleNamespace(control_life_fd=descriptor, data_dir=tmp_path)
    waiting._bury_the_one_before(start, "postgresql://")

    assert seen == [("a", False)]


@pytest.mark.parametrize("seed", range(20))
def test_nobody_is_admitted_when_a_revocation_may_have_been_acknowledged(world, seed):
    """Control acknowledges what it has shown, whether the process has applied it or not."""
    chance, is_open, acknowledged = random.Random(seed), False, 0
    world.committed, admitted = 1, 0
    steps = ("pass", "start", "end", "commit", "commit", "apply", "apply", "grant", "tell", "acknowledge")
    for step in chance.choices(steps, k=STEPS):
        if step == "pass":
            world.passes(chance.choice((0.1, 0.5, 1, 3)))
        elif step == "start" and not is_open:
            is_open = True
            world.starts()
        elif step == "end" and is_open:
            is_open = False
            world.life.ends()
        elif step == "commit" and is_open:
            world.committed += 1
        elif step == "apply" and is_open:
            world.lease.applied(world.committed)
        elif step == "grant" and is_open:
            world.grants()
        elif step == "tell" and is_open:
            world.life.tells(world.committed)
        elif step == "acknowledge" and is_open:
            acknowledged = world.life.told

        admitted += world.admits
        assert not (acknowledged > world.lease.grant.upto and world.admits)
    assert admitted
