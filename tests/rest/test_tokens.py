"""The life of a token: made, read, changed, rolled, deleted, by users and by accounts."""

import pytest

from edgestead.model.permissions import BY_NAME, GROUPS
from edgestead.tables import tokens
from edgestead.usecases.access.authorise import secret_hash
from tests.support.api import CREDENTIALS, KEY_PAIR

ACCOUNT = f"com.cloudflare.api.account.{CREDENTIALS.account_id}"
ALL_ZONES = "com.cloudflare.api.account.zone.*"
OWNERS = {"user": "/user/tokens", "account": f"/accounts/{CREDENTIALS.account_id}/tokens"}
ABSENT = "e" * 32

BAD_BODIES = [  # what is changed in a good body, pointer
    ({"name": ""}, "/name"),
    ({"name": "n" * 121}, "/name"),
    ({"name": "a\nb"}, "/name"),
    ({"policies": []}, "/policies"),
    ({"policies": [{}]}, "/policies/0"),
    ({"not_before": "tomorrow"}, "/not_before"),
    ({"not_before": "2026-01-01T00:00:00"}, "/not_before"),
    ({"expires_on": "1969-12-31T23:59:59Z"}, "/expires_on"),
    ({"expires_on": "2026-01-01" + "0" * 99}, "/expires_on"),
    ({"not_before": "2027-01-01T00:00:00Z", "expires_on": "2027-01-01T00:00:00Z"}, "/expires_on"),
    ({"condition": {"request_ip": {"in": ["192.0.2.1/24"]}}}, "/condition/request_ip/in"),
    ({"condition": {"request_ip": {"not_in": ["example.com"]}}}, "/condition/request_ip/not_in"),
    ({"condition": {"request_ip": {"in": ["fe80::1%eth0"]}}}, "/condition/request_ip/in"),
    ({"condition": {"request_ip": {"in": ["192.0.2.1"] * 101}}}, "/condition/request_ip"),
    ({"condition": {"request.ip": {"in": ["192.0.2.1/24"]}}}, "/condition/request.ip/in"),
    ({"condition": {"request_ip": {}, "request.ip": {}}}, "/condition/request_ip"),
    ({"condition": {"country": {"in": ["CH"]}}}, "/condition"),
    ({"condition": {"request_ip": {"is": ["192.0.2.1"]}}}, "/condition/request_ip"),
    ({"status": "asleep"}, "/status"),
]


def policy(*groups, resources=ALL_ZONES, effect="allow"):
    if isinstance(resources, str):
        resources = {resources: "*"}
    return {
        "effect": effect,
        "permission_groups": [{"id": BY_NAME[name].id} for name in groups],
        "resources": resources,
    }


def body(*policies, **more):
    return {"name": "ours", "policies": list(policies or (policy("DNS Read"),)), **more}


def bearer(secret):
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture(params=OWNERS)
def path(request):
    """Where the tokens of a user, then of an account are."""
    return OWNERS[request.param]


@pytest.fixture
def made(api, path):
    return api.post(path, body()).result


def test_a_new_token_works_at_once(api, zone_id, records, made):
    assert api.get(records, auth=bearer(made["value"])).status == 200


@pytest.mark.inside("invented time")
def test_a_new_token_is_answered_whole(api, path):
    answer = api.post(
        path,
        body(
            not_before="2026-01-01T01:00:00+01:00",
            expires_on="2027-01-01T00:00:00.9Z",
            condition={"request_ip": {"in": ["127.0.0.0/8"], "not_in": ["127.0.0.9"]}},
        ),
    ).result

    assert next(iter(answer)) == "id"
    assert len(answer["value"]) == 40
    assert (answer["name"], answer["status"]) == ("ours", "active")
    assert answer["issued_on"] == answer["modified_on"] == "2026-01-02T03:04:05Z"
    assert (answer["not_before"], answer["expires_on"]) == ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
    assert answer["condition"] == {"request_ip": {"in": ["127.0.0.0/8"], "not_in": ["127.0.0.9"]}}
    [kept] = answer["policies"]
    assert len(kept["id"]) == 32
    assert kept["permission_groups"] == [{"id": BY_NAME["DNS Read"].id, "name": "DNS Read"}]
    assert kept["resources"] == {ALL_ZONES: "*"}


