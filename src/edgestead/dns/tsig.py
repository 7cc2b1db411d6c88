"""Messages that prove by a shared secret who sent them (RFC 8945).

Owns  the TSIG record: finding it, judging a message by it, adding one; messages that belong together.
Not   where keys come from, and what somebody who has one may do.

Messages are whole, with their ID, and uncompressed names are lower-case wire form. The digest has the
Original ID in the place of the message's own, so that a forwarder may change the latter; an answer repeats
it.

A message is judged in the order of §5.2: its form, the key, the MAC, the time, the length of the MAC.
"""

import hmac
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from edgestead.dns import wire
from edgestead.dns.wire import BadMessage

TSIG: Final = 250
BADSIG: Final = 16
BADKEY: Final = 17
BADTIME: Final = 18
BADTRUNC: Final = 22
NOTAUTH: Final = 9

FUDGE_SECONDS: Final = 300
"""How far our clock and the other's may be apart (RFC 8945 §10)."""
UNSIGNED_MAX: Final = 99
"""Messages of a transfer between two that are signed (RFC 8945 §5.3.1)."""
QUERY_RECORDS_MAX: Final = 16
"""Records of a query before and with its TSIG record."""
MESSAGE_RECORDS_MAX: Final = 65_535
"""As many as 64 KiB hold; for messages of somebody who was asked."""

HASHES: Final[Mapping[bytes, str]] = {
    b"\x0bhmac-sha256\0": "sha256",
    b"\x0bhmac-sha512\0": "sha512",
}
"""Algorithms by their names."""

_HASH_OCTETS: Final = {"sha256": 32, "sha512": 64}
_MAC_OCTETS_MIN: Final = 10  # RFC 8945 §5.2.2.1
_KIND: Final = TSIG.to_bytes(2, "big")
_ANY: Final = wire.ANY.to_bytes(2, "big")
_NO_TTL: Final = bytes(4)
_HEAD_OCTETS: Final = 12
_COUNTS: Final = struct.Struct("!HHHH")
_COUNTS_AT: Final = 4
_QR: Final = 0x80
_KEPT_FLAGS: Final = 0x79  # opcode and RD of a query, in its answer


class Key(NamedTuple):
    """`name` and `algorithm` are names on the wire; the algorithm is one of HASHES."""

    name: bytes
    algorithm: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.name!r}, {self.algorithm!r})"

    @property
    def record_octets(self) -> int:
        """The length of the record that it signs with."""
        return len(self.name) + 10 + len(self.algorithm) + 16 + _HASH_OCTETS[HASHES[self.algorithm]]

    def mac(self, octets: bytes) -> bytes:
        return hmac.digest(self.secret, octets, HASHES[self.algorithm])


Keyring = Mapping[bytes, Key]
"""Keys by their names."""


class Record(NamedTuple):
    """A TSIG record. `at` is where it begins in its message, `original_id` has 2 octets."""

    at: int
    name: bytes
    algorithm: bytes
    time_s: int
    fudge_s: int
    mac: bytes
    original_id: bytes
    error: int
    other: bytes


class Verdict(NamedTuple):
    """What a message is worth.

    `message` is without its TSIG record. `record` is None when it had none. `error` is why it is not to be
    believed: BADKEY, BADSIG, BADTIME, BADTRUNC. `signer` is whose MAC it is, with the latter two as well.
    """

    message: bytes
    record: Record | None = None
    signer: Key | None = None
    error: int = 0

    @property
    def key(self) -> Key | None:
        """Who sent it; None when nobody knows."""
        return None if self.error else self.signer

    @property
    def mac(self) -> bytes:
        """What an answer's signature covers."""
        return self.record.mac if self.record is not None else b""


class NotSigned(ValueError):
    """An answer that is not from whom we asked: not signed, or by somebody else."""


def find(message: bytes, records_max: int = QUERY_RECORDS_MAX) -> Record | None:
    """The TSIG record of a message, None when it has none.

    Raises BadMessage: a record behind it, another class or TTL than RFC 8945 §4.2 has, octets that do not
    fit; or the message is broken before it, or has more than `records_max` records.
    """
    if len(message) < _HEAD_OCTETS:
        raise BadMessage("header")
    questions, *sections = _COUNTS.unpack_from(message, _COUNTS_AT)
    if not sections[-1]:
        return None
    if questions > 1 or sum(sections) > records_max:
        raise BadMessage("counts")
    at = _HEAD_OCTETS
    if questions:
        at = wire.skip_name(message, at) + 4
    left = sum(sections)
    while left:
        start, body = at, wire.skip_name(message, at)
        at = body + 10 + int.from_bytes(message[body + 8 : body + 10], "big")
        if at > len(message):
            raise BadMessage("record")
        left -= 1
        if message[body : body + 2] == _KIND:
            if left or at != len(message) or message[body + 2 : body + 8] != _ANY + _NO_TTL:
                raise BadMessage("TSIG")
            return _read(message, start, body + 10)
    return None


