"""DNSSEC as octets: canonical order and form, keys, signatures, the records that say which names exist.

Owns  RFC 4034: the order of names, what is signed, RDATA of DNSKEY, DS, RRSIG and NSEC; the types' numbers.
Not   which RRsets are signed, when and with which key (`usecases.serving.signing`); keys at rest.

Names are as in `model.names`. A relative name is its labels without the apex, b"" for the apex itself.
"""

import base64
import hashlib
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from edgestead.model import names

NS: Final = 2
CNAME: Final = 5
SOA: Final = 6
DS: Final = 43
RRSIG: Final = 46
NSEC: Final = 47
DNSKEY: Final = 48
NSEC3: Final = 50
NSEC3PARAM: Final = 51
CDS: Final = 59
CDNSKEY: Final = 60

ALGORITHM: Final = 13  # ECDSAP256SHA256, RFC 6605; RFC 8624 §3.1: the one to sign with
ALGORITHM_NAME: Final = "ECDSAP256SHA256"
DIGEST_TYPE: Final = 2  # SHA-256, RFC 4509
DIGEST_NAME: Final = "SHA256"
FLAGS_SEP: Final = 257  # zone key and secure entry point: a KSK or CSK
FLAGS_ZSK: Final = 256  # zone key
PROTOCOL: Final = 3  # RFC 4034 §2.1.2
CDS_DELETE: Final = bytes.fromhex("0000000000")  # RFC 8078 §4, with its one octet of digest
CDNSKEY_DELETE: Final = bytes.fromhex("0000030000")

SYNTHESISED: Final = frozenset((RRSIG, NSEC, NSEC3))
"""Types that signing adds to a name; everything else is signed."""

OF_KEYS: Final = frozenset((DNSKEY, CDS, CDNSKEY))
"""Types that are signed by the keys that the parent's DS records name (RFC 4035 §2.2, RFC 7344 §4.1)."""

_PROTOCOL_AT: Final = 2  # in a DNSKEY's RDATA
_ALGORITHM_AT: Final = 3
_SIGNS: Final = bytes((PROTOCOL, ALGORITHM))
_HEAD: Final = struct.Struct("!HBBIIIH")
_RR: Final = struct.Struct("!HHIH")
_IN: Final = 1
_SERIALS: Final = 1 << 32
_BITMAPS_MAX: Final = 256  # that are kept: the names of a zone have few sets of types

# RFC 4034 §6.2, RFC 6840 §5.1: octets before the names in RDATA that are folded, and how many names.
_FOLDED: Final = {2: (0, 1), 5: (0, 1), 6: (0, 2), 12: (0, 1), 15: (2, 1), 33: (6, 1), 39: (0, 1)}
_NAPTR: Final = 35


