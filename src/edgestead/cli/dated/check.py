"""`edgecli deprecations check`.

Owns  arguments, options, output and exit code of the command.
Not   how a use is recognised.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import click

from edgestead.changes import CHANGES, Change
from edgestead.cli.dated.files import Found, Unreadable, files_of, found_in, size_of
from edgestead.cli.failure import counted, warn
from edgestead.cli.progress import Progress
from edgestead.cli.table import show, words
from edgestead.cli.target import JSON, Command

FOUND_MAX = 100_000
_BY_SUBJECT = {change.subject: change for change in CHANGES}


class _Tally:
    """What was found, while it is printed."""

    def __init__(self, rows: frozenset[str]) -> None:
        self.rows = rows
        self.certain = self.possible = self.files = self.unread = 0

    def found(self, paths: list[str]) -> Iterator[Found]:
        """The uses in all files, until there are FOUND_MAX."""
        with Progress("Checked", "files", sum(map(size_of, paths))) as progress:
            for number, path in enumerate(paths):
                for place, one in enumerate(self._in(path)):
                    if self.certain + self.possible >= FOUND_MAX:
                        self.unread += len(paths) - number
                        warn(f"There are more than {FOUND_MAX} uses; the rest is not checked.")
                        return
                    self.files += place == 0
                    self.certain += one.is_certain
                    self.possible += not one.is_certain
                    yield one
                progress.advance(size_of(path), 1)

    def _in(self, path: str) -> Iterator[Found]:
        try:
            yield from found_in(path, self.rows)
        except Unreadable as reason:
            self.unread += 1
            warn(f"{path} is not checked to its end: {reason}.")
        except OSError as error:
            self.not_read(error, path)

    def not_read(self, error: OSError, path: str | None = None) -> None:
        self.unread += 1
        warn(f"{path or error.filename} is not checked: {error.strerror or error}.")


@click.command("check", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--as-of",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Only what ended or changed by this day; all of it by default.",
)
@click.option(
    "ignored",
    "--ignore",
    metavar="SUBJECT",
    multiple=True,
    type=click.Choice(list(_BY_SUBJECT), case_sensitive=False),
    help="Leave a row out; may be repeated.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for possible uses too.")
@JSON
def check(paths: tuple[str, ...], as_of: Any, ignored: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Find what a date ended or replaced in files and folders; - is the standard input.

    Source and configuration of any language, access logs (also packed with gzip) and HAR files are read. Each
    line that uses a dated path or member is shown with the date and what to use instead; a HAR file is shown
    by the number of its entry. A use is possible, not certain, when the path's zone or account does not stand
    in the line, or when a common name stands near a path that makes it likely. Binary files, links, .git and
    folders of installed packages are left out.

    Exit code 0 means that there are no certain uses, 1 that there are, or that a file could not be read.

    \b
      edgecli deprecations check src --as-of 2025-06-16
    """
    day = as_of.date() if as_of else date.max
    rows = frozenset(c.subject for c in CHANGES if c.day <= day and c.subject not in ignored)
    tally = _Tally(rows)
    files = files_of(paths, tally.not_read)
    found = tally.found(files)
    facts = (_facts(one, _BY_SUBJECT[one.subject]) for one in found)
    show(facts, lambda: _echo_lines(found), as_json=as_json)
    if not as_json:
        click.echo(_summary(tally, len(files)), err=True)
    if tally.certain or tally.unread or (strict and tally.possible):
        click.get_current_context().exit(1)


def _echo_lines(found: Iterable[Found]) -> None:
    for one in found:
        click.echo(_line(one, _BY_SUBJECT[one.subject]))


def _line(one: Found, change: Change) -> str:
    """In the form that editors and CI services read: path:line:column: message."""
    where = f"{words(one.path)}:{one.line}:" + (f"{one.column}:" if one.column else "")
    possible = "" if one.is_certain else "possibly "
    return f"{where} {possible}{change.subject} ({change.day}): {words(one.text)}. {change.advice()}"


def _facts(one: Found, change: Change) -> dict[str, Any]:
    return {
        "path": one.path,
        "line": one.line,
        "column": one.column or None,
        "subject": change.subject,
        "date": str(change.day),
        "certain": one.is_certain,
        "text": one.text,
        "replacement": change.replacement or None,
    }


def _summary(tally: _Tally, files: int) -> str:
    uses = counted(tally.certain, "use")
    possible = f" and {counted(tally.possible, 'possible use')}" if tally.possible else ""
    unread = f"; {counted(tally.unread, 'file')} could not be read" if tally.unread else ""
    return f"{uses}{possible} in {tally.files} of {counted(files, 'file')}{unread}."
