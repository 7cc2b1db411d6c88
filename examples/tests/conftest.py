"""The objects that these tests run: every example."""

from pathlib import Path

import pytest


@pytest.fixture
def object_classes():
    return [Path(__file__).parents[1]]
