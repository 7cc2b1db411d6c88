r"""The lines of a zone file: words, quotes, parentheses, comments.

Owns  splitting text into logical lines (RFC 1035 §5.1).
Not   what a word means; escapes, which stay in the words.

A logical line ends at an end of line outside of parentheses. A `;` outside of quotes begins a comment, which
belongs to the logical line; of several the last one that says something counts. `\` takes the next character
along.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from edgestead.model.refusals.record import LineUnreadable

WORDS_MAX = 1_024  # of one entry; a TXT record of 4,096 octets has at most half of it
LINE_CHARACTERS_MAX = 65_536  # of one entry, comments included
LINES_BETWEEN_REST = 256  # also where a file is only comments: well under 1 ms

_BLANKS = " \t\r\f\v"
_ENDS = frozenset(" \t\r\f\v\n;()")


class Line(NamedTuple):
    """One entry. `number` is that of its first line; `starts_blank` leaves out the owner (RFC 1035 §5.1)."""

    number: int
    starts_blank: bool
    words: list[str]
    comment: str


def lines(
    text: str, give_way: Callable[[], None], refuse: Callable[[LineUnreadable], None]
) -> Iterator[Line]:
    """Every logical line that has a word; `give_way` is called now and then.

    `refuse` hears of an open quote or parenthesis, and of an entry that is too long. The next line is read
    then, unless a parenthesis is open: what follows may be of one entry or of many.
    """
    position, number = 0, 1
    if text.startswith("\ufeff"):
        position = 1
    for count in itertools.count(1):
        if position >= len(text):
            return
        if count % LINES_BETWEEN_REST == 0:
            give_way()
        line = _Line(text, position, number)
        try:
            line.read()
        except LineUnreadable as refusal:
            refuse(refusal)
            if line.is_open:
                return
            line.skip()
        else:
            if line.words:
                yield Line(number, line.starts_blank, line.words, line.comment)
        position, number = line.position, line.number


class _Line:
    """The walk along one logical line."""

    __slots__ = (
        "_depth",
        "_first",
        "_start",
        "_text",
        "comment",
        "number",
        "position",
        "starts_blank",
        "words",
    )

    def __init__(self, text: str, position: int, number: int) -> None:
        self._text = text
        self._start = self.position = position
        self._first = self.number = number
        self._depth = 0
        self.starts_blank = text[position] in _BLANKS
        self.words: list[str] = []
        self.comment = ""

    @property
    def is_open(self) -> bool:
        return self._depth > 0

    def skip(self) -> None:
        """Go to the next line of the text, whatever this one is."""
        end = self._text.find("\n", self.position)
        self.position, self.number = (len(self._text) if end < 0 else end + 1), self.number + 1

    def read(self) -> None:
        text, length = self._text, len(self._text)
        while self.position < length:
            character = text[self.position]
            if character == "\n":
                self.position += 1
                self.number += 1
                if not self._depth:
                    return
            elif character in _BLANKS:
                self.position += 1
            elif character == ";":
                self._comment()
            elif character in "()":
                self._parenthesis(character)
            else:
                self._word(character)
            if self.position - self._start > LINE_CHARACTERS_MAX:
                raise self._refusal(f"it has more than {LINE_CHARACTERS_MAX} characters")
        if self._depth:
            raise self._refusal("a parenthesis is not closed")

    def _comment(self) -> None:
        end = self._text.find("\n", self.position)
        end = len(self._text) if end < 0 else end
        self.comment = self._text[self.position + 1 : end].strip() or self.comment
        self.position = end

    def _parenthesis(self, character: str) -> None:
        self._depth += 1 if character == "(" else -1
        if not 0 <= self._depth <= 1:
            raise self._refusal("the parentheses do not match")
        self.position += 1

    def _word(self, first: str) -> None:
        start = self.position
        self.position = self._end_of_quoted(start) if first == '"' else self._end_of_bare(start)
        if len(self.words) >= WORDS_MAX:
            raise self._refusal(f"it has more than {WORDS_MAX} words")
        self.words.append(self._text[start : self.position])

    def _end_of_quoted(self, start: int) -> int:
        text, position = self._text, start + 1
        while position < len(text) and (character := text[position]) != "\n":
            if character == '"':
                return position + 1
            position = self._past_escape(position) if character == "\\" else position + 1
        raise self._refusal("a double quote is not closed")

    def _end_of_bare(self, start: int) -> int:
        """A quote inside of a word belongs to it, blanks and all: `alpn="h2, h3"` (RFC 9460 §2.1)."""
        text, position = self._text, start
        while position < len(text):
            character = text[position]
            if character == "\\":
                position = self._past_escape(position)
            elif character == '"':
                position = self._end_of_quoted(position)
            elif character in _ENDS:
                break
            else:
                position += 1
        return position

    def _past_escape(self, position: int) -> int:
        if self._text[position + 1 : position + 2] in ("", "\r", "\n"):
            raise self._refusal("a backslash stands at the end of a line")
        return position + 2

    def _refusal(self, reason: str) -> LineUnreadable:
        return LineUnreadable(line=self._first, reason=reason)
