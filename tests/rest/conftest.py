"""A whole API in the test's own process: a real store, the real pipeline, no socket."""

from collections.abc import Iterator
from datetime import date

import pytest

from edgestead.changes import NEWEST, OLDEST
from edgestead.model.call import Profile
from tests.support import follower
from tests.support.api import CREDENTIALS, LocalApi
from tests.support.follower_api import FollowerApi
from tests.usecases.ruleset_samples import CUSTOM_PHASE, block

AT_NEWEST = pytest.mark.parametrize("as_of", [NEWEST], indirect=True, ids=str)
WWW = {"type": "A", "name": "www", "content": "192.0.2.1", "ttl": 3600}


@pytest.fixture
def profile() -> Profile:
    """A module that asks the other profile overrides this."""
    return Profile.SPEC


@pytest.fixture(params=[NEWEST, OLDEST], ids=str)
def as_of(request) -> date:
    """The date whose behaviour is served; every test runs at both. AT_NEWEST is for what a date changed."""
    return request.param


@pytest.fixture
def managed() -> None:
    """The managed ruleset that the server has loaded; modules about rulesets override this."""
    return None


@pytest.fixture
def api(request, tmp_path, profile, as_of, managed) -> Iterator[LocalApi | FollowerApi]:
    """In this process; with --through-follower that of a cluster, as far as a client sees it."""
    if (asked := follower.api_of(request, profile, as_of)) is not None:
        if managed is not None:
            pytest.skip("the nodes have no managed ruleset")
        yield asked
        return
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


@pytest.fixture
def www(api, records) -> str:
    """The path of one record, an A at www.example.com."""
    return f"{records}/{api.post(records, WWW).result['id']}"


@pytest.fixture
def rulesets(zone_id) -> str:
    """The path of the zone's rulesets."""
    return f"/zones/{zone_id}/rulesets"


@pytest.fixture(params=["zone", "account"])
def scope(request, rulesets) -> tuple[str, str]:
    """The path of rulesets, and the kind of its entry points."""
    account = f"/accounts/{CREDENTIALS.account_id}/rulesets"
    return (rulesets, "zone") if request.param == "zone" else (account, "root")


@pytest.fixture
def entrypoint(rulesets) -> str:
    return f"{rulesets}/phases/{CUSTOM_PHASE}/entrypoint"


@pytest.fixture
def three(api, entrypoint):
    """An entry point with rules a, b and c, by their descriptions."""
    return api.put(entrypoint, {"rules": [block(description=name) for name in "abc"]}).result
