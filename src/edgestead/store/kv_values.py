"""What implementations of the key-value store share: values that are read, cursors, and ranges of keys.

Owns  `InlineValue` and `BlobValue`; the text of a cursor.
Not   queries.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Self

from edgestead.model.refusals.kv import BadCursor
from edgestead.store.kv import BlobReader, Entry, Page

# Nothing starts with a byte above 0xF4 in UTF-8 (RFC 3629 §4), so this is behind every key.
BEHIND_ALL_KEYS = b"\xff"


class InlineValue:
    """A `Value` from its row."""

    is_inline = True

    def __init__(self, entry: Entry, content: bytes) -> None:
        self.entry = entry
        self.length = len(content)
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    def read(self) -> bytes:
        return self._content

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...


class BlobValue:
    """A `Value` outside of its row."""

    is_inline = False

    def __init__(self, entry: Entry, length: int, blob: BlobReader) -> None:
        self.entry = entry
        self.length = length
        self._blob = blob

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._blob)

    def read(self) -> bytes:
        return b"".join(self)

    def close(self) -> None:
        self._blob.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def range_of(prefix: str, cursor: str) -> tuple[bytes, bytes]:
    """The first key with the prefix behind the cursor, and the first one behind all with the prefix.

    Raises BadCursor.
    """
    first = prefix.encode()
    # No byte of UTF-8 is 0xFF, so the last one can always be raised by one.
    behind = first[:-1] + bytes([first[-1] + 1]) if first else BEHIND_ALL_KEYS
    if cursor:
        first = max(first, _key_of(cursor) + b"\x00")  # the smallest key behind it
    return first, behind


def page_of(rows: list[tuple[bytes, int | None, bytes | None]], limit: int) -> Page:
    """Of rows with key, expiry and metadata, of which one more than `limit` was asked for."""
    entries = tuple(Entry(key.decode(), expires, metadata) for key, expires, metadata in rows[:limit])
    return Page(entries, _cursor_behind(entries[-1].key) if len(rows) > limit else "")


def _cursor_behind(key: str) -> str:
    return urlsafe_b64encode(b"1" + key.encode()).decode().rstrip("=")


def _key_of(cursor: str) -> bytes:
    try:
        bytes_ = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except ValueError:
        raise BadCursor from None
    if not bytes_.startswith(b"1") or _cursor_behind(bytes_[1:].decode(errors="replace")) != cursor:
        raise BadCursor
    return bytes_[1:]
