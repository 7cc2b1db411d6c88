"""A benchmark that is killed leaves nothing running, which would disturb the figures of the next one."""

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STARTS = {"Popen": "preexec_fn", "ProcessPoolExecutor": "initializer", "OwnPostgres": "before_exec"}


def starts(source):
    """Calls that start a program which goes on: the line, and whether the program ends with its parent."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in STARTS:
                yield node.lineno, STARTS[name] in [keyword.arg for keyword in node.keywords]


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_starts_ends_with_it(path):
    """`edgestead.cli.parent` has the words; `EdgeServer`, and what tests have of PostgreSQL, say them."""
    assert [line for line, ends in starts(path.read_text()) if not ends] == []


def test_a_program_that_would_go_on_is_seen():
    source = "other(1)\nsubprocess.Popen([x])\nPopen([y], preexec_fn=z)"

    assert list(starts(source)) == [(2, False), (3, True)]
