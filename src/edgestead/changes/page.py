"""The reference page of dated changes, written from the rows.

Owns  the text of docs/reference/changes.md, and what a row's kind means in words.
Asks  `changes.table`.
Tells docs/generate.py; `api.deprecations_page`, which shows the same on the server itself.
Not   anything at run time.
"""

from collections.abc import Iterator

from edgestead.changes.model import Change, Kind
from edgestead.changes.table import CHANGES, NEWEST, OLDEST

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
_BEFORE = {
    Kind.ENDPOINT: "400 with code 1197: the product ended before this server began.",
    Kind.ALIAS: "the routes answer, without the headers.",
    Kind.SETTING: "the setting is stored and answered, without the headers.",
    Kind.FIELD: "the older shape is answered and taken.",
    Kind.TRANSPORT: "as since: it is no matter of dates here.",
}
_AFTER = {
    Kind.ENDPOINT: "410 with code 1199 and the headers, whatever the method.",
    Kind.ALIAS: "the routes answer with the headers.",
    Kind.SETTING: "the setting is answered with the headers.",
    Kind.FIELD: "the newer shape.",
    Kind.TRANSPORT: "refused.",
}
_SETTING_REMOVED = (
    "400 with code 1006 (unrecognized zone setting) and the headers; the collection has it no more."
)


def reference_page() -> str:
    """One heading for each row, by its subject."""
    return "\n".join([_HEAD, *("\n".join(_lines(change)) for change in CHANGES)])


def before(change: Change) -> str:
    """What is answered until the day."""
    return _BEFORE[change.kind]


def after(change: Change) -> str:
    """What is answered from the day on."""
    kind = _SETTING_REMOVED if change.setting and change.removed else _AFTER[change.kind]
    return f"{kind} {change.note}".strip()


def endpoint_lines(change: Change) -> list[str]:
    """`"GET POST /path"` for each path, and what the day did not end but changed behind it."""
    return [*_by_path(change, affected=False), *_by_path(change, affected=True)]


def _by_path(change: Change, *, affected: bool) -> Iterator[str]:
    endpoints = change.affected if affected else change.endpoints
    for path in dict.fromkeys(endpoint.path for endpoint in endpoints):
        methods = " ".join(endpoint.method for endpoint in endpoints if endpoint.path == path)
        yield f"{methods} {path}{' (its contents)' if affected else ''}"


def _lines(change: Change) -> Iterator[str]:
    yield f"## {change.subject}\n"
    yield f"**{change.day}** {change.title}. {change.advice()}\n"
    for line in endpoint_lines(change):
        yield f"* `{line}`"
    if change.members:
        yield f"* members of requests: {', '.join(f'`{member}`' for member in change.members)}"
    yield f"* before: {before(change)}"
    yield f"* since: {after(change)}\n"
