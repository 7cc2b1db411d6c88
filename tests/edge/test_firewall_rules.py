"""Custom rules of accounts and zones: block, log, skip, execute."""

import gc

import pytest

from edgestead.edge.rules import acts
from tests.edge.made import BROWSER, rule

BLOCK_ALL = rule("block")
ADMIN = 'http.request.uri.path eq "/admin"'
CUSTOM = "c" * 32


def skip(expression="true", id_="skipper", **parameters):
    return rule("skip", expression, id=id_, action_parameters=parameters)


def test_a_matching_rule_blocks_and_no_other_request(edge):
    edge.serve(zone=[rule("block", ADMIN, description="no admins")])

    assert edge.ask("/admin").status == 403
    assert edge.ask("/") is None
    (decision,) = edge.seen.decisions
    assert (decision.action, decision.status, decision.rule_id) == ("block", 403, "r1")
    assert (decision.phase, decision.description) == ("http_request_firewall_custom", "no admins")
    assert decision.reason == ADMIN
    assert decision.ruleset_id == "zone-http_request_firewall_custom"


@pytest.mark.parametrize("path", ["/%61dmin", "//admin", "/x/../admin", "/./admin"])
def test_another_spelling_of_the_path_is_no_way_around(edge, path):
    edge.serve(zone=[rule("block", ADMIN)])
    assert edge.ask(path).status == 403


@pytest.mark.parametrize(
    ("accept", "kind", "holds"),
    [
        (b"text/html,*/*;q=0.8", b"text/html; charset=utf-8", b"<p>"),
        (b"application/json", b"application/json", b'"code": 403'),
        (b"*/*", b"text/plain; charset=utf-8", b"ray-1"),
    ],
)
def test_a_block_answers_in_the_form_that_the_client_wants(edge, accept, kind, holds):
    blocked = edge.serve(zone=[BLOCK_ALL]).ask(headers=[(b"accept", accept)])

    assert dict(blocked.headers)[b"content-type"] == kind
    assert dict(blocked.headers)[b"cache-control"] == b"private, no-store"
    assert holds in blocked.body


def test_a_rules_own_response_is_answered_each_time_anew(edge):
    response = {"status_code": 418, "content": "<p>ä</p>", "content_type": "text/html"}
    edge.serve(zone=[rule("block", action_parameters={"response": response})])

    first = edge.ask()
    first.headers.append((b"x-changed", b"1"))
    second = edge.ask()

    assert (second.status, second.body) == (418, "<p>ä</p>".encode())
    assert second.headers == [(b"content-type", b"text/html"), (b"cache-control", b"private, no-store")]


def test_log_goes_on_and_the_next_rule_acts(edge):
    edge.serve(zone=[rule("log"), BLOCK_ALL])
    assert edge.ask().status == 403
    assert edge.seen.actions == ["log", "block"]


def test_disabled_and_unknown_rules_do_nothing(edge, caplog):
    edge.serve(zone=[rule("block", enabled=False), rule("teleport"), rule("log", "no.such.field")])
    assert edge.ask() is None
    assert edge.seen.actions == []
    assert "rule r3" in caplog.text
    assert "unknown identifier" in caplog.text


def test_a_rule_that_does_not_log_still_acts(edge):
    edge.serve(zone=[rule("block", logging={"enabled": False})])
    assert edge.ask().status == 403
    assert edge.seen.actions == []


def test_the_account_acts_before_the_zone(edge):
    edge.serve(zone=[rule("block", id="zone-rule")], account=[rule("block", id="account-rule")])
    edge.ask()
    assert [decision.rule_id for decision in edge.seen.decisions] == ["account-rule"]


# Skips: the parameters, and whether a zone's own block rule after them still acts.
FORMS = [
    ({"ruleset": "current"}, None),
    ({"phase": "current"}, None),
    ({"phases": ["http_request_firewall_custom"]}, None),
    ({"phases": ["http_ratelimit"]}, 403),
    ({"products": ["waf", "rateLimit"]}, 403),
    ({"rules": {"zone-http_request_firewall_custom": ["r2"]}}, None),
    ({"rules": {"zone-http_request_firewall_custom": ["r9"]}}, 403),
    ({"rulesets": ["zone-http_request_firewall_managed"]}, 403),
]


@pytest.mark.parametrize(("parameters", "status"), FORMS)
def test_a_skip_leaves_out_what_it_names_and_nothing_else(edge, parameters, status):
    edge.serve(zone=[skip(**parameters), rule("block", id="r2")])
    blocked = edge.ask()
    assert (blocked.status if blocked else None) == status
    assert edge.seen.actions[0] == "skip"


def test_a_skip_only_counts_for_requests_that_match_it(edge):
    edge.serve(zone=[skip('http.request.uri.path eq "/health"', phase="current"), BLOCK_ALL])
    assert edge.ask("/health") is None
    assert edge.ask("/").status == 403


