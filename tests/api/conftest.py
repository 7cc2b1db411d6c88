"""A whole API in the test's own process: a real store, the real pipeline, no socket."""

from collections.abc import Iterator

import pytest

from edgestead.model.call import Profile
from edgestead.testing.api import LocalApi


@pytest.fixture
def profile() -> Profile:
    """A module that asks the other profile overrides this."""
    return Profile.SPEC


@pytest.fixture
def as_of() -> None:
    """The date whose behaviour is served; None is today's. Tests of dated rows parametrise it."""
    return None


@pytest.fixture
def managed() -> None:
    """The managed ruleset that the server has loaded; modules about rulesets override this."""
    return None


@pytest.fixture
def api(tmp_path, profile, as_of, managed) -> Iterator[LocalApi]:
    made = LocalApi(tmp_path, profile=profile, as_of=as_of, managed=managed)
    yield made
    made.close()


@pytest.fixture
def zone_id(api) -> str:
    return api.post("/zones", {"name": "example.com"}).result["id"]


@pytest.fixture
def records(zone_id) -> str:
    """The path of the zone's records."""
    return f"/zones/{zone_id}/dns_records"
