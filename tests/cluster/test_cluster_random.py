"""Control processes under random schedules: deaths, pauses, partitions of one way, outages, lost answers."""

import sys
import time

import pytest

from tests.cluster.world import World

STEPS = 400
SCHEDULES = 10_000  # each is about 15 s of a cluster, and 4 ms of a core
PIECE = 1_000
LONG_SECONDS = 110 * 60
TOLD_EACH = 10_000


def run(seed: int) -> World:
    world = World(seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.finish()
    except Exception as error:
        error.add_note(f"schedule {seed}, at {world.now / 1_000:.3f} s")
        raise
    return world


@pytest.mark.parametrize("first", range(0, SCHEDULES, PIECE))
def test_no_schedule_answers_an_old_read_or_loses_a_write(first):
    answers = reads = refused_reads = 0
    for seed in range(first, first + PIECE):
        world = run(seed)
        answers, reads = answers + world.answers, reads + world.reads
        refused_reads += world.refused_reads

    assert answers > 20 * PIECE
    assert reads > 20 * PIECE
    assert refused_reads > PIECE


@pytest.mark.long
def test_no_schedule_of_two_hours_does():
    """How many it were, it prints (`-s`): each run has the same ones, as far as it comes."""
    end, seed = time.monotonic() + LONG_SECONDS, SCHEDULES
    while time.monotonic() < end:
        run(seed)
        seed += 1
        if seed % TOLD_EACH == 0:
            sys.stdout.write(f"{seed - SCHEDULES:,} schedules\n")
    sys.stdout.write(f"{seed - SCHEDULES:,} schedules in {LONG_SECONDS} s\n")
