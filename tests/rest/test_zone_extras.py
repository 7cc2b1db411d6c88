"""What stands beside a zone: holds, plans, activation checks, purges, and lists that are empty."""

import pytest

from edgestead.model.plans import PLANS
from edgestead.tables import accounts
from edgestead.tables.accounts import AccountRow
from edgestead.usecases import limits
from edgestead.usecases.zone import actions
from edgestead.usecases.zone.plans import RATE_PLANS
from tests.rest.tokens import ALL_ZONES, RESTRICTED, policy, put_token
from tests.support.api import FIRST_US

PLAN_MEMBERS = {
    "id",
    "name",
    "price",
    "currency",
    "frequency",
    "legacy_id",
    "is_subscribed",
    "can_subscribe",
    "externally_managed",
    "legacy_discount",
}
GOOD_PURGES = (
    {"purge_everything": True},
    {"files": ["https://example.com/a", {"url": "https://example.com/b", "headers": {}}]},
    {"tags": ["a"]},
    {"hosts": ["example.com"]},
    {"prefixes": ["example.com/a"]},
)
BAD_PURGES = (
    {},
    {"purge_everything": False},
    {"files": []},
    {"tags": ["a"], "hosts": ["b"]},
    {"tags": ["a"] * (limits.PURGE_ITEMS_MAX + 1)},
)
ROUTES = {  # each with the body that it takes
    ("PUT", "activation_check"): None,
    ("GET", "hold"): None,
    ("POST", "hold"): None,
    ("PATCH", "hold"): {},
    ("DELETE", "hold"): None,
    ("GET", "available_plans"): None,
    ("GET", "available_plans/free"): None,
    ("GET", "available_rate_plans"): None,
    ("GET", "subscription"): None,
    ("POST", "subscription"): {"rate_plan": {"id": "pro"}},
    ("PUT", "subscription"): {"rate_plan": {"id": "pro"}},
    ("POST", "purge_cache"): {"purge_everything": True},
    ("GET", "pagerules"): None,
    ("GET", "workers/routes"): None,
}


@pytest.fixture
def zone(zone_id):
    return f"/zones/{zone_id}"


@pytest.mark.parametrize(("call", "body"), ROUTES.items(), ids=str)
def test_an_unknown_zone_is_404_and_a_hidden_one_403(api, zone_id, call, body):
    put_token(api, policy("DNS Write", resources=ALL_ZONES))
    method, path = call
    unknown = api.call(method, f"/zones/{'e' * 32}/{path}", body)
    hidden = api.call(method, f"/zones/{zone_id}/{path}", body, auth=RESTRICTED)

    assert (unknown.status, unknown.codes) == (404, [1001])
    assert (hidden.status, hidden.codes) == (403, [9109])


@pytest.mark.parametrize("path", ["pagerules?status=active", "workers/routes"])
def test_what_does_not_exist_here_is_an_empty_list(api, zone, path):
    assert api.get(f"{zone}/{path}").result == []


class TestActivation:
    @pytest.mark.parametrize(("plan", "seconds"), [("free", 3600), ("pro", 300)])
    def test_a_check_has_its_interval(self, api, zone, zone_id, plan, seconds, monkeypatch):
        api.patch(zone, {"plan": {"id": plan}})

        first = api.put(f"{zone}/activation_check", None)
        assert first.result == {"id": zone_id}
        assert "active" in first.json["messages"][0]["message"]  # flarectl prints it
        again = api.put(f"{zone}/activation_check", None)
        assert (again.status, again.codes) == (400, [1224])
        assert f"{seconds} seconds" in again.json["errors"][0]["message"]

    def test_after_the_interval_it_is_done_again(self, api, zone, monkeypatch):
        monkeypatch.setattr(actions, "CHECK_SECONDS_FREE", 0)

        for _ in range(2):
            assert api.put(f"{zone}/activation_check", None).status == 200


