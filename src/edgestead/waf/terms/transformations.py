"""What rules do to a value before they look at it: bytes to bytes.

Owns  every transformation of the language, and for each the bytes without which it changes nothing; the same
      in portions, of those that call Python for each escape, segment or comment.
Not   chains, caching or values' origins.

All are total: any bytes give bytes, no longer than `GROWTH_MAX` times the input, in linear time. Where the
manual is silent the result is that of ModSecurity 3.0.15, oddities included, because rules were tuned against
it; each oddity is named where it happens.

Source: reference manual of ModSecurity v3, "Transformation functions".
"""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from hashlib import md5, sha1

from edgestead.waf.limits import CALL_UNITS, at_once
from edgestead.waf.terms import encodings

Transformation = Callable[[bytes], bytes]
Portions = Generator[int, None, bytes]  # tells the units of work of each portion, ends with the value
Unit = Callable[[re.Match[bytes]], bytes]
PORTION_CALLS = 512  # of Python in one portion
GROWTH_MAX = 4  # utf8toUnicode: two bytes become six; urlEncode: one becomes three
SPACE = b" \t\n\v\f\r"  # isspace() of the C locale
_NO_BLANK = SPACE[1:]
_ALL = frozenset(range(256))
_LOWER = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))
_UPPER = bytes(byte - 32 if 97 <= byte <= 122 else byte for byte in range(256))
_ODD_PARITY = [byte.bit_count() & 1 for byte in range(256)]  # of all eight bits, as ModSecurity counts
_EVEN_7BIT = bytes(byte | 0x80 if _ODD_PARITY[byte] else byte & 0x7F for byte in range(256))
_ODD_7BIT = bytes(byte & 0x7F if _ODD_PARITY[byte] else byte | 0x80 for byte in range(256))
_ZERO_7BIT = bytes(byte & 0x7F for byte in range(256))
_URL_SAFE = frozenset(b"*0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_URL_ENCODED = [
    b"+" if byte == 32 else bytes((byte,)) if byte in _URL_SAFE else b"%%%02x" % byte for byte in range(256)
]
_NIBBLE = bytes((((byte & 0xDF) - 55) if byte >= 65 else byte - 48) & 0xFF for byte in range(256))
_CMD_DROPPED = b"\"'\\^"
_CMD_SPACED = _LOWER.translate(bytes(32 if byte in b",;\t\r\n" else byte for byte in range(256)))

# A run of any length of the characters before the alternative: linear, the walk never goes back.
_SPACES = re.compile(rb"[ \t\n\v\f\r]+")
_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMENT_START = re.compile(rb"/\*|<!--|--|#")
_COMMENT_END = re.compile(rb"\*/|-->")
_COMMENT_MARK = re.compile(rb"/\*|\*/|<!--|-->|--|#")
_CMD_SPACES = re.compile(rb"  +")
_SQL_HEX = re.compile(rb"0[xX]((?:[0-9A-Fa-f]{2})+)")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_BASE64_BLANKS = frozenset(b"\n\0 ")  # may change the length that counts
_STRAY_BLANK = re.compile(rb" [^ \r\n]|\r(?!\n)")
_BASE64_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_NOT_BASE64 = bytes(_ALL - _BASE64_ALPHABET)


def lowercase(value: bytes) -> bytes:
    return value.translate(_LOWER)


def uppercase(value: bytes) -> bytes:
    return value.translate(_UPPER)


def remove_nulls(value: bytes) -> bytes:
    return value.replace(b"\0", b"")


def replace_nulls(value: bytes) -> bytes:
    return value.replace(b"\0", b" ")


def remove_whitespace(value: bytes) -> bytes:
    """Also takes 0xA0 and 0xC2, the bytes of a no-break space, each wherever it stands."""
    return value.translate(None, SPACE + b"\xa0\xc2")


def compress_whitespace(value: bytes) -> bytes:
    if b"  " not in value and len(value.translate(None, _NO_BLANK)) == len(value):
        return value
    return _SPACES.sub(b" ", value)


def trim(value: bytes) -> bytes:
    return value.strip(SPACE)


def trim_left(value: bytes) -> bytes:
    return value.lstrip(SPACE)


def trim_right(value: bytes) -> bytes:
    return value.rstrip(SPACE)


def replace_comments(value: bytes) -> bytes:
    """Each ``/* … */`` becomes one blank; one that is not closed reaches to the end."""
    return _COMMENT.sub(b" ", value) if b"/*" in value else value


def remove_comments(value: bytes) -> bytes:
    """Comments of C, SQL, shell and HTML.

    Oddities: either end closes either start; the byte behind an end is copied unlooked at; ``--`` and ``#``
    drop the rest.
    """
    return at_once(_remove_comments(value))


