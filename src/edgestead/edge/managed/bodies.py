"""How much of a body a zone has inspected, and what becomes of one that is larger or packed.

Owns  the settings `waf_body_bytes`, `waf_body_rest`, `waf_arguments` and `waf_packed_bodies`; unpacking.
Not   reading bodies (`waf.bodies`); the event that a part was not looked at (`edge.managed.rules`).

    setting            refuse (the default)   pass                         unpack
    waf_body_rest      413                    the beginning is looked at   –
    waf_packed_bodies  415                    nothing is looked at         what is packed is looked at

The origin gets what the client sent. What is not looked at whole is an event with the reason. Multipart
bodies have their later parts inspected (`waf.bodies.late_parts`), so nothing of them is passed by.
"""

import zlib
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

import brotli
import zstandard

from edgestead.edge.exchanges.exchange import Exchange, values_of
from edgestead.waf.bodies.media_types import processor_of
from edgestead.waf.limits import ARGUMENTS_MAX, BODY_BYTES_MAX

OVER, PACKED = "body-size", "content-encoding"  # reasons of events, those of refusals
_READ: Final = ("URLENCODED", "JSON", "XML")  # what is refused over a limit; anything else is one value
ZSTD_WINDOW_MAX: Final = 8 << 20  # RFC 9659 §3: what a receiver has to take
# How a body with a window of 8 or 16 MiB begins (RFC 7932 §9.1). The library fills the window before it looks
# at how much is wanted: 30 ms for 93 octets. Who packs so little needs none of these; 4 MiB are usual.
_WIDE_BROTLI: Final = (0b1101, 0b1111)


class Bounds(NamedTuple):
    """What a zone says."""

    body_bytes: int = BODY_BYTES_MAX
    arguments: int = ARGUMENTS_MAX
    rest: str = "refuse"
    packed: str = "refuse"


DEFAULT: Final = Bounds()


class Seen(NamedTuple):
    """What of a body is inspected. `passed` is why the rest, or all of it, is not; "" where all is."""

    body: bytes
    partial: bool = False
    unpacked: bool = False
    passed: str = ""


def bounds_of(settings: Mapping[str, Any]) -> Bounds:
    return Bounds(
        settings.get("waf_body_bytes", BODY_BYTES_MAX),
        settings.get("waf_arguments", ARGUMENTS_MAX),
        settings.get("waf_body_rest", "refuse"),
        settings.get("waf_packed_bodies", "refuse"),
    )


def seen(exchange: Exchange, bounds: Bounds) -> Seen:
    """Where a refusal is due, all that is there: the inspection says so."""
    body, is_whole = exchange.body, exchange.body_complete
    processor = processor_of(exchange.header(b"content-type") or b"")
    # Stated twice it is a list (RFC 9110 §5.3): of that, no coding is taken for all.
    coding = b", ".join(values_of(exchange.headers, b"content-encoding")).strip().lower()
    unpacked = False
    if body and coding not in (b"", b"identity"):
        if bounds.packed == "pass":
            return Seen(b"", passed=PACKED)
        found = _unpacked(body, coding, bounds.body_bytes, is_whole) if bounds.packed == "unpack" else None
        if found is None:
            return Seen(body)
        body, is_whole = found
        unpacked = True
    if len(body) <= bounds.body_bytes and is_whole:
        return Seen(body, unpacked=unpacked)
    if processor == "MULTIPART" and not unpacked:
        return Seen(body)
    if processor not in _READ and not unpacked:
        return Seen(body)  # one value, of which the beginning is looked at anyway
    if bounds.rest == "pass":
        return Seen(body[: bounds.body_bytes], partial=True, unpacked=unpacked, passed=OVER)
    return Seen(body, unpacked=unpacked)


def _unpacked(body: bytes, coding: bytes, bytes_max: int, is_whole: bool) -> tuple[bytes, bool] | None:
    """What was packed, one byte more than `bytes_max` at most, and whether that is all.

    None where it cannot be read in one way alone: another coding, several, damage, something behind the end.
    """
    unpack = _UNPACK.get(coding)
    if unpack is None:
        return None
    try:
        found, ended = unpack(body, bytes_max + 1)
    except (zlib.error, brotli.error, zstandard.ZstdError):
        return None
    if ended is End.HERE:
        return (found, True) if is_whole else None
    if ended is End.BEFORE_MORE:
        return None
    return (found, False) if len(found) > bytes_max or not is_whole else None


class End(Enum):
    """Where the packed content ends: with the body, before it, or not in what is here or was unpacked."""

    HERE = "here"
    BEFORE_MORE = "before more"
    LATER = "later"


def _unpack_zlib(window: int, body: bytes, octets_max: int) -> tuple[bytes, End]:
    unpacker = zlib.decompressobj(window)
    found = unpacker.decompress(body, octets_max)
    if unpacker.eof:
        return found, End.BEFORE_MORE if unpacker.unused_data else End.HERE
    return found, End.LATER


def _unpack_brotli(body: bytes, octets_max: int) -> tuple[bytes, End]:
    """Octets behind the end are an error of the library's; it unpacks up to 32 KiB more than it should."""
    if body[0] & 0b1111 in _WIDE_BROTLI:
        return b"", End.BEFORE_MORE
    unpacker = brotli.Decompressor()
    found = unpacker.process(body, output_buffer_limit=octets_max)
    return found[:octets_max], End.HERE if unpacker.is_finished() else End.LATER


def _unpack_zstd(body: bytes, octets_max: int) -> tuple[bytes, End]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_MAX)
    with unpacker.stream_reader(body, read_across_frames=False) as reader:
        found: bytes = reader.read(octets_max)
    if len(found) == octets_max:
        return found, End.LATER
    whole = unpacker.decompressobj()  # it knows no bound, and needs none any more
    whole.decompress(body)
    if not whole.eof:
        return found, End.LATER
    return found, End.BEFORE_MORE if whole.unused_data else End.HERE


Unpack = Callable[[bytes, int], tuple[bytes, End]]
_UNPACK: Final[dict[bytes, Unpack]] = {
    b"gzip": partial(_unpack_zlib, 16 + zlib.MAX_WBITS),
    b"x-gzip": partial(_unpack_zlib, 16 + zlib.MAX_WBITS),
    b"deflate": partial(_unpack_zlib, zlib.MAX_WBITS),  # RFC 9110 §8.4.1.2: zlib's form
    b"br": _unpack_brotli,
    b"zstd": _unpack_zstd,
}
