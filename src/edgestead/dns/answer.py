"""One query's bytes in, one reply's bytes out.

Owns  header checks, EDNS, sizes and truncation, the exact-bytes cache.
Asks  `lookup` for outcomes, `table` for the view of now.
Tells `udp` and `tcp` what to send; `counters` what it was.
Not   sockets; what an answer says (`lookup`).

Messages come and go without their ID, which is the transport's: so a reply fits every ID. Three ways lead
to a reply, each a few times dearer than the one before: `exact.get(query)`, which the loops do themselves;
`reply`, for a standard query without EDNS options; `_unusual`, for everything else that bytes can be.
"""

import logging
import struct
from collections import deque
from typing import Any, Final

from edgestead.dns import node, wire
from edgestead.dns.counters import Slot, Tally
from edgestead.dns.kept import Kept
from edgestead.dns.lookup import PLAIN, lookup, missing
from edgestead.dns.outcome import (
    FORMERR,
    NO_FLAGS,
    NOT_OURS,
    NOTIMP,
    READY_HEADS,
    READY_TRUNCATED,
    SERVFAIL,
    Heads,
    Outcome,
)
from edgestead.dns.query import Asked, read
from edgestead.dns.table import Table
from edgestead.dns.wire import BadMessage
from edgestead.dns.zone import Zone
from edgestead.model.limits import LABEL_OCTETS_MAX, NAME_OCTETS_MAX

log = logging.getLogger(__name__)

UDP_OCTETS: Final = 1232  # RFC 9715: no fragments; what we send, and what we say we take
UDP_OCTETS_MIN: Final = 512  # RFC 1035 §4.2.1, RFC 6891 §6.2.3
TCP_OCTETS: Final = 65_535  # RFC 1035 §4.2.2
FADE_ENTRIES: Final = 256

_ID: Final = 2
_QR: Final = 0x80
_OPCODE: Final = 0x78
_KIND_OCTETS: Final = 4  # type and class
_NAME_AT: Final = 12 - _ID
_CLASS_IN: Final = b"\0\x01"
_DO: Final = 0x80
_NOERROR: Final = int(Slot.NOERROR)  # a member of an enumeration costs a descriptor
_EDNS: Final = 2  # the bit of the mode that says that an OPT record follows


def _modes() -> dict[bytes, int]:
    """The headers of standard queries: any RD, Z, AD and CD; one question; no other record or just one."""
    return {
        bytes((rd, bits << 4, 0, 1, 0, 0, 0, 0, 0, ar)): rd | (_EDNS if ar else 0)
        for rd in (0, 1)
        for bits in range(16)
        for ar in (0, 1)
    }


_MODES: Final = _modes()

_OPT_HEAD: Final = b"\0" + wire.OPT.to_bytes(2, "big")
_OPT_OCTETS: Final = 11


def _opt(*, do: bool, extended_rcode: int = 0) -> bytes:
    """Our OPT record: version 0, no options, DO as in the query (RFC 6891 §6.1.2, RFC 3225 §3)."""
    return _OPT_HEAD + struct.pack("!HBBBBH", UDP_OCTETS, extended_rcode, 0, _DO if do else 0, 0, 0)


_OPT: Final = (_opt(do=False), _opt(do=True))
_OPT_BAD_VERSION: Final = (_opt(do=False, extended_rcode=1), _opt(do=True, extended_rcode=1))

Edns = tuple[bytes, int]
"""The OPT record to answer with, and how long the reply may be without its ID."""


