"""Every shell example of the pages for newcomers does what the page says, word for word."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
PAGES = {  # page, and how its last command's output must end
    "README.md": '{"result":1,"success":true,"errors":[],"messages":[]}',
    "docs/tutorial.md": '"messages":[]}',
    "docs/how-to/operate-objects.md": "1 object checked, 0 damaged.",
    "docs/how-to/history.md": '"total_records_parsed":1},"success":true,"errors":[],"messages":[]}',
}


def examples(page):
    """The fenced `sh` blocks of a page, in order, as one script."""
    parts = (ROOT / page).read_text().split("```sh\n")[1:]
    return "\n".join(part.partition("```")[0] for part in parts)


OBJECTS_PAGE = "docs/how-to/objects.md"
EXAMPLES = str(ROOT / "examples")


@pytest.fixture
def checkout(tmp_path, new_server):
    """A folder like a checkout after its first start: `.venv/bin/edgecli` talks to the started server."""
    return make_checkout(tmp_path, new_server("--objects", EXAMPLES).start())


def make_checkout(tmp_path, edge_server):
    command = tmp_path / "checkout" / ".venv" / "bin" / "edgecli"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\n[ "$1" = object ] || set -- "$@" --data-dir {edge_server.data_dir}\n'
        f'PYTHONPATH={SRC} exec {sys.executable} -P -m edgestead "$@"\n'
    )
    command.chmod(0o755)
    return tmp_path / "checkout"


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_work_as_written(page, checkout):
    if not (shutil.which("curl") and shutil.which("dig")):
        pytest.skip("curl and dig are missing")

    done = subprocess.run(
        ["sh", "-euc", examples(page)],
        cwd=checkout,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(PAGES[page])
    if page == "README.md":
        assert "}192.0.2.1\n{" in done.stdout


def test_the_tutorial_shows_a_refusal_and_an_answer(checkout):
    done = subprocess.run(
        ["sh", "-euc", examples("docs/tutorial.md")],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert '"code":9005' in done.stdout
    assert "}192.0.2.1\n{" in done.stdout


def python_blocks(page):
    """The fenced `python` blocks of a page."""
    return [part.partition("```")[0] for part in (ROOT / page).read_text().split("```python\n")[1:]]


def test_the_objects_page_works_with_the_examples_and_the_class_it_shows(tmp_path, new_server):
    counter = tmp_path / "counter.py"
    counter.write_text(python_blocks(OBJECTS_PAGE)[0])
    server = new_server("--objects", EXAMPLES, "--objects", str(counter)).start()

    done = subprocess.run(
        ["sh", "-euc", examples(OBJECTS_PAGE)],
        cwd=make_checkout(tmp_path, server),
        capture_output=True,
        text=True,
        timeout=200,
    )

    *lines, total = done.stdout.splitlines()
    answers = [json.loads(line)["result"] for line in lines]
    assert [answer["allowed"] for answer in answers[:4]] == [True, True, True, False]
    assert [row["player"] for row in answers[6]] == ["bob", "ann"]
    assert answers[7:10] == [1, {"id": 1, "tries": 1, "payload": {"to": "ann@example.org"}}, True]
    assert (answers[10:], total) == ([5, 1], "6")


def test_the_objects_pages_class_and_its_test_work_as_written(tmp_path):
    script = tmp_path / "counter.py"
    script.write_text("\n".join(python_blocks(OBJECTS_PAGE)))

    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
)
def test_every_local_link_leads_somewhere(page):
    text = (ROOT / page).read_text()
    targets = [part.partition(")")[0].partition("#")[0] for part in text.split("](")[1:]]
    missing = [t for t in targets if t and "://" not in t and not ((ROOT / page).parent / t).exists()]

    assert missing == []
