"""The command edgecli: its groups by name, each imported only when it is called.

Owns  the list of commands, and how a failure of any of them reads.
Asks  the modules in COMMANDS.
Tells the shell through exit codes: 0 done, 1 could not, 2 was called wrongly.
Not   what a command does. Imports click and the standard library only, because `edgecli kv` starts here.
"""

import importlib
import sys
from typing import NamedTuple

import click

from edgestead import __version__


class Command(NamedTuple):
    """Where a command lives. `summary` is its line in `edgecli --help`, so that help imports nothing."""

    module: str
    attribute: str
    summary: str


COMMANDS: dict[str, Command] = {
    "serve": Command("edgestead.cli.serve", "serve", "Run the server."),
    "env": Command(
        "edgestead.cli.env", "env", "Print a running server's addresses and credentials for a shell."
    ),
    "credentials": Command(
        "edgestead.cli.credentials", "credentials", "Renew the key and token in the data folder."
    ),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries before it has imported them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        command = getattr(importlib.import_module(found.module), found.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


def _print_version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    """Not click's own option: that reads the version from importlib.metadata, 30 ms later."""
    if asked:
        click.echo(f"edgecli {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def cli() -> None:
    """Edgestead: an edge platform that you run yourself."""


def main() -> None:
    """Run the command line of this process and exit."""
    sys.exit(cli.main(prog_name="edgecli", standalone_mode=True))
