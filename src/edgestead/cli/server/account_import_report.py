"""What an import found, did, and could not do.

Owns  the counts by kind of thing, the refusals, how both read.
Not   importing. Imports click and the standard library only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click

from edgestead.cli.failure import Failed
from edgestead.cli.http import Refused
from edgestead.cli.table import echo_table, words

REFUSALS_SHOWN_MAX = 50


class Refusal(NamedTuple):
    what: str
    reason: str


class Report:
    """Counts of one run. In a dry run `made` counts what would be made."""

    def __init__(self, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.refused: list[Refusal] = []
        self.left: list[str] = []  # what of the account is not carried over
        self._made: dict[str, int] = {}
        self._there: dict[str, int] = {}

    def made(self, kind: str, count: int = 1) -> None:
        self._made[kind] = self._made.get(kind, 0) + count

    def was_there(self, kind: str, count: int = 1) -> None:
        self._there[kind] = self._there.get(kind, 0) + count

    def refuse(self, what: str, failure: Failed) -> None:
        """Something was not taken; the run goes on."""
        reason = "; ".join(failure.messages) if isinstance(failure, Refused) else failure.message
        self.refused.append(Refusal(what, reason))

    @contextmanager
    def told(self, *, as_json: bool) -> Iterator[None]:
        """Print it at the end; and what there is of it, where the run breaks off."""
        tell = self._echo_json if as_json else self._echo
        try:
            yield
        except BaseException:
            if self._made or self._there or self.refused:
                tell()
            raise
        tell()

    def _echo(self) -> None:
        kinds = list(dict.fromkeys((*self._made, *self._there)))
        done = "would be made" if self.dry_run else "made"
        if kinds:
            rows = [(kind, self._made.get(kind, 0), self._there.get(kind, 0)) for kind in kinds]
            echo_table(("", done, "here already"), rows)
        else:
            click.echo("There is nothing to import.")
        for refusal in self.refused[:REFUSALS_SHOWN_MAX]:
            click.echo(f"Refused: {words(refusal.what)}: {words(refusal.reason)}", err=True)
        if len(self.refused) > REFUSALS_SHOWN_MAX:
            click.echo(f"Refused: {len(self.refused) - REFUSALS_SHOWN_MAX} more; --json lists all", err=True)

        for line in self.left:
            click.echo(f"Not carried over: {words(line)}", err=True)

    def _echo_json(self) -> None:
        import json

        whole = {
            "dry_run": self.dry_run,
            "made": self._made,
            "here_already": self._there,
            "refused": [refusal._asdict() for refusal in self.refused],
            "not_carried_over": self.left,
        }
        click.echo(json.dumps(whole, indent=2))
