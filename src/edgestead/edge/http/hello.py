"""What a TLS client asks for, read from its first message: a name, a version, a protocol.

Owns  just enough of ClientHello (RFC 8446 §4.1.2) to find the server name (RFC 6066 §3), the versions
      (RFC 8446 §4.2.1) and the protocols (RFC 7301 §3.1); one pass, for every connection has it.
Not   TLS: the same bytes go to OpenSSL, which judges them.
"""

from typing import NamedTuple

HELLO_BYTES_MAX = 32 * 1024  # with keys of post-quantum exchanges they have under 4 KB
# All of them are looked at for each piece that arrives: a hello of 31 KB in records of an octet took 6 ms a
# look, and could ask for 31,000 looks.
RECORDS_MAX = 64
_RECORD_HEAD, _HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 5, 22, 1, 0, 0
_PROTOCOLS, _VERSIONS = 16, 43


# Of fatal alerts (RFC 8446 §6.2, RFC 6066 §3), those that end a connection before its handshake.
PROTOCOL_VERSION, MISSING_EXTENSION, UNRECOGNIZED_NAME = 70, 109, 112


class NoHello(Exception):
    """These bytes begin no TLS connection."""


class NotServed(Exception):
    """A hello that is not taken: the alert that says why."""


def alert(number: int) -> bytes:
    """The record of a fatal alert, as every version reads it before one is agreed on (RFC 8446 §5.1)."""
    return bytes((0x15, 3, 1, 0, 2, 2, number))


class Hello(NamedTuple):
    """`server_name` is in lower case, and empty when the client names none; `message` has no record heads.

    `newest_version` is the newest that is offered, 0x0303 for TLS 1.2; `protocols` is the extension, unread.
    """

    server_name: bytes
    message: bytes
    newest_version: int = 0x0303
    protocols: bytes = b""


def read(data: bytes) -> Hello | None:
    """What a connection begins with. None: more bytes are needed. Raises NoHello."""
    message = _message(data)
    if message is None:
        return None
    try:
        return _read(message)
    except IndexError:
        raise NoHello from None


def _message(data: bytes) -> bytes | None:
    """The ClientHello without its record heads; it may be spread over several records."""
    message, offset, wanted = b"", 0, 4
    for _ in range(RECORDS_MAX):
        if data[offset : offset + 1] not in (b"", b"\x16"):
            raise NoHello
        if len(data) > HELLO_BYTES_MAX or wanted > HELLO_BYTES_MAX:
            raise NoHello
        if len(data) < offset + _RECORD_HEAD:
            return None
        length = int.from_bytes(data[offset + 3 : offset + _RECORD_HEAD], "big")
        if not length:
            raise NoHello
        message += data[offset + _RECORD_HEAD : offset + _RECORD_HEAD + length]
        offset += _RECORD_HEAD + length
        if len(message) >= 4:
            if message[0] != _CLIENT_HELLO:
                raise NoHello
            wanted = 4 + int.from_bytes(message[1:4], "big")
        if len(message) >= wanted:
            return message[:wanted]
    raise NoHello


def _read(message: bytes) -> Hello:
    """Raises IndexError where the message ends too early."""
    offset = 4 + 2 + 32  # head, legacy version, random
    offset += 1 + message[offset]  # session id
    offset += 2 + _two(message, offset)  # cipher suites
    offset += 1 + message[offset]  # compression methods
    name, newest, protocols = b"", _two(message, 4), b""
    if offset == len(message):
        return Hello(name, message, newest)  # no extensions at all
    end = offset + 2 + _two(message, offset)
    offset += 2
    while offset < end:
        kind = message[offset] << 8 | message[offset + 1]  # for each of twenty: a call takes longer
        length = message[offset + 2] << 8 | message[offset + 3]
        offset += 4
        if kind == _SERVER_NAME:
            if not name and length > 5 and message[offset + 2] == _HOST_NAME:
                size = _two(message, offset + 3)
                name = message[offset + 5 : offset + 5 + size].lower().removesuffix(b".")
        elif kind == _PROTOCOLS:
            protocols = message[offset : offset + length]
        elif kind == _VERSIONS:
            newest = _newest(message[offset + 1 : offset + 1 + message[offset]], newest)
        offset += length
    return Hello(name, message, newest, protocols)


def _newest(versions: bytes, otherwise: int) -> int:
    """Of those that are no noise (RFC 8701)."""
    numbers = (_two(versions, at) for at in range(0, len(versions) - 1, 2))
    return max((number for number in numbers if number & 0x0F0F != 0x0A0A), default=otherwise)


def _two(message: bytes, offset: int) -> int:
    return message[offset] << 8 | message[offset + 1]