class TestHold:
    def test_a_hold_is_put_changed_and_lifted(self, api, zone):
        hold = f"{zone}/hold"
        assert api.get(hold).result == {"hold": False}
        assert api.patch(hold, {"include_subdomains": True}).codes == [1224]

        assert api.post(hold, None).result == {"hold": True, "include_subdomains": False}
        held = {"hold": True, "include_subdomains": True}
        assert api.post(f"{hold}?include_subdomains=true", None).result == held
        assert api.get(hold).result == held
        assert api.patch(hold, {"include_subdomains": False}).result["include_subdomains"] is False
        assert api.delete(hold).result == {"hold": False}
        assert api.get(hold).result == {"hold": False}

    @pytest.mark.inside("invented time")
    def test_a_hold_is_lifted_until_a_time(self, api, zone):
        api.post(f"{zone}/hold", None)

        lifted = api.delete(f"{zone}/hold?hold_after=2026-03-01T00:00:00Z").result
        assert lifted == {"hold": False, "hold_after": "2026-03-01T00:00:00Z", "include_subdomains": False}
        past = api.patch(f"{zone}/hold", {"hold_after": "2025-01-01T00:00:00Z"}).result
        assert past["hold"] is True
        assert api.patch(f"{zone}/hold", {"hold_after": ""}).result == {
            "hold": True,
            "include_subdomains": False,
        }

    @pytest.mark.parametrize("after", ["soon", "2026-13-01", "9999-12-31T23:59:59Z", "2" * 50])
    def test_a_time_that_is_none_is_refused(self, api, zone, after):
        api.post(f"{zone}/hold", None)

        assert api.delete(f"{zone}/hold?hold_after={after}").codes == [1224]
        assert api.patch(f"{zone}/hold", {"hold_after": after}).codes == [1224]
        assert api.get(f"{zone}/hold").result["hold"] is True
        assert api.post(f"{zone}/hold?include_subdomains=perhaps", None).codes == [1001]

    def test_another_account_cannot_take_a_name_below_a_held_one(self, api, zone):
        other = AccountRow("b" * 32, "other", "standard", 0, FIRST_US)
        api.store.write(lambda tx: accounts.insert_account(tx, other)).result()
        below = {"name": "a.b.example.com", "account": {"id": other.id}}
        api.post(f"{zone}/hold?include_subdomains=true", None)

        refused = api.post("/zones", below)
        api.post(f"{zone}/hold", None)

        assert (refused.status, refused.codes) == (400, [1224])
        assert api.post("/zones", below).status == 200
        api.post(f"{zone}/hold?include_subdomains=true", None)
        own = {"name": "c.example.com", "account": {"id": api.get(zone).result["account"]["id"]}}
        assert api.post("/zones", own).status == 200


class TestPlans:
    def test_every_plan_can_be_chosen(self, api, zone):
        plans = api.get(f"{zone}/available_plans").json

        assert "result_info" not in plans
        assert [plan["legacy_id"] for plan in plans["result"]] == list(PLANS)
        assert [plan["is_subscribed"] for plan in plans["result"]] == [True, False, False, False]
        assert all(set(plan) == PLAN_MEMBERS for plan in plans["result"])
        rate_plans = api.get(f"{zone}/available_rate_plans").result
        assert [plan["id"] for plan in rate_plans] == list(PLANS)
        assert all(set(plan) == PLAN_MEMBERS for plan in rate_plans)

    def test_one_plan_is_found_by_its_id(self, api, zone):
        for plan in PLANS.values():
            assert api.get(f"{zone}/available_plans/{plan.id}").result["name"] == plan.name
        unknown = api.get(f"{zone}/available_plans/{'f' * 32}")
        assert (unknown.status, unknown.codes) == (404, [1001])

    @pytest.mark.parametrize("method", ["POST", "PUT"])
    def test_a_subscription_chooses_the_plan(self, api, zone, method):
        first = api.get(f"{zone}/subscription").result
        assert (first["rate_plan"]["id"], first["price"]) == ("free", 0)

        for rate_plan, plan in RATE_PLANS.items():
            body = {"rate_plan": {"id": rate_plan}}
            made = api.call(method, f"{zone}/subscription", body).result
            assert made["rate_plan"]["id"] == rate_plan
            assert api.get(f"{zone}/subscription").result == made
            assert api.get(zone).result["plan"]["legacy_id"] == plan

    def test_a_plan_chosen_by_patch_is_the_subscriptions_too(self, api, zone):
        api.put(f"{zone}/subscription", {"rate_plan": {"id": "lite"}})
        api.patch(zone, {"plan": {"id": "business"}})

        assert api.get(f"{zone}/subscription").result["rate_plan"]["id"] == "business"

    @pytest.mark.parametrize("body", [{}, {"rate_plan": {}}, {"rate_plan": {"id": "platinum"}}])
    def test_an_unknown_rate_plan_is_refused(self, api, zone, body):
        answer = api.put(f"{zone}/subscription", body)

        assert (answer.status, answer.codes) == (400, [1001])
        assert api.get(zone).result["plan"]["legacy_id"] == "free"

    def test_the_plan_decides_the_lowest_ttl(self, api, zone, records):
        record = {"type": "A", "name": "www", "content": "192.0.2.1", "ttl": 30}
        assert api.post(records, record).causes == [9021]

        api.put(f"{zone}/subscription", {"rate_plan": {"id": "enterprise"}})

        assert api.post(records, record).result["ttl"] == 30


def test_a_purge_names_its_zone(api, zone, zone_id):
    for body in GOOD_PURGES:
        assert api.post(f"{zone}/purge_cache", body).result == {"id": zone_id}


@pytest.mark.parametrize("body", [None, {}, {"purge_everything": True}, {"files": []}, b"no json"])
def test_the_older_purge_ignores_what_it_carries(api, zone, zone_id, body):
    assert api.call("DELETE", f"{zone}/purge_cache", body).result == {"id": zone_id}


def test_a_purge_of_nothing_or_of_two_kinds_is_refused(api, zone):
    for body in BAD_PURGES:
        answer = api.post(f"{zone}/purge_cache", body)
        assert (answer.status, answer.codes) == (400, [1001])
