"""Zone lockdowns: rules of the custom phase, seen through the older interface."""

import pytest

from tests.rest.rulesets import NO_ID
from tests.rest.test_rulesets_access import may, token
from tests.usecases.ruleset_samples import block


@pytest.fixture
def lockdowns(zone_id):
    return f"/zones/{zone_id}/firewall/lockdowns"


def lockdown(*urls, **more):
    allowed = [{"target": "ip", "value": "192.0.2.7"}, {"target": "ip_range", "value": "2001:DB8::/32"}]
    return {"urls": urls or ["www.example.com/admin*"], "configurations": allowed} | more


def test_a_lockdown_is_made_found_replaced_and_deleted(api, lockdowns, entrypoint):
    api.put(entrypoint, {"rules": [block(ref="mine")]})
    made = api.post(lockdowns, lockdown("a.example.com/x*", "b.example.com", description="staff")).result

    assert made["urls"] == ["a.example.com/x*", "b.example.com"]
    assert made["configurations"][1] == {"target": "ip_range", "value": "2001:db8::/32"}
    assert (made["description"], made["paused"]) == ("staff", False)
    stored, mine = api.get(entrypoint).result["rules"]
    page = "concat(http.host, http.request.uri.path) wildcard"
    assert stored["expression"] == (
        f'({page} "a.example.com/x*" or {page} "b.example.com") and not ip.src in {{192.0.2.7 2001:db8::/32}}'
    )
    assert (stored["id"], stored["action"], mine["ref"]) == (made["id"], "block", "mine")
    assert api.get(lockdowns).result == [api.get(f"{lockdowns}/{made['id']}").result] == [made]
    replaced = api.put(f"{lockdowns}/{made['id']}", lockdown(paused=True, priority=3)).result
    assert (replaced["id"], replaced["paused"], replaced["priority"]) == (made["id"], True, 3)
    assert api.delete(f"{lockdowns}/{made['id']}").result == {"id": made["id"]}
    assert api.get(lockdowns).result == []


def test_who_may_still_ask_is_named_as_the_edge_sees_them(api, lockdowns):
    mapped = [
        {"target": "ip", "value": "::ffff:192.0.2.7"},
        {"target": "ip_range", "value": "::ffff:192.0.2.7/120"},
    ]
    made = api.post(lockdowns, lockdown(configurations=mapped)).result

    assert [one["value"] for one in made["configurations"]] == ["192.0.2.7", "192.0.2.0/24"]


def test_they_stand_behind_access_rules_and_by_priority_before_custom_rules(api, lockdowns, entrypoint):
    api.put(entrypoint, {"rules": [block(ref="mine")]})
    api.post(
        lockdowns.replace("lockdowns", "access_rules/rules"),
        {"mode": "whitelist", "configuration": {"target": "ip", "value": "192.0.2.8"}},
    )
    made = [api.post(lockdowns, lockdown(priority=one)).result for one in (2, None, 1)]

    assert [one.get("priority") for one in api.get(lockdowns).result] == [1, 2, None]
    kinds = [one["ref"].partition("/")[0] for one in api.get(entrypoint).result["rules"]]
    assert kinds == ["access_rule", "lockdown", "lockdown", "lockdown", "mine"]
    api.put(f"{lockdowns}/{made[2]['id']}", lockdown(priority=9))
    assert [one.get("priority") for one in api.get(lockdowns).result] == [2, 9, None]


def test_one_that_was_rewritten_elsewhere_is_a_custom_rule(api, lockdowns, entrypoint):
    api.post(lockdowns, lockdown())
    ruleset = api.get(entrypoint).result
    (stored,) = ruleset["rules"]
    path = f"{entrypoint.partition('/phases')[0]}/{ruleset['id']}/rules/{stored['id']}"

    for changes in ({"expression": "ssl"}, {"action": "log"}, {"ref": "lockdown/x"}):
        assert api.patch(path, stored | changes).status == 200
        assert api.get(lockdowns).result == []
        assert api.get(f"{lockdowns}/{stored['id']}").codes == [10001]


@pytest.mark.parametrize(
    "body",
    [
        lockdown("https://www.example.com/"),
        lockdown("a b"),
        lockdown("a**"),
        lockdown('a"'),
        lockdown("x" * 1025),
        lockdown(urls=[]),
        lockdown(urls=["a"] * 101),
        lockdown(configurations=[]),
        lockdown(configurations=[{"target": "ip", "value": "192.0.2.0/24"}]),
        lockdown(configurations=[{"target": "ip", "value": "fe80::1%eth0"}]),
        lockdown(configurations=[{"target": "asn", "value": "AS1"}]),
        lockdown(description="x" * 1025),
        lockdown(priority=-1),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(api, lockdowns, body):
    assert api.post(lockdowns, body).status == 400
    assert api.get(lockdowns).result == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_is_not_there_is_not_found(api, lockdowns, method):
    assert api.call(method, f"{lockdowns}/{NO_ID}", lockdown()).codes == [10001]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "ab"),
        ("description=B", "b"),
        ("uri_search=M/X", "a"),
        ("ip=192.0.2.9", "b"),
        ("ip_range_search=2001:db8::/32", "a"),
        ("priority=1", "a"),
        ("per_page=1&page=2", "b"),
    ],
)
def test_a_list_is_filtered_and_paged(api, lockdowns, query, found):
    api.post(lockdowns, lockdown("example.com/x", description="a", priority=1))
    other = [{"target": "ip", "value": "192.0.2.9"}]
    api.post(lockdowns, lockdown("example.com/y", description="b", configurations=other))

    assert "".join(one["description"] for one in api.get(f"{lockdowns}?{query}").result) == found


@pytest.mark.parametrize("group", ["Firewall Services Write", "Firewall Services Read"])
def test_who_may_write_them(api, lockdowns, group):
    auth = token(api, group)

    assert may(api.get(lockdowns, auth=auth))
    assert may(api.post(lockdowns, lockdown(), auth=auth)) == (group == "Firewall Services Write")
