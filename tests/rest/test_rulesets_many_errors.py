"""Refusals of a ruleset with several mistakes: each is named, and the list has an end."""

import pytest

from edgestead.usecases.limits import REFUSALS_ANSWERED_MAX
from tests.rest.refusals import words
from tests.rest.rulesets import NO_ID, entrypoint_of
from tests.usecases.ruleset_samples import (
    ENTRIES,
    MANAGED,
    MANAGED_PHASE,
    block,
    execute,
    skip,
)


@pytest.fixture
def managed():
    return MANAGED


def test_each_wrong_rule_is_named_with_its_own_pointer(api, rulesets):
    rules = [block("oops"), block(), {"action": "block"}, block(action="nope")]

    errors = api.put(entrypoint_of(rulesets), {"rules": rules}).json["errors"]

    assert [(error["code"], error["source"]["pointer"]) for error in errors] == [
        (20127, "/rules/0/expression"),
        (20125, "/rules/2/expression"),
        (20120, "/rules/3/action"),
    ]


def test_every_name_that_means_nothing_is_listed_beside_the_other_mistakes(api, rulesets):
    """In the order of the rules, in a dry run as in a write, for whoever brings a configuration along."""
    known = ENTRIES[0].id
    overrides = {
        "sensitivity_level": "low",
        "categories": [
            {"category": "nothing", "enabled": False},
            {"category": "attack-xss", "enabled": True},
        ],
        "rules": [{"id": NO_ID, "enabled": False}, {"id": known, "score_threshold": 9}],
    }
    rules = [
        execute(version="6", overrides=overrides),
        execute(NO_ID),
        block(action="nope"),
        execute() | {"ref": "a"},
        execute() | {"ref": "a"},
        skip(rulesets=[MANAGED.id, NO_ID]),
        skip(rules={MANAGED.id: [known, NO_ID], NO_ID: [known, known]}),
    ]
    path = entrypoint_of(rulesets, MANAGED_PHASE)

    for answer in (api.put(path, {"rules": rules}), api.put(f"{path}?dry_run=true", {"rules": rules})):
        assert [(one["code"], one["source"]["pointer"]) for one in answer.json["errors"]] == [
            (20128, "/rules/0/action_parameters/overrides/categories/0/category"),
            (20128, "/rules/0/action_parameters/overrides/rules/0/id"),
            (20121, "/rules/0/action_parameters/overrides/rules/1/score_threshold"),
            (20121, "/rules/0/action_parameters/overrides/sensitivity_level"),
            (20128, "/rules/0/action_parameters/version"),
            (20128, "/rules/1/action_parameters/id"),
            (20120, "/rules/2/action"),
            (20130, "/rules/4/ref"),
            (20128, "/rules/5/action_parameters/rulesets/1"),
            (20128, f"/rules/6/action_parameters/rules/{MANAGED.id}/1"),
            (20128, f"/rules/6/action_parameters/rules/{NO_ID}"),
        ]
    assert api.get(path).status == 404


def test_a_name_that_changes_is_listed_beside_the_rules(api, rulesets):
    api.put(entrypoint_of(rulesets), {"name": "mine"})

    errors = api.put(
        entrypoint_of(rulesets), {"name": "other", "rules": [{"id": NO_ID}, block("oops")]}
    ).json["errors"]

    assert [one["source"]["pointer"] for one in errors] == ["/name", "/rules/0/action", "/rules/1/expression"]


def test_rules_are_counted_as_numbers_not_as_words(api, rulesets):
    rules = [block()] * 9 + [block("oops"), block("oops")] + [skip(rulesets=[NO_ID])]

    errors = api.put(entrypoint_of(rulesets), {"rules": rules}).json["errors"]

    assert [one["source"]["pointer"].split("/")[2] for one in errors] == ["9", "10", "11"]


@pytest.mark.parametrize(
    "rule", [{}, block("oops"), skip(rulesets=[NO_ID]), skip(rules={MANAGED.id: [NO_ID]})]
)
def test_every_kind_of_refusal_ends(api, rulesets, rule):
    many = {"rules": [rule] * 50}
    one = {"rules": [execute(overrides={"rules": [{"id": NO_ID, "enabled": True}] * 50})]}

    assert len(api.put(entrypoint_of(rulesets), many).json["errors"]) == REFUSALS_ANSWERED_MAX
    assert len(api.put(entrypoint_of(rulesets, MANAGED_PHASE), one).json["errors"]) == REFUSALS_ANSWERED_MAX


def test_a_long_value_is_quoted_in_part(api, rulesets):
    answer = api.put(entrypoint_of(rulesets), {"rules": [block(action="x" * 65)]})
    unknown = api.put(entrypoint_of(rulesets), {"x" * 5_000: 1})

    assert len(words(answer)) < 300
    assert len(words(unknown)) < 300
