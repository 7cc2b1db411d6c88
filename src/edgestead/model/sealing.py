"""Small secrets, sealed for places that others may read: the database, its copies, the feed.

Owns  the form: a nonce, and AES-256-GCM with what the secret is about as associated data.
Not   where the sealing secret comes from.

A sealed secret that is moved to another place does not open there. `cryptography` is loaded by the first use.
"""

import hmac
import secrets
from typing import Final

SECRET_OCTETS: Final = 32
_NONCE_OCTETS: Final = 12  # NIST SP 800-38D §8.2.2, random: one secret seals few


def derived(secret: bytes, purpose: bytes) -> bytes:
    """A secret for one purpose, of which nobody gets back to the other."""
    return hmac.digest(secret, purpose, "sha256")


def seal(secret: bytes, content: bytes, about: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_OCTETS)
    return nonce + AESGCM(secret).encrypt(nonce, content, about)


def unseal(secret: bytes, sealed: bytes, about: bytes) -> bytes:
    """Raises ValueError: another secret sealed it, or it is about something else."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(secret).decrypt(sealed[:_NONCE_OCTETS], sealed[_NONCE_OCTETS:], about)
    except InvalidTag:
        raise ValueError("sealed with another secret") from None
