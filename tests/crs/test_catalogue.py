"""The managed ruleset that a program becomes, and what overrides leave of it."""

import pytest

from edgestead.crs import (
    ANOMALY_RULE_ID,
    RULESET_ID,
    Catalogue,
    CategoryOverride,
    Effective,
    Overrides,
    RuleOverride,
    apply_overrides,
    build_catalogue,
)
from edgestead.crs.catalogue import entry_id, version_digits

from .conftest import program

TEXT = """
    SecComponentSignature "OWASP_CRS/4.28.0"
    SecAction "id:900000,phase:1,pass,nolog,setvar:tx.critical_anomaly_score=5"
    SecRule TX:DETECTION_PARANOIA_LEVEL "@lt 1" "id:920011,phase:1,pass,nolog,skipAfter:END"
    SecRule ARGS "@rx a" "id:920100,phase:1,block,msg:'Bad line (%{MATCHED_VAR})',severity:'WARNING',\
        tag:'attack-protocol',tag:'paranoia-level/1',tag:'OWASP_CRS',tag:'capec/1',\
        setvar:'tx.inbound_anomaly_score_pl1=+%{tx.warning_anomaly_score}'"
    SecRule ARGS "@rx b" "id:942100,phase:2,block,msg:'Injection',severity:'CRITICAL',chain,\
        tag:'attack-sqli',tag:'language-php',tag:'paranoia-level/2'"
        SecRule ARGS "@rx c" "setvar:'tx.anomaly_score_pl2=+5'"
    SecRule ARGS "@rx d" "id:942200,phase:2,block,msg:'Untagged',severity:'NOTICE',\
        setvar:'tx.inbound_anomaly_score_pl4=+2'"
    SecRule RESPONSE_BODY "@rx e" "id:950100,phase:4,block,severity:'ERROR',tag:'paranoia-level/1',\
        setvar:'tx.inbound_anomaly_score_pl1=+4'"
    SecRule ARGS "@rx f" "id:949110,phase:2,deny,msg:'Exceeded (Total Score: %{TX.S})'"
    SecMarker END
"""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return build_catalogue(program(TEXT))


def test_scoring_rules_of_request_phases_have_entries_and_the_anomaly_rule_is_last(
    catalogue: Catalogue,
) -> None:
    assert [entry.crs_id for entry in catalogue.entries] == [920100, 942100, 942200, 949110]
    assert (catalogue.id, catalogue.version) == (RULESET_ID, "4028000")
    assert "OWASP" in catalogue.name


def test_an_entry_tells_score_level_and_tags(catalogue: Catalogue) -> None:
    first, second, third, _ = catalogue.entries

    assert (first.action, first.increment, first.paranoia_level) == ("score", 3, 1)
    assert first.description == "920100: Bad line"
    assert first.categories == ("paranoia-level-1", "attack-protocol")
    assert (second.increment, second.categories) == (5, ("paranoia-level-2", "attack-sqli", "language-php"))
    assert (third.increment, third.paranoia_level, third.categories) == (2, 4, ("paranoia-level-4",))
    assert all(entry.ref == entry.id and entry.version == "4028000" for entry in catalogue.entries)


def test_the_anomaly_rule_blocks_at_40(catalogue: Catalogue) -> None:
    last = catalogue.anomaly_rule

    assert (last.id, last.action, last.score_threshold) == (ANOMALY_RULE_ID, "block", 40)
    assert last.description == "949110: Inbound Anomaly Score Exceeded"
    assert (last.categories, last.increment) == ((), None)


def test_ids_are_32_hexadecimal_digits_that_outlive_an_upgrade(catalogue: Catalogue) -> None:
    upgraded = build_catalogue(program(TEXT.replace("4.28.0", "4.29.0").replace("Injection", "Reworded")))

    assert [entry.id for entry in upgraded.entries] == [entry.id for entry in catalogue.entries]
    assert upgraded.version == "4029000"
    assert all(
        len(entry.id) == 32 and set(entry.id) <= set("0123456789abcdef") for entry in catalogue.entries
    )
    assert len(catalogue.by_id()) == len(catalogue.entries)


