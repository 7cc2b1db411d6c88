"""One query's bytes in, one reply's bytes out.

Owns  header checks, truncation, the exact-bytes cache, short answers for clients over their rate.
Not   sockets; the contents of answers (`lookup`).

Messages are passed without their ID, which belongs to the transport, so a reply is valid for every ID. There
are three ways to a reply, each a few times more expensive than the one before: `exact.get(query)`, which the
loops call themselves; `reply`, for a standard query without EDNS options, or with only a cookie, which is
removed from the query and added to the reply; `_unusual`, for all other bytes.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from edgestead.dns import chaos, node, options, tsig, update, wire
from edgestead.dns.chaos import Chaos
from edgestead.dns.cookies import CLIENT_OCTETS
from edgestead.dns.counters import Slot, Tally
from edgestead.dns.edns import (
    BADCOOKIE,
    BADVERS,
    BOTH_ALONE,
    BOTH_FROM_END,
    CLIENT_ALONE,
    CLIENT_FROM_END,
    COOKIE_OCTETS,
    DO,
    LENGTHS_AT,
    OPT_OCTETS,
    Edns,
    EdnsServer,
    opt_record,
)
from edgestead.dns.kept import Kept
from edgestead.dns.keyring import Keyring
from edgestead.dns.lookup import PLAIN, lookup, missing
from edgestead.dns.outcome import (
    FORMERR,
    NO_FLAGS,
    NOERROR,
    NOT_OURS,
    NOTAUTH,
    NOTIMP,
    READY_HEADS,
    READY_TRUNCATED,
    REFUSED,
    SERVFAIL,
    TC,
    Heads,
    Outcome,
    heads,
)
from edgestead.dns.query import Asked, Opt, read
from edgestead.dns.settings import DnsSettings
from edgestead.dns.table import Table
from edgestead.dns.tsig import Verdict
from edgestead.dns.wire import BadMessage
from edgestead.dns.zone import Zone
from edgestead.model.limits import LABEL_OCTETS_MAX, NAME_OCTETS_MAX

log = logging.getLogger(__name__)

FADE_ENTRIES: Final = 256

_ID: Final = 2
_QR: Final = 0x80
_OPCODE: Final = 0x78
_NOTIFY: Final = 4 << 3
_AA: Final = 0x04
_SOA_IN: Final = b"\0\6\0\1"
_KIND_OCTETS: Final = 4  # type and class
_NAME_AT: Final = 12 - _ID
_CLASS_IN: Final = b"\0\x01"
_NOERROR: Final = int(Slot.NOERROR)  # plain ints: access to an enumeration's member costs a descriptor call
_COOKIES_GOOD: Final = int(Slot.COOKIES_GOOD)
_ONE_RECORD: Final = bytes(7) + b"\1"  # counts of a reply with only an OPT record
_EDNS: Final = 2  # the bit of the mode for an OPT record
_FLAGS_AT: Final = 7  # in an OPT record: the octet with DO as its highest bit


def _modes() -> dict[bytes, int]:
    """The headers of standard queries: any RD, Z, AD and CD; one question; no other record or just one."""
    return {
        bytes((rd, bits << 4, 0, 1, 0, 0, 0, 0, 0, ar)): rd | (_EDNS if ar else 0)
        for rd in (0, 1)
        for bits in range(16)
        for ar in (0, 1)
    }


_MODES: Final = _modes()

_TRUNCATED: Final = heads(TC)
_BADCOOKIE: Final = heads(BADCOOKIE & 0x0F)
_BOTH_LENGTHS: Final = slice(LENGTHS_AT - BOTH_FROM_END, LENGTHS_AT - BOTH_FROM_END + len(BOTH_ALONE))
_CLIENT_LENGTHS: Final = slice(LENGTHS_AT - CLIENT_FROM_END, LENGTHS_AT - CLIENT_FROM_END + len(CLIENT_ALONE))
_NO_WISHES: Final = options.Wishes()
_UPDATE: Final = update.OPCODE
_TSIG: Final = b"\0\xfa\0\xff\0\0\0\0"  # type, class and TTL of a TSIG record: its query has these octets

Update = Callable[[bytes, int], bytes | None]
"""Takes a dynamic update, and where it came from; None when its reply is sent later, or never."""
Notified = Callable[[bytes], Callable[[bytes], None]]
"""Told, by the address that it came from, of which zone a NOTIFY is. It must not block."""
ClientOf = Callable[[int], bytes]
"""The address of a query's client, 4 or 16 octets, by what its transport calls the query."""


