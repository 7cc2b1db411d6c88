"""Whatever is sent, a body is taken or refused with a place in it; nothing else ever happens."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgestead.language import PHASES
from edgestead.model.refusals.ruleset import InvalidJson, RulesetRefused
from edgestead.usecases.ruleset.body import read_create, read_entrypoint, read_rule_body
from edgestead.usecases.ruleset.phases import TABLE
from tests.usecases.test_rulesets_rule import GOOD, LIMITS_GOOD

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ODD = [None, True, False, 0, -1, 1 << 63, 1.5, "", "\0", "x" * 5_000, [], [None], {}, {"a": 1}, {"": {}}]
RULES = [
    (phase, {"action": action, "expression": "true", "action_parameters": parameters})
    for phase, action, parameters in GOOD
] + [
    ("http_ratelimit", {"action": "block", "expression": "true", "ratelimit": limit}) for limit in LIMITS_GOOD
]


def places(value, path=()):
    """The path of everything inside a JSON value, itself included."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def changed(value, path, odd):
    """A copy with something else at a place."""
    if not path:
        return odd
    whole = copy.deepcopy(value)
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return whole


def resolves(pointer, value) -> bool:
    """Whether a JSON pointer leads somewhere, or to a member that is missing from an object."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    for token in tokens[:-1]:
        value = value[int(token)] if isinstance(value, list) else value[token]
    return not tokens or isinstance(value, dict) or int(tokens[-1]) < len(value)


def refusals(read, value):
    try:
        return getattr(read(value), "refused", ())
    except RulesetRefused as refusal:
        return (refusal, *refusal.also)


def taken_or_refused(read, value):
    for one in refusals(read, value):
        assert resolves(one.pointer, value)
        assert len(one.message) < 15_000
        assert 20_000 < one.code < 21_000 or isinstance(one, InvalidJson)


@pytest.mark.parametrize(("phase", "rule"), RULES)
def test_every_part_of_a_good_rule_may_be_anything(phase, rule):
    kind = "zone" if rule["action"] in TABLE[phase].zone else "root"
    value = {"rules": [rule]}

    for path in places(value):
        for odd in ODD:
            taken_or_refused(lambda sent: read_entrypoint(sent, kind, phase), changed(value, path, odd))


@pytest.mark.parametrize("member", ["surprise", "~", "/", "é", "x" * 300])
def test_no_object_takes_a_member_that_nobody_knows(member):
    for phase, rule in RULES:
        kind = "zone" if rule["action"] in TABLE[phase].zone else "root"
        for path in places(rule):
            if path[-1:] in (("headers",), ("rules",), ("contains",)):
                continue  # their members are data
            at = rule
            for key in path:
                at = at[key]
            if isinstance(at, dict):
                body = {"rules": [changed(rule, path, {**at, member: 1})]}
                (refusal,) = refusals(lambda sent: read_entrypoint(sent, kind, phase), body)  # noqa: B023
                assert refusal.code == 10026


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([*PHASES]), ANYTHING, ANYTHING)
def test_any_json_is_taken_or_refused(phase, value, rule):
    json.dumps(value)
    for sent in (
        value,
        {"rules": value},
        {"rules": [rule]},
        {"rules": [{"action": rule, "expression": value}]},
    ):
        taken_or_refused(lambda one: read_entrypoint(one, "zone", phase), sent)
        taken_or_refused(lambda one: read_rule_body(one, "root", phase, may_only_move=True), sent)
    taken_or_refused(
        lambda one: read_create(one, "account"), {"name": "x", "kind": rule, "phase": phase, "rules": value}
    )
