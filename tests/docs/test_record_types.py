"""The page of record types names every member of every type."""

import pytest

from docs.writers.record_types import page
from edgestead.model.records import TYPES


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.name)
def test_every_type_has_its_heading_and_fields(row):
    section = page().split(f"\n## {row.name}\n")[1].split("\n## ")[0]

    assert [field.name for field in row.fields if f"| `{field.name}` |" not in section] == []
