"""The interpreter, construct by construct: rules of one's own, requests, which of them match."""

import pytest

from edgestead.waf.engine import finish
from edgestead.waf.load.patterns import Pattern
from edgestead.waf.transaction import Request
from tests.waf.conftest import ids, inspect, small_engine

# what it shows, rules, request target, numbers of the rules that match
CASES = [
    ("a pattern", 'SecRule ARGS "@rx ^b+$" "id:1,phase:2,pass"', b"/?a=bbb", [1]),
    ("a pattern that is not there", 'SecRule ARGS "@rx ^b+$" "id:1,phase:2,pass"', b"/?a=abb", []),
    ("negation", 'SecRule ARGS "!@streq x" "id:1,phase:2,pass"', b"/?a=y", [1]),
    ("negation needs a value", 'SecRule ARGS:b "!@streq x" "id:1,phase:2,pass"', b"/?a=y", []),
    ("a selector", 'SecRule ARGS:ID "@streq 7" "id:1,phase:2,pass"', b"/?id=7&x=8", [1]),
    ("a selector by pattern", 'SecRule ARGS:/^i.$/ "@streq 7" "id:1,phase:2,pass"', b"/?id=7", [1]),
    ("an exclusion", 'SecRule ARGS|!ARGS:a "@streq 7" "id:1,phase:2,pass"', b"/?a=7", []),
    ("an exclusion by pattern", 'SecRule ARGS|!ARGS:/a/ "@streq 7" "id:1,phase:2,pass"', b"/?xay=7&b=7", [1]),
    ("a count", 'SecRule &ARGS "@eq 2" "id:1,phase:2,pass"', b"/?a=1&b=2", [1]),
    ("a count of none", 'SecRule &ARGS:z "@eq 0" "id:1,phase:2,pass"', b"/?a=1", [1]),
    ("transformations", 'SecRule ARGS "@streq ab" "id:1,phase:2,pass,t:lowercase"', b"/?a=AB", [1]),
    (
        "multiMatch looks at every step",
        'SecRule ARGS "@streq A" "id:1,phase:2,pass,t:lowercase,multiMatch"',
        b"/?a=A",
        [1],
    ),
    ("without it only at the last", 'SecRule ARGS "@streq A" "id:1,phase:2,pass,t:lowercase"', b"/?a=A", []),
    (
        "a chain holds when all of it does",
        'SecRule ARGS:a "@streq 1" "id:1,phase:2,pass,chain"\nSecRule ARGS:b "@streq 2" ""',
        b"/?a=1&b=2",
        [1],
    ),
    (
        "a chain fails with one link",
        'SecRule ARGS:a "@streq 1" "id:1,phase:2,pass,chain"\nSecRule ARGS:b "@streq 2" ""',
        b"/?a=1&b=3",
        [],
    ),
    (
        "a chain that fails has set its variables",
        'SecRule ARGS:a "@streq 1" "id:1,phase:2,pass,nolog,setvar:tx.seen=1,chain"\n'
        'SecRule ARGS:b "@streq 2" ""\nSecRule TX:seen "@eq 1" "id:2,phase:2,pass"',
        b"/?a=1",
        [2],
    ),
    (
        "captures",
        'SecRule ARGS "@rx a(b)(c)?" "id:1,phase:2,pass,nolog,capture,setvar:tx.got=%{tx.1}"\n'
        'SecRule TX:GOT "@streq b" "id:2,phase:2,pass"',
        b"/?x=zab",
        [2],
    ),
    (
        "captures are there for the chain",
        'SecRule ARGS:x "@rx a(b+)" "id:1,phase:2,pass,capture,chain"\n SecRule ARGS:y "@streq %{tx.1}"',
        b"/?x=abb&y=bb",
        [1],
    ),
    (
        "a group without a part keeps what another rule captured",
        'SecRule ARGS:x "@rx a(b)" "id:1,phase:2,pass,nolog,capture"\n'
        'SecRule ARGS:x "@rx a(c)?" "id:2,phase:2,pass,nolog,capture,setvar:tx.got=%{tx.1}"\n'
        'SecRule TX:GOT "@streq b" "id:3,phase:2,pass"',
        b"/?x=ab",
        [3],
    ),
    (
        "a variable set twice by one rule",
        'SecRule ARGS:x "@rx a" "id:1,phase:2,pass,nolog,setvar:tx.a=1,setvar:tx.b=%{tx.a}2"\n'
        'SecRule TX:B "@streq 12" "id:2,phase:2,pass"',
        b"/?x=a",
        [2],
    ),
    (
        "setvar counts each value that matches",
        'SecRule ARGS "@rx x" "id:1,phase:2,pass,nolog,setvar:tx.n=+2"\n'
        'SecRule TX:n "@eq 4" "id:2,phase:2,pass"',
        b"/?a=x&b=x&c=y",
        [2],
    ),
    (
        "setvar removes",
        'SecAction "id:1,phase:1,pass,nolog,setvar:tx.n=1"\n'
        'SecRule ARGS "@rx x" "id:2,phase:2,pass,nolog,setvar:!tx.n"\n'
        'SecRule &TX:n "@eq 0" "id:3,phase:2,pass"',
        b"/?a=x",
        [3],
    ),
    (
        "a macro in an argument",
        'SecRule ARGS:a "@streq %{ARGS.b}" "id:1,phase:2,pass"',
        b"/?a=same&b=same",
        [1],
    ),
    (
        "a macro of a constant",
        'SecAction "id:1,phase:1,pass,nolog,setvar:tx.allowed=GET HEAD"\n'
        'SecRule REQUEST_METHOD "!@within %{tx.allowed}" "id:2,phase:2,pass"',
        b"/",
        [],
    ),
    (
        "skipAfter passes over rules",
        'SecRule ARGS "@streq 1" "id:1,phase:2,pass,nolog,skipAfter:END"\n'
        'SecRule ARGS "@rx ." "id:2,phase:2,pass"\nSecMarker END\nSecRule ARGS "@rx ." "id:3,phase:2,pass"',
        b"/?a=1",
        [3],
    ),
    (
        "skip counts rules",
        'SecRule ARGS "@streq 1" "id:1,phase:2,pass,nolog,skip:1"\n'
        'SecRule ARGS "@rx ." "id:2,phase:2,pass"\nSecRule ARGS "@rx ." "id:3,phase:2,pass"',
        b"/?a=1",
        [3],
    ),
    (
        "a rule is removed by number",
        'SecRule ARGS "@rx ." "id:1,phase:1,pass,nolog,ctl:ruleRemoveById=2-3"\n'
        'SecRule ARGS "@rx ." "id:3,phase:2,pass"\nSecRule ARGS "@rx ." "id:4,phase:2,pass"',
        b"/?a=1",
        [4],
    ),
    (
        "a rule is removed by tag",
        'SecRule ARGS "@rx ." "id:1,phase:1,pass,nolog,ctl:ruleRemoveByTag=sql"\n'
        'SecRule ARGS "@rx ." "id:3,phase:2,pass,tag:\'sql\'"\n'
        'SecRule ARGS "@rx ." "id:4,phase:2,pass,tag:\'sqlx\'"',
        b"/?a=1",
        [4],
    ),
    (
        "a target is removed from a rule",
        'SecRule ARGS "@rx ." "id:1,phase:1,pass,nolog,ctl:ruleRemoveTargetById=3;ARGS:a"\n'
        'SecRule ARGS "@rx 1" "id:3,phase:2,pass"\nSecRule ARGS "@rx 1" "id:4,phase:2,pass"',
        b"/?a=1&b=2",
        [4],
    ),
    (
        "a target is removed by tag, other targets stay",
        'SecRule ARGS "@rx ." "id:1,phase:1,pass,nolog,ctl:ruleRemoveTargetByTag=sql;ARGS:a"\n'
        'SecRule ARGS "@rx 1" "id:3,phase:2,pass,tag:\'sql\'"',
        b"/?a=1&b=1",
        [3],
    ),
    (
        "the engine is switched off",
        'SecRule ARGS "@rx ." "id:1,phase:1,pass,nolog,ctl:ruleEngine=Off"\n'
        'SecRule ARGS "@rx ." "id:3,phase:2,pass"',
        b"/?a=1",
        [],
    ),
    (
        "allow ends the inspection",
        'SecRule ARGS "@rx ." "id:1,phase:1,allow,nolog"\nSecRule ARGS "@rx ." "id:3,phase:2,pass"',
        b"/?a=1",
        [],
    ),
    (
        "MATCHED_VAR is every value that matched",
        'SecRule ARGS "@rx ^x" "id:1,phase:2,pass,chain"\nSecRule MATCHED_VAR "@rx y$" ""',
        b"/?a=xy&b=xz",
        [1],
    ),
    (
        "MATCHED_VARS_NAMES are their names",
        'SecRule ARGS "@rx ^x" "id:1,phase:2,pass,chain"\nSecRule MATCHED_VARS_NAMES "@streq ARGS:b" ""',
        b"/?a=y&b=xz",
        [1],
    ),
    (
        "variables by pattern",
        'SecRule ARGS "@rx x" "id:1,phase:2,pass,nolog,setvar:tx.n_%{MATCHED_VAR_NAME}=+1"\n'
        'SecRule TX:/^n_/ "@gt 1" "id:2,phase:2,pass"',
        b"/?a=x&a=x&b=x",
        [2],
    ),
    (
        "rules without a log are not named",
        'SecRule ARGS "@rx ." "id:1,phase:2,pass,nolog"\nSecRule ARGS "@rx ." "id:2,phase:2,pass"',
        b"/?a=1",
        [2],
    ),
    (
        "an operator without its database never matches",
        'SecRule REMOTE_ADDR "@geoLookup" "id:1,phase:2,pass"',
        b"/",
        [],
    ),
    (
        "phases in their order",
        'SecRule ARGS "@rx ." "id:2,phase:2,pass"\nSecAction "id:1,phase:1,pass"',
        b"/?a=1",
        [1, 2],
    ),
]


