"""IP access rules: rules of the custom phase, seen through the older interface."""

import pytest

from edgestead.usecases.ruleset.access_rules import MODES
from tests.rest.rulesets import NO_ID
from tests.rest.test_rulesets_access import may, token
from tests.rest.tokens import policy
from tests.support.api import CREDENTIALS
from tests.usecases.ruleset_samples import CUSTOM_PHASE, block

FORM = {"content-type": "application/json"}  # what fail2ban says, whatever it sends


@pytest.fixture
def rules(zone_id):
    return f"/zones/{zone_id}/firewall/access_rules/rules"


def rule(value="192.0.2.7", target="ip", mode="block", **more):
    return {"mode": mode, "configuration": {"target": target, "value": value}, **more}


def values(answer):
    return [one["configuration"]["value"] for one in answer.result]


def test_a_rule_is_made_found_changed_and_deleted(api, rules, entrypoint):
    made = api.post(rules, rule(notes="Fail2Ban sshd")).result

    assert next(iter(made)) == "id"
    assert made["configuration"] == {"target": "ip", "value": "192.0.2.7"}
    assert (made["mode"], made["notes"], made["paused"]) == ("block", "Fail2Ban sshd", False)
    assert made["allowed_modes"] == list(MODES)
    assert made["scope"] == {"id": rules.split("/")[2], "type": "zone"}
    assert api.get(f"{rules}/{made['id']}").result == made
    assert api.get(rules).result == [made]

    changed = api.patch(f"{rules}/{made['id']}", {"mode": "js_challenge", "notes": "less"}).result
    assert changed == made | {
        "mode": "js_challenge",
        "notes": "less",
        "modified_on": changed["modified_on"],
        "created_on": changed["created_on"],
    }
    (stored,) = api.get(entrypoint).result["rules"]
    assert (stored["id"], stored["version"], stored["action"]) == (made["id"], "2", "js_challenge")

    assert api.delete(f"{rules}/{made['id']}").result == {"id": made["id"]}
    assert (api.get(rules).result, api.get(entrypoint).result["rules"]) == ([], [])


@pytest.mark.parametrize(
    ("target", "value", "spelled", "expression"),
    [
        ("ip", "192.0.2.7", "192.0.2.7", "ip.src eq 192.0.2.7"),
        ("ip6", "2001:DB8:0:0::1", "2001:db8::1", "ip.src eq 2001:db8::1"),
        ("ip_range", "192.0.2.7/24", "192.0.2.0/24", "ip.src in {192.0.2.0/24}"),
        ("ip_range", "2001:db8::/48", "2001:db8::/48", "ip.src in {2001:db8::/48}"),
        ("asn", "as64500", "AS64500", "ip.src.asnum eq 64500"),
        ("country", "de", "DE", 'ip.src.country eq "DE"'),
        ("country", "T1", "T1", 'ip.src.country eq "T1"'),
    ],
)
def test_each_target_is_an_expression(api, rules, entrypoint, target, value, spelled, expression):
    answer = api.post(rules, rule(value, target))

    assert answer.result["configuration"] == {"target": target, "value": spelled}
    assert api.get(entrypoint).result["rules"][0]["expression"] == expression
    assert api.get(rules).result == [answer.result]
    assert bool(answer.json["messages"]) == (target in ("asn", "country"))


def test_an_address_says_itself_of_which_family_it_is(api, rules):
    made = api.post(rules, rule("2001:db8::1", "ip")).result

    assert made["configuration"]["target"] == "ip6"
    query = "configuration.target=ip&configuration.value=2001:db8:0::1"
    assert api.get(f"{rules}?{query}").result == [made]


