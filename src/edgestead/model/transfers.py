"""Who is told of a zone's changes and may transfer it, as DNS processes get it.

Owns  the feed's documents of a zone's peers, and of the address ranges of an account.
Not   their rules (`usecases.zone.outgoing`); who is let in by them (`dns.outgoing`).
"""

from typing import Final

import msgspec

KIND_OUTGOING: Final = "outgoing"
"""The peers of a zone, in the zone's scope."""
KIND_ACL: Final = "acl"
"""The ranges of an account, in the scope `model.tsig.SCOPE`; the key is the account's id."""


class ServedPeer(msgspec.Struct, frozen=True, array_like=True):
    """`ip` "" is nobody's, `key_id` "" means without a TSIG key, `tls` over TLS only."""

    ip: str
    port: int
    key_id: str
    tls: bool


class ServedOutgoing(msgspec.Struct, frozen=True, array_like=True):
    """`told` counts how often somebody wanted NOTIFY to be sent."""

    apex: bytes
    account_id: str
    enabled: bool
    peers: tuple[ServedPeer, ...]
    told: int


class ServedAcl(msgspec.Struct, frozen=True, array_like=True):
    ranges: tuple[str, ...]


encode = msgspec.msgpack.Encoder().encode
decode_outgoing = msgspec.msgpack.Decoder(ServedOutgoing).decode
decode_acl = msgspec.msgpack.Decoder(ServedAcl).decode
