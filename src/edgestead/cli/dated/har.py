"""Recorded requests (HAR) that use what a date ended or replaced.

Owns  reading the requests of a HAR file.
Not   answers: what a server sent is not what the client uses.

Source: HAR 1.2, `log.entries[].request`: `method`, `url`, `postData.text`.
"""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from edgestead.changes import CHANGES
from edgestead.changes.members import found, watched

BODY_CHARACTERS_MAX = 8 << 20  # a longer body is not looked into
_BASE = "/client/v4/"
_ENDED = tuple(
    (path.removeprefix("/").split("/"), change.subject)
    for change in CHANGES
    for path in dict.fromkeys(endpoint.path for endpoint in change.endpoints)
)
_WATCHED = tuple(
    (endpoint.method, endpoint.path.removeprefix("/").split("/"), watched(endpoint.method, endpoint.path))
    for endpoint in dict.fromkeys(endpoint for change in CHANGES for endpoint in change.affected)
)


class _Post(msgspec.Struct, frozen=True):
    text: str = ""


class _Request(msgspec.Struct, frozen=True):
    method: str
    url: str
    postData: _Post | None = None


class _Entry(msgspec.Struct, frozen=True):
    request: _Request


class _Log(msgspec.Struct, frozen=True):
    entries: list[_Entry]


class _Har(msgspec.Struct, frozen=True):
    """What is read of a file: answers are passed over, and take no memory."""

    log: _Log


class HarUse(NamedTuple):
    """Entries are numbered from 1."""

    entry: int
    subject: str
    text: str


def uses(octets: bytes) -> Iterator[HarUse]:
    """Raises ValueError: no HAR."""
    for number, entry in enumerate(_decode(octets).log.entries, 1):
        yield from _of_request(number, entry.request)


def _of_request(number: int, request: _Request) -> Iterator[HarUse]:
    method, path = request.method.upper(), _api_path(request.url)
    if path is None:
        return
    parts = path.rstrip("/").split("/")
    for wanted, subject in _ENDED:
        if _fits(parts, wanted):
            yield HarUse(number, subject, f"{method} /{path}")
            return
    body = request.postData.text if request.postData else ""
    if len(body) <= BODY_CHARACTERS_MAX:
        yield from _of_body(number, method, parts, path, body)


def _of_body(number: int, method: str, parts: list[str], path: str, body: str) -> Iterator[HarUse]:
    for its_method, wanted, watches in _WATCHED:
        if method == its_method and _fits(parts, wanted):
            try:
                held = list(found(watches, body.encode("utf-8", "replace")))
            except ValueError:
                return  # no JSON: the server would refuse it for that
            for watch in held:
                yield HarUse(number, watch.subject, f"{method} /{path} with {watch.member}")


def _api_path(url: str) -> str | None:
    """What follows the base path of the API; None for requests to anything else."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    at = path.find(_BASE)
    return path[at + len(_BASE) :] if at >= 0 else None


def _fits(parts: list[str], wanted: list[str]) -> bool:
    if wanted[-1].endswith("*}"):
        wanted = wanted[:-1]
        parts = parts[: len(wanted)]
    return len(parts) == len(wanted) and all(
        bool(part) if want.startswith("{") else part == want for part, want in zip(parts, wanted, strict=True)
    )


_decode = msgspec.json.Decoder(_Har).decode
