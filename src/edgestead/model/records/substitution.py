r"""The substitution expression of NAPTR: `!pattern!replacement!flags`.

Owns  its shape, and that a replacement only refers back to groups that the pattern has.
Not   whether the pattern compiles: clients run it, we do not.

RFC 3402 §3.2. Other name servers check the same and refuse a whole zone over it, so a zone that is
transferred to them must not hold one that is wrong. The text is walked, never matched.
"""

from edgestead.model.names import InvalidValue

REFERENCE_MAX = 9  # one digit

_BACKSLASH, _OPEN, _CLOSE, _GROUP = b"\\[]("
_FLAGS = b"i"
_NO_DELIMITERS = b"123456789\\\0" + _FLAGS


def check_substitution(expression: bytes) -> None:
    """Raises InvalidValue; the empty expression is none, and right."""
    if not expression:
        return
    delimiter = expression[0]
    if delimiter in _NO_DELIMITERS or delimiter >= 0x80:
        raise InvalidValue("the regex must begin with a delimiter that is no digit, flag or backslash")
    parts = _split(expression[1:], delimiter)
    if len(parts) != 3:
        raise InvalidValue("the regex must have a pattern, a replacement and flags between three delimiters")
    pattern, replacement, flags = parts
    if flags.translate(None, _FLAGS):
        raise InvalidValue("the regex has flags other than i")
    groups = min(_groups(pattern), REFERENCE_MAX)
    if (highest := _highest_reference(replacement)) > groups:
        raise InvalidValue(f"the regex refers to group {highest} of {groups}")


def _split(text: bytes, delimiter: int) -> list[bytes]:
    """Cut at each delimiter that no backslash stands before."""
    parts, start, position = [], 0, 0
    while position < len(text):
        if text[position] == _BACKSLASH:
            position += 1
        elif text[position] == delimiter:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return [*parts, text[start:]]


def _groups(pattern: bytes) -> int:
    """How many groups open, outside of bracket expressions (POSIX.2 §9.3.5)."""
    groups = position = 0
    while position < len(pattern):
        if pattern[position] == _BACKSLASH:
            position += 1
        elif pattern[position] == _OPEN:
            position = _behind_brackets(pattern, position)
            continue
        elif pattern[position] == _GROUP:
            groups += 1
        position += 1
    return groups


def _behind_brackets(pattern: bytes, start: int) -> int:
    """A `]` right behind the opening, or behind `[^`, is a member, and classes such as [:digit:] nest."""
    position = start + 1
    position += pattern[position : position + 1] == b"^"
    position += pattern[position : position + 1] == b"]"
    while position < len(pattern) and pattern[position] != _CLOSE:
        if pattern[position] == _OPEN and pattern[position + 1 : position + 2] in (b":", b".", b"="):
            end = pattern.find(pattern[position + 1 : position + 2] + b"]", position + 2)
            position = len(pattern) if end < 0 else end + 1
        position += 1
    if position >= len(pattern):
        raise InvalidValue("the regex leaves a bracket open")
    return position + 1


def _highest_reference(replacement: bytes) -> int:
    highest = position = 0
    while position < len(replacement):
        if replacement[position] == _BACKSLASH:
            position += 1
            digit = replacement[position : position + 1]
            if digit in (b"", b"0"):
                raise InvalidValue("the regex has a backslash with nothing behind it to refer to")
            if digit.isdigit():
                highest = max(highest, int(digit))
        position += 1
    return highest