def test_both_ids_can_be_chosen() -> None:
    chosen = build_catalogue(program(TEXT), ruleset_id="a" * 32, anomaly_rule_id="b" * 32)

    assert (chosen.id, chosen.anomaly_rule.id) == ("a" * 32, "b" * 32)


def test_what_is_no_rule_set_makes_no_catalogue() -> None:
    with pytest.raises(ValueError, match=r"expected CRS 3\.1 or later"):
        build_catalogue(program('SecAction "id:1,pass"'))


@pytest.mark.parametrize(
    ("release", "digits"),
    [("3.3.4", "3003004"), ("4.28.0", "4028000"), ("4.29.0-dev", "4029000"), ("4", "4000000"), ("", "1")],
)
def test_a_release_becomes_digits(release: str, digits: str) -> None:
    assert version_digits(release) == digits


ONE, TWO, FOUR = 920100, 942100, 942200  # by paranoia level
ALL = {ONE: 3, TWO: 5, FOUR: 2}


def off(*categories: str) -> tuple[CategoryOverride, ...]:
    return tuple(CategoryOverride(category=category, enabled=False) for category in categories)


def rule(crs_id: int, **what: object) -> RuleOverride:
    return RuleOverride(id=ANOMALY_RULE_ID if crs_id == 949110 else entry_id(crs_id), **what)  # type: ignore[arg-type]


PL_OFF = off("paranoia-level-3", "paranoia-level-4")
# overrides, rules that score, rules that act, threshold, action of the anomaly rule
EFFECTIVE = {
    "none": (Overrides(), ALL, {}, 40, "block"),
    "level 2": (Overrides(categories=PL_OFF), {ONE: 3, TWO: 5}, {}, 40, "block"),
    "a rule in a disabled level": (
        Overrides(categories=PL_OFF, rules=(rule(FOUR, enabled=True),)), ALL, {}, 40, "block",
    ),
    "ruleset off": (Overrides(enabled=False), {}, {}, 40, None),
    "ruleset off, a category on": (
        Overrides(enabled=False, categories=(CategoryOverride(category="attack-sqli", enabled=True),)),
        {TWO: 5}, {}, 40, None,
    ),
    "the last category wins": (
        Overrides(categories=(*off("attack-sqli"), CategoryOverride(category="language-php", enabled=True))),
        ALL, {}, 40, "block",
    ),
    "the last category wins, other way round": (
        Overrides(categories=(CategoryOverride(category="language-php", enabled=True), *off("attack-sqli"))),
        {ONE: 3, FOUR: 2}, {}, 40, "block",
    ),
    "each property on its own": (
        Overrides(categories=(CategoryOverride(category="attack-sqli", action="log"), *off("language-php")),
                  rules=(rule(TWO, enabled=True),)),
        {ONE: 3, FOUR: 2}, {TWO: "log"}, 40, "block",
    ),
    "threshold and action": (
        Overrides(rules=(rule(949110, score_threshold=60, action="managed_challenge"),)),
        ALL, {}, 60, "managed_challenge",
    ),
    "the ruleset's action is the anomaly rule's": (Overrides(action="log"), ALL, {}, 40, "log"),
    "unless that has its own": (
        Overrides(action="log", rules=(rule(949110, action="block"),)), ALL, {}, 40, "block",
    ),
    "anomaly rule off": (Overrides(rules=(rule(949110, enabled=False),)), ALL, {}, 40, None),
    "two items about one rule, each property on its own": (
        Overrides(rules=(rule(949110, score_threshold=60, action="log"), rule(949110, score_threshold=25),
                         rule(ONE, enabled=False), rule(ONE, action="log"), rule(TWO, enabled=False),
                         rule(TWO, enabled=True))),
        {number: increment for number, increment in ALL.items() if number != ONE}, {}, 25, "log",
    ),
    "what is not there changes nothing": (
        Overrides(categories=off("attack-none"), rules=(RuleOverride(id="c" * 32, enabled=False),)),
        ALL, {}, 40, "block",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EFFECTIVE)
def test_overrides_rule_beats_category_beats_ruleset(catalogue: Catalogue, name: str) -> None:
    overrides, increments, actions, threshold, action = EFFECTIVE[name]

    assert apply_overrides(catalogue, overrides) == Effective(
        increments=increments, actions=actions, score_threshold=threshold, anomaly_action=action
    )
