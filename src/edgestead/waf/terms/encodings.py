"""Decoding what browsers, servers and languages decode: URL, HTML, JavaScript, CSS and C escapes.

Owns  seven decoders and one encoder, bytes to bytes; the pattern and the unit of each that has one.
Not   which rule uses which.

None fails: what is no valid escape stays. Each pattern below takes a bounded number of bytes, or a run of one
class, so each pass is linear.

Source: reference manual of ModSecurity v3, "Transformation functions"; CSS 2 §4.1.3; RFC 3629.
"""

import re

PERCENT = re.compile(rb"%[uU]([0-9A-Fa-f]{4})|%([0-9A-Fa-f]{2})|%[uU]")
HEX_PAIR = re.compile(rb"%([0-9A-Fa-f]{2})")
ENTITY = re.compile(rb"&(?:#[xX]([0-9A-Fa-f]+);?|#([0-9]+);?|(?i:(quot|amp|lt|gt|nbsp))[0-9A-Za-z]*;?)")
JS = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))", re.DOTALL)
C = re.compile(rb"\\(?:[xX]([0-9A-Fa-f]{2})|([0-7]{1,3})|(.))", re.DOTALL)
CSS = re.compile(rb"\\(?:([0-9A-Fa-f]{1,6})[ \t\n\v\f\r]?|\n|(.)|\Z)", re.DOTALL)
COOKIE = re.compile(rb"\\(?:([0-3][0-7][0-7])|(.))", re.DOTALL)
UTF8 = re.compile(rb"[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\x80-\xff]")
_ENTITIES = {b"quot": b'"', b"amp": b"&", b"lt": b"<", b"gt": b">", b"nbsp": b"\xa0"}
_CONTROLS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_BYTES = [bytes((byte,)) for byte in range(256)]
_HEX_BYTES = {b"%02x" % byte: _BYTES[byte] for byte in range(256)}
_SMALLEST = (0, 0, 0x80, 0x800, 0x10000)  # code point by number of bytes
_LONG_MAX = (1 << 63) - 1  # where the peer's number parsing stops counting


def _low_byte(code: int) -> bytes:
    """The byte of a code point: its low eight bits, with the full-width forms of ASCII folded to ASCII."""
    low = code & 0xFF
    if 0 < low < 0x5F and code >> 8 & 0xFF == 0xFF:
        low += 0x20
    return _BYTES[low]


def url_decode(value: bytes) -> bytes:
    """``%41`` and ``+``."""
    return percent_decode(value.replace(b"+", b" ") if b"+" in value else value)


def percent_decode(value: bytes) -> bytes:
    """``%41``. What is no escape stays."""
    if b"%" not in value:
        return value
    first, *rest = value.split(b"%")
    out = [first]
    for part in rest:
        decoded = _HEX_BYTES.get(part[:2].lower())
        out.append(b"%" + part if decoded is None else decoded + part[2:])
    return b"".join(out)


def hex_unit(found: re.Match[bytes]) -> bytes:
    return _HEX_BYTES[found[1].lower()]


def uni_unit(found: re.Match[bytes]) -> bytes:
    if found[1] is not None:
        return _low_byte(int(found[1], 16))
    return found[0] if found[2] is None else _HEX_BYTES[found[2].lower()]


def url_decode_uni(value: bytes) -> bytes:
    """`url_decode`, and IIS's ``%u0041``, of which the low byte counts. Other ``%u`` stay."""
    if b"%" not in value:
        return value.replace(b"+", b" ")
    return PERCENT.sub(uni_unit, value.replace(b"+", b" "))


def entity_unit(found: re.Match[bytes]) -> bytes:
    if found[3] is not None:
        return _ENTITIES[found[3].lower()]
    digits, base = (found[1], 16) if found[1] is not None else (found[2], 10)
    # a number of any length counts as the largest that is counted: only its low byte is asked for
    significant = digits.lstrip(b"0")[:20] or b"0"
    return _BYTES[min(int(significant, base), _LONG_MAX) & 0xFF]


def html_entity_decode(value: bytes) -> bytes:
    """Numeric entities to their low byte, and quot, amp, lt, gt, nbsp; the semicolon may be missing.

    Oddity: a name counts by how it begins, so ``&ltfoo;`` is ``<``.
    """
    return ENTITY.sub(entity_unit, value) if b"&" in value else value


def js_unit(found: re.Match[bytes]) -> bytes:
    if found[4] is not None:
        return _CONTROLS.get(found[4], found[4])
    if found[3] is not None:
        return _BYTES[int(found[3], 8)]
    if found[2] is not None:
        return _HEX_BYTES[found[2].lower()]
    return _low_byte(int(found[1], 16))


def js_decode(value: bytes) -> bytes:
    """``\\uHHHH`` (low byte), ``\\xHH``, octal up to ``\\377``, the named ones; else the backslash goes."""
    return JS.sub(js_unit, value) if b"\\" in value else value


def c_unit(found: re.Match[bytes]) -> bytes:
    if found[3] is not None:
        return _CONTROLS.get(found[3], found[3])
    if found[2] is not None:
        return _BYTES[int(found[2], 8) & 0xFF]
    return _HEX_BYTES[found[1].lower()]


def cookie_unit(found: re.Match[bytes]) -> bytes:
    """``\\012`` and a backslash before any other byte, as Python's library reads them (RFC 2109 §4.1)."""
    return _BYTES[int(found[1], 8)] if found[1] else found[2]


def escape_sequence_decode(value: bytes) -> bytes:
    """Escapes of ANSI C. One that is not valid loses its backslash."""
    return C.sub(c_unit, value) if b"\\" in value else value


def css_unit(found: re.Match[bytes]) -> bytes:
    digits = found[1]
    if digits is None:
        return found[2] or b""
    code = int(digits, 16)
    # five and six digits fold full-width forms only when what is left of the last four is zero
    return _low_byte(code) if code <= 0xFFFF else _BYTES[code & 0xFF]


def css_decode(value: bytes) -> bytes:
    """A backslash and one to six digits (the low byte counts) and one blank; a backslash and a line end."""
    return CSS.sub(css_unit, value) if b"\\" in value else value


def utf8_to_unicode(value: bytes) -> bytes:
    """Characters of two to four bytes as ``%uHHHH``.

    Oddities: a NUL goes unless it is last; a start byte without its tail goes; of a surrogate or an overlong
    form the start byte stands behind it; other stray bytes stay.
    """
    value = without_nulls(value)
    return value if value.isascii() else UTF8.sub(utf8_unit, value)


def without_nulls(value: bytes) -> bytes:
    """What `utf8_to_unicode` makes of NULs: the last byte may be one."""
    return value[:-1].replace(b"\0", b"") + value[-1:] if b"\0" in value[:-1] else value


def utf8_unit(found: re.Match[bytes]) -> bytes:
    """What `utf8_to_unicode` makes of one character, or of a byte that begins none."""
    unit = found[0]
    first, size = unit[0], len(unit)
    if size == 1:
        return b"" if 0xC0 <= first < 0xF5 else unit
    code = first & 0x7F >> size
    for part in unit[1:]:
        code = code << 6 | part & 0x3F
    text = b"%%u%04x" % code
    if first >= 0xF5:
        text = _BYTES[first] + text
    return text + _BYTES[first] if 0xD800 <= code <= 0xDFFF or code < _SMALLEST[size] else text
