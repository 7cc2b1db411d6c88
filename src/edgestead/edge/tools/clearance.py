"""Challenges and clearances as signed texts: who was asked for what, who has answered.

Owns  kinds of challenges, what a solution is, the signatures, the names and forms of token and cookie.
Not   HTTP, pages, rules.

A worker keeps nothing. A *token* is in the page: it says which challenge, for whom and until when, and its
signature is what the proof of work is about. A *clearance* is the cookie that a solution earns. Both are
signed over everything that they are valid for: the zone, the network of the client, its agent, the kind, the
end. Whoever copies one to another network, agent or zone has nothing.

    token      <key id>.<end>.<bits>.<signature>  `c` behind the bits: a click is wanted, too
    clearance  <key id>.<end>.<signature>      in a cookie of its own for each kind

Signatures are keyed BLAKE2s of 16 octets: one costs 1 µs. Keys have ids, so that a new one does not make the
old clearances void. Nothing is taken whose end is later than that of one signed now, or when its key signed
last: whoever stole an old key gains no more time than the zone gives.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import NamedTuple

from edgestead.language import ip_value
from edgestead.language.types import IPV6_FLAG

KEY_OCTETS = 32
BITS_MAX = 24  # of work that can be asked for: 16 million tries
TOKEN_SECONDS = 300  # to answer a challenge
TOKEN_OCTETS_MAX = 128  # ours have under 100; longer ones are not read
SOLUTION_OCTETS_MAX = 20  # the digits of 64 bits
IPV4_PREFIX_BITS, IPV6_PREFIX_BITS = 24, 56  # who moves within a network stays cleared
COOKIE_PREFIX = b"edge_clearance_"

_SIGNATURE_OCTETS = 16
_PURPOSE_TOKEN, _PURPOSE_CLEARANCE = b"token", b"clearance"
_CLICK = "c"


class Kind(NamedTuple):
    """A kind of challenge. `bits` of work, 0 for a click; `accepts`: the kinds whose clearance is enough."""

    name: str
    bits: int
    accepts: tuple[str, ...]


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("js_challenge", 14, ("js_challenge", "managed_challenge")),
        Kind("managed_challenge", 17, ("managed_challenge",)),
        Kind("challenge", 0, ("challenge",)),
    )
}


class Subject(NamedTuple):
    """For whom a signature is valid."""

    zone_id: str
    client: str
    agent: bytes


class Key(NamedTuple):
    """`id` is 8 hexadecimal digits; `secret` has KEY_OCTETS. After `signs_until_s` (Unix time) it only
    verifies; None: it signs.
    """

    id: str
    secret: bytes
    signs_until_s: int | None = None


Changed = Callable[[], Sequence[Key] | None]
"""The keys, the newest first, where they are others than at the last call; else None."""


def cookie_name(kind: str) -> bytes:
    return COOKIE_PREFIX + kind.removesuffix("_challenge").encode()


class Clearances:
    """Signing with the first key, verifying with each. Times are Unix seconds."""

    __slots__ = ("_changed", "_keys", "_newest")

    def __init__(self, changed: Changed) -> None:
        """Raises ValueError: no key, or one of another length."""
        self._changed = changed
        self._use(changed() or ())

    def renew(self) -> None:
        """Take up keys that have changed. Raises ValueError, with nothing changed."""
        keys = self._changed()
        if keys is not None:
            self._use(keys)

    def _use(self, keys: Sequence[Key]) -> None:
        if not keys or any(len(key.secret) != KEY_OCTETS for key in keys):
            raise ValueError(f"a clearance needs keys of {KEY_OCTETS} octets")
        self._newest = keys[0]
        self._keys = {key.id: key for key in keys}

    def token(
        self, kind: str, subject: Subject, now_s: int, bits: int | None = None, *, click: bool = False
    ) -> str:
        """A challenge's token; `TOKEN_SECONDS` to answer it. `bits` of work, those of the kind by default."""
        demand = f"{KINDS[kind].bits if bits is None else min(bits, BITS_MAX)}{_CLICK * click}"
        return self._sign(_PURPOSE_TOKEN, kind, subject, now_s + TOKEN_SECONDS, demand)

    def solves(
        self, kind: str, token: bytes, solution: bytes, subject: Subject, now_s: int, *, clicked: bool = False
    ) -> bool:
        """Whether the token is ours, in time and for this client, and the solution what it asks for."""
        if not self._verify(_PURPOSE_TOKEN, kind, token, subject, now_s, TOKEN_SECONDS):
            return False
        demand = token.split(b".")[2].decode("ascii")
        if demand.endswith(_CLICK) and not clicked:
            return False
        return is_solution(token, solution, int(demand.removesuffix(_CLICK)))

    def clearance(self, kind: str, subject: Subject, now_s: int, ttl_seconds: int) -> str:
        """The value of a cookie."""
        return self._sign(_PURPOSE_CLEARANCE, kind, subject, now_s + ttl_seconds)

    def clears(self, kind: str, value: bytes, subject: Subject, now_s: int, ttl_seconds: int) -> bool:
        """`ttl_seconds` is for how long a clearance is given now. One that has longer left does not count."""
        return self._verify(_PURPOSE_CLEARANCE, kind, value, subject, now_s, ttl_seconds)

    def _sign(self, purpose: bytes, kind: str, subject: Subject, end_s: int, demand: str = "") -> str:
        signature = _signature(self._newest.secret, purpose, kind, subject, end_s, demand)
        return ".".join(filter(None, (self._newest.id, str(end_s), demand, signature)))

    def _verify(
        self, purpose: bytes, kind: str, text: bytes, subject: Subject, now_s: int, lasts_seconds: int
    ) -> bool:
        parts = text.split(b".", 4)
        count = 4 if purpose is _PURPOSE_TOKEN else 3
        if len(text) > TOKEN_OCTETS_MAX or len(parts) != count or not parts[1].isdigit():
            return False
        end_s = int(parts[1])
        if end_s <= now_s:
            return False
        key = self._key(parts[0].decode("ascii", "replace"))
        if key is None or end_s > _signed_last_s(key, now_s) + lasts_seconds:
            return False
        demand = parts[2].decode("ascii", "replace") if count == 4 else ""
        expected = _signature(key.secret, purpose, kind, subject, end_s, demand).encode()
        return hmac.compare_digest(expected, parts[-1])

    def _key(self, key_id: str) -> Key | None:
        """Another worker may sign with a new key before this one was told of it: so look, once."""
        if key_id not in self._keys:
            self.renew()
        return self._keys.get(key_id)


