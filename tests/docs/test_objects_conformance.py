"""The page that says how stateful objects are proved names every item once, and only tests that are there."""

import re

from edgestead.model.refusals import object as refusals
from tests.docs.conftest import ROOT

PAGE = (ROOT / "docs" / "reference" / "objects-conformance.md").read_text()
ITEMS, RULES = PAGE.split("## The rules of the log")
ITEM = re.compile(r"^\| (\d+) \|(.*)\|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
ITEMS_COUNT = 148


def is_there(file, test):
    path = ROOT / file if "/" in file else ROOT / "tests" / "objects" / file
    return path.is_file() and re.search(rf"^(?:async )?def {test}\(", path.read_text(), re.MULTILINE)


def test_every_item_is_there_once_with_its_tests_or_a_reason():
    found = ITEM.findall(ITEMS)

    assert [int(number) for number, _ in found] == list(range(1, ITEMS_COUNT + 1))
    assert [number for number, row in found if bool(TEST.search(row)) is ("| not built: " in row)] == []


def test_every_rule_has_a_test():
    rows = re.findall(r"^\| .+ \|$", RULES, re.MULTILINE)[1:]

    assert len(rows) > 20
    assert [row for row in rows if not TEST.search(row)] == []


def test_every_test_that_is_named_is_there():
    named = TEST.findall(PAGE)

    assert len(set(named)) > 100
    assert [f"{file}::{test}" for file, test in named if not is_there(file, test)] == []
    assert not is_there("test_keys.py", "test_that_nobody_wrote")


def test_every_refusal_of_a_call_is_in_the_table_of_status_codes():
    page = (ROOT / "docs" / "reference" / "objects.md").read_text()
    rows = re.findall(r"^\| .+ \| (\d{3}) \| ([\d· ]+) \|$", page, re.MULTILINE)
    listed = {(int(code), int(status)) for status, codes in rows for code in codes.split(" · ")}
    built = {(kind.code, kind.status) for kind in vars(refusals).values() if is_of_calls(kind)}

    assert listed == built


def is_of_calls(kind):
    """Not one of the routes of operators, which are on another page."""
    return (
        isinstance(kind, type)
        and refusals.__name__ == kind.__module__
        and kind.code not in (*range(10470, 10474), 10477)
    )
