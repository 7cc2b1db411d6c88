"""Each how-to of docs/contributing/where-goes-what.md is performed on a copy of the tree."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "where-goes-what.md"
_BLOCK = re.compile(r"^```(\w+)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
HOW_TOS = {title: _BLOCK.findall(text) for title, _, text in (s.partition("\n") for s in _SECTIONS)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The sources and pages, as a checkout has them."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("src", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def mended(tree):
    """Change files of the tree for one test. Gives a function of a block's words and its text."""
    before = {}

    def change(words, text):
        options = dict(word.partition("=")[::2] for word in shlex.split(words))
        path = tree / (options.get("file") or options["new"])
        before[path] = path.read_text() if path.exists() else None
        if "new" in options:
            assert before[path] is None, f"{path.name} is there already"
            path.write_text(text)
        elif "append" in options:
            path.write_text(before[path] + "\n\n" + text)
        else:
            anchor = options["after"] + "\n"
            assert before[path].count(anchor) == 1, f"{options['after']} stands once in {path.name}"
            path.write_text(before[path].replace(anchor, anchor + text))

    yield change
    for path, text in reversed(before.items()):
        if text is None:
            path.unlink()
        else:
            path.write_text(text)


def run(tree, script):
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", script], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("title", HOW_TOS)
def test_a_how_to_does_what_it_says(title, tree, mended):
    *changes, (_, words, check) = HOW_TOS[title]
    assert changes
    assert words == ""
    assert run(tree, check).returncode != 0, "the check passes without the change"
    for _, words, text in changes:
        mended(words, text)

    done = run(tree, check)

    assert done.returncode == 0, done.stderr


def test_every_row_of_the_table_has_its_how_to():
    linked = re.findall(r"^\| \[([^]]+)\]", PAGE.read_text(), re.MULTILINE)

    assert [title.lower() for title in HOW_TOS] == linked