class Responder:
    """Answers queries of one transport, on one thread, which holds the table's lock while it does.

    `exact` holds whole replies by whole queries: only of rcode 0, only to names that exist, and only to names
    in lower case. Resolvers that mix case at random (dns0x20) never ask the same octets twice, and neither do
    floods of random names: keeping those would push out what is asked again.
    """

    def __init__(self, table: Table, tally: Tally, *, udp: bool) -> None:
        self._table = table
        self._counts = tally.counts
        self._udp = udp
        self._plain: Edns = (b"", (UDP_OCTETS_MIN if udp else TCP_OCTETS) - _ID)
        self._edns: Kept[bytes, Edns] = Kept()
        self._fading: deque[dict[Any, Any]] = deque()
        self._adopt()

    def _adopt(self) -> None:
        self._view = self._table.view
        self._zones = self._view.zones
        self._outcomes = self._view.outcomes
        self.exact: Kept[bytes, bytes] = Kept()
        self._failure_logged = False

    def exact_of_now(self) -> Kept[bytes, bytes]:
        """The cache that goes with the table of now. Asked once a batch, with the table's lock held."""
        if self._view is not self._table.view:
            self._fading.extend(kept for kept in (self.exact, self._outcomes) if kept)
            self._adopt()
        if self._fading:
            self._fade()
        return self.exact

    def _fade(self) -> None:
        """Free what was kept for a table of the past, with each batch more than a batch can keep.

        Letting go of a full cache at once would hold up every query for several milliseconds.
        """
        left = FADE_ENTRIES
        while self._fading and left > 0:
            old = self._fading[0]
            freed = min(left, len(old))
            for _ in range(freed):
                old.popitem()
            left -= freed
            if not old:
                self._fading.popleft()

    def reply(self, query: bytes) -> bytes | None:
        """The reply to a query, both without ID; None when there must be none.

        No query makes it raise. Should one do so all the same, the loops call `failed`: one name must not end
        the process for all the others.

        Takes the name to be all that stands before type and class, then walks it label by label to the apex
        of a zone: getting there is the proof that it was the name, and that nothing stands behind it.
        """
        mode = _MODES.get(query[:_NAME_AT])
        if mode is None:
            return self._unusual(query)
        if mode < _EDNS:
            question, edns = query[_NAME_AT:], self._plain
        else:
            opt = query[-_OPT_OCTETS:]
            usual = self._edns.get(opt) or self._usual_edns(opt)
            if usual is None:
                return self._unusual(query)
            question, edns = query[_NAME_AT:-_OPT_OCTETS], usual
        asked, kind = question[:-_KIND_OCTETS], question[-_KIND_OCTETS:]
        name = asked.lower()
        if name != asked:
            outcome = self._outcomes.get(name + kind)
            if outcome is not None:
                return self._finish(question, mode, edns, outcome, b"")
        zones, at = self._zones, 0
        zone = zones.get(name)
        try:
            while zone is None:
                length = name[at]
                if length > LABEL_OCTETS_MAX:
                    return self._unusual(query)
                at += length + 1
                zone = zones.get(name[at:])
        except IndexError:  # no zone of ours, or no name
            return self._unusual(query)
        held = zone.names.get(name[:at])
        if held is not None:
            return self._at_node(query, question, mode, edns, zone, name, held)
        if kind not in PLAIN or len(name) > NAME_OCTETS_MAX:
            return self._unusual(query)
        return self._finish(question, mode, edns, missing(self._view, zone, name, at, kind), b"")

    def failed(self, query: bytes) -> bytes:
        """SERVFAIL after `reply` raised, and one log line for each state of the table."""
        if not self._failure_logged:
            self._failure_logged = True
            log.exception("no answer for the query %s", query.hex())
        return self._bare(query, SERVFAIL)

    def _at_node(
        self, query: bytes, question: bytes, mode: int, edns: Edns, zone: Zone, name: bytes, held: bytes
    ) -> bytes | None:
        """The reply for a name that exists, asked for the first time since the table changed."""
        kind = question[-_KIND_OCTETS:]
        as_asked = question.startswith(name)
        if as_asked and held[node.KIND] == kind and held[0]:
            if not zone.cuts or zone.cut_above(name[: len(name) - len(zone.apex)]) is None:
                return self._ready(query, question, mode, edns, held)
        if kind not in PLAIN:
            return self._unusual(query)
        outcome = lookup(self._view, zone, name, kind)
        return self._finish(question, mode, edns, outcome, query if as_asked else b"")

    def _ready(self, query: bytes, question: bytes, mode: int, edns: Edns, held: bytes) -> bytes:
        """The reply from a node that is ready to send."""
        opt, octets = edns
        reply = b"".join((READY_HEADS[held[0]][mode], question, held[node.READY :], opt))
        self._counts[_NOERROR] += 1
        if len(reply) > octets:
            return self._truncated(READY_TRUNCATED, question, mode, edns)
        self.exact.keep(query, reply, len(query) + len(reply))
        return reply

    def _finish(self, question: bytes, mode: int, edns: Edns, outcome: Outcome, query: bytes) -> bytes:
        """The reply with an outcome. `query` is b"" when the reply must not be kept under it."""
        opt, octets = edns
        reply = b"".join((outcome.heads[mode], question, outcome.tail, opt))
        if len(reply) > octets and outcome.shorter is not None:
            outcome = outcome.shorter
            reply = b"".join((outcome.heads[mode], question, outcome.tail, opt))
        self._counts[outcome.rcode] += 1
        if len(reply) > octets:
            return self._truncated(outcome.truncated, question, mode, edns)
        if query and outcome.steady:
            self.exact.keep(query, reply, len(query) + len(reply))
        return reply

    def _truncated(self, heads: Heads, question: bytes, mode: int, edns: Edns) -> bytes:
        """TC and nothing else: half an answer helps nobody (RFC 2181 §9)."""
        self._counts[Slot.TRUNCATED] += 1
        return b"".join((heads[mode], question, edns[0]))

    def _usual_edns(self, opt: bytes) -> Edns | None:
        """What an OPT record of version 0 without options asks for; None for any other bytes."""
        if len(opt) != _OPT_OCTETS or opt[:3] != _OPT_HEAD or opt[6] or opt[9:] != b"\0\0":
            return None
        edns = self._edns_of(opt[3:5], opt[7])
        self._edns.keep(opt, edns, _OPT_OCTETS)
        return edns

    def _edns_of(self, payload: bytes, flags: int) -> Edns:
        """Our OPT record and the size of a reply, from the OPT record's class and the octet with DO."""
        if not self._udp:
            return _OPT[flags >> 7], TCP_OCTETS - _ID
        octets = min(max(int.from_bytes(payload, "big"), UDP_OCTETS_MIN), UDP_OCTETS)
        return _OPT[flags >> 7], octets - _ID

    def _unusual(self, query: bytes) -> bytes | None:
        """The reply to anything, by the book and step by step."""
        if len(query) < _NAME_AT or query[0] & _QR:
            self._counts[Slot.DROPPED] += 1
            return None  # answering answers would let two servers talk for ever
        if query[0] & _OPCODE:
            return self._bare(query, NOTIMP)
        try:
            asked = read(query)
        except BadMessage:
            return self._bare(query, FORMERR)
        mode = query[0] & 1 | (_EDNS if asked.opt is not None else 0)
        edns = self._plain
        if asked.opt is not None:
            edns = self._edns_of(asked.opt.payload, asked.opt.flags)
            if asked.opt.version:
                return self._bad_version(asked.question, mode, edns)
        return self._finish(asked.question, mode, edns, self._outcome(asked), b"")

    def _outcome(self, asked: Asked) -> Outcome:
        kind = asked.question[-_KIND_OCTETS:]
        name = asked.question[:-_KIND_OCTETS].lower()
        zone = self._view.zone_of(name)
        if kind[2:] != _CLASS_IN or zone is None:
            return NOT_OURS
        return lookup(self._view, zone, name, kind)

    def _bad_version(self, question: bytes, mode: int, edns: Edns) -> bytes:
        """BADVERS, whose upper bits stand in the OPT record (RFC 6891 §6.1.3)."""
        self._counts[Slot.OTHER_RCODE] += 1
        opt = _OPT_BAD_VERSION[_OPT.index(edns[0])]
        return b"".join((NO_FLAGS[mode], question, opt))

    def _bare(self, query: bytes, rcode: int) -> bytes:
        """A header alone: the opcode and RD of the query, an rcode, no counts (RFC 1035 §4.1.1)."""
        self._counts[rcode] += 1
        return bytes((_QR | query[0] & (_OPCODE | 1), rcode)) + bytes(_NAME_AT - 2)