@pytest.mark.parametrize(("rules", "target", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_construct(run, rules, target, expected):
    assert run(rules, target) == expected


PARANOID = """
SecRule TX:DETECTION_PARANOIA_LEVEL "@lt 2" "id:10,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@rx x" "id:11,phase:2,pass,severity:CRITICAL,setvar:'tx.anomaly_score_pl2=+5'"
SecRule TX:DETECTION_PARANOIA_LEVEL "@lt 3" "id:12,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@rx x" "id:13,phase:2,pass,severity:WARNING,setvar:'tx.anomaly_score_pl3=+3'"
SecMarker END
SecRule ARGS "@rx x" "id:14,phase:2,pass,severity:NOTICE,setvar:'tx.anomaly_score_pl1=+2'"
"""


@pytest.mark.parametrize(
    ("level", "expected"), [(1, {14}), (2, {11, 14}), (3, {11, 13, 14}), (4, {11, 13, 14})]
)
def test_a_level_takes_in_the_rules_of_its_gates(level, expected):
    engine = small_engine(PARANOID)

    verdict = inspect(engine, Request(method=b"GET", target=b"/?a=x"), engine.level_policy(level, 40))

    assert ids(verdict) == expected


def test_each_rule_counts_once_whatever_it_matched():
    engine = small_engine(PARANOID)

    verdict = inspect(engine, Request(method=b"GET", target=b"/?a=x&b=x&c=x"), engine.level_policy(4, 10))

    assert (verdict.score, verdict.level_scores, verdict.action) == (10, (2, 5, 3, 0), "block")


def test_below_the_threshold_nothing_happens():
    engine = small_engine(PARANOID)

    verdict = inspect(engine, Request(method=b"GET", target=b"/?a=x"), engine.level_policy(4, 11))

    assert (verdict.score, verdict.action) == (10, "")


def test_a_hit_says_where_and_what():
    engine = small_engine(PARANOID)

    (hit,) = inspect(engine, Request(method=b"GET", target=b"/?name=axb"), engine.level_policy(1, 40)).hits

    assert (hit.rule_id, hit.variable, hit.matched, hit.score) == (14, "ARGS:name", b"x", 2)


def test_work_beyond_the_budget_is_refused():
    engine = small_engine(PARANOID)
    request = Request(method=b"GET", target=b"/?a=" + b"y" * 5_000)

    verdict = finish(engine.inspect(request, engine.level_policy(4, 40), work_units_max=1_000).request())

    assert (verdict.refused, verdict.status) == ("work", 403)


def test_what_cannot_work_is_said_at_start():
    engine = small_engine('SecRule REMOTE_ADDR "@geoLookup" "id:1,phase:2,pass"')

    assert any("@geoLookup" in note and "1" in note for note in engine.notes)


def test_an_unusable_pattern_names_its_rule():
    with pytest.raises(ValueError, match="rule 7: unusable regular expression"):
        small_engine('SecRule ARGS "@rx (" "id:7,phase:2,pass"')


def test_words_spelled_in_bytes_are_looked_for_as_bytes(run):
    rule = 'SecRule ARGS "@pm |ff fe| th|20|ree" "id:1,phase:2,pass,t:none,t:urlDecode"'

    assert run(rule, b"/?a=x%FF%FEy") == [1]
    assert run(rule, b"/?a=th%20ree") == [1]
    assert run(rule, b"/?a=th%20re|ff|%FF") == []


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        (rb"(\d+)-(\d+)", {1, 2}),
        (rb"(?:x|y)a(b)", {1}),
        (rb"(a(b))c", {1}),
        (rb"[(](a)\)", {1}),
        (rb"a(b)?(c)+", {2}),
        (rb"a(b){0,2}(c)*", set()),
        (rb"(a)|b", set()),
        (rb"(a)(?!b)", set()),
    ],
)
def test_groups_that_take_part_in_every_match(text, groups):
    assert Pattern(text).sure_groups == groups
