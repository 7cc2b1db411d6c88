"""TXT: text, decoded once.

Owns  reading content with and without quotes, cutting it into strings, its limit.
Not   what the text is for (SPF, DKIM, DMARC).
"""

from typing import Annotated

from edgestead.model.names import InvalidValue
from edgestead.model.records.kinds import STRING_OCTETS_MAX, Kind
from edgestead.model.records.table import Rdata, record_type
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import quoted, quoted_ascii, unescaped, words
from edgestead.model.refusals.record import ContentTooLong

CHARACTER_OCTETS_MAX = 4  # of one character in UTF-8 (RFC 3629 §3)
TXT_OCTETS_MAX = 2_048  # decoded, all strings of one record; contract of the v4 API


class Strings(Kind[tuple[bytes, ...]]):
    """One or more quoted strings, or text without quotes, which becomes one; cut after 255 octets."""

    label = f"text, at most {TXT_OCTETS_MAX:,} octets"
    is_bounded = False  # empty strings cost an octet each and count nothing as text

    def from_word(self, word: str) -> tuple[bytes, ...]:
        if not word or word.isspace():
            raise InvalidValue("it is empty")
        if not word.lstrip().startswith('"'):
            return _cut(unescaped(word))
        strings: list[bytes] = []
        for part in words(word):
            if len(part) < 2 or part[0] != '"' or part[-1] != '"':
                raise InvalidValue("the double quotes are inconsistent")
            strings.extend(_cut(unescaped(part[1:-1])))
        return tuple(strings)

    def to_word(self, value: tuple[bytes, ...]) -> str:
        return " ".join([quoted(string) for string in value])

    def to_zone_word(self, value: tuple[bytes, ...]) -> str:
        return " ".join([quoted_ascii(string) for string in value])

    def pack(self, value: tuple[bytes, ...]) -> bytes:
        return b"".join([bytes((len(string),)) + string for string in value])

    def unpack(self, reader: WireReader) -> tuple[bytes, ...]:
        strings = [reader.counted()]
        while not reader.is_done:
            strings.append(reader.counted())
        return tuple(strings)


def _cut(octets: bytes) -> tuple[bytes, ...]:
    """Strings of at most 255 octets. A cut goes before a character of UTF-8, not through it: what is answered
    can then be read, and sent again, without escapes.
    """
    strings = []
    while len(octets) > STRING_OCTETS_MAX:
        end = STRING_OCTETS_MAX
        while _is_inside_character(octets[end]) and end > STRING_OCTETS_MAX - CHARACTER_OCTETS_MAX:
            end -= 1
        if _is_inside_character(octets[end]):
            end = STRING_OCTETS_MAX  # this is not UTF-8
        strings.append(octets[:end])
        octets = octets[end:]
    return (*strings, octets)


def _is_inside_character(octet: int) -> bool:
    return octet & 0xC0 == 0x80


@record_type(16, "RFC 1035 §3.3.14")
class TXT(Rdata, frozen=True):
    """Text in one or more double-quoted strings of at most 255 octets.

    Text without quotes is put in quotes, a longer string is cut into several, quotes that do not match are
    refused. All strings together hold at most 2,048 octets.
    """

    strings: Annotated[tuple[bytes, ...], Strings()]

    @property
    def text(self) -> bytes:
        """The strings joined, as SPF, DKIM and ACME read them. Its length counts for the limit of a name."""
        return b"".join(self.strings)

    def check(self) -> None:
        octets = sum(map(len, self.strings))
        if octets > TXT_OCTETS_MAX:
            raise ContentTooLong(type="TXT", field="content", octets=octets, octets_max=TXT_OCTETS_MAX)
