"""The one refusal of this room: where an expression is wrong, and why.

Owns  `FilterError`, the arithmetic of lines, columns and carets.
Asks  nobody.
Tells `services` what to put behind "could not parse filter expression: ".
Not   error codes and JSON pointers.
"""


class FilterError(ValueError):
    """An expression that is refused.

    `line` and `column` count from 1, in characters. `reason` is the short cause; `hint` is empty or one
    more sentence for people. `str()` is the text that the v4 API answers, and the hint as a line of its own::

        Filter parsing error (1:1):
        http.hots eq "a"
        ^^^^^^^^^ unknown identifier
        did you mean http.host?

    `start` and `end` are offsets into the text; without `end` the rest of the line is marked.
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
        carets = " " * (self.column - 1) + "^" * self.length
        lines = [f"Filter parsing error ({self.line}:{self.column}):", self.source, f"{carets} {self.reason}"]
        return "\n".join([*lines, self.hint] if self.hint else lines)
