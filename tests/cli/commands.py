"""The tree of commands, walked.

Owns  every command by its words, and the examples of its help as words of a shell.
Not   what is asked of them (`test_every_command`).
"""

import inspect
import re
import shlex
from typing import NamedTuple

import click

from edgestead.cli.main import cli


class Found(NamedTuple):
    """A command that does something; `words` are its place, `flags` all spellings of its options."""

    words: str
    command: click.Command

    @property
    def options(self):
        return [one for one in self.command.params if isinstance(one, click.Option)]

    @property
    def flags(self):
        return {flag for option in self.options for flag in (*option.opts, *option.secondary_opts)}

    @property
    def arguments(self):
        return [one for one in self.command.params if isinstance(one, click.Argument)]

    def examples(self):
        """Each as words, without `edgecli` and without what a shell does around it."""
        place = rf"edgecli {re.escape(self.words)}(?= |$|\)|>)"
        lines = inspect.cleandoc(self.command.help or "").splitlines()
        for number, line in enumerate(lines):
            if not line.startswith("  ") or not re.search(place, line):
                continue
            whole = line
            for more in lines[number + 1 :]:
                if "edgecli" in more or not re.match(" {4,}[^ \b]", more):
                    break
                whole += more
            start = re.search(place, whole).start()
            call = whole[start:]
            if whole[:start].endswith("$("):
                call = call.partition(")")[0]
            call = re.sub(r"\$\([^)]*\)", "word", call)
            yield shlex.split(re.split(r" [|<>] ", call)[0])[1:]


def root():
    """The context that a call of edgecli begins with; what a command makes of another one, it keeps."""
    return click.Context(cli, info_name="edgecli", **cli.context_settings)


def every_command():
    """In the order of help."""
    yield from _below(cli, root(), "")


def every_group():
    """The words of each group, `""` for the first."""
    for words, _ in _groups(cli, root(), ""):
        yield words


def _below(group, context, words):
    for name, command, inner in _members(group, context):
        place = f"{words} {name}".strip()
        if isinstance(command, click.Group):
            yield from _below(command, inner, place)
        else:
            yield Found(place, command)


def _groups(group, context, words):
    yield words, group
    for name, command, inner in _members(group, context):
        if isinstance(command, click.Group):
            yield from _groups(command, inner, f"{words} {name}".strip())


def _members(group, context):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield name, command, click.Context(command, parent=context, info_name=name)
