r"""Patterns on request bytes: regular expressions and wildcards, in linear time.

Owns  how a pattern becomes a test or a replacement.
Not   reading patterns from an expression (`lexer`).

RE2 never backtracks, and its memory and program are bounded (`REGEX_MEMORY_BYTES_MAX`,
`REGEX_INSTRUCTIONS_MAX`): nested repetitions make a short pattern slow to compile, at the edge too.

It reads patterns and values as bytes, as the v4 API's language does: in UTF-8 a `.` would not match the byte
``\xff``, and one such byte in a path would take a request past ``^/admin/.*``. A character of several bytes
is a sequence here; in a class it is refused, because a class is one byte.

Configurations of the hosted service are written for Rust's regex. What RE2 takes and that engine reads
otherwise is refused: an expression that silently matched something else would let a request past.
"""

from collections.abc import Callable
from weakref import WeakValueDictionary

import re2

from edgestead.language.types import (
    REGEX_INSTRUCTIONS_MAX,
    REGEX_MEMORY_BYTES_MAX,
    REGEX_REPETITIONS_MAX,
    VALUE_BYTES_MAX,
)

Test = Callable[[bytes], bool]
REPLACE_REFERENCES_MAX = 8  # ${1} to ${8}
_WHITE = {r"\s": "[:space:]", r"\S": "[:^space:]"}  # RE2's \s lacks the vertical tab
_SET_OPERATORS = frozenset("&~-")
_REPETITION = "invalid repetition size: "
_READ_OTHERWISE = {
    r"\<": r"write < or \b",
    r"\>": r"write > or \b",
    r"\b{": r"write \b",
    r"\Q": "escape each character",
    r"\E": "escape each character",
    r"\C": "write (?s:.)",
    r"\p": "values are bytes, write a class such as [A-Za-z]",
    r"\P": "values are bytes, write a class such as [^A-Za-z]",
    "{,": r"write {0, for a repetition or \{, for itself",
}
_SYNTAX = frozenset(r"\.+*?()|[]{}^$")
_ONE_CHARACTER = frozenset("dDsSwWbBAznrtfv")  # or none: escapes that are over with their letter


def _options(*, capture: bool) -> re2.Options:
    options = re2.Options()
    options.max_mem = REGEX_MEMORY_BYTES_MAX
    options.log_errors = False
    options.never_capture = not capture
    options.encoding = re2.Options.Encoding.LATIN1  # RE2's word for bytes
    return options


_ANYWHERE = re2._re2.RE2.Anchor.UNANCHORED
_NOWHERE = (-1, -1)
# Those in use: a ruleset that is compiled again, or as one function too, shares them and their memory.
_TESTS: WeakValueDictionary[str, Test] = WeakValueDictionary()


def compile_regex(pattern: str | bytes, *, capture: bool = False) -> "re2._Regexp":
    """The compiled expression.

    Raises: ValueError with RE2's reason, or ours: bad syntax, look-around, back-references, what other
    engines read otherwise, too large.
    """
    text = pattern.decode("utf-8", "surrogateescape") if isinstance(pattern, bytes) else pattern
    try:
        compiled = re2.compile(_translated(text), _options(capture=capture))
    except re2.error as error:
        reason = error.args[0] if error.args else b"invalid regular expression"
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _refused(_explained(shown)) from None
    if compiled.programsize > REGEX_INSTRUCTIONS_MAX:
        raise _refused(
            f"pattern too large - {compiled.programsize} instructions, more than {REGEX_INSTRUCTIONS_MAX}"
        )
    return compiled


def _refused(reason: str) -> ValueError:
    return ValueError(f"regex parse error: {reason}")


def _explained(reason: str) -> str:
    """RE2's words; where it counts the repetitions inside one another it only shows the last of them."""
    size = reason.removeprefix(_REPETITION).strip("{}")
    low, _, high = size.partition(",")
    if size == reason or (high.isdigit() and int(low) > int(high)):
        return reason
    return f"{reason}: repetitions multiply to more than {REGEX_REPETITIONS_MAX:,}"


def _translated(pattern: str) -> bytes:
    """The pattern as RE2 has to read it, each character of several bytes as a group of its own, so that `+`
    repeats all of it. Letter case of such a group counts even under `(?i)`: folding is for ASCII.

    Raises: ValueError for one in a class or after a backslash, and for what Rust's regex reads otherwise.
    """
    parts, index = [], 0
    while index < len(pattern):
        end = _token_end(pattern, index)
        token = pattern[index:end]
        if token[0] == "[":
            parts.append(_class(token))
        elif token in _WHITE:
            parts.append(f"[{_WHITE[token]}]")
        else:
            _refuse_if_read_otherwise(token + pattern[end : end + 1])
            parts.append(token if token.isascii() else _char_bytes(token))
        index = end
    return "".join(parts).encode()


