"""Reading rules of one's own, and the installed rule set."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgestead.crs import Program, Rule, RulesUnreadable, load, parse

FILE = "rules/one.conf"
Read = Callable[..., Program]


def program(text: str, **others: str) -> Program:
    """The program of one rule file; further files by name, dots as they are."""
    return parse({FILE: text, **{f"rules/{name}": other for name, other in others.items()}}, [FILE])


def only_rule(text: str, **others: str) -> Rule:
    (rule,) = program(text, **others).rules
    return rule


@pytest.fixture(scope="session")
def installed() -> Program:
    """The rule set of Debian's package modsecurity-crs, or the one that `EDGESTEAD_TEST_CRS` names.

    The package holds 3.3; a release archive of 4.x is checked by naming it there.
    """
    named = os.environ.get("EDGESTEAD_TEST_CRS")
    try:
        files = load(Path(named) if named else None)
    except RulesUnreadable as error:
        pytest.skip(f"NOT TESTED against a real rule set: {error}")
    return parse(files.files, files.entries)
