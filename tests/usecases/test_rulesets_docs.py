"""The reference page of rulesets says what the tables hold."""

from pathlib import Path

import pytest

from edgestead.usecases import limits
from edgestead.usecases.ruleset import actions as rulesets_actions
from edgestead.usecases.ruleset import phases
from edgestead.usecases.ruleset.phases import ORDER, TABLE
from edgestead.usecases.ruleset.rule import PERIODS_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "rulesets.md").read_text()
FIREWALL = {"block", "managed_challenge", "js_challenge", "challenge", "log", "skip"}
LIMITS = [
    limits.RULES_PER_RULESET_MAX,
    limits.RULESET_OCTETS_MAX,
    limits.REGEXES_PER_RULESET_MAX,
    limits.CUSTOM_RULESETS_MAX,
    limits.VERSIONS_KEPT_MAX,
    limits.RULESET_NAME_CHARACTERS_MAX,
    limits.DESCRIPTION_CHARACTERS_MAX,
    limits.REF_CHARACTERS_MAX,
    limits.OVERRIDE_ITEMS_MAX,
    limits.HEADERS_PER_RULE_MAX,
    limits.HEADER_VALUE_CHARACTERS_MAX,
    limits.URL_CHARACTERS_MAX,
    limits.RESPONSE_CHARACTERS_MAX,
    limits.SETTING_ITEMS_MAX,
    limits.CHARACTERISTICS_MAX,
    limits.REFUSALS_ANSWERED_MAX,
]


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The rows of a section's first table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def actions(cell: str) -> set[str]:
    words = {word.strip("` ") for word in cell.split(",")} - {""}
    return words - {"firewall"} | (FIREWALL if "firewall" in words else set())


def test_the_table_of_phases_is_ours():
    table = rows(section("Phases and actions").partition("*firewall*")[0])

    assert [row[0].strip("`") for row in table] == list(ORDER)
    for name, zone, root, custom in table:
        phase = TABLE[name.strip("`")]
        assert (actions(zone), actions(root), actions(custom)) == (phase.zone, phase.root, phase.custom), name


def test_every_action_is_explained_and_those_that_end_a_phase_are_named():
    explained = {
        word.strip("` ")
        for row in rows(section("Phases and actions").partition("Actions that end")[2])
        for word in row[0].split(",")
    }
    ending = section("Phases and actions").partition("Actions that end")[2].partition("\n\n")[0]

    assert explained == rulesets_actions.TABLE.keys()
    for action in rulesets_actions.TABLE.values():
        named = f"`{action.name}`" in ending or action.name in phases.CHALLENGES
        assert named == action.terminates, action.name
    assert all(f"`{name}`" in PAGE for name in rulesets_actions.MANAGED_ONLY)


@pytest.mark.parametrize("limit", LIMITS)
def test_every_limit_is_on_the_page(limit):
    assert f"{limit:,}" in section("Limits")


def test_the_periods_are_on_the_page():
    *most, last = PERIODS_SECONDS

    assert f"{', '.join(map(str, most))} or {last} seconds" in section("Rate limits")
