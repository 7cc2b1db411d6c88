"""What-if tables and proposals."""

import pytest

from edgestead.cli.waf.tuning import PATHS_LISTED_MAX, Judge, Suggester, Table
from edgestead.crs import build_catalogue, parse
from edgestead.waf.engine import Engine, finish
from edgestead.waf.load.compile import RuleSet
from edgestead.waf.transaction import Request

RULE = (
    'SecRule ARGS "@contains {word}" "id:{id},phase:2,block,t:none,msg:\'{word}\',severity:{severity},'
    "tag:'paranoia-level/{level}',setvar:'tx.inbound_anomaly_score_pl{level}=+1'\"\n"
)
RULES = "".join(
    RULE.format(word=word, id=id_, severity=severity, level=level)
    for word, id_, severity, level in (
        ("one", 1001, "CRITICAL", 1),
        ("two", 1002, "WARNING", 2),
        ("three", 1003, "CRITICAL", 3),
        ("four", 1004, "NOTICE", 4),
    )
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    program = parse({"rules/r.conf": RULES}, ["rules/r.conf"])
    return Engine(RuleSet(program, build_catalogue(program)))


def asked(target: bytes, **about: bytes) -> Request:
    return Request(method=b"GET", target=target, headers=((b"host", b"x"),), **about)  # type: ignore[arg-type]


TARGETS = [
    (b"/?a=one", (5, 5, 5, 5)),
    (b"/?a=one+two", (5, 8, 8, 8)),
    (b"/?a=one+two+three+four", (5, 8, 13, 15)),
    (b"/?a=four&b=four", (0, 0, 0, 2)),
    (b"/?a=nothing", (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("target", "scores"), TARGETS)
def test_one_inspection_tells_the_score_of_every_level(engine, target, scores):
    assert scores == Judge(engine).outcome(asked(target)).scores
    for level, score in enumerate(scores, 1):  # the same as inspecting once for each
        alone = finish(engine.inspect(asked(target), engine.level_policy(level, 5)).request())
        assert (level, alone.score) == (level, score)


PART = b"--B\r\nContent-Disposition: form-data; name=%b\r\n\r\n%b\r\n"
FILE = PART % (b"f; filename=x", b"\0" * 2_000_000)
UPLOADS = [
    (FILE + PART % (b"a", b"one") + b"--B--", (5, 5, 5, 5), ""),
    (PART % (b"a", b"two") + FILE + PART % (b"a", b"one") + b"--B--", (5, 8, 8, 8), ""),
    (FILE + b"--B--", (0, 0, 0, 0), ""),
    (FILE + PART % (b"a", b"x" * 200_000) + b"--B--", (0, 0, 0, 0), "body-size"),
    (FILE, (0, 0, 0, 0), "multipart-syntax"),
]


@pytest.mark.parametrize(("body", "scores", "refused"), UPLOADS, ids=range(len(UPLOADS)))
def test_a_large_upload_is_told_as_the_edge_inspects_it(engine, body, scores, refused):
    kind = (b"content-type", b"multipart/form-data; boundary=B")

    outcome = Judge(engine).outcome(Request(method=b"POST", target=b"/", headers=(kind,), body=body))

    assert (outcome.scores, outcome.refused) == (scores, refused)


def test_a_rule_that_is_off_adds_nothing(engine):
    assert Judge(engine, without=frozenset({1001})).outcome(asked(b"/?a=one+two")).scores == (0, 3, 3, 3)


def test_the_table_counts_requests_at_each_level_and_threshold(engine):
    judge, table = Judge(engine), Table([8, 5])
    for target, _ in TARGETS:
        table.add(judge.outcome(asked(target)))
    table.add(judge.outcome(asked(b"/?" + b"a&" * 1_001)))

    assert (table.requests, table.refused, table.thresholds) == (6, 1, (5, 8))
    assert [table.stopped[level, 5] for level in (1, 2, 3, 4)] == [3, 3, 3, 3]
    assert [table.stopped[level, 8] for level in (1, 2, 3, 4)] == [0, 2, 2, 2]
    assert table.rules[1001] == 3
    assert table.refusals == {"arguments": 1}


def suggested(engine, targets, level=4, threshold=5):
    judge, suggester = Judge(engine), Suggester(level, threshold)
    for number, target in enumerate(targets):
        path = target.partition(b"?")[0].decode()
        suggester.add(f"log:{number}", asked(target), path, judge.outcome(asked(target)))
    return suggester


def test_requests_that_pass_need_nothing(engine):
    suggester = suggested(engine, [b"/?a=two", b"/"])

    assert (suggester.proposals(), len(suggester.stopped), suggester.requests) == ([], 0, 2)


def test_a_rule_is_left_out_on_the_paths_where_it_is_in_the_way(engine):
    suggester = suggested(engine, [b"/b?a=one", b"/a?a=one", b"/c?a=two", b"/d"])
    (proposal,) = suggester.proposals()

    assert (proposal.rules, proposal.paths, proposal.requests) == ((1001,), ("/a", "/b"), 2)
    assert (proposal.evidence[0].source, proposal.evidence[0].variable) == ("log:0", "ARGS:a")
    assert proposal.evidence[0].matched == "one"
    assert suggester.left([proposal]) == 0
    assert suggester.left([]) == 2


def test_a_rule_that_is_in_the_way_on_many_paths_is_turned_off(engine):
    suggester = suggested(engine, [b"/%d?a=one" % number for number in range(PATHS_LISTED_MAX + 1)])
    (proposal,) = suggester.proposals()

    assert (proposal.rules, proposal.paths) == ((1001,), ())
    assert suggester.left([proposal]) == 0


def test_as_few_rules_as_do_are_left_out(engine):
    # 8 is 3 too much: rule 1002 alone would do for the first, but 1001 does for both
    suggester = suggested(engine, [b"/a?a=one+two", b"/a?a=one+three"], threshold=6)
    proposals = suggester.proposals()

    assert [proposal.rules for proposal in proposals] == [(1001,)]
    assert suggester.left(proposals) == 0


def test_rules_of_higher_levels_do_not_count(engine):
    assert suggested(engine, [b"/?a=two+three"], level=2, threshold=5).stopped == []
    assert len(suggested(engine, [b"/?a=two+three"], level=3, threshold=5).stopped) == 1


def test_all_good_requests_pass_with_what_is_proposed(engine):
    words = (b"one", b"two", b"three", b"four")
    targets = [
        b"/%d?a=%b" % (number % 13, b"+".join(word for bit, word in enumerate(words) if number >> bit & 1))
        for number in range(64)
    ]
    for threshold in range(1, 16):
        suggester = suggested(engine, targets, threshold=threshold)
        assert suggester.left(suggester.proposals()) == 0
