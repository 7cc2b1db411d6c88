"""SQL text cut into its statements.

Owns  where a statement ends, and the few things that must be known of it before it runs.
Asks  apsw whether a trigger's text is complete: it contains semicolons of its own.
Tells `sql`.
Not   running anything.
"""

import re
from collections.abc import Iterator

import apsw
import msgspec

from edgestead.objects import limits
from edgestead.objects.errors import SqlError

_TOKEN = re.compile(
    r"""--[^\n]*
      | /\*.*?(?:\*/|\Z)
      | '(?:[^']|'')*(?:'|\Z)
      | "(?:[^"]|"")*(?:"|\Z)
      | `(?:[^`]|``)*(?:`|\Z)
      | \[[^\]]*(?:\]|\Z)
      | ;
      | [A-Za-z_][A-Za-z_0-9]*""",
    re.VERBOSE | re.DOTALL,
)
"""Alternatives that begin with different characters and cannot fail once begun: linear."""

TRIGGER_ENDS_MAX = 1_000  # semicolons of one trigger that are tried as its end


class Statement(msgspec.Struct, frozen=True):
    """One statement.

    `writes` ones need a transaction, `rows_only` ones cannot change the schema, `silent` ones certainly
    give no rows.
    """

    text: str
    word: str
    writes: bool
    rows_only: bool
    silent: bool


_ROWS_ONLY = frozenset("INSERT REPLACE UPDATE DELETE WITH".split())
_CHANGES = frozenset("INSERT REPLACE UPDATE DELETE CREATE DROP ALTER".split())


def _statement(text: str, word: str) -> Statement:
    upper = text.upper()
    # some pragmas do nothing inside a transaction
    reads = word in ("SELECT", "VALUES") or (word == "PRAGMA" and "OPTIMIZE" not in upper)
    silent = word in _CHANGES and "RETURNING" not in upper
    return Statement(text, word, not reads, word in _ROWS_ONLY, silent)


def split(text: str) -> tuple[Statement, ...]:
    """The statements of a query text. Raises SqlError when there is none."""
    if len(text) > limits.SQL_BYTES_MAX:
        raise SqlError(f"SQL query is longer than {limits.SQL_BYTES_MAX} bytes", "SQLITE_TOOBIG")
    statements = tuple(_statements(text))
    if not statements:
        raise SqlError("SQL code did not contain a statement.")
    return statements


def _statements(text: str) -> Iterator[Statement]:
    start = ends = 0
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if piece == ";":
            ends += 1
            if (
                _is_trigger(words)
                and ends <= TRIGGER_ENDS_MAX
                and not apsw.complete(text[start : token.end()])
            ):
                continue
            if words:
                yield _statement(text[start : token.end()], words[0])
            start, ends, words = token.end(), 0, []
        elif piece[0] not in "-/" and len(words) < 3:
            words.append(piece.upper())
    if words:
        yield _statement(text[start:], words[0])


def _is_trigger(words: list[str]) -> bool:
    return words[:1] == ["CREATE"] and "TRIGGER" in words
