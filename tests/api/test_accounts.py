"""Accounts, the calling user, memberships."""

from edgestead.testing.api import CREDENTIALS

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


def test_the_first_account_is_there(api):
    assert api.get("/accounts").result == [ACCOUNT]
    assert api.get(f"/accounts/{CREDENTIALS.account_id}").result == ACCOUNT


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
