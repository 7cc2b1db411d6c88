"""The addresses of CNAME origins, remembered for as long as their TTL says.

Owns  the cache, one question at a time per name, old addresses while nobody answers.
Not   DNS messages (`server.control.resolving`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import NamedTuple

from edgestead.edge import limits
from edgestead.edge.exchanges.origins import Origins

Ask = Callable[[str], Awaitable[tuple[tuple[str, ...], float] | None]]
"""The addresses of a name and their TTL in seconds; none when it has none; None when nobody could say."""


class _Known(NamedTuple):
    addresses: tuple[str, ...]
    until: float


class Resolver:
    """At most RESOLVED_NAMES_MAX names are remembered, the oldest go first."""

    def __init__(
        self,
        ask: Ask,
        origins_of: Callable[[bytes], Origins | None],
        now: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._origins_of = origins_of
        self._now = now
        self._known: dict[bytes, _Known] = {}
        self._asking: dict[bytes, asyncio.Task[tuple[str, ...]]] = {}

    async def addresses(self, host: bytes) -> tuple[str, ...]:
        """The addresses of a host, which may be one already; none when nobody knows any."""
        for _ in range(limits.ALIASES_FOLLOWED_MAX):
            try:
                return (str(ip_address(host.decode("ascii"))),)
            except ValueError:
                pass
            own = self._origins_of(host)
            if own is None:
                return await self._outside(host)
            if own.alias is None:
                return own.addresses
            host = own.alias
        return ()

    async def _outside(self, host: bytes) -> tuple[str, ...]:
        known = self._known.get(host)
        if known is not None and known.until > self._now():
            return known.addresses
        asking = self._asking.get(host)
        if asking is None:
            asking = self._asking[host] = asyncio.ensure_future(self._learn(host, known))
            asking.add_done_callback(lambda _: self._asking.pop(host, None))
        return await asyncio.shield(asking)

    async def _learn(self, host: bytes, known: _Known | None) -> tuple[str, ...]:
        said = await self._ask(host.decode("ascii", "replace"))
        now = self._now()
        if said is None:
            if known is not None and now < known.until + limits.RESOLVED_STALE_SECONDS_MAX:
                return known.addresses
            return ()
        addresses, seconds = said
        seconds = min(max(seconds, limits.RESOLVED_SECONDS_MIN), limits.RESOLVED_SECONDS_MAX)
        self._known.pop(host, None)
        if len(self._known) >= limits.RESOLVED_NAMES_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[host] = _Known(addresses, now + seconds)
        return addresses
