"""From what rules found to a verdict: policies, scores, actions of rules, answers, limits."""

import pytest

from edgestead.crs.overrides import Effective
from edgestead.waf import engine as engines
from edgestead.waf.engine import finish
from edgestead.waf.limits import Meter
from edgestead.waf.transaction import Policy, Request, Response
from tests.waf.conftest import inspect, small_engine

# a scoring rule of each of the first two paranoia levels on arguments, and rules on answers
RULES = r"""
SecRule ARGS "@contains one" "id:942101,phase:2,block,t:none,msg:'one',severity:CRITICAL,\
    tag:'paranoia-level/1',setvar:'tx.anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule ARGS "@contains first" "id:942103,phase:2,block,t:none,msg:'first',severity:CRITICAL,\
    tag:'paranoia-level/1',setvar:'tx.anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule ARGS "@contains two" "id:942102,phase:2,block,t:none,msg:'two',severity:WARNING,\
    tag:'paranoia-level/2',setvar:'tx.anomaly_score_pl2=+%{tx.warning_anomaly_score}'"
SecRule REQUEST_HEADERS:X "@streq x" "id:920101,phase:1,block,t:none,msg:'x',severity:ERROR,\
    tag:'paranoia-level/1',setvar:'tx.anomaly_score_pl1=+%{tx.error_anomaly_score}'"
SecRule RESPONSE_HEADERS:X-Debug "@contains trace" "id:950001,phase:3,block,t:none,msg:'Debugging',\
    severity:ERROR,tag:'a',setvar:'tx.outbound_anomaly_score_pl1=+%{tx.error_anomaly_score}'"
SecRule RESPONSE_BODY "@contains ORA-0" "id:951001,phase:4,block,t:none,msg:'SQL errors',severity:CRITICAL,\
    setvar:'tx.outbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule RESPONSE_STATUS "@streq 500" "id:980001,phase:5,pass,t:none,log,msg:'status'"
"""
SCORES = {942101: 5, 942103: 5, 942102: 3}


@pytest.fixture(scope="module")
def engine():
    return small_engine(RULES)


def effective(increments=SCORES, actions=None, *, threshold=8, action="block"):
    return Effective(
        increments=increments, actions=actions or {}, score_threshold=threshold, anomaly_action=action
    )


def asked(target=b"/", **about):
    return Request(method=b"GET", target=target, **about)


def test_a_zones_choice_is_a_policy(engine):
    policy = engine.policy(effective({942102: 3}, {942101: "log", 920101: "block"}))
    bits = {rule.rule.id: bit for bit, rule in engine.rule_set.bits.items()}

    assert policy.enabled == 1 << bits[942102] | 1 << bits[942101] | 1 << bits[920101]
    assert policy.actions == {bits[942101]: "log", bits[920101]: "block"}
    assert (policy.level, policy.threshold, policy.action) == (2, 8, "block")


def test_a_policy_of_nothing_is_of_the_first_level(engine):
    policy = engine.policy(effective({}, action=None))

    assert policy == Policy(enabled=0, level=1, threshold=None, action="")


# target, actions of rules, threshold; the action and the score that come of it
VERDICTS = {
    "nothing": (b"/?a=zero", {}, 8, "", 0),
    "below": (b"/?a=one", {}, 6, "", 5),
    "just reached": (b"/?a=one", {}, 5, "block", 5),
    "both": (b"/?a=one+two", {}, 8, "block", 8),
    "an action of its own": (b"/?a=one", {942101: "challenge"}, 9, "challenge", 0),
    "its own before the score's": (b"/?a=one+first", {942101: "challenge"}, 5, "challenge", 5),
    "a log lets the score decide": (b"/?a=one+first", {942101: "log"}, 5, "block", 5),
    "a log alone": (b"/?a=one", {942101: "log"}, 5, "log", 0),
    "a log hides nothing": (b"/?a=one+first", {942101: "log", 942103: "challenge"}, 50, "challenge", 0),
    "the first that stops": (b"/?a=one+first", {942101: "block", 942103: "challenge"}, 50, "block", 0),
    "a log behind it": (b"/?a=one+first", {942101: "block", 942103: "log"}, 50, "block", 0),
}


