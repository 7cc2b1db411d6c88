"""The store behind the API without a feed: what `rest.context.Barrier` asks for, in one process.

Owns  nothing.
Not   what a transaction does.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

from edgestead.store.answered import PASSED
from edgestead.store.control import ControlStore, Reader, Transaction
from edgestead.store.writes import Writes

T = TypeVar("T")


class StoreBarrier:
    """Made on the event loop that serves the API."""

    def __init__(self, store: ControlStore, writes: Writes) -> None:
        self.read = store.read
        self.read_one = store.read_one
        self._store = store
        self._writes = writes

    @property
    def groups(self) -> int:
        return self._store.groups

    async def read_long(self, fn: Callable[[Reader], T]) -> T:
        return await asyncio.to_thread(self._store.read, fn)

    async def write(self, fn: Callable[[Transaction], T]) -> T:
        passed = PASSED.get()
        return cast(T, (await self._writes.write(fn if passed is None else passed.noted(fn))).value)
