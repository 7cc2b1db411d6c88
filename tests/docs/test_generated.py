"""Pages that are written from tables say what the tables say."""

from pathlib import Path

import pytest

from docs.generate import PAGES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name):
    assert (DOCS / name).read_text() == PAGES[name](), "run: .venv/bin/python -m docs.generate"
