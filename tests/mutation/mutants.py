"""Break one thing at a time, and see whether a test fails.

Owns  which changes are made, the copy that is broken, the score.
Not   what must be noticed by whom (`rows`); making mutants and running tests, which mutmut does.

By hand: `PYTHONPATH=. .venv/bin/python -m tests.mutation.mutants dns/answer 20`.

mutmut's own list is longer. Left out are its changes that make nearly every test fail by a TypeError (an
argument or a value replaced by None) and those of texts: they would flatter the score and blur it. Put in are
three that it has not: a call that is not made, a value that is not returned, a condition turned round.

mutmut knows functions and methods without decorators. It runs the tests that reached a function in a first,
whole run, in a fork for each mutant.
"""

import ast
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import libcst
import pytest
from mutmut.__main__ import cli
from mutmut.configuration import config
from mutmut.mutation import file_mutation, mutators
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

from tests.mutation.rows import AT_IMPORT, EXPLAINED, ROWS, SEED, Row

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "docs", "examples", "conftest.py", "pyproject.toml", "CHANGELOG.md")
NOTICED = {"killed", "timeout", "segfault"}
PROCESSES = 2
RUN_SECONDS_MAX = 3_600
REPORT = "mutants.json"
Function = ast.FunctionDef | ast.AsyncFunctionDef

CONFIGURATION = """
[tool.mutmut]
source_paths = ["src/"]
only_mutate = {files}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "--timeout=60"]
also_copy = ["conftest.py", "docs", "examples", "CHANGELOG.md"]
do_not_mutate_patterns = ['^\\s*(log|_log|logger)\\.', '^\\s*assert ']
timeout_multiplier = 5.0
timeout_constant = 4.0
track_dependencies = false
use_git_change_detection = false
use_setproctitle = false
"""


class Outcome(NamedTuple):
    """One mutant: where it is, the line that was there, the line that is there now, what became of it."""

    file: str
    line: int
    before: str
    after: str
    status: str

    @property
    def reason(self) -> str | None:
        return EXPLAINED.get((self.file, self.before, self.after))


class Report(NamedTuple):
    """What became of a row's sample. `made` counts the mutants that there are."""

    row: str
    made: int
    outcomes: tuple[Outcome, ...]

    @property
    def survivors(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.status not in NOTICED]

    @property
    def unexplained(self) -> list[Outcome]:
        return [one for one in self.survivors if one.reason is None]

    @property
    def raw(self) -> float:
        return 1 - len(self.survivors) / len(self.outcomes)

    @property
    def adjusted(self) -> float:
        explained = len(self.survivors) - len(self.unexplained)
        return 1 - len(self.unexplained) / (len(self.outcomes) - explained)

    def __str__(self) -> str:
        lines = [
            f"{self.row}: {len(self.outcomes)} of {self.made} mutants, {self.raw:.1%} noticed, "
            f"{self.adjusted:.1%} but for the explained"
        ]
        for one in sorted(self.survivors):
            lines += [f"  {one.file}:{one.line} {one.status}: {one.reason or 'nobody noticed'}"]
            lines += [f"    - {one.before}", f"    + {one.after}"]
        return "\n".join(lines)


# the changes


def drop_call(node: libcst.SimpleStatementLine) -> Iterator[libcst.SimpleStatementLine]:
    if len(node.body) == 1 and isinstance(node.body[0], libcst.Expr):
        value = node.body[0].value
        value = value.expression if isinstance(value, libcst.Await) else value
        if isinstance(value, libcst.Call) and not libcst.Module([node]).code.lstrip().startswith("log."):
            yield node.with_changes(body=[libcst.Pass()])


def return_nothing(node: libcst.Return) -> Iterator[libcst.Return]:
    named = isinstance(node.value, libcst.Name) and node.value.value
    if node.value is not None and named not in ("None", "False"):  # None is as good as False
        yield node.with_changes(value=libcst.Name("None"))


def turn_round(node: libcst.If | libcst.While) -> Iterator[libcst.If | libcst.While]:
    if not isinstance(node.test, libcst.UnaryOperation):  # without its `not` it is another one's
        test = node.test.with_changes(lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()])
        yield node.with_changes(test=libcst.UnaryOperation(libcst.Not(), test))


OWN = [
    (libcst.SimpleStatementLine, drop_call),
    (libcst.Return, return_nothing),
    (libcst.If, turn_round),
    (libcst.While, turn_round),
]
TAKEN = {
    "operator_number",
    "operator_name",
    "operator_remove_unary_ops",
    "operator_keywords",
    "operator_swap_op",
    "operator_augmented_assignment",
    "operator_match",
    "operator_if_exp",
    "operator_symmetric_string_methods_swap",
}


