"""Which option goes with which storage method, and what it may be.

Owns  the matrix of the specification as a table, both spellings of each option; the same as types, for people
      whose classes a type checker reads.
Not   what an option does.

Source: spec "Object storage API", tables "Options" and "list options".
"""

from collections.abc import Mapping
from typing import Any, TypedDict

_COMMON: dict[str, tuple[type, frozenset[str]]] = {
    "allow_concurrency": (bool, frozenset("get list get_alarm set_alarm delete_alarm".split())),
    "no_cache": (bool, frozenset("get list put delete delete_all".split())),
    "allow_unconfirmed": (bool, frozenset("put delete delete_all set_alarm delete_alarm".split())),
}
_LIST: dict[str, tuple[type, frozenset[str]]] = {
    name: (kind, frozenset({"list"}))
    for name, kind in {
        "start": str,
        "start_after": str,
        "end": str,
        "prefix": str,
        "reverse": bool,
        "limit": int,
    }.items()
}
OPTIONS = _COMMON | _LIST
"""Option → (its type, the methods that take it)."""

# A checker knows no table: one of these for each set of methods with the same options. None is not given.


class ReadOptions(TypedDict, total=False):
    """Of get."""

    allow_concurrency: bool | None
    allowConcurrency: bool | None
    no_cache: bool | None
    noCache: bool | None


class ListOptions(ReadOptions, total=False):
    """Of list."""

    start: str | None
    start_after: str | None
    startAfter: str | None
    end: str | None
    prefix: str | None
    reverse: bool | None
    limit: int | None


class WriteOptions(TypedDict, total=False):
    """Of put, delete and delete_all."""

    allow_unconfirmed: bool | None
    allowUnconfirmed: bool | None
    no_cache: bool | None
    noCache: bool | None


class AlarmReadOptions(TypedDict, total=False):
    """Of get_alarm."""

    allow_concurrency: bool | None
    allowConcurrency: bool | None


class AlarmOptions(AlarmReadOptions, total=False):
    """Of set_alarm and delete_alarm."""

    allow_unconfirmed: bool | None
    allowUnconfirmed: bool | None


def camel(name: str) -> str:
    """`allow_concurrency` → `allowConcurrency`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_SPELLINGS = {spelling: name for name in OPTIONS for spelling in (name, camel(name))}


def read_options(method: str, mapping: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a call, given as one mapping, as keywords, or both.

    An option that is None is not given. Raises TypeError for an option that the method does not take, one
    that is given twice, or one of another type.
    """
    if mapping is None:
        mapping = {}
    elif not isinstance(mapping, Mapping):
        raise TypeError(f"{method}() takes its options as a mapping, not {type(mapping).__name__}")
    read: dict[str, Any] = {}
    for spelling, value in (*mapping.items(), *named.items()):
        name = _SPELLINGS.get(spelling)
        if name is None or method not in OPTIONS[name][1]:
            raise TypeError(f"{method}() has no option {spelling!r}")
        if value is None:
            continue
        if name in read:
            raise TypeError(f"{method}() got option {name!r} twice")
        kind = OPTIONS[name][0]
        if type(value) is not kind:
            raise TypeError(f"{method}() option {name!r} must be {kind.__name__}, not {type(value).__name__}")
        read[name] = value
    return read
