"""Every dated row has its heading in the reference, and pages that name rows name ones that exist."""

from pathlib import Path

import pytest

from edgestead.changes import CHANGES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "changes.md").read_text()
HEADINGS = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]


def test_the_headings_are_the_rows():
    assert HEADINGS == [change.subject for change in CHANGES]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.subject)
def test_a_row_says_its_day_its_endpoints_and_what_to_use(change):
    text = PAGE.split(f"## {change.subject}\n")[1].split("\n## ")[0]

    assert str(change.day) in text
    assert change.advice() in text
    assert "* before: " in text
    assert "* since: " in text
    for endpoint in (*change.endpoints, *change.affected):
        assert endpoint.path in text
        assert endpoint.method in text


def test_links_to_a_row_lead_to_its_heading():
    for page in DOCS.glob("**/*.md"):
        for part in page.read_text().split("changes.md#")[1:]:
            assert part.partition(")")[0] in HEADINGS, page
