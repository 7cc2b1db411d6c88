"""`edgecli deprecations list|show|usage`.

Owns  arguments, options and output of the three commands.
Not   finding uses in files (`cli.dated.check`).
"""

from collections.abc import Iterator
from typing import Any

import click

from edgestead.changes import CHANGES, Change
from edgestead.changes.wording import after, before, endpoint_lines
from edgestead.cli.failure import Failed
from edgestead.cli.table import echo_members, echo_table, show
from edgestead.cli.target import JSON, Command, Json, api, pages

_HEADS = ("date", "subject", "kind", "title")
_USAGE_HEADS = ("credential", "count", "last used", "subject", "endpoint", "member")


@click.command("list", cls=Command)
@JSON
def list_rows(as_json: bool) -> None:
    """List what dates ended or replaced, newest first.

    \b
      edgecli deprecations list
    """
    show(map(_facts, CHANGES), lambda: echo_table(_HEADS, map(_row, CHANGES)), as_json=as_json)


def _row(change: Change) -> tuple[object, ...]:
    return (change.day, change.subject, change.kind, change.title)


@click.command("show", cls=Command)
@click.argument("subject", metavar="SUBJECT")
@JSON
def show_row(subject: str, as_json: bool) -> None:
    """Show the row SUBJECT: its endpoints, what to use instead, what is answered before and since.

    \b
      edgecli deprecations show rate-limits
    """
    change = next((change for change in CHANGES if change.subject == subject), None)
    if change is None:
        raise Failed(f"There is no row {subject}. `edgecli deprecations list` shows them.")
    show(_facts(change), lambda: echo_members(_members(change)), as_json=as_json)


@click.command("usage", cls=Command)
@JSON
def usage(as_json: bool) -> None:
    """Show which credentials still use what a date ended or replaced, the latest first.

    The server counts uses by token. They are those of all tokens, so this asks for the permission Account
    Settings Read.

    \b
      edgecli deprecations usage
    """
    from edgestead.cli.http import account_of, segment

    server = api()
    account = segment(account_of(server, None))
    found = pages(server, f"/accounts/{account}/deprecations/usage", {})
    rows = (row for one in found for row in _usage_rows(one))
    show(found, lambda: echo_table(_USAGE_HEADS, rows), as_json=as_json)


def _usage_rows(one: Json) -> Iterator[tuple[object, ...]]:
    name = f"{one['credential']['type']} {one['credential']['name']}"
    for use in one["uses"]:
        yield (name, use["count"], use["last_used_on"], use["subject"], use["endpoint"], use["member"])


def _members(change: Change) -> Iterator[tuple[str, object]]:
    yield "subject", change.subject
    yield "title", change.title
    yield "date", change.day
    yield "kind", change.kind
    for line in endpoint_lines(change):
        yield "endpoint", line
    if change.members:
        yield "members", list(change.members)
    yield "instead", change.advice()
    yield "before", before(change)
    yield "since", after(change)


def _facts(change: Change) -> dict[str, Any]:
    return {
        "subject": change.subject,
        "date": str(change.day),
        "kind": str(change.kind),
        "title": change.title,
        "replacement": change.replacement or None,
        "removed": change.removed,
        "endpoints": [f"{one.method} {one.path}" for one in change.endpoints],
        "affected": [f"{one.method} {one.path}" for one in change.affected],
        "members": list(change.members),
        "before": before(change),
        "since": after(change),
    }
