"""Accounts, the calling user, memberships."""

import pytest

from edgestead.tables import accounts
from edgestead.tables.accounts import UserRow
from edgestead.usecases.access.credentials import EVERY_ROLE
from tests.support.api import CREDENTIALS, FIRST_US

ACCOUNT = {
    "id": CREDENTIALS.account_id,
    "name": "admin@example.com's Account",
    "type": "standard",
    "settings": {
        "enforce_twofactor": False,
        "abuse_contact_email": None,
        "default_nameservers": "edge.standard",
        "use_account_custom_ns_by_default": False,
    },
    "created_on": "2026-01-02T03:04:05.678901Z",
}


@pytest.mark.inside("invented time")
def test_the_first_account_is_there(api):
    assert api.get("/accounts").result == [ACCOUNT]
    assert api.get(f"/accounts/{CREDENTIALS.account_id}").result == ACCOUNT


@pytest.mark.inside("invented time")
def test_accounts_are_found_by_name(api):
    assert api.get("/accounts?name=ADMIN@example.com's%20account&direction=desc").result == [ACCOUNT]
    assert api.get("/accounts?name=another").result == []


def test_an_unknown_account_is_403_and_a_malformed_one_404(api):
    unknown = api.get(f"/accounts/{'b' * 32}")
    malformed = api.get(f"/accounts/{'b' * 34}")

    assert (unknown.status, unknown.codes) == (403, [9109])
    assert (malformed.status, malformed.codes) == (404, [7003, 7000])


def test_the_user_is_who_the_credentials_belong_to(api):
    user = api.get("/user").result

    assert (user["email"], user["suspended"], user["betas"]) == (CREDENTIALS.email, False, [])
    assert len(user["id"]) == 32


def test_memberships_and_accounts_name_the_same_accounts(api):
    answer = api.get("/memberships").json

    (membership,) = answer["result"]
    assert membership["account"] == {"id": ACCOUNT["id"], "name": ACCOUNT["name"]}
    assert membership["status"] == "accepted"
    assert membership["permissions"]["dns_records"] == {"read": True, "write": True}
    assert answer["result_info"]["total_count"] == 1


def test_an_account_is_renamed_and_keeps_its_type(api):
    path = f"/accounts/{CREDENTIALS.account_id}"
    settings = {"enforce_twofactor": True, "abuse_contact_email": "abuse@example.com"}
    changed = api.put(path, {"name": "Mine", "type": "standard", "settings": settings}).result

    assert (changed["name"], changed["settings"]) == ("Mine", {**ACCOUNT["settings"], **settings})
    assert api.get(path).result == changed
    kept = api.put(path, {"name": "Mine", "settings": {"enforce_twofactor": False}}).result["settings"]
    assert (kept["enforce_twofactor"], kept["abuse_contact_email"]) == (False, "abuse@example.com")
    cleared = api.put(path, {"name": "Mine", "settings": {"abuse_contact_email": None}}).result
    assert cleared["settings"]["abuse_contact_email"] is None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "Mine", "type": "enterprise"}, "/type"),
        ({"name": "a" * 101}, "/name"),
        ({"name": "a\nb"}, "/name"),
        (
            {"name": "Mine", "settings": {"default_nameservers": "custom.zone"}},
            "/settings/default_nameservers",
        ),
    ],
)
@pytest.mark.inside("invented time")
def test_what_an_account_cannot_be_is_refused(api, body, pointer):
    path = f"/accounts/{CREDENTIALS.account_id}"
    answer = api.put(path, body)

    assert (answer.status, answer.codes) == (400, [1001])
    assert answer.json["errors"][0]["source"] == {"pointer": pointer}
    assert api.get(path).result == ACCOUNT


def test_an_account_needs_a_name_and_is_never_deleted(api):
    nameless = api.post("/accounts", {})
    deleted = api.delete(f"/accounts/{CREDENTIALS.account_id}")

    assert (nameless.status, nameless.codes) == (400, [1001])
    assert (deleted.status, deleted.codes) == (405, [7001])


def test_a_user_says_who_they_are(api):
    user = api.patch("/user", {"first_name": "Ada", "country": "GB"}).result
    cleared = api.patch("/user", {"country": None, "email": "ignored@example.com"}).result

    assert (user["first_name"], user["country"], user["last_name"]) == ("Ada", "GB", None)
    assert (cleared["first_name"], cleared["country"], cleared["email"]) == ("Ada", None, CREDENTIALS.email)
    assert api.get("/user").result == cleared
    too_long = api.patch("/user", {"zipcode": "1" * 101})
    assert (too_long.status, too_long.codes) == (400, [1001])


def test_an_account_has_its_first_user_as_member_in_its_highest_role(api):
    path = f"/accounts/{CREDENTIALS.account_id}"
    members, roles = api.get(f"{path}/members").json, api.get(f"{path}/roles").json
    (member,), (role, *others) = members["result"], roles["result"]

    assert (member["status"], member["user"]["email"]) == ("accepted", CREDENTIALS.email)
    assert member["roles"] == [role]
    assert member["id"] == api.get("/memberships").result[0]["id"]
    assert members["result_info"]["total_count"] == 1
    assert roles["result_info"]["total_count"] == 1 + len(others) == 7
    assert api.get(f"{path}/members/{member['id']}").result == member
    assert api.get(f"{path}/roles/{role['id']}").result == role


@pytest.mark.parametrize("path", ["members", "roles"])
def test_an_unknown_member_or_role_is_1003(api, path):
    answer = api.get(f"/accounts/{CREDENTIALS.account_id}/{path}/{'f' * 32}")
    elsewhere = api.get(f"/accounts/{'b' * 32}/{path}")

    assert (answer.status, answer.codes) == (404, [1003])
    assert (elsewhere.status, elsewhere.codes) == (403, [9109])


@pytest.mark.parametrize(
    ("query", "count"),
    {
        "status=accepted": 1,
        "status=pending": 0,
        "account.name=admin@example.com's%20Account": 1,
        "name=another": 0,
        "order=account.name&direction=desc": 1,
        "order=status": 1,
    }.items(),
)
def test_memberships_are_filtered(api, query, count):
    assert len(api.get(f"/memberships?{query}").result) == count


def test_the_last_member_of_an_account_stays(api):
    (membership,) = api.get("/memberships").result
    path = f"/memberships/{membership['id']}"

    assert api.get(path).result == membership
    assert api.put(path, {"status": "accepted"}).result == membership
    for answer in (api.put(path, {"status": "rejected"}), api.delete(path), api.put(path, {"status": "x"})):
        assert (answer.status, answer.codes) == (400, [1001])
    assert api.get("/memberships").result == [membership]


def test_one_of_two_members_may_leave(api):
    (membership,) = api.get("/memberships").result

    def join(tx):
        accounts.insert_user(tx, UserRow("c" * 32, "b@example.com", "b@example.com", b"", FIRST_US))
        accounts.insert_membership(tx, "d" * 32, ACCOUNT["id"], "c" * 32, "accepted", FIRST_US, EVERY_ROLE)

    api.store.write(join).result()
    path = f"/memberships/{membership['id']}"

    assert api.put(path, {"status": "rejected"}).result["status"] == "rejected"
    assert api.get(f"/memberships/{'d' * 32}").codes == [1003]  # somebody else's
    assert api.delete(path).result == {"id": membership["id"]}
    assert api.get(path).codes == [1003]
    assert api.get("/memberships").result == []
