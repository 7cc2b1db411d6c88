"""Who is blamed when a loop stands still or a process grows: the rules, without threads and clocks."""

import random

import pytest

from edgestead.objects.runtime.watchdog import GROWTHS_MAX, STANDING_SECONDS_MAX, Growth, Judge

TICK = 0.25  # whole halves of a second add up exactly
BLOCK = 1.0
ONE, TWO, NOBODY = 1, 2, 0
MIB = 1 << 20


def judged(ticks, block=BLOCK):
    """(the tick that ended it, the mark) of ticks: whether the loop has beaten, the mark, the waits."""
    judge = Judge(block, TICK)
    for number, tick in enumerate(ticks, 1):
        verdict = judge.tick(*tick)
        if verdict is not None:
            return number, verdict.mark
    return None


def held(mark, times):
    return [(False, mark, (0.0, False))] * times


@pytest.mark.parametrize(
    ("ticks", "end"),
    [
        (held(ONE, 5), (5, ONE)),  # the first tick only says who it is
        (held(ONE, 4), None),
        ([*held(ONE, 4), (True, ONE, (0.0, False)), *held(ONE, 3)], None),
        (held(ONE, 3) + held(TWO, 3) + held(ONE, 3), None),  # one turn of the loop, many events
        (held(NOBODY, 60), (60, NOBODY)),
        (held(NOBODY, 59), None),
        (held(NOBODY, 20) + held(ONE, 5), (25, ONE)),
        ([(False, mark, (0.0, False)) for mark in (ONE, TWO) * 38], (60, NOBODY)),
        ([(False, ONE, (0.0, True))] * 100, None),  # the disk is slow
        ([(False, ONE, (TICK * n, False)) for n in range(1, 100)], None),  # nobody gives it a processor
        ([(False, ONE, (TICK / 2 * n, False)) for n in range(1, 100)], (9, ONE)),  # half of one
    ],
)
def test_who_holds_the_loop_for_the_limit_is_blamed_and_nobody_else(ticks, end):
    assert judged(ticks) == end


def test_a_longer_limit_holds_for_everybody():
    assert judged(held(ONE, 200), block=30) == (121, ONE)
    assert judged(held(NOBODY, 300), block=30) == (240, NOBODY)


@pytest.mark.parametrize("seed", range(20))
def test_at_random_nobody_is_blamed_before_their_time_nor_spared_after_it(seed):
    chance = random.Random(seed)
    judge, marks, waited, counted = Judge(BLOCK, TICK), [], 0.0, []
    for _ in range(2_000):
        beaten, on_disk = chance.random() < 0.1, chance.random() < 0.1
        waited += (wait := chance.choice([0, 0, 0, TICK / 2, 3 * TICK]))
        mark = chance.choice([marks[-1]] * 9 + [ONE, TWO, NOBODY]) if marks else ONE
        if beaten:
            marks, counted = [mark], []
        else:
            marks.append(mark)
            counted.append(0.0 if on_disk else max(0.0, TICK - wait))
        verdict = judge.tick(beaten, mark, (waited, on_disk))
        own = 0.0
        for before, now, seconds in zip(marks[-2::-1], marks[::-1], counted[::-1], strict=False):
            if not now or before != now:
                break
            own += seconds
        if own >= BLOCK + 1e-9:
            assert verdict is not None
            assert verdict.mark == mark
        elif own < BLOCK - 1e-9 and sum(counted) < STANDING_SECONDS_MAX - 1e-9:
            assert verdict is None
        if verdict is not None:
            judge, marks, counted = Judge(BLOCK, TICK), [], []
            judge.tick(True, NOBODY, (waited, False))
            marks = [NOBODY]


def grown(*looks):
    growth = Growth(100 * MIB)
    growth.tick(20 * MIB, NOBODY)
    for size, mark in looks:
        verdict = growth.tick(size * MIB, mark)
        if verdict is not None:
            return verdict.mark, size
    return None


@pytest.mark.parametrize(
    ("looks", "end"),
    [
        ([(60, ONE), (100, ONE)], None),
        ([(60, ONE), (101, ONE)], (ONE, 101)),
        ([(60, ONE), (65, TWO), (101, NOBODY), (120, ONE)], (NOBODY, 101)),
        ([(60, ONE), (95, ONE), (101, TWO)], (ONE, 101)),  # who was last did not do it
        ([(40, ONE), (70, TWO), (101, NOBODY)], (NOBODY, 101)),  # nobody has half
        ([(90, ONE), *[(size, TWO) for size in (20, 50) * GROWTHS_MAX], (101, TWO)], (TWO, 101)),
    ],
)
def test_who_made_half_of_the_newest_growth_is_blamed(looks, end):
    assert grown(*looks) == end
