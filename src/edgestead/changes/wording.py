"""Sentences about dated changes, for the command line and for pages.

Owns  the sentences on what is answered before a row's day and from it on.
Not   the rows (`changes.table`).
"""

from collections.abc import Iterator

from edgestead.changes.model import Change, Kind

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


def before(change: Change) -> str:
    """What is answered until the day."""
    return change.earlier or _BEFORE[change.kind]


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
