"""The dated changes as one page of HTML, where the `Link` headers of dated answers lead to.

Owns  the page's markup.
Not   what a row means in words (`changes.wording`).
"""

from functools import cache
from html import escape

from edgestead.changes import CHANGES, Change
from edgestead.changes.wording import after, before, endpoint_lines
from edgestead.rest.openapi_page import STYLE, prose


@cache
def render() -> bytes:
    """The whole page; the id of each row is its subject."""
    rows = "\n".join(map(_row, CHANGES))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>Dated changes</title><style>{STYLE}</style></head><body>"
        "<h1>Dated changes</h1><p>From 00:00 UTC of its date on, that day included, a row holds.</p>"
        f"{rows}\n</body></html>\n"
    ).encode()


def _row(change: Change) -> str:
    endpoints = "".join(f"<li><code>{escape(line)}</code></li>" for line in endpoint_lines(change))
    return (
        f'<h2 id="{change.subject}">{change.day} {escape(change.title)}</h2>'
        f"<p>{escape(change.advice())}</p>{f'<ul>{endpoints}</ul>' if endpoints else ''}"
        f"<p>Before: {prose(before(change))}</p><p>Since: {prose(after(change))}</p>"
    )
