"""The reference page of dated changes, written from the rows.

Owns  the page's words around the facts.
Not   what a row means (`changes.wording`).
"""

from collections.abc import Iterator

from edgestead.changes import CHANGES, NEWEST, OLDEST, Change
from edgestead.changes.wording import after, before, endpoint_lines

_HEAD = f"""# Dated changes

<!-- Written by docs/generate.py; change the code instead. -->

The rows of the specification's deprecation list, newest first. A row holds from 00:00 UTC of its date on,
that day included. The date that counts is the server's: today, or what `--as-of` says; a server with
`--allow-as-of` also reads the header `Edge-As-Of: YYYY-MM-DD`, from {OLDEST} on. On {NEWEST} every row
holds. [How to use that](../how-to/dated-behaviours.md) to see a client at two dates.

What is gone says `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` in its answer; what goes on
answering for its replacement says `Deprecation` and `Link`. The links lead to `/docs/deprecations` of the
server, which says the same as this page, and to the replacement where the server has it. Who calls, and
whether the zone or account is theirs, is decided first: such refusals come without these headers. A method
that a row of a gone path does not name is 405 with `Allow` before the date, and 410 after it.
"""


def page() -> str:
    """docs/reference/changes.md: one heading for each row, by its subject."""
    return "\n".join([_HEAD, *("\n".join(_lines(change)) for change in CHANGES)])


def _lines(change: Change) -> Iterator[str]:
    yield f"## {change.subject}\n"
    yield f"**{change.day}** {change.title}. {change.advice()}\n"
    for line in endpoint_lines(change):
        yield f"* `{line}`"
    if change.members:
        yield f"* members of requests: {', '.join(f'`{member}`' for member in change.members)}"
    yield f"* before: {before(change)}"
    yield f"* since: {after(change)}\n"
