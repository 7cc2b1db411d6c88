"""Texts with ``%{...}`` in rules: split once, filled for a request.

Owns  how a macro names a variable, and the limit of what it expands to.
Not   the values.

Source: reference manual of ModSecurity v3, "Macro Expansion".
"""

from collections.abc import Callable
from typing import Protocol

from edgestead.waf.limits import MACRO_BYTES_MAX


class Source(Protocol):
    def macro(self, variable: str, key: bytes) -> bytes:
        """The first value of a variable, empty when there is none."""


Name = tuple[str, bytes]  # variable, upper case; key, lower case, empty for a single variable


class Macro:
    """`parts` are texts and names as they come; `constant` is the text when there is no name in it."""

    __slots__ = ("constant", "names", "parts")

    def __init__(self, text: bytes) -> None:
        self.parts: tuple[bytes | Name, ...] = tuple(_parts(text))
        self.names: tuple[Name, ...] = tuple(part for part in self.parts if isinstance(part, tuple))
        self.constant: bytes | None = None if self.names else text

    def expand(self, source: Source) -> bytes:
        """At most `MACRO_BYTES_MAX` bytes of it."""
        if self.constant is not None:
            return self.constant
        texts = [part if isinstance(part, bytes) else source.macro(*part) for part in self.parts]
        return b"".join(texts)[:MACRO_BYTES_MAX]

    @property
    def prefix(self) -> bytes:
        """What every expansion begins with."""
        first = self.parts[0] if self.parts else b""
        return first if isinstance(first, bytes) else b""

    def filled(self, known: Callable[[Name], bytes | None]) -> "Macro":
        """The macro with each name that is `known` replaced by its value."""
        if self.constant is not None:
            return self
        filled = Macro(b"")
        filled.parts = _merged([_known(part, known) for part in self.parts])
        filled.names = tuple(part for part in filled.parts if isinstance(part, tuple))
        filled.constant = None if filled.names else b"".join(p for p in filled.parts if isinstance(p, bytes))
        return filled


def _known(part: bytes | Name, known: Callable[[Name], bytes | None]) -> bytes | Name:
    value = known(part) if isinstance(part, tuple) else None
    return part if value is None else value


def _merged(parts: list[bytes | Name]) -> tuple[bytes | Name, ...]:
    out: list[bytes | Name] = []
    for part in parts:
        if isinstance(part, bytes) and out and isinstance(out[-1], bytes):
            out[-1] += part
        else:
            out.append(part)
    return tuple(out)


def _parts(text: bytes) -> list[bytes | Name]:
    parts: list[bytes | Name] = []
    position = 0
    while (start := text.find(b"%{", position)) >= 0 and (end := text.find(b"}", start)) >= 0:
        if start > position:
            parts.append(text[position:start])
        variable, _, key = text[start + 2 : end].partition(b".")
        if not key and b":" in variable:
            variable, _, key = variable.partition(b":")
        parts.append((variable.decode("latin-1").upper(), key.lower()))
        position = end + 1
    if position < len(text):
        parts.append(text[position:])
    return parts
