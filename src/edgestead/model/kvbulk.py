"""One item of a bulk body: an entry object or a key, from its JSON.

Owns  the shape of both, decoding base64 values, and values that are read in pieces.
Not   the array around the items (`model.jsonarray`); storing.

Source: spec "Key-value entry (bulk upload)". Members that are not in it are ignored; null is not sent.
"""

import binascii
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

import msgspec

from edgestead.model.jsonpieces import octets_of, text_of
from edgestead.model.kv import (
    KEY_BYTES_MAX,
    METADATA_BYTES_MAX,
    check_key,
    check_value_length,
    compact_metadata,
    expires_at_s,
)
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.kv import BulkItemInvalid, KeyTooLong, KvBodyInvalid, MetadataTooLarge


class PairSent(msgspec.Struct):
    """One pair as a bulk put sends it."""

    key: str
    value: str
    base64: bool | None = None
    expiration: int | float | None = None  # JSON has one kind of number: 60.0 is 60
    expiration_ttl: int | float | None = None
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class BulkPair(msgspec.Struct, frozen=True):
    """An entry as it will be stored."""

    key: str
    content: bytes
    expires_at_s: int | None
    metadata: bytes | None


class LongString(NamedTuple):
    """A string that is not in its item: where it belongs, behind its opening quote, and what is between the
    quotes, in pieces, as often as asked."""

    at: int
    pieces: Callable[[], Iterator[bytes]]


class HollowItem(NamedTuple):
    """An item without its longest strings."""

    item: bytes
    strings: tuple[LongString, ...]


class LongPair(NamedTuple):
    """As BulkPair, with a value in pieces. They raise what `pairs_of` raises."""

    key: str
    pieces: Iterator[bytes]
    expires_at_s: int | None
    metadata: bytes | None


_decode_item = msgspec.json.Decoder(PairSent).decode
_decode_key = msgspec.json.Decoder(str).decode


def pair_of(item: bytes, *, now_s: int, blanks: bool) -> BulkPair:
    """Raises the refusals of `model.kv`; KvBodyInvalid when it is not an entry object."""
    entry = _entry_of(item)
    check_key(entry.key, blanks=blanks)
    content = _content_of(entry)
    check_value_length(len(content))
    return BulkPair(entry.key, content, _expires_at_s(entry, now_s), _metadata_of(entry))


def long_pair_of(hollow: HollowItem, *, now_s: int, blanks: bool) -> LongPair:
    """As `pair_of`. What is wrong with the value its pieces raise.

    The item is decoded twice, with other words where its long strings were: what differs is one of them.
    """
    entry = _entry_of(_filled(hollow, ""))
    numbered = _entry_of(_filled(hollow, "{}"))
    if entry.key != numbered.key:
        _refuse_key(hollow.strings[int(numbered.key)])
    check_key(entry.key, blanks=blanks)
    if entry.metadata != numbered.metadata:
        length = sum(len(piece) for string in hollow.strings for piece in string.pieces())
        raise MetadataTooLarge(bytes=length, limit=METADATA_BYTES_MAX)
    value = None if entry.value == numbered.value else int(numbered.value)
    return LongPair(
        entry.key, _long_content_of(hollow, entry, value), _expires_at_s(entry, now_s), _metadata_of(entry)
    )


def _refuse_key(string: LongString) -> NoReturn:
    raise KeyTooLong(bytes=sum(map(len, _refusing(text_of(string.pieces())))), limit=KEY_BYTES_MAX)


def _filled(hollow: HollowItem, word: str) -> bytes:
    """With a word for each string; {} is its number."""
    parts: list[bytes] = []
    end = 0
    for number, string in enumerate(hollow.strings):
        parts += hollow.item[end : string.at], word.format(number).encode()
        end = string.at
    return b"".join((*parts, hollow.item[end:]))


def _long_content_of(hollow: HollowItem, entry: PairSent, value: int | None) -> Iterator[bytes]:
    """The value, in pieces; all other strings are read as well, for they may be none."""
    length = 0
    if value is None:
        yield _content_of(entry)
    for number, string in enumerate(hollow.strings):
        text = _refusing(text_of(string.pieces()))
        if number != value:
            for _ in text:
                pass
            continue
        for piece in _decoded(text) if entry.base64 else text:
            length += len(piece)
            check_value_length(length)
            yield piece


