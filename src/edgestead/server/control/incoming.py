"""Asking a primary for a zone: one transfer over TCP (RFC 5936, RFC 1995).

Owns  the connection and its deadline; signing and judging with a TSIG key (RFC 8945); reading the answer's
      records in order; what makes an answer unfit.
Not   when a zone is asked for (`server.control.secondaries`); what becomes of it (`usecases.zone.secondary`).

Everything that comes is somebody else's: nothing is kept of a transfer that does not come to its end in time
and within its limits. Runs on a thread of its own: it blocks. Imports dnspython when it is called.
"""

import secrets
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

from edgestead.dns import tsig
from edgestead.dns.arrivals import DOT
from edgestead.dns.journal import is_newer
from edgestead.dns.tsig import Key, NotSigned, Verifier
from edgestead.dns.wire import BadMessage
from edgestead.model.zonemd import ZONEMD
from edgestead.usecases.zone.secondary import Content, Peer, Rr, Unfit

CONNECT_SECONDS: Final = 5.0
MESSAGE_SECONDS: Final = 10.0  # until the next message has begun and come
TRANSFER_SECONDS: Final = 120.0  # of a whole transfer
OCTETS_MAX: Final = 64 * 1024 * 1024  # of all messages of one transfer
RECORDS_MAX: Final = 1_000_000  # in one transfer, those of an IXFR that go included
_SOA, _AXFR, _IXFR, _IN = 6, 252, 251, 1
_LENGTH: Final = struct.Struct("!H")

Found = Content | None
"""None: the primary has nothing newer."""


def fetch(
    peer: Peer,
    apex: bytes,
    serial: int | None,
    present: Callable[[], frozenset[Rr]],
    *,
    whole: bool = False,
    key: Key | None = None,
    seconds: float = TRANSFER_SECONDS,
) -> Found:
    """The zone as `peer` has it, None if it has nothing newer than `serial`.

    `present` are the records of that serial, for a transfer of changes alone; `whole` asks for all of
    them and takes the same serial again. With a `key` the question is signed, and no answer counts that is
    not. Raises Unfit, OSError.
    """
    asked = None if whole or not peer.ixfr_enable else serial
    reading = _Reading(apex, asked, serial, present, whole=whole)
    with _Stream(peer, seconds) as stream:
        id_ = secrets.randbelow(1 << 16)
        conversation = _Conversation(key)
        stream.send(conversation.signed(_query(apex, asked, id_)))
        while not reading.done:
            for rr in _records(conversation.judged(stream.receive()), id_):
                reading.take(rr)
            reading.message_ended()
    conversation.end()
    return reading.found


class _Conversation:
    """One question and its answer: as they are, or signed by a key."""

    def __init__(self, key: Key | None) -> None:
        self._key = key
        self._verifier: Verifier | None = None

    def signed(self, query: bytes) -> bytes:
        if self._key is None:
            return query
        message, mac = tsig.sign(query, self._key, int(time.time()))
        self._verifier = Verifier(self._key, mac)
        return message

    def judged(self, message: bytes) -> bytes:
        """A message of the answer, without its signature. Raises Unfit."""
        if self._verifier is None:
            return message
        try:
            return self._verifier.take(message, int(time.time()))
        except (BadMessage, NotSigned) as error:
            raise Unfit(f"the answer does not prove who it is from: {error}{_refused(message)}") from None

    def end(self) -> None:
        """Raises Unfit: what came last was not signed."""
        try:
            if self._verifier is not None:
                self._verifier.end()
        except NotSigned as error:
            raise Unfit(f"the answer does not prove who it is from: {error}") from None


def _refused(message: bytes) -> str:
    """The rcode of an answer that is not believed, which may tell an operator more."""
    import dns.rcode

    rcode = message[3] & 0xF if len(message) > 3 else 0
    return f" (the primary answers {dns.rcode.to_text(dns.rcode.Rcode(rcode))})" if rcode else ""


