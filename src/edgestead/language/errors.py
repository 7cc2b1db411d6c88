"""The one refusal of this room: where an expression is wrong, and why.

Owns  `FilterError`, the arithmetic of lines, columns and carets.
Not   error codes and JSON pointers.
"""

EXCERPT_CHARACTERS_MAX = 200  # of a line that is refused: an expression may have 4,096, and names secrets


class FilterError(ValueError):
    """An expression that is refused.

    `line` and `column` count from 1, in characters. `reason` is the short cause; `hint` is empty or one
    more sentence for people. `str()` is the text that the v4 API answers, and the hint as a line of its own::

        Filter parsing error (1:1):
        http.hots eq "a"
        ^^^^^^^^^ unknown identifier
        did you mean http.host?

    `start` and `end` are offsets into the text; without `end` the rest of the line is marked. Of a line
    longer than EXCERPT_CHARACTERS_MAX the part around the place is shown, with an ellipsis where it is cut.
    """

    def __init__(self, text: str, start: int, end: int | None, reason: str, hint: str = "") -> None:
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        self.source = text[line_start : line_end if line_end >= 0 else len(text)]
        self.line = text.count("\n", 0, start) + 1
        self.column = start - line_start + 1
        stop = len(self.source.rstrip()) if end is None else min(end - line_start, len(self.source))
        self.length = max(1, stop - self.column + 1)
        self.reason = reason
        self.hint = hint
        super().__init__(reason)

    def __str__(self) -> str:
        source, before, marked = self._excerpt()
        carets = " " * before + "^" * marked
        lines = [f"Filter parsing error ({self.line}:{self.column}):", source, f"{carets} {self.reason}"]
        return "\n".join([*lines, self.hint] if self.hint else lines)

    def _excerpt(self) -> tuple[str, int, int]:
        """What is shown of the line, how much of it stands before the place, how much is marked."""
        source, at = self.source, self.column - 1
        if len(source) <= EXCERPT_CHARACTERS_MAX:
            return source, at, self.length
        first = max(0, min(at - EXCERPT_CHARACTERS_MAX // 2, len(source) - EXCERPT_CHARACTERS_MAX))
        last = first + EXCERPT_CHARACTERS_MAX
        head, tail = "…" if first else "", "…" if last < len(source) else ""
        marked = max(1, min(self.length, last - at))
        return head + source[first:last] + tail, len(head) + at - first, marked