def _remove_comments(value: bytes) -> Portions:
    out = bytearray()
    at = calls = 0
    while (start := _COMMENT_START.search(value, at)) is not None:
        out += value[at : start.start()]
        if start[0] in (b"--", b"#"):
            return bytes(out)
        end = _COMMENT_END.search(value, start.end())
        if end is None:
            return bytes(out + b" ")
        out += value[end.end() : end.end() + 1] or b"\0"
        at = end.end() + 1
        calls += 1
        if calls % PORTION_CALLS == 0:
            yield 4 * PORTION_CALLS * CALL_UNITS
    return bytes(out + value[at:])


def remove_comments_char(value: bytes) -> bytes:
    return _COMMENT_MARK.sub(b"", value)


def command_line(value: bytes) -> bytes:
    """A command as any shell would see it: no quotes or escapes, separators as one blank, lower case."""
    plain = value.translate(_CMD_SPACED, _CMD_DROPPED)
    if b"  " in plain:
        plain = _CMD_SPACES.sub(b" ", plain)
    return plain.replace(b" /", b"/").replace(b" (", b"(")


def _command_line(value: bytes) -> Portions:
    plain = yield from _substitute(_CMD_SPACES, b" ", value.translate(_CMD_SPACED, _CMD_DROPPED))
    return plain.replace(b" /", b"/").replace(b" (", b"(")


def length(value: bytes) -> bytes:
    return b"%d" % len(value)


def sha1_digest(value: bytes) -> bytes:
    return sha1(value, usedforsecurity=False).digest()


def md5_digest(value: bytes) -> bytes:
    return md5(value, usedforsecurity=False).digest()


def hex_encode(value: bytes) -> bytes:
    return value.hex().encode()


def hex_decode(value: bytes) -> bytes:
    """Pairs of digits to bytes, an odd last digit dropped. What is no digit counts as its code does."""
    try:
        return binascii.unhexlify(value)
    except binascii.Error:
        return at_once(_hex_decode(value))


def _hex_decode(value: bytes) -> Portions:
    out = []
    for at in range(0, len(value) - 1, 2 * PORTION_CALLS):
        digits = value[at : at + 2 * PORTION_CALLS].translate(_NIBBLE)
        pairs = zip(digits[::2], digits[1::2], strict=False)
        out.append(bytes([(high * 16 + low) & 0xFF for high, low in pairs]))
        yield PORTION_CALLS * CALL_UNITS // 2
    return b"".join(out)


def sql_hex_decode(value: bytes) -> bytes:
    """``0x414243`` becomes ``ABC`` wherever it stands."""
    return _SQL_HEX.sub(_sql_hex_unit, value)


def _sql_hex_unit(found: re.Match[bytes]) -> bytes:
    return binascii.unhexlify(found[1])


def url_encode(value: bytes) -> bytes:
    return b"".join([_URL_ENCODED[byte] for byte in value])


def _url_encode(value: bytes) -> Portions:
    out = []
    for at in range(0, len(value), PORTION_CALLS):
        out.append(url_encode(value[at : at + PORTION_CALLS]))
        yield PORTION_CALLS * CALL_UNITS // 2
    return b"".join(out)


def base64_encode(value: bytes) -> bytes:
    return b64encode(value)


def base64_decode(value: bytes) -> bytes:
    """Strict: what stands before the first NUL, unless that is no base64 with its padding: then all stays.

    Line ends are allowed anywhere, and blanks before them.
    """
    text = value
    if b"\n" in value or b"\0" in value or value.endswith(b" "):
        text = value.partition(b"\0")[0]
        if _STRAY_BLANK.search(text) is not None:
            return value
        text = text.translate(None, b" \r\n")
    if len(text) % 4 or _BASE64.fullmatch(text) is None:
        return value
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        return value


def base64_decode_each(values: list[bytes]) -> list[bytes]:
    """`base64_decode` of many values, most of which are no base64 by their length."""
    return [
        value if len(value) & 3 and _BASE64_BLANKS.isdisjoint(value) else base64_decode(value)
        for value in values
    ]


def base64_decode_ext(value: bytes) -> bytes:
    """Forgiving: whatever is not of the alphabet is passed over, the rest decoded as far as it goes.

    Oddity: empty where a lone ``=`` follows one character too many; a last ``9`` counts as one.
    """
    return at_once(_base64_decode_ext(value))


