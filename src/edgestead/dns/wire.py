"""Names and records as the bytes of RFC 1035, for paths where every tenth of a microsecond counts.

Owns  splitting names, writing resource records, name compression, the numbers of the types that this room
      uses.
Not   text forms (`model`); parsing whole queries (`answer`).

A name here is absolute and uncompressed; a relative name is its leading labels without the apex, so the
apex itself is b"". Names from the table are valid and lower-case; only `skip_name`, `read_name` and
`expand_name` read bytes from outside.
"""

import struct
from collections.abc import Iterator
from typing import Final

from edgestead.model.limits import LABEL_OCTETS_MAX, NAME_OCTETS_MAX

A: Final = 1
NS: Final = 2
CNAME: Final = 5
SOA: Final = 6
AAAA: Final = 28
SRV: Final = 33
DNAME: Final = 39
OPT: Final = 41
DS: Final = 43
IXFR: Final = 251
AXFR: Final = 252
ANY: Final = 255
IN: Final = 1

SOA_KEY: Final = b"\0\x06\0\x01"
"""Its type and class."""

META_TYPES: Final = frozenset({0, OPT, *range(249, 256)})
"""Types that no zone holds: reserved, per message, or questions only (RFC 6895 §3.1)."""

_NAMES_BEFORE: Final[dict[int, tuple[int, int]]] = {
    2: (0, 1),  # NS
    3: (0, 1),  # MD
    4: (0, 1),  # MF
    5: (0, 1),  # CNAME
    6: (0, 2),  # SOA
    7: (0, 1),  # MB
    8: (0, 1),  # MG
    9: (0, 1),  # MR
    12: (0, 1),  # PTR
    14: (0, 2),  # MINFO
    15: (2, 1),  # MX
}
"""Types whose names may be compressed (RFC 3597 §4): octets before the names, and how many names."""

_NAMES_BEFORE_OF_SRV: Final = (6, 1)
COMPRESSIBLE: Final = frozenset(_NAMES_BEFORE)
SOA_NUMBERS_OCTETS: Final = 20  # RFC 1035 §3.3.13
POINTER_OFFSET_MAX: Final = 0x3FFF  # RFC 1035 §4.1.4
POINTERS_MAX: Final = 127  # of one name: it has no more labels
_POINTER: Final = 0xC000

RR_HEAD: Final = struct.Struct("!HHHIH")
"""Owner as a pointer, type, class, TTL, RDLENGTH."""
_RR_BODY: Final = struct.Struct("!HHIH")
QUESTION_OWNER: Final = _POINTER | 12
"""A pointer to the name of the question, which always begins at octet 12."""

_QUESTION_OWNER_OCTETS: Final = QUESTION_OWNER.to_bytes(2, "big")


class BadMessage(ValueError):
    """Bytes from outside that break the format of RFC 1035 §4."""


def parent(name: bytes) -> bytes:
    """A non-empty name without its first label."""
    return name[name[0] + 1 :]


def below(name: bytes, ancestor: bytes) -> bytes | None:
    """The labels of `name` before `ancestor`, or None when `name` is not below it."""
    rest = name
    while len(rest) > len(ancestor):
        rest = parent(rest)
    return name[: len(name) - len(rest)] if rest == ancestor else None


def name_end(data: bytes, at: int) -> int:
    """The end of the uncompressed, valid name at `at`."""
    while length := data[at]:
        at += length + 1
    return at + 1


def read_name(message: bytes, at: int) -> int:
    """The end of the uncompressed name at `at`.

    Limits  63 octets a label, 255 a name (RFC 1035 §2.3.4); no pointers.
    Raises  BadMessage.
    """
    start, end = at, len(message)
    while at < end and at - start < NAME_OCTETS_MAX:
        length = message[at]
        at += 1
        if not length:
            return at
        if length > LABEL_OCTETS_MAX:
            break
        at += length
    raise BadMessage("name")


def skip_name(message: bytes, at: int) -> int:
    """The end of the name at `at`; a pointer ends it and is not followed. Raises BadMessage."""
    start, end = at, len(message)
    while at < end and at - start < NAME_OCTETS_MAX:
        length = message[at]
        if length >= 0xC0:
            return at + 2
        at += 1
        if not length:
            return at
        if length > LABEL_OCTETS_MAX:
            break
        at += length
    raise BadMessage("name")


def expand_name(message: bytes, at: int) -> tuple[bytes, int]:
    """The name at `at` in lower case, its pointers followed, and where it ends. Raises BadMessage."""
    name, end = _expanded(message, at)
    return name.lower(), end


def expand_rdata(kind: int, message: bytes, at: int, end: int) -> bytes:
    """Rdata from `at` to `end` without pointers. Raises BadMessage.

    Compressed are the names of RFC 1035's types, and by old senders that of SRV (RFC 3597 §4).
    """
    before, names = _NAMES_BEFORE.get(kind, _NAMES_BEFORE_OF_SRV if kind == SRV else (0, 0))
    if not names:
        return message[at:end]
    parts = [message[at : at + before]]
    at += before
    for _ in range(names):
        name, at = _expanded(message, at)
        parts.append(name)
    if at > end:
        raise BadMessage("rdata")
    return b"".join((*parts, message[at:end]))


