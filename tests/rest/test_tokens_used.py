"""What a token may do, where, when and from where: the rows of the contract, and who may give what."""

import pytest

from tests.rest.test_tokens import ABSENT, ACCOUNT, ALL_ZONES, OWNERS, bearer, body, policy
from tests.support.api import BEARER, CREDENTIALS, KEY_PAIR

VERIFY = "/user/tokens/verify"
ACCOUNT_VERIFY = f"/accounts/{CREDENTIALS.account_id}/tokens/verify"
UNKNOWN = bearer("u" * 40)

UNUSABLE = {  # what makes a token unusable now
    "expired": {"expires_on": "2026-01-01T00:00:00Z"},
    "not yet valid": {"not_before": "2027-01-01T00:00:00Z"},
}
ADDRESSES = [  # the caller is 127.0.0.1: in, not_in, may pass
    (["127.0.0.0/8"], [], True),
    (["127.0.0.1"], [], True),
    (["192.0.2.0/24", "127.0.0.1/32"], [], True),
    (["192.0.2.0/24"], [], False),
    (["2001:db8::/32"], [], False),
    ([], ["192.0.2.0/24"], True),
    ([], ["127.0.0.0/8"], False),
    (["127.0.0.0/8"], ["127.0.0.1"], False),
]
FAMILIES = [  # a path, code without the permission
    ("/zones", 9109),
    ("/zones/{zone}", 9109),
    ("/user", 9109),
    ("/user/tokens", 9109),
    ("/user/tokens/permission_groups", 9109),
    ("/accounts/{account}", 9109),
    ("/accounts/{account}/tokens", 9109),
    ("/zones/{zone}/dns_records", 10000),
]


@pytest.fixture
def user_id(api):
    return api.get("/user").result["id"]


def make(api, *policies, owner="user", **more):
    return api.post(OWNERS[owner], body(*policies, **more)).result


def token(api, *policies, **more):
    """The headers of a new token."""
    return bearer(make(api, *policies, **more)["value"])


def refused(answer):
    return answer.status, answer.codes


def test_an_unknown_token_is_refused_in_each_familys_words(api, zone_id, records):
    for path in (VERIFY, ACCOUNT_VERIFY, "/user/tokens", OWNERS["account"]):
        assert refused(api.get(path, auth=UNKNOWN)) == (401, [1000])
    for path in ("/zones", "/accounts", "/user"):
        assert refused(api.get(path, auth=UNKNOWN)) == (403, [9109])
    assert refused(api.get(records, auth=UNKNOWN)) == (403, [10000])


@pytest.mark.parametrize("state", UNUSABLE)
def test_a_token_out_of_its_time_is_refused_everywhere(api, records, state):
    old = token(api, **UNUSABLE[state])

    for path in (records, "/zones", "/user/tokens"):
        answer = api.get(path, auth=old)
        assert refused(answer) == (403, [9109])
        assert state in answer.json["errors"][0]["message"]
    assert refused(api.get(VERIFY, auth=old)) == (401, [1000])


@pytest.mark.inside("invented time")
def test_a_token_that_is_due_works(api, records):
    due = {"not_before": "2026-01-01T00:00:00Z", "expires_on": "2027-01-01T00:00:00Z"}

    assert due.items() <= api.get(VERIFY, auth=token(api, **due)).result.items()
    assert api.get(records, auth=token(api, **due)).status == 200


def test_a_disabled_token_is_refused_everywhere(api, records):
    made = make(api)
    api.put(f"/user/tokens/{made['id']}", body(status="disabled"))

    answer = api.get(records, auth=bearer(made["value"]))
    assert refused(answer) == (403, [9109])
    assert "disabled" in answer.json["errors"][0]["message"]
    assert refused(api.get(VERIFY, auth=bearer(made["value"]))) == (401, [1000])


@pytest.mark.parametrize("spelling", ["request_ip", "request.ip"])
@pytest.mark.parametrize(("inside", "outside", "passes"), ADDRESSES)
def test_a_tokens_addresses_are_enforced(api, records, inside, outside, passes, spelling):
    bound = token(api, condition={spelling: {"in": inside, "not_in": outside}})

    answer = api.get(records, auth=bound)

    if passes:
        assert answer.status == 200
        assert api.get(VERIFY, auth=bound).status == 200
        return
    assert refused(answer) == refused(api.get(VERIFY, auth=bound)) == (403, [9109])
    assert "127.0.0.1" in answer.json["errors"][0]["message"]


def test_verify_tells_a_users_token_its_state(api):
    made = make(api, expires_on="2027-01-01T00:00:00Z")

    answer = api.get(VERIFY, auth=bearer(made["value"])).json

    assert answer["result"] == {
        "id": made["id"],
        "status": "active",
        "expires_on": "2027-01-01T00:00:00Z",
    }
    assert answer["messages"][0]["code"] == 10000


def test_each_owners_tokens_are_verified_at_their_own_route(api):
    made = make(api, owner="account")

    assert api.get(ACCOUNT_VERIFY, auth=bearer(made["value"])).result["id"] == made["id"]
    foreign = f"/accounts/{ABSENT}/tokens/verify"
    assert refused(api.get(foreign, auth=bearer(made["value"]))) == (401, [1000])
    assert refused(api.get(VERIFY, auth=bearer(made["value"]))) == (401, [1000])
    assert refused(api.get(ACCOUNT_VERIFY, auth=BEARER)) == (401, [1000])
    assert refused(api.get(ACCOUNT_VERIFY, auth=KEY_PAIR)) == (401, [1000])


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/user", 9109),
        ("/user/tokens", 9109),
        ("/user/tokens/permission_groups", 9109),
        (f"/user/tokens/{ABSENT}", 9109),
        ("/memberships", 9106),
    ],
)
def test_an_accounts_token_is_no_user(api, path, code):
    owned = token(api, policy("Account API Tokens Write", resources=ACCOUNT), owner="account")

    assert refused(api.get(path, auth=owned)) == (403, [code])
    assert api.get(OWNERS["account"], auth=owned).status == 200