def _base64_decode_ext(value: bytes) -> Portions:
    text = value.translate(None, _NOT_BASE64)
    over = len(text) % 4 == 1
    if over and value.endswith(b"9"):
        return b""
    if b"=" in value:
        seen = 0
        parts = value.split(b"=")
        for number, part in enumerate(parts[:-1], 1):
            seen += len(part.translate(None, _NOT_BASE64))
            followed = parts[number] == b"" and number < len(parts) - 1  # by another equals sign
            if seen % 4 == 1 and not followed:
                return b""
            if number % PORTION_CALLS == 0:
                yield PORTION_CALLS * CALL_UNITS
    whole = text[:-1] if over else text
    return b64decode(whole + b"=" * (-len(whole) % 4))


def parity_even(value: bytes) -> bytes:
    return value.translate(_EVEN_7BIT)


def parity_odd(value: bytes) -> bytes:
    return value.translate(_ODD_7BIT)


def parity_zero(value: bytes) -> bytes:
    return value.translate(_ZERO_7BIT)


def normalize_path(value: bytes) -> bytes:
    """Without empty, ``.`` and ``..`` segments; ``..`` never climbs above the root.

    Oddities: any segment that ends in ``..`` counts as one; a path that ends on the root loses its slash.
    """
    if b"/." not in value and b"//" not in value and b".." not in value and not value.startswith(b"."):
        return value
    return at_once(_Path(value).normalized())


def _normalize_path(value: bytes) -> Portions:
    return _Path(value).normalized()


def normalize_path_win(value: bytes) -> bytes:
    return normalize_path(value.replace(b"\\", b"/"))


class _Path:
    """One walk over a path's segments. `out` is what is kept; a segment starts behind its slash."""

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.relative = not value.startswith(b"/")
        self.at_root = False
        self.out = bytearray()

    def normalized(self) -> Portions:
        segments = self.value.split(b"/")
        last = len(segments) - 1
        for number, segment in enumerate(segments):
            if number and number % PORTION_CALLS == 0:
                yield 4 * PORTION_CALLS * CALL_UNITS
            if segment:
                self._segment(segment, number == last)
            if number < last and not self.out.endswith(b"/") and (self.out or not self.relative):
                self.out += b"/"
        if self.out.endswith(b"/") and not self.value.endswith(b"/"):
            self.out.pop()
        return bytes(self.out)

    def _segment(self, segment: bytes, is_last: bool) -> None:
        out = self.out
        if not segment.endswith(b"."):
            out += segment
            self.at_root = self.at_root and len(out) == 1
        elif segment.endswith(b".."):
            out += segment[:-1]
            self._back(is_last)
        elif segment == b".":
            if out and not is_last:
                out.pop()  # its slash, which the next one replaces
        else:
            out += segment

    def _back(self, is_last: bool) -> None:
        """`out` ends in the first of the two dots: leave out their segment and the one before."""
        out = self.out
        if self.relative and (self.at_root or len(out) <= 2):
            self.at_root = True
            out += b"."
            return
        cut = out.rfind(b"/", 0, max(len(out) - 2, 0))
        if cut <= 0:
            self.at_root = True
            del out[0 if self.relative or not is_last else 1 :]
        else:
            del out[cut:]


TRANSFORMATIONS: dict[str, Transformation] = {
    "base64Decode": base64_decode,
    "base64DecodeExt": base64_decode_ext,
    "base64Encode": base64_encode,
    "cmdLine": command_line,
    "compressWhitespace": compress_whitespace,
    "cssDecode": encodings.css_decode,
    "escapeSeqDecode": encodings.escape_sequence_decode,
    "hexDecode": hex_decode,
    "hexEncode": hex_encode,
    "htmlEntityDecode": encodings.html_entity_decode,
    "jsDecode": encodings.js_decode,
    "length": length,
    "lowercase": lowercase,
    "md5": md5_digest,
    "normalizePath": normalize_path,
    "normalizePathWin": normalize_path_win,
    "parityEven7bit": parity_even,
    "parityOdd7bit": parity_odd,
    "parityZero7bit": parity_zero,
    "removeComments": remove_comments,
    "removeCommentsChar": remove_comments_char,
    "removeNulls": remove_nulls,
    "removeWhitespace": remove_whitespace,
    "replaceComments": replace_comments,
    "replaceNulls": replace_nulls,
    "sha1": sha1_digest,
    "sqlHexDecode": sql_hex_decode,
    "trim": trim,
    "trimLeft": trim_left,
    "trimRight": trim_right,
    "uppercase": uppercase,
    "urlDecode": encodings.url_decode,
    "urlDecodeUni": encodings.url_decode_uni,
    "urlEncode": url_encode,
    "utf8toUnicode": encodings.utf8_to_unicode,
}


