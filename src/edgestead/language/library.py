"""What the functions of the language compute, on plain values.

Owns  the algorithms: base64, URL and JSON reading, networks, timed HMACs, query arguments.
Not   missing values: a function only runs when all of its arguments are there.

Every function is total: on a value it cannot work with it answers None, which is a missing value. Results
stay within `VALUE_BYTES_MAX`.
"""

import base64
import binascii
import hashlib
import hmac
import uuid
from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

import msgspec

from edgestead.language.types import (
    INT_MAX,
    INT_MIN,
    IPV6_FLAG,
    VALUE_BYTES_MAX,
    VALUE_ITEMS_MAX,
    Value,
    ip_text,
)

URL_DECODE_ROUNDS_MAX = 16  # recursive decoding; each round shortens the value
TIMESTAMP_DIGITS = 10
MAC_BYTES_URL_SAFE = 43  # 32 bytes in base64 without padding


def substring(value: bytes, start: int, end: int | None = None) -> bytes:
    return value[start:end]


def concat(*values: bytes | Sequence[Value]) -> bytes | list[Value]:
    """Strings to a string, arrays to an array; cut at the limits of values."""
    if isinstance(values[0], bytes):
        parts, size = [], 0
        for value in values:
            assert isinstance(value, bytes)
            parts.append(value)
            size += len(value)
            if size >= VALUE_BYTES_MAX:
                break
        return b"".join(parts)[:VALUE_BYTES_MAX]
    items: list[Value] = []
    for value in values:
        assert not isinstance(value, bytes)
        items.extend(value)
    return items[:VALUE_ITEMS_MAX]


def join(items: Sequence[bytes], separator: bytes) -> bytes:
    return separator.join(items)[:VALUE_BYTES_MAX]


def split(value: bytes, separator: bytes, limit: int) -> list[bytes]:
    return value.split(separator, limit - 1)


def remove_bytes(value: bytes, unwanted: bytes) -> bytes:
    return value.translate(None, unwanted)


def _unicode_percent(value: bytes) -> bytes:
    head, *chunks = value.split(b"%u")
    parts = [head]
    for chunk in chunks:
        digits = chunk[:4]
        if len(digits) == 4 and all(digit in b"0123456789abcdefABCDEF" for digit in digits):
            parts += (chr(int(digits, 16)).encode("utf-8", "surrogatepass"), chunk[4:])
        else:
            parts += (b"%u", chunk)
    return b"".join(parts)


def url_decode(value: bytes, options: bytes = b"") -> bytes:
    """``%XX`` and ``+`` decoded; `r` until nothing changes, `u` also ``%uXXXX`` to UTF-8."""
    for _ in range(URL_DECODE_ROUNDS_MAX if b"r" in options else 1):
        decoded = value.replace(b"+", b" ")
        decoded = unquote_to_bytes(_unicode_percent(decoded) if b"u" in options else decoded)
        if decoded == value:
            break
        value = decoded
    return value[:VALUE_BYTES_MAX]


def decode_base64(value: bytes) -> bytes | None:
    """Standard alphabet, padding optional."""
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return None


def encode_base64(value: bytes, flags: bytes = b"") -> bytes:
    """Standard alphabet without padding; `u` the URL-safe one, `p` with padding."""
    encoded = base64.urlsafe_b64encode(value) if b"u" in flags else base64.b64encode(value)
    return (encoded if b"p" in flags else encoded.rstrip(b"="))[:VALUE_BYTES_MAX]


def sha256(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


def to_string(value: bytes | int) -> bytes:
    """Ints and Bools; addresses go through `ip_string`."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return value if isinstance(value, bytes) else b"%d" % value


def ip_string(value: int) -> bytes:
    return ip_text(value).encode()


def _lookup_json(document: bytes, keys: Sequence[bytes | int]) -> object:
    try:
        found: object = msgspec.json.decode(document)
        for key in keys:
            if isinstance(key, bytes) and isinstance(found, dict):
                found = found[key.decode()]
            elif isinstance(key, int) and key >= 0 and isinstance(found, list):
                found = found[key]
            else:
                return None
    except (ValueError, LookupError, RecursionError):  # ValueError: bad JSON or bad UTF-8
        return None
    return found


def lookup_json_string(document: bytes, *keys: bytes | int) -> bytes | None:
    found = _lookup_json(document, keys)
    return found.encode("utf-8", "surrogatepass") if isinstance(found, str) else None


def lookup_json_integer(document: bytes, *keys: bytes | int) -> int | None:
    found = _lookup_json(document, keys)
    return found if type(found) is int and INT_MIN <= found <= INT_MAX else None


def cidr(address: int, ipv4_bits: int, ipv6_bits: int) -> int:
    """The network address."""
    if address & IPV6_FLAG:
        spare = 128 - ipv6_bits
        return address >> spare << spare
    spare = 32 - ipv4_bits
    return address >> spare << spare


def cidr6(address: int, ipv6_bits: int) -> int:
    return cidr(address, 32, ipv6_bits)


def is_ipv4(address: int) -> bool:
    return not address & IPV6_FLAG


def is_ipv6(address: int) -> bool:
    return bool(address & IPV6_FLAG)


def has_key(container: Mapping[bytes, Value], key: bytes) -> bool:
    return key in container


def has_value(container: Mapping[bytes, Value] | Sequence[Value], value: Value) -> bool:
    return value in (container.values() if isinstance(container, Mapping) else container)


def remove_query_args(query: bytes, *names: bytes) -> bytes:
    """The query without those arguments; the rest keeps its order and spelling."""
    return b"&".join(pair for pair in query.split(b"&") if pair.partition(b"=")[0] not in names)


def uuidv4(seed: bytes) -> bytes | None:
    """RFC 9562 §5.4, from the first 16 bytes of the seed."""
    return str(uuid.UUID(bytes=seed[:16], version=4)).encode() if len(seed) >= 16 else None


def is_timed_hmac_valid(
    key: bytes,
    message_mac: bytes,
    ttl_seconds: int,
    now_seconds: int,
    separator_bytes: int = 0,
    flags: bytes = b"",
) -> bool:
    """Whether ``message separator timestamp-mac`` carries our HMAC-SHA256 of message and timestamp, in time.

    The mac is base64, URL-encoded; with flag `s` it is URL-safe base64 without padding.
    """
    if flags == b"s":
        head, mac = message_mac[: -MAC_BYTES_URL_SAFE - 1], message_mac[-MAC_BYTES_URL_SAFE:]
        dash = message_mac[-MAC_BYTES_URL_SAFE - 1 : -MAC_BYTES_URL_SAFE]
        mac = mac.replace(b"-", b"+").replace(b"_", b"/")
    else:
        head, dash, mac = message_mac.rpartition(b"-")
        mac = unquote_to_bytes(mac)
    timestamp = head[-TIMESTAMP_DIGITS:]
    message = head[: len(head) - TIMESTAMP_DIGITS - separator_bytes]
    given = decode_base64(mac)
    if (
        dash != b"-"
        or given is None
        or not message
        or len(timestamp) < TIMESTAMP_DIGITS
        or not timestamp.isdigit()
    ):
        return False
    expected = hmac.digest(key, message + timestamp, "sha256")
    return hmac.compare_digest(expected, given) and now_seconds < int(timestamp) + ttl_seconds
