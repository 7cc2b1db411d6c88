"""Rows and members as the commands print them for people.

Owns  columns, cutting a line to the terminal, the words for yes, no and nothing.
Asks  click.
Tells stdout.
Not   JSON (`cli.output`). Imports click and the standard library only.

Only a terminal gets lines cut; a pipe and a file get all of every line. Characters that a terminal would obey
are shown as escapes: what others wrote into a zone must not move the cursor of whoever lists it.
"""

import shutil
import sys
from collections.abc import Iterable, Sequence

import click

NOTHING = "-"
_GAP = "  "
_CUT = "…"


def echo_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A line of heads, then the rows, in columns as wide as their widest text."""
    lines = [tuple(heads), *(tuple(map(words, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    columns_max = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        text = _GAP.join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        if columns_max is not None and len(text) > columns_max:
            text = text[: columns_max - 1] + _CUT
        click.echo(text)


def echo_members(members: Iterable[tuple[str, object]]) -> None:
    """One line a member: its name, and its value in a column of its own."""
    shown = [(name, words(value)) for name, value in members]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        click.echo(f"{name:<{width}}{_GAP}{value}")


def words(value: object) -> str:
    """A value as text on one line."""
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(words, value))
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
