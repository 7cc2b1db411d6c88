"""Answers that the edge gives itself: each is an event, and meets the zone's rules for answers."""

import re

import pytest

from edgestead.edge import limits
from tests.edge.bench import GET, POST, Bench
from tests.edge.made import rule

CUSTOM, REDIRECT = "http_request_firewall_custom", "http_request_dynamic_redirect"
RESPONSE = "http_response_headers_transform"
LIMIT = "http_ratelimit"
SITES_OWN = rule(
    "rewrite",
    action_parameters={
        "headers": {
            "Strict-Transport-Security": {"operation": "set", "value": "max-age=1"},
            "Content-Security-Policy": {"operation": "set", "value": "default-src 'self'"},
            "Cache-Control": {"operation": "remove"},
        }
    },
)
AWAY = rule(
    "redirect",
    action_parameters={"from_value": {"status_code": 308, "target_url": {"value": "https://example.net/"}}},
)
TOO_LARGE = POST.replace(b"5", b"999999999")
CHUNKS = b"POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n"
BROWSER = GET[:-2] + b"Accept: text/html\r\nUser-Agent: Browser\r\n\r\n"


def refused(bench):
    bench.connection.data_received(CHUNKS + b"5\r\nhel")
    bench.connection.data_received(b"lo\r\nZZ\r\n")


def silent(bench):
    bench.connection.data_received(GET)
    bench.wait(200)


def slow(bench):
    bench.connection.data_received(POST + b"he")
    bench.wait(limits.BODY_SECONDS_MAX + 3)


def hangs_up(bench):
    bench.connection.data_received(POST + b"hello")
    bench.origin.connection_lost(None)


def sends(data):
    return lambda bench: bench.connection.data_received(data)


ANSWERS = [  # rules, what happens, the status, and the event: phase and action
    ({CUSTOM: [rule("block")]}, sends(GET), 403, (CUSTOM, "block")),
    ({REDIRECT: [AWAY]}, sends(GET), 308, (REDIRECT, "redirect")),
    ({}, sends(TOO_LARGE), 413, ("http", "refuse")),
    ({}, refused, 400, ("http", "refuse")),
    ({}, slow, 408, ("http", "refuse")),
    ({}, silent, 524, ("origin", "fail")),
    ({}, hangs_up, 520, ("origin", "fail")),
]


@pytest.mark.parametrize(("rules", "happens", "status", "event"), ANSWERS)
def test_an_answer_of_the_edges_own_is_one_event(rules, happens, status, event):
    bench = Bench(rules)
    happens(bench)
    assert bench.client.status == status
    (decision,) = bench.decisions
    assert (decision.phase, decision.action) == event
    assert decision.status == status
    assert decision.rule_id or decision.reason


@pytest.mark.parametrize(("rules", "happens", "status", "event"), ANSWERS)
def test_it_meets_the_rules_for_answers(rules, happens, status, event):
    bench = Bench({**rules, RESPONSE: [SITES_OWN]})
    happens(bench)
    head, _, body = bench.client.written.partition(b"\r\n\r\n")
    assert bench.client.status == status
    assert b"\r\nstrict-transport-security: max-age=1" in head
    assert b"cache-control" not in head
    assert head.count(b"content-length: %d" % len(body)) == 1
    assert len(re.findall(rb"\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", head)) == 1


def test_a_rule_for_answers_sees_the_status_of_the_edges_own():
    marks = rule(
        "rewrite",
        "http.response.code eq 403",
        action_parameters={"headers": {"x-mark": {"operation": "set", "value": "1"}}},
    )
    for rules, marked in (({CUSTOM: [rule("block")]}, True), ({REDIRECT: [AWAY]}, False)):
        bench = Bench({**rules, RESPONSE: [marks]})
        bench.connection.data_received(GET)
        assert (b"x-mark: 1" in bench.client.written) is marked


@pytest.mark.parametrize("kind", ["challenge", "js_challenge", "managed_challenge"])
@pytest.mark.parametrize("asked", [GET, BROWSER])
def test_a_challenge_stays_as_it_is(kind, asked):
    written = []
    for more in ({}, {RESPONSE: [SITES_OWN]}):
        bench = Bench({CUSTOM: [rule(kind)], **more})
        bench.connection.data_received(asked)
        written.append(bench.client.written.partition(b"\r\n\r\n")[0].split(b"\r\n"))
    without, with_rules = ([line.split(b":")[0] for line in head] for head in written)
    assert without == with_rules
    assert not any(b"default-src 'self'" in line for line in written[1])


def test_a_rule_that_does_not_log_redirects_without_an_event():
    bench = Bench({REDIRECT: [{**AWAY, "logging": {"enabled": False}}]})
    bench.connection.data_received(GET)
    assert bench.client.status == 308
    assert bench.decisions == []


@pytest.mark.parametrize(("to_origin", "counted"), [(False, True), (True, False)])
def test_a_limit_counts_them_unless_it_asks_for_the_origins(to_origin, counted):
    limit = {
        "characteristics": ["ip.src"],
        "period": 60,
        "requests_per_period": 1,
        "counting_expression": "http.response.code eq 524",
        "requests_to_origin": to_origin,
    }
    bench = Bench({LIMIT: [rule("block", ratelimit=limit)]})
    silent(bench)
    assert bench.client.status == 524
    bench.client.written = b""
    bench.keep_origin()
    bench.connection.data_received(GET)
    assert (bench.client.status == 429) is counted