def test_a_skip_of_a_later_phase_is_remembered(edge):
    limit = rule(
        "block",
        ratelimit={"characteristics": ["ip.src"], "period": 60, "requests_per_period": 1},
    )
    edge.serve(zone=[skip(ADMIN, phases=["http_ratelimit"])], more={"http_ratelimit": [limit]})

    assert [edge.ask("/admin") for _ in range(3)] == [None, None, None]
    assert [edge.ask("/") and 429 for _ in range(3)] == [None, 429, 429]


@pytest.mark.parametrize("parameters", [{"phase": "current"}, {"ruleset": "current"}])
def test_an_accounts_skip_does_not_reach_the_zone(edge, parameters):
    edge.serve(
        account=[skip(**parameters), rule("block", id="of-account")], zone=[rule("block", id="of-zone")]
    )
    assert edge.ask().status == 403
    assert edge.seen.decisions[-1].rule_id == "of-zone"


def execute(expression="true", id_=CUSTOM):
    return rule("execute", expression, id="executer", action_parameters={"id": id_, "version": "latest"})


def test_a_custom_ruleset_runs_where_it_is_executed(edge):
    edge.serve(account=[execute(ADMIN)], custom={CUSTOM: [rule("block", "ip.src eq 192.0.2.7")]})

    assert edge.ask("/admin").status == 403
    assert edge.ask("/") is None
    assert edge.ask("/admin", client="192.0.2.8") is None
    assert edge.seen.decisions[0].ruleset_id == CUSTOM


EXECUTED_SKIPS = [
    ({"rulesets": [CUSTOM]}, None),
    ({"rules": {CUSTOM: ["r1"]}}, None),
    ({"rules": {CUSTOM: ["r2"]}}, 403),
    ({"ruleset": "current"}, None),
]


@pytest.mark.parametrize(("parameters", "status"), EXECUTED_SKIPS)
def test_what_is_executed_later_can_be_skipped(edge, parameters, status):
    edge.serve(account=[skip(**parameters), execute()], custom={CUSTOM: [BLOCK_ALL]})
    blocked = edge.ask()
    assert (blocked.status if blocked else None) == status


def test_a_custom_ruleset_that_ends_itself_does_not_end_its_caller(edge):
    edge.serve(
        account=[execute(), rule("block", id="after")],
        custom={CUSTOM: [skip(ruleset="current"), rule("block", id="inside")]},
    )
    edge.ask()
    assert edge.seen.decisions[-1].rule_id == "after"


def test_an_unknown_ruleset_or_one_of_another_phase_executes_nothing(edge):
    edge.serve(account=[execute(id_="d" * 32), rule("block", id="after")])
    edge.ask()
    assert edge.seen.decisions[0].rule_id == "after"


def test_a_damaged_document_has_no_rules(edge, caplog):
    edge.serve(zone=[rule(7)])
    assert edge.ask() is None
    assert "cannot be read" in caplog.text


def test_a_zone_without_rules_pays_for_none(edge):
    edge.serve(zone=[rule("block", enabled=False)])
    assert edge.ask(headers=BROWSER) is None
    assert edge.pipeline.body_octets == 0


@pytest.mark.parametrize("field", ["http.request.body.raw", "http.request.body.size"])
def test_a_body_is_only_waited_for_where_a_rule_looks_at_it(edge, field):
    wants = edge.serve(zone=[rule("log", f"len({field}) gt 3" if "raw" in field else f"{field} gt 3")])
    assert wants.pipeline.body_octets > 0
    assert edge.serve(zone=[rule("log", 'http.request.body.mime eq "a/b"')]).pipeline.body_octets == 0


def test_the_version_that_is_named_runs_and_not_a_newer_one(edge):
    by_number = rule("execute", action_parameters={"id": CUSTOM, "version": "1"})
    versions = {CUSTOM: [rule("block")], f"{CUSTOM}@1": [rule("log")]}
    assert edge.serve(account=[by_number], custom=versions).ask() is None
    assert edge.serve(account=[execute()], custom=versions).ask().status == 403
    assert edge.seen.actions == ["log", "block"]


def test_a_request_leaves_nothing_for_the_collector(edge):
    edge.serve(zone=[rule("log", 'http.host eq "www.example.com"'), rule("block", ADMIN)])
    gc.collect()
    gc.disable()
    try:
        for number in range(100):
            edge.ask(("/", "/admin")[number % 2])
        assert gc.collect() < 100
    finally:
        gc.enable()


def test_a_long_expression_is_shortened_in_events_and_on_one_line(edge):
    edge.serve(zone=[rule("block", " or\n".join(f'http.request.uri.path eq "/{n}"' for n in range(99)))])
    edge.ask("/7")

    reason = edge.seen.decisions[0].reason
    assert reason.startswith('http.request.uri.path eq "/0" or http.request.uri.path')
    assert (len(reason), reason[-1]) == (acts.SHOWN_MAX, "…")


def test_a_setting_that_decides_is_named(edge):
    edge.serve(settings={"always_use_https": "on"})
    edge.ask("/")
    assert edge.seen.decisions[0].reason == "the setting always_use_https is on"