def _substitute(pattern: re.Pattern[bytes], replacement: bytes | Unit, text: bytes) -> Portions:
    """`pattern.sub`."""
    whole, out, at = bytearray(), [], 0
    for number, found in enumerate(pattern.finditer(text), 1):
        out.append(text[at : found.start()])
        out.append(replacement if isinstance(replacement, bytes) else replacement(found))
        at = found.end()
        if number % PORTION_CALLS == 0:
            whole += b"".join(out)
            out = []
            yield 3 * PORTION_CALLS * CALL_UNITS
    return bytes(whole) + b"".join(out) + text[at:]


def _substituted(
    pattern: re.Pattern[bytes], replacement: bytes | Unit, before: Transformation = bytes
) -> Callable[[bytes], Portions]:
    return lambda value: _substitute(pattern, replacement, before(value))


def _blanks(value: bytes) -> bytes:
    return value.replace(b"+", b" ")


unquote_cookie_in_portions = _substituted(encodings.COOKIE, encodings.cookie_unit)
percent_decode_in_portions = _substituted(encodings.HEX_PAIR, encodings.hex_unit)
# The same in portions. All others are done with 128 KB in less than half a millisecond.
IN_PORTIONS: dict[str, Callable[[bytes], Portions]] = {
    "base64DecodeExt": _base64_decode_ext,
    "cmdLine": _command_line,
    "compressWhitespace": _substituted(_SPACES, b" "),
    "cssDecode": _substituted(encodings.CSS, encodings.css_unit),
    "escapeSeqDecode": _substituted(encodings.C, encodings.c_unit),
    "hexDecode": _hex_decode,
    "htmlEntityDecode": _substituted(encodings.ENTITY, encodings.entity_unit),
    "jsDecode": _substituted(encodings.JS, encodings.js_unit),
    "normalizePath": _normalize_path,
    "normalizePathWin": lambda value: _normalize_path(value.replace(b"\\", b"/")),
    "removeComments": _remove_comments,
    "removeCommentsChar": _substituted(_COMMENT_MARK, b""),
    "replaceComments": _substituted(_COMMENT, b" "),
    "sqlHexDecode": _substituted(_SQL_HEX, _sql_hex_unit),
    "urlDecode": _substituted(encodings.HEX_PAIR, encodings.hex_unit, _blanks),
    "urlDecodeUni": _substituted(encodings.PERCENT, encodings.uni_unit, _blanks),
    "urlEncode": _url_encode,
    "utf8toUnicode": _substituted(encodings.UTF8, encodings.utf8_unit, encodings.without_nulls),
}
# Steps on whole values that are cheaper for many at once.
EACH: dict[str, Callable[[list[bytes]], list[bytes]]] = {"base64Decode": base64_decode_each}
_CAPITALS, _SMALL = frozenset(range(65, 91)), frozenset(range(97, 123))
_HIGH = frozenset(range(128, 256))
# A value with none of these bytes is left as it is. None: any value may change, the empty one included.
CHANGED_BY: dict[str, frozenset[int] | None] = {
    "base64Decode": None,
    "base64DecodeExt": None,
    "base64Encode": None,
    "cmdLine": _CAPITALS | frozenset(b"\"'\\^ ,;\t\r\n"),
    "compressWhitespace": frozenset(SPACE),
    "cssDecode": frozenset(b"\\"),
    "escapeSeqDecode": frozenset(b"\\"),
    "hexDecode": None,
    "hexEncode": None,
    "htmlEntityDecode": frozenset(b"&"),
    "jsDecode": frozenset(b"\\"),
    "length": None,
    "lowercase": _CAPITALS,
    "md5": None,
    "normalizePath": frozenset(b"./"),
    "normalizePathWin": frozenset(b"./\\"),
    "parityEven7bit": None,
    "parityOdd7bit": None,
    "parityZero7bit": _HIGH,
    "removeComments": frozenset(b"/<-#"),
    "removeCommentsChar": frozenset(b"/*<-#"),
    "removeNulls": frozenset(b"\0"),
    "removeWhitespace": frozenset(SPACE + b"\xa0\xc2"),
    "replaceComments": frozenset(b"/"),
    "replaceNulls": frozenset(b"\0"),
    "sha1": None,
    "sqlHexDecode": frozenset(b"0"),
    "trim": frozenset(SPACE),
    "trimLeft": frozenset(SPACE),
    "trimRight": frozenset(SPACE),
    "uppercase": _SMALL,
    "urlDecode": frozenset(b"%+"),
    "urlDecodeUni": frozenset(b"%+"),
    "urlEncode": _ALL - _URL_SAFE,
    "utf8toUnicode": _HIGH | {0},
}
