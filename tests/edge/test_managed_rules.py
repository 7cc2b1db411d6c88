"""The managed ruleset: scores, overrides, exceptions, actions, refusals; with rules of the test's own."""

import re
from pathlib import Path
from typing import Any

import pytest

from edgestead import waf
from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID, build_catalogue, parse
from edgestead.crs.catalogue import entry_id
from edgestead.edge.exchanges.exchange import Response
from edgestead.edge.exchanges.later import Later, finish
from edgestead.edge.managed import rules as managed_rules
from edgestead.edge.tools.engines import ManagedRules
from edgestead.edge.tools.phase import local_tools
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.budgets.table import EDGE_INSPECTION_WORK
from edgestead.usecases.ruleset.managed import ManagedRuleset
from edgestead.usecases.ruleset.waf_overrides import DISABLE, OverrideSent, as_rule
from edgestead.usecases.ruleset.waf_packages import group_id
from edgestead.waf.bodies import multipart
from edgestead.waf.engine import Engine
from edgestead.waf.limits import TOO_MUCH_WORK
from edgestead.waf.load.compile import RuleSet
from tests.edge.made import BROWSER, Edge, Seen, ask, rule

PHASE = "http_request_firewall_managed"
RULES = r"""
SecAction "id:900990,phase:1,pass,nolog,setvar:tx.blocking_paranoia_level=4"
SecRule ARGS "@contains union" "id:942001,phase:2,block,t:none,t:lowercase,msg:'SQL words',capture,\
    severity:CRITICAL,tag:'attack-sqli',tag:'paranoia-level/1',\
    setvar:'tx.inbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule ARGS "@contains quote" "id:942002,phase:2,block,t:none,msg:'Quotes',\
    severity:WARNING,tag:'attack-sqli',tag:'paranoia-level/2',\
    setvar:'tx.inbound_anomaly_score_pl2=+%{tx.warning_anomaly_score}'"
SecRule REQUEST_HEADERS:User-Agent "@contains evil" "id:913001,phase:1,block,t:none,msg:'Scanner',\
    severity:CRITICAL,tag:'attack-reputation-scanner',tag:'paranoia-level/1',\
    setvar:'tx.inbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
"""
SQL, QUOTES, SCANNER = entry_id(942001), entry_id(942002), entry_id(913001)
ATTACK = "/?id=1+UNION+select"


@pytest.fixture(scope="module")
def rules() -> ManagedRules:
    program = parse({"rules/r.conf": RULES}, ["rules/r.conf"])
    catalogue = build_catalogue(program)
    managed = ManagedRules()
    managed.ready(Engine(RuleSet(program, catalogue)), catalogue)
    return managed


@pytest.fixture
def guarded(rules: ManagedRules) -> Edge:
    seen = Seen()
    return Edge(local_tools(seen)._replace(managed=rules), seen)


def execute(threshold: int | None = 5, expression: str = "true", id_: str = RULESET_ID, **more: Any) -> Any:
    """A rule that executes the managed ruleset; `more` are its overrides beside the threshold."""
    overrides = dict(more)
    if threshold is not None:
        own = {"id": ANOMALY_RULE_ID, "score_threshold": threshold}
        overrides["rules"] = [own, *overrides.get("rules", ())]
    return rule("execute", expression, id="x", action_parameters={"id": id_, "overrides": overrides})


def skip(expression: str = "true", **parameters: Any) -> Any:
    return rule("skip", expression, id="s", action_parameters=parameters)


def asked(edge: Edge, target: str = ATTACK, **about: Any) -> Response | None:
    return finish(edge.ask(target, **about))


def served(edge: Edge, *zone: Any, account: Any = None) -> Edge:
    return edge.serve(PHASE, zone=list(zone), account=account)


def test_an_attack_is_blocked_and_nothing_else(guarded: Edge) -> None:
    served(guarded, execute())

    assert asked(guarded).status == 403
    assert asked(guarded, "/?id=1") is None
    assert guarded.seen.actions == ["block"]


