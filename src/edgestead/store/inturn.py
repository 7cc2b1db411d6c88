"""A small text that can be replaced on a full disk: two files, written in turn, that keep their room.

Owns  the form of such a file, which of the two is read, taking the room.
Not   what the text says; who may write it at a time.

    text, a line feed, its CRC-32 in eight digits, blanks up to ROOM_BYTES or more

A file is written over, never made shorter, so that a new text of that length needs no block. One that a power
cut left half written has another sum, and the one before counts. Files of older releases have the text alone.
"""

import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TypeVar

from edgestead.store.files import Files

ROOM_BYTES = 16 << 10
_SUM_DIGITS = 8
T = TypeVar("T")
Paths = tuple[str, str]


def read(files: Files, path: str, decoded: Callable[[bytes], T]) -> T | None:
    """What one of them says; None when it is missing, has no text yet or half of one. Raises OSError."""
    if not files.exists(path):
        return None
    with closing(files.open(path)) as file:
        text, _, digits = file.read(file.size(), 0).rstrip(b" ").rpartition(b"\n")
    if not text:
        text = digits  # an older release's
    elif digits != _sum(text):
        return None
    with suppress(ValueError):
        return decoded(text)
    return None


def has_text(files: Files, path: str) -> bool:
    """Whether it says anything, be it half. Raises OSError."""
    if not files.exists(path):
        return False
    with closing(files.open(path)) as file:
        return bool(file.read(file.size(), 0).strip(b" "))


def write(files: Files, paths: Paths, sequence: int, text: bytes) -> None:
    """Replace the older text. Durable when it returns. Raises OSError."""
    path = paths[sequence % len(paths)]
    is_new = not files.exists(path)
    with closing(files.open(path, create=True)) as file:
        length = max(file.size(), ROOM_BYTES)
        file.write((text + b"\n" + _sum(text)).ljust(length), 0)
        file.sync()
    if is_new:
        files.sync_folder(path.rpartition("/")[0])


def has_room(files: Files, paths: Paths) -> bool:
    """Whether both have it. Raises OSError."""
    return all(files.exists(path) and _size(files, path) >= ROOM_BYTES for path in paths)


def take_room(files: Files, paths: Paths) -> None:
    """Now, while there is some. Raises OSError."""
    for path in paths:
        is_new = not files.exists(path)
        with closing(files.open(path, create=True)) as file:
            if (size := file.size()) < ROOM_BYTES:
                file.write(b" " * (ROOM_BYTES - size), size)
                file.sync()
        if is_new:
            files.sync_folder(path.rpartition("/")[0])


def _size(files: Files, path: str) -> int:
    with closing(files.open(path)) as file:
        return file.size()


def _sum(text: bytes) -> bytes:
    return b"%0*x" % (_SUM_DIGITS, zlib.crc32(text))
