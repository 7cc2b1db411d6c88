"""Who calls: both schemes, and the code of each way to get them wrong."""

import json

import pytest

from edgestead.model.permissions import BY_NAME
from edgestead.tables import tokens
from tests.rest.tokens import ACCOUNT, ALL_ZONES, RESTRICTED, TOKEN_ID, policy, put_token
from tests.support.api import BEARER, CREDENTIALS, FIRST_US, KEY_PAIR, LocalApi

ZONES, RECORDS, VERIFY, USER = "/zones", f"/zones/{'0' * 32}/dns_records", "/user/tokens/verify", "/user"
EMAIL, KEY = {"x-auth-email": CREDENTIALS.email}, {"x-auth-key": CREDENTIALS.api_key}
UNKNOWN = {"authorization": "Bearer " + "x" * 40}
LATER_US = FIRST_US + 10**9

GOOD = {
    "bearer": BEARER,
    "key pair": KEY_PAIR,
    "email in capitals": {**KEY, "x-auth-email": CREDENTIALS.email.upper()},
    "both": {**BEARER, **KEY_PAIR},
    "bearer beside a wrong key": {**BEARER, "x-auth-email": "a@b.c", "x-auth-key": "f" * 37},
    "scheme in capitals": {"authorization": f"BEARER {CREDENTIALS.api_token}"},
    "more blanks": {"authorization": f"Bearer   {CREDENTIALS.api_token} "},
}
# headers, status, code, code in the chain
MALFORMED = {
    "none": ({}, 400, 9106, None),
    "email alone": (EMAIL, 400, 9107, None),
    "key alone": (KEY, 400, 9106, None),
    "basic": ({"authorization": "Basic YTpi"}, 400, 6003, 6111),
    "no scheme": ({"authorization": CREDENTIALS.api_token}, 400, 6003, 6111),
    "no token": ({"authorization": "Bearer "}, 400, 6003, 6111),
    "empty": ({"authorization": ""}, 400, 6003, 6111),
    "short token": ({"authorization": "Bearer abc"}, 400, 6003, 6111),
    "long token": ({"authorization": "Bearer " + "x" * 129}, 400, 6003, 6111),
    "blank in token": ({"authorization": "Bearer " + "x" * 20 + " " + "y" * 20}, 400, 6003, 6111),
    "email without @": ({**KEY, "x-auth-email": "admin"}, 400, 6003, 6102),
    "long email": ({**KEY, "x-auth-email": "a@" + "b" * 253}, 400, 6003, 6102),
    "short key": ({**EMAIL, "x-auth-key": "abc"}, 400, 6003, 6103),
    "unknown key": ({**EMAIL, "x-auth-key": "f" * 37}, 403, 9103, None),
    "unknown email": ({**KEY, "x-auth-email": "else@example.com"}, 403, 9103, None),
}
UNKNOWN_TOKEN = {ZONES: (403, 9109), USER: (403, 9109), RECORDS: (403, 10000), VERIFY: (401, 1000)}


@pytest.mark.parametrize("headers", GOOD.values(), ids=GOOD)
def test_known_credentials_are_let_in(api, headers):
    assert api.get(ZONES, auth=headers).status == 200


