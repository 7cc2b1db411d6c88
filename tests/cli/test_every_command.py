"""What holds for every command of edgecli: help, zones, JSON, dry runs, questions, words for mistakes.

The tables below are the exceptions, each with its reason; what is in no table holds without exception.
"""

import json
import re
import socket
from contextlib import contextmanager

import click
import pytest

from edgestead.cli.kv.options import KvCommand
from edgestead.cli.main import cli
from edgestead.cli.target import Command
from tests.cli.commands import every_command, every_group, root

COMMANDS = {found.words: found for found in every_command()}

WITHOUT_JSON = {  # a command, or a group and all below it; and what it prints instead
    "serve": "a log, whose form --log-form says",
    "demo": "words about what there is to look at",
    "cluster demo": "words about what there is to look at",
    "kv": "what wrangler prints, so that scripts of that go on",
    "zone export": "a zone file",
    "record export": "a zone file",
    "objects types": "a module of Python",
    "completion": "a script for a shell",
    "dns catalog config": "a file for another program",
}
ZONE_MEANS_MORE = {  # commands whose --zone is no single zone to act on
    "logs": "a filter; without it the lines of all are shown",
    "audit": "a filter; without it the whole account is shown",
    "token create": "the zones that a token is for, any number of them",
    "export": "a part of a document, any number of zones",
    "plan": "a part of a document, any number of zones",
    "apply": "a part of a document, any number of zones",
    "diff": "a part of a document, any number of zones",
    "import": "the zones of another server's account, any number of them",
    "waf suggest": "where to send it; without one nothing is sent",
}
ZONE_BY_WORD = {"dns catalog group": "any number of words follow it"}
CHANGES = {  # verbs that change a resource
    *("accept-loss", "add", "alarm", "apart", "apply", "create", "delete", "dnssec", "edit", "import"),
    *("invite", "level", "link", "move", "pause", "put", "release", "remove", "rename", "restore", "roll"),
    *("set", "threshold", "undo", "unpause", "update", "upload", "rotate", "reset", "zonemd"),
}
WITHOUT_DRY_RUN = {
    "kv": "what wrangler takes",
    "credentials": "the question is all that there is to see before",
    "restore": "makes a new folder, and refuses one that holds data",
    "object accept-loss": "the question is all that there is to see before",
    "cluster": "changes rows of the cluster's database, and sends no request",
}
TAKES_AWAY = {"accept-loss", "delete", "remove", "reset", "restore", "roll", "rotate", "apply"}
WITHOUT_QUESTION = {
    "restore": "makes a new folder, and refuses one that holds data",
    "kv key delete": "as wrangler; one key, named",
}
ASKS_NO_API = {  # and what it looks at instead
    "serve": "is the server",
    "demo": "starts a server of its own",
    "cluster": "the cluster's database, or another node",
    "init": "nothing: it writes files",
    **dict.fromkeys(("dashboard", "env", "status", "top", "alert"), "the data folder of a running server"),
    **dict.fromkeys(("credentials", "backup", "restore", "verify"), "a data folder or a backup"),
    **dict.fromkeys(("object accept-loss", "object adopt"), "a data folder"),
    **dict.fromkeys(("dns counts", "dns log", "dns query", "dns top", "dns trace"), "the DNS server"),
    **dict.fromkeys(("waf explain", "waf replay"), "an engine in this process"),
    "doctor": "this machine first, and says that no server runs in a line of many",
    "logs": "the log, or the journal",
    "tls": "files",
    "objects types": "a file of classes",
    **dict.fromkeys(("deprecations list", "deprecations show", "deprecations check"), "a table, and sources"),
    "import": "another server first, which its words name",
    "completion": "nothing",
}
READ = {  # files that have to hold something: of examples, and the configuration that names their bindings
    "edge.json": json.dumps({"kv_namespaces": [{"binding": "TEXTS", "id": "0" * 32}]}),
    "keys.json": '["a"]',
    "pairs.json": '[{"key": "a", "value": "b"}]',
    "rules.json": "[]",
}
WRITTEN = {"friday.sqlite"}
UNREACHED = re.compile(
    r"^Error: .* cannot be reached: Connection refused\.\n *Is it running\? (.*)$", re.MULTILINE
)


def excepted(words, table):
    return any(words == row or words.startswith(f"{row} ") for row in table)


def verb(words):
    return words.split()[-1]


@pytest.mark.parametrize("words", COMMANDS)
def test_help_says_what_a_command_does_and_shows_a_call_that_is_one(words, monkeypatch, tmp_path):
    found = COMMANDS[words]
    examples = list(found.examples())

    assert found.command.help.strip()
    assert examples, "no example in its help"
    monkeypatch.chdir(tmp_path)
    for example in examples:
        for word in example:  # files that an example reads
            if "." in word and "/" not in word:
                (tmp_path / word).touch()
        rest = example[len(words.split()) :]
        with found.command.make_context(words, rest, parent=root()):
            pass


