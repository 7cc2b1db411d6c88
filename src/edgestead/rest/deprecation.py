"""What tells a client what a date ended: headers, and the page of HTML that they lead to.

Owns  `Deprecation`, `Sunset` and `Link` of a dated row; the page's markup.
Not   when they are sent: from the row's day on; what a row says (`changes.wording`).

Source: RFC 9745 (Deprecation, relation "deprecation"), RFC 8594 (Sunset, relation "sunset"), RFC 5829
("successor-version"), RFC 8288 (Link; its targets are relative to the request). Only a path that is gone has
a Sunset. Nothing in them comes from the request but ids, which are hex.
"""

from collections.abc import Mapping
from email.utils import formatdate
from functools import cache
from html import escape

from edgestead.changes import CHANGES, Change
from edgestead.changes.wording import after, before, endpoint_lines
from edgestead.model.ids import is_id
from edgestead.rest.openapi_page import STYLE, prose
from edgestead.rest.routing import BASE_PATH

PAGE = "/docs/deprecations"

Headers = tuple[tuple[bytes, bytes], ...]


def headers_of(change: Change, ids: Mapping[str, str]) -> Headers:
    """`ids` are the parameters of the path that was asked for; a successor is named when they fill it."""
    seconds = change.day_us // 1_000_000
    page = f"<{PAGE}#{change.subject}>"
    links = [f'{page}; rel="deprecation"; type="text/html"']
    headers = [(b"deprecation", b"@%d" % seconds)]
    if change.removed:
        headers.append((b"sunset", formatdate(seconds, usegmt=True).encode()))
        links.append(f'{page}; rel="sunset"; type="text/html"')
    successor = successor_of(change, ids)
    if successor is not None:
        links.append(f'<{successor}>; rel="successor-version"')
    return (*headers, (b"link", ", ".join(links).encode()))


def successor_of(change: Change, ids: Mapping[str, str]) -> str | None:
    """The path to use instead, where this server has it."""
    known = {name: value for name, value in ids.items() if is_id(value)}
    try:
        return BASE_PATH + change.successor.format_map(known) if change.successor else None
    except KeyError:
        return None


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