@pytest.mark.parametrize(
    ("target", "value", "meant"),
    [
        ("ip6", "::ffff:192.0.2.7", {"target": "ip", "value": "192.0.2.7"}),
        ("ip_range", "::ffff:192.0.2.7/120", {"target": "ip_range", "value": "192.0.2.0/24"}),
    ],
)
def test_an_ipv4_address_that_is_written_as_an_ipv6_one_is_what_the_edge_sees(
    api, rules, target, value, meant
):
    made = api.post(rules, rule(value, target)).result

    assert made["configuration"] == meant
    assert api.post(rules, rule(**{"target": meant["target"], "value": meant["value"]})).codes == [10009]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (rule("192.0.2.256"), "/configuration/value"),
        (rule("fe80::1%eth0", "ip6"), "/configuration/value"),
        (rule("192.0.2.0/33", "ip_range"), "/configuration/value"),
        (rule("AS0", "asn"), "/configuration/value"),
        (rule("AS" + "9" * 40, "asn"), "/configuration/value"),
        (rule('D"', "country"), "/configuration/value"),
        (rule(target="host"), "/configuration/target"),
        (rule(mode="allow"), "/mode"),
        (rule(notes="x" * 1025), "/notes"),
        ({"mode": "block"}, ""),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(api, rules, body, pointer):
    answer = api.post(rules, body)

    assert answer.status == 400
    assert answer.json["errors"][0].get("source", {}).get("pointer", "") == pointer
    assert api.get(rules).result == []


def test_a_target_has_one_rule(api, rules):
    made = api.post(rules, rule("2001:db8::1", "ip6")).result
    answer = api.post(rules, rule("2001:DB8::0:1", "ip", mode="whitelist"))

    assert (answer.status, answer.codes) == (400, [10009])
    assert answer.json["errors"][0]["message"] == "firewallaccessrules.api.duplicate_of_existing"
    assert made["id"] in answer.json["messages"][0]["message"]


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_what_is_not_there_is_not_found(api, rules, entrypoint, method):
    custom = api.put(entrypoint, {"rules": [block()]}).result["rules"][0]["id"]
    for rule_id in (NO_ID, custom):
        answer = api.call(method, f"{rules}/{rule_id}", {"mode": "block"})
        assert (answer.status, answer.codes) == (404, [10001])


def test_the_edge_asks_them_before_custom_rules_and_lets_in_before_it_keeps_out(api, rules, entrypoint):
    api.put(entrypoint, {"rules": [block(ref="mine")]})
    for body in (
        rule("192.0.2.0/24", "ip_range"),
        rule("192.0.2.7"),
        rule("198.51.100.0/24", "ip_range", "whitelist"),
        rule("192.0.2.8"),
    ):
        assert api.post(rules, body).status == 200

    order = ["198.51.100.0/24", "192.0.2.7", "192.0.2.8", "192.0.2.0/24"]
    assert values(api.get(rules)) == order
    stored = api.get(entrypoint).result["rules"]
    assert [one["ref"].rpartition("ip_range/" if "range" in one["ref"] else "ip/")[2] for one in stored] == [
        *order,
        "mine",
    ]
    whitelisted = stored[0]
    assert whitelisted["action"] == "skip"
    assert whitelisted["action_parameters"]["ruleset"] == "current"
    assert whitelisted["logging"] == {"enabled": False}

    api.patch(f"{rules}/{stored[3]['id']}", {"mode": "whitelist"})
    assert values(api.get(rules)) == ["198.51.100.0/24", "192.0.2.0/24", "192.0.2.7", "192.0.2.8"]


def test_a_rule_that_was_rewritten_elsewhere_is_no_access_rule(api, rules, entrypoint):
    made = api.post(rules, rule()).result
    ruleset = api.get(entrypoint).result
    stored = ruleset["rules"][0]
    path = f"{entrypoint.partition('/phases')[0]}/{ruleset['id']}/rules/{stored['id']}"

    for changes in ({"expression": "ip.src eq 192.0.2.8"}, {"enabled": False}, {"action": "log"}):
        assert api.patch(path, stored | changes).status == 200
        assert api.get(rules).result == []
        assert api.post(rules, rule()).codes == [10009]
    assert api.patch(path, stored).status == 200
    assert [one["id"] for one in api.get(rules).result] == [made["id"]]


