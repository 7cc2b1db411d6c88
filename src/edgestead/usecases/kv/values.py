"""The use cases of keys and values.

Owns  the shapes of listings and bulk answers; checking a whole bulk body before any of it is written.
Not   which namespaces there are (`usecases.kv.namespaces`); HTTP; threads.

Everything here is synchronous. A bulk body is read once to check it all, its longest strings a second time,
in pieces. That leaves each pair ready in a second file, or its value in a blob; the writer's thread only
moves them.
"""

import codecs
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Any, Literal

import msgspec

from edgestead.model.jsonarray import ArrayItems, Hole, ItemTooLong, NotAnArray
from edgestead.model.kv import BULK_GET_KEYS_MAX, BULK_PAIRS_MAX, VALUE_BYTES_MAX, check_key
from edgestead.model.kvbulk import BulkPair, HollowItem, LongPair, LongString, keys_of, pairs_in_pieces
from edgestead.model.refusals.kv import BulkItemInvalid, KeyInvalid, KvBodyInvalid, NoKeys, ValuesTooLarge
from edgestead.store.kv import INLINE_BYTES_MAX, Blob, Entry, Incoming, KvStore, Page, Pair

READ_BYTES = 262_144
ITEMS_PER_PAUSE = 64  # a sixth of a millisecond of work,
BYTES_PER_PAUSE = 32_768  # as are so many bytes of fewer, longer ones
STRING_BYTES_MAX = 262_144  # longer ones are read in pieces: values that become files of their own, mostly
ITEM_BYTES_MAX = 1_048_576  # without those
_FRAME_LENGTH = struct.Struct("<I")

Pause = Callable[[], None]


class KeyView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a listing. `expiration` is in seconds since 1970."""

    name: str
    expiration: int | None = None
    metadata: msgspec.Raw | None = None


class CursorInfo(msgspec.Struct, frozen=True):
    count: int
    cursor: str


class BulkResult(msgspec.Struct, frozen=True):
    """Bulk writes are all or nothing here, so `unsuccessful_keys` is always empty."""

    successful_key_count: int
    unsuccessful_keys: tuple[str, ...] = ()


class BulkGetBody(msgspec.Struct, frozen=True):
    keys: list[str] = []
    type: Literal["text", "json"] = "text"
    with_metadata: bool = msgspec.field(default=False, name="withMetadata")


class ValueView(msgspec.Struct, frozen=True, omit_defaults=True):
    value: Any
    metadata: msgspec.Raw | None
    expiration: int | None = None


def key_views(page: Page) -> list[KeyView]:
    return [KeyView(entry.key, entry.expires_at_s, _raw(entry)) for entry in page.entries]


class StagedPairs:
    """The checked pairs of a bulk body, in a file that is read once more. Large values are blobs already."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._large: list[Incoming] = []
        self.count = 0

    def add(self, pair: BulkPair | LongPair, store: KvStore) -> None:
        content: bytes | Blob
        if isinstance(pair, LongPair):
            content = self._received(pair.pieces, store)
        elif len(pair.content) > INLINE_BYTES_MAX:
            content = self._received((pair.content,), store)
        else:
            content = pair.content
        frame = _encode_frame(Pair(pair.key, content, pair.expires_at_s, pair.metadata))
        self._file.write(_FRAME_LENGTH.pack(len(frame)) + frame)
        self.count += 1

    def _received(self, pieces: Iterable[bytes], store: KvStore) -> bytes | Blob:
        incoming = Incoming(store.blobs)
        self._large.append(incoming)
        for piece in pieces:
            incoming.write(piece)
        return incoming.finish()

    def pairs(self) -> Iterator[Pair]:
        self._file.seek(0)
        while head := self._file.read(_FRAME_LENGTH.size):
            yield _decode_frame(self._file.read(*_FRAME_LENGTH.unpack(head)))

    def discard(self) -> None:
        """Forget the large values, when no put follows."""
        for incoming in self._large:
            incoming.discard()


_look_through = msgspec.json.Decoder(msgspec.Raw).decode
_encode_frame = msgspec.msgpack.Encoder().encode
_decode_frame = msgspec.msgpack.Decoder(Pair).decode


def stage(
    body: IO[bytes], staging: IO[bytes], store: KvStore, *, now_s: int, blanks: bool, pause: Pause
) -> StagedPairs:
    """Check a bulk put's whole body, from its begin. Holds a portion at a time, not the longest value.

    `pause` is called every few items: it lets other threads go on.
    Raises KvBodyInvalid, with the index of a wrong item; then nothing is left behind.
    """
    staged = StagedPairs(staging)
    try:
        for pair in pairs_in_pieces(_items(body, pause), now_s=now_s, blanks=blanks):
            staged.add(pair, store)
    except BaseException:
        staged.discard()
        raise
    return staged


