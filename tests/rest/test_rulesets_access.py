"""Who may read and write rulesets: the permission groups, row by row."""

import json

import pytest

from edgestead.model.permissions import BY_NAME
from edgestead.tables import tokens
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access.authorise import secret_hash
from tests.rest.rulesets import ACCOUNT
from tests.support.api import FIRST_US
from tests.usecases.ruleset_samples import CUSTOM_PHASE, block

SECRET = "Another-token_0123456789ABCDEFabcdef0123"
# permission group, and whether it lets read and write a zone's rulesets, then the account's
GROUPS = [
    ("Zone WAF Read", (True, False), (False, False)),
    ("Zone WAF Write", (True, True), (False, False)),
    ("Account Rulesets Read", (False, False), (True, False)),
    ("Account Rulesets Write", (False, False), (True, True)),
    ("Account WAF Read", (False, False), (True, False)),
    ("Account WAF Write", (False, False), (True, True)),
    ("DNS Write", (False, False), (False, False)),
    ("Zone Write", (False, False), (False, False)),
]


def token(api, group, zone="*", effect="allow") -> dict[str, str]:
    """The headers of a new token with one permission group."""
    policy = {
        "id": "1" * 32,
        "effect": effect,
        "permission_groups": [{"id": BY_NAME[group].id, "name": group}],
        "resources": {
            "com.cloudflare.api.account.*": "*",
            f"com.cloudflare.api.account.zone.{zone}": "*",
        },
    }
    row = TokenRow(
        id="2" * 32,
        owner_kind="user",
        owner_id="3" * 32,
        name="x",
        hash=secret_hash(SECRET),
        status="active",
        policies=json.dumps([policy]),
        condition=None,
        not_before_us=None,
        expires_us=None,
        issued_us=FIRST_US,
        modified_us=FIRST_US,
    )
    api.store.write(lambda tx: tokens.insert(tx, row)).result()
    api.read_access()
    return {"authorization": f"Bearer {SECRET}"}


def may(answer) -> bool:
    assert answer.status == 200 or (answer.status, answer.codes) == (403, [10000]), answer.body
    return answer.status == 200


@pytest.mark.parametrize(("group", "zone", "account"), GROUPS)
def test_a_group_permits_what_it_is_for(api, zone_id, group, zone, account):
    auth = token(api, group)

    for path, (reads, writes) in ((f"/zones/{zone_id}/rulesets", zone), (ACCOUNT, account)):
        entrypoint = f"{path}/phases/{CUSTOM_PHASE}/entrypoint"
        assert may(api.get(path, auth=auth)) == reads
        assert may(api.put(f"{entrypoint}?dry_run=true", {"rules": []}, auth=auth)) == writes
        assert may(api.put(entrypoint, {"rules": []}, auth=auth)) == writes


def test_a_token_for_another_zone_sees_nothing_here(api, zone_id):
    other = api.post("/zones", {"name": "example.net"}).result["id"]
    auth = token(api, "Zone WAF Write", other)

    assert may(api.get(f"/zones/{other}/rulesets", auth=auth))
    assert not may(api.get(f"/zones/{zone_id}/rulesets", auth=auth))
    assert not may(api.get(f"/zones/{'f' * 32}/rulesets", auth=auth))


def test_whoever_may_not_write_learns_nothing_of_the_body(api, zone_id):
    auth = token(api, "Zone WAF Read")

    answer = api.put(
        f"/zones/{zone_id}/rulesets/phases/{CUSTOM_PHASE}/entrypoint", {"rules": [block("oops")]}, auth=auth
    )

    assert (answer.status, answer.codes) == (403, [10000])


def test_unknown_credentials_are_refused_as_on_every_route_of_contents(api, zone_id):
    auth = {"authorization": f"Bearer {'x' * 40}"}

    answer = api.get(f"/zones/{zone_id}/rulesets", auth=auth)

    assert (answer.status, answer.codes) == (403, [10000])
