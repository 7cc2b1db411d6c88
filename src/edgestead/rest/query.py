"""The query string: parameters as text, and what a list asks for.

Owns  decoding, clamping of page sizes, the wording of refusals; which items of a list a page holds.
Not   what a filter means.

Unknown parameters are ignored. Page sizes are clamped; text where a number belongs is refused.
"""

from collections.abc import Collection, Sequence
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from edgestead.model.envelope import Listed, Page, page_of
from edgestead.model.refusals.request import InvalidQuery
from edgestead.rest.limits import PAGE_NUMBER_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, QUERY_PARAMETERS_MAX

_DIGITS_MAX = 18  # more is larger than any bound here
Direction = Literal["asc", "desc"]


class Query:
    """Parameters by name. A repeated one keeps every value, in order."""

    __slots__ = ("_read", "raw")

    def __init__(self, raw: bytes) -> None:
        """Nothing is read before it is asked for; then every method raises InvalidQuery for a query of more
        than QUERY_PARAMETERS_MAX, or that is not UTF-8.
        """
        self.raw = raw
        self._read: dict[str, list[str]] | None = None

    @property
    def _values(self) -> dict[str, list[str]]:
        if self._read is None:
            self._read = _parameters(self.raw)
        return self._read

    def text(self, *names: str) -> str | None:
        """The last value of the first of these names that was sent."""
        for name in names:
            if name in self._values:
                return self._values[name][-1]
        return None

    def every(self, name: str) -> list[str]:
        """Each value of a parameter that may be repeated, in order."""
        return self._values.get(name, [])

    @property
    def names(self) -> Collection[str]:
        """Of every parameter that was sent."""
        return self._values

    def __bool__(self) -> bool:
        return bool(self.raw)

    def flag(self, name: str) -> bool | None:
        """None when it was not sent. Raises InvalidQuery: neither `true` nor `false`, an empty text too, for
        what a write asks with it.
        """
        text = self.text(name)
        if text is None:
            return None
        if text not in ("true", "false"):
            raise InvalidQuery(parameter=name, reason="true or false is expected")
        return text == "true"

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Raises InvalidQuery: none of the choices."""
        text = self.text(name)
        if text is None or text == "":
            return default
        if text not in choices:
            raise InvalidQuery(parameter=name, reason="expected one of " + ", ".join(choices))
        return text

    def descending(self) -> bool:
        return self.choice("direction", ("asc", "desc"), "asc") == "desc"

    def paging(self, default: int = PAGE_SIZE_DEFAULT, size_max: int = PAGE_SIZE_MAX) -> "Paging":
        """`page` and `per_page`. Raises InvalidQuery: not a number, or a page before the first."""
        page = self._number("page", 1)
        if page < 1:
            raise InvalidQuery(parameter="page", reason="the first page is 1")
        return Paging(min(page, PAGE_NUMBER_MAX), max(1, min(self._number("per_page", default), size_max)))

    def limit(self, default: int, size_max: int) -> int:
        """`limit` of a cursor-style list, clamped. Raises InvalidQuery: not a number."""
        return max(1, min(self._number("limit", default), size_max))

    def whole(self, name: str) -> int | None:
        """A whole number, None when it was not sent. Raises InvalidQuery: not a number."""
        return self._number(name, 0) if self.text(name) else None

    def _number(self, name: str, default: int) -> int:
        text = self.text(name)
        if text is None or text == "":
            return default
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit():
            raise InvalidQuery(parameter=name, reason="a whole number is expected")
        number = int(digits) if len(digits) <= _DIGITS_MAX else PAGE_NUMBER_MAX
        return number if digits is text else -number


class Paging:
    """One page of a list: numbered from 1."""

    __slots__ = ("page", "per_page")

    def __init__(self, page: int, per_page: int) -> None:
        self.page = page
        self.per_page = per_page

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page

    def of(self, found: Listed) -> Page:
        """The page that holds what was found."""
        return page_of(found, self.page, self.per_page)

    def cut(self, everything: Sequence[Any]) -> Page:
        """This page of a list that is short enough to be read as a whole."""
        items = everything[self.offset : self.offset + self.per_page]
        return self.of(Listed(items, len(everything)))


def _parameters(raw: bytes) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    if not raw:
        return values
    pairs = raw.split(b"&", QUERY_PARAMETERS_MAX)
    if len(pairs) > QUERY_PARAMETERS_MAX:
        raise InvalidQuery(parameter="…", reason=f"there are more than {QUERY_PARAMETERS_MAX}")
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        values.setdefault(_text(name), []).append(_text(value))
    return values


def _text(raw: bytes) -> str:
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    try:
        return (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        raise InvalidQuery(parameter="…", reason="it is not UTF-8") from None
