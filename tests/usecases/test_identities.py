"""Other processes know by the feed alone whom control would let in."""

import msgspec
import pytest

from edgestead.model.permissions import BY_NAME
from edgestead.usecases.access import identities
from edgestead.usecases.access.authorise import Target, permits
from edgestead.usecases.access.identities import FedAccess
from tests.support.api import CREDENTIALS

ACCOUNT = CREDENTIALS.account_id
OWNERS = ["/user/tokens", f"/accounts/{ACCOUNT}/tokens"]
BODY = {
    "name": "a private name",
    "policies": [
        {
            "effect": "allow",
            "permission_groups": [{"id": BY_NAME["Objects Invoke"].id}],
            "resources": {f"com.cloudflare.api.account.{ACCOUNT}": "*"},
        }
    ],
}


def fed(api):
    """What a process that starts now knows."""
    access = FedAccess()
    access.begin()
    api.store.feed.snapshot(frozenset(identities.KINDS), access.load)
    access.swap()
    return access


def may_invoke(access, secret):
    identity = access.table.by_token(secret.encode())
    return identity is not None and permits(identity, "Objects Invoke", Target(access.accounts[0]))


@pytest.fixture(params=OWNERS)
def path(request):
    return request.param


def test_the_first_token_and_key_are_known_from_the_start(api):
    access = fed(api)

    assert may_invoke(access, CREDENTIALS.api_token)
    assert access.accounts == (ACCOUNT,)
    assert access.table.by_key(CREDENTIALS.email, CREDENTIALS.api_key.encode()).full
    assert access.table.by_key(CREDENTIALS.email, b"x" * 40) is None


def test_a_token_is_known_when_it_is_made_changed_rolled_and_deleted(api, path):
    made = api.post(path, BODY).result
    one = f"{path}/{made['id']}"
    assert may_invoke(fed(api), made["value"])

    rolled = api.put(f"{one}/value", {}).result
    assert not may_invoke(fed(api), made["value"])
    assert may_invoke(fed(api), rolled)

    api.put(one, {**BODY, "policies": [{**BODY["policies"][0], "effect": "deny"}]})
    assert not may_invoke(fed(api), rolled)

    api.delete(one)
    assert fed(api).table.by_token(rolled.encode()) is None


def test_a_process_that_follows_ends_up_knowing_what_a_new_one_knows(api, path):
    following, before = fed(api), api.store.feed.head()
    made = [api.post(path, BODY).result for _ in range(3)]
    api.delete(f"{path}/{made[1]['id']}")

    tail = api.store.feed.tail(before, 1 << 20)
    following.apply([change for change in tail if change.kind in identities.KINDS])

    assert [may_invoke(following, token["value"]) for token in made] == [True, False, True]
    assert following.sequence == api.store.feed.head()


@pytest.mark.parametrize("revoke_others", [False, True])
def test_a_renewal_of_the_first_credentials_is_told(api, path, revoke_others):
    made = api.post(path, BODY).result
    renewed = msgspec.structs.replace(CREDENTIALS, api_key="k" * 37, api_token="t" * 40)

    api.install(renewed, revoke_others=revoke_others)

    access = fed(api)
    assert access.table.by_token(CREDENTIALS.api_token.encode()) is None
    assert may_invoke(access, renewed.api_token)
    assert may_invoke(access, made["value"]) is not revoke_others
    assert access.table.by_key(CREDENTIALS.email, CREDENTIALS.api_key.encode()) is None


def test_a_start_that_changes_nothing_tells_nothing(api):
    before = api.store.feed.head()

    api.install(CREDENTIALS)

    assert api.store.feed.head() == before


def test_a_database_from_before_the_documents_is_told_at_the_next_start(api, path):
    made = api.post(path, BODY).result
    api.store.write(lambda tx: tx.drop_scope("identities")).result()
    assert fed(api).accounts == ()

    api.install(CREDENTIALS)

    assert may_invoke(fed(api), made["value"])


def test_no_secret_and_no_name_is_told(api, path):
    made = api.post(path, BODY).result

    told = b"".join(change.doc or b"" for change in api.store.feed.tail(0, 1 << 20))

    for text in (made["value"], CREDENTIALS.api_token, CREDENTIALS.api_key, BODY["name"]):
        assert text.encode() not in told
