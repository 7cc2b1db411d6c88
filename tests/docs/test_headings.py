"""Whatever can be asked for, set, refused, counted or exceeded has its heading in the reference."""

import re
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import click
import pytest

import edgestead
from docs.writers.limits import MET, limits, refusal_of, value_of
from edgestead import config
from edgestead.changes import CHANGES
from edgestead.cli.main import cli
from edgestead.model.counters import METRICS
from edgestead.model.refusals import EdgeError
from edgestead.model.settings import SETTINGS
from edgestead.rest.routing import BASE_PATH, ROUTES
from tests.docs.conftest import ROOT


def headings(page):
    """The headings of a page of the reference, without the marks of code."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    return {line.replace("`", "") for line in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def load_refusals():
    for module in walk_packages(edgestead.__path__, "edgestead."):
        if module.name.endswith("errors") or module.name.startswith("edgestead.model."):
            import_module(module.name)


def refusals(base=EdgeError):
    for child in base.__subclasses__():
        yield child
        yield from refusals(child)


def codes():
    """Those that an answer can have: not of classes that only group others."""
    return {str(one.code) for one in refusals() if not (one.wording == "{reason}" and one.__subclasses__())}


def commands(command, words=("edgecli",)):
    yield " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*words, name))


@cache
def wanted():
    """The names of everything, by the page of the reference that has their headings."""
    import_module("edgestead.rest.app")
    load_refusals()
    return {
        "routes.md": {route.path.removeprefix(BASE_PATH) for route in ROUTES if not route.has_ended},
        "settings.md": set(SETTINGS),
        "errors.md": codes(),
        "metrics.md": {metric.name for metric in METRICS},
        "configuration.md": {option.key for option in config.OPTIONS},
        "command-line.md": set(commands(cli)),
        "changes.md": {change.subject for change in CHANGES},
    }


PAGES = (  # by name: every worker collects, and one of them looks for what the pages have to have
    "routes.md",
    "settings.md",
    "errors.md",
    "metrics.md",
    "configuration.md",
    "command-line.md",
    "changes.md",
)


def test_no_page_is_left_out():
    assert set(PAGES) == wanted().keys()


@pytest.mark.parametrize("page", PAGES)
def test_everything_of_its_kind_has_a_heading(page):
    names = wanted()[page]

    assert len(names) > 20
    assert names - headings(page) == set()


def test_every_route_that_ended_is_named():
    text = (ROOT / "docs" / "reference" / "routes.md").read_text().partition("## Ended by a date")[2]
    ended = {route.path.removeprefix(BASE_PATH) for route in ROUTES if route.has_ended}

    assert ended
    assert [path for path in ended if f"`{path}`" not in text] == []


@cache
def every_limit():
    return list(limits())


def test_a_limit_has_one_place():
    found = [(limit.room, limit.heading) for limit in every_limit()]

    assert len(found) == len(set(found))


def test_a_limit_says_of_what_or_why():
    assert [f"{limit.room}.{limit.heading}" for limit in every_limit() if not limit.words] == []


ROWS = [row for rows in MET.values() for row in rows]


TRIED_BY = {  # the number goes through helpers: a test that has the answer, and what to find there
    constant: ((ROOT / file).read_text(), pattern)
    for constant, file, pattern in (
        (
            "usecases.limits:RESPONSE_CHARACTERS_MAX",
            "tests/usecases/test_rulesets_rule.py",
            "RESPONSE_CHARACTERS_MAX|30_?721",
        ),
        ("objects.limits:MESSAGE_BYTES_MAX", "tests/objects/test_http.py", "CallTooLarge"),
        (
            "http1.limits:HEAD_BYTES_MAX",
            "tests/http1/test_faces.py",
            r"HEAD_BYTES_MAX\)?, \(431|HEAD_BYTES_MAX\), \(431",
        ),
    )
}


def test_about_forty_limits_are_those_that_people_meet():
    assert 35 <= len(ROWS) <= 60
    assert len({row[:2] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_limit_that_people_meet_is_what_its_refusal_is_about(row):
    """Some module has to do with both, the number and the class of the answer; else a test has its answer."""
    _, constant, _, refusal = row
    name = constant.partition(":")[2]
    if constant in TRIED_BY:
        assert re.search(*TRIED_BY[constant][::-1]) is not None
        return
    answer = refusal if refusal_of(refusal) is not None else refusal.strip("`").partition("`")[0]

    assert value_of(constant) > 0
    assert any(
        name in text
        and answer in text
        and re.search(rf"\b{name}\b", text)
        and re.search(rf"\b{answer}\b", text)
        for text in sources()
    ), (
        name,
        answer,
    )


@cache
def sources():
    return [path.read_text() for path in (ROOT / "src").rglob("*.py")]


def test_every_option_of_a_command_is_told_below_its_heading_or_with_those_of_many():
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    blocks = {block.partition("\n")[0]: " ".join(block.split()) for block in text.split("\n## ")}
    many = blocks["Options of many commands"]
    for words in commands(cli):
        context, command = click.Context(cli), cli
        for name in words.split()[1:]:
            command = command.get_command(context, name)
        for option in command.params:
            if not isinstance(option, click.Option) or option.hidden:
                continue
            names, told = (" ".join(part.split()) for part in option.get_help_record(context))
            if f"{names} {told}" not in blocks[words]:
                assert f"`{option.opts[-1]}`" in blocks[words], f"{words} {names}"
                assert f"| `{names}` | {told} |" in many, f"{words} {names}"
