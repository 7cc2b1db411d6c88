"""Code that is broken is noticed: in samples, room by room. Figures: docs/explanation/tests.md."""

from pathlib import Path

import pytest

from tests.mutation.rows import EXPLAINED, ROWS, SCORE_MIN

ROOT = Path(__file__).parents[2]
# a function, and how many ways there are to break it
WAYS = {
    "a call that is not made": ("def f(a):\n    a.sync()\n", 1),
    "a log line is no call": ("def f(a):\n    log.info(a)\n", 0),
    "a value that is not returned": ("def f(a):\n    return a\n", 1),
    "None is as good as False": ("def f(a):\n    return None\n", 0),
    "a comparison": ("def f(a, b):\n    c = a < b\n", 1),
    "a number": ("def f():\n    c = 3\n", 1),
    "and": ("def f(a, b):\n    c = a and b\n", 1),
    "not": ("def f(a):\n    c = not a\n", 1),
    "a condition turned round": ("def f(a):\n    if a:\n        pass\n", 1),
    "a text": ("def f(a):\n    c = 'text'\n", 0),
    "an argument": ("def f(a, b):\n    c = g(a, b)\n", 0),
}


@pytest.fixture(scope="module")
def mutants():
    """Loaded by the worker that needs it: mutmut and libcst are 13 MiB."""
    from tests.mutation import mutants

    return mutants


@pytest.mark.parametrize(("code", "number"), WAYS.values(), ids=WAYS)
def test_code_is_broken_in_these_ways(mutants, code, number):
    with mutants.our_changes():
        found = mutants.file_mutation.mutate_file_contents("one.py", code)
    assert len(found.mutant_names) == number


def test_the_library_has_every_change_that_is_taken_from_it(mutants):
    assert {change.__name__ for _, change in mutants.mutators.mutation_operators} >= mutants.TAKEN


def test_every_row_names_files_and_tests_that_are_there():
    for row in ROWS.values():
        assert all(any((ROOT / "src/edgestead").glob(file)) for file in row.files)
        assert all((ROOT / "tests" / test).exists() for test in row.tests)


def test_an_explained_survivor_counts_neither_way(mutants, monkeypatch):
    outcomes = [mutants.Outcome("a.py", 1, "x", "y", status) for status in ("killed", "survived", "no tests")]
    report = mutants.Report("a", 9, (*outcomes, mutants.Outcome("b.py", 1, "x", "z", "survived")))
    assert (report.raw, report.adjusted) == (0.25, 0.25)

    monkeypatch.setitem(EXPLAINED, ("b.py", "x", "z"), "the same")
    assert (report.raw, report.adjusted) == (0.25, pytest.approx(1 / 3))
    assert "b.py:1 survived: the same" in str(report)


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_tests_notice_what_is_broken(mutants, name, tmp_path):
    report = mutants.run(name, tmp_path)

    assert report.adjusted >= SCORE_MIN, str(report)
