"""What the tests of all stores share."""

import pytest

from edgestead.sqlite import writer


@pytest.fixture(autouse=True)
def whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits behind a gate is one group, for however long a busy machine keeps the writer from it."""
    monkeypatch.setattr(writer, "GROUP_MS_MAX", 3_600_000)
