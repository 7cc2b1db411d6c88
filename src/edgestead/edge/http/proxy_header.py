"""The PROXY protocol: who is behind a proxy that passes on bytes.

Owns  reading both versions of its header.
Not   whose header is believed (`edge.http.address.Trust`).

Source: "The PROXY protocol", versions 1 & 2, by the authors of HAProxy, §2.1 and §2.2.
"""

from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

HEADER_BYTES_MAX = 16 + 4096  # version 2 allows 64 KiB of extensions, which nobody here reads
_LINE_BYTES_MAX = 107  # of version 1
_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_PREFIX = b"PROXY "
_FAMILIES = {b"TCP4": IPv4Address, b"TCP6": IPv6Address}
_LOCAL, _PROXY = 0x20, 0x21
_STREAMS = {0x11: (IPv4Address, 4), 0x21: (IPv6Address, 16)}


class BadHeader(Exception):
    """What comes is no PROXY header."""


class Found(NamedTuple):
    """A header of `length` bytes. `source` is "" when the proxy speaks for itself."""

    length: int
    source: str


def read(data: bytes) -> Found | None:
    """The header at the start of what has arrived; None: more is needed. Raises BadHeader."""
    if data[: len(_SIGNATURE)] == _SIGNATURE:
        return _binary(data)
    if data[: len(_PREFIX)] == _PREFIX:
        return _line(data)
    if _SIGNATURE.startswith(data) or _PREFIX.startswith(data):
        return None
    raise BadHeader


def _line(data: bytes) -> Found | None:
    line, end, _ = data[:_LINE_BYTES_MAX].partition(b"\r\n")
    if not end:
        if len(data) >= _LINE_BYTES_MAX:
            raise BadHeader
        return None
    length, words = len(line) + 2, line.split(b" ")
    if words[1:2] == [b"UNKNOWN"]:
        return Found(length, "")
    if len(words) != 6 or words[1] not in _FAMILIES:
        raise BadHeader
    family = _FAMILIES[words[1]]
    try:
        addresses = [family(word.decode("ascii")) for word in words[2:4]]
    except ValueError:
        raise BadHeader from None
    if not all(_is_port(word) for word in words[4:]):
        raise BadHeader
    return Found(length, str(addresses[0]))


def _is_port(word: bytes) -> bool:
    return word.isdigit() and len(word) <= 5 and int(word) <= 65_535 and (word == b"0" or word[:1] != b"0")


def _binary(data: bytes) -> Found | None:
    if len(data) < 16:
        return None
    command, family, size = data[12], data[13], int.from_bytes(data[14:16], "big")
    length = 16 + size
    if command not in (_LOCAL, _PROXY) or length > HEADER_BYTES_MAX:
        raise BadHeader
    if len(data) < length:
        return None
    if command == _LOCAL or family not in _STREAMS:
        return Found(length, "")
    kind, octets = _STREAMS[family]
    if size < 2 * octets + 4:
        raise BadHeader
    return Found(length, str(kind(data[16 : 16 + octets])))
