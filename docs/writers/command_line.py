"""The reference page of the command line, written from the commands' own help.

Owns  the page's words around it.
Not   a word of help.
"""

from collections.abc import Iterator

import click

from edgestead.cli.main import cli

_WIDTH = 100

_INTRODUCTION = """# Command line

Every command exits with 0 when it did what was asked, with 1 and one line on stderr when it could not, and
with 2 when it was called wrongly. `edgecli` in a checkout is `.venv/bin/edgecli`; `./scripts/serve` takes the
options of `edgecli serve`."""


def page() -> str:
    """docs/reference/command-line.md."""
    sections = [f"## {path}\n\n```text\n{text}\n```" for path, text in _help_texts(cli, "edgecli", None)]
    return "\n\n".join([_INTRODUCTION, *sections]) + "\n"


def _help_texts(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """The command's own page, then those of what is below it."""
    settings = {**cli.context_settings, "terminal_width": _WIDTH, "max_content_width": _WIDTH}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context.command_path, context.get_help()
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _help_texts(found, below, context)
