"""Awaitable writes that return once they are durable and applied by every live process.

Owns  delivering a group's results to an event loop with one wake-up; the order store → barrier → answer.
Not   how a commit or the barrier works.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol, TypeVar

from edgestead.store.changes import Change
from edgestead.store.control import Committed, ControlStore, Transaction

T = TypeVar("T")
Settled = tuple[asyncio.Future[Committed], Future[Committed]]


class Barrier(Protocol):
    async def recovered(self) -> None:
        """Returns when every process that may still serve from before a restart is back, or dead.

        Raises Unavailable after a fixed limit: then nothing was written.
        """
        ...

    async def applied(self, sequence: int, after: int = 0) -> None:
        """Returns when every live process has applied the sequence, or after a fixed limit. Never raises.

        `after` is the last sequence before the caller's first: it need not wait for changes of others.
        """
        ...


class NoBarrier:
    """A barrier without processes: it never waits."""

    async def recovered(self) -> None: ...

    async def applied(self, sequence: int, after: int = 0) -> None: ...


class Writes:
    """Create it on the event loop that will await the writes; the store must outlive it."""

    def __init__(self, store: ControlStore, barrier: Barrier | None = None) -> None:
        self._store = store
        self._barrier = barrier or NoBarrier()
        self._loop = asyncio.get_running_loop()
        self._settled: deque[Settled] = deque()
        store.on_group(self._wake)

    async def write(self, fn: Callable[[Transaction], T]) -> Committed:
        """Run `fn` in a transaction; returns when it is durable and every live process has applied it.

        Raises what `fn` raises, and Unavailable: then nothing was written. After the commit it always
        succeeds. The write of a cancelled caller may still be committed.
        """
        committed = await self.commit(fn)
        await self.applied(committed)
        return committed

    async def commit(self, fn: Callable[[Transaction], T]) -> Committed:
        """The first half of `write`, for who waits for more than `applied`: returns when it is durable."""
        await self._barrier.recovered()
        return await self._commit(fn)

    async def applied(self, committed: Committed) -> None:
        """The second half."""
        if committed.sequence:
            await self._barrier.applied(committed.sequence, committed.after)

    def _commit(self, fn: Callable[[Transaction], T]) -> asyncio.Future[Committed]:
        waiter: asyncio.Future[Committed] = self._loop.create_future()
        # A group that settles meanwhile still finds the waiter: its callback runs on this loop, which is busy
        # here.
        self._store.write(fn).add_done_callback(partial(self._remember, waiter))
        return waiter

    def _remember(self, waiter: asyncio.Future[Committed], future: Future[Committed]) -> None:
        self._settled.append((waiter, future))

    def _wake(self, changes: Sequence[Change]) -> None:
        # A wake-up costs a system call, so there is one per group and not one per future.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        while self._settled:
            waiter, future = self._settled.popleft()
            if waiter.done():
                continue
            error = future.exception()
            if error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(future.result())
