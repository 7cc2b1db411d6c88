"""Every route with each way of saying who calls."""

import pytest

from edgestead.api.routing import BASE_PATH, ROUTES
from edgestead.services.access import CONTENTS, PLATFORM, TOKENS
from edgestead.testing.api import BEARER, CREDENTIALS, KEY_PAIR

PRIVATE = [row for row in ROUTES if not row.public]
NOBODY = {CONTENTS: (403, 10000), PLATFORM: (403, 9109), TOKENS: (401, 1000)}
BODIES = {
    ("POST", "/zones"): {"name": "matrix.test"},
    ("POST", "/zones/{zone_id}/dns_records"): {"type": "A", "name": "new", "content": "192.0.2.9"},
    ("PATCH", "/zones/{zone_id}/dns_records/{dns_record_id}"): {"ttl": 60},
    ("PUT", "/zones/{zone_id}/dns_records/{dns_record_id}"): {
        "type": "A",
        "name": "www",
        "content": "192.0.2.8",
    },
}


def named(row):
    return f"{row.method} {row.path.removeprefix(BASE_PATH)}"


@pytest.fixture
def ask(api, zone_id, www):
    """Call a route with everything it needs to succeed, and these credentials."""
    ids = {
        "zone_id": zone_id,
        "dns_record_id": www.rpartition("/")[2],
        "account_id": CREDENTIALS.account_id,
    }

    def call(row, auth):
        path = row.path.removeprefix(BASE_PATH)
        body = BODIES.get((row.method, path))
        return api.call(row.method, path.format(**ids), body, auth=auth)

    return call


@pytest.mark.parametrize("auth", [BEARER, KEY_PAIR], ids=["token", "key pair"])
@pytest.mark.parametrize("row", PRIVATE, ids=named)
def test_every_route_takes_both_schemes(ask, row, auth):
    answer = ask(row, auth)

    if row.family is TOKENS and auth is KEY_PAIR:
        assert (answer.status, answer.codes) == (401, [1000])  # a key pair is no token
    else:
        assert answer.json["success"] is True
        assert answer.status == 200


@pytest.mark.parametrize("row", PRIVATE, ids=named)
def test_no_route_takes_nobody_or_a_stranger(ask, row):
    nobody = ask(row, {})
    stranger = ask(row, {"authorization": "Bearer " + "x" * 40})
    wrong_key = ask(row, {**KEY_PAIR, "x-auth-key": "f" * 37})

    assert (nobody.status, nobody.codes) == (400, [9106])
    assert (stranger.status, *stranger.codes) == NOBODY[row.family]
    assert (wrong_key.status, wrong_key.codes) == (403, [9103])


@pytest.mark.parametrize("row", [row for row in ROUTES if row.public], ids=named)
def test_the_servers_own_routes_ask_nobody(api, row):
    assert api.call(row.method, row.path, base="", auth={}).status == 200
