"""No form of an answer is read in two ways: three strict parsers read the same of what the edge says."""

from pathlib import Path

import pytest

from tests.edge.answer_forms import FORMS_OF_ANSWERS, FRAMINGS, INTERIMS, PARSERS, page, read

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "framing.md"


SHARE = 7  # of all forms: no step of any of the lists is left out


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(one, marks=pytest.mark.long) for one in range(1, SHARE))]
)
def test_three_parsers_read_the_same_and_nothing_that_an_origin_hid(first):
    for form in FORMS_OF_ANSWERS[first::SHARE]:
        ways, ended = read(form)
        found, left = ways["h11"]
        assert all(way == (found, left) for way in ways.values()), (form, ways)
        assert left == b"", (form, ways)
        last = [one for one in found if one.status >= 200]
        assert len(last) <= 2, (form, found)
        assert all(b"poison" not in (one.body or b"") or b"page" in one.body for one in last[1:]), (
            form,
            found,
        )
        if len(last) == 2:
            assert last[1] == (200, b"good"), (form, found)
        elif last and last[0].body is None:
            assert ended or is_unfinished(form), (form, found)


def is_unfinished(form):
    """More of it has to come, as far as its head says."""
    return form.closing in ("stays", "says more later")


def test_the_page_shows_what_the_edge_does():
    """`python -m tests.edge.answer_forms > docs/explanation/framing.md` writes it again."""
    assert PAGE.read_text() == page()


def test_there_are_enough_forms():
    assert len(FORMS_OF_ANSWERS) > 20_000
    assert (len(FRAMINGS), len(INTERIMS), len(PARSERS)) >= (40, 6, 3)
