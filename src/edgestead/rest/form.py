"""multipart/form-data as a stream of named portions (RFC 7578).

Owns  which part a portion belongs to; limits of parts and their heads.
Not   what the parts mean.
"""

from collections.abc import AsyncIterator
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from edgestead.model.refusals.kv import KvBodyInvalid
from edgestead.rest.limits import FORM_PART_HEAD_BYTES_MAX, FORM_PARTS_MAX

MEDIA_TYPE = b"multipart/form-data"


def boundary_of(content_type: str) -> bytes | None:
    """The boundary; None when this is no form. Raises KvBodyInvalid: a form without one."""
    media_type, options = parse_options_header(content_type)
    if media_type != MEDIA_TYPE:
        return None
    boundary = options.get(b"boundary")
    if not boundary:
        raise KvBodyInvalid(reason="the form has no boundary")
    return boundary


async def portions(chunks: AsyncIterator[bytes], boundary: bytes) -> AsyncIterator[tuple[str, bytes]]:
    """Name and bytes of each portion, in order; an empty part gives one empty portion.

    Raises KvBodyInvalid: no form, cut short, or with too many parts.
    """
    parts = _Parts()
    try:
        parser = MultipartParser(
            boundary,
            parts.callbacks(),  # type: ignore[arg-type]
            max_header_size=FORM_PART_HEAD_BYTES_MAX,
        )
        async for chunk in chunks:
            parser.write(chunk)
            for portion in parts.take():
                yield portion
    except FormParserError as error:
        raise KvBodyInvalid(reason=f"it is no form: {error}") from None
    if not parts.ended:
        raise KvBodyInvalid(reason="the form is cut short")


class _Parts:
    """What the parser's callbacks tell, gathered between two portions."""

    def __init__(self) -> None:
        self.ended = False
        self._found: list[tuple[str, bytes]] = []
        self._count = 0
        self._name = ""
        self._field = self._value = b""

    def take(self) -> list[tuple[str, bytes]]:
        found, self._found = self._found, []
        return found

    def callbacks(self) -> dict[str, Any]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._count += 1
        if self._count > FORM_PARTS_MAX:
            raise KvBodyInvalid(reason=f"the form has more than {FORM_PARTS_MAX} parts")
        self._name = ""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._field = self._value = b""

    def _headers_finished(self) -> None:
        self._found.append((self._name, b""))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._found.append((self._name, data[start:end]))

    def _end(self) -> None:
        self.ended = True
