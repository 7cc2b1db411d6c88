"""Rate limits: what counts, by what, and what happens to who is over."""

import pytest

from edgestead.edge.tools.phase import local_tools
from edgestead.edge.tools.rates import Rates, memory_octets
from tests.edge.made import Edge, Seen, answer, ask, rule
from tests.edge.test_rates import SECRET, Clock

PHASE = "http_ratelimit"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def edge(clock):
    seen = Seen()
    memory = memoryview(bytearray(memory_octets(1)))
    return Edge(local_tools(seen)._replace(rates=Rates(memory, SECRET, now=clock)), seen)


def limit(action="block", expression="true", *, by=("ip.src",), requests=3, period=10, **more):
    told = {
        "characteristics": list(by),
        "period": period,
        "requests_per_period": requests,
        "mitigation_timeout": 0,
        "requests_to_origin": False,
        **{name: more.pop(name) for name in list(more) if name in NAMES},
    }
    told = {name: value for name, value in told.items() if value is not None}
    return rule(action, expression, ratelimit=told, **more)


NAMES = ("mitigation_timeout", "requests_to_origin", "counting_expression", "score_per_period",
         "score_response_header_name", "requests_per_period")  # fmt: skip


def statuses(edge, count, target="/", **about):
    """Of that many requests; None for those that pass."""
    found = [edge.ask(target, **about) for _ in range(count)]
    return [one.status if one else None for one in found]


def test_the_allowed_requests_pass_and_the_next_ones_do_not(edge, clock):
    edge.serve(PHASE, zone=[limit()])
    assert statuses(edge, 5) == [None, None, None, 429, 429]
    clock.seconds += 10
    assert statuses(edge, 4) == [None, None, None, 429]
    assert edge.seen.actions == ["block"] * 3


def test_a_mitigation_outlasts_the_window_and_what_it_holds_back_does_not_count(edge, clock):
    edge.serve(PHASE, zone=[limit(mitigation_timeout=60)])
    assert statuses(edge, 4) == [None, None, None, 429]
    for _ in range(5):
        clock.seconds += 11
        assert statuses(edge, 2) == [429, 429]
    clock.seconds += 5
    assert statuses(edge, 4) == [None, None, None, 429]


@pytest.mark.parametrize(("timeout", "later"), [(5, 0), (5, 3), (5, 8), (10, 0), (60, 4), (0, 0), (0, 7)])
@pytest.mark.parametrize(("early", "status"), [(0, None), (1, 429)])
def test_who_comes_again_when_it_was_told_to_passes_and_no_sooner(edge, clock, timeout, later, early, status):
    more = {"mitigation_timeout": timeout} if timeout else {}
    edge.serve(PHASE, zone=[limit(requests=1, period=10, **more)])
    edge.ask()
    clock.seconds += later
    told = int(dict(edge.ask().headers)[b"retry-after"])
    clock.seconds += told - early
    assert statuses(edge, 1) == [status]


def test_who_is_held_back_is_told_until_when(edge, clock):
    edge.serve(PHASE, zone=[limit(requests=1, mitigation_timeout=60)])
    edge.ask()
    assert dict(edge.ask().headers)[b"retry-after"] == b"60"
    clock.seconds += 45.5
    assert dict(edge.ask().headers)[b"retry-after"] == b"15"


def test_a_rules_own_response_holds_here_too(edge):
    response = {"status_code": 418, "content": "no", "content_type": "text/plain"}
    edge.serve(PHASE, zone=[limit(requests=1, action_parameters={"response": response})])
    assert statuses(edge, 2) == [None, 418]


COUNTED = [  # characteristics; two requests that count together; one that counts apart
    (["ip.src"], {}, {"target": "/x"}, {"client": "192.0.2.8"}),
    (["ip.src"], {"client": "2001:db8::1"}, {"client": "2001:db8::2"}, {"client": "2001:db8:0:1::1"}),
    (["cf.unique_visitor_id"], {}, {"target": "/x"}, {"client": "192.0.2.8"}),
    (["cf.colo.id"], {}, {"client": "192.0.2.8"}, None),
    (["http.host"], {}, {"client": "192.0.2.8"}, {"host": b"b.test"}),
    (["http.request.uri.path"], {"target": "/a?1"}, {"target": "/a?2"}, {"target": "/b"}),
    (
        ['http.request.headers["x-key"]'],
        {"headers": [(b"x-key", b"1")]},
        {"headers": [(b"x-key", b"1")]},
        {"headers": [(b"x-key", b"2")]},
    ),
    (
        ['http.request.headers["x-key"][0]'],
        {"headers": []},
        {"headers": [(b"x-other", b"")]},
        {"headers": [(b"x-key", b"")]},
    ),
    (
        ['http.request.cookies["s"][0]'],
        {"headers": [(b"cookie", b"s=1")]},
        {"headers": [(b"cookie", b"s=1; t=2")]},
        {"headers": [(b"cookie", b"s=2")]},
    ),
    (
        ['http.request.uri.args["k"][0]', "ip.src"],
        {"target": "/?k=1"},
        {"target": "/x?k=1"},
        {"target": "/?k=2"},
    ),
    (["ssl"], {}, {"client": "192.0.2.8"}, {"scheme": b"https"}),
    (
        ["lower(http.user_agent)"],
        {"headers": [(b"user-agent", b"A")]},
        {"headers": [(b"user-agent", b"a")]},
        {"headers": [(b"user-agent", b"b")]},
    ),
]


