"""$GENERATE: one line that stands for many.

Owns  its range and its `$` patterns, and their limits.
Not   reading the lines that come out.

    $GENERATE 1-3 host-$ A 192.0.2.$          three A records
    $GENERATE 0-9/2 $ PTR host${100,4,d}.     offset, width and base: d, o, x or X

`$$` and a dollar sign behind a backslash stand for themselves.
"""

from collections.abc import Iterator

from edgestead.model.names import InvalidValue, shown

GENERATED_MAX = 10_000  # records of one directive
NUMBER_MAX = 2**31 - 1  # fits in 31 bits, as in BIND
WIDTH_MAX = 64  # more digits than a label has characters
PATTERN_CHARACTERS_MAX = 4_096  # more than the longest record that one makes
_BASES = {"d": "d", "o": "o", "x": "x", "X": "X"}


def numbers(text: str) -> range:
    """Read `start-stop` or `start-stop/step`. Raises: InvalidValue."""
    both, slash, step_text = text.partition("/")
    start_text, dash, stop_text = both.partition("-")
    if not dash or (slash and not step_text):
        raise InvalidValue(f"the range {shown(text)} is not start-stop or start-stop/step")
    start, stop = _number(start_text), _number(stop_text)
    step = _number(step_text) if slash else 1
    if step < 1 or stop < start:
        raise InvalidValue(f"the range {shown(text)} does not go upwards")
    found = range(start, stop + 1, step)
    if len(found) > GENERATED_MAX:
        raise InvalidValue(f"$GENERATE makes {len(found)} records, more than {GENERATED_MAX}")
    return found


class Pattern:
    """A word with `$` in it, read once. Raises: InvalidValue."""

    __slots__ = ("_pieces",)

    def __init__(self, text: str) -> None:
        if len(text) > PATTERN_CHARACTERS_MAX:
            raise InvalidValue(f"a pattern has more than {PATTERN_CHARACTERS_MAX} characters")
        self._pieces = list(_pieces(text))

    def at(self, number: int) -> str:
        return "".join(
            [piece if isinstance(piece, str) else _written(number, *piece) for piece in self._pieces]
        )


def _pieces(text: str) -> Iterator[str | tuple[int, int, str]]:
    position = start = 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
        elif character != "$":
            position += 1
        else:
            yield text[start:position]
            if text.startswith("$$", position):
                yield "\\$"
                position += 2
            elif text.startswith("${", position):
                end = text.find("}", position)
                if end < 0:
                    raise InvalidValue("a brace of $GENERATE is not closed")
                yield _format(text[position + 2 : end])
                position = end + 1
            else:
                yield 0, 0, "d"
                position += 1
            start = position
    yield text[start:]


def _format(text: str) -> tuple[int, int, str]:
    parts = text.split(",")
    offset = parts[0].removeprefix("-")
    base = _BASES.get(parts[2]) if len(parts) > 2 else "d"
    if len(parts) > 3 or base is None:
        raise InvalidValue(f"{shown(text)} is not offset,width,base with base d, o, x or X")
    width = _number(parts[1]) if len(parts) > 1 else 0
    if width > WIDTH_MAX:
        raise InvalidValue(f"the width {width} is more than {WIDTH_MAX}")
    return (-1 if parts[0].startswith("-") else 1) * _number(offset), width, base


def _written(number: int, offset: int, width: int, base: str) -> str:
    value = number + offset
    if value < 0:
        raise InvalidValue("a number of $GENERATE is below zero")
    return f"{value:0{width}{base}}" if width else f"{value:{base}}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > NUMBER_MAX:
        raise InvalidValue(f"{shown(text)} is not a number from 0 to {NUMBER_MAX}")
    return int(text)
