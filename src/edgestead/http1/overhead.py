"""How much of a chunked body may be anything but content.

Owns  the count of octets around a body's content: sizes, chunk extensions, trailers (RFC 9112 §7.1).
Not   parsing; how much content there may be.

The parser neither shows nor limits extensions, and keeps the value of a trailer until its line ends. So what
is counted is what went in and did not come out: in a row, which bounds trailers and a single extension, and
in all, in proportion to the content, which bounds extensions that hide behind a few octets of it each.
"""

from edgestead.http1.limits import HEAD_BYTES_MAX, OVERHEAD_BYTES_PER_BYTE_MAX


class Overhead:
    """Of one chunked body. `content_bytes` is counted by its reader, before `feed` is told."""

    __slots__ = ("_fed_bytes", "_row_bytes", "_seen_bytes", "content_bytes")

    def __init__(self) -> None:
        self.content_bytes = 0
        self._fed_bytes = self._row_bytes = self._seen_bytes = 0

    def is_too_much(self, fed_bytes: int) -> bool:
        """Whether, with so many octets that were parsed since the last time, there is too little content.

        Octets that are fed together with the head before the body, or with what follows it, need not be told:
        a piece is a bound of its own.
        """
        self._fed_bytes += fed_bytes
        if self.content_bytes != self._seen_bytes:
            self._seen_bytes = self.content_bytes
            self._row_bytes = 0
        else:
            self._row_bytes += fed_bytes
        most = HEAD_BYTES_MAX + (1 + OVERHEAD_BYTES_PER_BYTE_MAX) * self.content_bytes
        return self._row_bytes > HEAD_BYTES_MAX or self._fed_bytes > most
