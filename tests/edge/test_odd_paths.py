"""Paths that two servers read in two ways do not get past rules that look at paths."""

import pytest

from edgestead.edge.phases.odd_paths import is_ambiguous, said_in_one_way
from tests.edge.made import rule

FIREWALL, RATE, MANAGED = "http_request_firewall_custom", "http_ratelimit", "http_request_firewall_managed"
ODD = {
    "/%2fadmin": "/admin",
    "/%2f/admin": "/admin",
    "/%2Fadmin": "/admin",
    "/x%2f..%2fadmin": "/admin",
    "/x/..%2fadmin": "/admin",
    "/x/..%5cadmin": "/admin",
    "/x/..%5Cadmin": "/admin",
    "/x\\..\\admin": "/admin",
    "/\\admin": "/admin",
    "/admin;a=b": "/admin",
    "/x/..;/admin": "/admin",
    "/;/admin": "/admin",
    "/;a/admin/": "/admin/",
    "/%%32fadmin": "/admin",
    "/admin%00": None,
    "/admin%00.png": None,
    "/%%30%30": None,
    "/%%3000": None,
    "/%u0061dmin": None,
    "/x/..%u002Fadmin": None,
    "/%U0061dmin": None,
    "/%%750061dmin": None,
}
PLAIN = {
    "/": "/",
    "/admin": "/admin",
    "/%61dmin": "/admin",
    "//x/../admin": "/admin",
    "/a%20b": "/a%20b",
    "/a%252fb": "/a%252fb",
    "/a%3bb": "/a%3Bb",
    "/100%": "/100%",
}
ADMIN = 'starts_with(http.request.uri.path, "/admin")'
READING = {
    FIREWALL: [rule("block", ADMIN)],
    "raw": [rule("block", 'raw.http.request.uri.path eq "/admin"')],
    "full": [rule("block", 'http.request.full_uri contains "/admin"')],
    "skip": [rule("skip", 'http.request.uri eq "/open"', action_parameters={"ruleset": "current"})],
    "log": [rule("log", 'lower(http.request.uri.path) contains "x"')],
}
NOT_READING = [
    [rule("block", 'http.user_agent eq "bad"')],
    [rule("block", 'http.request.uri.query contains "x"')],
    [rule("block", 'any(http.request.uri.args["a"][*] eq "x")')],
    [rule("block", ADMIN, enabled=False)],
]


@pytest.mark.parametrize("path", ODD)
def test_what_is_odd_is_ambiguous_and_has_one_plain_form(path):
    plain = ODD[path]

    assert is_ambiguous(path.encode())
    assert said_in_one_way(path.encode()) == (plain if plain is None else plain.encode())


@pytest.mark.parametrize("path", PLAIN)
def test_what_is_plain_is_not_ambiguous(path):
    assert not is_ambiguous(path.encode())
    assert said_in_one_way(path.encode()) == PLAIN[path].encode()


@pytest.mark.parametrize("path", ODD)
def test_a_rule_about_paths_has_odd_ones_refused(edge, path):
    edge.serve(zone=[rule("block", ADMIN)])

    assert edge.ask(path + "?q").status in (400, 403)
    assert edge.ask("/admin").status == 403
    assert edge.ask("/other?next=%2fadmin;x") is None


@pytest.mark.parametrize("rules", READING.values(), ids=READING)
def test_any_rule_that_looks_at_paths_counts(edge, rules):
    edge.serve(zone=rules)

    refused = edge.ask("/%2fx")
    assert refused.status == 400
    assert edge.seen.actions == ["refuse"]
    assert edge.seen.decisions[0].phase == "ambiguous_paths"
    assert b"escaped slash" in refused.body


def test_rules_of_the_account_rate_limits_and_executed_rulesets_count(edge):
    limit = {"characteristics": ["ip.src"], "period": 10, "requests_per_period": 5}
    by_path = {**limit, "characteristics": ["ip.src", "http.request.uri.path"]}
    execute = rule("execute", action_parameters={"id": "c" * 32})
    served = (
        {"account": [rule("block", ADMIN)]},
        {"phase": RATE, "zone": [rule("block", ADMIN, ratelimit=limit)]},
        {"phase": RATE, "zone": [rule("block", ratelimit=by_path)]},
        {"phase": MANAGED, "zone": [rule("skip", ADMIN, action_parameters={"ruleset": "current"})]},
        {"zone": [execute], "custom": {"c" * 32: [rule("block", ADMIN)]}},
    )
    for one in served:
        assert edge.serve(**one).ask("/%2fx").status == 400, one


@pytest.mark.parametrize("rules", NOT_READING)
def test_where_no_rule_looks_at_paths_they_pass_as_they_came(edge, rules):
    edge.serve(zone=rules)

    for path in ODD:
        assert edge.send(path).target == path.encode()


def test_the_zone_may_refuse_without_rules(edge):
    edge.serve(settings={"ambiguous_paths": "refuse"})

    assert [edge.ask(path).status for path in ODD] == [400] * len(ODD)
    assert [edge.ask(path) for path in PLAIN] == [None] * len(PLAIN)


def test_the_zone_may_pass_them_in_spite_of_rules(edge):
    edge.serve(zone=[rule("block", ADMIN)], settings={"ambiguous_paths": "pass"})

    assert edge.send("/%2fadmin").target == b"/%2fadmin"


@pytest.mark.parametrize("path", [*ODD, *PLAIN])
def test_the_zone_may_say_them_in_one_way_to_rules_and_origin(edge, path):
    plain = {**ODD, **PLAIN}[path]
    edge.serve(settings={"ambiguous_paths": "normalise"})

    if plain is None:
        assert edge.ask(path).status == 400
    else:
        assert edge.send(path + "?q=%2f;").target == plain.encode() + b"?q=%2f;"


def test_rules_see_what_the_origin_gets(edge):
    edge.serve(zone=[rule("block", ADMIN)], settings={"ambiguous_paths": "normalise"})

    assert {edge.ask(path).status for path, plain in ODD.items() if plain} == {403}


def test_the_setting_holds_for_the_next_request(site):
    host, origin = site.origin()
    site.set("ambiguous_paths", "refuse")

    assert site.get(host, "/%2fadmin").status == 400
    site.set("ambiguous_paths", "pass")
    assert site.get(host, "/%2fadmin").status == 200
    assert origin.heads[-1].startswith(b"GET /%2fadmin ")
    site.set("ambiguous_paths", "auto")
