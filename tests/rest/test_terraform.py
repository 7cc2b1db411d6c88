"""Each configuration of Terraform's provider leaves nothing to plan: written, read, and written again."""

import pytest

from edgestead.model.call import Profile
from tests.clients.terraform import CONFIGURATIONS
from tests.rest.conftest import AT_NEWEST
from tests.rest.test_replays import filled
from tests.support.api import CREDENTIALS
from tests.usecases.ruleset_samples import MANAGED

CONFIGURATIONS_MIN = 65
PLANS = 3


@pytest.fixture(params=list(Profile))
def profile(request):
    return request.param


@pytest.fixture
def managed():
    return MANAGED


def test_there_are_as_many_as_were_once_tried_with_the_real_provider():
    assert len({one.name for one in CONFIGURATIONS}) == len(CONFIGURATIONS) >= CONFIGURATIONS_MIN


@AT_NEWEST
def test_no_configuration_differs_plan_after_plan(api, zone_id, profile):
    known = {
        "zone": zone_id,
        "name": "example.com",
        "account": CREDENTIALS.account_id,
        "managed": MANAGED.id,
    }
    for configuration in CONFIGURATIONS:
        wanted = deep(configuration.body, known)
        answer = api.call(configuration.method, filled(configuration.path, known), wanted)
        assert answer.status == 200, (configuration.name, answer.json)
        state = answer.result
        one = filled(configuration.one or configuration.path, known | {"id": str(state.get("id"))})
        ignored = set(configuration.differs)
        if configuration.only_clients and profile is not Profile.CLIENTS:
            ignored.add("content")
        for _ in range(PLANS):
            found = api.get(one).result
            differing = {name for name in wanted if not holds(found.get(name), wanted[name])}
            assert differing == ignored, (configuration.name, found)
            assert unchanging(found) == unchanging(state), configuration.name
            answer = api.call(configuration.again, one, wanted)
            assert answer.status == 200, (configuration.name, answer.json)
            state = answer.result
        if configuration.name.startswith("ruleset"):  # the next one has the phase
            assert api.delete(one).status in (200, 204)


def unchanging(state):
    """Without what a write moves (rules and policies have ids and times inside), and a new token's value."""
    moving = {"modified_on", "last_updated", "version", "rules", "policies", "value", "time_remaining"}
    return {name: one for name, one in state.items() if name not in moving}


def holds(found, wanted):
    """Whether a state has what a configuration says, and perhaps more."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(holds(found.get(name), wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(holds, found, wanted))
    return found == wanted


def deep(value, known):
    """`filled`, in lists and names of members, too."""
    if isinstance(value, dict):
        return {filled(name, known): deep(one, known) for name, one in value.items()}
    return [deep(one, known) for one in value] if isinstance(value, list) else filled(value, known)
