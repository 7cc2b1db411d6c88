"""Whether a machine is still reached: beside the connections to its workers one that carries nothing.

Owns  the ways to workers of other machines, and ending what goes there when a machine is not reached.
Not   who has an object; whether a process still lives there (the map of the slots says it).

A connection with something unacknowledged waits a quarter of an hour for TCP to give up, and one on which an
answer is awaited for ever. No deadline fits calls and bodies, which may take any time. So the kernel watches
a connection on which nothing is ever outstanding (`port.keep_alive`): that is about the way to the machine,
and not about how busy its processes are. Each connection to a worker begins when that one is there, and ends
with it.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol, cast
from weakref import WeakSet

from edgestead.server.nodes import passing
from edgestead.server.nodes.identity import Member
from edgestead.server.nodes.port import NotSpoken, connect

UNKNOWN_SECONDS: Final = 30.0  # until a node of a release that has no such connection is asked for one again


class _Asking(Protocol):
    """What every protocol of ours that asks a worker has."""

    transport: asyncio.Transport | None


class Machines:
    """Make, use and close it on one loop."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._watched: dict[str, _Watched] = {}  # of nodes' addresses: those that are reached

    def way_to(self, address: str, what: str, place: int) -> passing.Way:
        """As `passing.way_to`; what is connected is aborted when the machine is not reached any more."""
        way = passing.way_to(self._member, address, what, place)

        async def open_(make: Callable[[], asyncio.Protocol]) -> None:
            silent = await self._machine(address).reached()
            if silent is None:
                await way(make)
                return
            await way(lambda: silent.with_it(make()))
            silent.check()

        return open_

    def _machine(self, address: str) -> "_Watched":
        if address not in self._watched:
            self._watched = {one: watched for one, watched in self._watched.items() if watched.is_used}
            self._watched[address] = _Watched(self._member, address)
        return self._watched[address]

    def close(self) -> None:
        for watched in self._watched.values():
            watched.close()


class _Watched:
    """One machine."""

    def __init__(self, member: Member, address: str) -> None:
        self._member, self._address = member, passing.place_of(address)
        self._silent: _Silent | None = None
        self._opening: asyncio.Task[_Silent | None] | None = None
        self._unknown_until_s = 0.0

    @property
    def is_used(self) -> bool:
        return self._opening is not None or self._is_there() or self._is_unknown()

    async def reached(self) -> "_Silent | None":
        """The connection, when it is there; None of a node that knows of none. Raises OSError."""
        if self._is_there():
            return self._silent
        if self._is_unknown():
            return None
        if self._opening is None:
            # in a context of its own: it is everybody's, not the first one's who asks
            self._opening = asyncio.get_running_loop().create_task(self._open(), context=Context())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def _is_there(self) -> bool:
        return self._silent is not None and self._silent.transport is not None

    def _is_unknown(self) -> bool:
        return asyncio.get_running_loop().time() < self._unknown_until_s

    def _opened(self, task: "asyncio.Task[_Silent | None]") -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # whoever waits has it, if there still is one

    async def _open(self) -> "_Silent | None":
        silent = _Silent()
        try:
            await connect(self._member, self._address, passing.ALIVE, lambda: silent, role="objects")
        except NotSpoken:
            self._unknown_until_s = asyncio.get_running_loop().time() + UNKNOWN_SECONDS
            return None
        self._silent = silent
        return silent

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._silent is not None and self._silent.transport is not None:
            self._silent.transport.abort()


class _Silent(asyncio.Protocol):
    """The connection that carries nothing, and what ends with it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._with_it: WeakSet[_Asking] = WeakSet()

    def with_it(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        self._with_it.add(cast(_Asking, protocol))
        return protocol

    def check(self) -> None:
        """When a connection to a worker was made. Raises ConnectionError: nothing was said on it yet."""
        if self.transport is None:
            self._end()
            raise ConnectionError("the object's machine is not reached any more")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._end()

    def _end(self) -> None:
        for one in list(self._with_it):
            if one.transport is not None:
                one.transport.abort()