def failing(holds, words=COMMANDS):
    """The commands of which it does not hold: a test for each would cost more than what it looks at."""
    return [one for one in words if not holds(one, COMMANDS[one])]


def test_a_command_never_shows_a_traceback():
    assert failing(lambda words, found: isinstance(found.command, Command | KvCommand)) == []


def test_a_command_that_prints_something_prints_json():
    printing = [one for one in COMMANDS if not excepted(one, WITHOUT_JSON)]
    assert failing(lambda words, found: "--json" in found.flags, printing) == []


@pytest.mark.parametrize("words", COMMANDS)
def test_a_zone_is_named_in_one_way(words):
    found = COMMANDS[words]
    zone = [one for one in found.options if "--zone" in one.opts]
    if excepted(words, ZONE_MEANS_MORE):
        assert zone
        return

    named = [one.make_metavar(click.Context(found.command, parent=root())) for one in found.arguments]
    assert ("ZONE" in named) == (words in ZONE_BY_WORD)
    assert all(one.envvar == "EDGE_ZONE" and not one.multiple and not one.required for one in zone)


def test_what_changes_something_can_be_tried_before():
    changing = [one for one in COMMANDS if verb(one) in CHANGES]
    assert changing
    assert (
        failing(
            lambda words, found: ("--dry-run" in found.flags) != excepted(words, WITHOUT_DRY_RUN), changing
        )
        == []
    )


def test_what_takes_something_away_asks_unless_it_is_told_not_to():
    taking = [one for one in COMMANDS if verb(one) in TAKES_AWAY]
    assert taking
    assert (
        failing(
            lambda words, found: ({"-y", "--yes"} <= found.flags) != excepted(words, WITHOUT_QUESTION), taking
        )
        == []
    )


def test_options_of_one_meaning_are_spelled_the_same():
    others = {"--force-yes", "--assume-yes", "--as-json", "--dryrun", "--zone-id", "--zone-name"}

    assert failing(lambda words, found: not found.flags & others) == []
    assert failing(lambda words, found: ("-y" in found.flags) == ("--yes" in found.flags)) == []


def test_no_exception_is_left_over():
    for table in (
        WITHOUT_JSON,
        ZONE_MEANS_MORE,
        ZONE_BY_WORD,
        WITHOUT_DRY_RUN,
        WITHOUT_QUESTION,
        ASKS_NO_API,
    ):
        for row in table:
            assert any(excepted(words, {row: ""}) for words in COMMANDS), row


@pytest.mark.parametrize("group", list(every_group()))
def test_a_group_says_which_command_is_meant(group, edgecli_alone):
    name = _group(group).list_commands(root())[0]
    done = edgecli_alone(*group.split(), f"{name}z")

    assert done.code == 2
    assert f"Did you mean '{name}'?" in done.err or f"{name}" in done.err.split("Did you mean")[1]


def _group(words):
    group = cli
    for word in words.split():
        group = group.get_command(click.Context(group, parent=root()), word)
    return group


def example_of(found):
    """One that a shell puts nothing into."""
    return min(found.examples(), key=lambda words: any("$" in word for word in words))


@pytest.mark.parametrize("words", [one for one in COMMANDS if not excepted(one, ASKS_NO_API)])
def test_without_a_server_a_command_ends_with_one_error_and_the_next_step(
    words, edgecli_alone, clean_environment, monkeypatch
):
    example = example_of(COMMANDS[words])
    for name, value in {"EDGE_TOKEN": "t", "EDGE_ACCOUNT_ID": "0" * 32, "EDGE_ZONE": "example.com"}.items():
        monkeypatch.setenv(name, value)
    for word in {*example, *READ} - WRITTEN:
        if "." in word and "/" not in word:
            (clean_environment / word).write_text(READ.get(word, ""))

    with closed_port() as place:
        monkeypatch.setenv("EDGE_API_BASE", f"http://{place}/client/v4")
        monkeypatch.setenv("EDGE_OBJECTS_ADDR", place)
        done = edgecli_alone(*example, stdin="y\n")

    said = done.out + done.err
    assert done.code == 1, said
    assert [*UNREACHED.findall(said)] == ["`edgecli serve` starts one."], said
    assert said.count("Error: ") == 1, said
    assert "Traceback" not in said


@contextmanager
def closed_port():
    """HOST:PORT that is taken, and where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield "{}:{}".format(*held.getsockname())