def keys_to_delete(body: IO[bytes], *, blanks: bool, pause: Pause) -> list[str]:
    """Check a bulk delete's whole body. Raises KvBodyInvalid, with the index of a wrong item."""
    return list(keys_of(_items(body, pause), blanks=blanks))


def _items(body: IO[bytes], pause: Pause) -> Iterator[bytes | HollowItem]:
    scanner = ArrayItems(item_bytes_max=ITEM_BYTES_MAX, string_bytes_max=STRING_BYTES_MAX)
    items = bytes_ = at = 0
    try:
        while chunk := _read_at(body, at):
            at += len(chunk)
            for item in scanner.feed(chunk):
                if scanner.count > BULK_PAIRS_MAX:
                    raise KvBodyInvalid(reason=f"there are more than {BULK_PAIRS_MAX} items")
                items, bytes_ = items + 1, bytes_ + len(item)
                if items >= ITEMS_PER_PAUSE or bytes_ >= BYTES_PER_PAUSE:
                    items = bytes_ = 0
                    pause()
                yield _hollow(item, scanner.holes, body, pause) if scanner.holes else item
        scanner.end()
    except ItemTooLong:
        reason = f"it is longer than {ITEM_BYTES_MAX} bytes without its longest strings"
        raise BulkItemInvalid(index=scanner.count, reason=reason, pointer=f"/{scanner.count}") from None
    except NotAnArray as error:
        raise KvBodyInvalid(reason=str(error)) from None


def _read_at(body: IO[bytes], at: int) -> bytes:
    """Long strings are read between two portions, from the same file."""
    body.seek(at)
    return body.read(READ_BYTES)


def _hollow(item: bytes, holes: Iterable[Hole], body: IO[bytes], pause: Pause) -> HollowItem:
    return HollowItem(item, tuple(LongString(hole.at, partial(_pieces, body, hole, pause)) for hole in holes))


def _pieces(body: IO[bytes], hole: Hole, pause: Pause) -> Iterator[bytes]:
    body.seek(hole.begin)
    left = hole.end - hole.begin
    while left:
        piece = body.read(min(left, BYTES_PER_PAUSE))
        left -= len(piece)
        yield piece
        pause()


def bulk_get(
    store: KvStore, namespace: str, body: BulkGetBody, *, now_s: int, blanks: bool
) -> dict[str, Any]:
    """What to answer for each key; None for one that is not there.

    Raises NoKeys, KvBodyInvalid, KeyInvalid with the key's place;
    ValuesTooLarge above VALUE_BYTES_MAX in all.
    """
    if not body.keys:
        raise NoKeys
    if len(body.keys) > BULK_GET_KEYS_MAX:
        raise KvBodyInvalid(reason=f"there are more than {BULK_GET_KEYS_MAX} keys")
    for index, key in enumerate(body.keys):
        try:
            check_key(key, blanks=blanks)
        except KeyInvalid as error:
            error.pointer = f"/keys/{index}"
            raise
    values: dict[str, Any] = {}
    length = 0
    for key in dict.fromkeys(body.keys):
        found = store.get(namespace, key, now_s)
        if found is None:
            values[key] = None
            continue
        with found:
            length += found.length
            if length > VALUE_BYTES_MAX:
                raise ValuesTooLarge(limit=VALUE_BYTES_MAX)
            value = _READERS[body.type](key, found.read())
        entry = found.entry
        values[key] = ValueView(value, _raw(entry), entry.expires_at_s) if body.with_metadata else value
    return values


def _text(_key: str, content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _json(key: str, content: bytes) -> msgspec.Raw:
    try:
        _look_through(content)  # nothing is made of it: 25 MiB of small arrays would be 800 MB of objects
        utf8 = codecs.getincrementaldecoder("utf-8")()
        for at in range(0, len(content), READ_BYTES):
            utf8.decode(content[at : at + READ_BYTES], at + READ_BYTES >= len(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise KvBodyInvalid(reason=f"the value of {key!r} is not JSON") from None
    return msgspec.Raw(content)


_READERS: dict[str, Callable[[str, bytes], Any]] = {"text": _text, "json": _json}


def _raw(entry: Entry) -> msgspec.Raw | None:
    return None if entry.metadata is None else msgspec.Raw(entry.metadata)