def place(relative: bytes) -> bytes:
    r"""A relative name as octets that sort in canonical order (RFC 4034 §6.1); names below begin with it.

    >>> place(b"\1a\1b") < place(b"\1b") < place(b"\1Z\1b".lower())
    False
    >>> place(b"") < place(b"\1b") < place(b"\1a\1b")
    True
    """
    labels = []
    at, end = 0, len(relative)
    while at < end:
        stop = at + relative[at] + 1
        labels.append(relative[at + 1 : stop])
        at = stop
    labels.reverse()
    found = b"".join([label + b"\0" for label in labels])
    if b"\1" in found or found.count(b"\0") != len(labels):
        found = b"".join([label.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") + b"\0" for label in labels])
    return found


def relative_of(place_: bytes) -> bytes:
    """The inverse of `place`."""
    labels = place_.split(b"\0")[-2::-1]
    if b"\1" in place_:
        labels = [label.replace(b"\1\1", b"\0").replace(b"\1\2", b"\1") for label in labels]
    return b"".join([bytes((len(label),)) + label for label in labels])


def places_below(place_: bytes) -> tuple[bytes, bytes]:
    """The first place behind a name and all names below it, as (after, before): both ends excluded."""
    return place_, place_[:-1] + b"\1"


def folded(type_: int, rdata: bytes) -> bytes:
    """RDATA in canonical form: the names in it in lower case."""
    if type_ == _NAPTR:
        at = 4
        for _ in range(3):
            at += rdata[at] + 1
        return rdata[:at] + rdata[at:].lower()
    before, count = _FOLDED.get(type_, (0, 0))
    if not count:
        return rdata
    at = before
    for _ in range(count):
        while rdata[at]:
            at += rdata[at] + 1
        at += 1
    return rdata[:before] + rdata[before:at].lower() + rdata[at:]


def rrsig_head(
    owner: bytes, type_: int, ttl_seconds: int, inception: int, expiration: int, tag: int, apex: bytes
) -> bytes:
    """An RRSIG's RDATA without the signature (RFC 4034 §3.1). Times are Unix seconds."""
    labels = len(names.labels(owner))
    if owner.startswith(b"\1*"):
        labels -= 1
    times = expiration % _SERIALS, inception % _SERIALS
    return _HEAD.pack(type_, ALGORITHM, labels, ttl_seconds, *times, tag) + apex


def to_sign(head: bytes, owner: bytes, type_: int, ttl_seconds: int, rdatas: Iterable[bytes]) -> bytes:
    """What a signature is made of: the RRSIG's head, then the RRset in canonical form (RFC 4034 §3.1.8.1)."""
    parts = [head]
    for rdata in sorted({folded(type_, rdata) for rdata in rdatas}):
        parts += (owner, _RR.pack(type_, _IN, ttl_seconds, len(rdata)), rdata)
    return b"".join(parts)


def record(owner: bytes, type_: int, ttl_seconds: int, rdata: bytes) -> bytes:
    """A record in wire form, uncompressed."""
    return owner + _RR.pack(type_, _IN, ttl_seconds, len(rdata)) + rdata


def covered(rrsig: bytes) -> int:
    """The type that an RRSIG's RDATA covers."""
    return rrsig[0] << 8 | rrsig[1]


def original_ttl(rrsig: bytes) -> int:
    return int.from_bytes(rrsig[4:8], "big")


def expiration(rrsig: bytes) -> int:
    """Unix seconds, until 2106."""
    return int.from_bytes(rrsig[8:12], "big")


def tag_of_rrsig(rrsig: bytes) -> int:
    return rrsig[16] << 8 | rrsig[17]


def nsec(next_owner: bytes, types: Iterable[int]) -> bytes:
    """An NSEC's RDATA (RFC 4034 §4.1)."""
    return next_owner + bitmap(tuple(types))


NSEC3_SHA1: Final = 1  # RFC 5155 §11: the only hash
NSEC3_HEAD_OCTETS: Final = 5  # of NSEC3 and NSEC3PARAM, before the salt


class Nsec3Params(NamedTuple):
    """How the names of one chain of NSEC3 records are hashed."""

    algorithm: int
    iterations: int
    salt: bytes


def nsec3_params(rdata: bytes) -> Nsec3Params:
    """Of an NSEC3's or NSEC3PARAM's RDATA (RFC 5155 §3.2, §4.2). Raises ValueError: it is cut short."""
    if len(rdata) < NSEC3_HEAD_OCTETS or len(rdata) < NSEC3_HEAD_OCTETS + rdata[4]:
        raise ValueError("an NSEC3 or NSEC3PARAM record is cut short")
    salt = rdata[NSEC3_HEAD_OCTETS : NSEC3_HEAD_OCTETS + rdata[4]]
    return Nsec3Params(rdata[0], rdata[2] << 8 | rdata[3], salt)


def nsec3_label(owner: bytes, params: Nsec3Params) -> bytes:
    """The label, with its length, of the NSEC3 record of a name in canonical form (RFC 5155 §5)."""
    digest = hashlib.sha1(owner + params.salt, usedforsecurity=False).digest()
    for _ in range(params.iterations):
        digest = hashlib.sha1(digest + params.salt, usedforsecurity=False).digest()
    return b"\x20" + base64.b32hexencode(digest).lower()


@lru_cache(_BITMAPS_MAX)
def bitmap(types: tuple[int, ...]) -> bytes:
    """Types as windows of bits (RFC 4034 §4.1.2).

    >>> bitmap((1, 46, 47)).hex()
    '0006400000000003'
    """
    windows: dict[int, bytearray] = {}
    for type_ in sorted(types):
        window = windows.setdefault(type_ >> 8, bytearray())
        octet, bit = divmod(type_ & 0xFF, 8)
        window.extend(bytes(octet + 1 - len(window)))
        window[octet] |= 0x80 >> bit
    return b"".join([bytes((number, len(bits))) + bits for number, bits in windows.items()])


def dnskey(flags: int, public_key: bytes) -> bytes:
    """A DNSKEY's RDATA; the key is the point's two coordinates (RFC 6605 §4)."""
    return struct.pack("!HBB", flags, PROTOCOL, ALGORITHM) + public_key


def is_like_ours(dnskey_rdata: bytes) -> bool:
    """Whether a DNSKEY is of the protocol and algorithm with which we sign."""
    return dnskey_rdata[_PROTOCOL_AT : _ALGORITHM_AT + 1] == _SIGNS


def key_tag(dnskey_rdata: bytes) -> int:
    """RFC 4034, appendix B."""
    if len(dnskey_rdata) % 2:
        dnskey_rdata += b"\0"
    total: int = sum(struct.unpack(f"!{len(dnskey_rdata) // 2}H", dnskey_rdata))
    return (total + (total >> 16)) & 0xFFFF


def digest(apex: bytes, dnskey_rdata: bytes) -> bytes:
    """Of a DS (RFC 4034 §5.1.4)."""
    return hashlib.sha256(apex + dnskey_rdata).digest()


def ds(apex: bytes, dnskey_rdata: bytes) -> bytes:
    """A DS's RDATA."""
    head = struct.pack("!HBB", key_tag(dnskey_rdata), dnskey_rdata[_ALGORITHM_AT], DIGEST_TYPE)
    return head + digest(apex, dnskey_rdata)


def ds_text(apex: bytes, dnskey_rdata: bytes) -> str:
    """As a registrar or a zone file takes it."""
    numbers = f"{key_tag(dnskey_rdata)} {ALGORITHM} {DIGEST_TYPE}"
    return f"{names.absolute_text(apex)} 3600 IN DS {numbers} {digest(apex, dnskey_rdata).hex().upper()}"


def public_text(public_key: bytes) -> str:
    """As a DNSKEY record's presentation form has it (RFC 4034 §2.2)."""
    return base64.b64encode(public_key).decode()


def types_at(types: Sequence[int], *, cut: bool) -> list[int]:
    """The types that an NSEC names: at a delegation only those of the parent's side (RFC 4035 §2.3)."""
    held = [type_ for type_ in types if not cut or type_ in (NS, DS)]
    return [*held, RRSIG, NSEC]
