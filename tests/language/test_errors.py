"""The text of a refusal: where an expression is wrong, in a bounded part of its line."""

import pytest

from edgestead.language.errors import EXCERPT_CHARACTERS_MAX, FilterError

LONG = "a" * 2_000 + "!" + "b" * 2_000
PLACES = [0, 1, 99, 100, 101, 2_000, 3_900, 4_000]


@pytest.mark.parametrize("start", PLACES)
def test_of_a_long_line_the_part_around_the_place_is_shown(start):
    error = FilterError(LONG, start, start + 1, "wrong")
    where, source, carets = str(error).split("\n")

    assert where == f"Filter parsing error (1:{start + 1}):"
    assert len(source) <= EXCERPT_CHARACTERS_MAX + 2
    assert source.strip("…") in LONG
    assert source[carets.index("^")] == LONG[start]
    assert carets.endswith("^ wrong")


def test_marks_stay_within_what_is_shown():
    _, source, carets = str(FilterError(LONG, 10, None, "wrong")).split("\n")

    assert len(carets.removesuffix(" wrong")) <= len(source)


def test_a_short_line_is_shown_whole():
    line = "x" * EXCERPT_CHARACTERS_MAX

    assert str(FilterError(line, 5, 7, "wrong")).split("\n")[1:] == [line, "     ^^ wrong"]
