"""The table of failures names rows of health and tests that are there."""

import ast
import re

import pytest

from edgestead.health.checks import NAMES
from tests.docs.conftest import ROOT

COLUMNS = 7
FAULTS_OF_CLUSTERS = 26
_PAGE = (ROOT / "docs" / "explanation" / "failures.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in _PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| fault |")
]

_CLUSTER = (ROOT / "docs" / "design" / "0057-failures-of-a-cluster.md").read_text()
OF_CLUSTERS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in _CLUSTER.splitlines()
    if line.startswith("| ") and not line.startswith("| fault |")
]


def names_in(file):
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_fault_names_a_row_and_a_test_that_are_there(row):
    assert len(row) == COLUMNS
    *_, check, test = row
    assert check == "–" or check.strip("`") in NAMES
    file, _, name = test.strip("`").partition("::")
    assert name in names_in(file)
    assert all(row), "no cell is empty"


def test_every_row_of_health_has_a_fault():
    named = set(re.findall(r"`([\w-]+)`", " ".join(row[-2] for row in ROWS)))

    assert named == set(NAMES)


@pytest.mark.parametrize("row", OF_CLUSTERS, ids=[row[0] for row in OF_CLUSTERS])
def test_a_fault_of_a_cluster_names_tests_that_are_there(row):
    tests = re.findall(r"`(tests/[^`]*)`(?: \(`(\w+)`\))?", row[-1])
    assert tests
    for test, scene in tests:
        file, _, name = test.partition("::")
        assert {name, scene or name} <= names_in(file)


def test_every_fault_of_a_cluster_is_there():
    assert len(OF_CLUSTERS) == FAULTS_OF_CLUSTERS
