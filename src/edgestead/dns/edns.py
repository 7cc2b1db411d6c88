"""The OPT record of a reply, and how long the reply may be.

Owns  sizes, versions, and the answer to each option of a query.
Not   reading messages (`query`).
"""

import struct
from typing import Final

from edgestead.dns import options, wire
from edgestead.dns.cookies import CLIENT_OCTETS, SERVER_OCTETS, Cookies
from edgestead.dns.kept import Kept
from edgestead.dns.options import Wishes
from edgestead.dns.settings import DnsSettings

UDP_OCTETS: Final = 1232  # RFC 9715: no fragments; the largest we send, and the size that we announce
UDP_OCTETS_MIN: Final = 512  # RFC 1035 §4.2.1, RFC 6891 §6.2.3
TCP_OCTETS: Final = 65_507  # RFC 1035 §4.2.2 allows 65,535: space for a cookie is always left
PADDED_OCTETS: Final = 468  # RFC 8467 §4.1: what a reply is padded to a multiple of
VERSION: Final = 0
BADVERS: Final = 16
BADCOOKIE: Final = 23
OPT_OCTETS: Final = 11
"""An OPT record without options."""

_ID: Final = 2
_OPTION_HEAD_OCTETS: Final = 4
DO: Final = 0x80
_OPT_HEAD: Final = b"\0" + wire.OPT.to_bytes(2, "big")

Edns = tuple[bytes, int]
"""The OPT record to answer with, and how long the reply may be without its ID."""


def opt_record(flags: int, rcode: int = 0, answered: bytes = b"") -> bytes:
    """Version 0, DO as in the query (RFC 6891 §6.1.2, RFC 3225 §3), the upper bits of the rcode."""
    body = struct.pack("!HBBBBH", UDP_OCTETS, rcode >> 4, VERSION, flags & DO, 0, len(answered))
    return _OPT_HEAD + body + answered


_OPT: Final = (opt_record(0), opt_record(DO))


def _cookie_alone(octets: int) -> bytes:
    """The three lengths of an OPT record with a cookie of so many octets and nothing else."""
    head = options.option(options.COOKIE, bytes(octets))[:_OPTION_HEAD_OCTETS]
    return (_OPTION_HEAD_OCTETS + octets).to_bytes(2, "big") + head


COOKIE_OCTETS: Final = CLIENT_OCTETS + SERVER_OCTETS
"""A client's half and ours."""
BOTH_ALONE: Final = _cookie_alone(COOKIE_OCTETS)
CLIENT_ALONE: Final = _cookie_alone(CLIENT_OCTETS)
LENGTHS_AT: Final = 9
"""In an OPT record: RDLENGTH, then the first option's code and length."""
_COOKIE_AT: Final = OPT_OCTETS + _OPTION_HEAD_OCTETS
BOTH_FROM_END: Final = _COOKIE_AT + COOKIE_OCTETS
CLIENT_FROM_END: Final = _COOKIE_AT + CLIENT_OCTETS
COOKIE_GROWTH_OCTETS: Final = _OPTION_HEAD_OCTETS + COOKIE_OCTETS
"""How much longer a reply is for the cookie in it."""


class EdnsServer:
    """The EDNS side of one transport. `keepalive_units` is the timeout to announce (RFC 7828 §3.1), over
    TCP. `encrypted`: replies are padded for who asks for it (RFC 7830 §6).
    """

    def __init__(self, settings: DnsSettings, *, udp: bool, encrypted: bool = False) -> None:
        self._udp, self._encrypted = udp, encrypted
        self._nsid = options.option(options.NSID, settings.identity) if settings.identity else b""
        self.cookies = Cookies(settings.cookie_secret)
        self.plain: Edns = (b"", (UDP_OCTETS_MIN if udp else TCP_OCTETS) - _ID)
        self.kept: Kept[bytes, Edns] = Kept()
        self.keepalive_units = 0
        self.bare: Kept[bytes, bytes] = Kept()

    def without_cookie(self, opt: bytes) -> bytes:
        """An OPT record without the cookie behind its first octets, b"" if it cannot do without.

        Its payload size leaves space for our cookie.
        """
        octets = min(int.from_bytes(opt[3:5], "big"), UDP_OCTETS) - COOKIE_GROWTH_OCTETS
        if not opt.startswith(_OPT_HEAD) or opt[6] != VERSION or octets < UDP_OCTETS_MIN:
            return b""
        bare = opt[:3] + octets.to_bytes(2, "big") + opt[5:] + b"\0\0"
        self.bare.keep(opt, bare, len(bare))
        return bare

    def usual(self, opt: bytes) -> Edns | None:
        """The meaning of an OPT record of version 0 without options; None for any other bytes."""
        if len(opt) != OPT_OCTETS or opt[:3] != _OPT_HEAD or opt[6] != VERSION or opt[9:] != b"\0\0":
            return None
        edns = _OPT[opt[7] >> 7], self.octets(opt[3:5])
        self.kept.keep(opt, edns, OPT_OCTETS)
        return edns

    def octets(self, payload: bytes) -> int:
        """The size of a reply without ID, from the OPT record's class."""
        if not self._udp:
            return TCP_OCTETS - _ID
        return min(max(int.from_bytes(payload, "big"), UDP_OCTETS_MIN), UDP_OCTETS) - _ID

    def answered(self, wishes: Wishes, client: bytes) -> tuple[bytes, bool]:
        """The options of the reply, and whether a cookie proves the client's address."""
        parts, proved = [], False
        if wishes.cookie:
            cookie, proved = self.cookies.answer(wishes.cookie, client)
            parts.append(options.option(options.COOKIE, cookie))
        if wishes.nsid:
            parts.append(self._nsid)
        if wishes.subnet:
            parts.append(options.option(options.CLIENT_SUBNET, wishes.subnet))
        if wishes.keepalive and not self._udp:
            parts.append(options.option(options.KEEPALIVE, self.keepalive_units.to_bytes(2, "big")))
        return b"".join(parts), proved

    def padded(self, reply: bytes, opt: bytes) -> bytes:
        """A reply that ends with an OPT record, so long that its length tells little; with its ID."""
        room = TCP_OCTETS - _ID - len(reply) - _OPTION_HEAD_OCTETS
        if not self._encrypted or room < 0:
            return reply
        octets = min(-(len(reply) + _ID + _OPTION_HEAD_OCTETS) % PADDED_OCTETS, room)
        padding = options.option(options.PADDING, bytes(octets))
        length = len(opt) - OPT_OCTETS + len(padding)
        before = reply[: len(reply) - len(opt)]
        return b"".join((before, opt[:LENGTHS_AT], length.to_bytes(2, "big"), opt[OPT_OCTETS:], padding))
