"""A dynamic update: what a client wants of a zone, and only if (RFC 2136).

Owns  the parts of a request; why one is not done, as an rcode.
Not   its octets (`dns.update`); doing it (`usecases.record.updates`).
"""

from typing import Final, NamedTuple

NOERROR: Final = 0
FORMERR: Final = 1
SERVFAIL: Final = 2
NXDOMAIN: Final = 3
REFUSED: Final = 5
YXDOMAIN: Final = 6
YXRRSET: Final = 7
NXRRSET: Final = 8
NOTAUTH: Final = 9
NOTZONE: Final = 10

IN: Final = 1
NONE: Final = 254
ANY: Final = 255
"""As a class, and as a type."""


class Line(NamedTuple):
    """A record of either section. `owner` is lower-case wire form, `rdata` uncompressed."""

    owner: bytes
    type: int
    class_: int
    ttl: int
    rdata: bytes


class Update(NamedTuple):
    apex: bytes
    prerequisites: tuple[Line, ...]
    updates: tuple[Line, ...]


class NotDone(Exception):
    """Nothing of an update is done; `rcode` says why."""

    def __init__(self, rcode: int, reason: str = "") -> None:
        super().__init__(reason)
        self.rcode = rcode
