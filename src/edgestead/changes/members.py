"""Dated members in the bodies of requests.

Owns  which routes take one, and finding it in a body.
Not   refusing or ignoring a member: its own resource does.

A body is parsed only when it contains the names as bytes; for others the cost is one search.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from edgestead.changes.table import CHANGES

_EVERY = "*"  # each item of a list, each value of an object
_SETTING_IDS = ("items", _EVERY, "id")
# The specification names no batch among the routes of a row, and records in one are records all the same.
_BATCHES = {
    ("POST", "/zones/{zone_id}/dns_records/batch"): ("POST", "/zones/{zone_id}/dns_records"),
}
_IN_A_BATCH = (_EVERY, _EVERY)  # its lists, their records
_decode = msgspec.json.Decoder().decode


class Watch(NamedTuple):
    """A member of a body: its path and its value. `value` None is anything but null."""

    subject: str
    member: str
    path: tuple[str, ...]
    value: str | None = None


@cache  # of a few dozen watches, for every body
def _needles(watch: Watch) -> tuple[bytes, ...]:
    """The bytes in every body with the member, unless its name is written with escapes."""
    names = [part for part in watch.path if part != _EVERY] + ([watch.value] if watch.value else [])
    return tuple(f'"{name}"'.encode() for name in names)


def watched(method: str, path: str) -> tuple[Watch, ...]:
    """The dated members that this route's bodies may have."""
    if (method, path) in _BATCHES:
        alone = watched(*_BATCHES[method, path])
        return tuple(watch._replace(path=(*_IN_A_BATCH, *watch.path)) for watch in alone)
    return tuple(
        watch
        for change in CHANGES
        if method != "GET" and any((one.method, one.path) == (method, path) for one in change.affected)
        for watch in (
            *(Watch(change.subject, member, tuple(member.split("/"))) for member in change.members),
            *([Watch(change.subject, "items", _SETTING_IDS, change.setting)] if change.setting else ()),
        )
    )


def found(watches: Sequence[Watch], octets: bytes) -> Iterator[Watch]:
    """The dated members in a body, which is decoded JSON."""
    likely = [watch for watch in watches if _may_hold(octets, watch)]
    if likely:
        body = _decode(octets)
        yield from (watch for watch in likely if _holds(body, watch.path, watch.value))


def _may_hold(octets: bytes, watch: Watch) -> bool:
    for needle in _needles(watch):  # half of the time of `all`, for every body of the API
        if needle not in octets:
            return False
    return True


def _holds(value: Any, path: tuple[str, ...], wanted: str | None) -> bool:
    if not path:
        return value is not None if wanted is None else bool(value == wanted)
    first, *rest = path
    if first == _EVERY:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(_holds(item, tuple(rest), wanted) for item in items)
    return isinstance(value, dict) and _holds(value.get(first), tuple(rest), wanted)
