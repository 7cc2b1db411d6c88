"""Who is who when rules are replaced, and where a rule goes: against a plain model, on many inputs."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.model.refusals.ruleset import DuplicateRule, PositionRefused
from edgestead.usecases.ruleset import merge
from edgestead.usecases.ruleset.body import Position
from edgestead.usecases.ruleset.merge import Stamp
from edgestead.usecases.ruleset.rule import RuleDraft
from edgestead.usecases.ruleset.shapes import Place

LETTERS = "abcdef"
names = st.lists(st.sampled_from(LETTERS), unique=True, min_size=1)
DEFINITION = {"action": "log", "expression": "true"}


def stored(order):
    return [
        {"id": name, "version": "1", **DEFINITION, "last_updated": "then", "ref": name.upper()}
        for name in order
    ]


def stamp() -> Stamp:
    numbers = itertools.count(1)
    return Stamp("now", lambda: f"new{next(numbers)}")


def draft(id_=None, ref=None, **definition) -> RuleDraft:
    return RuleDraft(Place("http_ratelimit"), id_, ref, {**DEFINITION, **definition})


def order_of(rules) -> str:
    return "".join(rule["id"] for rule in rules)


@given(names, st.data())
def test_a_moved_rule_stands_where_it_was_asked_to_and_the_others_keep_their_order(order, data):
    moving = data.draw(st.sampled_from(order))
    others = [name for name in order if name != moving]
    position = data.draw(
        st.one_of(
            st.builds(Position, st.just("index"), st.integers(1, len(order))),
            st.builds(Position, st.sampled_from(["before", "after"]), st.sampled_from(["", *others])),
        )
    )

    moved = order_of(merge.changed(stored(order), moving, None, position, stamp()))

    assert moved.replace(moving, "") == "".join(others)
    at = moved.index(moving)
    how, where = position
    if how == "index":
        assert at + 1 == where
    elif where:
        assert moved.index(where) == (at + 1 if how == "before" else at - 1)
    else:
        assert at == (0 if how == "before" else len(others))


@given(names, names, st.data())
def test_a_replaced_list_has_the_drafts_order_and_keeps_whom_it_names(before, after, data):
    by_ref = data.draw(st.sets(st.sampled_from(LETTERS)))
    drafts = [
        draft(ref=name.upper()) if name in by_ref else draft(id_=name, ref=name.upper()) for name in after
    ]

    rules = merge.replaced(stored(before), drafts, stamp())

    assert [rule["ref"] for rule in rules] == [name.upper() for name in after]
    for rule, name in zip(rules, after, strict=True):
        assert (rule["id"] == name) == (name in before)
        assert rule["version"] == "1"
        assert rule["last_updated"] == ("then" if name in before else "now")


def test_a_rule_that_changes_gets_a_version_and_a_time():
    rule, *_ = merge.replaced(stored("ab"), [draft("a", expression="ssl")], stamp())

    assert (rule["version"], rule["last_updated"], rule["expression"]) == ("2", "now", "ssl")
    assert next(iter(rule)) == "id"


def test_another_ref_is_a_change():
    rules = merge.changed(stored("ab"), "a", draft(ref="Z"), None, stamp())

    assert (rules[0]["ref"], rules[0]["version"], order_of(rules)) == ("Z", "2", "ab")


def test_an_id_wins_over_a_ref():
    (rule,) = merge.replaced(stored("ab"), [draft("a", ref="B")], stamp())

    assert (rule["id"], rule["ref"]) == ("a", "B")


DUPLICATES = [
    [draft("a"), draft("a")],
    [draft("a"), draft(ref="A")],
    [draft(ref="X"), draft(ref="X")],
    [draft("a", ref="B"), draft("b")],
]


@pytest.mark.parametrize("drafts", DUPLICATES)
def test_two_rules_are_never_one(drafts):
    with pytest.raises(DuplicateRule):
        merge.replaced(stored("ab"), drafts, stamp())


POSITIONS = [Position("index", 4), Position("before", "z"), Position("after", "z"), Position("before", "a")]


@pytest.mark.parametrize("position", POSITIONS)
def test_there_is_no_place_outside_of_the_ruleset(position):
    with pytest.raises(PositionRefused):
        merge.changed(stored("abc"), "a", None, position, stamp())


def test_the_stored_rules_themselves_are_never_touched():
    before = stored("abc")

    merge.changed(before, "b", draft(expression="ssl"), Position("before", ""), stamp())
    merge.replaced(before, [draft("c", enabled=False)], stamp())
    merge.added(before, draft(), None, stamp())

    assert before == stored("abc")
