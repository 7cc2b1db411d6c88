"""Membership in ranges agrees with the plain definition."""

from hypothesis import given, settings
from hypothesis import strategies as st

from edgestead.language.sets import Ranges, item_set

RANGES = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))))


@settings(derandomize=True, deadline=None)
@given(RANGES)
def test_a_number_is_in_when_a_range_holds_it(ranges: list[tuple[int, int]]) -> None:
    merged = Ranges(ranges)

    for number in range(-60, 70):
        assert (number in merged) == any(first <= number <= last for first, last in ranges)


def test_single_values_are_hashed() -> None:
    assert item_set([(1, 1), (5, 5)]) == frozenset((1, 5))
    assert item_set([b"a"]) == frozenset((b"a",))
    assert isinstance(item_set([(1, 1), (5, 6)]), Ranges)
    assert b"a" not in item_set([(1, 5)])
