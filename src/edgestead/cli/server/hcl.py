"""HCL, the language of Terraform's configurations: blocks, and members whose value is written out.

Owns  reading a text into blocks with their labels and members.
Not   evaluating: what refers, computes or repeats is no value, and its member is left out.

A text with `${` in it is kept as it is written. Blocks inside of a block are lists under their name, as in a
plan's JSON; `dynamic` ones are left out.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

DEPTH_MAX = 64  # of brackets and blocks in one another
_COMPUTED = object()
_BLANK = re.compile(r"(?:[ \t\r]|#[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BLANK_LINES = re.compile(r"(?:\s|#[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w-]*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_HEREDOC = re.compile(r"<<(-?)([^\W\d][\w-]*)\r?\n")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_CODE_POINT = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_WORDS = {"true": True, "false": False, "null": None}
_OPEN, _CLOSE = "([{", ")]}"
_ENDS = frozenset(("", "\n", ",", *_CLOSE))  # what may follow a value


class Block(NamedTuple):
    """`labels` are the texts between its kind and its brace."""

    kind: str
    labels: tuple[str, ...]
    members: dict[str, Any]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a file, in its order. Raises ValueError with the line."""
    reader = _Reader(text)
    while reader.next_line():
        found = reader.item()
        if isinstance(found, Block):
            yield found


class _Reader:
    """A place in a text, and what is read from there on."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def next_line(self) -> str:
        """The character of the next thing, over any number of lines; "" at the end."""
        self._at = self._match(_BLANK_LINES).end()
        return self._here()

    def item(self) -> Block | tuple[str, Any]:
        """A block, or a member with its value."""
        kind = self._name()
        labels: list[str] = []
        while True:
            character = self._next()
            if character == "=" and not labels:
                self._at += 1
                return kind, self._value()
            if character == "{":
                return Block(kind, tuple(labels), self._body())
            labels.append(self._string() if character == '"' else self._name())

    def _body(self) -> dict[str, Any]:
        self._enter()
        members: dict[str, Any] = {}
        while self.next_line() != "}":
            found = self.item()
            if isinstance(found, Block):
                if found.kind != "dynamic":
                    kept = members.setdefault(found.kind, [])
                    if isinstance(kept, list):
                        kept.append(found.members)
            elif found[1] is not _COMPUTED:
                members[found[0]] = found[1]
        self._leave()
        return members

    def _value(self) -> Any:
        """What is written out, or `_COMPUTED`."""
        begin, depth = self._at, self._depth
        found = self._written()
        if found is not _COMPUTED and self._next() in _ENDS:
            return found
        self._at, self._depth = begin, depth
        self._skip()
        return _COMPUTED

    def _written(self) -> Any:
        character = self._next()
        if character == '"':
            return self._string()
        if character == "[":
            return self._list()
        if character == "{":
            return self._object()
        if found := _HEREDOC.match(self._text, self._at):
            return self._heredoc(found)
        if found := _NUMBER.match(self._text, self._at):
            self._at = found.end()
            return int(found[0]) if found[0].lstrip("-").isdigit() else float(found[0])
        if found := _NAME.match(self._text, self._at):
            self._at = found.end()
            return _WORDS.get(found[0], _COMPUTED)
        return _COMPUTED

    def _list(self) -> Any:
        self._enter()
        items = []
        while (character := self.next_line()) != "]":
            if self._is_for():
                return _COMPUTED
            if character == ",":
                self._at += 1
            elif character in ("", *_CLOSE):
                raise self._error("]")
            else:
                items.append(self._value())
        self._leave()
        return [one for one in items if one is not _COMPUTED]

    def _object(self) -> Any:
        self._enter()
        members: dict[str, Any] = {}
        while (character := self.next_line()) != "}":
            if self._is_for():
                return _COMPUTED
            if character == ",":
                self._at += 1
                continue
            if character == "(":
                self._skip(until="=:")
                name = ""
            else:
                name = self._string() if character == '"' else self._name()
            if self._next() not in ("=", ":"):
                raise self._error("= behind a name")
            self._at += 1
            value = self._value()
            if name and value is not _COMPUTED:
                members[name] = value
        self._leave()
        return members

    def _string(self) -> str:
        """The text between quotes. What `${` begins is kept, with the quotes in it."""
        begin = self._at
        self._at += 1
        parts: list[str] = []
        while (character := self._here()) != '"':
            if character in ("", "\n"):
                self._at = begin
                raise self._error("the end of a text on its line")
            if character == "\\":
                parts.append(self._escaped())
            elif self._text.startswith(("$${", "%%{"), self._at):
                parts.append(self._text[self._at + 1 : self._at + 3])
                self._at += 3
            elif self._text.startswith(("${", "%{"), self._at):
                at = self._at
                self._at += 1
                self._skip_brackets()
                parts.append(self._text[at : self._at])
            else:
                parts.append(character)
                self._at += 1
        self._at += 1
        return "".join(parts)

    def _escaped(self) -> str:
        if found := _CODE_POINT.match(self._text, self._at):
            self._at = found.end()
            code = int(found[1] or found[2], 16)
            return chr(code) if code <= sys.maxunicode else "\N{REPLACEMENT CHARACTER}"
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        return _ESCAPES.get(following, f"\\{following}")

    def _heredoc(self, found: re.Match[str]) -> str:
        end = re.compile(rf"^[ \t]*{re.escape(found[2])}[ \t]*\r?$", re.MULTILINE).search(
            self._text, found.end()
        )
        if end is None:
            raise self._error(f"a line {found[2]}")
        lines = self._text[found.end() : end.start()].splitlines()
        self._at = end.end()
        if found[1]:
            margin = min((len(one) - len(one.lstrip()) for one in lines if one.strip()), default=0)
            lines = [one[margin:] for one in lines]
        return "".join(f"{one}\n" for one in lines)

    def _skip(self, until: str = "") -> None:
        """To the end of an expression: a comma, a bracket that closes, or the line's end behind it."""
        while (character := self._next()) not in _ENDS and character not in until:
            if character == '"':
                self._string()
            elif found := _HEREDOC.match(self._text, self._at):
                self._heredoc(found)
            elif character in _OPEN:
                self._skip_brackets()
            elif self._text.startswith(("=>", "==", "<=", ">=", "!=", "&&", "||"), self._at):
                self._at += 2
            else:
                self._at += 1

    def _skip_brackets(self) -> None:
        """From a bracket that opens to behind the one that closes it."""
        self._enter()
        while (character := self.next_line()) not in _CLOSE:
            if character == ",":
                self._at += 1
            self._skip()
        if not self._here():
            raise self._error("a bracket that closes")
        self._leave()

    def _is_for(self) -> bool:
        found = _NAME.match(self._text, self._at)
        return found is not None and found[0] == "for"

    def _name(self) -> str:
        self._next()
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise self._error("a name")
        self._at = found.end()
        return found[0]

    def _next(self) -> str:
        """The character of the next thing on this line."""
        self._at = self._match(_BLANK).end()
        return self._here()

    def _here(self) -> str:
        return self._text[self._at : self._at + 1]

    def _match(self, form: re.Pattern[str]) -> re.Match[str]:
        found = form.match(self._text, self._at)
        assert found is not None
        return found

    def _enter(self) -> None:
        self._at += 1
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error(f"at most {DEPTH_MAX} brackets in one another")

    def _leave(self) -> None:
        self._at += 1
        self._depth -= 1

    def _error(self, wanted: str) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        return ValueError(f"line {line}: expected {wanted}")