def test_a_secret_is_shown_once_and_only_its_hash_is_kept(api, path, made):
    secret = made.pop("value")

    assert api.get(f"{path}/{made['id']}").result == made
    assert secret.encode() not in api.get(path).body
    [row] = [row for row in api.store.read(tokens.tokens) if row.id == made["id"]]
    assert row.hash == secret_hash(secret)
    assert not any(secret in str(column) for column in row)
    assert not any(secret.encode() in line for line in api.lines)


@pytest.mark.parametrize("word", ["cloudflare", "edge"])
def test_resources_are_echoed_as_they_were_sent(api, path, word):
    vendor = f"com.{word}.api.account"
    resources = {f"{vendor}.{CREDENTIALS.account_id}": {f"{vendor}.zone.*": "*"}}

    token = api.post(path, body(policy("DNS Read", resources=resources))).result

    assert api.get(f"{path}/{token['id']}").result["policies"][0]["resources"] == resources


@pytest.mark.parametrize("spelling", ["request_ip", "request.ip"])
def test_a_condition_is_read_in_the_spelling_in_which_it_was_sent(api, path, spelling):
    condition = {spelling: {"in": ["192.0.2.0/24"]}}
    made = api.post(path, body(condition=condition)).result

    assert made["condition"] == condition
    assert api.get(f"{path}/{made['id']}").result["condition"] == condition


@pytest.mark.parametrize(("changes", "pointer"), BAD_BODIES)
def test_a_wrong_body_is_refused_with_a_pointer_and_changes_nothing(api, path, made, changes, pointer):
    before = api.store.read(tokens.tokens)

    for answer in (api.post(path, body() | changes), api.put(f"{path}/{made['id']}", body() | changes)):
        assert answer.status == 400
        assert answer.json["errors"][0]["source"]["pointer"] == pointer
    assert api.store.read(tokens.tokens) == before


def test_a_name_of_120_characters_is_taken_and_a_missing_one_refused(api, path):
    assert api.post(path, body(name="ü" * 120)).status == 200

    refused = api.post(path, {"policies": [policy("DNS Read")]})
    assert (refused.status, refused.codes) == (400, [1001])
    assert refused.json["errors"][0]["message"].startswith("name must have a length")


def test_an_update_replaces_all_but_the_secret(api, zone_id, records, path):
    secret = bearer((old := api.post(path, body(expires_on="2030-01-01T00:00:00Z")).result).pop("value"))
    kept_policy = {**policy("Zone Read"), "id": old["policies"][0]["id"]}

    new = api.put(f"{path}/{old['id']}", body(kept_policy, policy("DNS Write"), name="other")).result

    assert "value" not in new
    assert "expires_on" not in new
    assert new["name"] == "other"
    assert new["issued_on"] == old["issued_on"]
    assert new["policies"][0]["id"] == old["policies"][0]["id"] != new["policies"][1]["id"]
    assert api.get(f"{path}/{old['id']}").result == new
    assert api.get(f"/zones/{zone_id}", auth=secret).status == 200


def test_status_switches_a_token_off_and_on_at_once(api, zone_id, records, path, made):
    secret, one = bearer(made["value"]), f"{path}/{made['id']}"

    assert api.put(one, body(status="disabled")).result["status"] == "disabled"
    assert api.get(records, auth=secret).status == 403
    assert api.put(one, body()).result["status"] == "disabled"
    assert api.put(one, body(status="active")).result["status"] == "active"
    assert api.get(records, auth=secret).status == 200


def test_a_roll_answers_a_new_secret_and_the_old_one_is_dead(api, zone_id, records, path, made):
    new = api.put(f"{path}/{made['id']}/value", {}).result

    assert isinstance(new, str)
    assert len(new) == 40
    assert api.get(records, auth=bearer(new)).status == 200
    assert api.get(records, auth=bearer(made["value"])).codes == [10000]


def test_a_deleted_token_is_dead_at_once(api, zone_id, records, path, made):
    assert api.delete(f"{path}/{made['id']}").result == {"id": made["id"]}

    assert api.get(records, auth=bearer(made["value"])).codes == [10000]
    assert api.get(f"{path}/{made['id']}").status == 404