@pytest.fixture
def four(api, rules):
    for body in (
        rule("192.0.2.7", notes="Fail2Ban sshd"),
        rule("192.0.2.8", mode="challenge", notes="Fail2Ban nginx"),
        rule("2001:db8::1", "ip6"),
        rule("192.0.2.0/24", "ip_range", "whitelist", notes="office"),
    ):
        api.post(rules, body)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["192.0.2.0/24", "192.0.2.7", "192.0.2.8", "2001:db8::1"]),
        ("mode=whitelist", ["192.0.2.0/24"]),
        ("notes=fail2BAN", ["192.0.2.7", "192.0.2.8"]),
        ("notes=fail2ban&mode=block", ["192.0.2.7"]),
        ("notes=office&mode=block&match=any", ["192.0.2.0/24", "192.0.2.7", "2001:db8::1"]),
        ("configuration.target=ip6", ["2001:db8::1"]),
        ("configuration_target=ip&configuration_value=192.0.2.8", ["192.0.2.8"]),
        ("configuration.value=192.0.2.9", []),
        ("configuration.target=ip&configuration.value=x", []),
        ("order=configuration.value", ["192.0.2.0/24", "192.0.2.7", "192.0.2.8", "2001:db8::1"]),
        ("order=mode&direction=desc&per_page=1", ["192.0.2.0/24"]),
        ("order=configuration.target&per_page=2&page=2", ["2001:db8::1", "192.0.2.0/24"]),
    ],
)
@pytest.mark.usefixtures("four")
def test_a_list_is_filtered_ordered_and_paged(api, rules, query, found):
    assert values(api.get(f"{rules}?{query}")) == found


@pytest.mark.parametrize("query", ["mode=x", "order=x", "match=x", "direction=x", "page=x"])
def test_a_list_that_cannot_be_is_refused(api, rules, query):
    assert api.get(f"{rules}?{query}").status == 400


@pytest.mark.usefixtures("four")
def test_fail2ban_with_a_token_bans_and_unbans(api, rules):
    """Its list's parameters are in the body of the GET, and it deletes the first rule of the answer."""
    ban = b'{"mode":"block","configuration":{"target":"ip","value":"203.0.113.9"},"notes":"Fail2Ban sshd"}'
    made = api.post(rules, ban, headers=FORM).result
    wanted = b"mode=block&notes=Fail2Ban%20sshd&configuration.target=ip&configuration.value=203.0.113.9"

    answer = api.call("GET", rules, wanted, headers=FORM)

    assert answer.body.startswith(b'{"result":[{"id":"%s"' % made["id"].encode())
    assert len(answer.result) == 1
    deleted = api.call("DELETE", f"{rules}/{made['id']}", b'{"cascade": "none"}', headers=FORM)
    assert deleted.status == 200
    gone = api.call("GET", rules, wanted, headers=FORM)
    assert (gone.result, b'id"' in gone.body) == ([], False)
    assert len(api.get(rules).result) == 4


@pytest.mark.parametrize(
    ("group", "reads", "writes"),
    [
        ("Firewall Services Read", True, False),
        ("Firewall Services Write", True, True),
        ("Zone WAF Write", False, False),
        ("DNS Write", False, False),
    ],
)
def test_who_may_read_and_write_them(api, rules, group, reads, writes):
    made = api.post(rules, rule()).result
    auth = token(api, group)

    assert may(api.get(rules, auth=auth)) == reads
    assert may(api.patch(f"{rules}/{made['id']}", {"notes": group}, auth=auth)) == writes


def test_a_zone_that_is_not_there_has_none(api):
    answer = api.get(f"/zones/{NO_ID}/firewall/access_rules/rules")
    assert answer.status == 404


# Of accounts, and of users.

ACCOUNT = f"/accounts/{CREDENTIALS.account_id}"
ROOT = f"{ACCOUNT}/rulesets/phases/{CUSTOM_PHASE}/entrypoint"


