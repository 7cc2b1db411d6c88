"""Private keys sealed for the database, and signing keys made and used.

Owns  `Seal`, under which private keys are stored; a signing key in use.
Not   which RRsets a key signs (`usecases.serving.signing`); where the seal's own secret is kept (`server`).

A private key is encrypted with AES-256-GCM under a secret that is not in the database, with the zone's id as
associated data: neither a copy of the database nor the feed holds a key that signs, and a row that was moved
to another zone does not open. `cryptography` is loaded with the first signed zone.
"""

import secrets
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from edgestead.model import dnssec, sealing
from edgestead.model.refusals.setting import KeysSealed
from edgestead.tables.signing import KeyRow

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SECRET_OCTETS: Final = 32
KEYS_OPEN_MAX: Final = 1024  # of zones that changed lately
_SCALAR_OCTETS: Final = 32


class SigningKey(NamedTuple):
    """A key in use. `dnskey` is its RDATA, `sign` gives the signature as an RRSIG has it (RFC 6605 §4)."""

    tag: int
    dnskey: bytes
    sign: Callable[[bytes], bytes]

    def __repr__(self) -> str:
        return f"SigningKey({self.tag})"


class NewKey(NamedTuple):
    """`public` are the point's two coordinates."""

    public: bytes
    sealed: bytes


class Seal:
    """`secret` gives SECRET_OCTETS octets; it is called with the first key."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret
        self.open = lru_cache(KEYS_OPEN_MAX)(self._open)

    def derived(self, purpose: bytes) -> bytes:
        """A secret for other keys than those of zones. Raises what `secret` raises."""
        return sealing.derived(self._secret(), purpose)

    def new_key(self, zone_id: str) -> NewKey:
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        point = key.public_key().public_numbers()
        scalar = key.private_numbers().private_value.to_bytes(_SCALAR_OCTETS, "big")
        public = b"".join(number.to_bytes(_SCALAR_OCTETS, "big") for number in (point.x, point.y))
        return NewKey(public, self.wrap(zone_id, scalar))

    def open_all(self, rows: Iterable[KeyRow]) -> list[SigningKey]:
        """Raises KeysSealed."""
        return [self.open(row.zone_id, row.flags, row.public, row.sealed) for row in rows]

    def wrap(self, owner: str, octets: bytes) -> bytes:
        """Octets sealed for an owner: a zone's id, or what else `unwrap` will name."""
        return sealing.seal(self._secret(), octets, owner.encode())

    def unwrap(self, owner: str, sealed: bytes) -> bytes:
        """Raises KeysSealed: another secret sealed it, or for another owner."""
        try:
            return sealing.unseal(self._secret(), sealed, owner.encode())
        except ValueError:
            raise KeysSealed from None

    def _open(self, zone_id: str, flags: int, public: bytes, sealed: bytes) -> SigningKey:
        """Raises KeysSealed: another secret sealed it."""
        from cryptography.hazmat.primitives.asymmetric import ec

        scalar = self.unwrap(zone_id, sealed)
        key = ec.derive_private_key(int.from_bytes(scalar, "big"), ec.SECP256R1())
        rdata = dnssec.dnskey(flags, public)
        return SigningKey(dnssec.key_tag(rdata), rdata, _signer(key))


def in_memory() -> Seal:
    """A seal for tests and tools: what it sealed cannot be opened by the next process."""
    return Seal(lru_cache(1)(lambda: secrets.token_bytes(SECRET_OCTETS)))


def _signer(key: "EllipticCurvePrivateKey") -> Callable[[bytes], bytes]:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    how = ec.ECDSA(hashes.SHA256())

    def sign(octets: bytes) -> bytes:
        r, s = decode_dss_signature(key.sign(octets, how))
        return r.to_bytes(_SCALAR_OCTETS, "big") + s.to_bytes(_SCALAR_OCTETS, "big")

    return sign
