"""Configurations of words, blocks in braces and semicolons: named.conf and nginx.conf.

Owns  from text to statements.
Not   what a statement means; files that one includes.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_NAMED = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<mark>[{};])|(?P<word>[^\s{};"]+)""",
    re.DOTALL,
)
_NGINX = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)|"(?P<quoted>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<mark>[{};])"""
    r"""|(?P<word>(?:\$\{\w*\}|\\.|[^\s{};"'\\$]|\$)+)""",
    re.DOTALL,
)
DEPTH_MAX = 64


class Statement(NamedTuple):
    """Words, and the statements of its block if it has one. `line` is where it begins, counted from 1."""

    line: int
    words: tuple[str, ...]
    block: "tuple[Statement, ...] | None" = None

    @property
    def name(self) -> str:
        return self.words[0].lower() if self.words else ""

    def of(self, *names: str) -> "Iterator[Statement]":
        """Those of its block that begin so."""
        return (one for one in self.block or () if one.name in names)

    def value(self, name: str, default: str = "") -> str:
        """The first word behind a statement of its block."""
        return next((one.words[1] for one in self.of(name) if len(one.words) > 1), default)


def named_statements(text: str) -> tuple[Statement, ...]:
    """Raises ValueError with the line."""
    return _block(_tokens(text, _NAMED), 0, 0)


def nginx_statements(text: str) -> tuple[Statement, ...]:
    """Raises ValueError with the line."""
    return _block(_tokens(text, _NGINX), 0, 0)


def _tokens(text: str, form: re.Pattern[str]) -> Iterator[tuple[int, str, bool]]:
    """(line, text, whether it is one of `{};`)."""
    position, line = 0, 1
    while position < len(text):
        match = form.match(text, position)
        if match is None:
            raise ValueError(f"line {line}: a quotation or a comment does not end")
        kind = match.lastgroup
        if kind != "skip":
            yield line, match[kind or 0], kind == "mark"
        line += text.count("\n", position, match.end())
        position = match.end()


def _block(tokens: Iterator[tuple[int, str, bool]], depth: int, opened: int) -> tuple[Statement, ...]:
    found: list[Statement] = []
    words: list[str] = []
    begun = 0
    for line, token, is_mark in tokens:
        if not is_mark:
            begun = begun if words else line
            words.append(token)
            continue
        if token == "}":
            if not depth:
                raise ValueError(f"line {line}: a brace closes what nothing opened")
            return tuple(found)
        if token == "{":
            if depth >= DEPTH_MAX:
                raise ValueError(f"line {line}: more than {DEPTH_MAX} blocks in one another")
            found.append(Statement(begun or line, tuple(words), _block(tokens, depth + 1, line)))
        elif words:
            found.append(Statement(begun, tuple(words)))
        words, begun = [], 0
    if depth:
        raise ValueError(f"line {opened}: a block does not end")
    return tuple(found)
