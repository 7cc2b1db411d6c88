"""What DNS serves: the compiled object that travels from control to the dns processes.

Owns  the shape of the feed's documents for zones, names and changes of a zone, and their bytes.
Not   how a record becomes rdata (`model.records`); how an answer is built (`dns`).

Names are absolute, lower-case, uncompressed wire form. rdata is uncompressed wire form (RFC 3597 §4 allows
compression in no type newer than RFC 1035's, and the answer table compresses those itself).
"""

from typing import Any

import msgspec

KIND_ZONE = "zone"
KIND_NAME = "name"
KIND_JOURNAL = "log:journal"

PENDING = 65_535
EXISTS = 65_536
MARKS_FROM = PENDING
"""Types that no record has (65,535 is reserved, RFC 6895 §3.1): RRsets that say something of their owner, in
one record without octets. The answer table keeps them outside of class IN, where no question finds them;
never sent.

PENDING  addresses that nobody knows yet stand here: a flattened alias whose target was never resolved. A
         question for them is answered SERVFAIL.
EXISTS   the name has records, and none that is served: it has no data, and hides wildcards as every name that
         exists does (RFC 4592 §2.2.1).
"""


class ServedRRset(msgspec.Struct, frozen=True, array_like=True):
    """One RRset of one owner. `ttl_seconds` is what a client sees."""

    type: int
    ttl_seconds: int
    rdatas: tuple[bytes, ...]

    @property
    def is_mark(self) -> bool:
        return self.type >= MARKS_FROM


def mark(kind: int) -> ServedRRset:
    """The RRset that says PENDING or EXISTS."""
    return ServedRRset(kind, 0, (b"",))


class ServedZone(msgspec.Struct, frozen=True, array_like=True):
    """A zone's own facts. The serial stands inside `soa_rdata`; apex NS is an RRset of the apex name.

    `soa_rrsigs` are the RDATA of the SOA's signatures: with them the zone is served signed. Of a `private`
    zone a query finds the apex only; who may transfer it gets all of it. One that is `lost`
    answers SERVFAIL: a secondary zone before its first transfer, or one that expired (RFC 1035 §4.3.5).
    So does one that is `expired`: a machine without control says so of what it has, never control.
    """

    apex: bytes
    soa_ttl_seconds: int
    soa_rdata: bytes
    soa_rrsigs: tuple[bytes, ...] = ()
    private: bool = False
    lost: bool = False
    expired: bool = False

    @property
    def fails(self) -> bool:
        """Whether it answers SERVFAIL."""
        return self.lost or self.expired


class ServedName(msgspec.Struct, frozen=True, array_like=True):
    """Everything that one owner name serves, SOA apart; in a signed zone with its NSEC and RRSIG records."""

    apex: bytes
    owner: bytes
    rrsets: tuple[ServedRRset, ...]


Owned = tuple[bytes, tuple[ServedRRset, ...]]
"""An owner name and RRsets of it."""


class ServedChange(msgspec.Struct, frozen=True, array_like=True):
    """One row of a zone's journal: what led from one serial to the next (RFC 1995 §4).

    `removed` and `added` hold single records, SOA apart; an RRset with a new TTL is removed and added whole.
    `whole` False: it was too much to be kept, and who has an older serial has to fetch the zone.
    """

    before: ServedZone
    after: ServedZone
    removed: tuple[Owned, ...]
    added: tuple[Owned, ...]
    whole: bool = True


_EXPIRE_AT = slice(-8, -4)  # of SOA's RDATA, which ends with expire and minimum (RFC 1035 §3.3.13)


def expire_seconds(zone: ServedZone) -> int:
    """For how long its secondaries answer it without its primary."""
    return int.from_bytes(zone.soa_rdata[_EXPIRE_AT])


def with_expired(document: bytes, *, is_expired: bool) -> bytes:
    """A zone's document with another `expired`, and with what a newer control has put behind the fields that
    are known here: the machine's next release looks for it there.
    """
    zone = msgspec.structs.replace(decode_zone(document), expired=is_expired)
    members: list[Any] = msgspec.msgpack.decode(encode(zone))
    return encode([*members, *msgspec.msgpack.decode(document)[len(members) :]])


encode = msgspec.msgpack.Encoder().encode
decode_zone = msgspec.msgpack.Decoder(ServedZone).decode
decode_name = msgspec.msgpack.Decoder(ServedName).decode
decode_change = msgspec.msgpack.Decoder(ServedChange).decode