def test_one_event_says_which_rules_made_the_score_and_where(guarded: Edge) -> None:
    asked(served(guarded, execute()), ATTACK + "&b=quote", headers=[(b"user-agent", b"evil")])

    (decision,) = guarded.seen.decisions
    assert (decision.phase, decision.action, decision.status) == (PHASE, "block", 403)
    assert (decision.ruleset_id, decision.rule_id) == (RULESET_ID, ANOMALY_RULE_ID)
    assert (decision.score, decision.threshold) == (13, 5)
    assert [(one.rule_id, one.score, one.variable.lower()) for one in decision.contributions] == [
        (SCANNER, 5, "request_headers:user-agent"),
        (SQL, 5, "args:id"),
        (QUOTES, 3, "args:b"),
    ]
    assert decision.contributions[1].description == "942001: SQL words"
    assert "union" in decision.contributions[1].matched


# overrides, whether ATTACK with a quote (5 + 3 at levels 1 and 2) is answered, and by which status
OVERRIDES = [
    ({"threshold": 8}, 403),
    ({"threshold": 9}, None),
    ({"threshold": None}, None),  # 40
    ({"threshold": 8, "categories": [{"category": "paranoia-level-2", "enabled": False}]}, None),
    ({"threshold": 5, "categories": [{"category": "paranoia-level-2", "enabled": False}]}, 403),
    ({"threshold": 1, "enabled": False}, None),
    ({"threshold": 5, "rules": [{"id": SQL, "enabled": False}]}, None),
    ({"threshold": 3, "categories": [{"category": "attack-sqli", "enabled": False}]}, None),
    (
        {
            "threshold": 3,
            "categories": [{"category": "attack-sqli", "enabled": False}],
            "rules": [{"id": QUOTES, "enabled": True}],
        },
        403,
    ),
    ({"threshold": 60, "rules": [{"id": QUOTES, "action": "block"}]}, 403),
    ({"threshold": 5, "action": "log"}, None),
    # a rule that only logs is no way around the score, nor around another rule
    ({"threshold": 5, "rules": [{"id": QUOTES, "action": "log"}]}, 403),
    ({"threshold": 9, "rules": [{"id": QUOTES, "action": "log"}]}, None),
    (
        {"threshold": 60, "rules": [{"id": SQL, "action": "log"}, {"id": QUOTES, "action": "block"}]},
        403,
    ),
    ({"threshold": 5, "action": "log", "rules": [{"id": QUOTES, "action": "block"}]}, 403),
    ({"threshold": 5, "rules": [{"id": ANOMALY_RULE_ID, "action": "managed_challenge"}]}, 403),
    ({"threshold": 5, "rules": [{"id": ANOMALY_RULE_ID, "enabled": False}]}, None),
]


@pytest.mark.parametrize(("overrides", "status"), OVERRIDES)
def test_overrides_decide(guarded: Edge, overrides: dict[str, Any], status: int | None) -> None:
    answer = asked(served(guarded, execute(**overrides)), ATTACK + "&b=quote")

    assert status == (None if answer is None else answer.status)


@pytest.mark.parametrize(
    ("action", "status", "marks"),
    [
        ("block", 403, b"looks like an attack"),
        ("challenge", 403, b"<form"),
        ("js_challenge", 403, b"<script"),
        ("managed_challenge", 403, b"<script"),
        ("log", None, b""),
    ],
)
def test_each_action_answers_in_its_way(guarded: Edge, action: str, status: int | None, marks: bytes) -> None:
    answer = asked(served(guarded, execute(action=action)), headers=BROWSER)

    assert guarded.seen.actions == [action]
    assert status == (None if answer is None else answer.status)
    assert answer is None or marks in answer.body


