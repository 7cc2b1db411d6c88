"""A line at once, and then one each few seconds with a count."""

from edgestead.model.seldom import Seldom


def test_the_first_is_due_at_once_and_later_ones_now_and_then_with_their_count():
    seconds = [100.0]
    seldom = Seldom(10, lambda: seconds[0])

    assert seldom.happened() == 1
    assert [seldom.happened() for _ in range(5)] == [0] * 5
    seconds[0] += 9.9
    assert seldom.happened() == 0
    seconds[0] += 0.1
    assert seldom.happened() == 7
    assert seldom.happened() == 0


def test_after_a_rest_it_is_due_at_once_again():
    seconds = [0.0]
    seldom = Seldom(10, lambda: seconds[0])
    seldom.happened()
    seconds[0] += 1_000

    assert seldom.happened() == 1
