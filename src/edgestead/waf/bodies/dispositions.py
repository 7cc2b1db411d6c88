"""The two headers that hold a multipart body together: the boundary, and the names of a part.

Owns  reading them as strictly as ModSecurity does, and what it flags.
Not   the body.

Source: reference manual of ModSecurity v3, "MULTIPART_…"; RFC 2046 §5.1.1, RFC 6266, RFC 5987.
"""

import re
from typing import NamedTuple

from edgestead.waf.limits import BOUNDARY_BYTES_MAX

SPACE = b" \t\n\v\f\r"
CONTENT_TYPE_BYTES_MAX = 1_024  # a type and its boundary
_ALNUM = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BOUNDARY = frozenset(_ALNUM + b" '()+_,-./:=?")
_CUTS = frozenset(b" ,")  # in a boundary without quotes: there some readers take it to end
_TOKEN = frozenset(range(33, 127)) - frozenset(b'()<>@,;:\\"/[]?=')
_CHARSET = frozenset(_ALNUM + b"!#$%&+-^_`{}~")
_ATTRIBUTE = frozenset(_ALNUM + b"!#$&+-.^_`~")
_HEX = frozenset(b"0123456789ABCDEFabcdef")
_TYPE = b"multipart/form-data"
_WORD = b"boundary"


_NAME_END = re.compile(rb"[=\t ]")
# What stands up to the closing quote, and the escapes in it; other backslashes stay.
_QUOTED = {
    quote: (
        re.compile(rb"((?:[^%b\\]|\\.)*+)%b" % (quote, quote), re.DOTALL),
        re.compile(rb"\\([%b\\])" % quote),
    )
    for quote in (b'"', b"'")
}


class Malformed(Exception):
    """A header or a body that cannot be read without guessing."""


class Names(NamedTuple):
    """`filename` is empty for a field that is no file; `has_filename` when the parameter is there at all."""

    name: bytes
    filename: bytes
    has_filename: bool


def boundary_of(content_type: bytes) -> tuple[bytes, dict[str, int]]:
    """The boundary, and the flags about how it was written. Raises: Malformed."""
    flags = {"BOUNDARY_QUOTED": 0, "BOUNDARY_WHITESPACE": 0, "MISSING_SEMICOLON": 0}
    lower = content_type.lower()
    at = content_type.find(_WORD)
    if len(content_type) > CONTENT_TYPE_BYTES_MAX or not lower.startswith(_TYPE) or at < 0:
        raise Malformed
    if _mentions(lower) > 1:
        raise Malformed
    before = content_type[len(_TYPE) : at].translate(None, SPACE)
    if before not in (b"", b";"):
        raise Malformed
    flags["MISSING_SEMICOLON"] = int(before == b"")
    gap, equals, value = content_type[at + len(_WORD) :].partition(b"=")
    if not equals or gap.strip(SPACE):
        raise Malformed
    flags["BOUNDARY_WHITESPACE"] = int(bool(gap) or value[:1] in tuple(bytes((byte,)) for byte in SPACE))
    if len(value) >= 2 and value[0] == value[-1] == 34:
        value = value[1:-1]
        flags["BOUNDARY_QUOTED"] = 1
    elif value[:1] == b'"' or value[-1:] == b'"':
        raise Malformed
    if not _valid_boundary(value):
        value = value.partition(b";")[0]  # a parameter behind it, which some frameworks add
    if _mentions(value.lower()) or not _valid_boundary(value):
        raise Malformed
    if not flags["BOUNDARY_QUOTED"] and not _CUTS.isdisjoint(value):
        raise Malformed
    return value, flags


def _mentions(lower: bytes) -> int:
    """How often the word stands before some equals sign."""
    return lower.count(_WORD, 0, max(lower.rfind(b"="), 0))


def _valid_boundary(value: bytes) -> bool:
    return 0 < len(value) <= BOUNDARY_BYTES_MAX and _BOUNDARY.issuperset(value) and value[-1:] != b" "


def names_of(disposition: bytes, flags: dict[str, int]) -> Names:
    """The names in a part's Content-Disposition; sets INVALID_QUOTING. Raises: Malformed."""
    return _Disposition(disposition, flags).names()


class _Disposition:
    """One walk over a header's value."""

    def __init__(self, text: bytes, flags: dict[str, int]) -> None:
        self.text = text
        self.flags = flags
        self.at = len(b"form-data")
        self.found: dict[bytes, bytes] = {}

    def names(self) -> Names:
        if not self.text.startswith(b"form-data") or b"\0" in self.text:
            raise Malformed
        self._blanks()
        if self._here():
            if self._here() != b";":
                raise Malformed
            self.at += 1
            while self._here():
                self._parameter()
        found = self.found
        name, filename = found.get(b"name", b""), found.get(b"filename", b"")
        if not name or (found.get(b"filename*") and not filename):
            raise Malformed
        if filename and b"filename=" not in self.text:
            raise Malformed  # a blank before the equals sign, which other readers take for no file
        return Names(name, filename, b"filename" in found)

    def _here(self) -> bytes:
        return self.text[self.at : self.at + 1]

    def _blanks(self, wanted: bool = False) -> None:
        while self._here() in (b" ", b"\t"):
            self.at += 1
        if wanted and not self._here():
            raise Malformed

    def _while(self, allowed: frozenset[int]) -> bytes:
        rest = self.text[self.at :]
        found = rest[: len(rest) - len(rest.lstrip(bytes(allowed)))]
        self.at += len(found)
        return found

    def _parameter(self) -> None:
        self._blanks(wanted=True)
        start = self.at
        end = _NAME_END.search(self.text, self.at)
        self.at = len(self.text) if end is None else end.start()
        name = self.text[start : self.at]
        self._blanks(wanted=True)
        if self._here() != b"=":
            raise Malformed
        self.at += 1
        self._blanks(wanted=True)
        quote = self._here() if self._here() in (b'"', b"'") and name != b"filename*" else b""
        value = self._extended() if name == b"filename*" else self._quoted() if quote else self._while(_TOKEN)
        if name not in (b"name", b"filename", b"filename*") or self.found.get(name):
            raise Malformed
        if b"'" in value and quote != b'"' and name != b"filename*":
            self.flags["INVALID_QUOTING"] = 1
        self.found[name] = value
        self._blanks()
        if self._here() not in (b"", b";"):
            if self.text[self.at - 1 : self.at] in (b'"', b"'"):
                self.flags["INVALID_QUOTING"] = 1
            raise Malformed
        self.at += 1

    def _quoted(self) -> bytes:
        quote = self._here()
        if quote == b"'":
            self.flags["INVALID_QUOTING"] = 1  # browsers never write it, some servers read it
        self.at += 1
        if not self._here():
            raise Malformed
        content, escape = _QUOTED[quote]
        found = content.match(self.text, self.at)
        if found is None:
            raise Malformed
        self.at = found.end()
        return escape.sub(rb"\1", found[1])

    def _extended(self) -> bytes:
        """``charset'language'percent-encoded``, kept encoded."""
        if not self._while(_CHARSET) or self._here() != b"'":
            raise Malformed
        end = self.text.find(b"'", self.at + 1)
        if end < 0:
            raise Malformed
        start = self.at = end + 1
        while self._here() not in (b"", b";"):
            self._while(_ATTRIBUTE)
            if self._here() == b"%":
                if not _HEX.issuperset(pair := self.text[self.at + 1 : self.at + 3]) or len(pair) < 2:
                    raise Malformed
                self.at += 3
            elif self._here() not in (b"", b";"):
                raise Malformed
        return self.text[start : self.at]
