"""Whatever can be asked for, set, refused, counted or exceeded has its heading in the reference."""

import re
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import click
import pytest

import edgestead
from docs.writers.limits import limits
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


def refusals(base=EdgeError):
    for module in walk_packages(edgestead.__path__, "edgestead."):
        if module.name.endswith("errors") or module.name.startswith("edgestead.model."):
            import_module(module.name)
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
    return {
        "routes.md": {route.path.removeprefix(BASE_PATH) for route in ROUTES},
        "settings.md": set(SETTINGS),
        "errors.md": codes(),
        "metrics.md": {metric.name for metric in METRICS},
        "limits.md": {limit.heading for limit in limits()},
        "configuration.md": {option.key for option in config.OPTIONS},
        "command-line.md": set(commands(cli)),
        "changes.md": {change.subject for change in CHANGES},
    }


@pytest.mark.parametrize("page", wanted())
def test_everything_of_its_kind_has_a_heading(page):
    names = wanted()[page]

    assert len(names) > 20
    assert names - headings(page) == set()


def test_a_limit_has_one_place():
    found = [(limit.room, limit.heading) for limit in limits()]

    assert len(found) == len(set(found))


def test_a_limit_says_of_what_or_why():
    assert [f"{limit.room}.{limit.heading}" for limit in limits() if not limit.words] == []


def test_every_option_of_a_command_stands_below_its_heading():
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    blocks = {block.partition("\n")[0]: block for block in text.split("\n## ")}
    for words in commands(cli):
        context, command = click.Context(cli), cli
        for name in words.split()[1:]:
            command = command.get_command(context, name)
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in blocks[words], f"{words} {option.opts}"
