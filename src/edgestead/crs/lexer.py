"""SecLang text into directives, arguments, targets and actions.

Owns  continuation lines, comments, quotes and separators.
Not   their meaning.

A directive ends at a line end without a backslash, and so does a comment: rules are commented out by one #
before their first line. A # line between the continued lines of a directive is left out. In double or single
quotes a backslash only escapes that quote; every other backslash belongs to the value, because regular
expressions are full of them.
"""

import re
from collections.abc import Iterator

_ACTION_PIECES = re.compile(r"\\'|[',\\]|[^',\\]+")  # what means nothing here is one piece
LINE_CHARS_MAX = 1 << 20  # one directive with all its continuations; the largest of CRS 4 has 12,000


def directives(text: str) -> Iterator[tuple[int, str]]:
    """(line number, directive) of every directive, continuations joined.

    Raises: ValueError for a directive longer than `LINE_CHARS_MAX`.
    """
    parts: list[str] = []
    start = size = 0
    in_comment = False
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        bare = line.strip()
        continued = line.endswith("\\")
        if in_comment or bare.startswith("#") or not (bare or parts):
            in_comment = continued and not parts
            continue
        start = start if parts else number
        parts.append(line[:-1] if continued else line)
        size += len(line)
        if size > LINE_CHARS_MAX:
            raise ValueError(f"a directive is longer than {LINE_CHARS_MAX} characters")
        if not continued:
            yield start, "".join(parts).strip()
            parts, size = [], 0
    if parts:
        yield start, "".join(parts).strip()


def arguments(directive: str) -> list[str]:
    """The directive's name and its arguments, quotes resolved. Raises: ValueError for an open quote."""
    found, position, end = [], 0, len(directive)
    while position < end:
        if directive[position].isspace():
            position += 1
        elif directive[position] in "\"'":
            value, position = _quoted(directive, position)
            if position < end and not directive[position].isspace():
                raise ValueError("expected a blank after a closing quote")
            found.append(value)
        else:
            start = position
            while position < end and not directive[position].isspace():
                position += 1
            found.append(directive[start:position])
    return found


def _quoted(text: str, opening: int) -> tuple[str, int]:
    quote, parts, position = text[opening], [], opening + 1
    while True:
        closing = text.find(quote, position)
        if closing < 0:
            raise ValueError("could not find an ending quote")
        if text[closing - 1] != "\\" or closing == opening + 1:
            parts.append(text[position:closing])
            return "".join(parts), closing + 1
        parts.append(text[position : closing - 1] + quote)
        position = closing + 1


def split_targets(text: str) -> list[str]:
    """Targets at each ``|`` outside of ``/patterns/`` and quotes. Raises: ValueError when one is open."""
    found, start, position, inside = [], 0, 0, ""
    while position < len(text):
        char = text[position]
        if inside:
            if char == "\\" and inside == "/":
                position += 1
            elif char == inside:
                inside = ""
        elif char == "|":
            found.append(text[start:position])
            start = position + 1
        elif text[position - 1 : position] == ":" and (char == "'" or _opens_pattern(text, start, position)):
            inside = char
        position += 1
    if inside:
        raise ValueError(f"could not find an ending {inside}")
    return [*found, text[start:]]


def _opens_pattern(text: str, start: int, position: int) -> bool:
    # XML's selector is an XPath, and begins with a slash without being a pattern
    return text[position] == "/" and not text[start : start + 8].lstrip("!& ").upper().startswith("XML:")


def split_actions(text: str) -> list[tuple[str, str]]:
    """(name, value) of each action, single quotes resolved. Raises: ValueError for an open quote."""
    found, current, quoted = [], [], False
    for piece in _ACTION_PIECES.findall(text):
        if piece == "\\'":
            current.append("'")
        elif piece == "'":
            quoted = not quoted
        elif piece == "," and not quoted:
            found.append("".join(current))
            current = []
        else:
            current.append(piece)
    if quoted:
        raise ValueError("could not find an ending ' in the actions")
    pairs = (action.partition(":") for action in [*found, "".join(current)])
    return [(name.strip(), value.strip()) for name, _, value in pairs if name.strip() or value.strip()]
