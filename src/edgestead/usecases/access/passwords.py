"""Passwords of people, as they are kept: scrypt (RFC 7914) with a salt of its own.

Owns  which passwords are taken, the text that is stored, comparing one with it.
Not   whose password it is (`usecases.account.signing_in`); how often one may be tried (`web.people`).

A stored text names its own cost, so that the cost can grow: 32 MiB and about 0.2 s of a core now, which is as
much as the OWASP cheat sheet asks for. Comparing takes as long for a user whom nobody knows.
"""

import hashlib
import hmac
import secrets
import unicodedata
from base64 import b64decode, b64encode
from typing import Final

from edgestead.model.refusals.account import PasswordRefused
from edgestead.usecases.limits import PASSWORD_CHARACTERS_MAX, PASSWORD_CHARACTERS_MIN

COST_LOG2: Final = 15
BLOCKS: Final = 8
TURNS: Final = 3
_SALT_OCTETS = 16
_HASH_OCTETS = 32
_MEMORY_MAX = 256 << 20  # bytes that a stored text may ask for


def check(password: str, email: str) -> None:
    """Length, and that it is not the e-mail address: nothing else is asked (NIST SP 800-63B §5.1.1.2).

    Raises PasswordRefused.
    """
    if not PASSWORD_CHARACTERS_MIN <= len(password) <= PASSWORD_CHARACTERS_MAX:
        reason = f"it has from {PASSWORD_CHARACTERS_MIN} to {PASSWORD_CHARACTERS_MAX} characters"
        raise PasswordRefused(reason=reason, pointer="/password")
    if password.casefold() in (email.casefold(), email.casefold().partition("@")[0]):
        raise PasswordRefused(reason="it is your e-mail address", pointer="/password")


def hashed(password: str) -> str:
    """What is stored. Blocks for about 0.2 s: not on an event loop."""
    salt = secrets.token_bytes(_SALT_OCTETS)
    return _text(salt, _scrypt(password, salt, COST_LOG2, BLOCKS, TURNS))


def matches(password: str, stored: str | None) -> bool:
    """Whether that is the password. `stored` None takes as long, and is no one's. Blocks as `hashed`."""
    cost, blocks, turns, salt, digest = (stored or _text(bytes(_SALT_OCTETS), bytes(_HASH_OCTETS))).split("$")
    found = _scrypt(password, b64decode(salt), int(cost), int(blocks), int(turns))
    return hmac.compare_digest(found, b64decode(digest)) and stored is not None


def _text(salt: bytes, digest: bytes) -> str:
    return f"{COST_LOG2}${BLOCKS}${TURNS}${b64encode(salt).decode()}${b64encode(digest).decode()}"


def _scrypt(password: str, salt: bytes, cost_log2: int, blocks: int, turns: int) -> bytes:
    """The same characters give the same octets, however a keyboard composes them."""
    text = unicodedata.normalize("NFKC", password[: PASSWORD_CHARACTERS_MAX + 1])
    return hashlib.scrypt(
        text.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=1 << cost_log2,
        r=blocks,
        p=turns,
        maxmem=_MEMORY_MAX,
        dklen=_HASH_OCTETS,
    )
