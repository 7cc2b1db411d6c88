"""JSON bodies as arguments: ``{"a": [1, {"b": "x"}]}`` has ``json.a.array_0`` and ``json.a.array_1.b``.

Owns  names of members and elements.
Asks  json, whose hooks keep what a dictionary would lose: repeated members and numbers as written.
Tells `bodies`.
Not   the limit on bytes.

Source: ModSecurity 3.0.15 for the names; RFC 8259 for the text.
"""

import json
from typing import Any

from .limits import ARGUMENTS_MAX, JSON_DEPTH_MAX
from .transaction import Pair, Refused

EMPTY_KEY = "empty-key"
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
    try:
        document = _DECODER.decode(body.decode("utf-8"))
    except RecursionError:
        raise Refused("json-depth", 413) from None
    except ValueError:
        raise Refused("json-syntax", 400) from None
    walk = _Walk()
    walk.value("json", document, 0)
    return walk.found


class _Walk:
    def __init__(self) -> None:
        self.found: list[Pair] = []
        self.names_bytes = 0

    def value(self, path: str, value: Any, depth: int) -> None:
        if not isinstance(value, list):
            self.found.append((_bytes(path), _bytes(value) if isinstance(value, str) else _SPECIAL[value]))
            if len(self.found) > ARGUMENTS_MAX:
                raise Refused("arguments", 413)
            return
        if depth == JSON_DEPTH_MAX:
            raise Refused("json-depth", 413)
        members = value if isinstance(value, _Members) else [(f"array_{n}", v) for n, v in enumerate(value)]
        for key, member in members:
            inner = f"{path}.{key or EMPTY_KEY}"
            self.names_bytes += len(inner)
            if self.names_bytes > NAMES_BYTES_MAX:
                raise Refused("json-names", 413)
            self.value(inner, member, depth + 1)


_SPECIAL: dict[Any, bytes] = {None: b"", True: b"true", False: b"false"}


def _bytes(text: str) -> bytes:
    """UTF-8; a surrogate without its half, which escapes can write, as a question mark."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?").encode()
        )
