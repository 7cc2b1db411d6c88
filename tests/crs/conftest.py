"""Reading rules of one's own, and real rule sets."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgestead.crs import Program, Rule, RulesMissing, load, parse

FILE = "rules/one.conf"
Read = Callable[..., Program]


def program(text: str, **others: str) -> Program:
    """The program of one rule file; further files by name, dots as they are."""
    return parse({FILE: text, **{f"rules/{name}": other for name, other in others.items()}}, [FILE])


def only_rule(text: str, **others: str) -> Rule:
    (rule,) = program(text, **others).rules
    return rule


VARIABLE = "EDGESTEAD_TEST_CRS"
RELEASES: list[Any] = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
NO_RELEASE = pytest.param(None, id="no-release", marks=pytest.mark.long)


@pytest.fixture(scope="session", params=("system", *(RELEASES or [NO_RELEASE])))
def installed(request: pytest.FixtureRequest) -> Program:
    """The rule set of Debian's package modsecurity-crs, 3.3, and each that `EDGESTEAD_TEST_CRS` names.

    What is named has to be there. A long run without a named one says that nothing newer was read.
    """
    if request.param is None:
        pytest.skip(f"NOT TESTED against a release of 4.x: {VARIABLE} names none")
    try:
        files = load(None if request.param == "system" else Path(request.param))
    except RulesMissing as error:
        pytest.skip(f"NOT TESTED against a real rule set: {error}")
    return parse(files.files, files.entries)