def test_a_rule_with_an_action_of_its_own_is_the_events_rule(guarded: Edge) -> None:
    asked(served(guarded, execute(60, rules=[{"id": QUOTES, "action": "block"}])), "/?a=quote")

    (decision,) = guarded.seen.decisions
    assert (decision.rule_id, decision.description) == (QUOTES, "942002: Quotes")
    assert [one.score for one in decision.contributions] == [0]


# the skip rule's parameters, and whether the attack is still blocked
SKIPS = [
    ({"ruleset": "current"}, False),
    ({"rulesets": [RULESET_ID]}, False),
    ({"rules": {RULESET_ID: [SQL]}}, False),
    ({"rules": {RULESET_ID: [ANOMALY_RULE_ID]}}, False),
    ({"rules": {RULESET_ID: [QUOTES]}}, True),
    ({"rulesets": ["0" * 32]}, True),
    ({"phases": [PHASE]}, False),
]


@pytest.mark.parametrize(("parameters", "blocked"), SKIPS)
def test_exceptions_leave_out_what_they_name(
    guarded: Edge, parameters: dict[str, Any], blocked: bool
) -> None:
    served(guarded, skip('http.request.uri.path eq "/editor"', **parameters), execute())

    assert (asked(guarded, "/editor" + ATTACK[1:]) is not None) is blocked
    assert asked(guarded, ATTACK).status == 403


def test_an_older_override_by_page_lets_its_page_pass_and_no_other(guarded: Edge) -> None:
    """What the view of WAF packages writes, as the edge runs it."""
    managed = ManagedRuleset(build_catalogue(parse({"rules/r.conf": RULES}, ["rules/r.conf"])), 0)
    sent = OverrideSent(urls=["www.example.com/editor*"], groups={group_id("attack-sqli"): DISABLE})
    served(guarded, as_rule(sent, managed, "1") | {"id": "s", "version": "1"}, execute())

    assert asked(guarded, "/editor/new" + ATTACK[1:]) is None
    assert asked(guarded, ATTACK).status == 403


def test_an_exception_beats_an_override_that_enables(guarded: Edge) -> None:
    served(
        guarded,
        skip(rules={RULESET_ID: [SQL]}),
        execute(rules=[{"id": SQL, "enabled": True, "action": "block"}]),
    )

    assert asked(guarded) is None


def test_exceptions_hold_where_they_were_made(guarded: Edge) -> None:
    served(guarded, execute(), account=[skip(rulesets=[RULESET_ID]), execute()])
    assert asked(guarded).status == 403

    served(guarded, skip(rulesets=[RULESET_ID]), execute(), account=[execute()])
    assert asked(guarded).status == 403


def test_the_account_inspects_before_the_zone_and_each_with_its_own_overrides(guarded: Edge) -> None:
    served(guarded, execute(5), account=[execute(5, action="log")])

    assert asked(guarded).status == 403
    assert guarded.seen.actions == ["log", "block"]


def test_a_second_configuration_is_scored_beside_the_one_that_acts(guarded: Edge) -> None:
    shadow = execute(3, action="log") | {"description": "shadow", "id": "y"}
    served(guarded, shadow, execute(60))

    assert asked(guarded, "/?a=quote") is None
    (decision,) = guarded.seen.decisions
    assert (decision.action, decision.threshold, decision.score) == ("log", 3, 3)
    assert decision.description.endswith("(shadow)")


def test_a_custom_ruleset_executes_it_too(guarded: Edge) -> None:
    custom = {"c" * 32: [execute()]}
    deploy = rule("execute", id="d", action_parameters={"id": "c" * 32})
    guarded.serve(PHASE, account=[deploy], custom=custom)

    assert asked(guarded).status == 403


def test_a_rule_that_does_not_log_says_nothing(guarded: Edge) -> None:
    served(guarded, execute() | {"logging": {"enabled": False}})

    assert asked(guarded).status == 403
    assert guarded.seen.decisions == []


