"""TXT: text, decoded once.

Owns  reading content with and without quotes, cutting it into strings, its limit.
Asks  `words` for quotes and escapes.
Tells the table; `folding` for comparisons.
Not   what the text is for (SPF, DKIM, DMARC).
"""

from typing import Annotated

from edgestead.model.names import InvalidValue
from edgestead.model.record_errors import ContentTooLong
from edgestead.model.records.kinds import STRING_OCTETS_MAX, Kind
from edgestead.model.records.table import Rdata, record_type
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import quoted, quoted_ascii, unescaped, words

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
    if len(octets) <= STRING_OCTETS_MAX:
        return (octets,)
    return tuple(
        [octets[start : start + STRING_OCTETS_MAX] for start in range(0, len(octets), STRING_OCTETS_MAX)]
    )


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
