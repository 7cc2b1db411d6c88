"""The bytes of history: blocks of an object's commits, and snapshots.

Owns  the layout of a block's entries, the differences between page images, how both are compressed.
Asks  nobody.
Tells `archive` and `thinning`, which write blocks; `past`, which reads them.
Not   where blocks are kept (`history`).

    block  zlib of: entry · entry · …
    entry  position · time · kind · alarm flag · alarm · body length · body
    body   of pages: pages in total, pages here, then for each: number · whether whole · 4,096 bytes
           anything else: as it was logged

A page that is not whole is its difference (XOR) from the image before, so blocks are read in order, from a
snapshot on. A b-tree page changes in few bytes: the rest of the difference is zeros, of which zlib leaves
next to nothing.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator

import msgspec

from edgestead.store.objectlog import FRAME_HEADER_BYTES, PAGE_BYTES, UNCHANGED, Alarm, CommitKind

_ENTRY = struct.Struct("<QqBBqI")  # position, time_us, kind, alarm flag, alarm_us, length
_PAGES = struct.Struct("<II")  # in total, here
_PAGE = struct.Struct("<IB")  # number, whether whole
_UNCHANGED, _NONE, _SET = range(3)
_LEVEL = 1  # differences are nearly all zeros: a higher one costs much and saves little
_FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
PAGE_KINDS = frozenset({CommitKind.PAGES, CommitKind.COPY})


class PastEntry(msgspec.Struct):
    """One commit of the past. The body of pages is WAL frames before it is packed, and packed pages after."""

    position: int
    time_us: int
    kind: int
    alarm: Alarm
    body: bytes | memoryview


class Images(msgspec.Struct):
    """The newest page images that history has of one object, as far as they are remembered."""

    total: int = 0
    pages: dict[int, bytes | memoryview] = {}

    def resize(self, total: int) -> None:
        if total < self.total:
            self.pages = {page: image for page, image in self.pages.items() if page <= total}
        self.total = total


def pack_frames(frames: bytes | memoryview, images: Images) -> bytes:
    """The body of a commit of pages, from its WAL frames; `images` become the newer ones."""
    newest = {}
    for offset in range(0, len(frames), _FRAME_BYTES):
        newest[int.from_bytes(frames[offset : offset + 4], "big")] = offset + FRAME_HEADER_BYTES
    last = len(frames) - _FRAME_BYTES
    total = int.from_bytes(frames[last + 4 : last + 8], "big")
    wanted = {
        page: frames[start : start + PAGE_BYTES] for page, start in sorted(newest.items()) if page <= total
    }
    return pack_pages(total, wanted, images)


def pack_pages(total: int, pages: dict[int, bytes | memoryview], images: Images) -> bytes:
    """The body of a commit of these pages; `images` become the newer ones."""
    parts = [_PAGES.pack(total, len(pages))]
    known = images.pages
    for page, image in pages.items():
        before = known.get(page) if page <= images.total else None
        parts.append(_PAGE.pack(page, before is None))
        parts.append(bytes(image) if before is None else _difference(image, before))
    images.resize(total)
    images.pages.update(pages)
    return b"".join(parts)


def _difference(one: bytes | memoryview, other: bytes | memoryview | bytearray) -> bytes:
    number = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return number.to_bytes(PAGE_BYTES, "little")


def apply_pages(body: bytes | memoryview, image: bytearray) -> None:
    """Bring a database's bytes from the commit before to this one."""
    total, count = _PAGES.unpack_from(body)
    needed = total * PAGE_BYTES
    if len(image) < needed:
        image.extend(bytes(needed - len(image)))
    offset = _PAGES.size
    for _ in range(count):
        page, whole = _PAGE.unpack_from(body, offset)
        offset += _PAGE.size
        start = (page - 1) * PAGE_BYTES
        data = body[offset : offset + PAGE_BYTES]
        image[start : start + PAGE_BYTES] = (
            data if whole else _difference(data, image[start : start + PAGE_BYTES])
        )
        offset += PAGE_BYTES
    del image[needed:]


def page_numbers(body: bytes | memoryview) -> tuple[int, list[int]]:
    """(pages in total, the numbers of the pages here) of a packed body."""
    total, count = _PAGES.unpack_from(body)
    step = _PAGE.size + PAGE_BYTES
    return total, [_PAGE.unpack_from(body, _PAGES.size + step * index)[0] for index in range(count)]


def pack_block(entries: Iterable[PastEntry]) -> tuple[bytes, int]:
    """(the block, its length before compression). Bodies of pages must be packed."""
    parts: list[bytes | memoryview] = []
    for entry in entries:
        alarm = entry.alarm
        flag, value = (
            (_UNCHANGED, 0) if alarm is UNCHANGED else (_NONE, 0) if alarm is None else (_SET, alarm)
        )
        parts.append(_ENTRY.pack(entry.position, entry.time_us, entry.kind, flag, value, len(entry.body)))
        parts.append(entry.body)
    raw = b"".join(parts)
    return zlib.compress(raw, _LEVEL), len(raw)


def unpack_block(block: bytes) -> Iterator[PastEntry]:
    """The entries of a block. Raises zlib.error, struct.error when it is damaged."""
    raw = memoryview(zlib.decompress(block))
    offset = 0
    while offset < len(raw):
        position, time_us, kind, flag, value, length = _ENTRY.unpack_from(raw, offset)
        offset += _ENTRY.size
        alarm: Alarm = UNCHANGED if flag == _UNCHANGED else value if flag == _SET else None
        yield PastEntry(position, time_us, kind, alarm, raw[offset : offset + length])
        offset += length


def squeeze(data: bytes | bytearray | memoryview) -> bytes:
    """Bytes of a snapshot, compressed."""
    return zlib.compress(data, _LEVEL)


def unsqueeze(data: bytes) -> bytes:
    """Raises zlib.error."""
    return zlib.decompress(data)