def _refusing(text: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from text
    except (msgspec.MsgspecError, UnicodeError) as error:
        # The decoder's number of a byte counts from the piece's begin.
        raise KvBodyInvalid(reason=_reason(error).partition(" (byte")[0]) from None


def _decoded(text: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from octets_of(text)
    except ValueError:
        raise KvBodyInvalid(reason="the value is not base64") from None


def _entry_of(item: bytes) -> PairSent:
    try:
        return _decode_item(item)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise KvBodyInvalid(reason=_reason(error)) from None


def _metadata_of(entry: PairSent) -> bytes | None:
    if isinstance(entry.metadata, msgspec.UnsetType):  # most entries have none
        return None
    return compact_metadata(bytes(entry.metadata), object_only=True)


def _expires_at_s(entry: PairSent, now_s: int) -> int | None:
    if entry.expiration_ttl is None and entry.expiration is None:
        return None
    return expires_at_s(
        ttl_seconds=_whole(entry.expiration_ttl, "expiration_ttl"),
        expiration_s=_whole(entry.expiration, "expiration"),
        now_s=now_s,
    )


def _content_of(entry: PairSent) -> bytes:
    if not entry.base64:
        return entry.value.encode()
    try:
        return binascii.a2b_base64(entry.value, strict_mode=True)
    except ValueError:
        raise KvBodyInvalid(reason="the value is not base64") from None


def key_of(item: bytes | HollowItem, *, blanks: bool) -> str:
    """Raises KvBodyInvalid when it is not a string, KeyInvalid."""
    try:
        key = _decode_key(item if isinstance(item, bytes) else item.item)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise KvBodyInvalid(reason=_reason(error)) from None
    if isinstance(item, HollowItem):
        _refuse_key(item.strings[0])
    return check_key(key, blanks=blanks)


def pairs_of(items: Iterable[bytes], *, now_s: int, blanks: bool) -> Iterator[BulkPair]:
    """Each item's entry. Raises BulkItemInvalid for the first that is wrong."""
    for index, item in enumerate(items):
        try:
            yield pair_of(item, now_s=now_s, blanks=blanks)
        except EdgeError as error:
            raise _numbered(error, index) from None


def pairs_in_pieces(
    items: Iterable[bytes | HollowItem], *, now_s: int, blanks: bool
) -> Iterator[BulkPair | LongPair]:
    """As `pairs_of`, and of hollow items as well. Read a pair's pieces before you ask for the next pair."""
    for index, item in enumerate(items):
        try:
            if isinstance(item, bytes):
                yield pair_of(item, now_s=now_s, blanks=blanks)
                continue
            pair = long_pair_of(item, now_s=now_s, blanks=blanks)
        except EdgeError as error:
            raise _numbered(error, index) from None
        yield pair._replace(pieces=_numbering(pair.pieces, index))


def _numbering(pieces: Iterator[bytes], index: int) -> Iterator[bytes]:
    try:
        yield from pieces
    except EdgeError as error:
        raise _numbered(error, index) from None


def keys_of(items: Iterable[bytes | HollowItem], *, blanks: bool) -> Iterator[str]:
    """Each item's key. Raises BulkItemInvalid for the first that is wrong."""
    for index, item in enumerate(items):
        try:
            yield key_of(item, blanks=blanks)
        except EdgeError as error:
            raise _numbered(error, index) from None


def _numbered(error: EdgeError, index: int) -> BulkItemInvalid:
    reason = error.facts["reason"] if isinstance(error, KvBodyInvalid) else error.message
    return BulkItemInvalid(index=index, reason=reason, pointer=f"/{index}")


def _whole(number: int | float | None, name: str) -> int | None:
    if isinstance(number, float):
        if not number.is_integer():
            raise KvBodyInvalid(reason=f"{name} must be a whole number")
        return int(number)
    return number


def _reason(error: Exception) -> str:
    # The decoder's own words for text that is no UTF-8 would quote it.
    return "it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