@pytest.mark.parametrize("path", [ZONES, RECORDS, VERIFY])
@pytest.mark.parametrize(("headers", "status", "code", "cause"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_or_unknown_headers_are_refused_with_their_code(api, path, headers, status, code, cause):
    answer = api.get(path, auth=headers)

    assert (answer.status, answer.codes) == (status, [code])
    chain = answer.json["errors"][0].get("error_chain", [])
    assert [one["code"] for one in chain] == ([cause] if cause else [])


@pytest.mark.parametrize(("path", "refusal"), UNKNOWN_TOKEN.items())
def test_an_unknown_token_is_refused_in_the_way_of_its_routes(api, path, refusal):
    answer = api.get(path, auth=UNKNOWN)

    assert (answer.status, *answer.codes) == refusal


def test_a_token_is_verified(api):
    answer = api.get(VERIFY)

    assert answer.result["status"] == "active"
    assert list(answer.result) == ["id", "status"]
    assert [message["code"] for message in answer.json["messages"]] == [10000]


@pytest.mark.inside("invented time")
def test_a_token_tells_until_when_it_is_good(api):
    put_token(api, not_before_us=FIRST_US - 1, expires_us=LATER_US)

    assert api.get(VERIFY, auth=RESTRICTED).result == {
        "id": TOKEN_ID,
        "status": "active",
        "not_before": "2026-01-02T03:04:05Z",
        "expires_on": "2026-01-02T03:20:45Z",
    }


def test_a_key_pair_is_no_token(api):
    answer = api.get(VERIFY, auth=KEY_PAIR)

    assert (answer.status, answer.codes) == (401, [1000])


@pytest.mark.parametrize(
    "changes", [{"status": "disabled"}, {"expires_us": FIRST_US}, {"not_before_us": LATER_US}], ids=str
)
def test_a_token_out_of_its_time_is_403_and_not_even_verified(api, changes):
    put_token(api, policy("Zone Read", resources=ALL_ZONES), **changes)

    refused = api.get(ZONES, auth=RESTRICTED)
    assert (refused.status, refused.codes) == (403, [9109])
    verified = api.get(VERIFY, auth=RESTRICTED)
    assert (verified.status, verified.codes) == (401, [1000])


@pytest.mark.parametrize(
    ("addresses", "status"),
    [
        ({"in": ["127.0.0.0/8"]}, 200),
        ({"in": ["10.0.0.0/8", "127.0.0.1/32"]}, 200),
        ({"in": ["10.0.0.0/8"]}, 403),
        ({"not_in": ["127.0.0.1/32"]}, 403),
        ({"not_in": ["2001:db8::/32"]}, 200),
        ({"in": ["127.0.0.0/8"], "not_in": ["127.0.0.1/32"]}, 403),
        ({"not_in": ["::ffff:127.0.0.1"]}, 403),
        ({"in": ["::ffff:127.0.0.0/104"]}, 200),
    ],
    ids=str,
)
def test_a_token_may_be_bound_to_addresses(api, addresses, status):
    put_token(api, policy("Zone Read", resources=ALL_ZONES), condition={"request_ip": addresses})

    answer = api.get(ZONES, auth=RESTRICTED)

    assert answer.status == status
    assert answer.codes == ([] if status == 200 else [9109])


@pytest.mark.parametrize(
    ("path", "refusal"), {USER: (403, 9109), "/memberships": (403, 9106), VERIFY: (401, 1000)}.items()
)
def test_an_accounts_token_belongs_to_no_user(api, path, refusal):
    put_token(api, policy("Account Settings Read", resources=ACCOUNT), owner_kind="account")

    answer = api.get(path, auth=RESTRICTED)

    assert (answer.status, *answer.codes) == refusal
    assert api.get("/accounts", auth=RESTRICTED).result[0]["id"] == CREDENTIALS.account_id


def test_renewed_credentials_count_at_once_and_the_old_ones_no_longer(api):
    import msgspec

    renewed = msgspec.structs.replace(CREDENTIALS, api_key="e" * 37, api_token="n" * 40)
    api.install(renewed)

    assert api.get(ZONES).codes == [9109]
    assert api.get(ZONES, auth=KEY_PAIR).codes == [9103]
    assert api.get(ZONES, auth={"authorization": "Bearer " + "n" * 40}).status == 200
    assert api.get(ZONES, auth={**EMAIL, "x-auth-key": "e" * 37}).status == 200


@pytest.mark.inside("it changes the first token")
def test_a_first_token_of_an_older_release_may_do_what_came_since(api):
    def of_an_older_release(tx):
        (first,) = tokens.tokens(tx)
        (all_,) = json.loads(first.policies)
        all_["permission_groups"] = [one for one in all_["permission_groups"] if "Metrics" not in one["name"]]
        tokens.update(tx, first._replace(policies=json.dumps([all_])))

    api.store.write(of_an_older_release).result()
    api.read_access()
    assert api.post("/accounts", {"name": "second"}).status == 403

    api.install(CREDENTIALS)

    assert api.post("/accounts", {"name": "second"}).status == 200


@pytest.mark.inside("it changes the first token")
def test_a_first_token_that_its_owner_narrowed_stays_so(api):
    (first,) = api.get("/user/tokens").result
    narrow = {"name": first["name"], "policies": [{**first["policies"][0]}]}
    narrow["policies"][0]["permission_groups"] = [{"id": BY_NAME["API Tokens Write"].id}]
    api.put(f"/user/tokens/{first['id']}", narrow)
    before = api.get(f"/user/tokens/{first['id']}").result

    api.install(CREDENTIALS)

    assert api.get(f"/user/tokens/{first['id']}").result["policies"] == before["policies"]


def test_no_secret_is_stored_or_logged(api: LocalApi, tmp_path):
    api.get(ZONES, auth=KEY_PAIR)
    api.get(f"{ZONES}?token={CREDENTIALS.api_token}")
    api.get(ZONES, auth=UNKNOWN)

    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()) + b"".join(
        api.lines
    )
    for secret in (CREDENTIALS.api_token, CREDENTIALS.api_key, "x" * 40):
        assert secret.encode() not in written
