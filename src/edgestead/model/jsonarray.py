"""The items of a JSON array in a stream of bytes, found and not parsed.

Owns  where one item ends and the next begins, in one pass and with one item in memory, or less: long
      strings may be left out.
Not   whether an item is JSON: its reader decodes it. Standard library only.

Only strings and brackets are looked at, so a broken item may come out whole or cut; either way it is not
JSON and whoever decodes it refuses it. Every pattern is possessive: each byte is looked at a bounded number
of times, whatever the bytes are (RFC 8259 §2, §7).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'[^"{}\[\]]++'


def _nested(depth: int) -> bytes:
    inside = rb"|[{\[]" + _nested(depth - 1) + rb"[}\]]" if depth else b""
    return rb"(?:" + _PLAIN + rb"|" + _STRING + inside + rb")*+"


# The usual item, whole in the buffer and with its separator: one match in C instead of one per token.
_USUAL_ITEM = re.compile(rb"[ \t\r\n]*+(\{" + _nested(2) + rb"\})[ \t\r\n]*+([,\]])", re.DOTALL)
_STRING_REST = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_TOKEN = re.compile(rb'["{}\[\],]')
_BLANKS = b" \t\r\n"
_BLANKS_RUN = re.compile(rb"[ \t\r\n]*+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DEPTH_MAX = 512  # metadata has 1,024 bytes

_BEFORE, _INSIDE, _BEHIND = range(3)


class NotAnArray(ValueError):
    """The bytes are not a JSON array; the message says where."""


class ItemTooLong(ValueError):
    """One item is longer than the limit given."""


class Hole(NamedTuple):
    """Where a string was that is left out: `at` in the item, behind its opening quote; from `begin` to `end`
    of the stream, without its quotes."""

    at: int
    begin: int
    end: int


class ArrayItems:
    """Feed it bytes in any portions; it yields each item's bytes without the blanks around them.

    A string of more than `string_bytes_max` that does not end in the portion in which it has become so long
    is left out: the item has an empty one in its place, and `holes` says where the stream has it.

    Exhaust what feed() returns before feeding more.
    Limits  one item `item_bytes_max`, without what is left out; memory: one item and one portion.
    Raises  NotAnArray, ItemTooLong.
    """

    def __init__(self, *, item_bytes_max: int, string_bytes_max: int | None = None) -> None:
        self._item_bytes_max = item_bytes_max
        self._string_bytes_max = string_bytes_max
        self._part = _BEFORE
        self._buffer = b""
        self._start = 0  # of the item that is under way, in the buffer
        self._at = 0  # how far it has been looked at
        self._depth = 0
        self._in_string = False
        self._offset = 0  # of the buffer in the stream
        self._string = 0  # where the string that is under way begins, in the item
        self._left_out = 0  # octets of that string,
        self._left_out_before = 0  # and of others of the item
        self._holes: list[Hole] = []
        self.count = 0
        self.holes: tuple[Hole, ...] = ()  # of the last item

    @property
    def position(self) -> int:
        """Bytes of the stream up to the end of the last item."""
        return self._offset + self._start

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._offset += self._start
        self._buffer = self._buffer[self._start :] + chunk
        self._at -= self._start
        self._start = 0
        if self._part == _BEFORE:
            self._open()
        if self._part == _INSIDE:
            yield from self._items()
        if self._part == _BEHIND:
            self._refuse_rest()
        if len(self._buffer) - self._start > self._item_bytes_max:
            raise ItemTooLong(f"item {self.count} is longer than {self._item_bytes_max} bytes")

    def end(self) -> None:
        """Call it behind the last portion."""
        if self._part != _BEHIND:
            where = "before the array begins" if self._part == _BEFORE else f"inside of item {self.count}"
            raise NotAnArray(f"the text ends {where}")

    def _open(self) -> None:
        if self._offset == 0:
            if len(self._buffer) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(self._buffer):
                return
            if self._buffer.startswith(_BYTE_ORDER_MARK):
                self._start = self._at = len(_BYTE_ORDER_MARK)
        self._skip_blanks()
        if self._start < len(self._buffer):
            if self._buffer[self._start] != ord("["):
                raise NotAnArray("the text is not a JSON array: it does not begin with [")
            self._part = _INSIDE
            self._start = self._at = self._start + 1

    def _items(self) -> Iterator[bytes]:
        while self._part == _INSIDE:
            # Behind a finished item nothing is under way, and the fast way may be tried.
            usual = _USUAL_ITEM.match(self._buffer, self._start) if self._at == self._start else None
            if usual is not None:
                item, end = usual.group(1), usual.end()
                self.holes = ()
            else:
                separator = self._find_separator()
                if separator is None:
                    return
                whole = self._buffer[self._start : separator].lstrip(_BLANKS)
                item, end = whole.rstrip(_BLANKS), separator + 1
                if not item:
                    self._end_empty(separator)
                    return
                self._end_holes(separator - self._start - len(whole))
            if len(item) > self._item_bytes_max:
                raise ItemTooLong(f"item {self.count} is longer than {self._item_bytes_max} bytes")
            self._start = self._at = end
            self.count += 1
            if self._buffer[end - 1] == ord("]"):
                self._part = _BEHIND
            yield item

    def _find_separator(self) -> int | None:
        """Go on behind `_at` to the , or ] that ends the item; None when the buffer ends before it."""
        buffer = self._buffer
        while True:
            if self._in_string:
                rest = _STRING_REST.match(buffer, self._at)
                assert rest is not None
                self._at = rest.end()
                is_whole = buffer[self._at : self._at + 1] == b'"'
                if self._string_bytes_max is not None:
                    self._leave_out(is_whole)
                    buffer = self._buffer
                if not is_whole:
                    return None  # the end of the buffer, or a backslash whose other half is not here yet
                self._in_string = False
                self._at += 1
            token = _TOKEN.search(buffer, self._at)
            if token is None:
                self._at = len(buffer)
                return None
            mark = token.group()
            if self._depth == 0 and mark in b",]":
                return token.start()
            self._at = token.end()
            if mark == b'"':
                self._in_string, self._string = True, self._at - self._start
            self._depth += (mark in b"{[") - (mark in b"}]")
            if self._depth > DEPTH_MAX:
                raise NotAnArray(f"item {self.count} is nested deeper than {DEPTH_MAX} levels")
            if self._depth < 0:
                raise NotAnArray(f"item {self.count} has a bracket too many")

    def _leave_out(self, is_whole: bool) -> None:
        """Take what is here of a long string out of the buffer."""
        begin = self._start + self._string
        here = self._at - begin
        if not self._left_out and (is_whole or here <= (self._string_bytes_max or 0)):
            return
        self._buffer = self._buffer[:begin] + self._buffer[self._at :]
        self._at = begin
        self._left_out += here
        if is_whole:
            at = self._offset + begin + self._left_out_before
            self._holes.append(Hole(self._string, at, at + self._left_out))
            self._left_out_before += self._left_out
            self._left_out = 0

    def _end_holes(self, blanks: int) -> None:
        """The item is whole, and began with so many blanks."""
        self.holes = tuple(hole._replace(at=hole.at - blanks) for hole in self._holes)
        self._holes.clear()
        self._offset += self._left_out_before
        self._left_out_before = 0

    def _end_empty(self, separator: int) -> None:
        if self._buffer[separator] != ord("]") or self.count:
            raise NotAnArray(f"item {self.count} is empty")
        self._start = self._at = separator + 1
        self._part = _BEHIND

    def _refuse_rest(self) -> None:
        self._skip_blanks()
        if self._start < len(self._buffer):
            raise NotAnArray("there is more text behind the array")

    def _skip_blanks(self) -> None:
        blanks = _BLANKS_RUN.match(self._buffer, self._start)
        assert blanks is not None
        self._start = self._at = blanks.end()
