"""Who asks a store that does not answer: by the table of states, and at random against a second account."""

import random

from edgestead.s3.breaker import AWAY_SECONDS, Breaker, State


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_after_a_silence_one_asks_now_and_then_and_an_answer_lets_all_in():
    clock = Clock()
    breaker = Breaker(clock)
    assert [breaker.may_ask() for _ in range(3)] == [True] * 3

    breaker.was_silent()
    assert [breaker.may_ask() for _ in range(3)] == [False] * 3
    clock.now += AWAY_SECONDS
    assert [breaker.may_ask() for _ in range(3)] == [True, False, False]
    breaker.was_silent()
    assert not breaker.may_ask()
    clock.now += AWAY_SECONDS
    assert breaker.may_ask()
    breaker.answered()

    assert [breaker.may_ask() for _ in range(3)] == [True] * 3


def test_at_random_nobody_is_kept_out_of_a_store_that_answers_for_longer_than_a_while():
    rnd, clock = random.Random(5), Clock()
    breaker, asking, silent_at = Breaker(clock), 0, float("-inf")
    for _ in range(20_000):
        clock.now += rnd.choice((0, 0.1, 1, AWAY_SECONDS))
        if asking and rnd.random() < 0.5:
            asking -= 1
            if rnd.random() < 0.5:
                breaker.was_silent()
                silent_at = clock.now
            else:
                breaker.answered()
                silent_at = float("-inf")
        may = breaker.may_ask()
        asking += may
        if silent_at == float("-inf"):
            assert may
        elif clock.now < silent_at + AWAY_SECONDS:
            assert not may, "somebody waits in vain, where another has just done"
        assert may or asking or breaker.state is State.OPEN, "somebody who tries says how it ended"
