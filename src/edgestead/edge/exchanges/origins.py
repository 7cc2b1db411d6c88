"""The origins of one proxied name, and which of their addresses is asked next.

Owns  the turn of the addresses, which of them did not answer lately, where a request is to go.
Not   resolving aliases (`resolving`), connecting (`pool`), what may be asked (`policy`).
"""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

from edgestead.edge import limits
from edgestead.edge.exchanges.exchange import Exchange


class Target(NamedTuple):
    """One place to connect to; equal targets share their kept connections.

    `tls` is "" for plain text, else "full" (any certificate) or "strict" (one that is valid for
    `server_name`). `streams_max` is how many requests a connection may carry at a time in HTTP/2, which
    is agreed on in TLS and is what plain origins have to know of; 0: it is HTTP/1.1.
    """

    address: str
    port: int
    tls: str = ""
    server_name: str = ""
    streams_max: int = 0


Way = tuple[int, str, str, int]
"""How a request's origin is reached, apart from its address: what `Target` has behind that."""


class Speaks(NamedTuple):
    """Streams at a time on a connection of HTTP/2 to an origin, with TLS and without; 0 is HTTP/1.1."""

    tls: int = 0
    plain: int = 0


HTTP_1 = Speaks()


class Aim(NamedTuple):
    """Where one request is to go: the addresses to try, best first, or a host that has yet to be resolved.

    `first` is where a kept connection may lead, None where nothing is known to begin with.
    """

    origins: "Origins"
    addresses: tuple[str, ...] | None
    host: bytes | None
    way: Way
    first: tuple[str, int, str, str, int] | None


class Origins:
    """Addresses, or the alias that leads to some. Addresses take turns; one that failed waits at the end."""

    __slots__ = ("_down", "_turn", "_usual", "addresses", "alias")

    def __init__(self, addresses: Sequence[bytes], alias: bytes | None = None) -> None:
        self.addresses = tuple(str(ip_address(packed)) for packed in addresses)
        self.alias = alias
        self._turn = 0
        self._usual: Aim | None = None  # of a single address, without TLS: the same for every request
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

    def aim(
        self,
        exchange: Exchange,
        tls_mode: str,
        origin_port: int | None,
        now: float,
        speaks: Speaks = HTTP_1,
    ) -> Aim:
        """Where the request goes, as its rules choose or as these origins say.

        `tls_mode` is for those who came over TLS; `origin_port` None means that of the scheme.
        """
        choice, usual = exchange.origin, self._usual
        if choice is None and usual is not None and exchange.scheme == b"http":
            if usual.way[3] == speaks.plain:
                return usual
        mode = tls_mode if exchange.scheme == b"https" else ""
        port = origin_port or (443 if mode else 80)
        server_name = ""
        host = self.alias
        if choice is not None:
            port = choice.port or port
            host = choice.host or host
        if mode:
            name = exchange.host if choice is None else choice.sni or choice.host_header or exchange.host
            server_name = name.partition(b":")[0].decode("ascii", "replace")
        addresses = self.in_turn(now) if host is None else None
        way = (port, mode, server_name, speaks.tls if mode else speaks.plain)
        first = (addresses[0], *way) if addresses else None
        aim = Aim(self, addresses, host, way, first)
        if choice is None and not mode and len(self.addresses) == 1:
            self._usual = aim
        return aim

    def failed(self, address: str, now: float) -> None:
        self._down[address] = now + limits.DOWN_SECONDS
