"""Heads that can be read in exactly one way.

Owns  the rules on length, host and names that a head must keep.
Asks  nobody: llhttp has refused most of it before.
Tells `connection`, which closes after a refusal.
Not   parsing.

The rules are said again here, so that another build of the parser cannot loosen them (RFC 9112 §3.2, §6.3;
spec "Deprecations", 2023-07-01).
"""

from edgestead.http1.messages import Headers

_DIGITS_MAX = 18  # of a Content-Length
_LENGTH, _ENCODING, _HOST = b"content-length", b"transfer-encoding", b"host"


def fault(version: str, headers: Headers) -> str | None:
    """Why a head is refused; None when it is not."""
    lengths = encodings = hosts = 0
    for name, value in headers:
        if name == _LENGTH:
            lengths += 1
            if not value.isdigit() or len(value) > _DIGITS_MAX:
                return "Content-Length is not a number"
        elif name == _ENCODING:
            encodings += 1
            if value.strip().lower() != b"chunked":
                return "Transfer-Encoding is not chunked alone"
        elif name == _HOST:
            hosts += 1
    if lengths + encodings > 1:
        return "the length is stated more than once"
    if encodings and version != "1.1":
        return "Transfer-Encoding needs HTTP/1.1"
    if hosts != 1 and not (hosts == 0 and version == "1.0"):
        return "there must be exactly one Host"
    return None
