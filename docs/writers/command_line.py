"""The reference page of the command line, written from the commands' own help.

Owns  the page's words around it.
Not   a word of help.
"""

from collections.abc import Iterator

import click

from edgestead.cli.main import cli

_WIDTH = 100

_INTRODUCTION = """# Command line

| Exit code | |
|---|---|
| 0 | It did what was asked; or you answered a question with no, and nothing was done |
| 1 | It could not, and says why on stderr; or it found what it looks for: see below |
| 2 | It was called wrongly |

`plan --check` and `diff` end with 1 where something differs; `dns check`, `doctor`, `status`, `verify` and
`object verify` where something is wrong. What holds for all commands:

* **The zone** is the first word, or `--zone`, or the variable `EDGE_ZONE`, or the only one there is;
  `zone delete` has to be told which.
* **`--json`** prints what was done or found as JSON, and nothing else on stdout. Zone files, logs, scripts,
  generated Python and `kv` (which prints what wrangler prints) have a form of their own.
* **`--dry-run`** changes nothing. Rules, imports and plans are tried by the server; of everything else the
  request is shown that would be sent.
* **`-y`** answers the question that comes before something is removed or revoked. A script whose input ends
  without an answer changes nothing, and ends with 1.
* `EDGE_TRACEBACK=1` shows the inside of a fault that nobody expected.

`edgecli` in a checkout is `.venv/bin/edgecli`; `./scripts/serve` takes the
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
