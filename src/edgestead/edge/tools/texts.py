"""Bytes of a request as rules see them, and bytes of rules as a message may carry them.

Owns  normal paths, extensions, pairs of queries, forms and cookies; what may stand in a target or a header.
Not   which field is which; deciding anything.

Everything is one walk over the text: no regular expression meets a stranger's bytes.
"""

from collections.abc import Iterable

from edgestead.language.types import VALUE_ITEMS_MAX

HEADER_VALUE_OCTETS_MAX = 8_192  # what a rule may write into one header; longer is cut
TARGET_OCTETS_MAX = 16_384  # what a rule may make of a path, a query or a redirect; longer is cut

_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_HEX = frozenset(b"0123456789abcdefABCDEF")
# What a request line cannot hold (RFC 9112 §3): controls, blank, everything outside of ASCII.
_NO_TARGET = bytes((*range(0x21), *range(0x7F, 0x100)))
_NO_PATH = _NO_TARGET + b"?#"
_NO_QUERY = _NO_TARGET + b"#"
_NO_VALUE = bytes((*range(0x09), *range(0x0A, 0x20), 0x7F))  # RFC 9110 §5.5: a tab and UTF-8 may stay


def normal_path(path: bytes) -> bytes:
    """The path that different spellings have in common (RFC 3986 §6.2.2), so that a rule meets all of them.

    Escapes of letters, digits and ``-._~`` are decoded once, other escapes get upper-case digits, backslashes
    become slashes, runs of slashes one, and dot segments are resolved. The origin still gets what was sent.

    >>> normal_path(b"/%61dmin//./x/../log%2fin")
    b'/admin/log%2Fin'
    """
    if path[:1] != b"/":
        return path
    if b"%" in path:
        path = unescaped(path)
    kept: list[bytes] = []
    segments = path.replace(b"\\", b"/").split(b"/")
    for segment in segments:
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    tail = b"/" if kept and segments[-1] in (b"", b".", b"..") else b""
    return b"/" + b"/".join(kept) + tail


def unescaped(path: bytes) -> bytes:
    """Escapes of letters, digits and ``-._~`` decoded once, the others in upper case."""
    head, *chunks = path.split(b"%")
    parts = [head]
    for chunk in chunks:
        if len(chunk) < 2 or chunk[0] not in _HEX or chunk[1] not in _HEX:
            parts.append(b"%" + chunk)
            continue
        octet = int(chunk[:2], 16)
        parts.append(bytes((octet,)) if octet in _UNRESERVED else b"%" + chunk[:2].upper())
        parts.append(chunk[2:])
    return b"".join(parts)


def extension(path: bytes) -> bytes:
    """What follows the last dot of the last segment, in lower case; empty without one."""
    name = path[path.rfind(b"/") + 1 :]
    return name[dot + 1 :].lower() if (dot := name.rfind(b".")) >= 0 else b""


def pairs(text: bytes, separator: bytes = b"&") -> list[tuple[bytes, bytes]]:
    """Names and values of a query or a form, as they were sent; empty pieces are none."""
    pieces = text.split(separator, VALUE_ITEMS_MAX)[:VALUE_ITEMS_MAX]
    return [(name, value) for piece in pieces if piece for name, _, value in (piece.partition(b"="),)]


def cookie_pairs(header: bytes) -> list[tuple[bytes, bytes]]:
    """Names and values of a Cookie header (RFC 6265 §4.2.1)."""
    return [(name.strip(), value.strip()) for name, value in pairs(header, b";")]


def grouped(items: Iterable[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """A map from each name to its values, in order."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in items:
        found.setdefault(name, []).append(value)
    return found


def languages(header: bytes) -> list[bytes]:
    """The tags of Accept-Language, most wanted first (RFC 9110 §12.5.4)."""
    ranked = []
    for piece in header.split(b",", VALUE_ITEMS_MAX)[:VALUE_ITEMS_MAX]:
        tag, _, weight = piece.partition(b";")
        if tag := tag.strip():
            ranked.append((-_weight(weight.strip()), tag))
    ranked.sort(key=lambda item: item[0])
    return [tag for _, tag in ranked]


def _weight(text: bytes) -> float:
    digits = text.removeprefix(b"q=")[:5]
    try:
        return float(digits) if text else 1.0
    except ValueError:
        return 0.0


def media_type(content_type: bytes) -> bytes:
    """Without parameters, in lower case."""
    return content_type.partition(b";")[0].strip().lower()


def safe_path(path: bytes) -> bytes:
    """A path that a rule computed, as a request line can hold it; begins with a slash."""
    path = _escaped(path[:TARGET_OCTETS_MAX], _NO_PATH)
    return path if path[:1] == b"/" else b"/" + path


def safe_query(query: bytes) -> bytes:
    return _escaped(query[:TARGET_OCTETS_MAX].removeprefix(b"?"), _NO_QUERY)


def safe_location(url: bytes) -> bytes:
    return _escaped(url[:TARGET_OCTETS_MAX], _NO_TARGET)


def _escaped(text: bytes, unwanted: bytes) -> bytes:
    if len(text.translate(None, unwanted)) == len(text):
        return text
    return b"".join(b"%%%02X" % octet if octet in unwanted else bytes((octet,)) for octet in text)


def safe_value(value: bytes) -> bytes:
    """A header's value that a rule computed, without what could begin another header."""
    return value[:HEADER_VALUE_OCTETS_MAX].translate(None, _NO_VALUE).strip()
