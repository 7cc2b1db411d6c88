"""Rows and members as the commands print them for people.

Owns  columns, cutting a line to the terminal, the words for yes, no and nothing; which of a table and JSON
      an answer is printed as.
Not   JSON (`cli.output`). Imports click and the standard library only.

Only a terminal gets lines cut; a pipe and a file get all of every line. Characters that a terminal would obey
are shown as escapes: what others wrote into a zone must not move the cursor of whoever lists it.
"""

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence

import click

from edgestead.cli.target import Json

NOTHING = "-"
_GAP = "  "
_CUT = "…"


def show(found: Json | Iterable[Json], as_text: Callable[[], None], *, as_json: bool) -> None:
    """What a command found: as JSON, or what `as_text` prints for people."""
    if not as_json:
        as_text()
        return
    from edgestead.cli.output import echo_array, echo_object

    if isinstance(found, dict):
        echo_object(found.items())
    else:
        echo_array(found)


def show_list(
    found: Iterable[Json], heads: Sequence[str], row: Callable[[Json], Iterable[object]], *, as_json: bool
) -> None:
    """A list: a table for people."""
    show(found, lambda: echo_table(heads, map(row, found)), as_json=as_json)


def show_one(found: Json, members: Callable[[Json], Iterable[tuple[str, object]]], *, as_json: bool) -> None:
    """One thing: a line a member for people."""
    show(found, lambda: echo_members(members(found)), as_json=as_json)


def show_lines(found: Json | Iterable[Json], *lines: str, as_json: bool) -> None:
    """What a command did or found: sentences for people."""
    show(found, lambda: click.echo("\n".join(lines), nl=bool(lines)), as_json=as_json)


def echo_table(heads: Sequence[str], rows: Iterable[Iterable[object]], none: str = "There are none.") -> None:
    """A line of heads, then the rows, in columns as wide as their widest text.

    Where there are no rows a terminal gets the sentence `none`; a pipe and a file get the heads, as always.
    """
    lines = [tuple(heads), *(tuple(map(words, row)) for row in rows)]
    columns_max = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if len(lines) == 1 and columns_max is not None:
        click.echo(none)
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
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