@pytest.mark.parametrize(("by", "first", "second", "apart"), COUNTED)
def test_requests_count_by_their_characteristics(edge, by, first, second, apart):
    edge.serve(PHASE, zone=[limit(by=by, requests=1)])
    assert edge.ask(**first) is None
    assert edge.ask(**second).status == 429
    assert apart is None or edge.ask(**apart) is None


def test_only_requests_that_match_count_and_are_held_back(edge):
    edge.serve(PHASE, zone=[limit(expression='http.request.uri.path eq "/login"', requests=1)])
    assert statuses(edge, 3, "/") == [None, None, None]
    assert statuses(edge, 2, "/login") == [None, 429]
    assert statuses(edge, 1, "/") == [None]


def test_a_counting_expression_counts_other_requests_than_the_rule_acts_on(edge):
    edge.serve(
        PHASE,
        zone=[
            limit(
                expression='starts_with(http.request.uri.path, "/api")',
                counting_expression='http.request.uri.path eq "/login"',
                requests=2,
            )
        ],
    )
    assert statuses(edge, 5, "/api") == [None] * 5
    assert statuses(edge, 5, "/login") == [None] * 5
    assert statuses(edge, 1, "/api") == [429]


def test_a_counting_expression_may_look_at_the_answer(edge):
    failed_logins = "http.response.code eq 401"
    edge.serve(PHASE, zone=[limit(counting_expression=failed_logins, requests=2, mitigation_timeout=60)])

    def visit(status):
        exchange = ask()
        found = edge.pipeline.request(exchange)
        if found is None:
            edge.pipeline.response(answer(exchange, status))
        return found and found.status

    assert [visit(status) for status in (200, 401, 200, 401, 200, 200)] == [None, None, None, None, 429, 429]


def test_requests_to_origin_count_only_what_the_origin_answered(edge):
    edge.serve(PHASE, zone=[limit(requests=2, requests_to_origin=True)])
    for from_origin in (False, False, True, False, True):
        exchange = edge.send()
        edge.pipeline.response(answer(exchange, 200, from_origin=from_origin))
    assert statuses(edge, 1) == [429]


def test_a_score_in_the_answer_is_what_counts(edge):
    edge.serve(
        PHASE,
        zone=[limit(requests=None, score_per_period=10, score_response_header_name="X-Cost")],
    )
    for cost in (b"6", b"x", b"-5", b"4", b"99999999999"):
        exchange = ask()
        assert edge.pipeline.request(exchange) is None
        edge.pipeline.response(answer(exchange, 200, [(b"x-cost", cost)]))
    assert statuses(edge, 1) == [None]
    exchange = ask()
    edge.pipeline.request(exchange)
    edge.pipeline.response(answer(exchange, 200, [(b"x-cost", b"1")]))
    assert statuses(edge, 1) == [429]


def test_a_log_rule_counts_and_lets_through(edge):
    edge.serve(PHASE, zone=[limit("log", requests=1)])
    assert statuses(edge, 3) == [None, None, None]
    assert edge.seen.actions == ["log", "log"]


def test_a_challenge_is_what_an_action_may_be(edge):
    edge.serve(PHASE, zone=[limit("managed_challenge", requests=1)])
    assert statuses(edge, 2) == [None, 403]
    assert edge.seen.actions == ["managed_challenge"]


def test_a_changed_rule_counts_anew(edge):
    edge.serve(PHASE, zone=[limit(requests=1)])
    assert statuses(edge, 2) == [None, 429]
    edge.serve(PHASE, zone=[limit(requests=1, version="2")])
    assert statuses(edge, 2) == [None, 429]


def test_two_limits_hold_side_by_side(edge):
    edge.serve(PHASE, zone=[limit(requests=5, by=["http.host"]), limit(requests=2)])
    assert statuses(edge, 4) == [None, None, 429, 429]
    assert statuses(edge, 3, client="192.0.2.8") == [None, 429, 429]  # five of the host have come


def test_a_limit_of_the_account_holds_for_the_zone(edge):
    edge.serve(PHASE, account=[rule("skip", "ssl", action_parameters={"ruleset": "current"}),
                               rule("execute", action_parameters={"id": "c" * 32})],
               custom={"c" * 32: [limit(requests=1)]})  # fmt: skip
    assert statuses(edge, 2) == [None, 429]
    assert statuses(edge, 2, scheme=b"https") == [None, None]
