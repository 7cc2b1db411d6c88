"""Connections to origins: those that are kept, and new ones.

Owns  the kept connections by target, those that carry several requests, connecting with failover.
Not   requests and answers; which addresses may be asked (`policy`), what an alias stands for (`resolving`).
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from edgestead.edge import limits
from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.faults import Fault, OriginFault
from edgestead.edge.exchanges.origins import Aim, Origins, Target, Way
from edgestead.edge.http.http2.origin import Http2Origin
from edgestead.edge.http.origin import OriginConnection
from edgestead.edge.http.origin_tls import Contexts
from edgestead.edge.http.parties import Origin
from edgestead.edge.http.policy import Policy
from edgestead.http1.sweeping import Sweep

LOOKS_MAX = 16  # of the loop at its sockets, when the time is over; a handshake of TLS takes a few
Resolve = Callable[[bytes], Awaitable[tuple[str, ...]]]
"""The addresses of a host; none when it has none or nobody can say."""


class Seeker(Protocol):
    """Who asked for a connection: told once, unless it cancels."""

    def connected(self, origin: Origin) -> None: ...

    def unconnected(self, fault: Fault) -> None: ...


class Pool:
    """`contexts` are TLS contexts by `Target.tls`, and by whether HTTP/2 is offered."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        policy: Policy,
        resolve: Resolve,
        contexts: Contexts,
    ) -> None:
        self.loop = loop
        self._policy = policy
        self._resolve = resolve
        self._contexts = contexts
        self.now = loop.time()  # of the last sweep: exact enough, and it costs nothing
        self._idle: dict[tuple[str, int, str, str, int], list[OriginConnection]] = {}
        self._shared: dict[tuple[str, int, str, str, int], list[Http2Origin]] = {}
        self._opening: dict[Target, asyncio.Task[Http2Origin | None]] = {}
        self._sweep = Sweep()
        self._declined: set[Target] = set()  # by those that were offered HTTP/2

    def take(self, target: tuple[str, int, str, str, int], *, is_again: bool = False) -> Origin | None:
        """A kept connection to a `Target`, the one used last; or room on one for several requests.

        Not a kept one for a request that is sent again: who closed one may be closing all of them.
        """
        for shared in tuple(self._shared.get(target, ())):
            if shared.target.tls and self._is_refused(shared):
                shared.retire()
            elif shared.has_room:
                return shared.stream()
        kept = None if is_again else self._idle.get(target)
        while kept:
            connection = kept.pop()
            if connection.transport is not None and not connection.transport.is_closing():
                return connection
        return None

    def put(self, connection: OriginConnection) -> None:
        if connection.target.tls and self._is_refused(connection):
            connection.abort()
            return
        kept = self._idle.get(connection.target)
        if kept is None:
            kept = self._idle[connection.target] = []
        elif len(kept) >= limits.IDLE_ORIGIN_MAX:
            connection.abort()
            return
        connection.idle_since = self.now
        kept.append(connection)

    def gone(self, connection: OriginConnection) -> None:
        """A kept connection ended."""
        kept = self._idle.get(connection.target)
        if kept is not None and connection in kept:
            kept.remove(connection)

    def left(self, connection: Http2Origin) -> None:
        """It ended, or takes no more requests."""
        shared = self._shared.get(connection.target)
        if shared is not None and connection in shared:
            shared.remove(connection)
            if not shared:
                del self._shared[connection.target]

    def sweep(self, now: float) -> None:
        """Close what was not used for long: sooner than its origin would."""
        self.now = now
        self._sweep.each([one for shared in self._shared.values() for one in shared], now)
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
        for opening in self._opening.values():
            opening.cancel()
        for shared in list(self._shared.values()):
            for one in tuple(shared):
                one.abort()

    def kept(self, aim: Aim) -> Origin | None:
        """A kept connection to where a request would go first."""
        return None if aim.first is None else self.take(aim.first)

    def seek(self, aim: Aim, seeker: Seeker, *, is_again: bool = False) -> asyncio.Task[None]:
        """Find or make a connection in a task, which tells the seeker."""
        return self.loop.create_task(self._sought(aim, seeker, is_again))

    async def _sought(self, aim: Aim, seeker: Seeker, is_again: bool) -> None:
        try:
            origin = await self.connect(aim.origins, aim.addresses, aim.host, aim.way, is_again=is_again)
        except OriginFault as error:
            seeker.unconnected(error.fault)
        else:
            seeker.connected(origin)

    async def connect(
        self,
        origins: Origins,
        addresses: tuple[str, ...] | None,
        host: bytes | None,
        way: Way,
        *,
        is_again: bool = False,
    ) -> Origin:
        """A connection to the first of the addresses that takes one, or of those that `host` has.

        Raises OriginFault: the last address's.
        """
        until = self.loop.time() + limits.CONNECTS_SECONDS_MAX
        if host is not None:
            addresses = origins.in_turn(self.loop.time(), await self._resolved(host))
        fault = faults.UNRESOLVED
        for address in addresses or ():
            if fault is not faults.UNRESOLVED and self.loop.time() > until:
                break
            target = Target(address, *way)
            try:
                return self.take(target, is_again=is_again) or await self._find(target)
            except (OSError, OriginFault) as error:
                fault = faults.of(error, tls=bool(target.tls))
                origins.failed(address, self.loop.time())
        raise OriginFault(fault)

    async def _resolved(self, host: bytes) -> tuple[str, ...]:
        """Raises OriginFault."""
        try:
            async with asyncio.timeout(limits.CONNECTS_SECONDS_MAX):
                return await self._resolve(host)
        except TimeoutError:
            raise OriginFault(faults.NO_CONNECTION) from None
        except ValueError:  # a name that DNS cannot ask for
            raise OriginFault(faults.UNRESOLVED) from None

    async def _find(self, target: Target) -> Origin:
        """A new connection; where several requests may share it, the one that is being opened."""
        while target.streams_max and target not in self._declined:
            opening = self._opening.get(target)
            is_own = opening is None
            if opening is None:
                opening = self._opening[target] = self.loop.create_task(self._open_shared(target))
                opening.add_done_callback(partial(self._opened, target))
            opened = await asyncio.shield(opening)
            origin = self.take(target)
            if origin is not None:
                return origin
            is_useless = opened is not None and not opened.is_asked  # it was closed at once, or takes nothing
            if is_own and is_useless:
                raise OriginFault(faults.BROKE_OFF)
        connection = await self._open(target)
        return connection.stream() if isinstance(connection, Http2Origin) else connection

    def _opened(self, target: Target, opening: asyncio.Task[Http2Origin | None]) -> None:
        self._opening.pop(target, None)
        if not opening.cancelled():
            opening.exception()  # whoever waited for it has it; maybe nobody does any more

    async def _open_shared(self, target: Target) -> Http2Origin | None:
        """To be taken by all who wait for it; where it turns out to be HTTP/1.1, None, and by one of them.

        A request that comes just then may be quicker than who had it opened.
        """
        connection = await self._open(target)
        if isinstance(connection, OriginConnection):
            if len(self._declined) >= limits.ROUTES_KEPT_MAX:
                self._declined.clear()
            self._declined.add(target)
            self.put(connection)
            return None
        return connection

    async def _open(self, target: Target) -> OriginConnection | Http2Origin:
        if self._policy.fault(target.address, target.port) is not None:
            raise OriginFault(faults.FORBIDDEN)
        context = self._contexts.get(target.tls, target.streams_max > 0) if target.tls else None
        if context and not _can_be_asked_for(target.server_name):
            raise OriginFault(faults.NO_TLS)
        if context is None:
            async with self._within(limits.CONNECT_SECONDS_MAX):
                _, agreeing = await self.loop.create_connection(
                    lambda: _Agreeing(self, target), target.address, target.port
                )
        else:
            agreeing = await self._agreed(target, context)
        connection = agreeing.connection
        assert connection is not None
        if context and self._is_refused(connection):
            connection.abort()
            raise OriginFault(faults.BAD_CERTIFICATE)
        if isinstance(connection, Http2Origin):
            self._declined.discard(target)
            self._shared.setdefault(target, []).append(connection)
        return connection

    async def _agreed(self, target: Target, context: ssl.SSLContext) -> "_Agreeing":
        """A connection within TLS, reached first: so it is known which of both failed. Raises OriginFault."""
        family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
        reached = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            async with self._within(limits.CONNECT_SECONDS_MAX):
                await self.loop.sock_connect(reached, (target.address, target.port))
        except BaseException:
            reached.close()
            raise
        try:
            async with self._within(limits.ORIGIN_HANDSHAKE_SECONDS_MAX):
                _, agreeing = await self.loop.create_connection(
                    lambda: _Agreeing(self, target),
                    sock=reached,
                    ssl=context,
                    server_hostname=target.server_name,
                    ssl_handshake_timeout=limits.CONNECTS_SECONDS_MAX,  # later than ours, which looks again
                )
        except TimeoutError:
            raise OriginFault(faults.NO_TLS) from None
        return agreeing

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        """As `asyncio.timeout`, but the loop looks at its sockets before that. Raises TimeoutError.

        A process that did not run for so long, because its machine had others to serve, finds the time over
        before it has looked at what its origins said meanwhile: all that were being connected were given up.
        """
        async with asyncio.timeout(None) as limit:
            handle: asyncio.Handle

            def look(left: int) -> None:
                nonlocal handle
                if left:
                    handle = self.loop.call_soon(look, left - 1)
                else:
                    limit.reschedule(self.loop.time())

            handle = self.loop.call_later(seconds, look, LOOKS_MAX)
            try:
                yield
            finally:
                handle.cancel()

    def _is_refused(self, connection: OriginConnection | Http2Origin) -> bool:
        """Its certificate was revoked, may be while it was open."""
        transport = connection.transport
        return transport is not None and self._contexts.refuses(connection.target.tls, transport)

    @property
    def idle(self) -> Iterable[OriginConnection]:
        return [one for kept in self._idle.values() for one in kept]


class _Agreeing(asyncio.Protocol):
    """A connection until it is known what is spoken on it: by ALPN, and without TLS by what the zone says."""

    def __init__(self, pool: Pool, target: Target) -> None:
        self._pool, self._target = pool, target
        self.connection: OriginConnection | Http2Origin | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        is_http2 = self._target.streams_max > 0
        if self._target.tls:
            agreed = transport.get_extra_info("ssl_object")
            is_http2 = agreed is not None and agreed.selected_alpn_protocol() == "h2"
        self.connection = (Http2Origin if is_http2 else OriginConnection)(self._pool, self._target)
        transport.set_protocol(self.connection)
        self.connection.connection_made(transport)


def _can_be_asked_for(name: str) -> bool:
    """Whether TLS takes the name: else it would fail when there is a connection already, which then stays."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False
