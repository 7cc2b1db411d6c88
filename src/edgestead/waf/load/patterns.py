r"""Regular expressions of rules, as the rule language means them.

Owns  reading them as bytes under dotall and multiline, and what stands in where a linear matcher cannot.
Not   the scan over all patterns (`scan`).

Differences of dialect are settled in the text: ``\s`` has the vertical tab, ``\v`` is every vertical blank.
What RE2 lacks (look-around, possessive quantifiers, atomic groups, back references) is left out or widened,
which can only match more. Such a pattern is then tried exactly on values up to `BACKTRACK_BYTES_MAX`; on
longer ones, where backtracking could take for ever, the wider reading decides.

Source: PCRE2 pattern syntax; RE2 syntax.
"""

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2

BACKTRACK_BYTES_MAX = 512  # longer values are not tried exactly: the cost stays bounded
MEMORY_BYTES_MAX = 32 << 20  # of one automaton
EITHER_MAX = 64  # alternatives kept
_CLASSES = {  # outside of brackets, inside
    ord("s"): (rb"[\t-\r ]", rb"\t-\r "),
    ord("S"): (rb"[^\t-\r ]", rb"\x00-\x08\x0e-\x1f!-\xff"),
    ord("v"): (rb"[\n-\r\x85]", rb"\n-\r\x85"),
    ord("h"): (rb"[\t \xa0]", rb"\t \xa0"),
}
_LOOK_AROUND = (b"(?=", b"(?!", b"(?<=", b"(?<!")


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    return options


_RE2 = _options()


class Pattern:
    """One expression. `wide` is its text for the scan: no narrower than `search` on any value.

    `anchored`: it may look at the ends of values; all others take any separator. `sure_groups` are numbers of
    groups that take part in every match.
    """

    __slots__ = ("_exact", "_rx", "anchored", "search", "search_joined", "sure_groups", "wide")

    def __init__(self, text: bytes) -> None:
        """Raises: ValueError when neither matcher takes it."""
        rewritten, relaxed = rewrite(text)
        self.wide, _ = rewrite(text, joined=True)
        self.anchored = _anchored(self.wide)
        self.sure_groups = frozenset() if relaxed else _sure_groups(text)
        try:
            self._rx = _compile(rewritten)
            wide_rx = self._rx if self.wide == rewritten else _compile(self.wide)
            self._exact = _backtracking(text) if relaxed else None
        except (re2.error, re.error) as error:
            raise ValueError(f"unusable regular expression: {error}") from None
        # (value): a match object of `re` or `re2` (same methods), or None
        self.search: Callable[[bytes], Any] = self._rx.search if self._exact is None else self._narrowed
        # (text, start=0): the first match from there on in joined values: where none begins, no value matches
        self.search_joined: Callable[..., Any] = wide_rx.search

    def _narrowed(self, value: bytes) -> Any:
        found = self._rx.search(value)
        if found is None or self._exact is None or len(value) > BACKTRACK_BYTES_MAX:
            return found
        return self._exact.search(value)


@lru_cache(EITHER_MAX)
def either(wide: tuple[bytes, ...]) -> Pattern:
    """One that is met in joined values where any of some wide ones is."""
    return Pattern(b"|".join(b"(?:" + each + b")" for each in wide))


def _anchored(text: bytes) -> bool:
    """Whether ``^`` or ``$`` stands outside of brackets, unescaped."""
    position = 0
    while position < len(text):
        byte = text[position : position + 1]
        if byte in (b"^", b"$"):
            return True
        position = _class_end(text, position) if byte == b"[" else position + 1 + (byte == b"\\")
    return False


def _sure_groups(text: bytes) -> frozenset[int]:
    """Groups by number that stand in no other one and no alternative, and need not be repeated."""
    sure: set[int] = set()
    number = depth = top = position = 0
    while position < len(text):
        byte = text[position : position + 1]
        if byte == b"[":
            position = _class_end(text, position)
            continue
        if byte == b"|" and not depth:
            return frozenset()
        if byte == b"(":
            captures = text[position + 1 : position + 2] != b"?"
            number += captures
            if not depth:
                top = number if captures else 0
            depth += 1
        elif byte == b")":
            depth -= 1
            if not depth and top and text[position + 1 : position + 2] not in (b"?", b"*", b"{"):
                sure.add(top)
        position += 2 if byte == b"\\" else 1
    return frozenset() if b"(?P<" in text else frozenset(sure)


def _compile(text: bytes) -> Any:
    return re2.compile(b"(?m)" + text, _RE2)


def _backtracking(text: bytes) -> "re.Pattern[bytes]":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # [ inside of brackets: a literal here, and meant so
        return re.compile(_split_look_behinds(text), re.DOTALL | re.MULTILINE)


