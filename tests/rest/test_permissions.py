"""What a token may do, on every route that names a permission."""

import pytest

from tests.rest.tokens import ACCOUNT, ALL_ZONES, RESTRICTED, policy, put_token, zone
from tests.support.api import CREDENTIALS

A = {"type": "A", "name": "www", "content": "192.0.2.1"}


@pytest.fixture
def other_zone(api):
    return api.post("/zones", {"name": "other.test"}).result["id"]


def test_a_token_reads_what_it_may_read_and_writes_nothing(api, zone_id, records, www):
    put_token(api, policy("DNS Read", resources=zone(zone_id)))

    assert api.get(records, auth=RESTRICTED).status == 200
    assert api.get(www, auth=RESTRICTED).status == 200
    for answer in (
        api.post(records, A, auth=RESTRICTED),
        api.patch(www, {"ttl": 60}, auth=RESTRICTED),
        api.put(www, A, auth=RESTRICTED),
        api.delete(www, auth=RESTRICTED),
    ):
        assert (answer.status, answer.codes) == (403, [10000])
    for answer in (api.get(f"/zones/{zone_id}", auth=RESTRICTED), api.get("/zones", auth=RESTRICTED)):
        assert (answer.status, answer.codes) == (403, [9109])
    assert api.get(www).result["ttl"] == 3600


def test_write_implies_read(api, zone_id, records):
    put_token(api, policy("DNS Write", resources=ALL_ZONES))

    made = api.post(records, A, auth=RESTRICTED).result
    assert api.get(f"{records}/{made['id']}", auth=RESTRICTED).result == made


def test_a_token_for_one_zone_sees_no_other(api, zone_id, other_zone):
    put_token(api, policy("Zone Read", "DNS Read", resources=zone(zone_id)))

    listed = api.get("/zones", auth=RESTRICTED).json
    assert [one["id"] for one in listed["result"]] == [zone_id]
    assert listed["result_info"]["total_count"] == 1
    hidden = api.get(f"/zones/{other_zone}", auth=RESTRICTED)
    absent = api.get(f"/zones/{'e' * 32}", auth=RESTRICTED)
    assert (hidden.status, hidden.codes) == (403, [9109])
    assert (absent.status, absent.codes) == (hidden.status, hidden.codes)
    assert api.get(f"/zones/{other_zone}/dns_records", auth=RESTRICTED).codes == [10000]


def test_who_may_edit_a_zones_records_finds_that_zone_and_no_other(api, zone_id, other_zone):
    put_token(api, policy("DNS Write", resources=zone(zone_id)))

    (found,) = api.get("/zones?name=example.com", auth=RESTRICTED).result
    assert found["id"] == zone_id
    assert [one["id"] for one in api.get("/zones", auth=RESTRICTED).result] == [zone_id]
    assert api.get("/zones?name=other.test", auth=RESTRICTED).result == []
    assert api.get(f"/zones/{zone_id}", auth=RESTRICTED).codes == [9109]
    assert api.post("/zones", {"name": "new.test"}, auth=RESTRICTED).status == 403


FINDS = {  # policies, as (groups, resources of which zones, effect), and which zones the list shows
    "reads one, edits the other": ([("Zone Read", "one"), ("DNS Write", "other")], {"one", "other"}),
    "edits all but one": ([("DNS Write", "all"), ("DNS Write", "one", "deny")], {"other"}),
    "edits all, one unseen": ([("DNS Write", "all"), ("Zone Read", "one", "deny")], {"other"}),
    "reads all, edits all but one": (
        [("Zone Read", "all"), ("DNS Write", "all"), ("DNS Write", "one", "deny")],
        {"one", "other"},
    ),
    "reads none, edits all": ([("DNS Write", "all")], {"one", "other"}),
    "reads records only": ([("DNS Read", "all")], None),
    "edits and may not read anything": ([("DNS Write", "all"), ("Zone Read", "all", "deny")], set()),
}


