"""Tokens that tokens made: never wider, longer or from more places than what they come from."""

import random
from itertools import product

import pytest

from edgestead.model.ids import fixed_id
from edgestead.model.permissions import BY_NAME
from edgestead.model.refusals import EdgeError
from edgestead.tables import tokens
from edgestead.usecases.access.authorise import Target, check_usable, identity_of, permits
from edgestead.usecases.access.table import AccessRows
from edgestead.usecases.limits import TOKEN_LINEAGE_MAX
from tests.rest.conftest import AT_NEWEST
from tests.rest.test_matrix import EVERYTHING, USER
from tests.rest.test_tokens import OWNERS, bearer, body, policy
from tests.rest.tokens import zone
from tests.support.api import BEARER, CREDENTIALS, KEY_PAIR

pytestmark = AT_NEWEST

INSIDE, OUTSIDE = "127.0.0.0/8", "192.0.2.0/24"  # requests here come from 127.0.0.1
BETWEEN, SOON, LATER = "2026-01-20T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"
ACCOUNT = CREDENTIALS.account_id
BEARER_ID = fixed_id("token", "First token")


@pytest.fixture
def everything(api):
    """The policy of a token that may do everything, as long as nobody bounds it."""
    return policy(*BY_NAME, resources={**EVERYTHING, USER.format(api.get("/user").result["id"]): "*"})


@pytest.fixture
def make(api, everything):
    """Create a token by other credentials; gives its path and credentials."""

    def create(by=BEARER, path=OWNERS["user"], policies=None, **more):
        answer = api.post(path, body(*(policies or [everything]), **more), auth=by)
        assert answer.status == 200, answer.body
        return f"{path}/{answer.result['id']}", bearer(answer.result["value"])

    return create


@pytest.fixture
def three(make):
    """A token, the one that it made, and the one that this one made."""
    first = make()
    second = make(first[1])
    return first, second, make(second[1])


def works(api, auth, path="/user"):
    return api.get(path, auth=auth).status == 200


def parent_of(api, path):
    return api.get(f"{path}?lineage=true").result["parent_id"]


@pytest.mark.inside("invented time")
def test_a_token_knows_what_made_it_and_shows_it_to_who_asks(api, three):
    (first, _), (second, _), (third, _) = three
    by_key = api.post(OWNERS["user"], body(), auth=KEY_PAIR).result["id"]

    assert parent_of(api, third) == second.rpartition("/")[2]
    assert parent_of(api, second) == first.rpartition("/")[2]
    assert parent_of(api, f"{OWNERS['user']}/{by_key}") is None
    listed = api.get(f"{OWNERS['user']}?lineage=true").result
    assert {one["id"]: one["parent_id"] for one in listed}[by_key] is None
    assert "parent_id" not in api.get(third).result
    assert not any("parent_id" in one for one in api.get(OWNERS["user"]).result)