def _split_look_behinds(text: bytes) -> bytes:
    """``(?<!ab|c)`` as ``(?<!ab)(?<!c)``: `re` wants one width in each."""
    out, position = b"", 0
    while (found := text.find(b"(?<", position)) >= 0 and text[found + 3 : found + 4] in (b"!", b"="):
        end = _group_end(text, found)
        head, parts = text[found : found + 4], _alternatives(text[found + 4 : end - 1])
        joint = b"|" if head.endswith(b"=") else b""
        out += text[position:found] + b"(?:" + joint.join(head + part + b")" for part in parts) + b")"
        position = end
    return out + text[position:]


def _alternatives(text: bytes) -> list[bytes]:
    parts, start, position = [], 0, 0
    while position < len(text):
        byte = text[position : position + 1]
        if byte == b"\\":
            position += 2
        elif byte == b"[":
            position = _class_end(text, position)
        elif byte == b"(":
            position = _group_end(text, position)
        else:
            if byte == b"|":
                parts.append(text[start:position])
                start = position + 1
            position += 1
    return [*parts, text[start:]]


def rewrite(text: bytes, *, joined: bool = False) -> tuple[bytes, bool]:
    r"""(the text in words that RE2 and Hyperscan share, whether it now matches more than before).

    `joined` also widens ``\A``, ``\z`` and ``\Z``, which must hold at the ends of each of many values.

    >>> rewrite(rb"a++\s(?!b)")
    (b'a+[\\t-\\r ]', True)
    """
    out: list[bytes] = []
    position, relaxed = 0, False
    while position < len(text):
        position, piece, wider = _piece(text, position, joined)
        relaxed |= wider
        out.append(piece)
    return b"".join(out), relaxed


def _piece(text: bytes, at: int, joined: bool) -> tuple[int, bytes, bool]:
    """(where the next piece begins, this one's replacement, whether it is wider)."""
    byte = text[at : at + 1]
    if byte == b"\\":
        return _escape(text, at, joined)
    if byte == b"[":
        end = _class_end(text, at)
        return end, _class(text[at:end]), False
    if byte == b"(":
        if text.startswith(_LOOK_AROUND, at):
            return _group_end(text, at), b"", True
        if text.startswith(b"(?>", at):
            return at + 3, b"(?:", True
    if byte == b"+" and _possessive(text, at):
        return at + 1, b"", True
    return at + 1, byte, False


def _escape(text: bytes, at: int, joined: bool) -> tuple[int, bytes, bool]:
    char = text[at + 1] if at + 1 < len(text) else 0
    if char in _CLASSES:
        return at + 2, _CLASSES[char][0], False
    if char == ord("Z"):
        return at + 2, b"$" if joined else rb"(?:\n?\z)", False
    if joined and char in b"Az":
        return at + 2, b"^" if char == ord("A") else b"$", False
    if 0x31 <= char <= 0x39:
        return at + 2, b"(?:.*)", True  # a back reference: whatever it was
    return at + 2, text[at : at + 2], False


def _possessive(text: bytes, at: int) -> bool:
    """Whether the + at `at` follows a quantifier."""
    before = text[at - 1 : at]
    if not before or before not in (b"*", b"+", b"?", b"}"):
        return False
    slashes, back = 0, at - 2
    while back >= 0 and text[back : back + 1] == b"\\":
        slashes, back = slashes + 1, back - 1
    if slashes % 2:  # \+ is a literal, and this its quantifier
        return False
    return before != b"}" or _is_counted(text[:at])


def _is_counted(text: bytes) -> bool:
    """Whether it ends in {3}, {3,} or {3,5}."""
    opening = text.rfind(b"{")
    inside = text[opening + 1 : -1]
    return opening >= 0 and bool(inside) and not inside.strip(b"0123456789,")


def _class_end(text: bytes, at: int) -> int:
    position = at + 1
    if text[position : position + 1] == b"^":
        position += 1
    if text[position : position + 1] == b"]":
        position += 1
    while position < len(text):
        byte = text[position : position + 1]
        if byte == b"\\":
            position += 1
        elif text.startswith(b"[:", position) and (closing := text.find(b":]", position)) > 0:
            position = closing + 1
        elif byte == b"]":
            return position + 1
        position += 1
    return len(text)


def _class(text: bytes) -> bytes:
    out, position = [text[:1]], 1
    while position < len(text):
        step = 2 if text[position : position + 1] == b"\\" else 1
        piece = text[position : position + step]
        if step == 2 and piece[1] in _CLASSES:
            piece = _CLASSES[piece[1]][1]
        elif piece == b"[" and text[position + 1 : position + 2] != b":":
            piece = rb"\["
        out.append(piece)
        position += step
    return b"".join(out)


def _group_end(text: bytes, at: int) -> int:
    """Just behind the parenthesis that closes the one at `at`."""
    depth, position = 0, at
    while position < len(text):
        byte = text[position : position + 1]
        if byte == b"\\":
            position += 1
        elif byte == b"[":
            position = _class_end(text, position) - 1
        elif byte == b"(":
            depth += 1
        elif byte == b")":
            depth -= 1
            if not depth:
                return position + 1
        position += 1
    return len(text)