# what is sent, the answer's status, the event's reason
BODIES = [
    (b"application/json", b'{"a": "1 union select"}', 403, ""),
    (b"application/json", b'{"a": ', 400, "json-syntax"),
    (b"application/json", b"[" * 99 + b"]" * 99, 413, "json-depth"),
    (b"application/x-www-form-urlencoded", b"a=" + b"b" * 131_073, 413, "body-size"),
    (b"text/xml", b"<a>", 400, "xml-syntax"),
    (b"application/octet-stream", b"union" * 50_000, None, None),
]


@pytest.mark.parametrize(("kind", "body", "status", "reason"), BODIES)
def test_bodies_are_inspected_whole_or_refused(
    guarded: Edge, kind: bytes, body: bytes, status: int | None, reason: str | None
) -> None:
    served(guarded, execute())
    answer = asked(guarded, "/", method=b"POST", headers=[(b"content-type", kind)], body=body)

    assert status == (None if answer is None else answer.status)
    assert [one.reason for one in guarded.seen.decisions] == ([] if reason is None else [reason])
    assert all(bool(one.reason) == ("cannot be" in one.description) for one in guarded.seen.decisions)


def test_what_only_logs_refuses_no_body_but_says_so(guarded: Edge) -> None:
    served(guarded, execute(action="log"))
    kind = [(b"content-type", b"application/json")]

    assert asked(guarded, "/", method=b"POST", headers=kind, body=b"{") is None
    assert [(one.action, one.reason) for one in guarded.seen.decisions] == [("log", "json-syntax")]


def test_where_any_rule_blocks_a_body_that_cannot_be_inspected_is_refused(guarded: Edge) -> None:
    served(guarded, execute(action="log", rules=[{"id": QUOTES, "action": "block"}]))
    kind = [(b"content-type", b"application/json")]

    assert asked(guarded, "/", method=b"POST", headers=kind, body=b"{").status == 400
    assert guarded.seen.actions == ["refuse"]


def test_the_body_is_waited_for_where_it_is_inspected_and_only_there(guarded: Edge) -> None:
    assert served(guarded, execute()).pipeline.body_octets > 131_072
    assert served(guarded, skip(phase="current")).pipeline.body_octets == 0


@pytest.mark.parametrize("ruleset_id", [RULESET_ID, "e" * 32])
def test_nothing_passes_before_the_rules_are_ready(ruleset_id: str) -> None:
    seen, managed = Seen(), ManagedRules()
    edge = Edge(local_tools(seen)._replace(managed=managed), seen)
    served(edge, execute(id_=ruleset_id))

    for begin in (lambda: None, managed.begin):
        begin()
        answer = asked(edge, "/")
        assert (answer.status, dict(answer.headers)[b"retry-after"]) == (503, b"5")
    assert seen.actions == ["refuse", "refuse"]
    assert seen.decisions[-1].reason


def test_a_ruleset_that_is_not_here_is_never_left_out(guarded: Edge) -> None:
    served(guarded, execute(id_="e" * 32))

    assert asked(guarded, "/").status == 503
    assert "no such managed ruleset" in guarded.seen.decisions[0].reason


@pytest.mark.parametrize(
    "broken",
    [
        execute(expression="another.release eq 1"),
        execute(categories=[{"category": 7}]),
        rule("execute", id="x", action_parameters={}),
    ],
)
def test_a_rule_of_another_release_lets_nothing_pass_uninspected(guarded: Edge, broken: Any) -> None:
    served(guarded, broken)

    assert asked(guarded, "/").status == 503
    assert "does not understand" in guarded.seen.decisions[0].reason

    served(guarded, rule("log", "another.release eq 1"), execute())
    assert (asked(guarded, "/"), asked(guarded).status) == (None, 403)


