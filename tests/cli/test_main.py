"""edgecli: quick to start, clear when called wrongly."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from edgestead import __version__, config
from edgestead.cli.main import COMMANDS, cli
from edgestead.testing.server import environment

# Heavy modules that a short command must not pay for.
SLOW_TO_IMPORT = {"asyncio", "msgspec", "uvloop", "apsw", "logging", "importlib.metadata"}


def run(*arguments):
    return CliRunner().invoke(cli, arguments, prog_name="edgecli")


@pytest.mark.parametrize("arguments", ["--help", "--version", "nonsense"])
def test_the_command_itself_imports_nothing_heavy(arguments):
    program = f"""
import sys
from edgestead.cli.main import cli
try:
    cli.main([{arguments!r}], prog_name="edgecli")
except SystemExit:
    pass
print(sorted({SLOW_TO_IMPORT!r} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment()
    )

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["zone", "list"], ["record", "list", "a.example"], ["token", "list"]])
def test_a_command_over_the_api_imports_nothing_heavy(arguments):
    program = f"""
import sys
from edgestead.cli.main import cli
try:
    cli.main({arguments!r}, prog_name="edgecli")
except SystemExit:
    pass
print(sorted({SLOW_TO_IMPORT!r} & sys.modules.keys()))
"""
    nowhere = environment() | {"EDGE_API_BASE": "http://127.0.0.1:1/client/v4", "EDGE_TOKEN": "x"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=nowhere)

    assert "cannot be reached" in done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_lists_every_command():
    shown = run("--help").output

    assert all(f"  {name} " in shown for name in COMMANDS)


def test_the_version_is_the_packages():
    assert run("--version").output == f"edgecli {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    done = run(name, "--help")

    assert done.exit_code == 0
    assert done.output.startswith(f"Usage: edgecli {name}")


def test_an_unknown_command_is_a_wrong_call():
    done = run("dance")

    assert done.exit_code == 2
    assert "No such command 'dance'" in done.output


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("zones", "zone"),
        ("records list", "record"),
        ("zone ls", "list"),
        ("record add", "create"),
        ("object show", None),
        ("version", "--version"),
        ("help", "--help"),
        ("dance", None),
    ],
)
def test_an_unknown_command_is_told_what_is_like_it(words, meant):
    output = run(*words.split()).output

    assert output.endswith(f"Did you mean '{meant}'?\n" if meant else "'.\n")


def test_serve_has_a_flag_for_each_setting_that_has_one():
    shown = run("serve", "--help").output

    for option in config.OPTIONS:
        assert (f"--{option.key} " in shown) == option.flag


@pytest.mark.parametrize("command", ["env", "credentials rotate --yes", "credentials reset --yes"])
def test_a_command_on_a_folder_without_server_or_credentials_says_so(tmp_path, command):
    done = run(*command.split(), "--data-dir", str(tmp_path / "none"))

    assert done.exit_code == 1
    assert "Error: " in done.output
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("flag", [("--api", "foo"), ("--api", "127.0.0.1:99999"), ("--dns-workers", "none")])
def test_a_setting_that_cannot_be_is_a_wrong_call(tmp_path, flag):
    done = run("serve", "--data-dir", str(tmp_path / "none"), *flag)

    assert done.exit_code == 2
    assert f"Error: {flag[0][2:]} " in done.output
    assert not (tmp_path / "none").exists()