class Responder:
    """Answers queries of one transport, on one thread, with the table's lock.

    `client_of` is called when an answer depends on the client. `proved` becomes true with a query whose
    cookie proves its client's address; the loops reset it. `update` takes dynamic updates; without it they
    are not implemented.

    `exact` holds whole replies by whole queries: only of rcode 0, only to names that exist, and only to names
    in lower case. Resolvers with random case (dns0x20) never send the same octets twice, and neither do
    floods of random names: caching those would evict queries that do repeat. `_before_cookies` holds the same
    for queries that end in a cookie with both halves, up to where it begins.
    """

    def __init__(
        self,
        table: Table,
        tally: Tally,
        settings: DnsSettings,
        client_of: ClientOf,
        *,
        udp: bool,
        keyring: Keyring | None = None,
        encrypted: bool = False,
    ) -> None:
        self._table = table
        self.update: Update | None = None
        self._keyring = keyring or Keyring()
        self._counts = tally.counts
        self._client_of = client_of
        self.edns = EdnsServer(settings, udp=udp, encrypted=encrypted)
        self._plain = self.edns.plain
        self._usual = self.edns.kept
        self._without_cookies = self.edns.bare
        self._known_cookies = self.edns.cookies.known
        self._own_cookie_secret = settings.cookie_secret
        self._cookie_secret: bytes | None = None
        self._chaos = Chaos(settings)
        self._fading: deque[dict[Any, Any]] = deque()
        self.proved = False
        self.notified: Notified | None = None
        self._adopt()

    def _adopt(self) -> None:
        self._view = self._table.view
        self._zones = self._view.zones
        self._outcomes = self._view.outcomes
        self.exact: Kept[bytes, bytes] = Kept()
        self._before_cookies: Kept[bytes, bytes] = Kept()
        self._failure_logged = False

    def exact_of_now(self) -> Kept[bytes, bytes]:
        """The cache of the table's current view. To be called once per batch, with the table's lock."""
        if self._view is not self._table.view:
            past = (self.exact, self._before_cookies, self._outcomes)
            self._fading.extend(kept for kept in past if kept)
            self._adopt()
        if self._fading:
            self._fade()
        return self.exact

    def look_at_the_clock(self) -> None:
        """Drop cookies that were computed too long ago. To be called about every second."""
        if self._keyring.cookie_secret is not self._cookie_secret:
            self._cookie_secret = self._keyring.cookie_secret
            self.edns.cookies.renew(self._cookie_secret or self._own_cookie_secret)
        self.edns.cookies.look_at_the_clock()
        self._known_cookies = self.edns.cookies.known

    def _fade(self) -> None:
        """Free the caches of earlier views, with each batch more entries than one batch can add.

        Freeing a full cache in one step would delay every query by several milliseconds.
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

    def reply(self, query: bytes, source: int | None) -> bytes | None:
        """The reply to a query, both without ID; None when there must be none.

        `source` is the argument of `client_of`; with None only answers that are the same for every client are
        returned, else b"".

        No query makes it raise. If one does nevertheless, the loops call `failed`: one query must not end the
        process.

        Assumes that everything before type and class is the name, then reads it label by label up to the apex
        of a zone: reaching the apex proves the assumption, and that there are no further octets.
        """
        mode = _MODES.get(query[:_NAME_AT])
        if mode is None:
            return self._unusual(query, source)
        if mode < _EDNS:
            question, edns = query[_NAME_AT:], self._plain
        else:
            before = self._before_cookies.get(query[:-COOKIE_OCTETS])
            if before is not None and source is not None:
                self._counts[_NOERROR] += 1
                return before + self._cookie(query[-COOKIE_OCTETS:], source)
            opt = query[-OPT_OCTETS:]
            usual = self._usual.get(opt)
            if usual is None:
                return self._with_new_edns(query, opt, source)
            question, edns = query[_NAME_AT:-OPT_OCTETS], usual
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
                if not 0 < length <= LABEL_OCTETS_MAX:  # 0: the root, with more octets after it
                    return self._unusual(query, source)
                at += length + 1
                zone = zones.get(name[at:])
        except IndexError:  # no zone of ours, or not a name
            return self._unusual(query, source)
        held = zone.names.get(name[:at])
        secure = zone.signed and mode >= _EDNS and edns[0][_FLAGS_AT] >= DO
        if held is not None:
            reply = self._at_node(query, question, mode, edns, zone, name, held, secure)
            return self._unusual(query, source) if reply is None else reply
        if kind not in PLAIN or len(name) > NAME_OCTETS_MAX:
            return self._unusual(query, source)
        return self._finish(question, mode, edns, missing(self._view, zone, name, at, kind, secure), b"")

    def failed(self, query: bytes) -> bytes:
        """SERVFAIL after `reply` raised, and one log line for each state of the table."""
        if not self._failure_logged:
            self._failure_logged = True
            log.exception("no answer for the query %s", query.hex())
        return self._bare(query, SERVFAIL)

    def _at_node(
        self,
        query: bytes,
        question: bytes,
        mode: int,
        edns: Edns,
        zone: Zone,
        name: bytes,
        held: bytes,
        secure: bool,
    ) -> bytes | None:
        """The reply for a name that exists, the first time since the table changed; None when it
        takes `_unusual`."""
        kind = question[-_KIND_OCTETS:]
        as_asked = question.startswith(name)
        if as_asked and held[node.KIND] == kind and held[0] and not secure:
            if not zone.cuts or zone.cut_above(name[: len(name) - len(zone.apex)]) is None:
                return self._ready(query, question, mode, edns, held)
        if kind not in PLAIN:
            return None
        outcome = lookup(self._view, zone, name, kind, secure)
        return self._finish(question, mode, edns, outcome, query if as_asked else b"")

    def _ready(self, query: bytes, question: bytes, mode: int, edns: Edns, held: bytes) -> bytes:
        """The reply from a node with ready records."""
        opt, octets = edns
        reply = b"".join((READY_HEADS[held[0]][mode], question, held[node.READY :], opt))
        self._counts[_NOERROR] += 1
        if len(reply) > octets:
            return self._truncated(READY_TRUNCATED, question, mode, edns)
        self.exact.keep(query, reply, len(query) + len(reply))
        return reply

    def _finish(self, question: bytes, mode: int, edns: Edns, outcome: Outcome, query: bytes) -> bytes:
        """The reply with an outcome. `query` is b"" when the reply must not be cached."""
        opt, octets = edns
        reply = b"".join((outcome.heads[mode], question, outcome.tail, opt))
        while len(reply) > octets and outcome.shorter is not None:
            outcome = outcome.shorter
            reply = b"".join((outcome.heads[mode], question, outcome.tail, opt))
        self._counts[outcome.slot] += 1
        if len(reply) > octets:
            return self._truncated(outcome.truncated, question, mode, edns)
        if query and outcome.steady:
            self.exact.keep(query, reply, len(query) + len(reply))
        return reply

    def _truncated(self, heads: Heads, question: bytes, mode: int, edns: Edns) -> bytes:
        """TC without records: a partial answer must not be used (RFC 2181 §9)."""
        self._counts[Slot.TRUNCATED] += 1
        return b"".join((heads[mode], question, edns[0]))

    def _with_new_edns(self, query: bytes, opt: bytes, source: int | None) -> bytes | None:
        """The reply to a query whose last octets are not a known OPT record."""
        if query[_BOTH_LENGTHS] == BOTH_ALONE:
            return self._with_cookie(query, BOTH_FROM_END, source)
        if query[_CLIENT_LENGTHS] == CLIENT_ALONE:
            return self._with_cookie(query, CLIENT_FROM_END, source)
        if self.edns.usual(opt) is None:
            return self._unusual(query, source)
        return self.reply(query, source)

    def _with_cookie(self, query: bytes, at: int, source: int | None) -> bytes | None:
        """The reply to a query with a cookie and no other option, if that is what the octets at `at` are.

        The query without the cookie is answered as for every client. If the fast path accepts it, the octets
        were a cookie: that path reads the name up to where the OPT record was found.
        """
        if source is None:
            return b""
        opt = query[-at : LENGTHS_AT - at]
        bare = self._without_cookies.get(opt) or self.edns.without_cookie(opt)
        if not bare:
            return self._unusual(query, source)
        bare = query[:-at] + bare
        reply = self.exact.get(bare)
        if reply is not None:
            self._counts[_NOERROR] += 1
        else:
            reply = self.reply(bare, None)
            if not reply:
                return self._unusual(query, source)
        before = reply[:-2] + BOTH_ALONE
        if at == BOTH_FROM_END and bare in self.exact:
            key = query[:-COOKIE_OCTETS]
            self._before_cookies.keep(key, before, len(key) + len(before))
        return before + self._cookie(query[OPT_OCTETS + 4 - at :], source)

    def _cookie(self, cookie: bytes, source: int) -> bytes:
        """The cookie of the reply; records whether the client's cookie proves its address."""
        client = self._client_of(source)
        known = self._known_cookies.get(cookie + client)
        if known is None:
            known = self.edns.cookies.remember(cookie + client, cookie, client)
        if known[1]:
            self.proved = True
            self._counts[_COOKIES_GOOD] += 1
        return known[0]

    def _unusual(self, query: bytes, source: int | None) -> bytes | None:
        """The reply to any message, fully parsed."""
        if source is None:
            return b""
        if len(query) < _NAME_AT or query[0] & _QR:
            self._counts[Slot.DROPPED] += 1
            return None  # answering responses could make an endless loop between two servers
        if query[0] & _OPCODE:
            if query[0] & _OPCODE == _UPDATE and self.update is not None:
                return self.update(query, source)
            if query[0] & _OPCODE == _NOTIFY and self.notified is not None:
                return self._hear(query, self.notified(self._client_of(source)))
            return self._bare(query, NOTIMP)
        try:
            if _TSIG in query:
                verdict = self._keyring.judge(query)
                if verdict.record is not None:
                    return self._signed(verdict, source)
            asked, wishes = _read(query)
        except BadMessage:
            return self._bare(query, FORMERR)
        if asked.opt is None:
            return self._finish(asked.question, query[0] & 1, self._plain, self._outcome(asked), b"")
        return self._with_options(query[0] & 1 | _EDNS, asked, asked.opt, wishes, source)

    def _hear(self, query: bytes, tell: Callable[[bytes], None]) -> bytes:
        """The reply to a NOTIFY, which is signed when that was (RFC 8945 §5.3)."""
        if _TSIG not in query:
            return self._take_notify(query, tell)
        try:
            asked = self._keyring.judge(query)
        except BadMessage:
            return self._bare(query, FORMERR)
        if asked.record is None:
            return self._take_notify(query, tell)
        if asked.key is None:
            self._counts[Slot.OTHER_RCODE] += 1
            return tsig.refusal(asked, self._keyring.now_s())[_ID:]
        reply = self._take_notify(asked.message[_ID:], tell)
        return tsig.answer(bytes(_ID) + reply, asked, self._keyring.now_s())[_ID:]

    def _take_notify(self, query: bytes, tell: Callable[[bytes], None]) -> bytes:
        """The reply to a NOTIFY, which is passed on; whether it came from a primary is judged there (RFC 1996
        §3.10).
        """
        try:
            end = wire.read_name(query, _NAME_AT)
            name, kind = query[_NAME_AT:end].lower(), query[end : end + _KIND_OCTETS]
        except BadMessage:
            return self._bare(query, FORMERR)
        if kind != _SOA_IN or query[2:4] != b"\0\1":
            return self._bare(query, FORMERR)
        if name not in self._zones:
            return self._bare(query, NOTAUTH)
        tell(name)
        self._counts[_NOERROR] += 1
        flags = bytes((_QR | query[0] & _OPCODE | _AA, 0))
        return flags + b"\0\1" + bytes(6) + query[_NAME_AT : end + _KIND_OCTETS]

    def _signed(self, asked: Verdict, source: int) -> bytes | None:
        """The reply to a query that is signed, which is so, too (RFC 8945 §5.3). Whose it is makes no
        difference to what is answered: a secondary asks for the SOA of a zone like everybody.
        """
        keyring = self._keyring
        if asked.key is None:
            self._counts[Slot.OTHER_RCODE] += 1
            return tsig.refusal(asked, keyring.now_s())[_ID:]
        query = asked.message[_ID:]
        reply = self.reply(query, source)
        if reply is None:
            return None
        opt = read(query).opt if len(reply) > _NAME_AT else None
        octets = self.edns.octets(opt.payload) if opt is not None else self._plain[1]
        if len(reply) + asked.key.record_octets > octets:
            reply = self._cut(query, reply, source)
        self.proved = True
        return tsig.answer(bytes(_ID) + reply, asked, keyring.now_s())[_ID:]

    def _cut(self, query: bytes, reply: bytes, source: int) -> bytes:
        """The reply without its records, where it and a signature do not fit (RFC 8945 §5.3)."""
        asked, wishes = _read(query)
        mode, opt = query[0] & 1, asked.opt
        if opt is None:
            return self._truncated(_TRUNCATED, asked.question, mode, self._plain)
        if opt.version or not asked.question:
            return reply
        answered, _ = self.edns.answered(wishes, self._client_of(source))
        edns = opt_record(opt.flags, 0, answered), self.edns.octets(opt.payload)
        return self._truncated(_TRUNCATED, asked.question, mode | _EDNS, edns)

    def _with_options(self, mode: int, asked: Asked, opt: Opt, wishes: options.Wishes, source: int) -> bytes:
        octets = self.edns.octets(opt.payload)
        if opt.version:  # the upper bits of BADVERS are in the OPT record (RFC 6891 §6.1.3)
            self._counts[Slot.OTHER_RCODE] += 1
            return b"".join((NO_FLAGS[mode], asked.question, opt_record(opt.flags, BADVERS)))
        answered, proved = self.edns.answered(wishes, self._client_of(source))
        if proved:
            self.proved = True
            self._counts[_COOKIES_GOOD] += 1
        if not asked.question:
            return self._cookie_alone(mode, opt, wishes, answered, proved=proved)
        outcome = self._outcome(asked)
        if outcome.extended_error is not None:
            answered += options.extended_error(outcome.extended_error)
        edns = opt_record(opt.flags, 0, answered), octets
        reply = self._finish(asked.question, mode, edns, outcome, b"")
        return self.edns.padded(reply, edns[0]) if wishes.padding else reply

    def _outcome(self, asked: Asked) -> Outcome:
        kind = asked.question[-_KIND_OCTETS:]
        name = asked.question[:-_KIND_OCTETS].lower()
        if kind[2:] == chaos.CLASS:
            return self._chaos.outcome(name, kind[:2])
        zone = self._view.zone_of(name)
        if kind[2:] != _CLASS_IN or zone is None:
            return NOT_OURS
        return lookup(self._view, zone, name, kind, asked.opt is not None and asked.opt.flags >= DO)

    def _cookie_alone(
        self, mode: int, opt: Opt, wishes: options.Wishes, answered: bytes, *, proved: bool
    ) -> bytes:
        """The reply to a query without a question, which asks for a cookie (RFC 7873 §5.4)."""
        rcode = BADCOOKIE if len(wishes.cookie) > CLIENT_OCTETS and not proved else NOERROR
        self._counts[Slot.OTHER_RCODE if rcode else Slot.NOERROR] += 1
        head = bytes((_QR | mode & 1, rcode & 0x0F)) + _ONE_RECORD
        ours = opt_record(opt.flags, rcode, answered)
        return self.edns.padded(head + ours, ours) if wishes.padding else head + ours

    def _bare(self, query: bytes, rcode: int) -> bytes:
        """A header alone: the opcode and RD of the query, an rcode, no counts (RFC 1035 §4.1.1)."""
        self._counts[rcode] += 1
        return bytes((_QR | query[0] & (_OPCODE | 1), rcode)) + bytes(_NAME_AT - 2)

    def short(self, query: bytes, reply: bytes, source: int) -> bytes:
        """The reply for a client over its rate limit: it should retry with this cookie, or by TCP.

        BADCOOKIE for clients that sent a cookie (RFC 7873 §5.2.3), TC for all others. A header alone and
        BADVERS are already short. A message that is no query (an update, one with a signature of a key that
        nobody knows) can be answered at length as well: it is refused.
        """
        if len(reply) <= _NAME_AT:
            return reply
        try:
            asked, wishes = _read(query)
        except BadMessage:
            return self._bare(query, REFUSED)
        mode, opt = query[0] & 1, asked.opt
        if opt is None:
            return _TRUNCATED[mode] + asked.question
        if opt.version or not asked.question:
            return reply
        if not wishes.cookie:
            return b"".join((_TRUNCATED[mode | _EDNS], asked.question, opt_record(opt.flags)))
        answered, _ = self.edns.answered(wishes, self._client_of(source))
        return b"".join(
            (_BADCOOKIE[mode | _EDNS], asked.question, opt_record(opt.flags, BADCOOKIE, answered))
        )


def _read(query: bytes) -> tuple[Asked, options.Wishes]:
    """A query and its options. Raises BadMessage."""
    asked = read(query)
    if asked.opt is None or asked.opt.version:
        wishes = _NO_WISHES  # options of another version may have another meaning
    else:
        wishes = options.read(asked.opt.options)
    if not asked.question and not wishes.cookie:
        raise BadMessage("no question")
    return asked, wishes
