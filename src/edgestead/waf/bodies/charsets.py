"""Encodings of text that the scan cannot look through: what is said of a body's characters and of a field's.

Owns  which character sets leave ASCII as it is, and which transfer encodings change nothing.
Not   decoding; bodies that are opaque.

Rules look at bytes. A body that says it is UTF-7, UTF-16 or EBCDIC, and a field that says it is base64, hold
another text for an application that believes it than for any rule. In the sets below each byte of ASCII means
itself wherever a character begins.

Source: RFC 9110 §8.3.2 (charset); RFC 7578 §4.6 (``_charset_``), §4.7 (transfer encodings); IANA's registry.
"""

from collections.abc import Iterable

from edgestead.waf.transaction import Pair, Refused

CHARSET_FIELD = b"_charset_"
_SETS = frozenset(
    b"utf-8 utf8 us-ascii ascii latin1 koi8-r koi8-u tis-620 gb2312 gbk gb18030 big5 big5-hkscs euc-jp "
    b"euc-kr shift_jis shift-jis sjis windows-31j windows-874 macintosh".split()
)
_FAMILIES = (b"iso-8859-", b"iso8859-", b"iso_8859-", b"windows-125", b"cp125")
_PLAIN = frozenset((b"", b"7bit", b"8bit", b"binary"))
CHARSETS_MAX = 16  # that one type may name: a head has room for thousands, each of which is looked up
_WORD = b"charset"
_BLANKS = b" \t\n\v\f\r"


def is_plain(name: bytes) -> bool:
    """Whether ASCII stays itself in that character set; in none, too."""
    name = name.strip(_BLANKS + b"\"'").lower()
    return not name or name in _SETS or name.startswith(_FAMILIES)


def trouble_of_type(content_type: bytes) -> Refused | None:
    """What is wrong with the character sets that a Content-Type names, or with their number."""
    lower = content_type.lower()
    at = lower.find(_WORD)
    if at >= 0 and lower.count(_WORD, at) > CHARSETS_MAX:
        return Refused("charset", 415)
    while at >= 0:
        at += len(_WORD)
        end = lower.find(b";", at)
        gap, equals, name = lower[at : end if end >= 0 else len(lower)].partition(b"=")
        if not equals or gap.strip(_BLANKS) or not is_plain(name):
            return Refused("charset", 415)
        at = lower.find(_WORD, at)
    return None


def trouble_of_part(headers: dict[bytes, bytes]) -> Refused | None:
    """What is wrong with the encodings of a form's field. `headers` are its own, names in lower case."""
    if headers.get(b"content-transfer-encoding", b"").strip(_BLANKS).lower() not in _PLAIN:
        return Refused("transfer-encoding", 415)
    return trouble_of_type(headers.get(b"content-type", b""))


def trouble_of_fields(fields: Iterable[Pair]) -> Refused | None:
    """What is wrong with the character set that a form names in a field of its own."""
    for name, value in fields:
        if name == CHARSET_FIELD and not is_plain(value):
            return Refused("charset", 415)
    return None