ENDS = {  # what is changed in the body of the first of three
    "disabled": {"status": "disabled"},
    "over": {"expires_on": "2026-01-01T00:00:00Z"},
    "not yet": {"not_before": LATER},
    "elsewhere": {"condition": {"request_ip": {"in": [OUTSIDE]}}},
    "not from here": {"condition": {"request_ip": {"not_in": [INSIDE]}}},
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.inside("invented time")
def test_what_a_token_loses_all_that_come_from_it_lose_until_it_has_it_again(api, everything, three, how):
    path = three[0][0]
    assert all(works(api, auth) for _, auth in three)

    assert api.put(path, body(everything) | ENDS[how]).status == 200
    assert not any(works(api, auth) for _, auth in three)

    assert api.put(path, body(everything, status="active")).status == 200
    assert all(works(api, auth) for _, auth in three)


def test_a_narrowed_token_narrows_what_comes_from_it(api, zone_id, records, three):
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    narrow = policy("Zone Read", "DNS Write", resources=zone(zone_id))

    assert api.put(three[0][0], body(narrow)).status == 200

    for _, auth in three:
        assert [one["id"] for one in api.get("/zones", auth=auth).result] == [zone_id]
        assert api.get(f"/zones/{other}", auth=auth).status == 403
        assert api.get(records, auth=auth).status == 200
        assert api.get(f"/accounts/{ACCOUNT}/storage/kv/namespaces", auth=auth).status == 403
        assert api.get("/accounts", auth=auth).result == []
        assert api.post(OWNERS["user"], body(), auth=auth).status == 403


@pytest.mark.inside("invented time")
def test_a_token_whose_parents_are_bound_makes_only_what_they_could_make(api, everything, three):
    api.put(three[0][0], body(everything, expires_on=SOON, condition={"request_ip": {"in": [INSIDE]}}))
    bounds = {"expires_on": SOON, "condition": {"request_ip": {"in": ["127.0.0.1"]}}}

    for _, auth in three:
        for missing in bounds:
            less = {name: bound for name, bound in bounds.items() if name != missing}
            assert api.post(OWNERS["user"], body(everything, **less), auth=auth).codes == [9109]
        assert api.post(OWNERS["user"], body(everything, **bounds), auth=auth).status == 200


@pytest.mark.inside("invented time")
def test_nobody_gives_a_token_more_than_its_parent_has(api, zone_id, make):
    narrow = policy("DNS Read", resources=zone(zone_id))
    tokens_too = policy("API Tokens Write", resources=USER.format(api.get("/user").result["id"]))
    _, auth = make(policies=[narrow, tokens_too], expires_on=SOON)
    path, _ = make(auth, policies=[narrow], expires_on=SOON)
    wider = policy("DNS Write", resources=zone(zone_id))

    for by in (BEARER, KEY_PAIR):
        for sent in (body(wider, expires_on=SOON), body(narrow, expires_on=LATER), body(narrow)):
            refused = api.put(path, sent, auth=by)
            assert (refused.status, refused.codes) == (403, [9109])
            assert "comes from" in refused.json["errors"][0]["message"]
        assert api.put(path, body(narrow, expires_on=SOON), auth=by).status == 200


def test_what_is_held_back_can_be_narrowed_and_disabled(api, zone_id, everything, three):
    api.put(three[0][0], body(policy("DNS Read", resources=zone(zone_id))))

    assert api.put(three[1][0], body(everything, name="renamed", status="disabled")).status == 200
    assert api.put(three[1][0], body(policy("Zone Read", resources=zone(zone_id)))).status == 200
    assert api.put(three[1][0], body(everything)).codes == [9109]


def test_a_rolled_token_leaves_what_comes_from_it(api, three):
    assert api.put(f"{three[0][0]}/value", {}).status == 200

    assert [works(api, auth) for _, auth in three] == [False, True, True]


def test_what_a_deleted_token_made_goes_one_level_up(api, three):
    (first, _), (second, _), (third, _) = three

    assert api.delete(second).result == {"id": second.rpartition("/")[2]}

    assert [works(api, auth) for _, auth in three] == [True, False, True]
    assert parent_of(api, third) == first.rpartition("/")[2]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.inside("rows of one request are in the order of ids, which are invented")
def test_a_deletion_frees_nothing_that_the_token_held_back(api, everything, three, how):
    _, (second, _), (third, _) = three
    api.put(second, body(everything) | ENDS[how])

    assert api.delete(second).status == 200

    assert api.get(third).result["status"] == "disabled"
    assert [works(api, auth) for _, auth in three] == [True, False, False]
    log = [(one["action"], one["token"]["id"]) for one in api.get(f"{OWNERS['user']}/history").result]
    assert log[:2] == [("delete", second.rpartition("/")[2]), ("update", third.rpartition("/")[2])]


def test_a_token_is_deleted_with_all_that_come_from_it_whoever_owns_them(api, make, three):
    account_path, account_auth = make(three[2][1], OWNERS["account"], [policy("DNS Read")])
    aside, aside_auth = make()
    first, *others = [path.rpartition("/")[2] for path, _ in (*three, (account_path, None))]

    gone = api.delete(f"{three[0][0]}?with_successors=true").result

    assert gone == {"id": first, "successors": others}
    assert not any(works(api, auth) for _, auth in three)
    assert not works(api, account_auth, f"/accounts/{ACCOUNT}/tokens/verify")
    assert works(api, aside_auth)
    assert api.get(aside).status == 200


def test_a_token_ends_itself_and_all_that_come_from_it(api, three):
    path, auth = three[1]
    api.put(path, body(policy("API Tokens Write", resources=USER.format(api.get("/user").result["id"]))))

    assert api.delete(f"{path}?with_successors=true", auth=auth).status == 200

    assert [works(api, auth) for _, auth in three] == [True, False, False]


def test_a_lineage_ends_somewhere(api, make):
    auth = make(KEY_PAIR)[1]
    for _ in range(TOKEN_LINEAGE_MAX - 1):
        auth = make(auth)[1]

    refused = api.post(OWNERS["user"], body(), auth=auth)

    assert (refused.status, refused.codes) == (400, [1001])


def test_a_renewal_of_the_first_token_keeps_what_it_made(api, make):
    _, auth = make()

    api.install(CREDENTIALS)

    assert works(api, auth)


GROUPS = ("DNS Read", "DNS Write", "Zone Read")
STEPS = 30


@pytest.mark.parametrize("seed", range(6))
def test_no_token_ever_has_more_than_what_it_comes_from(api, zone_id, everything, seed):
    """Random trees of tokens: made, changed and deleted by each other, by the first token and by the key."""
    chance, path = random.Random(seed), OWNERS["user"]
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    user = USER.format(api.get("/user").result["id"])
    secrets, keys = {}, [KEY_PAIR, BEARER]
    targets = [Target(account_id=ACCOUNT, zone_id=one) for one in (zone_id, other)]

    def any_body():
        zones = chance.choice([{zone(zone_id): "*"}, {zone(other): "*"}, EVERYTHING])
        some = policy(*chance.sample(GROUPS, chance.randint(1, 3)), resources=zones)
        chosen = [everything] if chance.random() < 0.5 else [some, policy("API Tokens Write", resources=user)]
        more = {
            "expires_on": chance.choice([None, SOON, LATER]),
            "not_before": chance.choice([None, None, BETWEEN]),
            "condition": chance.choice([None, {"request_ip": {"in": [INSIDE]}}]),
            "status": chance.choice([None, "active", "disabled"]),
        }
        return body(*chosen, **{name: one for name, one in more.items() if one is not None})

    for _ in range(STEPS):
        by = chance.choice([*keys, *secrets.values()])
        one = chance.choice(list(secrets) or ["e" * 32])
        act = chance.choices(["make", "change", "delete", "end"], [5, 4, 1, 1])[0]
        before = effective(api, targets, secrets)
        if act == "make":
            answer = api.post(path, any_body(), auth=by)
            if answer.status == 200:
                secrets[answer.result["id"]] = bearer(answer.result["value"])
        elif act == "change":
            api.put(f"{path}/{one}", any_body(), auth=by)
        else:
            api.delete(f"{path}/{one}?with_successors={str(act == 'end').lower()}", auth=by)
        now = effective(api, targets, secrets)
        if act in ("delete", "end"):
            assert all(now[token_id] <= before[token_id] for token_id in now)
        for row in api.store.read(tokens.tokens):
            assert row.parent_id is None or row.parent_id in now
            assert row.parent_id is None or now[row.id] <= now[row.parent_id]
            assert now[row.id] <= alone(row, targets)
    assert len(secrets) > 3


def effective(api, targets, secrets):
    """What each token may do now: as a request finds it, and a transaction."""
    first = {BEARER_ID: BEARER}

    def read(reader):
        left = {row.id for row in tokens.tokens(reader)}
        return {id_: both(reader, auth) for id_, auth in (first | secrets).items() if id_ in left}

    def both(reader, auth):
        secret = auth["authorization"].removeprefix("Bearer ").encode()
        in_memory, in_transaction = (known.by_token(secret) for known in (api.access, AccessRows(reader)))
        assert may(in_memory, targets) == may(in_transaction, targets)
        return may(in_memory, targets)

    return api.store.read(read)


def alone(row, targets):
    return may(identity_of(row), targets)


MOMENTS_US = (  # between FIRST_US, BETWEEN, SOON and LATER, and after all of them
    1_768_000_000_000_000,
    1_769_500_000_000_000,
    1_771_000_000_000_000,
    1_780_000_000_000_000,
)
ADDRESSES = ("127.0.0.1", "192.0.2.1")


def may(identity, targets):
    """Every combination that is allowed."""
    found = set()
    for now_us, address in product(MOMENTS_US, ADDRESSES):
        try:
            check_usable(identity, now_us, address)
        except EdgeError:
            continue
        for group, target in product(GROUPS, targets):
            if permits(identity, group, target):
                found.add((now_us, address, group, target))
    return found