@pytest.mark.parametrize("place", [ACCOUNT, "/user"])
def test_rules_of_all_zones_stand_in_a_ruleset_that_the_account_executes_first(api, place):
    theirs = {"action": "skip", "expression": "ssl", "action_parameters": {"ruleset": "current"}}
    api.put(ROOT, {"rules": [theirs]})
    rules = f"{place}/firewall/access_rules/rules"
    made = [api.post(rules, rule(value)).result for value in ("192.0.2.7", "192.0.2.8")]

    assert made[0]["scope"] == {"id": CREDENTIALS.account_id, "type": "account"}
    executing, mine = api.get(ROOT).result["rules"]
    ruleset = f"{ACCOUNT}/rulesets/{executing['action_parameters']['id']}"
    assert (executing["action"], mine["action"]) == ("execute", "skip")
    assert [one["id"] for one in api.get(ruleset).result["rules"]] == [one["id"] for one in made]
    assert api.get(rules).result == made
    assert api.get(f"{rules}/{made[0]['id']}").result == made[0]
    changed = api.patch(f"{rules}/{made[0]['id']}", {"mode": "whitelist"}).result
    assert changed["mode"] == "whitelist"
    assert api.post(rules, rule()).codes == [10009]
    for one in made:
        assert api.delete(f"{rules}/{one['id']}").result == {"id": one["id"]}
    assert api.get(rules).result == []
    api.post(rules, rule())
    assert len(api.get(ROOT).result["rules"]) == 2


def test_rules_that_the_account_no_longer_executes_are_not_shown_until_one_is_made(api):
    rules = f"{ACCOUNT}/firewall/access_rules/rules"
    made = api.post(rules, rule()).result
    api.put(ROOT, {"rules": []})

    assert api.get(rules).result == []
    assert api.delete(f"{rules}/{made['id']}").codes == [10001]
    api.post(rules, rule("192.0.2.8"))
    assert values(api.get(rules)) == ["192.0.2.7", "192.0.2.8"]


def test_a_user_of_several_accounts_names_one(api):
    assert api.post("/accounts", {"name": "second"}).status in (200, 400)  # by the date
    answer = api.get("/user/firewall/access_rules/rules")

    if len(api.get("/accounts").result) > 1:
        assert (answer.status, answer.codes) == (400, [10014])
        assert "/accounts/:id/firewall" in answer.json["errors"][0]["message"]


@pytest.mark.parametrize("place", [ACCOUNT, "/user"])
@pytest.mark.parametrize("group", ["Account WAF Read", "Account WAF Write", "Firewall Services Write"])
def test_who_may_read_and_write_those_of_all_zones(api, place, group):
    rules = f"{place}/firewall/access_rules/rules"
    resources = {"com.cloudflare.api.account.*": "*", "com.cloudflare.api.account.zone.*": "*"}
    wanted = {"name": group, "policies": [policy(group, resources=resources)]}
    auth = {"authorization": f"Bearer {api.post('/user/tokens', wanted).result['value']}"}

    assert may(api.get(rules, auth=auth)) == group.startswith("Account WAF")
    assert may(api.post(rules, rule(), auth=auth)) == (group == "Account WAF Write")


CROWDSEC = "CrowdSec crowdsecurity/ssh-bf"


def test_crowdsecs_action_by_rules_bans_for_all_zones_and_unbans(api):
    """A custom bouncer adds a decision, and finds the rule again by its notes and value when it ends."""
    rules = "/user/firewall/access_rules/rules"
    body = rule("2001:db8:0:0:1::7", "ip6", notes=CROWDSEC)
    made = api.post(rules, body).result
    assert api.post(rules, body).json["errors"][0]["message"].endswith("duplicate_of_existing")

    query = "mode=block&configuration_target=ip6&configuration_value=2001:db8:0:0:1::7&page=1&per_page=1"
    found = api.get(f"{rules}?{query}&notes={CROWDSEC.replace(' ', '+')}").result

    assert [one["id"] for one in found] == [made["id"]]
    assert api.delete(f"{rules}/{made['id']}").status == 200
    assert api.get(rules).result == []