def _read(message: bytes, start: int, at: int) -> Record:
    name, _ = wire.expand_name(message, start)
    end = wire.read_name(message, at)
    algorithm, rest = message[at:end].lower(), message[end:]
    mac_octets = int.from_bytes(rest[8:10], "big")
    mac, tail = rest[10 : 10 + mac_octets], rest[10 + mac_octets :]
    if len(tail) < 6 or len(tail) != 6 + int.from_bytes(tail[4:6], "big"):
        raise BadMessage("TSIG")
    time_s, fudge_s = int.from_bytes(rest[:6], "big"), int.from_bytes(rest[6:8], "big")
    error = int.from_bytes(tail[2:4], "big")
    return Record(start, name, algorithm, time_s, fudge_s, mac, tail[:2], error, tail[6:])


def verify(
    message: bytes,
    keyring: Keyring,
    now_s: int,
    request_mac: bytes = b"",
    *,
    records_max: int = QUERY_RECORDS_MAX,
) -> Verdict:
    """Judge a message. `request_mac` is that of the question when the message is an answer.

    A message without a TSIG record has no key and no error: the caller decides. Raises BadMessage (FORMERR),
    also for a MAC of a length that no truncation gives (RFC 8945 §5.2.2.1).
    """
    record = find(message, records_max)
    if record is None:
        return Verdict(message)
    bare = _without(message, record)
    key = keyring.get(record.name)
    if key is None or key.algorithm != record.algorithm:
        return Verdict(bare, record, None, BADKEY)
    whole = _HASH_OCTETS[HASHES[key.algorithm]]
    octets = len(record.mac)
    if octets and not max(_MAC_OCTETS_MIN, whole // 2) <= octets <= whole:
        raise BadMessage("the length of a MAC")
    due = key.mac(b"".join((_covered(request_mac), record.original_id, bare[2:], _variables(record))))
    error = _judge(record, due, now_s)
    return Verdict(bare, record, None if error == BADSIG else key, error)


def _judge(record: Record, due: bytes, now_s: int) -> int:
    """The error of a message whose MAC should be `due`."""
    if not record.mac or not hmac.compare_digest(due[: len(record.mac)], record.mac):
        return BADSIG
    if abs(now_s - record.time_s) > min(record.fudge_s, FUDGE_SECONDS):
        return BADTIME
    return 0 if len(record.mac) == len(due) else BADTRUNC


def sign(
    message: bytes,
    key: Key,
    now_s: int,
    request_mac: bytes = b"",
    *,
    original_id: bytes = b"",
    error: int = 0,
    other: bytes = b"",
) -> tuple[bytes, bytes]:
    """A message with its TSIG record, and the MAC, which the answer's covers.

    `original_id` is that of the question when its ID may be a forwarder's; "" means the message's own.
    """
    record = Record(
        0, key.name, key.algorithm, now_s, FUDGE_SECONDS, b"", original_id or message[:2], error, other
    )
    mac = key.mac(b"".join((_covered(request_mac), record.original_id, message[2:], _variables(record))))
    return _with(message, record, mac), mac


def answer(reply: bytes, asked: Verdict, now_s: int) -> bytes:
    """A reply with the TSIG record that the request's demands; as it is for a request that had none.

    BADKEY and BADSIG are told without a signature, BADTIME with the time of the request, which its sender
    believes, and ours beside it (RFC 8945 §5.2.3).
    """
    record = asked.record
    if record is None:
        return reply
    if asked.signer is None:
        told = record._replace(time_s=now_s, fudge_s=FUDGE_SECONDS, error=asked.error, other=b"")
        return _with(reply, told, b"")
    other, time_s = b"", now_s
    if asked.error == BADTIME:
        other, time_s = now_s.to_bytes(6, "big"), record.time_s
    signed, _ = sign(
        reply,
        asked.signer,
        time_s,
        record.mac,
        original_id=record.original_id,
        error=asked.error,
        other=other,
    )
    return signed


def refusal(asked: Verdict, now_s: int) -> bytes:
    """NOTAUTH with the TSIG error, for a request that is not to be believed."""
    request = asked.message
    (questions,) = struct.unpack_from("!H", request, _COUNTS_AT)
    question = request[_HEAD_OCTETS : wire.skip_name(request, _HEAD_OCTETS) + 4] if questions else b""
    head = request[:2] + bytes((_QR | request[2] & _KEPT_FLAGS, NOTAUTH)) + _COUNTS.pack(questions, 0, 0, 0)
    return answer(head + question, asked, now_s)


class Signer:
    """Signs the messages of one answer: all of them, each on top of the one before (RFC 8945 §5.3.1)."""

    def __init__(self, asked: Verdict) -> None:
        """`asked` has a key."""
        assert asked.key is not None
        assert asked.record is not None
        self._key, self._id = asked.key, asked.record.original_id
        self._mac, self._begun = asked.record.mac, False

    def sign(self, message: bytes, now_s: int) -> bytes:
        record = Record(0, self._key.name, self._key.algorithm, now_s, FUDGE_SECONDS, b"", self._id, 0, b"")
        end = _times(record) if self._begun else _variables(record)
        self._mac = self._key.mac(b"".join((_covered(self._mac), self._id, message[2:], end)))
        self._begun = True
        return _with(message, record, self._mac)


class Verifier:
    """Judges the messages of one answer, of which up to UNSIGNED_MAX in a row may be without a signature."""

    def __init__(self, key: Key, request_mac: bytes) -> None:
        self._key = key
        self._mac = request_mac
        self._begun = False
        self._unsigned: list[bytes] = []

    def take(self, message: bytes, now_s: int) -> bytes:
        """The next message, without its TSIG record. Raises BadMessage, NotSigned."""
        record = find(message, MESSAGE_RECORDS_MAX)
        if record is None:
            if not self._begun or len(self._unsigned) == UNSIGNED_MAX:
                raise NotSigned("a message is not signed")
            self._unsigned.append(message)
            return message
        if (record.name, record.algorithm) != (self._key.name, self._key.algorithm):
            raise NotSigned("signed by another key")
        if record.error:
            raise NotSigned(f"the other end answers TSIG error {record.error}")
        bare = _without(message, record)
        end = _times(record) if self._begun else _variables(record)
        parts = (_covered(self._mac), *self._unsigned, record.original_id, bare[2:], end)
        error = _judge(record, self._key.mac(b"".join(parts)), now_s)
        if error:
            raise NotSigned(f"the signature is not right: TSIG error {error}")
        self._mac, self._begun = record.mac, True
        self._unsigned.clear()
        return bare

    def end(self) -> None:
        """The answer is complete. Raises NotSigned: its last message was not signed."""
        if self._unsigned or not self._begun:
            raise NotSigned("the last message is not signed")


def _without(message: bytes, record: Record) -> bytes:
    counts = list(_COUNTS.unpack_from(message, _COUNTS_AT))
    counts[3] -= 1
    return message[:_COUNTS_AT] + _COUNTS.pack(*counts) + message[_HEAD_OCTETS : record.at]


def _with(message: bytes, record: Record, mac: bytes) -> bytes:
    counts = list(_COUNTS.unpack_from(message, _COUNTS_AT))
    counts[3] += 1
    rdata = b"".join(
        (
            record.algorithm,
            _times(record),
            _counted(mac),
            record.original_id,
            record.error.to_bytes(2, "big"),
            _counted(record.other),
        )
    )
    return b"".join(
        (
            message[:_COUNTS_AT],
            _COUNTS.pack(*counts),
            message[_HEAD_OCTETS:],
            record.name,
            _KIND,
            _ANY,
            _NO_TTL,
            _counted(rdata),
        )
    )


def _variables(record: Record) -> bytes:
    """RFC 8945 §4.3.3."""
    error = record.error.to_bytes(2, "big")
    return b"".join(
        (record.name, _ANY, _NO_TTL, record.algorithm, _times(record), error, _counted(record.other))
    )


def _times(record: Record) -> bytes:
    """Alone, it is what later messages of an answer sign in the place of the variables (§5.3.1)."""
    return record.time_s.to_bytes(6, "big") + record.fudge_s.to_bytes(2, "big")


def _counted(octets: bytes) -> bytes:
    return len(octets).to_bytes(2, "big") + octets


def _covered(mac: bytes) -> bytes:
    """The MAC before this one; a first message has none, and then nothing stands for it (§4.3.1)."""
    return _counted(mac) if mac else b""
