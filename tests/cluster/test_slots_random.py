"""Objects processes under random schedules: deaths, pauses, partitions of one way, outages, lost answers."""

import pytest

from tests.cluster.slots_world import SlotsWorld

STEPS = 400
SCHEDULES = 80  # each is about a minute of a cluster
SCHEDULES_LONG = 20_000


def run(seed: int) -> SlotsWorld:
    world = SlotsWorld(seed)
    for _ in range(STEPS):
        world.step()
    world.finish()
    return world


def test_no_schedule_gives_an_old_answer_or_loses_a_write():
    worlds = [run(seed) for seed in range(SCHEDULES)]

    assert sum(world.writes for world in worlds) > 50 * SCHEDULES
    assert sum(world.answers for world in worlds) > 100 * SCHEDULES
    assert sum(world.refused for world in worlds) > SCHEDULES


@pytest.mark.long
def test_no_schedule_of_many_does():
    for seed in range(SCHEDULES, SCHEDULES_LONG):
        run(seed)
