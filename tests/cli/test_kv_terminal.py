"""edgecli kv on a pseudo-terminal, and the old spelling with a colon."""

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
from contextlib import suppress

import pytest
from click.shell_completion import BashComplete

from edgestead.cli.completion import VARIABLE
from edgestead.cli.main import cli
from edgestead.feed.stillness import work_of
from edgestead.testing.server import environment

from .conftest import call

LOCAL_ID = "a" * 32
OLD = {"kv:namespace": "kv namespace", "kv:key": "kv key", "kv:bulk": "kv bulk"}


AGAIN_SECONDS = 2.0


def on_terminal(arguments, typed=None):
    """The exit code and everything that the terminal showed. `typed` None is Ctrl-D."""
    mine, its = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "edgestead", *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
        env=os.environ | environment() | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(its)
    try:
        shown = all_shown(mine, b"\x04" if typed is None else typed.encode(), running.pid)
        return running.wait(60), shown.decode().replace("\r\n", "\n")
    finally:
        os.close(mine)
        running.kill()
        running.wait()


def all_shown(terminal, typed, pid):
    """What is shown until the other end is closed. `typed` is the answer to the question.

    An interpreter loses a Ctrl-C that comes in the instant between its last look at signals and its wait
    for the line, which no person is fast enough for: it is pressed again, as a person does, where it does
    nothing. One that ends, on a busy machine, would be hurt by a second one.
    """
    shown, asked, work = b"", False, None
    with suppress(OSError):  # the other end is closed
        while True:
            if select.select([terminal], [], [], AGAIN_SECONDS if asked else None)[0]:
                if not (chunk := os.read(terminal, 4096)):
                    break
                shown += chunk
                if asked or b"[y/n]: " not in shown:
                    continue
            else:
                before, work = work, work_of(pid)
                if typed != b"\x03" or work is None or work != before:
                    continue
            asked = True
            os.write(terminal, typed)
    return shown


PROMPTS = {
    "namespace delete": ("namespace", "delete", "--namespace-id", "ID"),
    "bulk delete": ("bulk", "delete", "keys.json", "--namespace-id", "ID"),
}
ANSWERS = {"y\n": 0, "n\n": 0, None: 1, "\x03": 1}


@pytest.fixture
def held(project, edgecli, namespace_id):
    """A namespace with the two keys of keys.json."""
    (project / "keys.json").write_text('["a", "b"]')
    (project / "pairs.json").write_text('[{"key":"a","value":"1"},{"key":"b","value":"2"}]')
    edgecli("kv", "bulk", "put", "pairs.json", "--namespace-id", namespace_id)
    return namespace_id


@pytest.mark.parametrize("command", PROMPTS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_question_on_a_terminal_is_answered_there(edgecli, held, command, answer):
    arguments = [held if word == "ID" else word for word in PROMPTS[command]]

    code, shown = on_terminal(["kv", *arguments], answer)

    assert code == ANSWERS[answer], shown
    assert "[y/n]: " in shown
    assert "Traceback" not in shown
    left = edgecli("kv", "key", "list", "--namespace-id", held)
    if answer == "y\n":
        assert left.code == 1 if command == "namespace delete" else left.out == "[]\n"
    else:
        assert len(json.loads(left.out)) == 2
        assert ("Not deleting\n" in shown) == (answer == "n\n")


def test_a_long_upload_shows_a_bar_with_rate_and_time(project, edgecli, namespace_id):
    (project / "big.json").write_text(json.dumps([{"key": f"{i}", "value": "x" * 50} for i in range(20_000)]))

    code, shown = on_terminal(["kv", "bulk", "put", "big.json", "--namespace-id", namespace_id])

    assert code == 0, shown
    assert "Writing" in shown
    assert "100%" in shown
    assert "20000 pairs, " in shown
    assert shown.endswith("Success! 20000 pairs written.\n")


def test_nothing_is_coloured_or_moved_where_there_is_no_terminal(project, edgecli, namespace_id):
    (project / "pairs.json").write_text(json.dumps([{"key": f"{i}", "value": "x"} for i in range(3_000)]))

    done = edgecli("kv", "bulk", "put", "pairs.json", "--namespace-id", namespace_id)

    assert "\x1b" not in done.out + done.err
    assert "\r" not in done.out + done.err


OLD_CALLS = (
    ("kv:namespace", ("list",)),
    ("kv:namespace", ("create", "old-form", "--preview", "true")),
    ("kv:key", ("put", "k", "v", "--ttl", "60", "--metadata", "{}", "--namespace-id", LOCAL_ID, "--local")),
    ("kv:key", ("list", "--prefix", "x", "--namespace-id", LOCAL_ID, "--local")),
    ("kv:bulk", ("put", "p.json", "--namespace-id", LOCAL_ID, "--local=true")),
    ("kv:bulk", ("delete", "k.json", "--force", "--namespace-id", LOCAL_ID, "--local")),
)


@pytest.mark.parametrize(("old", "arguments"), OLD_CALLS)
def test_the_old_spelling_does_the_same_and_warns_once(edgecli, project, old, arguments):
    (project / "p.json").write_text('[{"key":"k","value":"v"}]')
    (project / "k.json").write_text('["k"]')

    done = edgecli(old, *arguments)

    assert done.code == 0, done.err
    assert done.err.startswith(
        f"Warning: `edgecli {old}` is deprecated and will be removed in a future version."
        f" Use `edgecli {OLD[old]}`.\n"
    )
    assert done.err.count("deprecated") == 1
    assert "deprecated" not in done.out


def test_the_old_spelling_takes_every_option(edgecli):
    for old, new in OLD.items():
        for command in edgecli(*new.split(), "--help").out.partition("Commands:\n")[2].split("\n"):
            if command.strip():
                name = command.split()[0]
                options = call(*new.split(), name, "--help").out.partition("Options:")[2]
                assert call(old, name, "--help").out.partition("Options:")[2] == options


def test_help_does_not_list_the_old_spelling(edgecli):
    assert "kv:" not in edgecli("--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(shell):
    done = call("completion", shell)

    assert done.code == 0
    assert f"{shell}_complete" in done.out


@pytest.mark.parametrize(
    ("words", "begun", "found"),
    [
        (("kv",), "na", [("plain", "namespace")]),
        (("kv", "namespace"), "re", [("plain", "rename")]),
        (("kv", "key", "put"), "--pa", [("plain", "--path")]),
        (("kv", "bulk", "put"), "p", [("file", "p")]),
        (("kv", "key", "put", "k", "--path"), "p", [("file", "p")]),
        (("kv", "key", "get", "k", "-c"), "p", [("file", "p")]),
        (("kv", "key", "get", "k", "--local", "--persist-to"), "p", [("dir", "p")]),
        (("kv:key",), "ge", [("plain", "get")]),
    ],
)
def test_words_options_and_files_are_completed(words, begun, found):
    complete = BashComplete(cli, {}, "edgecli", VARIABLE)

    assert [(item.type, item.value) for item in complete.get_completions(list(words), begun)] == found


def test_a_fault_of_ours_is_one_line_too(edgecli, monkeypatch):
    monkeypatch.setattr("edgestead.cli.kv.remote.RemoteNamespace.delete", lambda *arguments: 1 / 0)

    done = edgecli("kv", "key", "delete", "k", "--namespace-id", LOCAL_ID)

    assert done.code == 1
    assert done.err.startswith("Error: Unexpected ZeroDivisionError: division by zero\n")
    assert "EDGE_TRACEBACK=1" in done.err
