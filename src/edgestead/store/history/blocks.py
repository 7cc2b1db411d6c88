"""The bytes of history: blocks of an object's commits, and snapshots.

Owns  the layout of a block's entries, the differences between page images, how both are compressed.
Not   where blocks are kept (`history`).

    block  zlib of: entry · entry · …
    entry  position · time · kind · alarm flag · alarm · body length · body
    body   of pages: pages in total, pages here, then for each: number · how · length · bytes
           anything else: as it was logged

A page that is not whole is its difference (XOR) from the image before, so blocks are read in order, from a
snapshot on. Most pages change in few bytes: the rest of the difference is zeros, which zlib reduces to almost
nothing. Where rows moved within the page, zlib gets the image before as its dictionary instead: three times
the work, a tenth of the bytes.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator

import msgspec

from edgestead.store.objectlog import UNCHANGED, Alarm, CommitKind
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES

_ENTRY = struct.Struct("<QqBBqI")  # position, time_us, kind, alarm flag, alarm_us, length
_PAGES = struct.Struct("<II")  # in total, here
_PAGE = struct.Struct("<IBH")  # number, encoding, length
_WHOLE, _DIFFERENCE, _SHIFTED = range(3)
_ALIKE_BYTES = PAGE_BYTES * 7 // 8  # of a difference, which have to be zeros
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
    """The newest page images of one object, as far as they are in memory.

    None has a number above `total`.
    """

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
        how, data = _packed(image, known.get(page))
        parts += (_PAGE.pack(page, how, len(data)), data)
    images.resize(total)
    images.pages.update(pages)
    return b"".join(parts)


def _packed(image: bytes | memoryview, before: bytes | memoryview | None) -> tuple[int, bytes]:
    """A page's encoding and its encoded bytes."""
    if before is None:
        return _WHOLE, bytes(image)
    data = _difference(image, before)
    if data.count(0) >= _ALIKE_BYTES:
        return _DIFFERENCE, data
    squeezer = zlib.compressobj(_LEVEL, zdict=bytes(before))
    return _SHIFTED, squeezer.compress(image) + squeezer.flush()


def _unpacked(how: int, data: bytes | memoryview, before: bytes | bytearray) -> bytes | memoryview:
    """A page's image. Raises zlib.error."""
    if how == _WHOLE:
        return data
    if how == _DIFFERENCE:
        return _difference(data, before)
    return zlib.decompressobj(zdict=before).decompress(data, PAGE_BYTES)


def _difference(one: bytes | memoryview, other: bytes | memoryview | bytearray) -> bytes:
    number = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return number.to_bytes(PAGE_BYTES, "little")


def _each_page(body: bytes | memoryview) -> Iterator[tuple[int, int, bytes | memoryview]]:
    """(number, encoding, encoded bytes) of the pages of a packed body."""
    _, count = _PAGES.unpack_from(body)
    offset = _PAGES.size
    for _ in range(count):
        page, how, length = _PAGE.unpack_from(body, offset)
        offset += _PAGE.size
        yield page, how, body[offset : offset + length]
        offset += length


def apply_pages(body: bytes | memoryview, image: bytearray) -> None:
    """Change a database's bytes from the state of the commit before to this one's."""
    total, _ = _PAGES.unpack_from(body)
    needed = total * PAGE_BYTES
    if len(image) < needed:
        image.extend(bytes(needed - len(image)))
    for page, how, data in _each_page(body):
        start = (page - 1) * PAGE_BYTES
        image[start : start + PAGE_BYTES] = _unpacked(how, data, image[start : start + PAGE_BYTES])
    del image[needed:]


def page_count(body: bytes | memoryview) -> int:
    """How many pages a packed body holds."""
    count: int = _PAGES.unpack_from(body)[1]
    return count


def page_numbers(body: bytes | memoryview) -> tuple[int, list[int]]:
    """(pages in total, the numbers of the pages here) of a packed body."""
    return _PAGES.unpack_from(body)[0], [page for page, _, _ in _each_page(body)]


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