def _encrypted(sock: socket.socket) -> socket.socket:
    """TLS on the terms of RFC 9103 §7. Raises Unfit, OSError.

    A peer is an address, so there is no name that its certificate could be held to: who listens on the way
    reads nothing, and who answers is proven by a TSIG key, or not at all.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([DOT])
    try:
        wrapped = context.wrap_socket(sock)
    except OSError as error:
        sock.close()
        raise Unfit(f"TLS with it fails: {error.strerror or error}") from None
    if wrapped.selected_alpn_protocol() != DOT:
        wrapped.close()
        raise Unfit("it does not speak DNS over TLS there (ALPN)")
    return wrapped


class _Stream:
    """One connection with an end in time."""

    def __init__(self, peer: Peer, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._octets = 0
        self._sock = socket.create_connection((peer.ip, peer.port), min(CONNECT_SECONDS, seconds))
        if peer.tls:
            self._sock = _encrypted(self._sock)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def send(self, message: bytes) -> None:
        self._wait(MESSAGE_SECONDS)
        self._sock.sendall(_LENGTH.pack(len(message)) + message)

    def receive(self) -> bytes:
        """Raises Unfit, OSError."""
        end = time.monotonic() + MESSAGE_SECONDS
        (octets,) = _LENGTH.unpack(self._exactly(_LENGTH.size, end))
        self._octets += octets
        if self._octets > OCTETS_MAX:
            raise Unfit(f"the transfer has more than {OCTETS_MAX >> 20} MiB")
        return self._exactly(octets, end)

    def _exactly(self, octets: int, end: float) -> bytes:
        parts = []
        while octets:
            self._wait(end - time.monotonic())
            part = self._sock.recv(octets)
            if not part:
                raise Unfit("the connection ended before the transfer did")
            parts.append(part)
            octets -= len(part)
        return b"".join(parts)

    def _wait(self, seconds: float) -> None:
        left = min(seconds, self._end - time.monotonic())
        if left <= 0:
            raise Unfit("the transfer takes too long")
        self._sock.settimeout(left)


def _query(apex: bytes, serial: int | None, id_: int) -> bytes:
    kind = _AXFR if serial is None else _IXFR
    question = apex + struct.pack("!HH", kind, _IN)
    if serial is None:
        return struct.pack("!6H", id_, 0, 1, 0, 0, 0) + question
    soa = b"\0\0" + struct.pack("!5I", serial, 0, 0, 0, 0)
    authority = b"\xc0\x0c" + struct.pack("!HHIH", _SOA, _IN, 0, len(soa)) + soa
    return struct.pack("!6H", id_, 0, 1, 0, 1, 0) + question + authority


def _records(octets: bytes, id_: int) -> Iterator[Rr]:
    """The answer section of a message. Raises Unfit."""
    import dns.exception
    import dns.message
    import dns.rcode

    try:
        message = dns.message.from_wire(octets, one_rr_per_rrset=True)
    except (dns.exception.DNSException, ValueError, struct.error) as error:
        raise Unfit(f"a message cannot be read: {type(error).__name__}") from None
    if message.id != id_ or not message.flags & 0x8000:
        raise Unfit("a message is no answer to what was asked")
    if message.rcode():
        raise Unfit(f"the primary answers {dns.rcode.to_text(message.rcode())}")
    for rrset in message.answer:
        if rrset.rdclass != _IN:
            raise Unfit("a record is of another class than IN")
        for rdata in rrset:
            octets_of = rdata.to_wire()
            assert octets_of is not None
            yield Rr(rrset.name.canonicalize().to_wire() or b"", int(rrset.rdtype), rrset.ttl, octets_of)


class _Reading:
    """The records of an answer in the order in which they come. `found` holds when it is `done`."""

    def __init__(
        self,
        apex: bytes,
        asked: int | None,
        serial: int | None,
        present: Callable[[], frozenset[Rr]],
        *,
        whole: bool,
    ) -> None:
        self.done = False
        self.found: Found = None
        self._apex, self._asked, self._serial, self._whole = apex, asked, serial, whole
        self._present = present
        self._soa: Rr | None = None
        self._count = 0
        self._records: set[Rr] = set()
        self._of_one_second: set[Rr] = set()
        self._is_changes: bool | None = None if asked is not None else False
        self._removing = False
        self._at = asked

    def take(self, rr: Rr) -> None:
        """Raises Unfit."""
        self._count += 1
        if self.done:
            raise Unfit("records follow the end of the transfer")
        if self._count > RECORDS_MAX:
            raise Unfit(f"the transfer has more than {RECORDS_MAX} records")
        if not rr.owner.endswith(self._apex) or not _is_below(rr.owner, self._apex):
            raise Unfit("a record lies outside of the zone")
        if rr.type == _SOA and rr.owner != self._apex:
            raise Unfit("an SOA lies below the apex")
        if self._soa is None:
            self._begin(rr)
        elif self._is_changes is None:
            self._is_changes = rr.type == _SOA and _serial(rr) == self._asked != _serial(self._soa)
            if self._is_changes:
                self._records = set(self._present())
            self._next(rr)
        else:
            self._next(rr)

    def message_ended(self) -> None:
        """An answer to IXFR of one SOA is a whole one (RFC 1995 §4)."""
        if not self.done and self._count == 1 and self._asked is not None and self._soa is not None:
            if is_newer(_serial(self._soa), self._asked):
                return
            self._check_not_older()
            self.done = True
        elif not self._count:
            raise Unfit("a message has no records")

    def _begin(self, rr: Rr) -> None:
        if rr.type != _SOA:
            raise Unfit("the transfer does not begin with the SOA")
        self._soa = rr
        self._check_not_older()

    def _check_not_older(self) -> None:
        assert self._soa is not None
        if self._serial is not None and is_newer(self._serial, _serial(self._soa)):
            raise Unfit(f"the primary has an older serial, {_serial(self._soa)}, than {self._serial} here")

    def _next(self, rr: Rr) -> None:
        if self._is_changes:
            self._next_change(rr)
        elif rr.type == _SOA:
            self._end(rr)
        else:
            self._records.add(self._kept(rr))

    def _next_change(self, rr: Rr) -> None:
        """RFC 1995 §4: old SOA, what goes, new SOA, what comes; again; the newest SOA."""
        assert self._soa is not None
        if rr.type == _SOA and not self._removing:
            if _serial(rr) == _serial(self._soa) == self._at:
                self._end(rr)
                return
            if _serial(rr) != self._at:
                raise Unfit("the changes do not follow one another")
            self._removing = True
        elif rr.type == _SOA:
            self._at, self._removing = _serial(rr), False
        elif not self._removing:
            self._records.add(self._kept(rr))
        elif self._kept(rr) in self._records:
            self._records.discard(self._kept(rr))
        elif (rr.owner, rr.type) != (self._apex, ZONEMD):  # which is kept with signatures only
            raise Unfit("a change removes a record that is not there")

    def _kept(self, rr: Rr) -> Rr:
        """As its row will have it: a TTL of one second means another thing there."""
        if rr.ttl != _TTL_AUTO:
            return rr
        kept = rr._replace(ttl=_TTL_AUTO + 1)
        self._of_one_second.add(kept)
        return kept

    def _end(self, rr: Rr) -> None:
        assert self._soa is not None
        if rr.rdata != self._soa.rdata:
            raise Unfit("the transfer ends with another SOA than it began with")
        self.done = True
        if self._serial == _serial(rr) and not self._whole:
            return
        if not any(one.type == _NS and one.owner == self._apex for one in self._records):
            raise Unfit("the zone has no NS record at its apex")
        self.found = Content(
            rr.rdata, rr.ttl, self._records, self._of_one_second, from_changes=bool(self._is_changes)
        )


_NS: Final = 2
_TTL_AUTO: Final = 1


def _serial(rr: Rr) -> int:
    return int.from_bytes(rr.rdata[-20:-16], "big")


def _is_below(owner: bytes, apex: bytes) -> bool:
    """Whether labels of the owner end where the apex begins."""
    at = 0
    while at < len(owner) - len(apex):
        at += owner[at] + 1
    return owner[at:] == apex
