"""The examples are short and load; what they do is tested beside them, in `examples/tests`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgestead.objects.runtime.loader import LoadError, load
from edgestead.objects.types import module_text

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["booking", "rate_limiter", "leaderboard", "work_queue"]


def source(name: str) -> tuple[str]:
    return (str(EXAMPLES / f"{name}.py"),)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 80


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no class derives"),
        ("x = (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import missing_module", "ModuleNotFoundError"),
        ("from edgestead import StatefulObject\nclass A(StatefulObject):\n    storage = 'disk'", "must be"),
        (
            "from edgestead import StatefulObject\nclass A(StatefulObject):\n    def fetch(self, r): pass",
            "async",
        ),
    ],
)
def test_a_source_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)

    with pytest.raises(LoadError, match=words) as caught:
        load([str(path)])
    assert "mine" in str(caught.value)


def test_a_folder_is_all_of_its_files_which_may_import_one_another(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_ours.py").write_text("NUMBER = 5")
    for name in ("One", "Two"):
        text = "from edgestead import StatefulObject\nimport neighbour_of_ours\n"
        text += f"class {name}(StatefulObject):\n    number = neighbour_of_ours.NUMBER\n"
        (tmp_path / f"{name.lower()}.py").write_text(text)

    assert sorted(load([str(tmp_path)])) == ["One", "Two"]


def test_the_types_of_env_name_classes_and_bindings(tmp_path: Path) -> None:
    text = module_text(load([*source("work_queue"), *source("leaderboard")]), ["CACHE"])

    assert "import leaderboard as _0\nimport work_queue as _1\n" in text
    assert "    Leaderboard: Namespace[_0.Leaderboard]\n    WorkQueue: Namespace[_1.WorkQueue]\n" in text
    assert text.endswith("    CACHE: KeyValues\n")


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(LoadError, match="already defined"):
        load([*source("work_queue"), *source("work_queue")])
    with pytest.raises(LoadError, match="missing"):
        load(["/missing.py"])


WITHOUT_WAITING = """
import selectors, sys, time
import pytest

asked = []

def sleep(seconds):
    asked.append(f"sleep({seconds})")

select = selectors.DefaultSelector.select

def watched(self, timeout=None):
    if timeout is None or timeout > 0:
        asked.append(f"select({timeout})")
    return select(self, timeout)

class Plugin:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self):
        time.sleep, selectors.DefaultSelector.select = sleep, watched
        yield
        time.sleep, selectors.DefaultSelector.select = real, select

real = time.sleep
code = pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider"], plugins=[Plugin()])
sys.exit(f"waited: {asked}" if asked else code)
"""


def test_the_tests_of_the_examples_never_wait() -> None:
    """Hours and days of invented time take none of ours: nothing sleeps, and no loop waits for anything."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_WAITING, str(EXAMPLES / "tests")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    assert done.returncode == 0, done.stdout + done.stderr
