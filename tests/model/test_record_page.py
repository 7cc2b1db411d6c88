"""The page about record types says what the table says."""

from pathlib import Path

import pytest

from edgestead.model.records import TYPES
from edgestead.model.records.page import reference_page

PAGE = Path(__file__).parents[2] / "docs/reference/record-types.md"
COMMAND = "python -m edgestead.model.records.page > docs/reference/record-types.md"


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == reference_page(), f"run: {COMMAND}"


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.name)
def test_every_type_has_its_heading_and_fields(row):
    section = reference_page().split(f"\n## {row.name}\n")[1].split("\n## ")[0]

    assert [field.name for field in row.fields if f"| `{field.name}` |" not in section] == []