@contextlib.contextmanager
def our_changes() -> Iterator[None]:
    """mutmut with the changes that count here."""
    theirs = list(mutators.mutation_operators)
    taken = [(kind, change) for kind, change in theirs if change.__name__ in TAKEN]
    file_mutation.mutation_operators[:] = taken + OWN  # type: ignore[attr-defined]
    try:
        yield
    finally:
        file_mutation.mutation_operators[:] = theirs  # type: ignore[attr-defined]


# in the copy, in a process of its own


def names_of(files: list[Path]) -> Iterator[str]:
    """Every mutant of code that runs: an interface's signature without a body does nothing."""
    for path in files:
        source = path.read_text()
        functions = functions_of(source)
        for name in file_mutation.mutate_file_contents(str(path), source).mutant_names:
            mangled = name.partition("__mutmut_")[0]
            if mangled not in functions or _does_something(functions[mangled]):
                yield get_mutant_name(path, name)


def functions_of(source: str) -> dict[str, Function]:
    """Functions and methods by the names that mutmut gives them."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            found |= {f"xǁ{node.name}ǁ{one.name}": one for one in node.body if isinstance(one, Function)}
        elif isinstance(node, Function):
            found[f"x_{node.name}"] = node
    return found


def _does_something(function: Function) -> bool:
    return not all(
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in function.body
    )


def run_here(sample: int) -> None:
    """Run a sample of the mutants of this folder's configuration, and write what became of each."""
    files = sorted(path for path in Path("src").rglob("*.py") if config().should_mutate(path))
    # Tests are collected more than once in this process. pytest would take the names that it remembers, and
    # escape the "§" in them once more; so it has nothing to remember.
    setattr(pytest.Mark, "_has_param_ids", lambda mark: False)  # noqa: B010
    with our_changes():
        made = sorted(name for name in names_of(files) if name.partition("__mutmut")[0] not in AT_IMPORT)
        chosen = random.Random(SEED).sample(made, min(sample, len(made)))
        cli(["run", "--max-children", str(PROCESSES), *chosen], standalone_mode=False)
        wanted = set(chosen)
        outcomes = [
            _outcome(path, name, code)
            for path in files
            for name, code in json.loads(_meta(path).read_text())["exit_code_by_key"].items()
            if name in wanted
        ]
    Path(REPORT).write_text(json.dumps({"made": len(made), "outcomes": outcomes}))


def _meta(path: Path) -> Path:
    return Path("mutants") / f"{path}.meta"


def _outcome(path: Path, name: str, code: int | None) -> Outcome:
    diff = get_diff_for_mutant(name, path=path).split("\n")[2:]
    before = [line[1:].strip() for line in diff if line.startswith("-")]
    after = [line[1:].strip() for line in diff if line.startswith("+")]
    at = next(n for n, line in enumerate(diff) if line.startswith(("-", "+")))
    offset = int(diff[0].split()[1].split(",")[0].lstrip("-")) + at - 2
    function = functions_of(path.read_text()).get(name.rpartition("__mutmut_")[0].rpartition(".")[2])
    begin = function.lineno if function else 0
    return Outcome(
        str(path.relative_to("src/edgestead")),
        begin + offset,
        " ".join(before),
        " ".join(after),
        status_by_exit_code[code],
    )


# from outside


def run(name: str, folder: Path, sample: int | None = None) -> Report:
    """Copy the checkout into `folder`, break it there, say what was noticed."""
    row = ROWS[name]
    _copy(row, folder)
    environment = os.environ | {"CI": "1", "PYTHONPATH": str(folder)}  # CI: the same examples every time
    command = [sys.executable, "-m", "tests.mutation.mutants", "--here", str(sample or row.sample)]
    with (folder / "mutmut.log").open("w") as log:
        ended = subprocess.run(
            command, cwd=folder, env=environment, stdout=log, stderr=log, timeout=RUN_SECONDS_MAX
        )
    said = (folder / "mutmut.log").read_text()[-3_000:]
    assert ended.returncode == 0, said
    found = json.loads((folder / REPORT).read_text())
    return Report(name, found["made"], tuple(Outcome(*one) for one in found["outcomes"]))


def _copy(row: Row, folder: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "npm"))
        else:
            shutil.copy(source, folder / name)
    files = [file for pattern in row.files for file in sorted((ROOT / "src/edgestead").glob(pattern))]
    broken = json.dumps([str(file.relative_to(ROOT)) for file in files])
    tests = json.dumps([f"tests/{test}" for test in row.tests])
    with (folder / "pyproject.toml").open("a") as text:
        text.write(CONFIGURATION.format(files=broken, tests=tests))


def main(*words: str) -> None:
    if words[0] == "--here":
        run_here(int(words[1]))
        return
    sample = int(words[1]) if len(words) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(f"{run(words[0], Path(folder), sample)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
