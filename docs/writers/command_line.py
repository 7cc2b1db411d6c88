"""The reference page of the command line, written from the commands' own help.

Owns  the page's words around it, and which options are said once for all commands that have them.
Not   a word of help.
"""

import copy
from collections import Counter
from collections.abc import Iterator, Mapping

import click

from edgestead.cli.main import cli

_WIDTH = 100
_SHARED_BY = 8  # as many commands have an option with the same words: it is said once

_INTRODUCTION = """# Command line

| Exit code | |
|---|---|
| 0 | It did what was asked; or you answered a question with no, and nothing was done |
| 1 | It could not, and says why on stderr; or it found what it looks for: see below |
| 2 | It was called wrongly |

`plan --check` and `diff` end with 1 where something differs, `deprecations check` where something is found,
`import` where something was refused; `dns check`, `dns dnssec`, `dns secondary show`, `doctor`, `status`,
`verify`, `object verify`, `cluster status` and `cluster upgrade-check` where something is wrong. What holds
for all commands:

* **The zone** is the first word, or `--zone`, or the variable `EDGE_ZONE`, or the only one there is;
  `zone delete` has to be told which.
* **`--json`** prints what was done or found as JSON, and nothing else on stdout. Zone files, logs, scripts,
  generated Python and `kv` (which prints what wrangler prints) have a form of their own.
* **`--dry-run`** changes nothing. Rules, imports and plans are tried by the server; of everything else the
  request is shown that would be sent.
* **`-y`** answers the question that comes before something is removed or revoked. A script whose input ends
  without an answer changes nothing, and ends with 1.
* **`-h`, `--help`** prints what stands here.
* `EDGE_TRACEBACK=1` shows the inside of a fault that nobody expected.

`edgecli` in a checkout is `.venv/bin/edgecli`; `./scripts/serve` takes the
options of `edgecli serve`."""


_SHARED = """## Options of many commands

What a command has of these stands below it by name.

| option | what it does |
|---|---|
{rows}"""


def page() -> str:
    """docs/reference/command-line.md."""
    commands = list(_below(cli, "edgecli", None))
    shared = _shared(commands)
    rows = "\n".join(f"| `{names}` | {words} |" for names, words in sorted(shared.values()))
    sections = [_section(context, shared) for context in commands]
    return "\n\n".join([_INTRODUCTION, _SHARED.format(rows=rows), *sections]) + "\n"


def _below(command: click.Command, name: str, parent: click.Context | None) -> Iterator[click.Context]:
    """The command, then those below it."""
    settings = {**cli.context_settings, "terminal_width": _WIDTH, "max_content_width": _WIDTH}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _below(found, below, context)


def _shared(commands: list[click.Context]) -> Mapping[str, tuple[str, str]]:
    """By its long name, an option as help has it; of several with one name that of the most commands."""
    found: Counter[tuple[str, tuple[str, str]]] = Counter()
    for context in commands:
        for param in context.command.params:
            if isinstance(param, click.Option) and (record := param.get_help_record(context)):
                found[param.opts[-1], record] += 1
    most = [row for row, count in found.most_common() if count >= _SHARED_BY]
    return dict(reversed(most))


def _section(context: click.Context, shared: Mapping[str, tuple[str, str]]) -> str:
    """A command's help without the options of many; below it their names."""
    left: list[str] = []
    own: list[click.Parameter] = []
    for param in context.command.params:
        is_option = isinstance(param, click.Option)
        record = param.get_help_record(context) if is_option else None
        if record and shared.get(param.opts[-1]) == record:
            left.append(f"`{param.opts[-1]}`")
        else:
            own.append(param)
    command = copy.copy(context.command)
    command.params, command.add_help_option = own, False
    text = f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
    return (
        f"{text}\n\nAlso, as [many commands](#options-of-many-commands): {', '.join(left)}." if left else text
    )
