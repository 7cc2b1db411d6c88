"""The whole rule set here and in libmodsecurity: the same rules match, or it is written down why not."""

import pytest

from tests.waf.conftest import ids, inspect
from tests.waf.traffic import Traffic
from tests.waf.witness import Witness

REQUESTS = 400  # at each level
# Rules that may match more often here, and less often, with the reason.
MORE = {
    932200: "MATCHED_VAR stands for every value that matched, not for one of them",
    942100: "multiMatch also looks at a value that lost only NULs",
}
LESS = "REQUEST_BODY of multipart, JSON and XML is only there when a rule asks for it, as the manual says"
# Rules about the score follow from the others.
FOLLOWING = frozenset((949110,))


def sees_more(request):
    """A POST without a type is a form here, and pieces of XML's text are values of their own."""
    kind = dict(request.headers).get(b"Content-Type", b"")
    return request.body and (b"xml" in kind or not kind)


def rules_of(engine, variable):
    """Numbers of the rules that look at a variable."""
    return {
        rule.rule.id
        for rule in engine.rule_set.rules
        if any(target.variable == variable for link in rule.links for target in link.targets.included)
    }


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_the_same_rules_match(engine, level):
    witness, policy = Witness(level), engine.level_policy(level, 40)
    less = rules_of(engine, "REQUEST_BODY")
    different = []

    for request in Traffic(seed=level).requests(REQUESTS):
        ours, theirs = ids(inspect(engine, request, policy)), witness.matches(request)
        more = set() if sees_more(request) else (ours - theirs) - MORE.keys()
        if more - FOLLOWING or (theirs - ours) - less - FOLLOWING:
            different.append((sorted(ours - theirs), sorted(theirs - ours), request))

    assert not different, different[:3]


def test_attacks_are_found_at_all(engine):
    policy = engine.level_policy(1, 5)

    verdicts = [inspect(engine, request, policy) for request in Traffic(7, attacks=1.0).requests(100)]

    assert sum(verdict.action == "block" for verdict in verdicts) > 50
