"""Whoever calls edgecli wrongly is told what is wrong and what comes next, without a traceback."""

import re
import shlex

import click
import pytest

from tests.cli.commands import every_command
from tests.cli.wrong_usages import CANNOT, MISCALLED, MISCALLED_THERE, REFUSED

# What a message offers as the next step, by exit code. An error of the API has a page by its code.
NEXT = {
    1: re.compile(
        r"`[^`]+`|Did you mean|EDGE_[A-Z]+|There are:|Phases: |Write |--[a-z-]+ (?:takes|works)|\[code: \d+\]"
    ),
    2: re.compile(r"Try 'edgecli[^']* --help'|Commands:"),
}
TOO_MANY = "unexpected extra argument|Too many words|is not|No such file|does not exist|Missing option"
CLICKS_WORDS = re.compile(r"valid (?:integer|float)|[<>]=?x|x[<>]")  # for numbers
COMMANDS = [(found.words, found) for found in every_command()]


def told(done):
    """What the message says, on one line. Fails on a traceback."""
    said = " ".join((done.out + done.err).split())
    assert "Traceback" not in said
    assert "Unexpected " not in said, said
    assert not CLICKS_WORDS.search(said), said
    return said


def assert_told(done, code, fault):
    said = told(done)
    assert done.code == code, said
    assert re.search(fault, said), said
    assert NEXT[code].search(said), said


@pytest.mark.parametrize(("line", "fault"), MISCALLED)
def test_a_wrong_call_is_named(edgecli_alone, line, fault):
    assert_told(edgecli_alone(*shlex.split(line)), 2, fault)


@pytest.mark.parametrize(("line", "fault"), CANNOT)
def test_what_cannot_be_done_is_named(edgecli_alone, line, fault):
    assert_told(edgecli_alone(*shlex.split(line)), 1, fault)


def test_what_a_server_refuses_is_named(edgecli, monkeypatch):
    assert edgecli("zone", "create", "here.example").code == 0
    monkeypatch.setenv("EDGE_ZONE", "here.example")
    wrong = []
    for line, fault in REFUSED:
        done = edgecli(*shlex.split(line))
        try:
            assert_told(done, 2 if line in MISCALLED_THERE else 1, fault)
        except AssertionError as error:
            wrong.append(f"{line}: {error}")
    assert edgecli("zone", "delete", "here.example", "--yes").code == 0
    assert wrong == []


@pytest.mark.parametrize(("words", "found"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_an_unknown_option_is_named_with_the_one_that_is_meant(edgecli_alone, words, found):
    known = sorted(flag for flag in found.flags if flag.startswith("--") and len(flag) > 5)
    for flag in known[:1] or ["--help"]:
        wrong = flag[:-1] + "q"
        said = told(done := edgecli_alone(*words.split(), wrong))

        assert done.code == 2, said
        assert f"No such option '{wrong}'" in said
        assert "Did you mean" in said
        assert f"Try 'edgecli {words} --help'" in said


@pytest.mark.parametrize(("words", "found"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_words_that_are_too_many_are_named(edgecli_alone, words, found):
    if any(argument.nargs == -1 and argument.name != "first_word" for argument in found.arguments):
        return  # takes any number of words
    done = edgecli_alone(*words.split(), *["1"] * (len(found.arguments) + 1))

    assert done.code == 2
    said = told(done)
    assert re.search(TOO_MANY, said), said


def test_every_range_of_numbers_can_be_said_plainly():
    kinds = [(words, param.type) for words, found in COMMANDS for param in found.command.params]
    ranges = [(words, kind) for words, kind in kinds if isinstance(kind, click.IntRange | click.FloatRange)]

    assert len(ranges) > 10
    assert [words for words, kind in ranges if kind.min is None or kind.min_open or kind.max_open] == []


def test_there_are_enough_of_them():
    assert len(MISCALLED) + len(CANNOT) + len(REFUSED) >= 200
