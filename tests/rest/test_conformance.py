"""The page of programs is current, and each row that says that a program works has a test by name."""

import ast
from pathlib import Path

import pytest

from tests.clients.conformance import PAGE, PROGRAMS, evidence_of, page, verdicts
from tests.clients.replays import NEVER, REPLAYS
from tests.clients.terraform import CONFIGURATIONS

ROOT = Path(__file__).parents[2]
PROGRAMS_MIN = 40


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run `.venv/bin/python -m tests.clients.conformance`"
    assert f"{len(CONFIGURATIONS)} configurations" in page()


def test_there_are_enough_programs_each_with_one_evidence():
    names = [one.name for one in PROGRAMS]
    assert len(set(names)) == len(names) >= PROGRAMS_MIN
    for one in PROGRAMS:
        assert [bool(one.script), bool(one.replay), bool(one.test)].count(True) == 1, one.name
    assert {one.replay for one in PROGRAMS if one.replay} == set(REPLAYS)
    assert set(REPLAYS) >= NEVER


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_a_row_has_a_test_by_name(program):
    file, _, name = evidence_of(program).partition("::")
    functions = {
        one.name for one in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(one, ast.FunctionDef)
    }

    assert name.partition("[")[0] in functions
    if program.script:
        assert (ROOT / "tests" / "clients" / "clients" / f"{program.script}.py").is_file()
    assert all(verdict.startswith(("works", "does not", "no test")) for verdict in verdicts(program))


def test_every_script_of_a_program_is_in_a_row():
    scripts = {one.stem for one in (ROOT / "tests" / "clients" / "clients").glob("*.py")}

    assert scripts - {one.script for one in PROGRAMS} == {"wrangler_kv_local"}  # asks no server