def _signed_last_s(key: Key, now_s: int) -> int:
    return now_s if key.signs_until_s is None else min(now_s, key.signs_until_s)


def is_solution(token: bytes, solution: bytes, bits: int) -> bool:
    """Whether SHA-256 of ``<signature>:<solution>`` begins with that many zero bits.

    The signature is 32 characters, so that one block of SHA-256 holds all of it and a try is cheap.
    """
    if not solution.isdigit() or len(solution) > SOLUTION_OCTETS_MAX:
        return False
    digest = hashlib.sha256(token.rpartition(b".")[2] + b":" + solution).digest()
    return int.from_bytes(digest[:4]) >> (32 - bits) == 0


def _signature(
    secret: bytes, purpose: bytes, kind: str, subject: Subject, end_s: int, demand: str = ""
) -> str:
    signed = hashlib.blake2s(digest_size=_SIGNATURE_OCTETS, key=secret)
    for part in (
        purpose,
        kind.encode(),
        subject.zone_id.encode(),
        network(subject.client),
        subject.agent,
        str(end_s).encode(),
        *((demand.encode(),) if demand else ()),
    ):
        signed.update(len(part).to_bytes(4))  # so that no two lists of parts are the same octets
        signed.update(part)
    return signed.hexdigest()


def network(client: str) -> bytes:
    """The network of an address, as octets.

    Raises: ValueError when the text is no address.
    """
    value = ip_value(client)
    if value & IPV6_FLAG:
        return b"6" + (value >> (128 - IPV6_PREFIX_BITS)).to_bytes(8)
    return b"4" + (value >> (32 - IPV4_PREFIX_BITS)).to_bytes(4)
