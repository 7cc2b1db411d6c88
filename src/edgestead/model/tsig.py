"""Keys of transactions, as control keeps them and DNS processes get them.

Owns  the algorithms that a key may have; the feed's documents of a key, and of who owns a zone.
Not   signing with one (`dns.tsig`); how a secret is sealed (`model.sealing`).

A key is used by every process that answers DNS, so it travels in the feed, which is in the database: sealed,
under a secret that only control and those processes have.
"""

from typing import Final

import msgspec

KIND_KEY: Final = "secret:tsig"
SCOPE: Final = "tsig"
"""The feed's scope of all keys; the key of a document is the id."""
KIND_OWNER: Final = "owner"
"""Whose a zone is, in the zone's scope."""
PURPOSE: Final = b"tsig"
"""What the secret that seals keys is derived for."""

ALGORITHMS: Final = {"hmac-sha256": 32, "hmac-sha512": 64}
"""Octets of their MACs, and of secrets that are made for them (RFC 8945 §8)."""
SECRET_OCTETS_MIN: Final = 16  # of somebody else's making
SECRET_OCTETS_MAX: Final = 512  # more is hashed down by HMAC anyway


class ServedKey(msgspec.Struct, frozen=True, array_like=True):
    """`name` is lower-case wire form, `algorithm` one of ALGORITHMS; `sealed` is about the name.

    With `transfer` it may transfer the zones of its account, with `update` ask for changes of them.
    """

    name: bytes
    algorithm: str
    account_id: str
    sealed: bytes
    transfer: bool
    update: bool = False


class ServedOwner(msgspec.Struct, frozen=True, array_like=True):
    apex: bytes
    account_id: str


encode = msgspec.msgpack.Encoder().encode
decode_key = msgspec.msgpack.Decoder(ServedKey).decode
decode_owner = msgspec.msgpack.Decoder(ServedOwner).decode