def _expanded(message: bytes, at: int) -> tuple[bytes, int]:
    """The name at `at` as it is written, and where it ends. Raises BadMessage.

    A pointer has to point before the part that it ends (RFC 1035 §4.1.4), and there are no more of them than
    a name has labels.
    """
    parts: list[bytes] = []
    end = octets = 0
    before = at
    for _ in range(POINTERS_MAX + 1):
        start = at
        while at < len(message) and 0 < message[at] <= LABEL_OCTETS_MAX and at - start < NAME_OCTETS_MAX:
            at += message[at] + 1
        parts.append(message[start:at])
        octets += at - start
        if at >= len(message) or octets >= NAME_OCTETS_MAX:
            break
        if not message[at]:
            return b"".join(parts) + b"\0", end or at + 1
        pointer = int.from_bytes(message[at : at + 2], "big") - _POINTER
        if not 0 <= pointer < before:
            break
        end = end or at + 2
        at = before = pointer
    raise BadMessage("name")


def check_names(kind: int, rdata: bytes) -> None:
    """Raises BadMessage unless rdata of a compressible type is its names and, for SOA, the numbers."""
    at, names = _NAMES_BEFORE[kind]
    for _ in range(names):
        at = read_name(rdata, at)
    if len(rdata) - at != (SOA_NUMBERS_OCTETS if kind == SOA else 0):
        raise BadMessage(f"rdata of type {kind}")


def records(rrs: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(type, TTL, rdata) of each record in ready RRs whose owners are all pointers."""
    at, end = 0, len(rrs)
    while at < end:
        _, kind, _, ttl_seconds, length = RR_HEAD.unpack_from(rrs, at)
        at += RR_HEAD.size
        yield kind, ttl_seconds, rrs[at : at + length]
        at += length


def shortened(kind: int, rdata: bytes, question: bytes) -> bytes:
    """Rdata of a compressible type with a pointer where a name ends in the question's (lower-case)."""
    at, names = _NAMES_BEFORE[kind]
    out = rdata[:at]
    for _ in range(names):
        end = name_end(rdata, at)
        name = rdata[at:end]
        above = below(name.lower(), question)
        out += name if above is None else name[: len(above)] + _QUESTION_OWNER_OCTETS
        at = end
    return out + rdata[at:]


class Tail:
    """What follows the question in a reply: records whose names are compressed against it and each other.

    `start` is the offset in the message at which the tail begins, ID included. Only suffixes from offset
    `offer` on are used for compression, so that a tail built for one question is valid for every question
    with the same suffix at the same offset.
    """

    __slots__ = ("_at", "_out", "_suffixes")

    def __init__(self, start: int) -> None:
        self._at = start
        self._out: list[bytes] = []
        self._suffixes: dict[bytes, int] = {}

    def __bytes__(self) -> bytes:
        return b"".join(self._out)

    def offer(self, name: bytes, offset: int) -> None:
        """Register that `name` is uncompressed at `offset` of the message."""
        while len(name) > 1 and offset <= POINTER_OFFSET_MAX:
            self._suffixes.setdefault(name, offset)
            offset += name[0] + 1
            name = parent(name)

    def add(self, owner: bytes | None, rrs: bytes) -> int:
        """Append ready RRs of `owner`, None for the question's name, with compressed names (RFC 3597 §4).

        Returns how many there were.
        """
        added = 0
        for kind, ttl_seconds, rdata in records(rrs):
            head = _QUESTION_OWNER_OCTETS if owner is None else self._name(owner, self._at)
            at = self._at + len(head) + _RR_BODY.size
            if kind in COMPRESSIBLE:
                rdata = self._rdata(kind, rdata, at)
            body = _RR_BODY.pack(kind, IN, ttl_seconds, len(rdata))
            self._out.append(head + body + rdata)
            self._at = at + len(rdata)
            added += 1
        return added

    def _rdata(self, kind: int, rdata: bytes, at: int) -> bytes:
        before, names = _NAMES_BEFORE[kind]
        out, read = rdata[:before], before
        for _ in range(names):
            end = name_end(rdata, read)
            out += self._name(rdata[read:end], at + len(out))
            read = end
        return out + rdata[read:]

    def _name(self, name: bytes, offset: int) -> bytes:
        """The shortest form of a name that is written at `offset`; later names may point to it."""
        rest, suffixes = name, self._suffixes
        while len(rest) > 1:
            known = suffixes.get(rest)
            if known is not None:
                return name[: len(name) - len(rest)] + (_POINTER | known).to_bytes(2, "big")
            here = offset + len(name) - len(rest)
            if here <= POINTER_OFFSET_MAX:
                suffixes[rest] = here
            rest = parent(rest)
        return name
