"""JSON with comments and trailing commas, as people write configuration.

Owns  reading it, and finding where a member's value stands in the text.
Not   what the members mean. Imports the standard library only.
"""

import json
import re
from typing import Any

# Possessive: each character is looked at once, whatever the text is. What does not end, ends the text.
_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_STRINGS_AND_COMMENTS = re.compile(rf"({_STRING})|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?", re.DOTALL)
_STRINGS_AND_LAST_COMMAS = re.compile(rf"({_STRING})|,(?=[ \t\r\n]*+[\]}}])", re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*+")
_NOT_LINE_END = re.compile(r"[^\n]")

_decode = json.JSONDecoder().raw_decode


def without_comments(text: str) -> str:
    """Text of the same length, with blanks for comments."""
    return _STRINGS_AND_COMMENTS.sub(lambda m: m[1] or _NOT_LINE_END.sub(" ", m[0]), text)


def blanked(text: str) -> str:
    """Plain JSON of the same length: comments and last commas are blanks, so places stay the same."""
    return _STRINGS_AND_LAST_COMMAS.sub(lambda m: m[1] or " ", without_comments(text))


def loads(text: str) -> Any:
    """Raises ValueError, with the line and column of the given text."""
    return json.loads(blanked(text))


def members(plain: str, start: int) -> dict[str, tuple[int, int]]:
    """Where each member's value begins and ends, of the object that begins at `start` of valid JSON."""
    places: dict[str, tuple[int, int]] = {}
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        name, at = _decode(plain, at)
        value = _skip(plain, _skip(plain, at) + 1)
        at = _decode(plain, value)[1]
        places[name] = (value, at)
        at = _skip(plain, at)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return places


def items(plain: str, start: int) -> list[tuple[int, int]]:
    """Where each item begins and ends, of the array that begins at `start` of valid JSON."""
    places = []
    at = _skip(plain, start + 1)
    while plain[at] != "]":
        end = _decode(plain, at)[1]
        places.append((at, end))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return places


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None
    return blanks.end()
