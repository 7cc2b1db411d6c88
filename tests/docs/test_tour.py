"""The tour does what it says, word for word: from a first zone to an object that goes back in time."""

import json
import re
import shutil

import pytest

from edgestead.crs.loader import SYSTEM_RULES
from tests.docs.conftest import ROOT, shell_of

SCREENS_MAX, SCREEN_LINES = 2, 50
pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("dig") and SYSTEM_RULES.is_dir()),
    reason="curl, dig or the package modsecurity-crs is missing",
)


def seats_of(printed):
    """What `edgecli` printed as JSON."""
    return [
        json.loads(text) for text in re.findall(r"^\{\n.*?^\}$|^\{\}$", printed, re.MULTILINE | re.DOTALL)
    ]


def promised_statuses(page):
    """The statuses that stand as comments behind the visits, in order."""
    found = []
    for line in shell_of(page).splitlines():
        visits = len(re.findall(r"\bstatus [/'\"]", line))
        if visits and (comment := re.search(r"# (\d{3})", line)):
            found += [comment[1]] * visits
    return found


def test_the_tutorial_does_what_it_says(toured):
    printed = toured.run("docs/tutorial.md")
    lines = printed.splitlines()

    assert lines.count("192.0.2.1") == 1
    assert printed.count("}192.0.2.1\n") == 1, "the restored zone answers"
    assert '"code":9005' in printed
    assert lines.count("<h1>Hello from the origin</h1>") == 2, "once by HTTP, once by HTTPS"
    assert "301 https://www.example.com/" in lines
    assert [line for line in lines if re.fullmatch(r"\d{3}", line)] == promised_statuses("docs/tutorial.md")
    assert "managed_challenge" in printed
    predicted = re.search(r"^2 +(\d+) +stopped", printed, re.MULTILINE)[1]
    assert f"score {predicted} of 25" in printed, "the event has the score that was predicted"
    assert "Still stopped with all of it: 0." in printed
    seats = [
        json.loads(text) for text in re.findall(r"^\{\n.*?^\}$|^\{\}$", printed, re.MULTILINE | re.DOTALL)
    ]
    assert seats == [{"1A": {"name": "ann", "sold": True}}, {}, {"1A": {"name": "ann", "sold": True}}]


def test_the_readme_does_what_it_says_in_two_screens(toured):
    assert toured.run("README.md").splitlines()[-1] == "192.0.2.1"
    assert len((ROOT / "README.md").read_text().splitlines()) <= SCREENS_MAX * SCREEN_LINES


def test_the_quick_start_does_what_it_says(toured):
    printed = toured.run("docs/quick-start.md")
    lines = printed.splitlines()

    assert "192.0.2.1" in lines
    assert "<h1>Hello from the origin</h1>" in lines
    assert [line for line in lines if re.fullmatch(r"\d{3}", line)] == promised_statuses(
        "docs/quick-start.md"
    )
    for told in (r"redirect .*/old", r"block .*/login", r"managed_challenge .*/signup"):
        assert re.search(told, printed), "the events tell the story"
    predicted = re.search(r"^2 +(\d+) +stopped", printed, re.MULTILINE)[1]
    assert re.search(rf"block .*/\?q=1%27.* score {predicted} of 25", printed)
    assert "Still stopped with all of it: 0." in printed
    assert seats_of(printed) == [{"1A": {"name": "ann", "sold": False}}]
