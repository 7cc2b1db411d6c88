"""DNS cookies: proof that a client receives what is sent to its address (RFC 7873).

Owns  creating and checking server cookies.
Not   reading options (`options`); what an unproved client gets (`udp`).

A server cookie has the form of RFC 9018 §4: version, three octets of zero, the time, and a hash over all
that, the client cookie and the client's address. The hash is keyed BLAKE2s instead of SipHash, which the
standard library does not have; so the version is one that RFC 9018 §8 reserves for private use. All processes
of a server share the secret, from which a key is derived for each day: so keys rotate without being
distributed. Cookies are valid for an hour, so a restart with another secret does no harm: clients get their
next cookie with the answer.
"""

import hmac
import time
from collections.abc import Callable
from hashlib import blake2s
from typing import Final

from edgestead.dns.kept import Kept

PURPOSE: Final = b"dns cookies"  # for which the server's secret is derived
CLIENT_OCTETS: Final = 8
SERVER_OCTETS: Final = 16
LIFE_SECONDS: Final = 3600  # RFC 9018 §4.3
RENEWAL_SECONDS: Final = 1800
EARLY_SECONDS: Final = 300

_HEAD: Final = bytes((240, 0, 0, 0))
_STAMP: Final = slice(4, 8)
_HASH_OCTETS: Final = 8
_DAY_SECONDS: Final = 86_400
_SHEET_SECONDS: Final = 60
_DAYS_KEPT_MAX: Final = 4


class Cookies:
    """Not thread-safe. `known` caches the cookies of this minute, because clients send several queries."""

    def __init__(self, secret: bytes, now: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._now = now
        self._keyed: dict[int, blake2s] = {}
        self._minute = 0
        self.known: Kept[bytes, tuple[bytes, bool]] = Kept()

    def renew(self, secret: bytes) -> None:
        """Another secret: cookies of the old one prove nothing any more."""
        self._secret = secret
        self._keyed, self.known = {}, Kept()

    def look_at_the_clock(self) -> None:
        """Clear the cache of the last minute."""
        now = int(self._now())
        if now // _SHEET_SECONDS != self._minute:
            self._minute = now // _SHEET_SECONDS
            self.known = Kept()

    def answer(self, cookie: bytes, client: bytes) -> tuple[bytes, bool]:
        """The cookie of the reply, and whether the received one proves the client's address.

        `cookie` is a client cookie, alone or followed by a server cookie, and of a length that RFC 7873
        §4 allows; `client` is 4 or 16 octets of address.
        """
        return self._work_out(cookie, client, int(self._now()))

    def remember(self, key: bytes, cookie: bytes, client: bytes) -> tuple[bytes, bool]:
        """The same, cached in `known` by cookie and client."""
        known = self.answer(cookie, client)
        self.known.keep(key, known, 2 * len(key))
        return known

    def _work_out(self, cookie: bytes, client: bytes, now: int) -> tuple[bytes, bool]:
        client_cookie, server_cookie = cookie[:CLIENT_OCTETS], cookie[CLIENT_OCTETS:]
        stamp = int.from_bytes(server_cookie[_STAMP], "big")
        age_seconds = now - stamp
        good = (
            -EARLY_SECONDS <= age_seconds <= LIFE_SECONDS
            and len(server_cookie) == SERVER_OCTETS
            and hmac.compare_digest(server_cookie, self._made(client_cookie, client, stamp))
        )
        if good and age_seconds <= RENEWAL_SECONDS:
            return cookie, True
        return client_cookie + self._made(client_cookie, client, now), good

    def _made(self, client_cookie: bytes, client: bytes, stamp: int) -> bytes:
        day = stamp // _DAY_SECONDS
        keyed = self._keyed.get(day)
        if keyed is None:
            if len(self._keyed) >= _DAYS_KEPT_MAX:
                self._keyed.clear()
            key = blake2s(day.to_bytes(8, "big"), key=self._secret).digest()
            keyed = self._keyed[day] = blake2s(key=key, digest_size=_HASH_OCTETS)
        head = _HEAD + stamp.to_bytes(4, "big")
        hashed = keyed.copy()
        hashed.update(client_cookie + head + client)
        return head + hashed.digest()
