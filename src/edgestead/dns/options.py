"""The options of a query's OPT record that this server knows, read and written.

Owns  their form: which octets of each are FORMERR.
Not   what to answer (`edns`); unknown options, which are ignored (RFC 6891 §6.1.2).
"""

import struct
from typing import Final, NamedTuple

from edgestead.dns.cookies import CLIENT_OCTETS
from edgestead.dns.wire import BadMessage

NSID: Final = 3
CLIENT_SUBNET: Final = 8
COOKIE: Final = 10
KEEPALIVE: Final = 11
PADDING: Final = 12
EXTENDED_ERROR: Final = 15

_HEAD: Final = struct.Struct("!HH")
_SUBNET_HEAD_OCTETS: Final = 4
_FAMILY_BITS: Final = {0: 0, 1: 32, 2: 128}
_SERVER_COOKIE_OCTETS: Final = range(8, 33)  # RFC 7873 §4


class Wishes(NamedTuple):
    """The options of a query; b"" and False for those it does not have.

    `subnet` is the option as it has to be answered: scope 0, because no answer depends on it.
    """

    cookie: bytes = b""
    subnet: bytes = b""
    nsid: bool = False
    keepalive: bool = False
    padding: bool = False


def read(options: bytes) -> Wishes:
    """Read well-formed options; of several with the same code the first counts (RFC 7873 §5.2). Raises
    BadMessage.
    """
    found: dict[int, bytes] = {}
    at = 0
    while at < len(options):
        code, octets = _HEAD.unpack_from(options, at)
        at += _HEAD.size + octets
        found.setdefault(code, options[at - octets : at])
    return Wishes(
        cookie=_cookie(found[COOKIE]) if COOKIE in found else b"",
        subnet=_subnet(found[CLIENT_SUBNET]) if CLIENT_SUBNET in found else b"",
        nsid=NSID in found,
        keepalive=KEEPALIVE in found and _keepalive(found[KEEPALIVE]),
        padding=PADDING in found,
    )


def option(code: int, data: bytes) -> bytes:
    return _HEAD.pack(code, len(data)) + data


def extended_error(code: int) -> bytes:
    """An info code without extra text (RFC 8914 §2)."""
    return option(EXTENDED_ERROR, code.to_bytes(2, "big"))


def _cookie(data: bytes) -> bytes:
    if len(data) != CLIENT_OCTETS and len(data) - CLIENT_OCTETS not in _SERVER_COOKIE_OCTETS:
        raise BadMessage("cookie")  # RFC 7873 §5.2.2
    return data


def _subnet(data: bytes) -> bytes:
    """Family, prefix length, scope, and just as many octets of address (RFC 7871 §6, §7.2.1)."""
    if len(data) < _SUBNET_HEAD_OCTETS:
        raise BadMessage("client subnet")
    family, prefix, scope = int.from_bytes(data[:2], "big"), data[2], data[3]
    address = data[_SUBNET_HEAD_OCTETS:]
    bits = _FAMILY_BITS.get(family)
    if bits is None or prefix > bits or scope or len(address) != (prefix + 7) // 8:
        raise BadMessage("client subnet")
    if prefix % 8 and address[-1] & 0xFF >> prefix % 8:
        raise BadMessage("client subnet: bits behind the prefix")
    return data if family else b""  # no family: the client wants its address kept private, and no answer


def _keepalive(data: bytes) -> bool:
    if data:
        raise BadMessage("a client does not say the time-out")  # RFC 7828 §3.2.1
    return True
