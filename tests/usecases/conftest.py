"""Use cases over a real store, without HTTP."""

import pytest

from tests.support.api import LocalApi


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path)
    yield made
    made.close()
