"""Invitations: how a machine that nobody knows becomes a node.

Owns  the token's text; making, redeeming, expiry and forgetting of an invitation.
Not   the connection over which it is redeemed (`join`).

A token holds addresses, the fingerprint of the authority, and a secret that is good for one key until a time.
Who redeems it twice with the same key gets a certificate twice: the first answer may have been lost.
"""

import base64
import hmac
import secrets
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Final, Literal

import msgspec

from edgestead.server.nodes.identity import check_name, check_roles, key_of
from edgestead.server.nodes.vault import Vault

PREFIX: Final = "edgejoin1_"
TOKEN_CHARS_MAX: Final = 4_096  # of an invitation: one line that is copied
TTL_SECONDS_MAX: Final = 7 * 86_400  # of an invitation: until nobody remembers what it was for
KEPT_SECONDS: Final = 7 * 86_400  # behind its time: who comes late is told that, and not that nobody knows it
_SECRET_OCTETS: Final = 32
_ID_OCTETS: Final = 8
_BEGINNING: Final = "invite-"


class Refused(Exception):
    """The words say why, and what to do."""


class Token(msgspec.Struct, frozen=True, array_like=True):
    """`addresses` are HOST:PORT of control nodes, `authority` is the SHA-256 of its certificate."""

    addresses: tuple[str, ...]
    authority: bytes
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Token({self.addresses}, ...)"  # no secret, not even in a traceback


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster keeps of a token. `used_by` is the key that redeemed it."""

    name: str
    roles: tuple[str, ...]
    secret: bytes  # its SHA-256: 256 random bits need no slow hash
    until_s: int
    region: str = ""
    wait: bool = True
    stale: Literal["serve", "stop"] = "serve"
    used_by: str = ""


def text_of(token: Token) -> str:
    return PREFIX + base64.urlsafe_b64encode(msgspec.msgpack.encode(token)).decode().rstrip("=")


def parse(text: str) -> Token:
    """Raises Refused."""
    body = text.strip().removeprefix(PREFIX)
    try:
        if not text.strip().startswith(PREFIX) or len(text) > TOKEN_CHARS_MAX:
            raise ValueError
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=Token)
    except (ValueError, NotBase64, msgspec.DecodeError):
        words = f"the token is not whole: it begins with {PREFIX}, as `edgecli cluster invite` printed it"
        raise Refused(words) from None


def make(
    vault: Vault,
    addresses: tuple[str, ...],
    authority: bytes,
    *,
    name: str,
    roles: frozenset[str],
    until_s: int,
    region: str = "",
    wait: bool = True,
    stale: Literal["serve", "stop"] = "serve",
) -> Token:
    """Keep an invitation, and return its token. Raises NotANode, and what the vault raises."""
    token = Token(addresses, authority, secrets.token_hex(_ID_OCTETS), secrets.token_bytes(_SECRET_OCTETS))
    invitation = Invitation(
        name=check_name(name),
        roles=tuple(sorted(check_roles(roles))),
        secret=sha256(token.secret).digest(),
        until_s=until_s,
        region=region,
        wait=wait,
        stale=stale,
    )
    vault.write(_place(token.id), msgspec.msgpack.encode(invitation))
    return token


def redeem(vault: Vault, id_: str, secret: bytes, public_der: bytes, now_s: int) -> Invitation:
    """Use an invitation up for one key. Raises Refused, and what the vault raises."""
    key = key_of(public_der)

    def use(content: bytes) -> bytes:
        found = msgspec.msgpack.decode(content, type=Invitation)
        if now_s >= found.until_s:
            raise Refused("the token's time is over: make another one with `edgecli cluster invite`")
        if not hmac.compare_digest(sha256(secret).digest(), found.secret) or found.used_by not in ("", key):
            raise Refused("the token is not good: it was used by another machine, or it is not whole")
        return msgspec.msgpack.encode(msgspec.structs.replace(found, used_by=key))

    used = vault.change(_place(id_), use) if _is_id(id_) else None
    if used is None:
        raise Refused("the token is not known: it is another cluster's, or it is not whole")
    return msgspec.msgpack.decode(used, type=Invitation)


def forget(vault: Vault, now_s: int) -> None:
    """Invitations whose time has long been over, used or not. Raises what the vault raises."""
    for name in vault.names(_BEGINNING):
        try:
            content = vault.read(name)
            found = None if content is None else msgspec.msgpack.decode(content, type=Invitation)
        except ValueError:
            continue  # it was sealed with another key, or half of it is there: nobody is let in by it
        if found is not None and now_s >= found.until_s + KEPT_SECONDS:
            vault.remove(name)


def _is_id(id_: str) -> bool:
    return len(id_) == 2 * _ID_OCTETS and set(id_) <= set("0123456789abcdef")


def _place(id_: str) -> str:
    return f"{_BEGINNING}{id_}"
