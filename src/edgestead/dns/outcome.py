"""The outcome of a question: a reply without the ID, the question and the OPT record.

Owns  `Outcome` and the header octets before it.
Not   finding an outcome (`lookup`).
"""

import struct
from functools import lru_cache
from typing import Final

from edgestead.dns.counters import Slot

_HEAD: Final = struct.Struct("!HHHHH")

QR: Final = 0x8000
AA: Final = 0x0400
TC: Final = 0x0200
RD: Final = 0x0100

NOERROR: Final = 0
FORMERR: Final = 1
SERVFAIL: Final = 2
NXDOMAIN: Final = 3
NOTIMP: Final = 4
REFUSED: Final = 5
YXDOMAIN: Final = 6  # RFC 2136 §2.2; RFC 6672 §2.2: a name that gets too long
NOTAUTH: Final = 9  # RFC 2136 §2.2, RFC 5936 §2.2.1

Heads = tuple[bytes, bytes, bytes, bytes]
"""Header octets after the ID, by mode: bit 0 is RD of the query, bit 1 says that an OPT record follows."""


@lru_cache(4096)
def heads(flags: int, an: int = 0, ns: int = 0, ar: int = 0) -> Heads:
    """One question; RD copied, RA never set (RFC 1035 §4.1.1). Shared: the few in use stay in the CPU's
    cache.
    """
    return (
        _HEAD.pack(QR | flags, 1, an, ns, ar),
        _HEAD.pack(QR | flags | RD, 1, an, ns, ar),
        _HEAD.pack(QR | flags, 1, an, ns, ar + 1),
        _HEAD.pack(QR | flags | RD, 1, an, ns, ar + 1),
    )


class Outcome:
    """One answer, cached, shared and immutable.

    `steady`: only a finite set of names has this outcome and the rcode is NOERROR, so whole replies may be
    cached by their exact question. `shorter` replaces it while it does not fit (RFC 9471 §3.2). `slot` is its
    counter, `extended_error` the info code with details (RFC 8914 §4).
    """

    __slots__ = ("extended_error", "heads", "shorter", "slot", "steady", "tail", "truncated")

    def __init__(
        self,
        flags: int,
        tail: bytes = b"",
        counts: tuple[int, int, int] = (0, 0, 0),
        *,
        steady: bool = False,
        shorter: "Outcome | None" = None,
        extended_error: int | None = None,
    ) -> None:
        self.heads = heads(flags, *counts)
        self.truncated = heads(flags | TC)
        self.tail = tail
        rcode = flags & 0x0F
        self.slot = rcode if rcode <= REFUSED else int(Slot.OTHER_RCODE)
        self.steady = steady
        self.shorter = shorter
        self.extended_error = extended_error


READY_HEADS: Final = (heads(AA), *(heads(AA, an) for an in range(1, 256)))
"""Heads of an authoritative answer by its number of records, for nodes that are ready to send."""
READY_TRUNCATED: Final = heads(AA | TC)

NOT_AUTHORITATIVE: Final = 20  # RFC 8914 §4.21
NOT_READY: Final = 14  # RFC 8914 §4.15
PROHIBITED: Final = 18  # RFC 8914 §4.19
NOT_OURS: Final = Outcome(REFUSED, extended_error=NOT_AUTHORITATIVE)
NOT_ALLOWED: Final = Outcome(REFUSED, extended_error=PROHIBITED)
NOT_A_ZONE: Final = Outcome(NOTAUTH)
"""To who asks for the transfer of a name that is no apex here."""
NO_FLAGS: Final = heads(0)
