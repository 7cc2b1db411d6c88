"""The codes of key-value refusals: each has its own meaning, and what never comes is told."""

import inspect
from pathlib import Path

import pytest

from edgestead.model.refusals import EdgeError, kv

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
NEVER = (10010, 10017, 10018, 10021, 10024, 10026, 10035, 10038)
OURS_ALONE = (10022, 10030, 10033, 10047, 10147)

REFUSALS = [
    refusal
    for _, refusal in inspect.getmembers(kv, inspect.isclass)
    if issubclass(refusal, EdgeError) and refusal.__module__ == kv.__name__
]


@pytest.mark.parametrize("code", NEVER)
def test_a_code_that_means_nothing_here_is_never_answered_and_told_so(code):
    assert code not in {refusal.code for refusal in REFUSALS}
    assert str(code) in DIFFERENCES.read_text().partition("## Keys and values")[2].partition("## ")[0]


@pytest.mark.parametrize("code", OURS_ALONE)
def test_a_code_whose_words_are_unknown_is_answered_and_told(code):
    assert code in {refusal.code for refusal in REFUSALS}
    assert str(code) in DIFFERENCES.read_text().partition("## Keys and values")[2].partition("## ")[0]


def test_one_code_is_one_kind_of_refusal():
    by_code = {}
    for refusal in REFUSALS:
        by_code.setdefault(refusal.code, []).append(refusal)
    apart = {
        code: [one.__name__ for one in found]
        for code, found in by_code.items()
        if not any(all(issubclass(one, kind) for one in found) for kind in found)
    }

    assert apart == {10012: ["BadCursor", "BulkItemInvalid", "KvBodyInvalid"]}