def test_rules_that_become_ready_are_used_at_once(rules: ManagedRules) -> None:
    seen, managed = Seen(), ManagedRules()
    edge = served(Edge(local_tools(seen)._replace(managed=managed), seen), execute())
    assert asked(edge).status == 503

    managed.ready(rules.engine, rules.catalogue)

    assert asked(edge).status == 403
    assert asked(edge, "/") is None


def test_a_long_inspection_gives_way_and_then_goes_on_with_the_rules_behind_it(guarded: Edge) -> None:
    after = rule("execute", id="d", action_parameters={"id": "c" * 32})
    custom = {"c" * 32: [rule("block", 'http.request.uri.path eq "/late"')]}
    guarded.serve(PHASE, zone=[execute(), after], custom=custom)
    body = b"&".join(b"a%d=%b" % (number, b"%41b'\\x<!--" * 20) for number in range(400))
    kind = [(b"content-type", b"application/x-www-form-urlencoded")]

    outcome = guarded.pipeline.request(ask("/late", method=b"POST", headers=kind, body=body))

    assert isinstance(outcome, Later)
    assert finish(outcome).status == 403
    assert guarded.seen.decisions[-1].ruleset_id == "c" * 32


def test_what_follows_the_start_of_an_upload_gives_way_too(guarded: Edge) -> None:
    served(guarded, execute())
    head = b"--XyZ\r\nContent-Disposition: form-data; "
    start = head + b'name="f"; filename="f"\r\n\r\n' + b"\0" * 131_073
    kind = [(b"content-type", b"multipart/form-data; boundary=XyZ")]
    exchange = ask(method=b"POST", headers=kind, body=start, body_complete=False)
    assert finish(guarded.pipeline.request(exchange)) is None
    assert exchange.late is not None

    fields = b"".join(b'%bname="a%d"\r\n\r\n%b\r\n' % (head, n, b"%41b'\\x<!--" * 90) for n in range(200))
    outcome = exchange.late.feed(b"\r\n" + fields + b"--XyZ")

    assert isinstance(outcome, Later)
    assert finish(outcome).endswith(fields)


def test_an_expression_decides_whether_it_is_executed(guarded: Edge) -> None:
    served(guarded, execute(expression='starts_with(http.request.uri.path, "/api")'))

    assert asked(guarded, ATTACK) is None
    assert asked(guarded, "/api" + ATTACK[1:]).status == 403


def test_an_event_names_the_limit_that_was_met(guarded: Edge) -> None:
    kind = [(b"content-type", b"application/x-www-form-urlencoded")]
    asked(served(guarded, execute()), "/", method=b"POST", headers=kind, body=b"a&" * 1_001)

    (decision,) = guarded.seen.decisions
    assert decision.reason == "arguments"
    assert decision.description == "The request cannot be inspected: it has more than 1,000 arguments"


def test_too_much_work_is_counted_as_a_budget_that_is_spent(
    rules: ManagedRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, ledger = Seen(), Ledger(tell=lambda *_: None)
    edge = served(Edge(local_tools(seen)._replace(managed=rules, ledger=ledger), seen), execute(60))
    assert asked(edge, "/?a=b") is None
    assert asked(edge, "/?" + "a&" * 1_001).status == 414  # type: ignore[union-attr]
    assert ledger.refused(EDGE_INSPECTION_WORK) == 0
    monkeypatch.setattr(Engine.inspect, "__kwdefaults__", {"work_units_max": 1})

    refused = asked(edge, "/?a=b")

    assert refused is not None
    assert refused.status == EDGE_INSPECTION_WORK.status
    assert ledger.refused(EDGE_INSPECTION_WORK) == 1


def test_every_reason_of_a_refusal_has_words() -> None:
    sources = "".join(path.read_text() for path in Path(waf.__file__).parent.rglob("*.py"))
    reasons = {*re.findall(r'Refused\("([a-z-]+)", \d+\)', sources), multipart.MALFORMED, TOO_MUCH_WORK}
    assert reasons == managed_rules._LIMITS.keys()
