"""Dynamic updates: who may send one, and what stands in it (RFC 2136).

Owns  the form of the message, the signature it needs, the reply.
Not   doing it: control does (`server.control.updates`), which judges the signature once more.

Whatever is not signed is refused by its header alone.
"""

import struct
from collections.abc import Callable, Generator
from typing import Final, Protocol

from edgestead.dns import tsig, wire
from edgestead.dns.counters import Slot, Tally
from edgestead.dns.keyring import Keyring
from edgestead.dns.outcome import FORMERR, REFUSED, SERVFAIL
from edgestead.dns.tsig import Verdict
from edgestead.dns.wire import BadMessage
from edgestead.model.update import IN, Line, Update

OPCODE: Final = 5 << 3
OPCODE_MASK: Final = 0x78
RECORDS_MAX: Final = 1_000
"""Of one message: less than a tenth of a second of control's writer when each is of another name."""
MESSAGE_OCTETS_MAX: Final = 16 * 1024
"""Over TCP; over UDP as long as a query."""

_COUNTS: Final = struct.Struct("!HHHH")
_HEAD_OCTETS: Final = 12
_RR_BODY: Final = struct.Struct("!HHIH")
_ZONE: Final = wire.SOA.to_bytes(2, "big") + IN.to_bytes(2, "big")
_QR: Final = 0x80

Answered = Callable[[int], None]
"""Takes the rcode, on any thread."""


class Forward(Protocol):
    """Hands a message to who does it."""

    def __call__(self, message: bytes, client: str, answered: Answered) -> bool:
        """False when too many wait already: then nobody answers."""
        ...


def read(message: bytes) -> Update:
    """A whole message without its TSIG record. Raises BadMessage."""
    if len(message) < _HEAD_OCTETS:
        raise BadMessage("header")
    zones, *sections = _COUNTS.unpack_from(message, 4)
    if zones != 1 or sum(sections) > RECORDS_MAX:
        raise BadMessage("counts")
    apex, at = wire.expand_name(message, _HEAD_OCTETS)
    if message[at : at + 4] != _ZONE:
        raise BadMessage("zone section")
    at += 4
    found: list[tuple[Line, ...]] = []
    for count in sections:
        lines = []
        for _ in range(count):
            line, at = _line(message, at)
            lines.append(line)
        found.append(tuple(lines))
    if at != len(message):
        raise BadMessage("octets behind the message")
    return Update(apex, found[0], found[1])


def _line(message: bytes, at: int) -> tuple[Line, int]:
    owner, at = wire.expand_name(message, at)
    start = at + _RR_BODY.size
    if start > len(message):
        raise BadMessage("record")
    kind, class_, ttl, octets = _RR_BODY.unpack_from(message, at)
    end = start + octets
    if end > len(message):
        raise BadMessage("record")
    rdata = wire.expand_rdata(kind, message, start, end) if octets else b""
    return Line(owner, kind, class_, ttl, rdata), end


class Updates:
    """The updates of one process."""

    def __init__(self, keyring: Keyring, tally: Tally, forward: Forward) -> None:
        self._keyring = keyring
        self._counts = tally.counts
        self._forward = forward

    def begin(self, message: bytes, client: str, send: Callable[[bytes], None]) -> bytes | None:
        """The reply at once; or None, and `send` gets it later, on another thread."""
        if message[10:12] == b"\0\0":
            return self._bare(message, REFUSED)
        try:
            asked = tsig.verify(message, self._keyring.keys, self._keyring.now_s(), records_max=RECORDS_MAX)
            if asked.record is None:
                return self._bare(message, REFUSED)
            if asked.key is None:
                self._counts[Slot.OTHER_RCODE] += 1
                return tsig.refusal(asked, self._keyring.now_s())
            if not self._keyring.may_update(asked.key):
                return self._reply(asked, REFUSED)
        except BadMessage:
            return self._bare(message, FORMERR)
        if self._forward(message, client, lambda rcode: send(self._signed(asked, rcode))):
            return None
        return self._reply(asked, SERVFAIL)

    def over_tcp(self, message: bytes, client: str, not_yet: bytes) -> Generator[bytes, None, None]:
        """The reply without its ID, behind as many `not_yet` as it takes."""
        replies: list[bytes] = []
        reply = self.begin(message, client, replies.append)
        while reply is None:
            yield not_yet
            reply = replies[0] if replies else None
        yield reply[2:]

    def _bare(self, message: bytes, rcode: int) -> bytes:
        self._counts[rcode] += 1
        return message[:2] + bytes((_QR | OPCODE, rcode)) + bytes(_HEAD_OCTETS - 4)

    def _reply(self, asked: Verdict, rcode: int) -> bytes:
        self._counts[rcode] += 1
        return self._signed(asked, rcode)

    def _signed(self, asked: Verdict, rcode: int) -> bytes:
        """The zone section comes back, the others do not (RFC 2136 §3.8)."""
        request = asked.message
        end = wire.skip_name(request, _HEAD_OCTETS) + 4 if request[4:6] == b"\0\1" else _HEAD_OCTETS
        head = request[:2] + bytes((_QR | OPCODE, rcode)) + (request[4:6] if end > _HEAD_OCTETS else b"\0\0")
        reply = head + bytes(6) + request[_HEAD_OCTETS:end]
        return tsig.answer(reply, asked, self._keyring.now_s())
