"""What a key-value namespace may hold: keys, values, expiry and metadata, and the refusals.

Owns  the limits and rules of one key, one write and one namespace, with their codes and words.
Not   storing (`store.kv`), permissions, HTTP framing.

Sources: spec "Key-value entry", "Limits"; codes from the public API's observed answers. Only the standard
library is imported: `edgecli kv` reads the limits from here.
"""

import json
import re
from typing import Any, NoReturn

from edgestead.model.refusals import CLIENTS_TAKE_IT
from edgestead.model.refusals.kv import (
    ExpirationInvalid,
    KeyInvalid,
    KeyTooLong,
    MetadataInvalid,
    MetadataTooLarge,
    NamespaceIdInvalid,
    TitleInvalid,
    TtlInvalid,
    ValueTooLarge,
)

KEY_BYTES_MAX = 512  # as UTF-8; spec "Limits"
VALUE_BYTES_MAX = 26_214_400  # spec "Limits": 25 MB, read as MiB
METADATA_BYTES_MAX = 1_024  # compact JSON as UTF-8; spec "Limits"
METADATA_TEXT_BYTES_MAX = 16_384  # before it is made compact
TTL_SECONDS_MIN = 60  # spec "Limits"
EXPIRES_AT_S_MAX = 253_402_300_799  # 9999-12-31T23:59:59Z, the last second that ISO 8601 can write
BULK_PAIRS_MAX = 10_000  # contract "Key-value store": of one request
BULK_BYTES_MAX = 104_857_600  # 100 MB, read as MiB like the value's limit
BULK_GET_KEYS_MAX = 100  # contract "Key-value store": of one request
TITLE_CHARACTERS_MAX = 512  # contract "Key-value store"
NAMESPACES_PER_ACCOUNT_MAX = 1_000  # contract "Key-value store"

# Control characters, separators, surrogates; blanks apart (`Profile.CLIENTS` allows those).
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ud800-\udfff]"
)
# One look instead of five: what cannot be wrong in any profile.
_USUAL_KEY = re.compile(f"[!-~]{{3,{KEY_BYTES_MAX}}}")
_NAMESPACE_ID = re.compile("[0-9a-f]{32}")


def check_namespace_id(text: str) -> str:
    """Raises NamespaceIdInvalid. Capital digits are taken, as the same id."""
    id_ = text.lower()
    if _NAMESPACE_ID.fullmatch(id_) is None:
        raise NamespaceIdInvalid
    return id_


def check_key(key: str, *, blanks: bool) -> str:
    """One key: 1 to 512 bytes of UTF-8, printable; `blanks` allows U+0020 inside it.

    Raises KeyInvalid, KeyTooLong. Source: spec "Key-value entry"; `.` and `..` never survive a URL.
    """
    if _USUAL_KEY.fullmatch(key) is not None:
        return key
    if key in ("", ".", ".."):
        raise KeyInvalid(reason="is empty" if not key else f"may not be {key!r}")
    if _UNPRINTABLE.search(key) is not None:
        raise KeyInvalid(reason="may hold printable characters only")
    if not blanks and " " in key:
        raise KeyInvalid(reason=f"may not hold blanks; {CLIENTS_TAKE_IT}")
    length = len(key.encode())
    if length > KEY_BYTES_MAX:
        raise KeyTooLong(bytes=length, limit=KEY_BYTES_MAX)
    return key


def expires_at_s(*, ttl_seconds: int | None, expiration_s: int | None, now_s: int) -> int | None:
    """When a write expires, None for never. A TTL wins over a time.

    Raises TtlInvalid below 60 s, ExpirationInvalid for a time less than 60 s ahead; both beyond year 9999.
    """
    if ttl_seconds is not None:
        if ttl_seconds < TTL_SECONDS_MIN:
            raise TtlInvalid(ttl=ttl_seconds, reason=f"Expiration TTL must be at least {TTL_SECONDS_MIN}")
        if now_s + ttl_seconds > EXPIRES_AT_S_MAX:
            raise TtlInvalid(ttl=ttl_seconds, reason="It ends after the year 9999")
        return now_s + ttl_seconds
    if expiration_s is not None:
        if expiration_s < now_s + TTL_SECONDS_MIN:
            reason = f"Expiration times must be at least {TTL_SECONDS_MIN} seconds in the future"
            raise ExpirationInvalid(expiration=expiration_s, reason=reason)
        if expiration_s > EXPIRES_AT_S_MAX:
            raise ExpirationInvalid(expiration=expiration_s, reason="It is after the year 9999")
    return expiration_s


def check_value_length(length: int) -> None:
    """Raises ValueTooLarge."""
    if length > VALUE_BYTES_MAX:
        raise ValueTooLarge(limit=VALUE_BYTES_MAX)


def compact_metadata(text: bytes | str, *, object_only: bool = False) -> bytes | None:
    """Metadata as it is stored: compact JSON in UTF-8; None for `null`.

    Raises MetadataInvalid, MetadataTooLarge. Numbers keep their value, members their order.
    """
    if text == b"null":
        return None  # most entries have none
    if len(text) > METADATA_TEXT_BYTES_MAX:
        raise MetadataTooLarge(bytes=len(text), limit=METADATA_BYTES_MAX)
    try:
        value = _decode(text if isinstance(text, str) else text.decode())
        compact = _encode(value).encode()
    except (ValueError, RecursionError):  # UnicodeError is a ValueError: lone surrogates
        raise MetadataInvalid(reason="must be JSON") from None
    if object_only and not isinstance(value, dict | None):
        raise MetadataInvalid(reason="must be a JSON object")
    if len(compact) > METADATA_BYTES_MAX:
        raise MetadataTooLarge(bytes=len(compact), limit=METADATA_BYTES_MAX)
    return None if value is None else compact


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def check_title(title: Any) -> str:
    """Raises TitleInvalid. Source: spec "Key-value namespace"; 512 characters by the public clients."""
    if not isinstance(title, str) or not title.strip():
        raise TitleInvalid(reason="is missing")
    if len(title) > TITLE_CHARACTERS_MAX:
        raise TitleInvalid(reason=f"is longer than {TITLE_CHARACTERS_MAX} characters")
    if any(ord(character) < 0x20 or 0xD800 <= ord(character) <= 0xDFFF for character in title):
        raise TitleInvalid(reason="may hold printable characters only")
    return title
