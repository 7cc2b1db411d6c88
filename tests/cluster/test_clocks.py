"""How far a follower's clock of the day is from the leader's, by the entries that arrive."""

import pytest

from edgestead.cluster.clocks import SAMPLE_SECONDS_MAX, SAMPLES, Clocks

SECOND_US = 1_000_000


def apart(skew_seconds, ways, now_ms=lambda: 0):
    """Of entries whose ways took so many seconds."""
    now_us = [0]
    clocks = Clocks(lambda: now_us[0], now_ms)
    for way in ways:
        now_us[0] = int((skew_seconds + way) * SECOND_US)
        clocks.arrived(0)
    return clocks


@pytest.mark.parametrize("skew", [-3_600, -3, 0, 3, 3_600])
def test_the_least_of_the_newest_counts(skew):
    assert apart(skew, [0.01, 30, 2, 0.02, 30]).apart_seconds == pytest.approx(skew, abs=0.02)


def test_a_few_entries_say_nothing_and_old_ones_no_more():
    assert apart(3_600, [0] * (SAMPLES - 1)).apart_seconds == 0
    assert apart(3, [-3, *[0] * SAMPLES]).apart_seconds == 3
    clocks = apart(3, [0] * SAMPLES)
    clocks.forget()
    assert clocks.apart_seconds == 0


def test_what_was_seen_is_forgotten_when_nobody_writes_any_more():
    """The clock was set right since, or may have been."""
    now_ms = [0]
    clocks = apart(3, [0] * SAMPLES, lambda: now_ms[0])
    now_ms[0] = SAMPLE_SECONDS_MAX * 1000
    assert clocks.apart_seconds == 3
    now_ms[0] += 1
    assert clocks.apart_seconds == 0
