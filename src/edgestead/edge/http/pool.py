"""Connections to origins: those that are kept, and new ones.

Owns  the kept connections by target, connecting with failover.
Not   requests and answers; which addresses may be asked (`policy`), what an alias stands for (`resolving`).
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from edgestead.edge import limits
from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.faults import Fault, OriginFault
from edgestead.edge.exchanges.origins import Aim, Origins, Target, Way
from edgestead.edge.http.origin import OriginConnection
from edgestead.edge.http.policy import Policy

Resolve = Callable[[bytes], Awaitable[tuple[str, ...]]]
"""The addresses of a host; none when it has none or nobody can say."""


class Seeker(Protocol):
    """Who asked for a connection: told once, unless it cancels."""

    def connected(self, origin: OriginConnection) -> None: ...

    def unconnected(self, fault: Fault) -> None: ...


class Pool:
    """`contexts` are TLS contexts by `Target.tls`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        policy: Policy,
        resolve: Resolve,
        contexts: Callable[[str], ssl.SSLContext],
    ) -> None:
        self._loop = loop
        self._policy = policy
        self._resolve = resolve
        self._contexts = contexts
        self._now = loop.time()  # of the last sweep: exact enough, and it costs nothing
        self._idle: dict[tuple[str, int, str, str], list[OriginConnection]] = {}

    def take(self, target: tuple[str, int, str, str]) -> OriginConnection | None:
        """A kept connection to a `Target`, the one used last."""
        kept = self._idle.get(target)
        while kept:
            connection = kept.pop()
            if connection.transport is not None and not connection.transport.is_closing():
                return connection
        return None

    def put(self, connection: OriginConnection) -> None:
        kept = self._idle.get(connection.target)
        if kept is None:
            kept = self._idle[connection.target] = []
        elif len(kept) >= limits.IDLE_ORIGIN_MAX:
            connection.abort()
            return
        connection.idle_since = self._now
        kept.append(connection)

    def gone(self, connection: OriginConnection) -> None:
        """A kept connection ended."""
        kept = self._idle.get(connection.target)
        if kept is not None and connection in kept:
            kept.remove(connection)

    def sweep(self, now: float) -> None:
        """Close what was not used for long: sooner than its origin would."""
        self._now = now
        for target, kept in list(self._idle.items()):
            for connection in [one for one in kept if now - one.idle_since > limits.IDLE_ORIGIN_SECONDS_MAX]:
                kept.remove(connection)
                connection.abort()
            if not kept:
                del self._idle[target]

    def close(self) -> None:
        for kept in self._idle.values():
            for connection in kept:
                connection.abort()
        self._idle.clear()

    def kept(self, aim: Aim) -> OriginConnection | None:
        """A kept connection to where a request would go first."""
        return None if aim.first is None else self.take(aim.first)

    def seek(self, aim: Aim, seeker: Seeker) -> asyncio.Task[None]:
        """Find or make a connection in a task, which tells the seeker."""
        return self._loop.create_task(self._sought(aim, seeker))

    async def _sought(self, aim: Aim, seeker: Seeker) -> None:
        try:
            origin = await self.connect(aim.origins, aim.addresses, aim.host, aim.way)
        except OriginFault as error:
            seeker.unconnected(error.fault)
        else:
            seeker.connected(origin)

    async def connect(
        self, origins: Origins, addresses: tuple[str, ...] | None, host: bytes | None, way: Way
    ) -> OriginConnection:
        """A connection to the first of the addresses that takes one, or of those that `host` has.

        Raises OriginFault: the last address's.
        """
        fault = faults.UNRESOLVED
        try:
            async with asyncio.timeout(limits.CONNECTS_SECONDS_MAX):
                if host is not None:
                    addresses = origins.in_turn(self._loop.time(), await self._resolve(host))
                for address in addresses or ():
                    target = Target(address, *way)
                    try:
                        return self.take(target) or await self._open(target)
                    except (OSError, OriginFault) as error:
                        fault = faults.of(error, tls=bool(target.tls))
                        origins.failed(address, self._loop.time())
        except TimeoutError:
            fault = faults.NO_CONNECTION
        except ValueError:  # a name that DNS cannot ask for
            fault = faults.UNRESOLVED
        raise OriginFault(fault)

    async def _open(self, target: Target) -> OriginConnection:
        if self._policy.fault(target.address, target.port) is not None:
            raise OriginFault(faults.FORBIDDEN)
        context = self._contexts(target.tls) if target.tls else None
        if context and not _can_be_asked_for(target.server_name):
            raise OriginFault(faults.NO_TLS)
        async with asyncio.timeout(limits.CONNECT_SECONDS_MAX):
            _, connection = await self._loop.create_connection(
                lambda: OriginConnection(self, target),
                target.address,
                target.port,
                ssl=context,
                server_hostname=target.server_name if context else None,
                ssl_handshake_timeout=limits.ORIGIN_HANDSHAKE_SECONDS_MAX if context else None,
            )
        return connection

    @property
    def idle(self) -> Iterable[OriginConnection]:
        return [one for kept in self._idle.values() for one in kept]


def _can_be_asked_for(name: str) -> bool:
    """Whether TLS takes the name: else it would fail when there is a connection already, which then stays."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False
