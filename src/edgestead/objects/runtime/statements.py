"""SQL text cut into its statements.

Owns  where a statement ends, and the few things that must be known of it before it runs.
Not   running anything.
"""

import re
from collections.abc import Iterator

import apsw
import msgspec

from edgestead.objects import limits
from edgestead.objects.errors import SqlError
from edgestead.objects.runtime.guard import is_hidden

_TOKEN = re.compile(
    r"""--[^\n]*
      | /\*.*?(?:\*/|\Z)
      | '(?:[^']|'')*(?:'|\Z)
      | "(?:[^"]|"")*(?:"|\Z)
      | `(?:[^`]|``)*(?:`|\Z)
      | \[[^\]]*(?:\]|\Z)
      | ;
      | [A-Za-z_\x80-\U0010ffff][A-Za-z_0-9$\x80-\U0010ffff]*""",
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
_DEFINES = frozenset(("CREATE", "ALTER"))
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
    hidden = ""
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
                _check_names(words[0], hidden)
                yield _statement(text[start : token.end()], words[0])
            start, ends, words, hidden = token.end(), 0, [], ""
        elif piece[0] not in "-/":
            if len(words) < 3:
                words.append(piece.upper())
            if not hidden and is_hidden(piece.strip("'\"`[]")):
                hidden = piece
    if words:
        _check_names(words[0], hidden)
        yield _statement(text[start:], words[0])


def _check_names(word: str, hidden: str) -> None:
    """SQLite looks at what views, triggers and references name when they are used, and never at new names.

    A view of a hidden table could be made and not read; a column of a hidden name closed its table.
    """
    if word in _DEFINES and hidden:
        raise SqlError(f"access to {hidden} is prohibited", "SQLITE_AUTH")


def _is_trigger(words: list[str]) -> bool:
    return words[:1] == ["CREATE"] and "TRIGGER" in words
