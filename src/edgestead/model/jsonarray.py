"""The items of a JSON array in a stream of bytes, found and not parsed.

Owns  where one item ends and the next begins, in one pass and with one item in memory.
Not   whether an item is JSON: its reader decodes it. Standard library only.

Only strings and brackets are looked at, so a broken item may come out whole or cut; either way it is not
JSON and whoever decodes it refuses it. Every pattern is possessive: each byte is looked at a bounded number
of times, whatever the bytes are (RFC 8259 §2, §7).
"""

import re
from collections.abc import Iterator

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


class ArrayItems:
    """Feed it bytes in any portions; it yields each item's bytes without the blanks around them.

    Exhaust what feed() returns before feeding more.
    Limits  one item `item_bytes_max`; memory: one item and one portion.
    Raises  NotAnArray, ItemTooLong.
    """

    def __init__(self, *, item_bytes_max: int) -> None:
        self._item_bytes_max = item_bytes_max
        self._part = _BEFORE
        self._buffer = b""
        self._start = 0  # of the item that is under way, in the buffer
        self._at = 0  # how far it has been looked at
        self._depth = 0
        self._in_string = False
        self._offset = 0  # of the buffer in the stream
        self.count = 0

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
            else:
                separator = self._find_separator()
                if separator is None:
                    return
                item, end = self._buffer[self._start : separator].strip(_BLANKS), separator + 1
                if not item:
                    self._end_empty(separator)
                    return
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
                if buffer[self._at : self._at + 1] != b'"':
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
            self._in_string = mark == b'"'
            self._depth += (mark in b"{[") - (mark in b"}]")
            if self._depth > DEPTH_MAX:
                raise NotAnArray(f"item {self.count} is nested deeper than {DEPTH_MAX} levels")
            if self._depth < 0:
                raise NotAnArray(f"item {self.count} has a bracket too many")

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
