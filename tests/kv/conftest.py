"""The API over a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgestead.model.call import Profile
from tests.support import follower
from tests.support.api import LocalApi
from tests.support.follower_api import FollowerApi
from tests.support.patience import new_server

from .api import NAMESPACES, Namespace

__all__ = ["new_server"]


@pytest.fixture
def profile() -> Profile:
    """A test that asks the other profile overrides this."""
    return Profile.SPEC


@pytest.fixture
def api(request: pytest.FixtureRequest, tmp_path: Path, profile: Profile) -> Iterator[LocalApi | FollowerApi]:
    if (asked := follower.api_of(request, profile)) is not None:
        yield asked
        return
    made = LocalApi(tmp_path, profile=profile)
    yield made
    made.close()


@pytest.fixture
def namespace(api: LocalApi) -> Namespace:
    return Namespace(api, api.post(NAMESPACES, {"title": "things"}).result["id"])
