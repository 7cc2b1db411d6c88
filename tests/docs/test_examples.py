"""Every shell and Python example of the other pages does what the page says, word for word."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from tests.docs.conftest import ROOT, Checkout

PAGES = {  # page, and how its last command's output must end
    "docs/how-to/operate-objects.md": "1 object checked, 0 damaged.",
    "docs/how-to/one-file.md": "edge.toml: 1 change made.",
    "docs/how-to/move-out.md": "bytes.",
    "docs/how-to/history.md": '"total_records_parsed":1},"success":true,"errors":[],"messages":[]}',
}
OBJECTS_PAGE = "docs/how-to/objects.md"
LONGEST_SECONDS = 60  # between the first commands of a page
EXAMPLES = str(ROOT / "examples")

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("dig")), reason="curl or dig is missing"
)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_work_as_written(page, tmp_path, new_server):
    server = new_server("--objects", EXAMPLES).start()

    printed = Checkout(tmp_path / "checkout", server).run(page)

    assert printed.strip().endswith(PAGES[page])


def begin_within_an_hour():
    """The rate limiter of the examples counts by the hours of the clock; a page takes a part of one."""
    if (left := 3_600 - time.time() % 3_600) < LONGEST_SECONDS:
        time.sleep(left)


def python_blocks(page):
    """The fenced `python` blocks of a page."""
    return [part.partition("```")[0] for part in (ROOT / page).read_text().split("```python\n")[1:]]


def test_the_objects_page_works_with_the_examples_and_the_class_it_shows(tmp_path, new_server):
    counter = tmp_path / "counter.py"
    counter.write_text(python_blocks(OBJECTS_PAGE)[0])
    server = new_server("--objects", EXAMPLES, "--objects", str(counter)).start()
    begin_within_an_hour()

    printed = Checkout(tmp_path / "checkout", server).run(OBJECTS_PAGE)

    *lines, total = printed.splitlines()
    answers = [json.loads(line)["result"] for line in lines]
    assert [answer["allowed"] for answer in answers[:4]] == [True, True, True, False]
    assert [row["player"] for row in answers[6]] == ["bob", "ann"]
    assert answers[7:10] == [1, {"id": 1, "tries": 1, "payload": {"to": "ann@example.org"}}, True]
    assert (answers[10:], total) == ([5, 1], "6")


@pytest.mark.parametrize("page", [OBJECTS_PAGE, "docs/how-to/objects-in-time.md"])
def test_a_pages_classes_and_their_tests_work_as_written(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(python_blocks(page)))

    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