def test_a_token_that_is_not_there_or_another_owners_is_404(api, made, path):
    other = next(one for one in OWNERS.values() if one != path)

    for one in (f"{path}/{ABSENT}", f"{other}/{made['id']}"):
        for answer in (
            api.get(one),
            api.put(one, body()),
            api.put(f"{one}/value", {}),
            api.delete(one),
        ):
            assert (answer.status, answer.codes) == (404, [1003])


def test_tokens_are_listed_by_age_page_by_page(api):
    path = OWNERS["account"]
    ids = [api.post(path, body(name=f"n{number}")).result["id"] for number in range(3)]

    first = api.get(f"{path}?per_page=2").json
    assert [one["id"] for one in first["result"]] == ids[:2]
    assert first["result_info"] == {
        "page": 1,
        "per_page": 2,
        "count": 2,
        "total_count": 3,
        "total_pages": 2,
    }
    assert [one["id"] for one in api.get(f"{path}?direction=desc").result] == ids[::-1]
    assert api.get(f"{path}?page=9").result == []
    assert api.get(f"{path}?direction=up").status == 400


@pytest.mark.inside("invented time")
def test_expired_tokens_are_listed_when_asked_for(api):
    path = OWNERS["account"]
    expired = api.post(path, body(expires_on="2026-01-01T00:00:00Z")).result

    assert expired["status"] == "expired"
    assert api.get(path).result == []
    assert [one["status"] for one in api.get(f"{path}?include_expired=true").result] == ["expired"]
    assert api.get(f"{path}?include_expired=perhaps").status == 400


@pytest.mark.parametrize(("owner", "limit"), [("user", 50), ("account", 500)])
def test_an_owner_has_a_bounded_number_of_tokens(api, owner, limit):
    path = OWNERS[owner]
    made = api.post(path, body()).result
    [row] = [row for row in api.store.read(tokens.tokens) if row.id == made["id"]]

    def fill(tx):
        for number in range(limit - tokens.of_owner_count(tx, row.owner_kind, row.owner_id)):
            tokens.insert(tx, row._replace(id=f"f{number:031x}", hash=b"%d" % number))

    api.store.write(fill).result()

    refused = api.post(path, body())
    assert (refused.status, refused.codes) == (400, [1001])
    assert str(limit) in refused.json["errors"][0]["message"]
    api.delete(f"{path}/{made['id']}")
    assert api.post(path, body()).status == 200


def test_the_permission_groups_are_listed_and_filtered(api):
    path = "/user/tokens/permission_groups"
    listed = api.get(path).json

    assert "result_info" not in listed
    assert [one["id"] for one in listed["result"]] == [group.id for group in GROUPS]
    [found] = api.get(f"{path}?name=DNS%20Write").result
    assert found == {
        "id": BY_NAME["DNS Write"].id,
        "name": "DNS Write",
        "scopes": ["com.cloudflare.api.account.zone"],
    }
    for scope in ("com.cloudflare.api.user", "com.edge.api.user"):
        names = {one["name"] for one in api.get(f"{path}?scope={scope}").result}
        assert names == {group.name for group in GROUPS if group.scope == "user"}
    assert api.get(f"{path}?scope=user").result == []
    assert api.get(f"{path}?name=No%20such").result == []


def test_an_account_is_offered_no_group_about_users(api):
    listed = api.get(f"{OWNERS['account']}/permission_groups").result

    assert {one["name"] for one in listed} == {group.name for group in GROUPS if group.scope != "user"}


@pytest.mark.parametrize("rest", ["", "/permission_groups", f"/{ABSENT}"])
def test_an_account_that_is_not_there_has_no_tokens(api, rest):
    answer = api.get(f"/accounts/{ABSENT}/tokens{rest}")

    assert (answer.status, answer.codes) == (403, [9109])


def test_the_key_pair_makes_tokens_for_its_user(api, made):
    token = api.post("/user/tokens", body(), auth=KEY_PAIR).result

    assert token["id"] in {one["id"] for one in api.get("/user/tokens").result}
