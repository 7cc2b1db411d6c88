"""One API for all rows, whose calls say their date."""

from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from tests.rest.tokens import ALL_ZONES, policy, zone
from tests.support.api import CREDENTIALS, Answer, LocalApi

ACCOUNT = f"/accounts/{CREDENTIALS.account_id}"


class Then(NamedTuple):
    """The API on one day, and a zone in it."""

    api: LocalApi
    day: Any
    zone_id: str
    has_changed: bool

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        headers = {"edge-as-of": str(self.day), **options.pop("headers", {})}
        return self.api.call(method, path, body, headers=headers, **options)

    @property
    def zone(self) -> str:
        return f"/zones/{self.zone_id}"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    made = LocalApi(tmp_path_factory.mktemp("dated"), allow_as_of=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def new_zone(api):
    """A function that makes a zone of its own."""
    names = (f"zone{number}.test" for number in range(10_000))
    return lambda: api.post("/zones", {"name": next(names)}).result["id"]


@pytest.fixture(scope="module")
def zone_id(new_zone):
    """For those that only read."""
    return new_zone()


def _token(api, *policies) -> dict[str, str]:
    made = api.post("/user/tokens", {"name": "dated", "policies": list(policies)}).result
    return {"authorization": f"Bearer {made['value']}"}


@pytest.fixture(scope="module")
def elsewhere(api, new_zone):
    """A token that sees one zone, which nobody asks for."""
    return _token(api, policy("DNS Write", resources=zone(new_zone())))


@pytest.fixture(scope="module")
def reader(api):
    """A token that reads the records of every zone."""
    return _token(api, policy("DNS Read", resources=ALL_ZONES))


@pytest.fixture
def on(api, new_zone):
    """`on(change, -1)`: the API on the day before a change, with a new zone."""

    def then(change, days, zone_id=None):
        day = change.day + timedelta(days=days)
        return Then(api, day, zone_id or new_zone(), days >= 0)

    return then
