"""Octets of request lines that no URI has.

Owns  escaping them, and how far a request line is here.
Not   parsing; which targets may be read (`head`).

A URI has no octets beyond ASCII (RFC 3986 §2), but old links and simple clients send UTF-8, and llhttp
refuses that. Escaped it is no blank to any reader, whatever else it is.
"""

import re
from enum import Enum

_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")


class Line(Enum):
    """How far a request line is here. Empty lines before it are none of it (RFC 9112 §2.2).

    AWAITED ── its first octet ──▶ BEGUN ── LF ──▶ OVER ── its head is complete ──▶ AWAITED
    """

    AWAITED = 0
    BEGUN = 1
    OVER = 2


def readable(data: bytes, line: Line) -> tuple[bytes, bytes, Line]:
    """What may be parsed of a piece of a head, what is behind its first empty line, and the line by then.

    Octets of the line beyond ASCII are escaped. What is behind an empty line may be a body, another request
    line, or more of the head.
    """
    start = len(data) - len(data.lstrip(b"\r\n"))
    if line is Line.OVER:
        end, stop = 0, start
    else:
        end = data.find(b"\n", 0 if line is Line.BEGUN else start) + 1
        if end:
            line, stop = Line.OVER, 0
        else:
            line, end = (Line.AWAITED if start == len(data) else Line.BEGUN), len(data)
            stop = end
    if not stop:
        empty = data.find(b"\r\n\r\n", max(end - 2, 0))
        stop = len(data) if empty < 0 else empty + 4
    escaped = _BEYOND_ASCII.sub(lambda found: b"%%%02X" % found[0][0], data[:end])
    return escaped + data[end:stop], data[stop:], line


def line_behind(data: bytes) -> Line:
    """The next request's line, of which there is something behind the last empty line."""
    return readable(data.rpartition(b"\r\n\r\n")[2], Line.AWAITED)[2]
