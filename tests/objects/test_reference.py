"""The same script on ours and on the reference runtime: the same outcomes, but for listed differences.

Values are compared whole. Errors are compared by kind, and by SQLite's code where the reference gives one;
the words are each side's own.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.objects.reference.key_cases import KEY_CASES, KEYS_ONLY_CASES, random_case
from tests.objects.reference.runners import NotHere, Reference, reference, run_ours
from tests.objects.reference.script import REASONS, Differs, outcomes_of
from tests.objects.reference.sql_cases import SQL_CASES

RANDOM = {f"random keys {seed}": random_case(seed) for seed in range(12)}
CASES = {
    "SqlSubject": KEY_CASES | SQL_CASES | RANDOM,
    "KeysSubject": KEY_CASES | KEYS_ONLY_CASES | RANDOM,
}
CODE = re.compile(r": (SQLITE_[A-Z]+)")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    try:
        with reference(tmp_path_factory.mktemp("reference")) as runtime:
            yield runtime
    except NotHere as error:
        pytest.skip(f"*** NOT COMPARED WITH THE REFERENCE RUNTIME: {error}")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[Any]]]:
    return {kind: run_ours(tmp_path_factory.mktemp(kind), kind, cases) for kind, cases in CASES.items()}


def agree(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if "error" not in ours or "error" not in theirs:
        return ours == theirs
    (kind, words), (their_kind, their_words) = ours["error"], theirs["error"]
    codes = CODE.findall(their_words)
    return bool(kind == their_kind and (not codes or CODE.findall(words) == codes[:1]))


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in CASES.items() for name in cases])
def test_both_runtimes_agree(
    kind: str, name: str, ours: dict[str, dict[str, list[Any]]], theirs: Reference
) -> None:
    steps = CASES[kind][name]
    expected, found = outcomes_of(steps), ours[kind][name]
    told = theirs.run(kind, name, steps)

    assert len(found) == len(told) == len(expected)
    wrong = [
        f"{str(step)[:200]}\n  here {str(mine)[:300]}\n  there {str(other)[:300]}"
        for step, mine, other in zip(expected, found, told, strict=True)
        if agree(mine, other) is isinstance(step, Differs)
    ]
    assert not wrong, "differ, or are listed as a difference and do not:\n" + "\n".join(wrong)


def test_each_difference_is_in_the_docs_and_each_reason_is_used() -> None:
    page = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    used = {
        step.reason
        for cases in CASES.values()
        for steps in cases.values()
        for step in outcomes_of(steps)
        if isinstance(step, Differs)
    }

    assert [words for words in REASONS.values() if f"| {words} |" not in page] == []
    assert used == set(REASONS)


def test_a_difference_would_be_seen() -> None:
    error = {"error": ["TypeError", "words"]}
    assert agree(error, {"error": ["TypeError", "other words"]})
    assert not agree(error, {"error": ["RangeError", "words"]})
    assert not agree(error, {"ok": None})
    assert not agree({"ok": 1}, {"ok": 2})
    locked = {"error": ["Error", "no: SQLITE_AUTH"]}
    assert not agree(locked, {"error": ["Error", "no: SQLITE_ERROR (extended: SQLITE_X)"]})
    assert agree(locked, {"error": ["Error", "no"]})