@pytest.mark.parametrize(
    ("target", "actions", "threshold", "action", "score"), VERDICTS.values(), ids=VERDICTS
)
def test_a_verdict_is_the_policys(engine, target, actions, threshold, action, score):
    left = {rule: points for rule, points in SCORES.items() if rule not in actions}
    policy = engine.policy(effective(left, actions, threshold=threshold))

    verdict = inspect(engine, asked(target), policy)

    assert (verdict.action, verdict.score, verdict.threshold) == (action, score, threshold)
    assert verdict.status == 403
    assert verdict.refused == ""


def test_each_level_has_its_own_score(engine):
    verdict = inspect(engine, asked(b"/?a=one+two+first", headers=((b"X", b"x"),)))

    assert verdict.level_scores == (14, 3, 0, 0)
    assert {hit.rule_id: (hit.score, hit.paranoia_level) for hit in verdict.hits} == {
        920101: (4, 1),
        942101: (5, 1),
        942103: (5, 1),
        942102: (3, 2),
    }


def test_no_more_hits_are_told_than_there_is_room_for_but_all_count(engine, monkeypatch):
    monkeypatch.setattr(engines, "HITS_MAX", 1)

    verdict = inspect(engine, asked(b"/?a=one+two"))

    assert len(verdict.hits) == 1
    assert verdict.score == 8


def test_plans_are_kept_for_the_latest_choices_only(monkeypatch):
    engine = small_engine(RULES)
    monkeypatch.setattr(engines, "PLANS_MAX", 2)
    policies = [engine.level_policy(level, None) for level in (1, 2)]
    policies.append(Policy(enabled=0, level=1, threshold=None, action=""))
    plans = [engine.plan(policy) for policy in policies]

    assert engine.plan(policies[2]) is plans[2]
    assert engine.plan(policies[1]) is plans[1]
    assert engine.plan(policies[0]) is not plans[0]


def test_a_policy_of_a_level_has_the_rules_up_to_it(engine):
    first, second = engine.level_policy(1, 7), engine.level_policy(2, 7)

    assert {hit.rule_id for hit in inspect(engine, asked(b"/?a=one+two"), first).hits} == {942101}
    assert {hit.rule_id for hit in inspect(engine, asked(b"/?a=one+two"), second).hits} == {942101, 942102}
    assert (first.level, first.threshold, first.action) == (1, 7, "block")


LEAK = b"ORA-01756"
TRACE = ((b"X-Debug", b"trace"),)
# an answer, the score of what rules found in it, the numbers of those rules
ANSWERS = {
    "clean": (Response(status=200, body=b"fine"), 0, []),
    "no body": (Response(status=200), 0, []),
    "a header": (Response(status=200, headers=TRACE), 4, [950001]),
    "a body": (Response(status=200, body=LEAK), 5, [951001]),
    "both": (Response(status=200, headers=TRACE, body=LEAK), 9, [950001, 951001]),
    "what is only logged": (Response(status=500), 0, [980001]),
}


def answered(engine, response, policy, target=b"/?a=one", **about):
    inspection = engine.inspect(asked(target, **about), policy)
    finish(inspection.request())
    return finish(inspection.response(response))


