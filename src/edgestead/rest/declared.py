"""What a route declares of itself beside its path: query parameters, body, answer.

Owns  the words of such declarations.
Not   reading a request: tests/rest/test_openapi.py holds handlers to what they declare.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from edgestead.model.envelope import ResultInfo
from edgestead.rest.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX

JSON = "application/json"
OCTETS = "application/octet-stream"
FORM = "multipart/form-data"
TEXT = "text/plain"
ANYTHING = "*/*"  # of an answer whose status is anything, too

Kind = Literal["string", "integer", "boolean"]


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a query string. `choices` are all that it may be; a `repeated` one may come often."""

    name: str
    summary: str
    kind: Kind = "string"
    choices: tuple[str, ...] = ()
    default: str | int | bool | None = None
    repeated: bool = False


class Answers(msgspec.Struct, frozen=True):
    """A success. `result` is the type of that member of the envelope, `info` of `result_info`.

    With another media type than JSON there is no envelope, nor where it is `bare`; with status 204 there is
    nothing.
    """

    result: Any = Any
    info: Any = None
    media: str = JSON
    status: int = 200
    bare: bool = False


# Media types to what they hold; None is bytes.
Takes = Mapping[str, Any]

NOTHING = Answers(status=204)


def text(name: str, summary: str) -> Parameter:
    return Parameter(name, summary)


def number(name: str, summary: str) -> Parameter:
    return Parameter(name, summary, "integer")


def flag(name: str, summary: str) -> Parameter:
    return Parameter(name, summary, "boolean")


def choice(name: str, choices: Collection[str], default: str, summary: str) -> Parameter:
    return Parameter(name, summary, choices=tuple(choices), default=default)


DIRECTION = choice("direction", ("asc", "desc"), "asc", "Of the order.")


def pages(default: int = PAGE_SIZE_DEFAULT, size_max: int = PAGE_SIZE_MAX) -> tuple[Parameter, ...]:
    """`page` and `per_page`, as `Query.paging` reads them."""
    return (
        Parameter("page", "Pages are numbered from 1; one past the end is empty.", "integer", default=1),
        size("per_page", default, size_max),
    )


def size(name: str, default: int, size_max: int) -> Parameter:
    return Parameter(name, f"1 to {size_max}; more or less is clamped.", "integer", default=default)


def page_of(item: Any) -> Answers:
    """A page of a numbered list."""
    return Answers(list[item], ResultInfo)
