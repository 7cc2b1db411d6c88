"""The origins of one proxied name, and which of their addresses is asked next.

Owns  the turn of the addresses, which of them did not answer lately, where a request is to go.
Asks  nobody.
Tells `proxy.pool` the targets to try, in order.
Not   resolving aliases (`proxy.resolving`), connecting (`proxy.pool`), what may be asked (`proxy.policy`).
"""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

from edgestead.proxy import limits


class Target(NamedTuple):
    """One place to connect to; equal targets share their kept connections.

    `tls` is "" for plain text, else "full" (any certificate) or "strict" (one that is valid for
    `server_name`).
    """

    address: str
    port: int
    tls: str = ""
    server_name: str = ""


Way = tuple[int, str, str]
"""How a request's origin is reached, apart from its address: port, TLS, the name that is asked for."""


class Origins:
    """Addresses, or the alias that leads to some. Addresses take turns; one that failed waits at the end."""

    __slots__ = ("_down", "_turn", "addresses", "alias")

    def __init__(self, addresses: Sequence[bytes], alias: bytes | None = None) -> None:
        self.addresses = tuple(str(ip_address(packed)) for packed in addresses)
        self.alias = alias
        self._turn = 0
        self._down: dict[str, float] = {}

    def in_turn(self, now: float, addresses: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """The addresses to try, best first; at most ADDRESSES_TRIED_MAX."""
        found = self.addresses if addresses is None else addresses
        if len(found) < 2:
            return found
        self._turn = turn = (self._turn + 1) % len(found)
        found = found[turn:] + found[:turn]
        if self._down:
            self._down = {address: until for address, until in self._down.items() if until > now}
            found = tuple(sorted(found, key=self._down.__contains__))
        return found[: limits.ADDRESSES_TRIED_MAX]

    def failed(self, address: str, now: float) -> None:
        self._down[address] = now + limits.DOWN_SECONDS
