"""JSON bodies as arguments: ``{"a": [1, {"b": "x"}]}`` has ``json.a.array_0`` and ``json.a.array_1.b``.

Owns  names of members and elements.
Not   the limit on bytes.

A document of many values would keep the loop for 30 ms, so it is read by a walk of our own, that can pause.
It costs four times as much and finds the same (`tests/waf/test_portions.py`): what is wrong in the writing
counts before what is too much.

Source: ModSecurity 3.0.15 for the names; RFC 8259 for the text.
"""

import json
import re
from collections.abc import Generator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from edgestead.waf.limits import ARGUMENTS_MAX, CALL_UNITS, JSON_DEPTH_MAX, at_once
from edgestead.waf.transaction import Pair, Refused

EMPTY_KEY = "empty-key"
AT_ONCE_MAX = 1_500  # commas and brackets of a document that is read at once: less than a millisecond
VALUES_AT_ONCE = 256  # in one portion of a larger one
NESTED_MAX = 1_000  # where json gives up, too
_BLANKS = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
NAMES_BYTES_MAX = 1 << 20  # all names together: each repeats the names around it


class _Members(list[tuple[str, Any]]):
    """An object's members in order, each as often as it is there."""


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant
)


def arguments(body: bytes) -> list[Pair]:
    """Each text, number, true, false and null (empty) under its path.

    Raises: Refused 400 for what is not JSON in UTF-8, 413 over `JSON_DEPTH_MAX`, `ARGUMENTS_MAX` or
    `NAMES_BYTES_MAX`.
    """
    return at_once(reading(body))


def reading(body: bytes, arguments_max: int = ARGUMENTS_MAX) -> Generator[int, None, list[Pair]]:
    """As `arguments`; tells the units of work of each portion."""
    try:
        text = body.decode("utf-8")
        if body.count(b",") + body.count(b"[") + body.count(b"{") > AT_ONCE_MAX:
            return (yield from _Reader(text, arguments_max).read())
        document = _DECODER.decode(text)
    except RecursionError:
        raise Refused("json-depth", 413) from None
    except ValueError:
        raise Refused("json-syntax", 400) from None
    walk = _Walk(arguments_max)
    walk.value("json", document, 0)
    yield CALL_UNITS * 4 * len(walk.found) + walk.names_bytes // 8
    return walk.found


class _Walk:
    def __init__(self, arguments_max: int) -> None:
        self._arguments_max = arguments_max
        self.found: list[Pair] = []
        self.names_bytes = 0

    def value(self, path: str, value: Any, depth: int) -> None:
        if not isinstance(value, list):
            self.keep(path, _bytes(value) if isinstance(value, str) else _SPECIAL[value])
            return
        if depth == JSON_DEPTH_MAX:
            raise Refused("json-depth", 413)
        members = value if isinstance(value, _Members) else [(f"array_{n}", v) for n, v in enumerate(value)]
        for key, member in members:
            self.value(self.name(path, key), member, depth + 1)

    def name(self, path: str, key: str) -> str:
        inner = f"{path}.{key or EMPTY_KEY}"
        self.names_bytes += len(inner)
        if self.names_bytes > NAMES_BYTES_MAX:
            raise Refused("json-names", 413)
        return inner

    def keep(self, path: str, value: bytes) -> None:
        self.found.append((_bytes(path), value))
        if len(self.found) > self._arguments_max:
            raise Refused("arguments", 413)


class _Reader:
    """A walk over a document's text. The first thing that is too much is kept until all of it was read."""

    def __init__(self, text: str, arguments_max: int) -> None:
        self._text = text
        self._at = 0
        self._path = "json"
        self._open: list[tuple[str, str]] = []  # the path and the closing bracket of what is open
        self._numbers: list[int] = []  # of the elements of each
        self._walk = _Walk(arguments_max)
        self._trouble: Refused | None = None

    def read(self) -> Generator[int, None, list[Pair]]:
        """Raises: ValueError for what is not JSON; RecursionError; Refused as `arguments`."""
        self._skip()
        values = 0
        while True:
            values += 1
            if values % VALUES_AT_ONCE == 0:
                yield 6 * CALL_UNITS * VALUES_AT_ONCE
            if self._begins():
                continue
            if not self._follows():
                break
        if self._at != len(self._text):
            raise ValueError("more behind the document")
        if self._trouble is not None:
            raise self._trouble
        return self._walk.found

    def _skip(self, octets: int = 0) -> str:
        """Past so much and past blanks; what stands there."""
        found = _BLANKS.match(self._text, self._at + octets)
        assert found is not None
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _begins(self) -> bool:
        """Take a value, or the bracket that opens one; whether a value inside of it is next."""
        bracket = self._text[self._at : self._at + 1]
        if bracket == '"':
            value, self._at = scanstring(self._text, self._at + 1, True)
            self._keep(value)
            return False
        if bracket not in ("[", "{"):
            found = _SCALAR.match(self._text, self._at)
            if found is None:
                raise ValueError("no value")
            self._at = found.end()
            self._keep("" if found[0] == "null" else found[0])
            return False
        if len(self._open) >= NESTED_MAX:
            raise RecursionError
        if len(self._open) == JSON_DEPTH_MAX:
            self._note(Refused("json-depth", 413))
        self._open.append((self._path, "]" if bracket == "[" else "}"))
        self._numbers.append(0)
        if self._skip(1) != self._open[-1][1]:
            self._name()
            return True
        return False

    def _follows(self) -> bool:
        """Close what ends here; whether another value is next."""
        while self._open:
            closing = self._open[-1][1]
            found = self._skip()
            if found == ",":
                self._skip(1)
                self._name()
                return True
            if found != closing:
                raise ValueError("neither another value nor the end")
            self._at += 1
            self._open.pop()
            self._numbers.pop()
        self._skip()
        return False

    def _name(self) -> None:
        """The path of the next value; a member's name is taken."""
        path, closing = self._open[-1]
        if closing == "]":
            name = f"array_{self._numbers[-1]}"
            self._numbers[-1] += 1
        else:
            if self._text[self._at : self._at + 1] != '"':
                raise ValueError("no name")
            name, self._at = scanstring(self._text, self._at + 1, True)
            if self._skip() != ":":
                raise ValueError("no colon")
            self._skip(1)
        if self._trouble is None:
            try:
                self._path = self._walk.name(path, name)
            except Refused as refused:
                self._note(refused)

    def _keep(self, value: str) -> None:
        if self._trouble is None:
            try:
                self._walk.keep(self._path, _bytes(value))
            except Refused as refused:
                self._note(refused)

    def _note(self, refused: Refused) -> None:
        self._trouble = self._trouble or refused


_SPECIAL: dict[Any, bytes] = {None: b"", True: b"true", False: b"false"}


def _bytes(text: str) -> bytes:
    """UTF-8; a surrogate without its half, which escapes can write, as a question mark."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?").encode()
        )