def _refuse_if_read_otherwise(token: str) -> None:
    """`token` with the character behind it."""
    if token[0] not in "\\{":
        return
    for start, instead in _READ_OTHERWISE.items():
        if token.startswith(start):
            raise _refused(f"{start} is not supported: {instead}")


def _token_end(pattern: str, start: int) -> int:
    """Behind the class, escape or character that begins at `start`."""
    if pattern[start] != "[":
        return start + (2 if pattern[start] == "\\" else 1)
    index = _class_start(pattern, start)
    while index < len(pattern) and pattern[index] != "]":
        index = _item_end(pattern, index)
    return index + 1


def _class_start(pattern: str, start: int) -> int:
    """Where the items of the class begin, a `]` that is the first one left out."""
    index = start + 1
    index += pattern.startswith("^", index)
    return index + pattern.startswith("]", index)


def _item_end(pattern: str, start: int) -> int:
    """Behind the named class, escape or character that begins at `start` inside of a class."""
    named_end = pattern.find(":]", start + 2) if pattern.startswith("[:", start) else -1
    return named_end + 2 if named_end >= 0 else start + (2 if pattern[start] == "\\" else 1)


def _class(token: str) -> str:
    """A class, from `[` to `]`."""
    index = _class_start(token, 0)
    parts, before = [token[:index]], ""
    while index < len(token):
        end = _item_end(token, index)
        item = token[index:end]
        if item == "[":
            raise _refused(r"[ in a class is not supported: write \[, classes do not nest")
        if item == before and item in _SET_OPERATORS:
            raise _refused(
                f"{item * 2} in a class is not supported: write \\{item}, classes are not combined"
            )
        if item in _WHITE and before == "-" and len(parts) > 2:
            raise _refused(f"{item} cannot end a range")
        parts.append(_WHITE.get(item) or _class_item(item))
        before, index = item, end
    return "".join(parts)


def _class_item(item: str) -> str:
    """A lone surrogate stands for one byte that is not UTF-8; any other that is not ASCII has more."""
    _refuse_if_read_otherwise(item)
    octets = item.encode("utf-8", "surrogateescape")
    if len(octets) == len(item):
        return item if item.isascii() else f"\\x{octets[0]:02x}"
    raise _refused("a character of more than one byte in a class or after a backslash")


def _char_bytes(token: str) -> str:
    """A character that is not ASCII, or a backslash before one."""
    octets = token.encode("utf-8", "surrogateescape")
    if len(token) > 1:
        raise _refused("a character of more than one byte in a class or after a backslash")
    return "(?-i:" + "".join(f"\\x{octet:02x}" for octet in octets) + ")"


def regex_test(pattern: str) -> Test:
    """A test for `matches`: unanchored search. Patterns without syntax become plain byte operations."""
    at_start, at_end = pattern.startswith("^"), pattern.endswith("$")
    core = pattern[at_start : len(pattern) - at_end]
    if core and _SYNTAX.isdisjoint(core):
        literal = core.encode()
        if at_start and at_end:
            return literal.__eq__
        if at_start:
            return lambda value: value.startswith(literal)
        if at_end:
            return lambda value: value.endswith(literal)
        return lambda value: literal in value
    test = _TESTS.get(pattern)
    if test is None:
        # The wrapper's `search` makes a generator and an object for the match: three times the match's cost.
        match = compile_regex(pattern)._regexp.Match
        test = _TESTS[pattern] = lambda value: match(_ANYWHERE, value, 0, len(value))[0] != _NOWHERE
    return test


def needed_text(pattern: str) -> bytes:
    """The longest text that every match of a regular expression contains, as far as that shows without
    understanding it; empty where it does not. Searching for it costs a tenth of asking RE2.
    """
    folds = pattern.startswith("(?i)")
    pattern = pattern[4:] if folds else pattern
    if "(?" in pattern.replace("(?:", "("):
        return b""  # flags that begin or end somewhere
    texts, depth, index = [""], 0, 0
    while index < len(pattern):
        end = _token_end(pattern, index)
        token = pattern[index:end]
        depth += (token == "(") - (token == ")")
        literal = token[-1] if token.isascii() and _is_literal(token) else ""
        if token == "|" and depth == 0:
            return b""
        if token[0] == "\\" and token[1:].isalnum() and token[1:] not in _ONE_CHARACTER:
            return b""  # what follows may belong to it
        if token == "{":
            end = pattern.find("}", index) + 1
            if not end or not pattern[index + 1 : end - 1].replace(",", "").isdigit():
                return b""  # a brace that repeats nothing
        if token in "*+?{":
            texts[-1] = texts[-1][:-1]  # may be missing, or be there more than once
        if depth or not literal or (folds and literal.isalpha()):
            texts.append("")
        else:
            texts[-1] += literal
        index = end
    return max(texts, key=len).encode()