@pytest.mark.parametrize(("path", "code"), FAMILIES)
def test_a_missing_permission_is_refused_in_each_familys_words(api, zone_id, path, code):
    useless = token(api, policy("Objects Invoke", resources=f"com.cloudflare.api.account.{ABSENT}"))

    answer = api.get(path.format(zone=zone_id, account=CREDENTIALS.account_id), auth=useless)

    assert refused(answer) == (403, [code])


def test_who_may_read_tokens_may_not_change_them(api, user_id):
    reader = token(
        api,
        policy("API Tokens Read", resources=f"com.cloudflare.api.user.{user_id}"),
        policy("Account API Tokens Read", resources=ACCOUNT),
    )

    for path in OWNERS.values():
        made = api.post(path, body()).result
        one = f"{path}/{made['id']}"
        assert api.get(path, auth=reader).status == api.get(one, auth=reader).status == 200
        for answer in (
            api.post(path, body(), auth=reader),
            api.put(one, body(), auth=reader),
            api.put(f"{one}/value", {}, auth=reader),
            api.delete(one, auth=reader),
        ):
            assert refused(answer) == (403, [9109])


def test_deny_beats_allow(api, zone_id):
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    denied = policy("DNS Write", resources=f"com.cloudflare.api.account.zone.{other}", effect="deny")
    most = token(api, policy("DNS Write"), denied)

    assert api.get(f"/zones/{zone_id}/dns_records", auth=most).status == 200
    assert api.get(f"/zones/{other}/dns_records", auth=most).codes == [10000]


def test_nested_resources_are_the_zones_of_an_account(api, zone_id, records):
    nested = token(api, policy("DNS Read", resources={ACCOUNT: {ALL_ZONES: "*"}}))
    one = token(
        api, policy("DNS Read", resources={ACCOUNT: {f"com.cloudflare.api.account.zone.{zone_id}": "*"}})
    )
    flat = token(api, policy("DNS Read", resources=ACCOUNT))

    assert [api.get(records, auth=auth).status for auth in (nested, one, flat)] == [200, 200, 403]


def test_everything_of_an_accounts_token_is_its_account(api, zone_id, records):
    owned = token(
        api,
        policy("DNS Write", resources=ALL_ZONES),
        policy("Account Settings Read", resources="com.cloudflare.api.account.*"),
        owner="account",
    )

    assert api.get(records, auth=owned).status == 200
    [identity] = [one for one in api.access._by_token.values() if one.actor.kind == "account"]
    assert not any(rule.reach.all_accounts or rule.reach.all_zones for rule in identity.rules)
    assert api.get(f"/accounts/{ABSENT}", auth=owned).status == 403


def test_all_groups_without_the_user_do_not_make_a_token_the_user(api):
    groups = [one["name"] for one in api.get("/user/tokens/permission_groups").result]
    resources = {"com.cloudflare.api.account.*": "*", ALL_ZONES: "*"}
    wide = token(api, policy(*groups, resources=resources))

    assert api.get("/zones", auth=wide).status == 200
    assert refused(api.post("/user/tokens", body(), auth=wide)) == (403, [9109])


class TestSomebodyWhoMayWriteTokens:
    """May give what he holds, and no more: by making, by changing, by rolling."""

    @pytest.fixture
    def writer(self, api, zone_id, user_id):
        return token(
            api,
            policy("API Tokens Write", resources=f"com.cloudflare.api.user.{user_id}"),
            policy("DNS Write", resources=f"com.cloudflare.api.account.zone.{zone_id}"),
        )

    def test_gives_what_he_holds(self, api, zone_id, records, writer):
        given = body(policy("DNS Read", resources=f"com.cloudflare.api.account.zone.{zone_id}"))

        made = api.post("/user/tokens", given, auth=writer).result

        assert api.get(records, auth=bearer(made["value"])).status == 200

    @pytest.mark.parametrize("given", [policy("DNS Read"), policy("Zone Read"), policy("DNS Write")])
    def test_gives_no_more(self, api, writer, given):
        mine = api.post("/user/tokens", body(policy("DNS Read", effect="deny")), auth=writer).result

        answers = (
            api.post("/user/tokens", body(given), auth=writer),
            api.put(f"/user/tokens/{mine['id']}", body(given), auth=writer),
        )

        for answer in answers:
            assert refused(answer) == (403, [9109])
        assert api.get(f"/user/tokens/{mine['id']}").result["policies"] == mine["policies"]

    def test_cannot_learn_the_secret_of_a_stronger_token(self, api, writer):
        strong = make(api, policy("Zone Write"))

        answer = api.put(f"/user/tokens/{strong['id']}/value", {}, auth=writer)

        assert refused(answer) == (403, [9109])
        assert api.get("/zones", auth=bearer(strong["value"])).status == 200

    def test_cannot_wake_a_stronger_token(self, api, writer):
        strong = body(policy("Zone Write"))
        made = api.post("/user/tokens", strong).result
        api.put(f"/user/tokens/{made['id']}", strong | {"status": "disabled"})

        answer = api.put(f"/user/tokens/{made['id']}", strong | {"status": "active"}, auth=writer)

        assert refused(answer) == (403, [9109])
        assert api.get(f"/user/tokens/{made['id']}").result["status"] == "disabled"