@pytest.mark.parametrize(("response", "score", "found"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_has_its_own_score_and_its_own_hits(engine, response, score, found):
    verdict = answered(engine, response, engine.level_policy(4, 40))

    assert (verdict.score, verdict.threshold, verdict.action) == (score, 4, "block" if score >= 4 else "")
    assert [hit.rule_id for hit in verdict.hits] == found
    assert (verdict.refused, verdict.status) == ("", 403)
    assert verdict.work_units > 0


def test_a_hit_of_an_answer_says_where_and_what(engine):
    (hit,) = answered(engine, ANSWERS["a header"][0], engine.level_policy(4, 40)).hits

    assert (hit.rule_id, hit.phase, hit.score, hit.variable) == (950001, 3, 4, "RESPONSE_HEADERS:X-Debug")
    assert (hit.matched, hit.message, hit.tags, hit.action) == (b"trace", "Debugging", ("a",), "")


def test_without_a_threshold_no_answer_is_too_bad(engine):
    verdict = answered(engine, ANSWERS["both"][0], engine.level_policy(4, None))

    assert (verdict.action, verdict.score, verdict.threshold) == ("", 9, None)


def test_the_threshold_of_answers_is_the_rule_sets_own():
    engine = small_engine(RULES, {b"outbound_anomaly_score_threshold": b"5"})

    policy = engine.level_policy(4, 40)
    assert answered(engine, ANSWERS["a header"][0], policy).action == ""
    assert answered(engine, ANSWERS["a body"][0], policy).action == "block"


def test_an_answer_has_a_budget_of_its_own(engine, monkeypatch):
    monkeypatch.setattr(engines, "RESPONSE_WORK_UNITS_MAX", 0)

    verdict = answered(engine, ANSWERS["both"][0], engine.level_policy(4, 40))

    assert verdict.refused
    assert (verdict.action, verdict.score) == ("", 0)


def test_a_request_that_is_too_much_work_says_so(engine):
    verdict = finish(engine.inspect(asked(b"/?a=one"), engine.level_policy(4, 5), work_units_max=1).request())

    assert verdict.refused
    assert verdict.hits == ()


def test_an_answer_is_not_looked_at_before_its_request(engine):
    inspection = engine.inspect(asked(), engine.level_policy(4, 40))

    with pytest.raises(AssertionError, match="the request comes first"):
        finish(inspection.response(Response(status=200)))


def test_a_database_is_scanned_and_without_one_every_rule_is_run(engine, monkeypatch):
    def load(rule_set, stored):
        return (rule_set, stored)

    monkeypatch.setattr(engines.scan, "load", load)

    assert engines.Engine(engine.rule_set, stored=b"database").scanner == (engine.rule_set, b"database")
    assert isinstance(engine.scanner, engines.NoScanner)


HELPERS = """
SecRule TX:DETECTION_PARANOIA_LEVEL "@lt 2" "id:10,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@rx x" "id:11,phase:2,pass"
SecMarker END
"""


@pytest.mark.parametrize(("level", "found"), [(1, []), (2, [11]), (3, [11])])
def test_rules_without_a_score_run_from_their_level_on(level, found):
    engine = small_engine(HELPERS)

    verdict = inspect(engine, asked(b"/?a=x"), engine.level_policy(level, None))

    assert [hit.rule_id for hit in verdict.hits] == found


PART = b'--X\r\nContent-Disposition: form-data; name="a"\r\n\r\none\r\n--X--\r\n'


def multipart():
    headers = ((b"Content-Type", b"multipart/form-data; boundary=X"),)
    return asked(body=PART, rest_follows=True, headers=headers)


def late(engine, times):
    """Verdicts of a multipart request and of a part that comes late, so many times."""
    inspection = engine.inspect(multipart(), engine.level_policy(4, 5))
    return [finish(inspection.request()), *(finish(inspection.late(PART)) for _ in range(times))]


def test_a_rule_counts_once_for_all_parts(engine):
    assert [(one.score, one.refused) for one in late(engine, 2)] == [(5, "")] * 3


def test_all_late_parts_together_have_one_budget(engine, monkeypatch):
    once = late(engine, 1)[-1].work_units
    monkeypatch.setattr(engines, "LATE_WORK_UNITS_MAX", once + once // 2)

    _, first, second = late(engine, 2)

    assert not first.refused
    assert second.refused


class Yielding(Meter):
    """Gives way wherever it may."""

    def is_due(self):
        super().is_due()
        return True


@pytest.fixture
def looked_at(engine, monkeypatch):
    """Verdicts of a late part and of an answer that go on in turn, and of one more part."""
    monkeypatch.setattr(engines, "Meter", Yielding)

    def look(*turns):
        inspection = engine.inspect(multipart(), engine.level_policy(4, 40))
        finish(inspection.request())
        walks = {
            "part": inspection.late(PART.replace(b"one", b"first")),
            "answer": inspection.response(ANSWERS["both"][0]),
        }
        verdicts, left = {}, [walks[which] for which in turns]
        while left:
            walk = left.pop(0)
            try:
                next(walk)
                left.append(walk)
            except StopIteration as stop:
                verdicts[walk] = stop.value
        return verdicts[walks["part"]], verdicts[walks["answer"]], finish(inspection.late(PART))

    return look


TURNS = [("part", "answer"), ("answer", "part")]


@pytest.mark.parametrize("turns", TURNS)
def test_an_answer_that_comes_while_a_late_part_is_looked_at_has_its_own_hits(looked_at, turns):
    verdicts = looked_at(*turns)

    assert [[hit.rule_id for hit in one.hits] for one in verdicts] == [
        [942101, 942103],
        [950001, 951001],
        [942101, 942103],
    ]


@pytest.mark.parametrize("turns", TURNS)
def test_nor_has_it_the_budget_of_that_part(looked_at, monkeypatch, turns):
    monkeypatch.setattr(engines, "RESPONSE_WORK_UNITS_MAX", 0)

    assert [bool(one.refused) for one in looked_at(*turns)] == [False, True, False]
