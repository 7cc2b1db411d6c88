"""Real rule sets are understood as a whole: the system's package, and releases that are named."""

from collections import Counter

from edgestead.crs import Program, build_catalogue, paranoia_level
from edgestead.crs.tables import TRANSFORMATIONS


def test_every_rule_is_read_and_the_ids_are_the_rule_sets(installed: Program) -> None:
    ids = [rule.id for rule in installed.rules]

    assert len(ids) > 600
    assert len(set(ids)) == len(ids)
    assert all(900_000 <= id_ < 10_000_000 for id_ in ids)
    assert installed.signature.startswith("OWASP_CRS/")


def test_known_rules_have_their_known_parts(installed: Program) -> None:
    by_id = {rule.id: rule for rule in installed.rules}
    sqli = by_id[942100]

    assert sqli.operator.name == "detectSQLi"
    assert (sqli.phase, sqli.capture, sqli.multi_match) == (2, True, True)
    assert "attack-sqli" in sqli.tags
    assert {"ARGS", "ARGS_NAMES", "REQUEST_COOKIES", "XML"} <= {v.name for v in sqli.variables}
    assert sqli.transformations[-2:] == ("urlDecodeUni", "removeNulls")
    assert by_id[949110].disruptive == "deny"


def test_every_data_file_has_phrases_and_every_chain_links(installed: Program) -> None:
    links = [link for rule in installed.rules for link in rule.links]

    assert all(link.operator.phrases for link in links if link.operator.name in ("pm", "pmFromFile"))
    assert sum(bool(rule.chain) for rule in installed.rules) > 50
    assert {t for link in links for t in link.transformations} <= set(TRANSFORMATIONS.values())


def test_the_catalogue_lists_its_scoring_rules(installed: Program) -> None:
    catalogue = build_catalogue(installed)
    levels = Counter(entry.paranoia_level for entry in catalogue.entries)
    by_number = {entry.crs_id: entry for entry in catalogue.entries}

    assert len(catalogue.entries) > 180
    assert len(catalogue.by_id()) == len(catalogue.entries)
    assert all(levels[level] > 0 for level in (1, 2, 3, 4))
    assert all(entry.increment in (2, 3, 4, 5) for entry in catalogue.entries[:-1])
    assert all("%{" not in entry.description for entry in catalogue.entries)
    assert by_number[942100].increment == 5
    assert by_number[942100].categories[0] == "paranoia-level-1"
    assert {f"paranoia-level-{level}" for level in (1, 2, 3, 4)} <= catalogue.categories


def test_paranoia_gates_score_nothing(installed: Program) -> None:
    gates = [rule for rule in installed.rules if rule.skip_after and rule.operator.name == "lt"]
    numbers = {entry.crs_id for entry in build_catalogue(installed).entries}

    assert gates
    assert not numbers & {rule.id for rule in gates}
    assert all(paranoia_level(rule) == 1 for rule in gates)
