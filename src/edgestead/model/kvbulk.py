"""One item of a bulk body: an entry object or a key, from its JSON.

Owns  the shape of both, and decoding base64 values.
Not   the array around the items (`model.jsonarray`); storing.

Source: spec "Key-value entry (bulk upload)". Members that are not in it are ignored; null is not sent.
"""

import binascii
from collections.abc import Iterable, Iterator

import msgspec

from edgestead.model.kv import check_key, check_value_length, compact_metadata, expires_at_s
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.kv import BulkItemInvalid, KvBodyInvalid


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


_decode_item = msgspec.json.Decoder(PairSent).decode
_decode_key = msgspec.json.Decoder(str).decode


def pair_of(item: bytes, *, now_s: int, blanks: bool) -> BulkPair:
    """Raises the refusals of `model.kv`; KvBodyInvalid when it is not an entry object."""
    try:
        entry = _decode_item(item)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise KvBodyInvalid(reason=_reason(error)) from None
    check_key(entry.key, blanks=blanks)
    content = _content_of(entry)
    check_value_length(len(content))
    metadata = None
    if not isinstance(entry.metadata, msgspec.UnsetType):  # most entries have none
        metadata = compact_metadata(bytes(entry.metadata), object_only=True)
    return BulkPair(entry.key, content, _expires_at_s(entry, now_s), metadata)


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


def key_of(item: bytes, *, blanks: bool) -> str:
    """Raises KvBodyInvalid when it is not a string, KeyInvalid."""
    try:
        key = _decode_key(item)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise KvBodyInvalid(reason=_reason(error)) from None
    return check_key(key, blanks=blanks)


def pairs_of(items: Iterable[bytes], *, now_s: int, blanks: bool) -> Iterator[BulkPair]:
    """Each item's entry. Raises BulkItemInvalid for the first that is wrong."""
    for index, item in enumerate(items):
        try:
            yield pair_of(item, now_s=now_s, blanks=blanks)
        except EdgeError as error:
            raise _numbered(error, index) from None


def keys_of(items: Iterable[bytes], *, blanks: bool) -> Iterator[str]:
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
