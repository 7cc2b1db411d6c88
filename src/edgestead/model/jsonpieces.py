"""A JSON string that is too long to be held, decoded piece by piece.

Owns  where a piece may end: behind a character, and behind a whole escape (RFC 8259 §7).
Not   finding the string (`model.jsonarray`).
"""

import binascii
import codecs
import re
from collections.abc import Iterable, Iterator

import msgspec

# As many whole characters and escapes as there are. A surrogate belongs to the one behind it.
_WHOLE = re.compile(
    r"(?:[^\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+",
    re.DOTALL,
)
_ESCAPE_CHARS_MAX = 12
_BASE64_GROUP = 4
_decode = msgspec.json.Decoder(str).decode


def text_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The UTF-8 of a string from what is between its quotes. Raises msgspec.DecodeError, UnicodeError."""
    utf8, rest = codecs.getincrementaldecoder("utf-8")(), ""
    for piece in pieces:
        text = rest + utf8.decode(piece)
        found = _WHOLE.match(text)
        assert found is not None
        end = found.end()
        if len(text) - end >= _ESCAPE_CHARS_MAX:
            end = len(text)  # no escape is so long: the decoder says what is wrong with it
        rest = text[end:]
        yield _decode(f'"{text[:end]}"').encode()
    yield _decode(f'"{rest}{utf8.decode(b"", final=True)}"').encode()


def octets_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What base64 stands for. Raises ValueError."""
    rest, is_over = b"", False
    for piece in pieces:
        if is_over and piece:
            raise ValueError("there is more behind the padding")
        text = rest + piece
        whole = len(text) - len(text) % _BASE64_GROUP
        rest = text[whole:]
        is_over = text[:whole].endswith(b"=")
        yield binascii.a2b_base64(text[:whole], strict_mode=True)
    if rest:
        raise ValueError("it ends within a group")
