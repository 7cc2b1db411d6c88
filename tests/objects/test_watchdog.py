"""Who is blamed when a loop stands still or a process grows: the rules, without threads and clocks."""

import random

import pytest

from edgestead.model.overdue import LATE_TIMES, OWN_PART, PASSED_TIMES, counted, is_over
from edgestead.objects.runtime.watchdog import GROWTHS_MAX, STANDING_SECONDS_MAX, TICKS, Growth, Judge

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


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_the_limit_is_over_with_as_many_ticks_as_it_has(block):
    """Not one later: until the end, that is a part of the limit in which others wait."""
    judge = Judge(block, block / TICKS)

    verdicts = [judge.tick(False, ONE, (0.0, False)) for _ in range(TICKS + 1)]

    assert [verdict is not None for verdict in verdicts] == [False] * TICKS + [True]


@pytest.mark.parametrize(
    ("own", "passed", "somebody_waits", "over"),
    [
        (1.0, 1.0, False, True),
        (0.99, 1.99, True, False),
        (0.99, 2.0, False, False),
        (0.99, 2.0, True, True),
        (0.125, 2.0, True, True),
        (0.12, 1_000.0, True, False),
    ],
)
def test_the_table_of_times_that_end_a_process(own, passed, somebody_waits, over):
    assert is_over(own, passed, 1.0, somebody_waits=somebody_waits) is over


def until_over(share, work_seconds=float("inf"), tick=TICK, somebody_waits=True):
    """Of one event on a machine that gives its process such a share: the seconds until it is blamed."""
    judge, waited, passed = Judge(BLOCK, TICK), 0.0, 0.0
    judge.tick(False, ONE, (0.0, False))  # says who it is
    while passed * share < work_seconds:
        passed += tick
        waited += tick * (1 - share)
        verdict = judge.tick(False, ONE, (waited, False), elapsed_seconds=tick, somebody_waits=somebody_waits)
        if verdict is not None:
            return passed
    return None


@pytest.mark.parametrize(
    ("share", "seconds"), [(1, 1), (1 / 2, 2), (1 / 4, 2), (1 / 16, 2), (1 / 32, 4), (1 / 64, 8)]
)
def test_on_a_busy_machine_others_wait_for_twice_the_limit_or_a_part_of_it_in_own_time(share, seconds):
    assert until_over(share) == seconds


@pytest.mark.parametrize("tick", [TICK, 2 * TICK, 3 * TICK])
def test_a_watcher_that_is_late_itself_takes_nothing_from_own_time(tick):
    assert until_over(1 / 8, tick=tick, somebody_waits=False) == pytest.approx(8, abs=tick)
    assert until_over(1 / 8, tick=tick) <= 3


@pytest.mark.parametrize("elapsed", [TICK, 10.0, 3_600.0])
def test_a_watcher_that_stood_still_counts_a_look_and_no_more(elapsed):
    assert counted(TICK, elapsed, 0.0) == (TICK, min(elapsed, LATE_TIMES * TICK))
    assert counted(TICK, elapsed, elapsed) == (0.0, min(elapsed, LATE_TIMES * TICK))


@pytest.mark.parametrize("share", [1, 1 / 4, 1 / 16, 1 / 256, 1 / 4096])
def test_who_takes_less_than_a_part_of_the_limit_is_not_blamed_however_busy_the_machine(share):
    assert until_over(share, work_seconds=BLOCK / OWN_PART - TICK * share) is None


@pytest.mark.parametrize("seed", range(20))
def test_at_random_nobody_is_blamed_before_their_time_nor_spared_after_it(seed):
    chance = random.Random(seed)
    judge, marks, waited, own_ticks, whole = Judge(BLOCK, TICK), [], 0.0, [], []
    for _ in range(2_000):
        beaten, on_disk, others = (chance.random() < part for part in (0.1, 0.1, 0.7))
        waited += (wait := chance.choice([0, 0, 0, TICK / 2, 3 * TICK]))
        mark = chance.choice([marks[-1]] * 9 + [ONE, TWO, NOBODY]) if marks else ONE
        if beaten:
            marks, own_ticks, whole = [mark], [], []
        else:
            marks.append(mark)
            own_ticks.append(0.0 if on_disk else max(0.0, TICK - wait))
            whole.append(0.0 if on_disk else TICK)
        verdict = judge.tick(beaten, mark, (waited, on_disk), somebody_waits=others)
        own = passed = 0.0
        ticks = zip(marks[-2::-1], marks[::-1], own_ticks[::-1], whole[::-1], strict=False)
        for before, now, seconds, tick in ticks:
            if not now or before != now:
                break
            own, passed = own + seconds, passed + tick
        if own >= BLOCK or (others and passed >= PASSED_TIMES * BLOCK and own >= BLOCK / OWN_PART):
            assert verdict is not None
            assert verdict.mark == mark
        elif sum(own_ticks) < STANDING_SECONDS_MAX:
            assert verdict is None
        if verdict is not None:
            judge, marks, own_ticks, whole = Judge(BLOCK, TICK), [], [], []
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