def _is_literal(token: str) -> bool:
    """One that stands for its last character."""
    return not token[-1].isalnum() if token[0] == "\\" else token[0] not in _SYNTAX


def wildcard_parts(pattern: bytes) -> list[bytes]:
    r"""The literal texts between the stars, escapes (``\*`` and ``\\``) resolved.

    Raises: ValueError for two stars in a row or a backslash before anything else.
    """
    parts, current, index = [], bytearray(), 0
    while index < len(pattern):
        char = pattern[index : index + 1]
        if char == b"\\":
            index += 1
            char = pattern[index : index + 1]
            if char not in (b"*", b"\\"):
                raise ValueError("invalid wildcard: expected * or \\ after \\")
            current += char
        elif char == b"*":
            if pattern[index + 1 : index + 2] == b"*":
                raise ValueError("wildcard contains a double star")
            parts.append(bytes(current))
            current.clear()
        else:
            current += char
        index += 1
    return [*parts, bytes(current)]


def wildcard_test(pattern: bytes, *, strict: bool) -> Test:
    """A test for `wildcard`: the whole value, ASCII case ignored unless `strict`."""
    parts = wildcard_parts(pattern if strict else pattern.lower())
    if len(parts) == 1:
        only = parts[0]
        return only.__eq__ if strict else lambda value: value.lower() == only

    def test(value: bytes) -> bool:
        return _stars(parts, value if strict else value.lower()) is not None

    return test


def _stars(parts: list[bytes], value: bytes) -> list[tuple[int, int]] | None:
    """What each star covers, each as short as possible; None without a match.

    Taking the leftmost place for each text leaves the most room for the rest, so no step is ever undone.
    """
    if not value.startswith(parts[0]):
        return None
    position, covered = len(parts[0]), []
    for part in parts[1:-1]:
        found = value.find(part, position)
        if found < 0:
            return None
        covered.append((position, found))
        position = found + len(part)
    tail = len(value) - len(parts[-1])
    if tail < position or not value.endswith(parts[-1]):
        return None
    return [*covered, (position, tail)]


Piece = bytes | int


def replacement_pieces(template: bytes, groups: int) -> list[Piece]:
    """The template split into literal bytes and group numbers; ``$$`` is a dollar.

    Raises: ValueError for a reference to a group that the pattern lacks, or a stray dollar.
    """
    pieces: list[Piece] = []
    rest = template
    while (dollar := rest.find(b"$")) >= 0:
        pieces.append(rest[:dollar])
        rest = rest[dollar + 1 :]
        if rest.startswith(b"$"):
            pieces.append(b"$")
            rest = rest[1:]
            continue
        if not (rest[:1] == b"{" and rest[1:2].isdigit() and rest[2:3] == b"}"):
            raise ValueError("expected ${1} to ${8} or $$ after $")
        number = int(rest[1:2])
        if not 1 <= number <= min(groups, REPLACE_REFERENCES_MAX):
            raise ValueError(f"there is no group {number}")
        pieces.append(number)
        rest = rest[3:]
    if sum(isinstance(piece, int) for piece in pieces) > REPLACE_REFERENCES_MAX:
        raise ValueError(f"more than {REPLACE_REFERENCES_MAX} references")
    return [*pieces, rest]


def _fill(pieces: list[Piece], groups: list[bytes]) -> bytes:
    return b"".join(groups[piece - 1] if isinstance(piece, int) else piece for piece in pieces)


def regex_replacer(pattern: bytes, template: bytes) -> Callable[[bytes], bytes]:
    """Replaces the first match. Raises: ValueError as `compile_regex` and `replacement_pieces`."""
    regex = compile_regex(pattern, capture=True)
    pieces = replacement_pieces(template, regex.groups)

    def replace(value: bytes) -> bytes:
        match = regex.search(value)
        if match is None:
            return value
        filled = _fill(pieces, [group or b"" for group in match.groups()])
        return (value[: match.start()] + filled + value[match.end() :])[:VALUE_BYTES_MAX]

    return replace


def wildcard_replacer(pattern: bytes, template: bytes, *, strict: bool) -> Callable[[bytes], bytes]:
    """Replaces a value that matches as a whole. Raises: ValueError as `wildcard_parts`."""
    parts = wildcard_parts(pattern if strict else pattern.lower())
    pieces = replacement_pieces(template, len(parts) - 1)

    def replace(value: bytes) -> bytes:
        covered = _stars(parts, value if strict else value.lower()) if len(parts) > 1 else None
        if len(parts) == 1 and (value if strict else value.lower()) == parts[0]:
            covered = []
        if covered is None:
            return value
        return _fill(pieces, [value[start:end] for start, end in covered])[:VALUE_BYTES_MAX]

    return replace