@pytest.mark.parametrize(("policies", "seen"), FINDS.values(), ids=FINDS)
def test_the_list_of_zones_shows(api, zone_id, other_zone, policies, seen):
    resources = {"one": zone(zone_id), "other": zone(other_zone), "all": ALL_ZONES}
    put_token(
        api,
        *(
            policy(group, resources=resources[where], effect=effect[0] if effect else "allow")
            for group, where, *effect in policies
        ),
    )

    answer = api.get("/zones", auth=RESTRICTED)

    if seen is None:
        assert (answer.status, answer.codes) == (403, [9109])
    else:
        names = {zone_id: "one", other_zone: "other"}
        assert {names[one["id"]] for one in answer.result} == seen
        assert answer.json["result_info"]["total_count"] == len(seen)


def test_deny_beats_allow_also_in_lists(api, zone_id, other_zone):
    put_token(
        api,
        policy("Zone Read", resources=ALL_ZONES),
        policy("Zone Read", resources=zone(other_zone), effect="deny"),
    )

    assert [one["id"] for one in api.get("/zones", auth=RESTRICTED).result] == [zone_id]
    assert api.get(f"/zones/{other_zone}", auth=RESTRICTED).codes == [9109]
    assert api.get(f"/zones/{zone_id}", auth=RESTRICTED).status == 200


def test_an_accounts_zones_are_covered_by_a_nested_resource_only(api, zone_id):
    put_token(api, policy("Zone Write", resources={ACCOUNT: {ALL_ZONES: "*"}}))

    assert api.get(f"/zones/{zone_id}", auth=RESTRICTED).status == 200
    assert api.post("/zones", {"name": "new.test"}, auth=RESTRICTED).status == 200
    assert len(api.get("/zones", auth=RESTRICTED).result) == 2


def test_an_account_alone_covers_no_zone(api, zone_id):
    put_token(api, policy("Zone Write", resources=ACCOUNT))

    assert api.get(f"/zones/{zone_id}", auth=RESTRICTED).codes == [9109]
    assert api.post("/zones", {"name": "new.test"}, auth=RESTRICTED).codes == [9109]
    assert api.get("/zones", auth=RESTRICTED).result == []


def test_who_may_write_one_zone_may_not_add_another(api, zone_id):
    put_token(api, policy("Zone Write", resources=zone(zone_id)))

    answer = api.post("/zones", {"name": "new.test"}, auth=RESTRICTED)

    assert (answer.status, answer.codes) == (403, [9109])
    assert api.get("/zones?name=new.test").result == []


def test_a_zone_tells_what_its_reader_may_do(api, zone_id):
    put_token(api, policy("Zone Read", "DNS Write", resources=zone(zone_id)))

    assert api.get(f"/zones/{zone_id}", auth=RESTRICTED).result["permissions"] == [
        "#dns_records:edit",
        "#dns_records:read",
        "#zone:read",
    ]


def test_a_token_without_a_policy_for_an_account_does_not_see_it(api, zone_id):
    put_token(api, policy("DNS Read", resources=zone(zone_id)))

    assert api.get("/accounts", auth=RESTRICTED).result == []
    hidden = api.get(f"/accounts/{CREDENTIALS.account_id}", auth=RESTRICTED)
    assert (hidden.status, hidden.codes) == (403, [9109])


def test_a_users_details_need_their_permission(api, zone_id):
    put_token(api, policy("DNS Read", resources=zone(zone_id)))
    assert api.get("/user", auth=RESTRICTED).codes == [9109]
    assert api.get("/memberships", auth=RESTRICTED).codes == [9109]


@pytest.mark.parametrize("knows", [False, True])
def test_a_zone_names_its_owner_to_who_may_read_the_user(api, zone_id, knows):
    user = api.get("/user").result
    details = [policy("User Details Read", resources=f"com.cloudflare.api.user.{user['id']}")]
    put_token(api, policy("Zone Read", resources=zone(zone_id)), *(details if knows else []))

    owner = {"id": user["id"], "email": user["email"]} if knows else {"id": None, "email": None}
    for shown in (
        api.get(f"/zones/{zone_id}", auth=RESTRICTED).result,
        api.get("/zones", auth=RESTRICTED).result[0],
    ):
        assert shown["owner"] == {"type": "user", **owner}
