"""The headers that tell a client what a date ended, and where to read about it.

Owns  `Deprecation`, `Sunset` and `Link` of a dated row.
Not   when they are sent: from the row's day on.

Source: RFC 9745 (Deprecation, relation "deprecation"), RFC 8594 (Sunset, relation "sunset"), RFC 5829
("successor-version"), RFC 8288 (Link; its targets are relative to the request). Only a path that is gone has
a Sunset. Nothing in them comes from the request but ids, which are hex.
"""

from collections.abc import Mapping
from email.utils import formatdate

from edgestead.changes import Change
from edgestead.model.ids import is_id
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
